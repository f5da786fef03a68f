#!/usr/bin/env python3
"""Makes pll.json: pseudo-log-likelihoods of sentences by transformers, for tests/cli/bert.sh.

    python3 tests/golden/make_pll.py     (needs torch, transformers and safetensors)

The models are bert_model/bert, untied and roberta, as make_bert.py has saved them. Each token of a sentence is replaced by
the mask in turn, in a row of its own, and the logarithm of the probability that the model gives it there is taken in double
precision; <cls> and the end of sentence are read and not predicted. The tokens are those of tarn's byte vocabulary: the bytes
of the text, and the end of sentence, which a vocabulary of BERT or RoBERTa itself has as [SEP] or </s>. A list for each model,
of [text, log-probabilities of its tokens].
"""

import json
import os

import torch
from transformers import AutoModelForMaskedLM

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES, CLS, END, MASK = 3, 259, 2, 261
TEXTS = ["Ein Hund.", "a", "zzzzzzzz", "\u00e4\u00df \u00e9"]


def pseudo(model, text):
    row = [CLS, *(BYTES + byte for byte in text.encode()), END]
    found = []
    for place in range(1, len(row) - 1):
        hidden = torch.tensor([row[:place] + [MASK] + row[place + 1 :]])
        with torch.no_grad():
            made = model(input_ids=hidden, attention_mask=torch.ones_like(hidden))
        found.append(made.logits[0, place].log_softmax(-1)[row[place]].item())
    return found


def main():
    told = {}
    for name in ("bert", "untied", "roberta"):
        model = AutoModelForMaskedLM.from_pretrained(os.path.join(HERE, "bert_model", name)).double().eval()
        told[name] = [[text, [round(value, 8) for value in pseudo(model, text)]] for text in TEXTS]
    models = [f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, lines)) + "\n]" for name, lines in told.items()]
    with open(os.path.join(HERE, "pll.json"), "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(models) + "\n}\n")


if __name__ == "__main__":
    main()
