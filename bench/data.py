"""Text, vocabulary and shards that the measurements train on."""

import itertools
import math
import os
import random

from settings import DATA, Failure, TARN, run


def write_words(path, vocabulary, special):
    """Words w0, w1, ... that together with `special` special tokens make a vocabulary, one per line."""
    words = [f"w{i}" for i in range(vocabulary - special)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(words) + "\n")
    return words


def draws_of(words):
    """A generator of random numbers, and cumulative weights of the words by Zipf's law."""
    return random.Random(1), list(itertools.accumulate(1.0 / i ** 1.2 for i in range(1, len(words) + 1)))


def length_of(draw, data):
    """Tokens of a sentence: log-normal, between bounds."""
    length = round(draw.lognormvariate(math.log(data.MEAN) - data.SIGMA ** 2 / 2, data.SIGMA))
    return min(max(length, data.SHORTEST), data.LONGEST)


class Data:
    """Multi30k German-English with a joint vocabulary of 10,000 pieces, in `folder`. `bpe` are the training texts as
    pieces with blanks between them, for peers that read words."""

    def __init__(self, folder):
        self.texts = [os.path.join(DATA, "multi30k", f"train.{language}") for language in ("de", "en")]
        for text in self.texts:
            if not os.path.isfile(text):
                raise Failure(f"{text} is not there; set TARN_DATA to the folder that holds multi30k/")
        self.folder = folder
        self.vocab = os.path.join(folder, "vocab.model")
        self.train = os.path.join(folder, "train")
        self.bpe = [os.path.join(folder, f"train.bpe.{language}") for language in ("de", "en")]
        run([TARN, "vocab", "--type", "bpe", "--size", "10000", "--output", self.vocab, *self.texts], "vocabulary")
        run([TARN, "prepare", "--vocab", self.vocab, "--source", self.texts[0], "--target", self.texts[1],
             "--output", self.train], "shard")

    def pieces(self):
        for text, bpe in zip(self.texts, self.bpe):
            if not os.path.isfile(bpe):
                with open(text, encoding="utf-8") as source, open(bpe, "w", encoding="utf-8") as target:
                    run([TARN, "encode", "--vocab", self.vocab], "pieces", stdin=source, stdout=target)
        return self.bpe


class SyntheticData:
    """Random words, drawn as Zipf's law says, in sentences of `length` tokens give or take a quarter: a shard for every
    size of vocabulary and length."""

    TOKENS = 60000  # of a side
    made = {}

    @classmethod
    def get(cls, folder, vocabulary, length):
        key = (folder, vocabulary, length)
        if key not in cls.made:
            cls.made[key] = cls(*key)
        return cls.made[key]

    def __init__(self, folder, vocabulary, length):
        self.folder = folder
        self.vocab = os.path.join(folder, f"words-{vocabulary}.vocab")
        self.train = os.path.join(folder, f"words-{vocabulary}-{length}")
        words = [f"w{i}" for i in range(vocabulary - 3)]  # besides <unk>, <s> and </s>
        text = self.train + ".txt"
        with open(text, "w", encoding="utf-8") as file:
            file.write("\n".join(words) + "\n")
        run([TARN, "vocab", "--type", "whitespace", "--size", str(vocabulary), "--output", self.vocab, text],
            "vocabulary")
        self.write(text, words, length)
        run([TARN, "prepare", "--vocab", self.vocab, "--source", text, "--target", text, "--output", self.train],
            "shard")

    def write(self, text, words, length):
        draw = random.Random(1)
        weights = [1.0 / (i + 10) for i in range(len(words))]
        with open(text, "w", encoding="utf-8") as file:
            for _ in range(self.TOKENS // length):
                # One token is the end of the sentence.
                count = max(1, round(length * draw.uniform(0.75, 1.25)) - 1)
                file.write(" ".join(draw.choices(words, weights, k=count)) + "\n")


class LanguageData:
    """Text of random words for language models, of the lengths and words that torch_lm.py draws: lognormal lengths of
    25 tokens on average, the end of the sentence one of them, and words of Zipf's law with exponent 1.2, whose tail is
    the last word. GPT-2's vocabulary is as large."""

    VOCABULARY, SENTENCES = 50257, 4000
    MEAN, SIGMA, SHORTEST, LONGEST = 25, 0.5, 3, 128

    def __init__(self, folder):
        self.folder = folder
        self.vocab = os.path.join(folder, "language.vocab")
        self.train = os.path.join(folder, "language")
        every, text = self.train + ".words", self.train + ".txt"
        words = write_words(every, self.VOCABULARY, 3)  # besides <unk>, <s> and </s>
        self.write(text, words)
        run([TARN, "vocab", "--type", "whitespace", "--size", str(self.VOCABULARY), "--output", self.vocab, every],
            "vocabulary")
        run([TARN, "prepare", "--vocab", self.vocab, "--text", text, "--output", self.train], "shard")

    def write(self, text, words):
        draw = random.Random(1)
        weights = [1.0 / i ** 1.2 for i in range(1, len(words) + 1)]
        weights[-1] = 5.0 * len(words) ** -0.2  # the integral of the rest
        weights = list(itertools.accumulate(weights))
        with open(text, "w", encoding="utf-8") as file:
            for _ in range(self.SENTENCES):
                count = length_of(draw, self) - 1
                file.write(" ".join(draw.choices(words, cum_weights=weights, k=count)) + "\n")


class LabelledData:
    """Sentences of two classes as long as those of SST-2 in subwords: <cls>, words of Zipf's law, end of sentence."""

    VOCABULARY, SENTENCES = 16000, 20000
    MEAN, SIGMA, SHORTEST, LONGEST = 18.0, 0.6, 4, 100  # tokens with both ends, as torch_classify.py draws them
    SPECIAL = 6  # <unk>, <s>, </s>, <cls>, <sep>, <mask>

    def __init__(self, folder):
        self.folder = folder
        self.vocab = os.path.join(folder, "labelled.vocab")
        self.train = os.path.join(folder, "labelled")
        every, table = self.train + ".words", self.train + ".tsv"
        words = write_words(every, self.VOCABULARY, self.SPECIAL)
        draw, weights = draws_of(words)
        with open(table, "w", encoding="utf-8") as file:
            for i in range(self.SENTENCES):
                count = length_of(draw, self) - 2
                file.write(" ".join(draw.choices(words, cum_weights=weights, k=count)) + f"\t{i % 2}\n")
        run([TARN, "vocab", "--type", "whitespace", "--size", str(self.VOCABULARY), "--mask-symbols", "--output",
             self.vocab, every], "vocabulary")
        run([TARN, "prepare", "--vocab", self.vocab, "--table", table, "--text", "1", "--labels", "2", "--output",
             self.train], "shard")


class MaskedData:
    """Rows of 128 tokens for masked language models, all full: <cls>, words of Zipf's law, end of sentence."""

    VOCABULARY, LENGTH, SENTENCES, NAME = 16000, 128, 3000, "masked"
    SPECIAL = 6  # <unk>, <s>, </s>, <cls>, <sep>, <mask>

    def __init__(self, folder):
        self.folder = folder
        self.vocab = os.path.join(folder, f"{self.NAME}.vocab")
        self.train = os.path.join(folder, self.NAME)
        every, text = self.train + ".words", self.train + ".txt"
        words = write_words(every, self.VOCABULARY, self.SPECIAL)
        draw, weights = draws_of(words)
        with open(text, "w", encoding="utf-8") as file:
            for _ in range(self.SENTENCES):
                file.write(" ".join(draw.choices(words, cum_weights=weights, k=self.LENGTH - 2)) + "\n")
        run([TARN, "vocab", "--type", "whitespace", "--size", str(self.VOCABULARY), "--mask-symbols", "--output",
             self.vocab, every], "vocabulary")
        run([TARN, "prepare", "--vocab", self.vocab, "--text", text, "--output", self.train], "shard")


class PartsData(MaskedData):
    """The same with few words, so that the layers are what counts."""

    VOCABULARY, NAME = 1000, "parts"


class CharacterData:
    """Random letters in windows of 512 bytes: what a training takes does not depend on them."""

    BYTES, WINDOW = 1 << 18, 512

    def __init__(self, folder):
        self.folder = folder
        self.vocab = os.path.join(folder, "bytes.vocab")
        self.train = os.path.join(folder, "characters")
        text = self.train + ".txt"
        draw = random.Random(1)
        with open(text, "w", encoding="utf-8") as file:
            file.write("".join(draw.choices("abcdefghijklmnopqrstuvwxyz \n", k=self.BYTES)))
        run([TARN, "vocab", "--type", "byte", "--output", self.vocab], "vocabulary")
        run([TARN, "prepare", "--vocab", self.vocab, "--text", text, "--stream", str(self.WINDOW), "--output",
             self.train], "shard")


class ImageData:
    """The digits that `tarn draw` draws. There is no vocabulary."""

    def __init__(self, folder):
        self.folder, self.vocab = folder, ""
        drawn = os.path.join(folder, "digits")
        self.train = os.path.join(folder, "images")
        run([TARN, "draw", "--output", drawn], "digits")
        run([TARN, "prepare", "--images", os.path.join(drawn, "train-images.idx"), "--labels",
             os.path.join(drawn, "train-labels.idx"), "--output", self.train], "shard")
