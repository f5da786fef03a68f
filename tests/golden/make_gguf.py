#!/usr/bin/env python3
"""Makes the golden file of test_gguf.c with the package gguf, as llama.cpp's converter does.

    python3 tests/golden/make_gguf.py           (needs gguf and numpy; writes gguf/ into its folder)

gguf/model.gguf is a random model of architecture llama with shared keys and values and Llama 3.1's factors of frequencies, in
Q8_0, F16, BF16 and F32, with the vocabulary of tokenizers/bytes.json. gguf/values.safetensors has the products of rows of its
tensors, under transformers' names, with 1, 2, 3, ...
"""
import json
import pathlib

import gguf
import numpy as np
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).resolve().parent
D, HEADS, KV, WIDTH, FFN, LAYERS = 32, 4, 2, 8, 32, 1
TYPES = gguf.GGMLQuantizationType


def interleaved(x, heads):
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def main():
    (HERE / "gguf").mkdir(exist_ok=True)
    random = np.random.default_rng(5)
    tokenizer = json.loads((HERE / "tokenizers/bytes.json").read_text())
    vocab = dict(tokenizer["model"]["vocab"])
    kinds = {i: gguf.TokenType.NORMAL for i in vocab.values()}
    for token in tokenizer["added_tokens"]:
        vocab[token["content"]] = token["id"]
        kinds[token["id"]] = gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED
    names = sorted(vocab, key=vocab.get)
    writer = gguf.GGUFWriter(HERE / "gguf/model.gguf", "llama")
    for add, value in ((writer.add_context_length, 64), (writer.add_embedding_length, D), (writer.add_block_count, LAYERS),
                       (writer.add_feed_forward_length, FFN), (writer.add_head_count, HEADS), (writer.add_head_count_kv, KV),
                       (writer.add_layer_norm_rms_eps, 1e-5), (writer.add_rope_freq_base, 50.0), (writer.add_rope_dimension_count, WIDTH),
                       (writer.add_rope_scaling_orig_ctx_len, 32), (writer.add_tokenizer_model, "gpt2"), (writer.add_tokenizer_pre, "llama-bpe"),
                       (writer.add_token_list, names), (writer.add_token_types, [kinds[vocab[name]] for name in names]),
                       (writer.add_token_merges, [" ".join(merge) for merge in tokenizer["model"]["merges"]]),
                       (writer.add_bos_token_id, vocab["<s>"]), (writer.add_eos_token_id, vocab["</s>"]), (writer.add_add_bos_token, True)):
        add(value)
    values = {}

    def tensor(name, theirs, shape, kind, heads=0):
        x = random.standard_normal(shape).astype(np.float32)
        data = gguf.quants.quantize(x, kind)
        x = gguf.quants.dequantize(data, kind).reshape(shape)
        values[name] = x
        stored = gguf.quants.quantize(interleaved(x, heads) if heads else x, kind)
        writer.add_tensor(theirs, stored, raw_dtype=kind)

    tensor("model.embed_tokens.weight", "token_embd.weight", (len(names), D), TYPES.Q8_0)
    tensor("model.norm.weight", "output_norm.weight", (D,), TYPES.F32)
    for layer in range(LAYERS):
        at, their = f"model.layers.{layer}.", f"blk.{layer}."
        for name, theirs, shape, kind, heads in (
                ("input_layernorm", "attn_norm", (D,), TYPES.F32, 0), ("self_attn.q_proj", "attn_q", (HEADS * WIDTH, D), TYPES.Q8_0, HEADS),
                ("self_attn.k_proj", "attn_k", (KV * WIDTH, D), TYPES.F16, KV), ("self_attn.v_proj", "attn_v", (KV * WIDTH, D), TYPES.BF16, 0),
                ("self_attn.o_proj", "attn_output", (D, HEADS * WIDTH), TYPES.Q8_0, 0), ("post_attention_layernorm", "ffn_norm", (D,), TYPES.F32, 0),
                ("mlp.gate_proj", "ffn_gate", (FFN, D), TYPES.Q8_0, 0), ("mlp.up_proj", "ffn_up", (FFN, D), TYPES.Q8_0, 0),
                ("mlp.down_proj", "ffn_down", (D, FFN), TYPES.Q8_0, 0)):
            tensor(f"{at}{name}.weight", f"{their}{theirs}.weight", shape, kind, heads)
    factors = []
    for i in range(WIDTH // 2):  # the rule of Llama 3.1 with factors 8, 1 and 4
        turns = 50.0 ** (-2 * i / WIDTH) / (2 * np.pi) * 32
        smooth = min(max((turns - 1) / 3, 0), 1)
        factors.append(1 / ((1 - smooth) / 8 + smooth))
    writer.add_tensor("rope_freqs.weight", np.array(factors, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    keep = {name: x[:8] if x.shape[0] > 100 else x for name, x in values.items()}
    sums = {f"sum/{name}": np.array([x.astype(np.float64) @ np.arange(1, x.shape[-1] + 1)]).reshape(-1)[:64].astype(np.float32)
            for name, x in keep.items()}
    save_file(sums, HERE / "gguf/values.safetensors")


if __name__ == "__main__":
    main()
