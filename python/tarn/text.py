"""Classification of texts as a scikit-learn estimator (docs/classification.md).

    from tarn.text import TextClassifier

    model = TextClassifier().fit(["a fine film", "a dull plot"], ["good", "bad"])
    model.predict(["a fine plot"])
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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
from ._library import PathLike, Text, no_text, temporary_folder
from .data import prepare_labelled
from .errors import DataError, NotFoundError, TarnError, UsageError
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
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise no_text(f"X: row {number}", error) from None
        if "\0" in text:
            raise UsageError(f"X: row {number}: a zero character, which no text has")
        found.append(re.sub(r"[\t\r\n]+", " ", text))
    if not found:
        raise ValueError("X: there are no texts (minimum of 1 is required)")
    return found


@contextmanager
def _rows_of_arguments() -> Iterator[None]:
    """Messages about rows name X and y, in place of what the library is given: texts, and a table of texts and labels."""
    try:
        yield
    except TarnError as failure:
        found = re.match(r"(?:texts: row |table: row |text:)(\d+)(?:, ([12]))?: ", str(failure))
        if found is not None:
            rest = str(failure)[found.end() :]
            # Of a zero byte too, because `_texts` refuses that in X.
            name = "y" if found[2] == "2" or rest.startswith(("the label", "a label", "a zero byte")) else "X"
            failure.args = (f"{name}: row {found[1]}: " + re.sub(r" \(column [12]\)", "", rest, count=1),)
        raise


def _files(folder: Path) -> dict[str, bytes]:
    """What is kept of a run. One that was stopped by its callback has no result."""
    names = [name for name in KEPT if (folder / name).exists()]
    return {name: (folder / name).read_bytes() for name in (*names, CHECKPOINT)}


def _replace(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files beside those that they then replace, in their order: a model that is open keeps its own."""
    places = {name: folder / f"{name}.new" for name in files}
    try:
        for name, place in places.items():
            with open(place, "wb") as file:
                file.write(files[name])
                file.flush()
                os.fsync(file.fileno())
        for name, place in places.items():
            os.replace(place, folder / name)
    finally:
        for place in places.values():
            place.unlink(missing_ok=True)


def _plain(value: Any, name: str) -> Any:
    """A parameter as JSON gives it back; numbers of NumPy become those of Python."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(key): _plain(item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, name) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{name}: {value!r} cannot be saved; give a number, a text or a dictionary, or pickle the model")


def _remove(folder: str, process: int) -> None:
    """Of a model that is no longer used. A forked process has the models of its parent, and leaves their files."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


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
    `max_length` tokens. `epochs` passes over the texts are trained, but at least 200 updates of `batch_tokens` tokens,
    or of `max_length` + 1 if that is more.
    `description` changes any key of the training's description, as a dictionary (docs/training.md); layers of your
    own, some random and frozen, say: {"encoder": {"layers": "(R L)*2"}, "kinds": {...}}. `callback` is that of
    `tarn.train`.

    `random_state` is the seed of the weights and of the order of the texts; equal parameters and texts give equal bits.

    `check_estimator` passes, which leaves out what gives numbers to an estimator."""

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
        with temporary_folder() as folder:
            vocab, data, run = (os.path.join(folder, name) for name in ("vocab", "train", "run"))
            # A row may end with the end of a line, which is not part of it: a label's own is then refused.
            rows = ((text, names[number] + "\n") for text, number in zip(texts, numbers))
            with _rows_of_arguments():
                self._train_vocabulary(vocab, texts)
                told = prepare_labelled(data, vocab, rows, max_tokens=whole("max_length", self.max_length, 4, 2**24))
            described = _merged(self._describe(vocab, data, told["tokens"]), self.description or {})
            done = train(described, run, callback=self.callback, threads=self.threads, progress=False)
            self.n_iter_ = done.update
            self._open(_files(Path(run)), classes)
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
        """The fitted state: the files of the run, and its model, opened from a folder that is there as long as it."""
        folder = tempfile.mkdtemp(prefix="tarn-")
        try:
            path = Path(folder, CHECKPOINT)
            path.write_bytes(files[CHECKPOINT])
            run = Run(path, threads=self.threads)
        except BaseException:
            _remove(folder, os.getpid())
            raise
        weakref.finalize(run, _remove, folder, os.getpid())
        self._files, self.classes_, self.run_ = files, classes, run

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float64]:
        """The probability of each class, in the order of `classes_`."""
        check_is_fitted(self)
        names = _names(self.classes_)
        texts = _texts(X)
        with _rows_of_arguments():
            found = self.run_.classify(texts, max_tokens=self.max_length)
        return np.array([[one.probabilities[name] for name in names] for one in found])

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """The most likely class of each text."""
        shares = self.predict_proba(X)
        found: NDArray[Any] = self.classes_[shares.argmax(1)]
        return found

    def save(self, path: PathLike) -> None:
        """Writes a run directory, for `load`, `tarn.Run` and the program: `tarn classify PATH`. What `save` wrote there
        before is replaced, file by file; the folder of another run is refused."""
        check_is_fitted(self)
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / SIDECAR).exists() and ((folder / KEPT[0]).exists() or any(folder.glob("*.safetensors"))):
            raise UsageError(f"{os.fspath(path)}: it holds another run, which TextClassifier.save() did not write")
        given = {name: value for name, value in self.get_params(deep=False).items() if name != "callback"}
        parameters = {name: _plain(value, name) for name, value in given.items()}
        classes = _plain(self.classes_.tolist(), "classes_")
        state = {"parameters": parameters, "classes": classes, "dtype": self.classes_.dtype.str}
        _replace(folder, {SIDECAR: (json.dumps(state) + "\n").encode(), **self._files})
        for name in KEPT:
            if name not in self._files:  # of the model that was there
                (folder / name).unlink(missing_ok=True)

    @classmethod
    def load(cls, path: PathLike) -> TextClassifier:
        """Opens what `save` wrote."""
        folder = Path(path)
        if not (folder / SIDECAR).exists():
            raise NotFoundError(f"{os.fspath(path)}: TextClassifier.save() wrote no {SIDECAR} there; tarn.Run opens any run")
        state = json.loads((folder / SIDECAR).read_text("utf-8"))
        model = cls(**state["parameters"])
        model._open(_files(folder), np.array(state["classes"], state["dtype"]))
        model.n_iter_ = model.run_.update
        return model

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: the run as the contents of its files."""
        kept: Any = super().__getstate__()
        state: dict[str, Any] = dict(kept)
        state.pop("run_", None)
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
