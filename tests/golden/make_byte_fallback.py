"""Writes byte_fallback.model: a SentencePiece model that spells characters it does not know as bytes, which tarn reads
but does not train.

usage: make_byte_fallback.py    (needs sentencepiece)
"""

import io
from pathlib import Path

import sentencepiece

TEXT = ["the cat sees a house", "a house sees the cat and the dog", "dogs and cats and houses see the sea"] * 20

model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(TEXT),
    model_writer=model,
    model_type="bpe",
    vocab_size=300,
    byte_fallback=True,
    normalization_rule_name="identity",
    num_threads=1,
    minloglevel=2,
)
Path(__file__).with_name("byte_fallback.model").write_bytes(model.getvalue())
