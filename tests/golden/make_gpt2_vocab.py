"""Byte-level byte-pair encoding by the packages tokenizers and tiktoken, for test_gpt2_vocab.c.

make_gpt2_vocab.py DATA         writes into its folder: gpt2_toy/, a small vocabulary in GPT-2's format, gpt2_toy.cases, texts
                                and their tokens by it, and gpt2_real.cases, the same for GPT-2's vocabulary in DATA/gpt2
make_gpt2_vocab.py DATA CASES   writes many more cases for GPT-2's vocabulary to CASES: all sentences of DATA/blimp, random
                                Unicode, invalid UTF-8; TARN_GPT2_CASES=CASES makes the test check them as well

A case is a line: the bytes of the text in hexadecimal digits, a tab, and the ids with blanks between them. Valid UTF-8 is
encoded by tokenizers, and by tiktoken, which must agree. Neither takes invalid UTF-8 as such: the text is cut into pieces
with U+FFFD in the place of each invalid part, and the merges are applied to the bytes of each piece.
"""
import codecs
import glob
import json
import os
import random
import sys

import tiktoken
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
END = "<|endoftext|>"

plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
others = [b for b in range(256) if b not in plain]
CHARACTER = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}
BYTE = {c: b for b, c in CHARACTER.items()}


class Reference:
    def __init__(self, tokens, merges, ranked):
        self.model = models.BPE.from_file(tokens, merges)
        self.tokenizer = tokenizers.Tokenizer(self.model)
        self.tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.tiktoken = None
        if ranked:  # tiktoken takes ids for ranks
            ids = json.load(open(tokens, encoding="utf-8"))
            ranks = {bytes(BYTE[c] for c in token): i for token, i in ids.items() if token != END}
            self.tiktoken = tiktoken.Encoding("ours", pat_str=PATTERN, mergeable_ranks=ranks,
                                              special_tokens={END: ids[END]})

    def pieces(self, data):
        """The pieces of bytes that may be invalid."""
        invalid = []

        def note(error):
            invalid.append((error.start, error.end))
            return "\ufffd", error.end

        codecs.register_error("note", note)
        text = data.decode("utf-8", errors="note")
        at = position = 0  # in bytes, in characters
        starts = dict(invalid)
        for _, (_, end) in self.tokenizer.pre_tokenizer.pre_tokenize_str(text):
            begin = at
            while position < end:
                at = starts[at] if at in starts else at + len(text[position].encode())
                position += 1
            yield data[begin:at]
        assert at == len(data)

    def encode(self, data):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            ids = []
            for piece in self.pieces(data):
                mine = [t.id for t in self.model.tokenize("".join(CHARACTER[b] for b in piece))]
                if self.tiktoken:
                    assert mine == self.tiktoken._encode_single_piece(piece), piece
                ids += mine
            return ids
        ids = self.tokenizer.encode(text).ids
        if self.tiktoken:
            assert ids == self.tiktoken.encode_ordinary(text), text
            assert self.tiktoken.decode_bytes(ids) == data
        return ids


WORDS = ("the The THE a an of it's we'll they've I'm you're he'd can't don'tS O'Neil 'tis rock'n'roll reservoir layers, "
         "frozen; shared: (random) \"weights\" [42] 3.14 1,000 2nd 50% $9.99 e-mail user@host http://a.b/c?d=e&f=g "
         "Grüße Straße Ärger naïve café façade Ελλάδα Москва שלום مرحبا नमस्ते สวัสดี 日本語 漢字 한국어 ½ ² Ⅷ ٣ "
         "👩‍👩‍👧 🎉🎉 e\u0301 \u00ad … – — “quoted” ‘single’ «guillemets» snake_case CamelCase x86_64 <|endoftext|> <s> </s> "
         "antidisestablishmentarianism aaaaaaaaaaaaaaaaaaaaaaaaaaa zzz !!! ??? ... ---- ==== ####").split(" ")
SPACES = [" ", " ", " ", " ", " ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n ", "\u00a0", "\u3000", "\u2028", "\x0b", ""]


def sentence(rng, count):
    return "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(count))


def random_unicode(rng, count):
    ranges = [(0, 0x80), (0, 0x80), (0x80, 0x250), (0x300, 0x1000), (0x1E00, 0x3100), (0x4E00, 0x5000), (0xAC00, 0xAD00),
              (0xF900, 0x10000), (0x10000, 0x20000), (0x1F300, 0x1FB00), (0x20000, 0x110000), (0, 0xD800)]
    out = []
    while len(out) < count:
        code = rng.randrange(*rng.choice(ranges))
        if not 0xD800 <= code < 0xE000:
            out.append(chr(code))
            if rng.random() < 0.1:
                out.append(rng.choice(["'s", "'ll", "'", " ", "  ", "\n", "a", "1", "!"]))
    return "".join(out)


def broken(rng, text):
    data = bytearray(text.encode())
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        what = rng.randrange(3)
        if what == 0:
            data[at:at] = bytes([rng.randrange(0x80, 0x100)])
        elif what == 1:
            del data[at:at + 1]
        else:
            data[at:at] = rng.choice([b"\xed\xa0\x80", b"\xc0\xaf", b"\xf0\x9f\x98", b"\xe2\x80", b"\xff\xfe", b"\xf5\x80",
                                      b"'\x80s", b" \xff", b"\xffs", b"\n\xff"])
    return bytes(data)


def texts(rng, count):
    yield b""
    yield b" "
    yield b"'"
    yield b"a" * 300
    yield bytes(range(256))
    yield END.encode()
    for i in range(count):
        kind = i % 4
        if kind == 0:
            yield sentence(rng, rng.randrange(1, 12)).encode()
        elif kind == 1:
            yield random_unicode(rng, rng.randrange(1, 30)).encode()
        elif kind == 2:
            yield broken(rng, sentence(rng, rng.randrange(1, 8)))
        else:
            yield rng.choice([broken(rng, random_unicode(rng, rng.randrange(1, 20))), rng.randbytes(rng.randrange(1, 40))])


def write_cases(path, reference, cases):
    count = 0
    with open(path, "w", encoding="ascii") as file:
        for data in cases:
            file.write(data.hex() + "\t" + " ".join(map(str, reference.encode(data))) + "\n")
            count += 1
    print(f"{path}: {count} cases")


def make_toy(folder):
    """A vocabulary of 640 tokens whose ids are in no order, trained on our own words."""
    rng = random.Random(1)
    trainer = trainers.BpeTrainer(vocab_size=639, initial_alphabet=sorted(BYTE), show_progress=False)
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator([sentence(rng, 20) for _ in range(400)], trainer)
    state = json.loads(tokenizer.to_str())["model"]
    names = sorted(state["vocab"]) + [END]
    rng.shuffle(names)
    os.makedirs(folder, exist_ok=True)
    tokens, merges = os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt")
    with open(tokens, "w", encoding="ascii") as file:
        json.dump({name: i for i, name in enumerate(names)}, file)
        file.write("\n")
    with open(merges, "w", encoding="utf-8") as file:
        file.write("#version: 0.2\n")
        for pair in state["merges"]:
            file.write((pair if isinstance(pair, str) else " ".join(pair)) + "\n")
    return tokens, merges


def many(data):
    rng = random.Random(3)
    for path in sorted(glob.glob(os.path.join(data, "blimp", "*.jsonl"))):
        for line in open(path, encoding="utf-8"):
            pair = json.loads(line)
            yield line.encode()
            yield pair["sentence_good"].encode()
            yield pair["sentence_bad"].encode()
    yield from texts(rng, 200000)
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            yield f"a{chr(code)}1{chr(code)}'s {chr(code)}".encode()


def main():
    data = sys.argv[1]
    files = [os.path.join(data, "gpt2", name) for name in ("encoder.json", "vocab.bpe")]
    real = Reference(*files, ranked=True)
    if len(sys.argv) > 2:
        write_cases(sys.argv[2], real, many(data))
        return
    toy = Reference(*make_toy(os.path.join(HERE, "gpt2_toy")), ranked=False)
    write_cases(os.path.join(HERE, "gpt2_toy.cases"), toy, texts(random.Random(2), 200))
    write_cases(os.path.join(HERE, "gpt2_real.cases"), real, texts(random.Random(4), 300))


main()
