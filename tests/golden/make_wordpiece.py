"""BERT's WordPiece by the package tokenizers, for test_wordpiece.c and cli/wordpiece_package.sh.

make_wordpiece.py                     writes into its folder: wordpiece_toy/vocab.txt, a vocabulary trained on our own words,
                                      with characters of many scripts; wordpiece_cased.cases and wordpiece_uncased.cases,
                                      texts with their tokens by it and the text that comes back
make_wordpiece.py compare TARN FOLDER FILE...   trains a cased and an uncased vocabulary on the files into FOLDER, and
                                      compares what the program TARN makes of each line of them, and of each code point of
                                      Unicode, with what the package makes of it; exits with 1 if anything differs

A case is a line: the bytes of the text in hexadecimal digits, a tab, the ids with blanks between them, a tab, and the bytes of
the decoded text.
"""
import os
import random
import subprocess
import sys

from tokenizers import BertWordPieceTokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = ("the The of it's we'll they've I'm you're can't don't O'Neil reservoir layers, frozen; shared: (random) \"weights\" "
         "[42] 3.14 1,000 2nd 50% $9.99 e-mail user@host http://a.b/c?d=e Grüße Straße STRASSE Ärger naïve café façade Ελλάδα "
         "ΟΔΥΣΣΕΥΣ Москва Ёлка שלום שָׁלוֹם مرحبا مُحَمَّد नमस्ते สวัสดี 日本語 漢字 한국어 ½ ² Ⅷ ٣ İstanbul ılık Ǆ ǅ ﬁ ẞ "
         "Việt Nam Å Å Ω x̂ … – — “quoted” ‘single’ «guillemets» ¿que? ¡no! ‽ ‿ 。 、 「話」 snake_case CamelCase "
         "antidisestablishmentarianism zzz !!! ??? ... ---- ==== #### ##a [CLS] [MASK] [UNK]").split(" ")
SPACES = [" ", " ", " ", "  ", "\t", "\u00a0", "\u3000", "\u2028", "\u1680", "\x0b", "\x85", "\u200b", "\u00ad", "\ufeff", ""]
# Letters that change under NFD or in small ones, marks of many classes (also of Unicode 9 and later, and those whose
# category has changed), spacing marks, controls, Chinese characters at the edges of their blocks, and others.
RARE = ("\u0130\u0131\u0149\u0344\u0345\u0390\u03a3\u03c2\u037e\u1e9b\u1e9e\u1fef\u2000\u212a\u2126\u0958\u09fd\u166d\u1734\u1885\u1b7d\u1c89"
        "\u1df6\u1df9\u2e4f\u302e\u302f\u3400\u4dbf\u4dc0\u4e00\u9fff\ua7cb\ua7dc\ua9bd\uac00\ud7a3\ue000\uf8ff\uf900\ufa6e\ufaff\ufb1d"
        "\ufffd\uffff\U000105c9\U00010400\U00010d50\U0001112e\U000111c9\U00011938\U00016ea0\U0001d15f\U0001d165\U0001d16d\U0001e000"
        "\U0001e943\U0001f600\U00020000\U0002a6df\U0002a6e0\U0002a700\U0002b81f\U0002b820\U0002b920\U0002f800\U0002fa1d\U000e0001\U000f0000")
MARKS = "\u0300\u0301\u0307\u0323\u0327\u0338\u05b0\u064b\u093c\u0e38\u1df6\u302e\U0001d165\U0001e000"


def tokenizer(path, lowercase):
    made = BertWordPieceTokenizer(path, lowercase=lowercase)
    made._tokenizer.encode_special_tokens = True  # "[MASK]" in a text is text
    return made


def texts(rng, count):
    yield ""
    yield " \t "
    for n in (99, 100, 101, 300):
        yield "a" * n + " b"
        yield "\u00e9" * n + "."
        yield "a" + "\u1df6" * n + "b"
        yield "\u0301" * n + "x"
    yield "a\u0301\u0323b \u0344 e\u0327\u0301"
    for code in RARE + MARKS:
        yield f"a{code}b {code} X{code}\u0301\u0323{code}"
    for i in range(count):
        if i % 2:
            yield "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(rng.randrange(1, 12)))
        else:
            pools = [RARE, MARKS, "aAeEoO \u00e9\u00c9.,#", [chr(rng.randrange(0x20, 0xd800)) for _ in range(8)]]
            yield "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 30)))


def make_vocabulary(folder):
    rng = random.Random(1)
    made = BertWordPieceTokenizer(lowercase=False)
    cased = [" ".join(rng.choice(WORDS) for _ in range(20)) for _ in range(300)]
    made.train_from_iterator(cased + [line.lower() for line in cased], vocab_size=900, min_frequency=1, show_progress=False)
    tokens = [t for t, _ in sorted(made.get_vocab().items(), key=lambda item: item[1])]
    folds = "".join(tokenizer.normalize(c) or "" for tokenizer in
                    (BertWordPieceTokenizer(lowercase=True), BertWordPieceTokenizer(lowercase=False)) for c in RARE + MARKS)
    letters = sorted(set(RARE + MARKS + folds + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,#[]"))
    letters = [c for c in letters if not c.isspace()]
    known = set(tokens)
    tokens += [t for c in letters for t in (c, "##" + c) if t not in known]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "vocab.txt")
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(tokens) + "\n")
    return path


def write_cases(path, made):
    with open(path, "w", encoding="ascii") as file:
        for text in texts(random.Random(2), 300):
            ids = made.encode(text, add_special_tokens=False).ids
            back = made.decode(ids, skip_special_tokens=False)
            file.write(f"{text.encode().hex()}\t{' '.join(map(str, ids))}\t{back.encode().hex()}\n")


def differences(tarn, vocab, made, lines):
    given = ("\n".join(lines) + "\n").encode()
    got = subprocess.run([tarn, "encode", "--vocab", vocab, "--ids"], input=given, stdout=subprocess.PIPE, check=True)
    got = got.stdout.decode().split("\n")[:-1]
    if len(got) != len(lines):
        sys.exit(f"{len(lines)} lines were given, and {len(got)} came back")
    expected = made._tokenizer.encode_batch_fast(lines, add_special_tokens=False)
    wrong = 0
    for line, ids, other in zip(lines, expected, got):
        mine = " ".join(map(str, ids.ids))
        wrong += mine != other
        if mine != other and wrong < 4:
            print(f"{ascii(line[:80])}: {mine[:80]} by the package, {other[:80]} by tarn")
    return wrong


def compare(tarn, folder, files):
    wrong = total = 0
    lines = [line for file in files for line in open(file, encoding="utf-8", newline="\n").read().split("\n")]
    points = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000 and c not in (10, 13)]
    points = ["".join(f"a{c}b {c} " for c in points[i:i + 50]) for i in range(0, len(points), 50)]
    for name, lowercase in (("cased", False), ("uncased", True)):
        made = BertWordPieceTokenizer(lowercase=lowercase)
        made.train(files, vocab_size=20000, show_progress=False)
        path = os.path.join(folder, name)
        os.makedirs(path, exist_ok=True)
        made.save_model(path)
        with open(os.path.join(path, "tokenizer_config.json"), "w", encoding="ascii") as file:
            file.write('{"do_lower_case": %s}\n' % ("true" if lowercase else "false"))
        made = tokenizer(os.path.join(path, "vocab.txt"), lowercase)
        for set_of_lines in (lines, points):
            total += len(set_of_lines)
            wrong += differences(tarn, path, made, set_of_lines)
    print(f"{total} lines compared, {wrong} differ")
    sys.exit(wrong > 0)


def main():
    if len(sys.argv) > 3 and sys.argv[1] == "compare":
        compare(sys.argv[2], sys.argv[3], sys.argv[4:])
    path = make_vocabulary(os.path.join(HERE, "wordpiece_toy"))
    for name, lowercase in (("cased", False), ("uncased", True)):
        write_cases(os.path.join(HERE, f"wordpiece_{name}.cases"), tokenizer(path, lowercase))


main()
