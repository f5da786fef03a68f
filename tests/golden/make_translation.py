#!/usr/bin/env python3
"""Makes translation.json, for tests/cli/translate_forced.sh: what models of marian_model say of translations, by transformers.

    python3 tests/golden/make_translation.py          (needs torch and transformers; writes translation.json into its folder)

For each model: "forced": texts, with texts that their translations must contain and the tokens of these, and the best of all
translations that do with at most "longest" tokens, of which every one is scored. "attention": translations by beam search, with
the source token to which each token attends most in the last layer, by the mean of its heads, the sums of that attention over
the translation, and the sum of ln(min(sum, 1)) over source tokens, by which a coverage penalty is multiplied.
"""

import itertools
import json
import os

import torch
from transformers import MarianMTModel

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ["swish", "relu"]
FORCED = [("Zwei Kinder spielen mit einem roten Ball am Strand.", ["sun"], 2), ("Die", ["The", "sun"], 1),
          ("Das Wasser ist kalt, aber die Sonne scheint warm.", ["ball"], 2)]
PIECES = {"sun": ["▁s", "un"], "The": ["▁The"], "ball": ["▁b", "al", "l"]}  # as the vocabulary of the target has them
ALIGNED = ["Zwei Kinder spielen mit einem roten Ball am Strand.", "Warum läuft das Mädchen so schnell durch den Regen?"]
BEST = 2


def scores_of(model, source, targets):
    """Mean log-probabilities of targets, which are of one length and have their end of sentence."""
    start, pad = model.config.decoder_start_token_id, model.config.pad_token_id
    scores = []
    with torch.no_grad():
        encoded = model.get_encoder()(torch.tensor([source])).last_hidden_state
        for part in torch.tensor(targets).split(2000):
            read = torch.cat([torch.full((len(part), 1), start), part[:, :-1]], 1)
            logits = model(encoder_outputs=(encoded.expand(len(part), -1, -1),), decoder_input_ids=read).logits.double()
            if model.generation_config.renormalize_logits:
                logits[:, :, pad] = -torch.inf
            scores.append(torch.log_softmax(logits, -1).gather(2, part[:, :, None])[:, :, 0].mean(1))
    return torch.cat(scores).tolist()


def with_phrases(phrases, words, free):
    """All sequences of the phrases, in any order, and so many free words between them."""
    for order in set(itertools.permutations(list(map(tuple, phrases)) + [None] * free)):
        for chosen in itertools.product(words, repeat=free):
            fill = iter(chosen)
            yield tuple(itertools.chain.from_iterable((next(fill),) if part is None else part for part in order))


def forced_case(model, tokens, text, forced, free):
    end, pad = model.config.eos_token_id, model.config.pad_token_id
    words = [w for w in range(model.config.vocab_size) if w not in (end, pad)]
    source, phrases = tokens[text]["source"] + [end], [tokens[f] for f in forced]
    found = []
    for count in range(free + 1):
        targets = [list(ids) + [end] for ids in sorted(set(with_phrases(phrases, words, count)))]
        found += zip(scores_of(model, source, targets), targets)
    found.sort(key=lambda pair: -pair[0])
    return {"text": text, "forced": forced, "longest": sum(map(len, phrases)) + free,
            "best": [{"ids": ids[:-1], "score": round(score, 6)} for score, ids in found[:BEST]]}


def attention_case(model, tokens, text):
    source = tokens[text]["source"] + [model.config.eos_token_id]
    made = model.generate(torch.tensor([source]))[0].tolist()
    with torch.no_grad():
        out = model(torch.tensor([source]), decoder_input_ids=torch.tensor([made[:-1]]), output_attentions=True)
    weights = out.cross_attentions[-1][0].double().mean(0)
    sums = weights.sum(0)
    return {"text": text, "ids": made[1:-1], "most": weights.argmax(-1).tolist(), "sums": [round(x, 4) for x in sums.tolist()],
            "coverage": round(torch.log(torch.clamp(sums, max=1.0)).sum().item(), 5)}


def main():
    result = {}
    for name in MODELS:
        folder = os.path.join(HERE, "marian_model", name)
        model = MarianMTModel.from_pretrained(folder, attn_implementation="eager").eval()
        with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
            tokens = {case["text"]: case for case in json.load(file)["texts"]}
        with open(os.path.join(folder, "vocab.json"), encoding="utf-8") as file:
            numbers = json.load(file)
        tokens.update((text, [numbers[piece] for piece in pieces]) for text, pieces in PIECES.items())
        result[name] = {"forced": [forced_case(model, tokens, *case) for case in FORCED],
                        "attention": [attention_case(model, tokens, text) for text in ALIGNED]}
    with open(os.path.join(HERE, "translation.json"), "w", encoding="utf-8") as file:
        json.dump(result, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
