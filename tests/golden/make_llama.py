#!/usr/bin/env python3
"""Makes the golden files of test_llama_model.c: small random models of LLaMA's kind and what transformers computes.

    python3 tests/golden/make_llama.py            (needs torch, transformers and safetensors; writes llama_model/ into its folder)
    python3 tests/golden/make_llama.py CHECK FOLDER EXPECTED...   log-probabilities of folders against EXPECTED, files of ours

llama has as many heads of keys and values as of queries, tied embeddings, and its weights in BF16 in two files; grouped has
shared keys and values, heads whose width is not d_model / heads, biases, Llama 3.1's scaling of rotary positions and GELU;
mistral has linearly scaled positions and a window; qwen2 has biases of queries, keys and values. All have 259 tokens, as
tarn's byte vocabulary, whose begin is 1 and whose end is 2. expected.safetensors in each holds ids [sentences, length],
which begin with 1 (qwen2: with 2), the natural log-probabilities [sentences, length, 7] of every 37th token behind each
of them, and greedy [sentences, 16]: the first five ids and the eleven that greedy search continues them with, without an end
of sentence.
"""
import json
import os
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llama_model")
VOCAB, BEGIN, END, SENTENCES, LENGTH, STEP = 259, 1, 2, 2, 12, 37


def log_probabilities(model, ids):
    with torch.no_grad():
        return torch.log_softmax(model(input_ids=ids.long()).logits.double(), -1)[:, :, ::STEP]


def write(name, config, begin=BEGIN, **save):
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
            parameter.copy_(parameter.bfloat16().float())  # so that files in BF16 are exact
    folder = os.path.join(HERE, name)
    model.bfloat16().save_pretrained(folder, **save)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    os.remove(os.path.join(folder, "generation_config.json"))
    torch.manual_seed(8)
    ids = torch.randint(3, VOCAB, (SENTENCES, LENGTH), dtype=torch.int32)
    ids[:, 0] = begin
    greedy = model.generate(ids[:, :5].long(), attention_mask=torch.ones(SENTENCES, 5), do_sample=False,
                            min_new_tokens=11, max_new_tokens=11, pad_token_id=0)
    save_file({"ids": ids, "log_probabilities": log_probabilities(model, ids).float().contiguous(), "greedy": greedy.int()},
              os.path.join(folder, "expected.safetensors"))


def main():
    common = dict(vocab_size=VOCAB, hidden_size=8, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                  max_position_embeddings=64, bos_token_id=BEGIN, eos_token_id=END)
    write("llama", LlamaConfig(**common, tie_word_embeddings=True, rms_norm_eps=1e-5), max_shard_size="5KB")
    write("grouped", LlamaConfig(**{**common, "hidden_size": 4, "num_attention_heads": 4}, num_key_value_heads=2, head_dim=6, attention_bias=True, mlp_bias=True,
                                 hidden_act="gelu",
                                 rope_parameters=dict(rope_type="llama3", rope_theta=50.0, factor=8.0, low_freq_factor=1.0,
                                                      high_freq_factor=4.0, original_max_position_embeddings=32)))
    common |= dict(hidden_size=4, num_hidden_layers=1, tie_word_embeddings=True)
    write("mistral", MistralConfig(**common, num_key_value_heads=1, sliding_window=32,
                                   rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0)))
    write("qwen2", Qwen2Config(**{**common, "bos_token_id": None}, num_key_value_heads=1), begin=END)


def check(folder, expected):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    golden = load_file(expected)
    worst = (log_probabilities(model, golden["ids"]) - golden["log_probabilities"].double()).abs().max().item()
    print(json.dumps({"folder": folder, "class": type(model).__name__, "largest difference": worst}))
    return worst < 1e-5


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(0 if all(check(*pair) for pair in zip(sys.argv[2::2], sys.argv[3::2])) else 1)
    main()
