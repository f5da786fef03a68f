"""tarn.text.TextClassifier as scikit-learn's users know a classifier."""

from __future__ import annotations

import gc
import os
import pickle
import random
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", "1.6", reason="scikit-learn 1.6 or later is not installed")

import sklearn.base
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted, validate_data

import tarn
from tarn import _library
from tarn.text import TextClassifier

SMALL: dict[str, Any] = {"d_model": 16, "heads": 2, "ffn": 16, "threads": 1}
SHORT = {"train": {"max_updates": 2, "warmup": 1}}


def texts_and_labels() -> tuple[list[str], list[str]]:
    """Words that tell, among others that do not."""
    draw = random.Random(1)
    tell, other = {"good": ["fine", "nice"], "bad": ["poor", "dull"]}, ["film", "plot", "cast", "song"]
    labels = ["good", "bad"] * 30
    return [" ".join([draw.choice(tell[label]), *draw.choices(other, k=5)]) for label in labels], labels


@pytest.fixture(scope="module")
def fitted() -> TextClassifier:
    return TextClassifier(**SMALL).fit(*texts_and_labels())


def test_it_learns(fitted: TextClassifier) -> None:
    texts, labels = texts_and_labels()
    assert fitted.score(texts, labels) == 1 and list(fitted.classes_) == ["bad", "good"] and fitted.n_iter_ == 200
    assert list(fitted.predict(["a fine film", "a dull\tplot\nsong"])) == ["good", "bad"]
    shares = fitted.predict_proba(iter(texts))
    assert shares.shape == (60, 2) and np.allclose(shares.sum(1), 1) and shares.dtype == np.float64


def test_saved_loaded_pickled_and_cloned(fitted: TextClassifier, tmp_path: Path) -> None:
    texts, labels = texts_and_labels()
    shares = fitted.predict_proba(texts)
    fitted.save(tmp_path / "saved")
    loaded, again = TextClassifier.load(tmp_path / "saved"), pickle.loads(pickle.dumps(fitted))
    for model in (loaded, again):
        assert np.array_equal(model.predict_proba(texts), shares)
        assert model.get_params() == fitted.get_params() and model.n_iter_ == 200
        assert list(model.predict(texts)) == labels and model.classes_.dtype == fitted.classes_.dtype
    with tarn.Run(tmp_path / "saved") as run:  # it is a run as any other
        assert run.labels == ["bad", "good"] and run.classify(texts[:1])[0].label == labels[0]
        assert run.description["model"]["d_model"] == 16
    clone = sklearn.base.clone(fitted)
    assert clone.get_params() == fitted.get_params() and not hasattr(clone, "classes_")
    with pytest.raises(tarn.NotFoundError, match="TextClassifier.save\\(\\) wrote no text_classifier.json there"):
        TextClassifier.load(tmp_path)


def test_saving_again_leaves_an_open_run_alone(fitted: TextClassifier, tmp_path: Path) -> None:
    saved, expected = tmp_path / "saved", {"text_classifier.json", *fitted._files}
    fitted.save(saved)
    with tarn.Run(saved) as run:
        weights = run["embeddings.weight"]  # a view of the mapped file
        before = weights.copy()
        TextClassifier(SHORT, **{**SMALL, "d_model": 8}).fit(["a b", "c"], ["good", "bad"]).save(saved)
        assert np.array_equal(weights, before)
    assert TextClassifier.load(saved).d_model == 8 and {*os.listdir(saved)} == expected
    os.remove(saved / "text_classifier.json")
    with pytest.raises(tarn.UsageError, match="it holds another run, which TextClassifier.save\\(\\) did not write"):
        fitted.save(saved)


def test_saved_parameters_keep_their_types(tmp_path: Path) -> None:
    model = TextClassifier(SHORT, **{**SMALL, "d_model": np.int64(16)}, lr=np.float32(0.5), lowercase=np.False_)
    model.fit(["a b", "c"], np.array([3, 1], np.int16)).save(tmp_path / "saved")
    loaded = TextClassifier.load(tmp_path / "saved")
    assert loaded.get_params() == model.get_params() and loaded.classes_.dtype == np.int16
    assert (type(loaded.d_model), type(loaded.lr), type(loaded.lowercase)) == (int, float, bool)
    with pytest.raises(TypeError, match="^random_state: RandomState.* cannot be saved"):
        model.set_params(random_state=np.random.RandomState(1)).save(tmp_path / "never")


def test_stopped_by_its_callback(tmp_path: Path) -> None:
    model = TextClassifier(callback=lambda event: event.update == 3, **SMALL).fit(*texts_and_labels())
    model.save(tmp_path)
    loaded = TextClassifier.load(tmp_path)
    assert model.n_iter_ == loaded.n_iter_ == 3 and not (tmp_path / "result.json").exists()
    assert np.array_equal(loaded.predict_proba(["a fine film"]), model.predict_proba(["a fine film"]))


def test_rows_are_those_of_the_call(fitted: TextClassifier) -> None:
    for text, message in (
        ("", "X: row 2005: a sentence that gives no token"),
        ("a\0", "X: row 2005: a zero character"),
        ("\ud800", "X: row 2005: a character that is no Unicode text"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            fitted.predict([*["a"] * 2004, text])
    with pytest.raises(tarn.DataError, match="^text:2005: "):
        fitted.run_.classify([*["a"] * 2004, ""])
    for label, message in (
        ("y\0", "a zero byte"),
        ("y\n", "a text of several lines"),
        ("y\t", "a label with a control character"),
        ("", "the label is empty"),
    ):
        with pytest.raises(ValueError, match=f"^y: row 2: {message}"):
            TextClassifier(SHORT, **SMALL).fit(["a b", "c"], np.array(["x", label], object))


def test_temporary_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TextClassifier(SHORT, **SMALL).fit(["a b", "c"], ["x", "y"])
        model.fit(["a b", "c"], ["x", "y"])
        gc.collect()
        assert len(os.listdir(tmp_path)) == 1 and list(model.predict(["a"]))
        del model
        gc.collect()
    # An interrupt does not wait for the worker, which removes the folder when it no longer writes there.
    goes_on, names = threading.Event(), []

    def write() -> None:
        goes_on.wait()
        names.extend(path.name for path in tmp_path.iterdir())
        (tmp_path / names[0] / "late").touch()

    with pytest.raises(KeyboardInterrupt), _library.temporary_folder():
        _library.worker.submit(write)
        raise KeyboardInterrupt
    goes_on.set()
    _library.worker.call(lambda: None)
    assert len(names) == 1 and os.listdir(tmp_path) == []


def test_equal_seeds_give_equal_bits() -> None:
    texts, labels = texts_and_labels()
    seeds = (5, 6, np.random.RandomState(1), np.random.RandomState(1), 5)
    found = [TextClassifier(SHORT, random_state=seed, **SMALL).fit(texts, labels).predict_proba(texts) for seed in seeds]
    assert np.array_equal(found[0], found[4]) and np.array_equal(found[2], found[3])
    assert not np.array_equal(found[0], found[1]) and not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("labels", [[3, 1, 3], [True, False, True], ["b", "|a", "b"], np.array(["x", "y", "x"], object)])
def test_labels_of_any_type(labels: Any, tmp_path: Path) -> None:
    model = TextClassifier(SHORT, **SMALL)
    if "|a" in labels:
        with pytest.raises(tarn.DataError, match='^y: row 2: the label "\\|a" begins with a bar'):
            model.fit(["a b", "c d", "a c"], labels)
        return
    found = model.fit(["a b", "c d", "a c"], labels).predict(["a", "b", "c"])
    assert set(found) <= set(labels) and found.dtype == np.asarray(labels).dtype
    model.save(tmp_path)
    assert TextClassifier.load(tmp_path).classes_.dtype == found.dtype


def test_a_description_of_ones_own() -> None:
    frozen = {"mixer": "attention", "heads": 2, "ffn": 16, "frozen": True}
    description = {**SHORT, "encoder": {"layers": "R L"}, "kinds": {"R": frozen}}
    seen: list[str] = []
    model = TextClassifier(description, callback=lambda event: seen.append(event.kind), **SMALL)
    model.fit(*texts_and_labels())
    assert model.run_.frozen_parameters > 0 and model.n_iter_ == 2 and "update" in seen
    assert pickle.loads(pickle.dumps(model.set_params(callback=None))).run_.description["encoder"]["layers"] == "R L"


def test_refused() -> None:
    model, labels = TextClassifier(SHORT, **SMALL), ["x", "y"]
    texts: Any
    for texts, error, message in (
        ("a text", TypeError, "X: a list of texts is expected"),
        (["a", None], TypeError, "X: row 2: a text is expected, not None"),
        ([], ValueError, "there are no texts"),
        (np.array([["a"], ["b"]]), ValueError, "not an array of 2 dimensions"),
        (["a"], ValueError, "inconsistent numbers of samples"),
        (["a", ""], tarn.DataError, "^X: row 2: the text is empty"),
    ):
        with pytest.raises(error, match=message):
            model.fit(texts, labels)
    with pytest.raises(ValueError, match="one class"):
        model.fit(["a", "b"], ["x", "x"])
    with pytest.raises(tarn.UsageError, match="kinds.L.head: unknown key"):
        TextClassifier({"kinds": {"L": {"head": 3}}}, **SMALL).fit(["a b", "c"], labels)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        model.predict(["a"])


class Rows(TextClassifier):
    """Rows of numbers, written as words: what scikit-learn's checks give to estimators."""

    def fit(self, X: Any, y: Any) -> Rows:
        X, y = validate_data(self, X, y)
        super().fit(self._words(X), y)
        return self

    def predict_proba(self, X: Any) -> Any:
        check_is_fitted(self)
        return super().predict_proba(self._words(validate_data(self, X, reset=False)))

    @staticmethod
    def _words(X: Any) -> list[str]:
        numbers = np.clip(np.round(2 * X), -9, 9).astype(int).tolist()
        return [" ".join(f"c{i}v{value}" for i, value in enumerate(row)) for row in numbers]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string = True, False
        return tags


# Those of check_estimator(Rows()) that find the most; all of them take a minute.
CHECKS = [
    "check_classifiers_one_label",
    "check_dict_unchanged",
    "check_estimators_overwrite_params",
    "check_estimators_unfitted",
    "check_fit_idempotent",
    "check_n_features_in",
]


@pytest.mark.filterwarnings("ignore:Can't test estimator")
def test_estimator() -> None:
    estimator_checks.check_estimator(TextClassifier())


@pytest.mark.parametrize("check", CHECKS)
def test_estimator_of_rows(check: str) -> None:
    getattr(estimator_checks, check)("Rows", Rows(SHORT, **SMALL))
