"""Every public function, method and property of the package, on good and on bad arguments.

A use is a row of `USES`: what it is, once as it is meant, and once as it is not, with the error that this must be.
What becomes public and has no row fails the last test."""

from __future__ import annotations

import dataclasses
import inspect
import math
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tarn

try:
    import tarn.series
    import tarn.text
except ImportError:
    pass  # without scikit-learn there are no estimators, and nothing of them to use

SERIES = hasattr(tarn, "series")
Use = Callable[[Any], object]
CLOSED = tarn.UsageError
USES: dict[str, tuple[Use, Use | None, type[Exception] | None]] = {}


def use(name: str, good: Use, bad: Use | None, error: type[Exception] | None) -> None:
    assert name not in USES
    USES[name] = good, bad, error


def never_fails(name: str, good: Use) -> None:
    """It takes no arguments, and nothing can be closed."""
    use(name, good, None, None)


# What a test uses: `w.run` translates, `w.text` is a language model, `w.labels` a classifier, `w.number` a regression
# model; `w.closed` is a run that was closed. `w.new` is a path that nobody has.

never_fails("version", lambda w: tarn.version().split("."))
never_fails("build_info", lambda w: "instruction set" in tarn.build_info())
use(
    "write_corpus",
    lambda w: tarn.write_corpus(w.new, sentences=5, held_out=2) is None,
    lambda w: tarn.write_corpus(w.new, sentences=2**64),
    tarn.UsageError,
)
use(
    "to_yaml",
    lambda w: tarn.to_yaml({"a": {"b": [1, True, None, "c"]}}) == 'a: {"b": [1, yes, null, "c"]}\n',
    lambda w: tarn.to_yaml({"a": math.nan}),
    tarn.UsageError,
)
use(
    "prepare",
    lambda w: tarn.prepare(w.new, w.vocab, text=w.lines)["pairs"] > 0,
    lambda w: tarn.prepare(w.new, w.vocab, text=w.lines, stream=2**63),
    tarn.UsageError,
)
use(
    "prepare_labelled",
    lambda w: tarn.prepare_labelled(w.new, w.vocab, w.table, text="text", label="label")["rows"] == 4,
    lambda w: tarn.prepare_labelled(w.new, w.vocab, w.table, text=3, label="label"),
    TypeError,
)
use(
    "train",
    lambda w: tarn.train(w.description, w.new, overrides=w.short).update == 2,
    lambda w: tarn.train(w.description, w.new, threads=1.5),
    TypeError,
)
use(
    "train_seeds",
    lambda w: len(tarn.train_seeds(w.description, w.new, overrides={**w.short, "train.seeds": [1, 2]})) == 2,
    lambda w: tarn.train_seeds(None, w.new),
    tarn.UsageError,
)
use("results", lambda w: tarn.results(w.trained.run), lambda w: tarn.results(), tarn.UsageError)

use("Vocabulary", lambda w: tarn.Vocabulary(w.vocab), lambda w: tarn.Vocabulary(5), TypeError)
use(
    "Vocabulary.train",
    lambda w: tarn.Vocabulary.train(w.new, [w.lines], type="char", size=40, allow_loss=True),
    lambda w: tarn.Vocabulary.train(w.new, str(w.lines)),
    TypeError,
)
use("Vocabulary.eos", lambda w: w.v.eos >= 0, lambda w: w.v_closed.eos, CLOSED)
use("Vocabulary.unk", lambda w: w.v.unk >= 0, lambda w: w.v_closed.unk, CLOSED)
use("Vocabulary.kind", lambda w: w.v.kind, lambda w: w.v_closed.kind, CLOSED)
use("Vocabulary.normalization", lambda w: w.v.normalization or True, lambda w: w.v_closed.normalization, CLOSED)
use("Vocabulary.keeps_joiners", lambda w: w.v.keeps_joiners in (True, False), lambda w: w.v_closed.keeps_joiners, CLOSED)
use("Vocabulary.hash", lambda w: len(w.v.hash) == 32, lambda w: w.v_closed.hash, CLOSED)
use("Vocabulary.piece", lambda w: w.v.piece(w.v.eos), lambda w: w.v.piece(2**40), tarn.UsageError)
use("Vocabulary.pieces", lambda w: w.v.pieces([w.v.eos]), lambda w: w.v.pieces([1.5]), TypeError)
use("Vocabulary.encode", lambda w: w.v.encode(["Ein Hund"]), lambda w: w.v.encode([5]), TypeError)
use("Vocabulary.decode", lambda w: w.v.decode([[5, 6]]), lambda w: w.v.decode([[len(w.v)]]), tarn.DataError)
never_fails("Vocabulary.close", lambda w: tarn.Vocabulary(w.vocab).close() is None)

use(
    "Run",
    lambda w: tarn.Run(w.trained.run, which="last", threads=1),
    lambda w: tarn.Run(w.trained.run, which="beast"),
    tarn.UsageError,
)
use("Run.info", lambda w: w.run.info.update == 40, lambda w: w.closed.info, CLOSED)
use("Run.description", lambda w: w.run.description["model"], lambda w: w.closed.description, CLOSED)
use("Run.yaml", lambda w: "model:" in w.run.yaml, lambda w: w.closed.yaml, CLOSED)
use("Run.update", lambda w: w.run.update == 40, lambda w: w.closed.update, CLOSED)
use("Run.trained_parameters", lambda w: w.run.trained_parameters > 0, lambda w: w.closed.trained_parameters, CLOSED)
use("Run.frozen_parameters", lambda w: w.run.frozen_parameters > 0, lambda w: w.closed.frozen_parameters, CLOSED)
use("Run.parameters", lambda w: w.run.parameters()["embeddings.weight"], lambda w: w.closed.parameters(), CLOSED)
use("Run.keys", lambda w: "embeddings.weight" in w.run.keys(), lambda w: w.closed.keys(), CLOSED)
use("Run.tensor", lambda w: w.run.tensor("embeddings.weight"), lambda w: w.run.tensor("embedding"), KeyError)
use("Run.vocabulary", lambda w: w.run.vocabulary, lambda w: w.missing.vocabulary, tarn.NotFoundError)
use(
    "Run.target_vocabulary",
    lambda w: w.run.target_vocabulary,
    lambda w: w.missing.target_vocabulary,
    tarn.NotFoundError,
)
use("Run.encode", lambda w: w.run.encode(["Ein Hund"]), lambda w: w.run.encode("Ein Hund"), TypeError)
use("Run.decode", lambda w: w.run.decode([[5]]), lambda w: w.run.decode([5]), TypeError)
use(
    "Run.translate",
    lambda w: w.run.translate(["Ein Hund"], beam=2),
    lambda w: w.run.translate(["Ein Hund"], beam=2**64 + 3),
    tarn.UsageError,
)
use("Run.continuations", lambda w: w.text.continuations([("A", " dog")]), lambda w: w.run.continuations([("A", "b")]), tarn.UsageError)
use("Run.score", lambda w: w.text.score(["A dog"]), lambda w: w.run.score(["A dog"]), tarn.UsageError)
use(
    "Run.generate",
    lambda w: w.text.generate(["A"], top_p=0.5, max_tokens=3),
    lambda w: w.text.generate(["A"], top_p=math.nan),
    tarn.UsageError,
)
use(
    "Run.stream",
    lambda w: w.text.stream("A", lambda text: None, max_tokens=3),
    lambda w: w.text.stream("A", lambda text: None, beam=2, method="beam"),
    tarn.UsageError,
)
use(
    "Run.stream_translation",
    lambda w: w.run.stream_translation("Ein Hund", lambda text: None, beam=1),
    lambda w: w.text.stream_translation("A", lambda text: None),
    tarn.UsageError,
)
use("Run.classify", lambda w: w.labels.classify(["a fine film"]), lambda w: w.labels.classify([1]), TypeError)
use("Run.labels", lambda w: w.labels.labels == ["bad", "good"], lambda w: w.run.labels, tarn.UsageError)
use(
    "Run.regress",
    lambda w: w.number.regress(["a fine film"]).shape == (1,),
    lambda w: w.number.regress(["a"], strict=2),
    TypeError,
)
use("Run.offers", lambda w: w.run.offers(), lambda w: w.closed.offers(), CLOSED)
use(
    "Run.states",
    lambda w: w.run.states(["Ein Hund"], ["encoder.1"]),
    lambda w: w.run.states(["Ein Hund"], ["encoder.99"]),
    tarn.UsageError,
)
never_fails("Run.close", lambda w: tarn.Run(w.trained.run).close() is None)

use(
    "Parameters.about",
    lambda w: w.parameters.about("embeddings.weight").trained,
    lambda w: w.parameters.about(5),
    KeyError,
)
use(
    "Parameters.tensor",
    lambda w: w.parameters.tensor("embeddings.weight").dtype == "float32",
    lambda w: w.parameters.tensor(5),
    KeyError,
)
never_fails("Parameters.table", lambda w: w.parameters.table()["rows"].sum() > 0)
never_fails(
    "Parameter.shape",
    lambda w: w.parameters.about("embeddings.weight").shape == w.parameters["embeddings.weight"].shape,
)
use("States.all", lambda w: w.states.all("encoder.1"), lambda w: w.states.all("encoder.1.attention"), tarn.UsageError)
never_fails("Scores.get", lambda w: w.trained.scores.get("valid/bleu") > 0 and w.trained.scores.get("blue", 7) == 7)
never_fails("Score.perplexity", lambda w: w.text.score(["A dog"])[0].perplexity > 1)
use("Trained.open", lambda w: w.trained.open(threads=1), lambda w: w.trained.open(threads=-1), tarn.UsageError)

use("Results.runs", lambda w: w.results.runs()["seed"], lambda w: w.results_closed.runs(), CLOSED)
use(
    "Results.curves",
    lambda w: w.results.curves("valid_bleu")["value"],
    lambda w: w.results.curves("valid_blue"),
    tarn.UsageError,
)
use(
    "Results.compare",
    lambda w: w.results.compare(metric="valid_loss").rows,
    lambda w: w.results.compare(resamples=2**70),
    tarn.UsageError,
)
use(
    "Comparison.report",
    lambda w: w.comparison.report(w.new, title="a title") or (w.new / "report.html").exists(),
    lambda w: w.comparison.report(5),
    TypeError,
)
use("Comparison.figures", lambda w: w.comparison.figures()["loss-time"], lambda w: w.comparison_closed.figures(), CLOSED)
never_fails("Results.close", lambda w: tarn.results(w.trained.run).close() is None)
use("Records.where", lambda w: w.curves.where(step=20, name="valid_loss"), lambda w: w.curves.where(stop=20), KeyError)


def frame(w: Any) -> object:
    pytest.importorskip("pandas")
    return len(w.curves.frame())


def frame_without_pandas(w: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "pandas", None)
        w.curves.frame()


use("Records.frame", frame, frame_without_pandas, ImportError)

if SERIES:
    Forecaster, Regressor = tarn.series.ESNForecaster, tarn.series.ESNRegressor
    use(
        "series.lorenz",
        lambda w: tarn.series.lorenz(30).shape == (30, 3),
        lambda w: tarn.series.lorenz(2**64),
        tarn.UsageError,
    )
    use(
        "series.mackey_glass",
        lambda w: tarn.series.mackey_glass(30, tau=17).shape == (30, 1),
        lambda w: tarn.series.mackey_glass(3.5),
        TypeError,
    )
    use("series.ESNForecaster", lambda w: Forecaster(units=5), lambda w: Forecaster(5, 5), TypeError)
    use(
        "series.ESNForecaster.fit",
        lambda w: Forecaster(units=5).fit(w.x),
        lambda w: Forecaster(units=2**64).fit(w.x),
        tarn.UsageError,
    )
    use(
        "series.ESNForecaster.predict",
        lambda w: w.forecaster.predict(w.x).shape == w.x.shape,
        lambda w: w.forecaster.predict(w.x[:, [0, 0]]),
        ValueError,
    )
    use(
        "series.ESNForecaster.forecast",
        lambda w: w.forecaster.forecast(3).shape == (3, 1),
        lambda w: w.forecaster.forecast(2**63),
        tarn.UsageError,
    )
    use(
        "series.ESNForecaster.save",
        lambda w: w.forecaster.save(w.new) is None,
        lambda w: w.forecaster.save(w.new / "a" / "b"),
        tarn.FileError,
    )
    use(
        "series.ESNForecaster.matrices",
        lambda w: w.forecaster.matrices()[0].shape == (5, 5),
        lambda w: Forecaster().matrices(),
        ValueError,
    )
    use("series.ESNRegressor", lambda w: Regressor(units=5), lambda w: Regressor(unit=5), TypeError)
    use(
        "series.ESNRegressor.fit",
        lambda w: Regressor(units=5).fit(w.x, w.x),
        lambda w: Regressor(units=5, standardize=1).fit(w.x, w.x),
        TypeError,
    )
    use(
        "series.ESNRegressor.predict",
        lambda w: w.regressor.predict(w.x).shape == w.x.shape,
        lambda w: Regressor().predict(w.x),
        ValueError,
    )
    use(
        "series.ESNRegressor.transform",
        lambda w: w.regressor.transform(w.x).shape == (60, 5),
        lambda w: w.regressor.transform([]),
        ValueError,
    )
    use(
        "series.ESNRegressor.matrices",
        lambda w: w.regressor.matrices()[2].shape == (5,),
        lambda w: Regressor().matrices(),
        ValueError,
    )
    use(
        "series.ESNRegressor.get_feature_names_out",
        lambda w: len(w.regressor.get_feature_names_out()) == 5,
        lambda w: Regressor().get_feature_names_out(),
        ValueError,
    )
    Classifier = tarn.text.TextClassifier
    use("text.TextClassifier", lambda w: Classifier(d_model=16), lambda w: Classifier(model=16), TypeError)
    use(
        "text.TextClassifier.fit",
        lambda w: w.quick().fit(["a b", "c d"], [1, 2]),
        lambda w: Classifier(epochs=2**70).fit(["a b", "c d"], [1, 2]),
        tarn.UsageError,
    )
    use(
        "text.TextClassifier.predict",
        lambda w: w.classifier.predict(["a", "b", "c"]).shape == (3,),
        lambda w: w.classifier.predict("a"),
        TypeError,
    )
    use(
        "text.TextClassifier.predict_proba",
        lambda w: w.classifier.predict_proba(["a"]).shape == (1, 2),
        lambda w: Classifier().predict_proba(["a"]),
        ValueError,
    )
    use(
        "text.TextClassifier.save",
        lambda w: w.classifier.save(w.new) is None,
        lambda w: Classifier().save(w.new),
        ValueError,
    )
    use(
        "text.TextClassifier.load",
        lambda w: w.classifier.save(w.new) or Classifier.load(w.new),
        lambda w: Classifier.load(w.new),
        tarn.NotFoundError,
    )


@pytest.fixture(scope="module")
def world(
    trained: tarn.Trained,
    text_run: tarn.Trained,
    corpus: Path,
    description: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SimpleNamespace]:
    folder = tmp_path_factory.mktemp("world")
    w = SimpleNamespace(trained=trained, vocab=corpus / "vocab", lines=corpus / "valid.de", description=description)
    w.short = {"train.max_updates": 2, "valid.at_start": False, "valid.bleu": False}
    rows = [
        f"a {word} film\t{label}"
        for word, label in (("fine", "good"), ("poor", "bad"), ("nice", "good"), ("odd", "bad"))
    ]
    w.table = folder / "table"
    w.table.write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    w.run, w.text = trained.open(threads=1), text_run.open(threads=1)
    for name, task in (("labels", "classification"), ("number", "regression")):
        numbers = task == "regression"
        table = folder / f"{name}-table"
        table.write_text(
            w.table.read_text().replace("good", "2").replace("bad", "1") if numbers else w.table.read_text()
        )
        columns: dict[str, Any] = {"text": "text", "label": "label", "numbers": numbers}
        tarn.prepare_labelled(folder / name, w.vocab, table, **columns)
        data = {"vocab": w.vocab, "train": folder / name}
        model = {"d_model": 16, "task": task}
        kinds = {"L": {"mixer": "attention", "heads": 2, "ffn": 16}}
        limits = {"max_updates": 1, "max_tokens": 100, "threads": 1}
        other: dict[str, Any] = {
            "model": model,
            "encoder": {"layers": "L"},
            "kinds": kinds,
            "data": data,
            "train": limits,
        }
        other["head"] = {"pool": "mean"}
        setattr(w, name, tarn.train(other, folder / f"{name}-run").open(threads=1))
    w.closed = trained.open()
    w.closed.close()
    gone = folder / "gone.safetensors"
    gone.write_bytes(Path(trained.checkpoint).read_bytes())
    w.missing = tarn.Run(gone)
    gone.unlink()
    w.v, w.v_closed = tarn.Vocabulary(w.vocab), tarn.Vocabulary(w.vocab)
    w.v_closed.close()
    w.results, w.results_closed = tarn.results(trained.run), tarn.results(trained.run)
    w.comparison, w.comparison_closed = w.results.compare(), w.results_closed.compare()
    w.results_closed.close()
    w.curves, w.parameters = w.results.curves(), w.run.parameters()
    w.states = w.run.states(["Ein Hund", "Ein"], ["encoder.1", "encoder.1.attention"])
    if SERIES:
        limits = {"train": {"max_updates": 2, "warmup": 1}}
        w.quick = lambda: tarn.text.TextClassifier(limits, d_model=16, ffn=16, threads=1)
        w.classifier = w.quick().fit(["a b", "c d"], [1, 2])
        w.x = tarn.series.mackey_glass(60)
        w.forecaster, w.regressor = Forecaster(units=5).fit(w.x), Regressor(units=5).fit(w.x, w.x)
    yield w
    for run in (w.run, w.text, w.labels, w.number, w.missing):
        run.close()


@pytest.mark.parametrize("name", USES)
def test_good_and_bad(name: str, world: SimpleNamespace, tmp_path: Path) -> None:
    good, bad, error = USES[name]
    world.new = tmp_path / "good"
    found = good(world)
    assert found is not None and found is not False
    world.new = tmp_path / "bad"
    if bad is None or error is None:
        return  # of never_fails()
    with pytest.raises(error) as told:
        bad(world)
    if error.__module__.startswith("tarn"):
        assert str(told.value) and "\n" not in str(told.value)


def public(module: Any, prefix: str) -> Iterator[str]:
    """The names of a module: functions, classes that a user makes, and what these have of their own."""
    for name in module.__all__ if hasattr(module, "__all__") else vars(module):
        one = getattr(module, name)
        if name.startswith("_") or getattr(one, "__module__", "").split(".")[0] != "tarn":
            continue
        if prefix and one.__module__ != module.__name__:
            continue
        if inspect.isfunction(one):
            yield prefix + name
        if not inspect.isclass(one) or issubclass(one, Exception):
            continue
        if not dataclasses.is_dataclass(one) and name not in MADE:
            yield prefix + name
        for parent in one.__mro__:
            if parent.__module__.split(".")[0] == "tarn":
                for member, what in vars(parent).items():
                    if not member.startswith("_") and (
                        callable(what) or isinstance(what, (property, classmethod, staticmethod))
                    ):
                        yield f"{prefix}{name}.{member}"


# Classes that the package makes, and nobody else.
MADE = {"Comparison", "Figure", "Parameters", "Records", "Results", "Scores", "States", "Tensor"}


def test_nothing_public_is_left_out() -> None:
    names = {*public(tarn, "")}
    if SERIES:
        names |= {*public(tarn.series, "series."), *public(tarn.text, "text.")}
    assert names == set(USES)
    assert len(names) > 50


def test_errors_can_be_sent_to_another_process() -> None:
    """As multiprocessing does."""
    errors = [one for one in vars(tarn).values() if isinstance(one, type) and issubclass(one, tarn.TarnError)]
    assert len(errors) > 10
    for error in errors:
        again = pickle.loads(pickle.dumps(error("a line")))
        assert type(again) is error and str(again) == "a line"


def test_the_rest_of_the_mappings(world: SimpleNamespace) -> None:
    """What the protocols of Python ask for: lengths, order, membership, representations."""
    w = world
    assert [*w.states] == ["encoder.1", "encoder.1.attention"] and len(w.states) == 2 and "encoder.2" not in w.states
    assert len(w.parameters) == len([*w.parameters]) and "embeddings.weight" in w.parameters and 5 not in w.parameters
    assert [*w.run] == [*w.parameters] and "embeddings.weight" in w.run and 5 not in w.run and "embedding" not in w.run
    assert dict(w.run).keys() == w.parameters.keys()
    for mapping in (w.states, w.parameters, w.run, w.trained.scores):
        for name in ("nothing", 5, None):
            with pytest.raises(KeyError) as told:
                mapping[name]
            assert "\n" not in str(told.value) and not str(told.value).startswith('"')
    for one in (w.run, w.closed, w.v, w.v_closed, w.results, w.results_closed, w.states, w.parameters, w.run.tensor("embeddings.weight")):
        assert repr(one).startswith("<tarn.") and "object at" not in repr(one)
    assert isinstance(w.curves[0], dict) and len(w.curves[:2]) == 2 and isinstance(w.curves["value"], np.ndarray)
    assert len(w.v) > 10 and "<table" in w.curves[:2]._repr_html_()
    with w.trained.open() as run:
        assert run.update == 40
