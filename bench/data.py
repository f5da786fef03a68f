"""Text, vocabulary and shards that the measurements train on."""

import os

from settings import DATA, Failure, TARN, run


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
