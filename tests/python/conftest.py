"""A small corpus, and models of every task that were trained on it for a few updates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tarn

LAYERS = {
    "L": {"mixer": "attention", "heads": 2, "ffn": 64},
    "R": {"mixer": "attention", "heads": 2, "ffn": 64, "frozen": True},
}
TRAIN = {"max_updates": 40, "max_tokens": 500, "lr": 0.005, "warmup": 20, "log_every": 5, "threads": 2}


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    tarn.write_corpus(folder, sentences=300, held_out=20)
    sides = [folder / "train.de", folder / "train.en"]
    tarn.Vocabulary.train(folder / "vocab", sides, type="whitespace", size=800)
    for part in ("train", "valid"):
        pairs = {"source": folder / f"{part}.de", "target": folder / f"{part}.en"}
        assert tarn.prepare(folder / part, folder / "vocab", **pairs)["pairs"] > 0
        tarn.prepare(folder / f"{part}-text", folder / "vocab", text=folder / f"{part}.en")
    return folder


@pytest.fixture(scope="session")
def description(corpus: Path) -> dict[str, Any]:
    return {
        "model": {"d_model": 32, "embeddings": "all"},
        "encoder": {"layers": "(R1 L1)*2"},
        "decoder": {"layers": "L"},
        "kinds": LAYERS,
        "data": {"vocab": corpus / "vocab", "train": corpus / "train", "valid": corpus / "valid"},
        "train": TRAIN,
        "valid": {"every": 20, "max_sentences": 5, "at_start": True},
    }


@pytest.fixture(scope="session")
def text_description(corpus: Path, description: dict[str, Any]) -> dict[str, Any]:
    data = {"vocab": corpus / "vocab", "train": corpus / "train-text", "valid": corpus / "valid-text"}
    found = {key: value for key, value in description.items() if key != "encoder"}
    return {**found, "model": {"d_model": 32, "embeddings": "decoder"}, "data": data, "valid": {"every": 20}}


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, description: dict[str, Any]) -> tarn.Trained:
    return tarn.train(description, tmp_path_factory.mktemp("runs") / "translation")


@pytest.fixture(scope="session")
def text_run(tmp_path_factory: pytest.TempPathFactory, text_description: dict[str, Any]) -> tarn.Trained:
    return tarn.train(text_description, tmp_path_factory.mktemp("runs") / "text")
