#!/usr/bin/env python3
"""Makes the golden files of test_marian_own.c: small random models in Marian's own files, their logits and translations.

    python3 tests/golden/make_marian_own.py     (needs numpy, safetensors and sentencepiece; writes marian_own/ into its folder)
    python3 tests/golden/make_marian_own.py CHECK FOLDER     (needs ctranslate2: what its converter makes of a whole folder)

The arithmetic is written from Marian's equations, in double: sinusoids with the frequencies 10000^(-i/(d/2 - 1)), sines before
cosines; embeddings times sqrt(d); epsilon 1e-6 in norms; a decoder that reads an embedding of zeros first. marian_own/all shares
all embeddings, has swish, norms after the sublayers and deflated arrays; marian_own/separate has a vocabulary and embeddings for
each side, an output matrix in the old order, relu, norms before the sublayers and stored arrays; marian_own/source shares the
inputs' embeddings alone, has gelu and no bias of the output, and a SentencePiece model as its vocabulary. Models of the first two
cut texts with source.spm and target.spm of marian_model/swish and marian_model/separate. In each: expected.safetensors (source
[sentences, length], target [sentences, length] as the decoder reads it, the number of words standing for the zeros, logits
[sentences, length, words]) and cases.json: texts with their greedy translations.
"""

import json
import math
import os
import sys
import tempfile
import zipfile

import numpy as np
import sentencepiece
from safetensors.numpy import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
SENTENCES, LENGTH, D, HEADS, FFN, ENCODER = 2, 4, 4, 2, 6, 1
LINES = ["Ein alter Mann sitzt im Park.", "Zwei Kinder spielen am Strand.", "Die Frau liest", "Am Morgen", "Das Wasser ist kalt.", "Der Koch",
         "Viele Menschen warten", "Ein Vogel", "Wir gehen", "Regen", "Im Jahr 1987", "Warum?"]


def activation(name, x):
    if name == "relu":
        return np.maximum(x, 0)
    if name == "swish":
        return x / (1 + np.exp(-x))
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


class Model:
    """A Transformer of one sentence at a time, by the names of Marian's parameters."""

    def __init__(self, parameters, settings, epsilon=1e-6, divisor=D // 2 - 1):
        self.p = {name: value.astype(np.float64) for name, value in parameters.items()}
        self.s = settings
        self.pre = settings["transformer-preprocess"] == "n"
        self.epsilon, self.divisor = epsilon, divisor

    def norm(self, x, name, end=""):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon)
        return x * self.p[f"{name}_ln_scale{end}"][0] + self.p[f"{name}_ln_bias{end}"][0]

    def affine(self, x, name, end):
        return x @ self.p[f"{name}_W{end}"] + self.p[f"{name}_b{end}"][0]

    def attention(self, name, x, memory, causal):
        q, k, v = self.affine(x, name, "q"), self.affine(memory, name, "k"), self.affine(memory, name, "v")
        out = []
        for h in range(HEADS):
            part = slice(h * D // HEADS, (h + 1) * D // HEADS)
            scores = q[:, part] @ k[:, part].T / math.sqrt(D // HEADS)
            if causal:
                scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            out.append(weights / weights.sum(-1, keepdims=True) @ v[:, part])
        return self.affine(np.concatenate(out, -1), name, "o")

    def sublayer(self, x, norm, branch):
        return x + branch(self.norm(x, norm, "_pre")) if self.pre else self.norm(x + branch(x), norm)

    def ffn(self, name, x):
        hidden = activation(self.s["transformer-ffn-activation"], self.affine(x, name, "1"))
        return self.affine(hidden, name, "2")

    def embed(self, table, ids):
        x = np.array([self.p[table][i] if i is not None else np.zeros(D) for i in ids]) * math.sqrt(D)
        angles = np.arange(len(ids))[:, None] * np.exp(-np.arange(D // 2) * math.log(10000) / self.divisor)
        return x + np.concatenate([np.sin(angles), np.cos(angles)], -1)

    def table(self, side):
        return "Wemb" if "Wemb" in self.p else f"{side}_Wemb"

    def encode(self, ids):
        x = self.embed(self.table("encoder"), ids)
        for i in range(1, ENCODER + 1):
            at = f"encoder_l{i}"
            x = self.sublayer(x, f"{at}_self_Wo", lambda y, at=at: self.attention(f"{at}_self", y, y, False))
            x = self.sublayer(x, f"{at}_ffn_ffn", lambda y, at=at: self.ffn(f"{at}_ffn", y))
        return self.norm(x, "encoder_top") if self.pre else x

    def logits(self, memory, ids):
        x = self.embed(self.table("decoder"), ids)
        for i in range(1, self.s["dec-depth"] + 1):
            at = f"decoder_l{i}"
            x = self.sublayer(x, f"{at}_self_Wo", lambda y, at=at: self.attention(f"{at}_self", y, y, True))
            x = self.sublayer(x, f"{at}_context_Wo", lambda y, at=at: self.attention(f"{at}_context", y, memory, False))
            x = self.sublayer(x, f"{at}_ffn_ffn", lambda y, at=at: self.ffn(f"{at}_ffn", y))
        x = self.norm(x, "decoder_top") if self.pre else x
        p = self.p
        if "decoder_ff_logit_out_W" in p:
            x = x @ p["decoder_ff_logit_out_W"]
        else:
            x = x @ p.get("decoder_ff_logit_out_Wt", p.get("Wemb", p.get("decoder_Wemb"))).T
        return x + p["decoder_ff_logit_out_b"][0] if "decoder_ff_logit_out_b" in p else x

    def translate(self, ids, eos, unk):
        """Greedily; None where a step is no clear one, or it does not end soon."""
        memory, made = self.encode(ids), [None]
        while len(made) <= min(3 * len(ids) - 2, 9):
            row = self.logits(memory, made)[-1]
            second, best = np.sort(row)[-2:]
            if best - second < 0.02 or row.argmax() == unk:
                return None
            if row.argmax() == eos:
                return made[1:]
            made.append(int(row.argmax()))
        return None


def draw(seed, settings, words, tied, source_shared, old_output, bias):
    """Multiples of 1/64, which deflate well."""
    random = np.random.default_rng(seed)
    p = {}

    def matrix(name, *shape, width=0.5, mean=0.0):
        p[name] = (np.round((random.standard_normal(shape) * width + mean) * 64) / 64).astype(np.float32)

    def norm(name, end=""):
        matrix(f"{name}_ln_scale{end}", 1, D, width=0.2, mean=1.0)
        matrix(f"{name}_ln_bias{end}", 1, D, width=0.2)

    end = "_pre" if settings["transformer-preprocess"] == "n" else ""
    if source_shared:
        matrix("Wemb", words[0], D)
    else:
        matrix("encoder_Wemb", words[0], D)
        matrix("decoder_Wemb", words[1], D)
    if not tied:
        matrix(*(("decoder_ff_logit_out_W", D, words[1]) if old_output else ("decoder_ff_logit_out_Wt", words[1], D)))
    if bias:
        matrix("decoder_ff_logit_out_b", 1, words[1], width=0.3)
    for side, layers, parts in (("encoder", ENCODER, ("self",)), ("decoder", settings["dec-depth"], ("self", "context"))):
        ffn = settings["transformer-decoder-dim-ffn"] or FFN if side == "decoder" else FFN
        for i in range(1, layers + 1):
            for part in parts:
                for x in "qkvo":
                    matrix(f"{side}_l{i}_{part}_W{x}", D, D)
                    matrix(f"{side}_l{i}_{part}_b{x}", 1, D, width=0.2)
                norm(f"{side}_l{i}_{part}_Wo", end)
            for k, shape in ((1, (D, ffn)), (2, (ffn, D))):
                matrix(f"{side}_l{i}_ffn_W{k}", *shape)
                matrix(f"{side}_l{i}_ffn_b{k}", 1, shape[1], width=0.2)
            norm(f"{side}_l{i}_ffn_ffn", end)
        if end:
            norm(f"{side}_top")
    return p


def yaml_scalar(value):
    """As yaml-cpp writes it."""
    if isinstance(value, list):
        return "[" + ", ".join(str(v) for v in value) + "]"
    if isinstance(value, str) and (value == "" or value[0] in "\"'#&*!|>%@`,[]{}?:-" or value in ("~", "null")):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def yaml(pairs):
    return "".join(f"{yaml_scalar(k)}: {yaml_scalar(v)}\n" for k, v in pairs.items())


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def listed(path):
    with open(path, encoding="utf-8") as file:
        tokens = json.load(file)
    return [t for t in sorted(tokens, key=tokens.get) if t != "<pad>"]


def ids_of(spm, tokens, text):
    at = {t: i for i, t in enumerate(tokens)}
    return [at.get(piece, at["<unk>"]) for piece in spm.encode(text, out_type=str)] + [at["</s>"]]


def store(path, arrays):
    """As Marian writes arrays: stored, without the extra fields that NumPy's zip has, and with short headers."""
    with zipfile.ZipFile(path, "w") as file:
        for name, array in arrays.items():
            head = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {array.shape}, }}"
            head = (head + " " * (15 - (10 + len(head)) % 16) + "\n").encode()
            file.writestr(zipfile.ZipInfo(name + ".npy"), b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + array.tobytes())


def save(folder, model, parameters, settings, vocabularies, spms, decoder, deflated):
    text = yaml(settings).encode() + b"\0"
    if "both.spm" in decoder["vocabs"]:  # as newer versions of Marian fill it
        text += b"\0" * (-len(text) % 256)
    arrays = dict(parameters, **{"special:model.yml": np.frombuffer(text, dtype=np.int8)})
    path = os.path.join(folder, decoder["models"][0])
    np.savez_compressed(path, **arrays) if deflated else store(path, arrays)
    write(folder, "decoder.yml", yaml(decoder))
    random = np.random.default_rng(3)
    source = np.array([[int(i) for i in random.integers(2, len(vocabularies[0]), LENGTH)] for _ in range(SENTENCES)], dtype=np.int32)
    target = np.array([[int(i) for i in random.integers(2, len(vocabularies[1]), LENGTH)] for _ in range(SENTENCES)], dtype=np.int32)
    source[:, -1] = vocabularies[0].index("</s>")
    target[:, 0] = len(vocabularies[1])
    logits = np.array([model.logits(model.encode(s), [None] + list(t[1:])) for s, t in zip(source, target)])
    save_file({"source": source, "target": target, "logits": logits.astype(np.float32)}, os.path.join(folder, "expected.safetensors"))


def make(name, folders, tied, source_shared, old_output, bias, deflated, **changed):
    folder = os.path.join(HERE, "marian_own", name)
    os.makedirs(folder, exist_ok=True)
    settings = {"type": "transformer", "dim-emb": D, "enc-depth": ENCODER, "dec-depth": 1, "transformer-heads": HEADS,
                "transformer-dim-ffn": FFN, "transformer-decoder-dim-ffn": 0, "transformer-ffn-depth": 2, "transformer-preprocess": "",
                "transformer-postprocess": "dan", "transformer-postprocess-emb": "d", "transformer-postprocess-top": "",
                "transformer-ffn-activation": "swish", "transformer-decoder-autoreg": "self-attention", "transformer-tied-layers": [],
                "transformer-no-projection": False, "transformer-train-position-embeddings": False, "tied-embeddings": tied and not source_shared,
                "tied-embeddings-src": source_shared and not tied, "tied-embeddings-all": tied and source_shared,
                "dec-cell": "gru", "transformer-guided-alignment-layer": "last", "layer-normalization": False, "skip": False, "version": "v1.9.0 made by hand"}
    settings.update(changed)
    if folders:
        spms = [sentencepiece.SentencePieceProcessor(model_file=os.path.join(HERE, "marian_model", folders, side)) for side in ("source.spm", "target.spm")]
        separate = os.path.join(HERE, "marian_model", folders, "target_vocab.json")
        vocabularies = [listed(os.path.join(HERE, "marian_model", folders, "vocab.json"))]
        vocabularies.append(listed(separate) if os.path.exists(separate) else vocabularies[0])
        names = ["vocab.src.yml", "vocab.trg.yml"] if os.path.exists(separate) else ["vocab.yml"] * 2
        for file, tokens in zip(names, vocabularies):
            write(folder, file, yaml({t: i for i, t in enumerate(tokens)}))
    else:
        path = os.path.join(folder, "both.spm")
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LINES), model_prefix=path[:-4], vocab_size=50, model_type="unigram",
                                                 minloglevel=4, normalization_rule_name="identity", unk_id=1, eos_id=0, bos_id=-1, pad_id=-1, hard_vocab_limit=False)
        os.remove(path[:-4] + ".vocab")
        os.rename(path[:-4] + ".model", path)
        spms = [sentencepiece.SentencePieceProcessor(model_file=path)] * 2
        vocabularies = [[spms[0].id_to_piece(i) for i in range(spms[0].get_piece_size())]] * 2
        names = ["both.spm"] * 2
    settings["dim-vocabs"] = [len(v) for v in vocabularies]
    eos, unk = (vocabularies[1].index(t) for t in ("</s>", "<unk>"))
    for seed in range(100000):
        parameters = draw(seed, settings, settings["dim-vocabs"], tied, source_shared, old_output, bias)
        boost = 0.5 * (seed % 8)  # so that sentences end
        if bias:
            parameters["decoder_ff_logit_out_b"][0, eos] += boost
        else:
            parameters["decoder_ff_logit_out_Wt"][eos] *= 1 + boost
        model = Model(parameters, settings)
        made = []
        for line in LINES:
            made.append(model.translate(ids_of(spms[0], vocabularies[0], line), eos, unk))
            if len(made) == 3 and not any(made):
                break
        good = [m for m in made if m and len(m) >= 2]
        if len(good) >= 4 and len({tuple(m) for m in good}) >= 4:
            break
    decoder = {"relative-paths": True, "models": [f"{name}.model1.npz"], "vocabs": names, "beam-size": 1, "normalize": 1, "word-penalty": 0}
    save(folder, model, parameters, settings, vocabularies, spms, decoder, deflated)
    cases = [{"text": line, "tokens": len(m) + 2, "translation": spms[1].decode([vocabularies[1][i] for i in m]).replace("\u2581", " ").strip()}
             for line, m in zip(LINES, made) if m is not None]
    write(folder, "cases.json", json.dumps({"translations": cases}, ensure_ascii=False, indent=0) + "\n")
    print(name, "seed", seed, [c["translation"] for c in cases])


def check(folder):
    """CTranslate2's converter reads the files, and its translations are those of these equations with its sinusoids and epsilon."""
    import ctranslate2
    import yaml as reader
    from ctranslate2.converters import MarianConverter
    with open(os.path.join(folder, "decoder.yml"), encoding="utf-8") as file:
        decoder = reader.safe_load(file)
    arrays = dict(np.load(os.path.join(folder, decoder["models"][0])))
    settings = reader.safe_load(arrays.pop("special:model.yml").tobytes().rstrip(b"\0"))
    lists = []
    for name in decoder["vocabs"]:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            tokens = reader.load(file, reader.BaseLoader)
        lists.append(sorted(tokens, key=lambda t: int(tokens[t])))
    model = Model(arrays, settings, 1e-5, D // 2)
    spm = [sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, side)) for side in ("source.spm", "target.spm")]
    same = told = 0
    with tempfile.TemporaryDirectory() as out:
        MarianConverter(os.path.join(folder, decoder["models"][0]), [os.path.join(folder, v) for v in decoder["vocabs"]]).convert(os.path.join(out, "made"))
        translator = ctranslate2.Translator(os.path.join(out, "made"), inter_threads=1, intra_threads=1)
        for line in LINES:
            ours = model.translate(ids_of(spm[0], lists[0], line), lists[1].index("</s>"), lists[1].index("<unk>"))
            if ours is None:
                continue
            theirs = translator.translate_batch([spm[0].encode(line, out_type=str)], beam_size=1, min_decoding_length=0)[0].hypotheses[0]
            told += 1
            same += [lists[1][i] for i in ours] == theirs
    print(f"{folder}: {same} of {told} translations are CTranslate2's")


def main():
    make("all", "swish", True, True, False, True, True, **{"dec-depth": 2})
    make("separate", "separate", False, False, True, True, False, **{
        "transformer-ffn-activation": "relu", "transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n",
        "transformer-decoder-dim-ffn": 5})
    make("source", None, False, True, False, False, True, **{"transformer-ffn-activation": "gelu"})


if __name__ == "__main__":
    main() if len(sys.argv) == 1 else check(sys.argv[2])
