#!/usr/bin/env python3
"""Makes the golden files of test_tokenizers.c: small tokenizers and what the package tokenizers makes of texts with them.

    python3 tests/golden/make_tokenizers.py           (needs tokenizers; writes tokenizers/ into its folder)
    python3 tests/golden/make_tokenizers.py COMPARE PROGRAM [TEXT...]   ids of the program beside the package's, on lines of
                                                      files and on each code point between letters, blanks and digits

tokenizers/bytes.json is a byte-level BPE cut as Llama 3's, tokenizers/pieces.json one in the form of SentencePiece, as
Llama 2's; each has the special tokens <s> and </s> and an added token that is not special.
cases.json holds variants (the base, and parts of it that are replaced), and for each the ids of the texts, which the package
makes with special tokens as ordinary text, and the text that decoding gives.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import tokenizers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent / "tokenizers"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
TRAINING = ["The cat sat on the mat, and the dog isn't there. It's 2024: 12345 things!", "  the theatre;  a caf\u00e9 then\n",
            "She'll say they've been here; we're here. the the the", "Stra\u00dfe \u00fcber den Fl\u00fcssen, 100 % sicher"] * 4
TEXTS = ["", " ", "  the  theatre ", "the<|tool|>dog <|tool|> x", "</s> is <s>text<0x0A>", "isn't IT'S they'LL '\u017f",
         "1234567 12 3.14\u00bd\u0663\u0664", "line\n\n  two\r\n\t\tthree \n", "caf\u00e9 cafe\u0301 \u212b", "\U0001f600\U0001f44d\U0001f3fd na\u00efve",
         "\u4f60\u597d \u3000\u4e16\u754c", "\u2581the\u2581cat \u2581", "Stra\u00dfe $1,000%"]


def base(pieces):
    alphabet = [f"<0x{b:02X}>" for b in range(256)]
    model = models.BPE(byte_fallback=pieces, fuse_unk=pieces, unk_token="<unk>" if pieces else None, ignore_merges=not pieces)
    tokenizer = Tokenizer(model)
    special = ["<unk>", "<s>", "</s>"] if pieces else []
    if pieces:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                               decoders.Strip(" ", 1, 0)])
        trainer = trainers.BpeTrainer(vocab_size=350, special_tokens=special + alphabet, show_progress=False, limit_alphabet=40,
                                      max_token_length=8)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(tokenizers.Regex(LLAMA3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
        trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(TRAINING, trainer)
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [token for token in data["added_tokens"] if token["content"] in special]  # not bytes
    first = len(data["model"]["vocab"])
    token = dict(single_word=False, lstrip=False, rstrip=False)
    if not pieces:
        data["added_tokens"] = [dict(id=first + i, content=text, normalized=False, special=True, **token)
                                for i, text in enumerate(["<s>", "</s>"])]
        first += 2
    data["added_tokens"].append(dict(id=first, content="<|tool|>", normalized=False, special=False, **token))
    return data


def metaspace(scheme, split):
    return dict(type="Metaspace", replacement="\u2581", prepend_scheme=scheme, split=split)


BYTES = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True)
SPLIT = dict(type="Split", behavior="Isolated", invert=False)


def sequence(*members):
    return dict(type="Sequence", pretokenizers=list(members))


VARIANTS = [
    ("bytes", {}),
    ("bytes", dict(normalizer=dict(type="NFC"), pre_tokenizer=sequence(dict(SPLIT, pattern=dict(Regex=QWEN2)), dict(BYTES, use_regex=False)))),
    ("bytes", dict(pre_tokenizer=sequence(dict(type="Digits", individual_digits=True), dict(BYTES, use_regex=True)))),
    ("bytes", dict(pre_tokenizer=dict(BYTES, use_regex=True))),
    ("pieces", {}),
    ("pieces", dict(normalizer=None, pre_tokenizer=metaspace("first", False))),
    ("pieces", dict(normalizer=None, pre_tokenizer=metaspace("always", True), decoder=dict(type="Sequence", decoders=[dict(type="ByteFallback"), metaspace("always", True)]))),
    ("pieces", dict(normalizer=dict(type="Replace", pattern=dict(String=" "), content="\u2581"))),
]


def variant(bases, which, parts):
    tokenizer = Tokenizer.from_str(json.dumps({**bases[which], **parts}))
    tokenizer.encode_special_tokens = True
    return tokenizer


def main():
    HERE.mkdir(exist_ok=True)
    bases = {"bytes": base(False), "pieces": base(True)}
    for name, data in bases.items():
        (HERE / f"{name}.json").write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
    cases = []
    for which, parts in VARIANTS:
        tokenizer = variant(bases, which, parts)
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
        cases.append(dict(base=which, parts=parts, ids=ids, decoded=[tokenizer.decode(i) for i in ids[8:12]]))
    (HERE / "cases.json").write_text(json.dumps(dict(texts=TEXTS, first_decoded=8, variants=cases), ensure_ascii=True,
                                                separators=(",", ":")))


def lines(paths):
    for path in paths:
        for line in pathlib.Path(path).read_text(errors="replace").split("\n"):
            if line and "\0" not in line:
                yield line
    for code in [*range(1, 0xD800), *range(0xE000, 0x30000), *range(0xE0000, 0xE0200)]:
        c = chr(code)
        if c not in "\n\r":
            yield f"a{c}b {c}1{c} {c}{c} '{c}"


def compare(program, paths):
    bases = {name: json.loads((HERE / f"{name}.json").read_text()) for name in ("bytes", "pieces")}
    texts = list(lines(paths))
    bad = 0
    for which, parts in VARIANTS:
        tokenizer = variant(bases, which, parts)
        with tempfile.TemporaryDirectory() as folder:
            at = pathlib.Path(folder)
            (at / "tokenizer.json").write_text(json.dumps({**bases[which], **parts}))
            (at / "tokenizer_config.json").write_text('{"eos_token": "</s>"}')
            (at / "text").write_text("\n".join(texts) + "\n")
            out = subprocess.run([program, "encode", "--vocab", str(at / "tokenizer.json"), "--ids"], stdin=open(at / "text", "rb"),
                                 stdout=subprocess.PIPE, check=True, text=True).stdout.split("\n")
        differ = [text for text, line in zip(texts, out)
                  if tokenizer.encode(text, add_special_tokens=False).ids != [int(i) for i in line.split()]]
        print(which, json.dumps(parts)[:80], len(texts), "texts,", len(differ), "differ", [ascii(t) for t in differ[:6]])
        bad += len(differ)
    return bad == 0


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(0 if compare(sys.argv[2], sys.argv[3:]) else 1)
    main()
