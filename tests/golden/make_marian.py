#!/usr/bin/env python3
"""Makes the golden files of test_marian_model.c: small random Marian models, their logits, tokens and translations by transformers.

    python3 tests/golden/make_marian.py          (needs torch, transformers and sentencepiece; writes marian_model/ into its folder)
    python3 tests/golden/make_marian.py CTRANSLATE2   (needs ctranslate2; writes ctranslate2_model/ of what is there)
    python3 tests/golden/make_marian.py CHECK FOLDER EXPECTED ...   logits of folders against EXPECTED, files of ours

marian_model/swish shares all embeddings, scales them, has swish, the settings of an OPUS-MT model (four hypotheses, probabilities
without padding) and codes of languages; marian_model/relu is of an older form: its settings of generation in config.json, three
hypotheses, early stopping, a bias for each token, and positions and copies of the embeddings in the file;
marian_model/separate has vocabularies and embeddings of its own for each side, gelu, and a longer decoder; marian_model/untied
an output matrix of its own and no search. In each: source.spm and target.spm with their vocab.json, expected.safetensors (source
[sentences, length], target [sentences, length] as the decoder reads it, logits [sentences, length, words]) and cases.json: texts
with their tokens as source and as target and what these are decoded to, and texts with their translations.
"""

import json
import os
import shutil
import sys
import tempfile

import sentencepiece
import torch
from safetensors.torch import load_file, save_file
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "marian_model")
SENTENCES, LENGTH, POSITIONS, LONGEST, STEPS = 3, 11, 80, 50, 120

GERMAN = """Ein alter Mann sitzt auf einer Bank im Park.
Zwei Kinder spielen mit einem roten Ball am Strand.
Die Frau liest ihrem Hund aus der Zeitung vor.
Am Morgen fährt der Zug nach Hamburg, am Abend kommt er zurück.
Wir gehen über die Brücke und sehen den Fluss.
Der Koch schneidet Zwiebeln; seine Augen tränen.
Warum läuft das Mädchen so schnell durch den Regen?
"Guten Tag", sagte er leise und schloss die Tür.
Im Jahr 1987 standen hier 24 große Häuser.
Viele Menschen warten vor dem Theater auf den Beginn.
Ein Vogel fliegt über das Dach der kleinen Schule.
Das Wasser ist kalt, aber die Sonne scheint warm."""

ENGLISH = """An old man sits on a bench in the park.
Two children play with a red ball on the beach.
The woman reads the newspaper to her dog.
In the morning the train goes to Hamburg, in the evening it comes back.
We walk across the bridge and look at the river.
The cook cuts onions; his eyes are watering.
Why does the girl run so quickly through the rain?
"Good day," he said quietly and closed the door.
In 1987 there were 24 large houses here.
Many people wait for the beginning in front of the theatre.
A bird flies over the roof of the small school.
The water is cold, but the sun is warm."""

TEXTS = ["Ein alter Mann sitzt im Park.", "The old man, with a red ball!", "", "   ", "  zwei  Blanks  ", ">>deu<< The sun is warm.",
         ">>eng<<Die Sonne", ">>xyz<< unknown", ">> no code", "a >>deu<< inside", "Äpfel & Öl: 50 % ☃☃ kalt", "ein▁Strich ▁", "日本語 Park",
         "tab\tand\u00a0space", "ß Straße", "Rain\u2028rain", "(kalt) [warm] {Zug}", "0123456789", "ein\u00ad", "ｆｕｌｌ １２"]
LINES = [line for pair in zip(GERMAN.split("\n"), ENGLISH.split("\n")) for line in pair] + ["Regen", "Die", "☃ ☃"]


def train(path, text, size, kind):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text.split("\n")), model_prefix=path[:-4], vocab_size=size, model_type=kind, minloglevel=4,
        normalization_rule_name="identity", unk_id=1, eos_id=0, bos_id=-1, pad_id=-1, hard_vocab_limit=False)
    os.remove(path[:-4] + ".vocab")
    os.rename(path[:-4] + ".model", path)


def pieces(path):
    model = sentencepiece.SentencePieceProcessor(model_file=path)
    return [model.id_to_piece(i) for i in range(model.get_piece_size())]


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        file.write(text.replace('},{"text', '},\n{"text') + "\n")


def vocabularies(folder, separate):
    """A vocabulary for both sides, with codes of languages, or one for each."""
    os.makedirs(folder, exist_ok=True)
    source, target = (os.path.join(folder, name) for name in ("source.spm", "target.spm"))
    train(source, GERMAN, 110, "unigram")
    train(target, ENGLISH, 100, "bpe")
    first, last = (["</s>", "<unk>", "<pad>"], []) if separate else (["</s>", "<unk>"], ["<pad>"])

    def order(names):
        return {name: i for i, name in enumerate(first + sorted(set(names) - set(first)) + last)}

    if separate:
        write_json(folder, "vocab.json", order(pieces(source)))
        write_json(folder, "target_vocab.json", order(pieces(target)))
        write_json(folder, "tokenizer_config.json", {"separate_vocabs": True, "source_lang": "de", "target_lang": "en"})
    else:  # the list lacks some pieces, as lists of OPUS-MT do
        names = [name for name in pieces(source) + pieces(target) if name not in ("▁Hund", "ß", "▁the")]
        write_json(folder, "vocab.json", order(names + [">>deu<<", ">>eng<<"]))


def tokenizer_of(folder):
    separate = os.path.exists(os.path.join(folder, "target_vocab.json"))
    files = {"source_spm": os.path.join(folder, "source.spm"), "target_spm": os.path.join(folder, "target.spm"),
             "vocab": os.path.join(folder, "vocab.json")}
    if separate:
        files["target_vocab_file"] = os.path.join(folder, "target_vocab.json")
    return MarianTokenizer(**files, separate_vocabs=separate)


def build(folder, config):
    """Random, and then trained for a moment, so that translations end and hypotheses compete."""
    torch.manual_seed(7)
    model = MarianMTModel(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(torch.randn_like(parameter) * 0.1)
        model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias) * 0.3)
    tokenizer = tokenizer_of(folder)
    batch = tokenizer(GERMAN.split("\n"), text_target=ENGLISH.split("\n"), padding=True, return_tensors="pt")
    labels = batch["labels"].masked_fill(batch["labels"] == config.pad_token_id, -100)
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
    for _ in range(STEPS):
        optimiser.zero_grad()
        model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels).loss.backward()
        optimiser.step()
    return model.eval()


def logits_of(model, source, target):
    with torch.no_grad():
        return model(input_ids=source.long(), decoder_input_ids=target.long()).logits


def save_expected(folder, model):
    config = model.config
    torch.manual_seed(8)
    source = torch.randint(3, config.vocab_size - 1, (SENTENCES, LENGTH), dtype=torch.int32)
    target = torch.randint(3, config.decoder_vocab_size - 1, (SENTENCES, LENGTH), dtype=torch.int32)
    source[:, -1], target[:, 0] = 0, config.pad_token_id
    save_file({"source": source, "target": target, "logits": logits_of(model, source, target).float().contiguous()},
              os.path.join(folder, "expected.safetensors"))


def ids_of(tokenizer, text, target):
    """Without the end of sentence."""
    return (tokenizer(text_target=text) if target else tokenizer(text))["input_ids"][:-1]


def save_cases(folder, model):
    tokenizer = tokenizer_of(folder)
    texts = []
    for text in TEXTS + LINES:
        source, target = (ids_of(tokenizer, text, side) for side in (False, True))
        texts.append({"text": text, "source": source, "target": target,
                      "decoded": tokenizer.decode(target, skip_special_tokens=True, use_source_tokenizer=False)})
    translations = []
    for line in LINES:
        made = model.generate(**tokenizer(line, return_tensors="pt"))
        if len(made[0]) == LONGEST:  # it ends by force, which both do in ways of their own
            continue
        translations.append({"text": line, "tokens": len(made[0]),
                             "translation": tokenizer.decode(made[0], skip_special_tokens=True, use_source_tokenizer=False)})
    write_json(folder, "cases.json", {"texts": texts, "translations": translations})
    lengths = [t["tokens"] for t in translations]
    print(os.path.basename(folder), "tokens of translations:", lengths)


def make(name, separate, generation, **settings):
    folder = os.path.join(HERE, name)
    vocabularies(folder, separate)
    with open(os.path.join(folder, "vocab.json"), encoding="utf-8") as file:
        size = other = len(json.load(file))
    if separate:
        with open(os.path.join(folder, "target_vocab.json"), encoding="utf-8") as file:
            other = len(json.load(file))
    pad = 2 if separate else size - 1
    model = build(folder, MarianConfig(vocab_size=size, decoder_vocab_size=other, d_model=16, encoder_layers=2, encoder_attention_heads=2,
                               decoder_attention_heads=4, encoder_ffn_dim=24, decoder_ffn_dim=20, pad_token_id=pad, eos_token_id=0,
                               decoder_start_token_id=pad, forced_eos_token_id=0, max_position_embeddings=POSITIONS,
                               **settings))
    for key, value in dict(generation, max_length=LONGEST, bad_words_ids=[[pad]]).items():
        setattr(model.generation_config, key, value)
    model.save_pretrained(folder)
    save_expected(folder, model)
    save_cases(folder, model)
    return folder, model


def main():
    torch.set_num_threads(1)
    make("swish", False, {"num_beams": 4, "renormalize_logits": True}, activation_function="swish", scale_embedding=True,
         decoder_layers=1)
    folder, model = make("relu", False, {"num_beams": 3, "early_stopping": True, "length_penalty": 0.6},
                         activation_function="relu", decoder_layers=1)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    config.update(num_beams=3, early_stopping=True, length_penalty=0.6, max_length=LONGEST, bad_words_ids=[[model.config.pad_token_id]],
                  static_position_embeddings=True, normalize_before=False, add_bias_logits=False)
    del config["tie_word_embeddings"]
    write_json(folder, "config.json", config)
    os.remove(os.path.join(folder, "generation_config.json"))
    path = os.path.join(folder, "model.safetensors")
    tensors = load_file(path)
    words = tensors["model.shared.weight"]
    for name in ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"):
        tensors[name] = words.clone()
    for side, stack in (("encoder", model.model.encoder), ("decoder", model.model.decoder)):
        tensors[f"model.{side}.embed_positions.weight"] = stack.embed_positions.weight.detach().clone()
    save_file(tensors, path, metadata={"format": "pt"})
    make("separate", True, {"num_beams": 2, "length_penalty": 1.7}, activation_function="gelu", decoder_layers=2,
         share_encoder_decoder_embeddings=False)
    make("untied", True, {"num_beams": 1}, activation_function="silu", scale_embedding=True, decoder_layers=1,
         share_encoder_decoder_embeddings=False, tie_word_embeddings=False)


def convert():
    """What CTranslate2's own converter makes of marian_model/swish."""
    from ctranslate2.converters import TransformersConverter
    with tempfile.TemporaryDirectory() as folder:
        made = TransformersConverter(os.path.join(HERE, "swish")).convert(os.path.join(folder, "made"))
        shutil.copy(os.path.join(made, "model.bin"), os.path.join(HERE, "..", "ctranslate2_model", "swish.bin"))


def check(folder, expected):
    wanted = load_file(expected)
    found = logits_of(MarianMTModel.from_pretrained(folder).eval(), wanted["source"], wanted["target"])
    worst = (found - wanted["logits"]).abs().max().item()
    print(f"{folder}: largest difference {worst:.2g}")
    return worst < 1e-4


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1] == "CTRANSLATE2":
        convert()
    else:
        sys.exit(0 if all([check(*pair) for pair in zip(sys.argv[2::2], sys.argv[3::2])]) else 1)
