"""What is trained on: a small corpus of a grammar, which is always there, and Multi30k or random words for speed."""

import itertools
import math
import os
import random

# The tests of what a training is, at sizes that take no time.
TINY = """model: { d_model: 32, embeddings: all }
encoder: { layers: (R1 L1)*2 }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 64 }
  R: { mixer: attention, heads: 2, ffn: 64, frozen: yes }
data: { vocab: %(vocab)s, train: %(train)s, valid: %(valid)s }
train: { max_tokens: 120, lr: 0.005, warmup: 20, threads: 2 }
valid: { every: 1000 }
"""
WORDS, SENTENCES, MEAN, SIGMA = 10000, 30000, 14, 0.4  # as Multi30k with 10,000 pieces


class Set:
    """One corpus: a vocabulary, the prefixes of its shards, and texts to translate ("" without)."""

    def __init__(self, name, folder, source="", reference=""):
        self.name, self.source, self.reference = name, source, reference
        self.vocab, self.train, self.valid = (os.path.join(folder, part) for part in ("vocab.model", "train", "valid"))

    def settings(self):
        """Options of tarn train that put this set in the place of a description's own."""
        keys = {"data.vocab": self.vocab, "data.train": self.train, "data.valid": "", "data.valid_reference": ""}
        return [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]


class Corpus(Set):
    """Sentences of tarn's grammar, with a description for them in `tiny`."""

    def __init__(self, runner, left):
        folder = os.path.join(runner.place.folder, "corpus")
        text = {f"{part}.{side}": os.path.join(folder, f"{part}.{side}") for part in ("train", "valid", "test")
                for side in ("de", "en")}
        super().__init__("a grammar's sentences", folder, text["test.de"], text["test.en"])
        runner.tarn(["corpus", "--output", folder, "--sentences", "300", "--held-out", "6"], left)
        runner.tarn(["vocab", "--type", "whitespace", "--size", "400", "--output", self.vocab, text["train.de"],
                     text["train.en"]], left)
        for part in ("train", "valid"):
            runner.tarn(["prepare", "--vocab", self.vocab, "--source", text[part + ".de"], "--target",
                         text[part + ".en"], "--output", os.path.join(folder, part)], left)
        self.tiny = os.path.join(folder, "tiny.yaml")
        with open(self.tiny, "w", encoding="utf-8") as file:
            file.write(TINY % {"vocab": self.vocab, "train": self.train, "valid": self.valid})


def multi30k(place):
    """Multi30k as the bundle holds it, prepared; None where it is not there."""
    folder = os.path.join(place.root, "data", "multi30k")
    if not all(os.path.isfile(os.path.join(folder, name)) for name in ("vocab.model", "train.tarn", "valid.tarn")):
        return None
    return Set("Multi30k", folder, os.path.join(folder, "test.de"), os.path.join(folder, "test.en"))


def random_words(runner, left):
    """Words by Zipf's law in sentences as long as Multi30k's: what a training takes does not depend on the words."""
    folder = os.path.join(runner.place.folder, "words")
    os.makedirs(folder, exist_ok=True)
    made = Set("random words", folder)
    draw, words = random.Random(1), [f"w{i}" for i in range(WORDS - 3)]  # besides <unk>, <s> and </s>
    weights = list(itertools.accumulate(1.0 / (i + 10) for i in range(len(words))))
    every, sides = os.path.join(folder, "words.txt"), [os.path.join(folder, f"train.{i}") for i in (0, 1)]
    with open(every, "w", encoding="utf-8") as file:
        file.write("\n".join(words) + "\n")
    with open(sides[0], "w", encoding="utf-8") as source, open(sides[1], "w", encoding="utf-8") as target:
        for _ in range(SENTENCES):
            length = max(3, round(draw.lognormvariate(math.log(MEAN) - SIGMA ** 2 / 2, SIGMA)))
            for file in (source, target):
                count = max(2, length + draw.randint(-2, 2))
                file.write(" ".join(draw.choices(words, cum_weights=weights, k=count)) + "\n")
    runner.tarn(["vocab", "--type", "whitespace", "--size", str(WORDS), "--output", made.vocab, every], left)
    runner.tarn(["prepare", "--vocab", made.vocab, "--source", sides[0], "--target", sides[1], "--output", made.train], left)
    return made
