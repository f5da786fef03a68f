#!/usr/bin/env python3
"""Makes the golden files of test_bert_model.c: small random BERT and RoBERTa models and their logits by transformers.

    python3 tests/golden/make_bert.py            (needs torch, transformers and safetensors; writes bert_model/ into its folder)
    python3 tests/golden/make_bert.py CHECK FOLDER EXPECTED ...   logits of folders against EXPECTED, files of ours

bert_model/bert is a BertForMaskedLM, bert_model/roberta a RobertaForMaskedLM with gelu_new in its layers and one row of
segments, bert_model/untied a BertForMaskedLM with a matrix of its own for its output and LayerNorm.gamma and .beta, as old files
have, bert_model/body a RobertaModel with pooler, without an output, bert_model/classes a BertForSequenceClassification with
three classes, bert_model/number a RobertaForSequenceClassification with one. All have 262 tokens, as tarn's byte vocabulary with
<cls>, <sep> and <mask>. expected.safetensors in each holds ids [sentences, length], segments of the same shape, and the logits
[sentences, length, 262], of classifiers [sentences, labels]; of the body its states [sentences, length, 16].
"""

import json
import os
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import (AutoModelForMaskedLM, AutoModelForSequenceClassification, BertConfig, BertForMaskedLM,
                          BertForSequenceClassification, RobertaConfig, RobertaForMaskedLM,
                          RobertaForSequenceClassification, RobertaModel)

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bert_model")
VOCAB, CLS, SEP, MASK, SENTENCES, LENGTH = 262, 259, 260, 261, 3, 14


def build(kind, config):
    torch.manual_seed(7)
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model


def output(model, ids, segments):
    with torch.no_grad():
        made = model(input_ids=ids.long(), token_type_ids=segments.long(), attention_mask=torch.ones_like(ids))
    return made.logits if hasattr(made, "logits") else made.last_hidden_state


def save(name, model):
    folder = os.path.join(HERE, name)
    model.save_pretrained(folder)
    generation = os.path.join(folder, "generation_config.json")
    if os.path.exists(generation):
        os.remove(generation)
    torch.manual_seed(8)
    ids = torch.randint(3, 259, (SENTENCES, LENGTH), dtype=torch.int32)
    ids[:, 0], ids[:, 6], ids[:, -1], ids[:, 4] = CLS, SEP, SEP, MASK
    segments = torch.zeros_like(ids)
    if model.config.type_vocab_size > 1:
        segments[:, 7:] = 1
    save_file({"ids": ids, "segments": segments, "output": output(model, ids, segments).float().contiguous()},
              os.path.join(folder, "expected.safetensors"))
    return os.path.join(folder, "model.safetensors")


def main():
    common = dict(vocab_size=VOCAB, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=40)
    save("bert", build(BertForMaskedLM, BertConfig(**common, max_position_embeddings=16)))
    save("roberta", build(RobertaForMaskedLM, RobertaConfig(**common, max_position_embeddings=18, type_vocab_size=1,
                                                            hidden_act="gelu_new", layer_norm_eps=1e-5)))
    path = save("untied", build(BertForMaskedLM, BertConfig(**common, max_position_embeddings=14, tie_word_embeddings=False)))
    tensors = {}
    for name, value in load_file(path).items():
        if name.startswith("bert."):
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        tensors[name] = value
    tensors["bert.embeddings.position_ids"] = torch.arange(14).unsqueeze(0)
    save_file(tensors, path, metadata={"format": "pt"})
    save("classes", build(BertForSequenceClassification, BertConfig(**common, max_position_embeddings=16, id2label={
        0: "bad|worse", 1: 'so "so"', 2: "good"}, label2id={"bad|worse": 0, 'so "so"': 1, "good": 2})))
    save("number", build(RobertaForSequenceClassification, RobertaConfig(**common, max_position_embeddings=18, num_labels=1)))
    save("body", build(RobertaModel, RobertaConfig(**common, max_position_embeddings=18)))


def check(folder, expected):
    kind = AutoModelForMaskedLM
    if "Sequence" in json.load(open(os.path.join(folder, "config.json"), encoding="utf-8"))["architectures"][0]:
        kind = AutoModelForSequenceClassification
    model = kind.from_pretrained(folder).eval()
    golden = load_file(expected)
    worst = (output(model, golden["ids"], golden["segments"]) - golden["output"]).abs().max().item()
    print(json.dumps({"folder": folder, "largest difference": worst}))
    return worst < 1e-4


if __name__ == "__main__":
    if len(sys.argv) > 3:
        sys.exit(0 if all([check(*pair) for pair in zip(sys.argv[2::2], sys.argv[3::2])]) else 1)
    main()
