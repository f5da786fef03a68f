"""Classification of texts as a scikit-learn estimator (docs/classification.md).

    from tarn.text import TextClassifier

    model = TextClassifier().fit(["a fine film", "a dull plot"], ["good", "bad"])
    model.predict(["a fine plot"])
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d
except ImportError as missing:
    raise ImportError("tarn.text needs scikit-learn 1.6 or later") from missing

from ._check import whole
from ._library import PathLike, Text
from .data import prepare_labelled
from .errors import DataError, NotFoundError
from .run import Run
from .training import Callback, train
from .vocabulary import Vocabulary

SIDECAR = "text_classifier.json"  # beside the run: parameters, and the classes in the type that they had
KEPT = ("config.yaml", "log.jsonl", "result.json")  # of a run, beside its checkpoint
CHECKPOINT = "checkpoint_last.safetensors"
LEAST_UPDATES = 200


def _texts(X: Any) -> list[Text]:
    """The texts as lines: a tab would divide two sentences, and a line end two rows."""
    if isinstance(X, (str, bytes, Mapping)) or not isinstance(X, Iterable):
        raise TypeError(f"X: a list of texts is expected, not {X!r}")
    dims = getattr(X, "ndim", 1)
    if dims != 1:
        raise ValueError(f"X: a list of texts is expected, not an array of {dims} dimensions")
    found: list[Text] = []
    for number, text in enumerate(X, 1):
        if not isinstance(text, str):
            raise TypeError(f"X: row {number}: a text is expected, not {text!r}")
        found.append(re.sub(r"[\t\r\n]+", " ", text))
    if not found:
        raise ValueError("X: there are no texts (minimum of 1 is required)")
    return found


def _names(classes: NDArray[Any]) -> list[str]:
    """Names of the classes for the library."""
    names = [str(one) for one in classes.tolist()]
    if len({*names}) < len(names):
        raise ValueError("y: different classes have the same text")
    return names


def _merged(description: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A description with the keys of another one in place of its own; None removes one."""
    found = dict(description)
    for key, value in changes.items():
        own = found.get(key)
        found[key] = _merged(own, value) if isinstance(own, dict) and isinstance(value, Mapping) else value
    return found


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifies texts by a small Transformer encoder with a vocabulary of its own, both trained by `fit`.

    `layers`, `d_model`, `heads` and `ffn` describe the encoder, whose last states are averaged; `vocab_size` is the
    most that the vocabulary may have (byte-pair encoding, of lower-cased text if `lowercase`). A text keeps its first
    `max_length` tokens. `epochs` passes over the texts are trained, but at least 200 updates of `batch_tokens` tokens.
    `description` changes any key of the training's description, as a dictionary (docs/training.md); layers of your
    own, some random and frozen, say: {"encoder": {"layers": "(R L)*2"}, "kinds": {...}}. `callback` is that of
    `tarn.train`.

    `random_state` is the seed of the weights and of the order of the texts; equal parameters and texts give equal bits.

    `check_estimator` passes. It leaves out what gives numbers to an estimator; all of that passes too if rows of numbers
    are written as words."""

    def __init__(
        self,
        description: Mapping[str, Any] | None = None,
        *,
        layers: int = 1,
        d_model: int = 64,
        heads: int = 4,
        ffn: int = 128,
        vocab_size: int = 4000,
        lowercase: bool = True,
        max_length: int = 256,
        epochs: int = 5,
        batch_tokens: int = 2000,
        lr: float = 0.002,
        dropout: float = 0.3,
        random_state: Any = 1,
        threads: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.description = description
        self.layers = layers
        self.d_model = d_model
        self.heads = heads
        self.ffn = ffn
        self.vocab_size = vocab_size
        self.lowercase = lowercase
        self.max_length = max_length
        self.epochs = epochs
        self.batch_tokens = batch_tokens
        self.lr = lr
        self.dropout = dropout
        self.random_state = random_state
        self.threads = threads
        self.callback = callback

    def fit(self, X: Iterable[str], y: Any) -> TextClassifier:
        """Trains a vocabulary and a model on texts and their labels, of any type that scikit-learn takes."""
        texts, y = _texts(X), column_or_1d(y, warn=True)
        check_consistent_length(texts, y)
        check_classification_targets(y)
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError("y: there must be two classes at least, and this is one class")
        names = _names(classes)
        with tempfile.TemporaryDirectory(prefix="tarn-") as folder:
            vocab, data, run = (os.path.join(folder, name) for name in ("vocab", "train", "run"))
            self._train_vocabulary(vocab, texts)
            rows = ((text, names[number]) for text, number in zip(texts, numbers))
            told = prepare_labelled(data, vocab, rows, max_tokens=whole("max_length", self.max_length, 4, 2**24))
            described = _merged(self._describe(vocab, data, told["tokens"]), self.description or {})
            done = train(described, run, callback=self.callback, threads=self.threads, progress=False)
            self.n_iter_ = done.update
            self._open({name: Path(run, name).read_bytes() for name in (CHECKPOINT, *KEPT)}, classes)
        return self

    def _train_vocabulary(self, path: str, texts: list[Text]) -> None:
        size = whole("vocab_size", self.vocab_size, 4, 1000000)
        try:
            Vocabulary.train(path, texts=texts, size=size, lowercase=self.lowercase)
        except DataError as error:
            # Byte-pair encoding has exactly its size; of few texts the largest that there is.
            largest = re.search(r"the largest that works is --size (\d+)", str(error))
            if largest is None:
                raise
            Vocabulary.train(path, texts=texts, size=int(largest[1]), lowercase=self.lowercase)

    def _describe(self, vocab: str, data: str, tokens: int) -> dict[str, Any]:
        batch = whole("batch_tokens", self.batch_tokens, 1, 2**31 - 1)
        epochs, layers = whole("epochs", self.epochs, 1, 2**31 - 1), whole("layers", self.layers, 1, 1000)
        # The longest text must fit into a batch.
        batch = max(batch, whole("max_length", self.max_length, 4, 2**24) + 1)
        updates = max(LEAST_UPDATES, epochs * -(-tokens // batch))
        return {
            "model": {"task": "classification", "d_model": self.d_model, "dropout": self.dropout},
            "encoder": {"layers": f"L*{layers}"},
            "kinds": {"L": {"mixer": "attention", "heads": self.heads, "ffn": self.ffn}},
            "head": {"pool": "mean"},
            "data": {"vocab": vocab, "train": data},
            "train": {
                "max_updates": updates,
                "max_tokens": batch,
                "lr": self.lr,
                "warmup": updates // 10,
                "schedule": "linear",
                "label_smoothing": 0.1,
                "seed": self._seed(),
            },
        }

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            return whole("random_state", self.random_state, 0, 2**32 - 1)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _open(self, files: dict[str, bytes], classes: NDArray[Any]) -> None:
        """The fitted state: the files of the run, and its model, opened from a temporary folder."""
        self._files = files
        self._folder = tempfile.TemporaryDirectory(prefix="tarn-")
        path = Path(self._folder.name, CHECKPOINT)
        path.write_bytes(files[CHECKPOINT])
        self.classes_ = classes
        self.run_ = Run(path, threads=self.threads)

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float64]:
        """The probability of each class, in the order of `classes_`."""
        check_is_fitted(self)
        names = _names(self.classes_)
        found = self.run_.classify(_texts(X), max_tokens=self.max_length)
        return np.array([[one.probabilities[name] for name in names] for one in found])

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """The most likely class of each text."""
        shares = self.predict_proba(X)
        found: NDArray[Any] = self.classes_[shares.argmax(1)]
        return found

    def save(self, path: PathLike) -> None:
        """Writes a run directory, for `load`, `tarn.Run` and the program: `tarn classify PATH`."""
        check_is_fitted(self)
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self._files.items():
            (folder / name).write_bytes(data)
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "callback"}
        state = {"parameters": parameters, "classes": self.classes_.tolist(), "dtype": self.classes_.dtype.str}
        (folder / SIDECAR).write_text(json.dumps(state, default=str) + "\n", "utf-8")

    @classmethod
    def load(cls, path: PathLike) -> TextClassifier:
        """Opens what `save` wrote."""
        folder = Path(path)
        if not (folder / SIDECAR).exists():
            raise NotFoundError(f"{os.fspath(path)}: TextClassifier.save() wrote no {SIDECAR} there; tarn.Run opens any run")
        state = json.loads((folder / SIDECAR).read_text("utf-8"))
        model = cls(**state["parameters"])
        files = {name: (folder / name).read_bytes() for name in (CHECKPOINT, *KEPT)}
        model._open(files, np.array(state["classes"], state["dtype"]))
        model.n_iter_ = model.run_.update
        return model

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: the run as the contents of its files."""
        kept: Any = super().__getstate__()
        state: dict[str, Any] = dict(kept)
        for name in ("run_", "_folder"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_files" in state:
            self._open(state["_files"], state["classes_"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
