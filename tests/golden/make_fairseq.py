#!/usr/bin/env python3
"""Makes the golden files of test_fairseq.c: small random models as fairseq's checkpoints have them, their logits and translations.

    python3 tests/golden/make_fairseq.py     (needs torch and safetensors; writes fairseq/ into its folder)

The arithmetic is written from fairseq's definitions with PyTorch's own functions, in double: positions that begin at 2 (behind the
padding, token 1), sines before cosines with the frequencies 10000^(-i/(d/2 - 1)); embeddings times sqrt(d) unless
no_scale_embedding; epsilon 1e-5 in norms; a decoder that reads </s> first. fairseq/iwslt is a post-norm model with relu, a
dictionary for each side, codes of subword-nmt and an output that shares the decoder's embeddings; fairseq/joined is pre-norm with
gelu, one dictionary and one matrix for everything, and codes of fastBPE; fairseq/learned has learned positions, norms of the
embeddings, three matrices, unscaled embeddings, and texts that are cut already. In each: expected.safetensors (source, target as the decoder reads it, logits
[sentences, length, words]) and cases.json: texts with their translations by greedy search and by fairseq's search with 5 beams.
"""

import json
import math
import os

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
LENGTH, D, HEADS, FFN, LIMIT = 4, 4, 2, 6, 12
SOURCE = ["der alte mann sitzt im park .", "zwei kinder spielen am strand .", "die frau liest", "das wasser ist kalt .", "ein mann spielt", "im wasser"]
TARGET = ["the old man sits in the park .", "two children play at the beach .", "the woman reads", "the water is cold .", "a man plays", "in the water"]
BOS, PAD, EOS, UNK = range(4)
torch.set_num_threads(1)


def learn(lines, count):
    """Merges of byte-pair encoding, most frequent pairs first."""
    words = [tuple(w[:-1]) + (w[-1] + "</w>",) for line in lines for w in line.split()]
    codes = []
    for _ in range(count):
        pairs = {}
        for w in words:
            for pair in zip(w, w[1:]):
                pairs[pair] = pairs.get(pair, 0) + 1
        best = max(sorted(pairs), key=pairs.get)
        codes.append((best, pairs[best]))
        words = [merge(w, best) for w in words]
    return codes


def merge(word, pair):
    out, i = [], 0
    while i < len(word):
        both = word[i:i + 2] == pair
        out.append(word[i] + word[i + 1] if both else word[i])
        i += 2 if both else 1
    return tuple(out)


def cut(line, codes):
    """The tokens of a text, of which those that do not end a word end in @@."""
    ranks = {pair: rank for rank, (pair, _) in reversed(list(enumerate(codes)))}
    out = []
    for w in line.split():
        w = tuple(w[:-1]) + (w[-1] + "</w>",)
        while len(w) > 1 and any(p in ranks for p in zip(w, w[1:])):
            w = merge(w, min((p for p in zip(w, w[1:]) if p in ranks), key=ranks.get))
        out += [s + "@@" for s in w[:-1]] + [w[-1].removesuffix("</w>")]
    return out


def dictionary(lines, codes):
    counts = {}
    for token in (t for line in lines for t in cut(line, codes)):
        counts[token] = counts.get(token, 0) + 1
    ranked = sorted(counts, key=lambda t: (-counts[t], t))
    made = 0
    while (len(ranked) + 4) % 8:
        ranked.append(f"madeupword{made:04d}")
        made += 1
    return ranked, counts


class Model:
    def __init__(self, p, s):
        self.p = {k: v.double() for k, v in p.items()}
        self.s = s
        self.pre = s["encoder_normalize_before"]

    def norm(self, x, name):
        return F.layer_norm(x, (D,), self.p[name + ".weight"], self.p[name + ".bias"], 1e-5)

    def linear(self, x, name):
        return F.linear(x, self.p[name + ".weight"], self.p[name + ".bias"])

    def attention(self, x, memory, name, causal):
        q, k, v = (self.linear(y, f"{name}.{part}_proj").view(-1, HEADS, D // HEADS).transpose(0, 1) for y, part in ((x, "q"), (memory, "k"), (memory, "v")))
        y = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
        return self.linear(y.transpose(0, 1).reshape(-1, D), name + ".out_proj")

    def sublayer(self, x, norm, branch):
        return x + branch(self.norm(x, norm)) if self.pre else self.norm(x + branch(x), norm)

    def ffn(self, x, name):
        act = {"relu": F.relu, "gelu": F.gelu}[self.s["activation_fn"]]
        return self.linear(act(self.linear(x, name + ".fc1")), name + ".fc2")

    def embed(self, side, ids):
        x = self.p[side + ".embed_tokens.weight"][ids] * (1.0 if self.s["no_scale_embedding"] else math.sqrt(D))
        places = torch.arange(len(ids)) + PAD + 1
        if side + ".embed_positions.weight" in self.p:
            x = x + self.p[side + ".embed_positions.weight"][places]
            return self.norm(x, side + ".layernorm_embedding") if self.s["layernorm_embedding"] else x
        angles = places.double()[:, None] * torch.exp(-torch.arange(D // 2).double() * math.log(10000) / (D // 2 - 1))
        return x + torch.cat([angles.sin(), angles.cos()], -1)

    def layers(self, side, x, memory):
        for i in range(self.s[side + "_layers"]):
            at = f"{side}.layers.{i}"
            x = self.sublayer(x, at + ".self_attn_layer_norm", lambda y: self.attention(y, y, at + ".self_attn", memory is not None))
            if memory is not None:
                x = self.sublayer(x, at + ".encoder_attn_layer_norm", lambda y: self.attention(y, memory, at + ".encoder_attn", False))
            x = self.sublayer(x, at + ".final_layer_norm", lambda y: self.ffn(y, at))
        return self.norm(x, side + ".layer_norm") if self.pre else x

    def encode(self, ids):
        return self.layers("encoder", self.embed("encoder", ids), None)

    def logits(self, memory, ids):
        return self.layers("decoder", self.embed("decoder", ids), memory) @ self.p["decoder.output_projection.weight"].T

    def search(self, ids, beam):
        """fairseq's search: 2 * beam candidates a step, of which the first `beam` may end; the score is divided by the length."""
        memory, live, done = self.encode(ids), [([EOS], 0.0)], []
        for step in range(LIMIT + 1):
            ways = []
            for made, score in live:
                row = F.log_softmax(self.logits(memory, made)[-1], -1)
                row[PAD] = -math.inf
                if step == 0:
                    row[EOS] = -math.inf
                if step == LIMIT:
                    row[:EOS] = row[EOS + 1:] = -math.inf
                ways += [(score + float(x), made + [w]) for w, x in enumerate(row)]
            ways = sorted(ways, key=lambda w: -w[0])[:2 * beam]
            done += [(score / (step + 1), score, made[1:-1]) for score, made in ways[:beam] if made[-1] == EOS]
            if len(done) >= beam:
                break
            live = [(made, score) for score, made in ways if made[-1] != EOS][:beam]
        return max(done[:beam], key=lambda d: d[0])


def draw(seed, s, sizes, learned):
    random = torch.Generator().manual_seed(seed)
    p = {}

    def matrix(name, *shape, width=0.5, mean=0.0):
        p[name] = (torch.randn(*shape, generator=random) * width + mean).half()

    def affine(name, rows, cols):
        matrix(name + ".weight", rows, cols)
        matrix(name + ".bias", rows, width=0.2)

    def norm(name):
        matrix(name + ".weight", D, width=0.2, mean=1.0)
        matrix(name + ".bias", D, width=0.2)

    for side, size in zip(("encoder", "decoder"), sizes):
        matrix(side + ".embed_tokens.weight", size, D, width=0.3)
        if learned:
            matrix(side + ".embed_positions.weight", 28 + PAD + 1, D)
        else:
            p[side + ".embed_positions._float_tensor"] = torch.zeros(1)
        p[side + ".version"] = torch.tensor([3.0])
        for i in range(s[side + "_layers"]):
            at = f"{side}.layers.{i}"
            for part in ("self_attn", "encoder_attn")[:2 if side == "decoder" else 1]:
                for x in ("q", "k", "v", "out"):
                    affine(f"{at}.{part}.{x}_proj", D, D)
                norm(f"{at}.{part}_layer_norm")
            affine(at + ".fc1", FFN, D)
            affine(at + ".fc2", D, FFN)
            norm(at + ".final_layer_norm")
        if s["layernorm_embedding"]:
            norm(side + ".layernorm_embedding")
        if s["encoder_normalize_before"]:
            norm(side + ".layer_norm")
    matrix("decoder.output_projection.weight", sizes[1], D)
    if s["share_all_embeddings"]:
        p["decoder.embed_tokens.weight"] = p["encoder.embed_tokens.weight"].clone()
    if s["share_decoder_input_output_embed"]:
        p["decoder.output_projection.weight"] = p["decoder.embed_tokens.weight"].clone()
    return p


def make(name, joined, codes_of, learned=False, **changed):
    folder = os.path.join(HERE, "fairseq", name)
    os.makedirs(folder, exist_ok=True)
    s = {"arch": "transformer", "source_lang": "de", "target_lang": "en", "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": HEADS,
         "decoder_attention_heads": HEADS, "activation_fn": "relu", "encoder_normalize_before": False, "decoder_normalize_before": False,
         "encoder_learned_pos": learned, "decoder_learned_pos": learned, "layernorm_embedding": learned, "no_scale_embedding": False, "share_all_embeddings": joined,
         "share_decoder_input_output_embed": not learned, "dropout": 0.1, "attention_dropout": 0.0, "adaptive_softmax_cutoff": None,
         "max_source_positions": 1024, "max_target_positions": 1024}
    s.update(changed)
    codes = learn(SOURCE + TARGET, 12)
    if codes_of:
        with open(os.path.join(folder, "bpecodes" if codes_of == "fastBPE" else "code"), "w") as file:
            if codes_of != "fastBPE":
                file.write("#version: 0.2\n")
            for (a, b), count in codes:
                file.write(f"{a} {b} {count}\n" if codes_of == "fastBPE" else f"{a} {b}\n")
    both = SOURCE + TARGET if joined else None
    tokens = []
    for language, lines in (("de", both or SOURCE), ("en", both or TARGET)):
        ranked, counts = dictionary(lines, codes)
        tokens.append(["<s>", "<pad>", "</s>", "<unk>"] + ranked)
        with open(os.path.join(folder, f"dict.{language}.txt"), "w") as file:
            file.writelines(f"{t} {counts.get(t, 0)}\n" for t in ranked)
    lines = SOURCE[:4] + ["xyz ist alt", "zwei frauen lesen"]
    cuts = [cut(line, codes) for line in lines]
    sources = [[tokens[0].index(t) if t in tokens[0] else UNK for t in c] + [EOS] for c in cuts]
    for seed in range(20):
        p = draw(seed, s, [len(t) for t in tokens], learned)
        model = Model(p, s)
        found = [{beam: model.search(ids, beam) for beam in (1, 5)} for ids in sources]
        if len({tuple(f[5][2]) for f in found}) >= 3:
            break
    cases = []
    for line, c, f in zip(lines, cuts, found):
        case = {"text": line if codes_of else " ".join(c)}
        for beam, key in ((1, "greedy"), (5, "translation")):
            pieces = [tokens[1][i] for i in f[beam][2] if i != BOS]
            case[key] = (" ".join(pieces) + " ").replace("@@ ", "").rstrip()
            case[key + "_log_probability"] = f[beam][1]
        cases.append(dict(case, tokens=len(f[5][2]) + 2))
    random = torch.Generator().manual_seed(3)
    source, target = (torch.randint(4, len(t), (2, LENGTH), generator=random, dtype=torch.int32) for t in tokens)
    source[:, -1] = target[:, 0] = EOS
    logits = torch.stack([model.logits(model.encode(a), b.tolist()) for a, b in zip(source.tolist(), target)])
    save_file(p, os.path.join(folder, "model.safetensors"))
    save_file({"source": source, "target": target, "logits": logits.float()}, os.path.join(folder, "expected.safetensors"))
    for file, value in (("config.json", s), ("cases.json", {"translations": cases})):
        with open(os.path.join(folder, file), "w") as out:
            out.write(json.dumps(value, ensure_ascii=False, indent=0) + "\n")
    print(name, "seed", seed, [(c["translation"], c["greedy"]) for c in cases][:4])


make("iwslt", False, "subword-nmt")
make("joined", True, "fastBPE", encoder_normalize_before=True, decoder_normalize_before=True, activation_fn="gelu", encoder_layers=2)
make("learned", False, None, learned=True, no_scale_embedding=True, activation_fn="gelu")
