#!/usr/bin/env python3
"""Makes the golden files of test_torch.c: small random translation models of PyTorch's nn.Transformer, their logits and translations.

    python3 tests/golden/make_torch.py     (needs torch, safetensors and sentencepiece; writes torch/ into its folder)

PyTorch itself computes them, in double. torch/tutorial has the modules and names of the tutorial "Language Translation with
nn.Transformer and torchtext": post-norm layers with a norm behind each stack, sinusoids that alternate between sines and cosines, an
output with bias, and a list of tokens for each side, of which one is white space. torch/stacks is an nn.TransformerEncoder and an
nn.TransformerDecoder of two layers in nn.DataParallel, pre-norm with a final norm of the encoder alone, with a learned table of positions, unscaled embeddings, and an
output that is the matrix of the target's words; SentencePiece cuts its texts: the ids of the source are that model's, those of the
target a list's. In each: expected.safetensors
(source, target as the decoder reads it, logits [sentences, length, words]) and cases.json: texts with their translations by greedy
search and by fairseq's search with 5 beams, at most 4 tokens longer than the source.
"""

import json
import math
import os

import sentencepiece
import torch
from safetensors.torch import save_file
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
LENGTH, D, HEADS, FFN, PLACES = 3, 6, 2, 4, 32
SOURCE = ["der alte mann sitzt im park .", "zwei kinder spielen", "die frau liest", "das wasser ist kalt ."]
TARGET = ["the old man sits in the park .", "two children play", "the woman reads", "the water is cold ."]
SPECIALS = ["<unk>", "<pad>", "<bos>", "<eos>"]
torch.set_num_threads(1)
torch.backends.mha.set_fastpath_enabled(False)


class Words:
    """The tokens of one side: a list, for texts that are split at blanks or cut by a SentencePiece model, or that model's own."""

    def __init__(self, lines, model=None, listed=True):
        self.model, self.listed = model, listed
        if not listed:
            self.tokens = [model.id_to_piece(i) for i in range(model.get_piece_size())]
            self.unk, self.bos, self.eos, self.pad = model.unk_id(), model.bos_id(), model.eos_id(), model.pad_id()
            return
        counts = {}
        for token in (t for line in lines for t in self.cut(line)):
            counts[token] = counts.get(token, 0) + 1
        self.tokens = SPECIALS + sorted(counts, key=lambda t: (-counts[t], t))
        self.unk, self.pad, self.bos, self.eos = range(4)

    def cut(self, line):
        return self.model.encode(line, out_type=str) if self.model else line.split()

    def encode(self, line):
        if not self.listed:
            return self.model.encode(line)
        return [self.tokens.index(t) if t in self.tokens else self.unk for t in self.cut(line)]

    def decode(self, ids):
        if not self.listed:
            return self.model.decode(ids)
        kept = [self.tokens[i] for i in ids if i not in (self.bos, self.eos, self.pad)]
        if self.model:
            return self.model.decode_pieces([t for t in kept if t != "<unk>"])
        return " ".join(t for t in kept if t.strip())


def sinusoids(rows):
    angles = torch.arange(rows).float()[:, None] * torch.exp(-torch.arange(0, D, 2) * math.log(10000) / D)
    return torch.stack([angles.sin(), angles.cos()], -1).reshape(rows, D)


class Model:
    """What surrounds the stacks: parameters `p` by names, and a module that maps embedded rows to rows."""

    def __init__(self, module, p, names, words, scaled):
        self.module, self.p, self.names, self.words, self.scaled = module.double().eval(), p, names, words, scaled

    def embed(self, name, ids):
        x = self.p[self.names[name] + ".weight"].double()[torch.tensor(ids)] * (math.sqrt(D) if self.scaled else 1)
        return (x + self.p[self.names["positions"]].double().reshape(-1, D)[:len(ids)])[None]

    def logits(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(len(target), dtype=torch.double)
        with torch.no_grad():
            x = self.module(self.embed("source_embedding", source), self.embed("target_embedding", target), mask)[0]
        y = x @ self.p[self.names["generator"] + ".weight"].double().T
        bias = self.p.get(self.names["generator"] + ".bias")
        return y if bias is None else y + bias.double()

    def sentence(self, line):
        words = self.words[0]
        return [words.bos] + words.encode(line) + [words.eos]

    def search(self, line, beam):
        """fairseq's search: 2 * beam candidates a step, of which the first `beam` may end; the score is divided by the length."""
        source, words = self.sentence(line), self.words[1]
        limit, live, done = len(source) + 4, [([words.bos], 0.0)], []
        for step in range(limit + 1):
            ways = []
            for made, score in live:
                row = torch.log_softmax(self.logits(source, made)[-1], -1)
                if words.pad >= 0:
                    row[words.pad] = -math.inf
                if step == limit:
                    row[:words.eos] = row[words.eos + 1:] = -math.inf
                ways += [(score + float(x), made + [w]) for w, x in enumerate(row)]
            ways = sorted(ways, key=lambda w: -w[0])[:2 * beam]
            done += [(score / (step + 1), score, made[1:-1]) for score, made in ways[:beam] if made[-1] == words.eos]
            if len(done) >= beam:
                break
            live = [(made, score) for score, made in ways if made[-1] != words.eos][:beam]
        return max(done[:beam], key=lambda d: d[0])


class Stacks(nn.Module):
    """An encoder and a decoder by themselves."""

    def __init__(self, **settings):
        super().__init__()
        norm = nn.LayerNorm(D, settings["layer_norm_eps"])
        self.a = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, HEADS, **settings), 1, norm, enable_nested_tensor=False)
        self.b = nn.TransformerDecoder(nn.TransformerDecoderLayer(D, HEADS, **settings), 2)

    def forward(self, source, target, mask):
        return self.b(target, self.a(source), tgt_mask=mask)


class Whole(nn.Module):
    def __init__(self, **settings):
        super().__init__()
        self.transformer = nn.Transformer(D, HEADS, **settings)

    def forward(self, source, target, mask):
        return self.transformer(source, target, tgt_mask=mask)


def draw(seed, module, words, names, learned):
    """Random parameters in half precision, of the module and around it."""
    random = torch.Generator().manual_seed(seed)
    p = {}

    def matrix(name, *shape, width=0.5, mean=0.0):
        p[name] = (torch.randn(*shape, generator=random) * width + mean).half()

    matrix(names["source_embedding"] + ".weight", len(words[0].tokens), D, width=0.3)
    matrix(names["target_embedding"] + ".weight", len(words[1].tokens), D, width=0.3)
    if names["generator"] != names["target_embedding"]:
        matrix(names["generator"] + ".weight", len(words[1].tokens), D)
        matrix(names["generator"] + ".bias", len(words[1].tokens))
    for name, value in module.state_dict().items():
        norm = "norm" in name and name.endswith("weight")
        matrix(name, *value.shape, width=0.2 if norm or value.dim() == 1 else 0.5, mean=1.0 if norm else 0.0)
    module.load_state_dict({k: p[k].float() for k in module.state_dict()})
    p[names["positions"]] = (torch.randn(PLACES, D, generator=random) * 0.5).half() if learned else sinusoids(PLACES)[:, None]
    return p


def make(name, make_module, words, config, learned=False, prefix=""):
    folder = os.path.join(HERE, "torch", name)
    os.makedirs(folder, exist_ok=True)
    names = {"source_embedding": "src_tok_emb.embedding", "target_embedding": "tgt_tok_emb.embedding", "generator": "generator",
             "positions": "positional_encoding.pos_embedding"}
    names.update({k: v for k, v in config.items() if k in names})
    lines = SOURCE[:3] + ["xyz ist alt"]
    best = -1
    for seed in range(20):  # the one with the most different translations, and words in them
        module = make_module()
        drawn = draw(seed, module, words, names, learned)
        tried = Model(module, drawn, names, words, config.get("scale_embedding", True))
        result = [{beam: tried.search(line, beam) for beam in (1, 5)} for line in lines]
        made = [tuple(r[beam][2]) for r in result for beam in r]
        if len(set(made)) + len({t for m in made for t in m}) > best:
            best, p, model, found = len(set(made)) + len({t for m in made for t in m}), drawn, tried, result
    cases = []
    for line, f in zip(lines, found):
        case = {"text": line}
        for beam, key in ((1, "greedy"), (5, "translation")):
            case[key] = words[1].decode(f[beam][2])
            case[key + "_log_probability"] = f[beam][1]
        cases.append(case)
    random = torch.Generator().manual_seed(3)
    source, target = (torch.randint(4, len(w.tokens), (2, LENGTH), generator=random, dtype=torch.int32) for w in words)
    source[:, -1], target[:, 0] = words[0].eos, words[1].bos
    logits = torch.stack([model.logits(a.tolist(), b.tolist()) for a, b in zip(source, target)])
    save_file({prefix + k: v.contiguous() for k, v in p.items()}, os.path.join(folder, "model.safetensors"))
    save_file({"source": source, "target": target, "logits": logits.float()}, os.path.join(folder, "expected.safetensors"))
    for file, value in (("config.json", dict({"model_type": "nn.Transformer", "nhead": HEADS}, **config)), ("cases.json", {"translations": cases})):
        with open(os.path.join(folder, file), "w") as out:
            out.write(json.dumps(value, ensure_ascii=False, indent=0) + "\n")
    for side, w in zip(("source", "target"), words):
        if w.listed:
            with open(os.path.join(folder, f"tokens.{side}.txt"), "w") as out:
                out.writelines((t if t.strip() else "") + "\n" for t in w.tokens)
        if w.model:
            with open(os.path.join(folder, f"{side}.spm"), "wb") as out:
                out.write(w.model.serialized_model_proto())
    print(name, best, [(c["translation"], c["greedy"]) for c in cases])


def pieces(lines, size):
    file = os.path.join(HERE, "torch", "pieces.tmp")
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_prefix=file, vocab_size=size, model_type="bpe", character_coverage=1.0, normalization_rule_name="identity",
                                             minloglevel=2)
    model = sentencepiece.SentencePieceProcessor(file + ".model")
    os.remove(file + ".model")
    os.remove(file + ".vocab")
    return model


common = {"dim_feedforward": FFN, "batch_first": True}
os.makedirs(os.path.join(HERE, "torch"), exist_ok=True)
listed = [Words(SOURCE), Words(TARGET)]
listed[1].tokens.append("\n")
make("tutorial", lambda: Whole(num_encoder_layers=1, num_decoder_layers=1, **common), listed,
     {"d_model": D, "num_encoder_layers": 1, "num_decoder_layers": 1, "dim_feedforward": FFN, "dropout": 0.1})
make("stacks", lambda: Stacks(norm_first=True, activation="gelu", layer_norm_eps=1e-6, **common), [Words(SOURCE, pieces(SOURCE, 30), False), Words(TARGET, pieces(TARGET, 28))],
     {"activation": "gelu", "norm_first": True, "layer_norm_eps": 1e-6, "source_embedding": "source", "target_embedding": "target",
      "generator": "target", "positions": "places", "scale_embedding": False}, learned=True, prefix="module.")
