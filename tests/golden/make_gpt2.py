#!/usr/bin/env python3
"""Makes the golden files of test_gpt2_model.c: small random GPT-2 models and their log-probabilities by transformers.

    python3 tests/golden/make_gpt2.py            (needs torch, transformers and safetensors; writes gpt2_model/ into its folder)
    python3 tests/golden/make_gpt2.py CHECK FOLDER EXPECTED   log-probabilities of a folder against EXPECTED, a file of ours

gpt2_model/tied has the activation gelu_new and one matrix for embedding and output, gpt2_model/untied has gelu, an inner
width of its own, no "transformer." before its names, the buffers of old files, and an lm_head. Both have 259 tokens, as
tarn's byte vocabulary. expected.safetensors in each holds ids [sentences, length], of which the first is the end of
sentence, the natural log-probabilities [sentences, length, 259] of what follows each of them, and greedy [sentences, 16]:
the first five ids and the eleven that greedy search continues them with, without an end of sentence.
"""

import json
import os
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpt2_model")
VOCAB, END, SENTENCES, LENGTH = 259, 2, 3, 12


def log_probabilities(model, ids):
    with torch.no_grad():
        return torch.log_softmax(model(input_ids=ids.long()).logits.double(), -1)


def build(config):
    torch.manual_seed(7)
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model


def write_expected(folder, model):
    torch.manual_seed(8)
    ids = torch.randint(3, VOCAB, (SENTENCES, LENGTH), dtype=torch.int32)
    ids[:, 0] = END
    greedy = model.generate(ids[:, :5].long(), attention_mask=torch.ones(SENTENCES, 5), do_sample=False,
                            min_new_tokens=11, max_new_tokens=11, pad_token_id=0)
    save_file({"ids": ids, "log_probabilities": log_probabilities(model, ids).float(), "greedy": greedy.int()},
              os.path.join(folder, "expected.safetensors"))


def main():
    common = dict(vocab_size=VOCAB, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=END, eos_token_id=END)
    folder = os.path.join(HERE, "tied")
    model = build(GPT2Config(**common))
    model.save_pretrained(folder)
    os.remove(os.path.join(folder, "generation_config.json"))
    write_expected(folder, model)

    folder = os.path.join(HERE, "untied")
    model = build(GPT2Config(**common, n_inner=40, activation_function="gelu", tie_word_embeddings=False))
    model.save_pretrained(folder)
    os.remove(os.path.join(folder, "generation_config.json"))
    write_expected(folder, model)
    path = os.path.join(folder, "model.safetensors")
    tensors = {name.removeprefix("transformer."): value for name, value in load_file(path).items()}
    for layer in range(2):
        tensors[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 16, 16).tril()
        tensors[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, path, metadata={"format": "pt"})


def check(folder, expected):
    model = GPT2LMHeadModel.from_pretrained(folder).eval()
    golden = load_file(expected)
    worst = (log_probabilities(model, golden["ids"]) - golden["log_probabilities"].double()).abs().max().item()
    print(json.dumps({"folder": folder, "largest difference": worst}))
    return worst < 1e-4


if __name__ == "__main__":
    if len(sys.argv) == 4:
        sys.exit(0 if check(sys.argv[2], sys.argv[3]) else 1)
    main()
