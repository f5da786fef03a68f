#!/usr/bin/env python3
"""Makes the golden files of test_gguf.c with the package gguf, as llama.cpp's converter does.

    python3 tests/golden/make_gguf.py           (needs gguf and numpy; writes gguf/ into its folder)

gguf/model.gguf is a random model of architecture llama with shared keys and values and Llama 3.1's factors of frequencies, in
Q8_0, F16, BF16 and F32, with the vocabulary of tokenizers/bytes.json. gguf/values.safetensors has the products of rows of its
tensors, under transformers' names, with 1, 2, 3, ...

gguf/gpt2.gguf is one of architecture gpt2 with the same vocabulary, cut as GPT-2's, in F32, F16 and BF16, and
gguf/gpt2_values.safetensors its products; matrices of layers are the other way around in transformers.
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


def read_tokens():
    tokenizer = json.loads((HERE / "tokenizers/bytes.json").read_text())
    vocab = dict(tokenizer["model"]["vocab"])
    kinds = {i: gguf.TokenType.NORMAL for i in vocab.values()}
    for token in tokenizer["added_tokens"]:
        vocab[token["content"]] = token["id"]
        kinds[token["id"]] = gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED
    names = sorted(vocab, key=vocab.get)
    return vocab, names, [kinds[vocab[name]] for name in names], [" ".join(merge) for merge in tokenizer["model"]["merges"]]


def finish(writer, values, name):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    keep = {name: x[:8] if x.shape[0] > 100 else x for name, x in values.items()}
    sums = {f"sum/{name}": np.array([x.astype(np.float64) @ np.arange(1, x.shape[-1] + 1)]).reshape(-1)[:64].astype(np.float32)
            for name, x in keep.items()}
    save_file(sums, HERE / "gguf" / name)


def gpt2():
    random = np.random.default_rng(6)
    vocab, names, kinds, merges = read_tokens()
    d, ffn, layers, positions = 8, 12, 2, 16
    writer = gguf.GGUFWriter(HERE / "gguf/gpt2.gguf", "gpt2")
    for add, value in ((writer.add_context_length, positions), (writer.add_embedding_length, d), (writer.add_block_count, layers),
                       (writer.add_feed_forward_length, ffn), (writer.add_head_count, 2), (writer.add_layer_norm_eps, 1e-5),
                       (writer.add_tokenizer_model, "gpt2"), (writer.add_tokenizer_pre, "gpt-2"), (writer.add_token_list, names),
                       (writer.add_token_types, kinds), (writer.add_token_merges, merges), (writer.add_bos_token_id, vocab["</s>"]),
                       (writer.add_eos_token_id, vocab["</s>"])):
        add(value)
    values = {}

    def tensor(name, theirs, shape, kind, turned=False):
        stored = gguf.quants.quantize(random.standard_normal(shape).astype(np.float32), kind)
        x = gguf.quants.dequantize(stored, kind).reshape(shape)
        values["transformer." + name] = x.T if turned else x
        writer.add_tensor(theirs, stored, raw_dtype=kind)

    def norm(name, theirs):
        tensor(name + ".weight", theirs + ".weight", (d,), TYPES.F32)
        tensor(name + ".bias", theirs + ".bias", (d,), TYPES.F32)

    tensor("wte.weight", "token_embd.weight", (len(names), d), TYPES.F16)
    tensor("wpe.weight", "position_embd.weight", (positions, d), TYPES.F32)
    norm("ln_f", "output_norm")
    for layer in range(layers):
        at, their = f"h.{layer}.", f"blk.{layer}."
        norm(at + "ln_1", their + "attn_norm")
        norm(at + "ln_2", their + "ffn_norm")
        for name, theirs, rows, cols, kind in (("attn.c_attn", "attn_qkv", 3 * d, d, TYPES.F16), ("attn.c_proj", "attn_output", d, d, TYPES.BF16),
                                               ("mlp.c_fc", "ffn_up", ffn, d, TYPES.F32), ("mlp.c_proj", "ffn_down", d, ffn, TYPES.F16)):
            tensor(f"{at}{name}.weight", f"{their}{theirs}.weight", (rows, cols), kind, True)
            tensor(f"{at}{name}.bias", f"{their}{theirs}.bias", (rows,), TYPES.F32)
    finish(writer, values, "gpt2_values.safetensors")


def llama():
    random = np.random.default_rng(5)
    vocab, names, kinds, merges = read_tokens()
    writer = gguf.GGUFWriter(HERE / "gguf/model.gguf", "llama")
    for add, value in ((writer.add_context_length, 64), (writer.add_embedding_length, D), (writer.add_block_count, LAYERS),
                       (writer.add_feed_forward_length, FFN), (writer.add_head_count, HEADS), (writer.add_head_count_kv, KV),
                       (writer.add_layer_norm_rms_eps, 1e-5), (writer.add_rope_freq_base, 50.0), (writer.add_rope_dimension_count, WIDTH),
                       (writer.add_rope_scaling_orig_ctx_len, 32), (writer.add_tokenizer_model, "gpt2"), (writer.add_tokenizer_pre, "llama-bpe"),
                       (writer.add_token_list, names), (writer.add_token_types, kinds), (writer.add_token_merges, merges),
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
    finish(writer, values, "values.safetensors")


if __name__ == "__main__":
    (HERE / "gguf").mkdir(exist_ok=True)
    llama()
    gpt2()
