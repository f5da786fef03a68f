"""Using models: what comes out is what the program prints."""

from __future__ import annotations

import gc
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarn
from tarn import _library

PROGRAM = os.environ.get("TARN", "")
needs_program = pytest.mark.skipif(not PROGRAM, reason="TARN does not name the program")


def program(*arguments: str | Path, text: str = "") -> str:
    command = [PROGRAM, *map(str, arguments)]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_what_a_run_is(trained: tarn.Trained) -> None:
    with trained.open() as run:
        assert run.task == "translation" and run.update == 40 and run.checkpoint == trained.checkpoint
        assert run.trained_parameters > run.frozen_parameters > 0
        assert "d_model: 32" in run.yaml
        shares = run.parameters().table()
        assert any(not row["trained"] and row["recipe"] and row["uses"] == 2 for row in shares)
    with pytest.raises(tarn.UsageError, match="closed"):
        run.translate(["Ein Hund ."])
    run.close()


@needs_program
def test_translate_as_the_program(trained: tarn.Trained, corpus: Path) -> None:
    text = (corpus / "valid.de").read_text()
    lines = text.splitlines()
    with trained.open() as run:
        assert run.translate(lines, beam=3) == program("translate", trained.run, "--beam", "3", text=text).splitlines()
        found = run.translate([*lines, ""], beam=3, n_best=2, details=True, precision="bf16")
        assert [len(best) for best in found] == [2] * len(lines) + [1]
        assert found[-1][0].text == "" and all(a.score >= b.score for a, b in found[:-1])
        assert run.translate([]) == []
        first, last = run.decode([[20], [30]])
        forced = run.translate([lines[0], f"{lines[1]}\t{last}"], beam=4, force_words=[first], force_columns=True)
        assert all(first in line for line in forced) and last in forced[1]
        aligned = run.translate([lines[0], ""], beam=3, details=True, alignment=True, coverage_penalty=0.3)
        attention = aligned[0][0].attention
        assert attention is not None and attention.shape == (aligned[0][0].tokens, len(run.encode(lines[:1])[0]) + 1)
        assert np.allclose(attention.sum(1), 1, atol=1e-5) and aligned[1][0].attention is None
        assert found[0][0].attention is None
        parts: list[str] = []
        for beam in (1, 3):
            parts.clear()
            whole = run.stream_translation(lines[0], parts.append, beam=beam)
            assert "".join(parts) == whole.text == run.translate(lines[:1], beam=beam)[0]
            assert len(parts) >= whole.tokens and (beam > 1) == (len([p for p in parts if p]) == 1)
        read: list[object] = []  # what hears a part may ask for more, also with more samples than threads
        run.stream_translation(lines[0], lambda part: read.append(run.encode(lines[:1])), samples=4)
        assert read
        with pytest.raises(tarn.StoppedError, match="was stopped"):
            run.stream_translation(lines[0], lambda part: False, beam=1)


def test_wrong_options(trained: tarn.Trained) -> None:
    with trained.open() as run:
        with pytest.raises(tarn.UsageError, match="beam"):
            run.translate(["Ein Hund ."], beam=5000)
        with pytest.raises(TypeError, match='no option "bean"'):
            run.translate(["Ein Hund ."], bean=5)
        with pytest.raises(tarn.UsageError, match='"fp8": one of fp32, bf16, int8, int4'):
            run.translate(["Ein Hund ."], precision="fp8")
        with pytest.raises(TypeError, match="a list"):
            run.translate("Ein Hund .")
        with pytest.raises(tarn.DataError, match="line 2"):
            run.translate([b"Ein", b"\xff"], strict=True)
        with pytest.raises(tarn.UsageError, match="scoring is for the task language-model"):
            run.score(["a dog"])
        assert run.translate(["Ein Hund ."])  # it goes on working
    with pytest.raises(tarn.TarnError, match="nowhere"):
        tarn.Run("nowhere")


@needs_program
def test_score_as_the_program(text_run: tarn.Trained, corpus: Path) -> None:
    lines = (corpus / "valid.en").read_text().splitlines()
    with text_run.open() as run:
        scores = run.score(lines)
        assert len(scores) == len(lines)
        total = sum(score.log_probability for score in scores)
        tokens = sum(len(score.ids) for score in scores)
        for score in scores:
            assert math.isclose(score.log_probabilities.sum(), score.log_probability, rel_tol=1e-9)
            assert score.ids.dtype == np.int32 and score.ids[-1] == run.vocabulary.eos
            assert math.isclose(score.perplexity, math.exp(-score.log_probability / len(score.ids)))
        said = program("score", text_run.run, corpus / "valid.en", "--summary-only")
        assert f"perplexity {math.exp(-total / tokens):.3f}"[:15] in said


def test_generate(text_run: tarn.Trained) -> None:
    with text_run.open() as run:
        greedy = run.generate(["The dog"], max_tokens=5)
        assert greedy == run.generate(["The dog"], max_tokens=5) or np.array_equal(
            greedy[0][0].ids, run.generate(["The dog"], max_tokens=5)[0][0].ids
        )
        drawn = run.generate(["The dog", ""], top_p=0.9, number=3, seed=2, max_tokens=6)
        assert [len(texts) for texts in drawn] == [3, 3]
        for text in drawn[0]:
            assert 1 <= len(text.ids) <= 6 and text.end in ("eos", "max_tokens", "max_length")
            assert math.isclose(text.log_probabilities.astype(float).sum(), text.log_probability, rel_tol=1e-5)
        long = run.generate(["The dog"], max_tokens=9, min_tokens=9)[0][0].continuation
        stopped = run.generate(["The dog"], stop=[long[2:5]], max_tokens=9, min_tokens=9)[0][0]
        assert stopped.end == "stop" and stopped.continuation == long[: long.index(long[2:5])]
        once = run.generate(["The dog"], no_repeat_ngram=1, banned=[long.split()[0]], repetition_penalty=1.2, max_tokens=6)[0][0]
        assert len(set(once.ids.tolist())) == len(once.ids)
        ranked = run.generate(["The dog"], top_p=0.9, number=5, mbr="chrf", max_tokens=6)[0]
        assert [text.score for text in ranked] == sorted((text.score for text in ranked), reverse=True)
        parts: list[str] = []
        streamed = run.stream("The dog", parts.append, max_tokens=9, min_tokens=9)
        assert "".join(parts) == streamed.continuation == long
        with pytest.raises(tarn.StoppedError):
            run.stream("The dog", lambda text: False, max_tokens=9, min_tokens=9)
        with pytest.raises(ZeroDivisionError):
            run.stream("The dog", lambda text: 1 / 0, max_tokens=9, min_tokens=9)
        with pytest.raises(tarn.UsageError, match="a stop string must have at least one byte"):
            run.generate(["The dog"], stop=[""])
        with pytest.raises(TypeError, match='no option "no_repeat"'):
            run.generate(["The dog"], no_repeat=2)
        again = run.generate(["The dog"], top_p=0.9, number=3, seed=2, max_tokens=6)
        assert [text.text for text in again[0]] == [text.text for text in drawn[0]]


def test_vocabulary(trained: tarn.Trained, corpus: Path) -> None:
    vocabulary = tarn.Vocabulary(corpus / "vocab")
    lines = (corpus / "train.de").read_text().splitlines()[:20]
    tokens = vocabulary.encode(lines)
    assert all(ids.dtype == np.int32 and (ids < len(vocabulary)).all() for ids in tokens)
    known = [i for i, ids in enumerate(tokens) if vocabulary.unk not in ids]
    assert known
    for i in known:
        assert vocabulary.decode([tokens[i]]) == [lines[i]]
        assert " ".join(vocabulary.pieces(tokens[i])) == lines[i]
    assert vocabulary.decode([[], list(tokens[known[0]])]) == ["", lines[known[0]]]
    with trained.open() as run:
        assert run.vocabulary.hash == vocabulary.hash and run.target_vocabulary is run.vocabulary
        assert np.array_equal(run.encode(lines)[0], tokens[0])
    with pytest.raises(tarn.DataError):
        vocabulary.decode([[len(vocabulary)]])


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> tarn.Trained:
    folder = tmp_path_factory.mktemp("labels")
    words = {"good": ["fine", "nice"], "bad": ["poor", "awful"]}
    rows = [f"a {word} film {i}\t{label}" for i in range(20) for label, some in words.items() for word in some]
    (folder / "table").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    (folder / "lines").write_text("\n".join(row.split("\t")[0] for row in rows) + "\n")
    tarn.Vocabulary.train(folder / "vocab", [folder / "lines"], type="whitespace", size=60, mask_symbols=True)
    tarn.prepare_labelled(folder / "train", folder / "vocab", folder / "table", text="text", label="label")
    description: dict[str, Any] = {
        "model": {"d_model": 16, "task": "classification"},
        "encoder": {"layers": "L"},
        "kinds": {"L": {"mixer": "attention", "heads": 2, "ffn": 32}},
        "data": {"vocab": folder / "vocab", "train": folder / "train"},
        "train": {"max_updates": 60, "max_tokens": 300, "lr": 0.01, "warmup": 5},
    }
    return tarn.train(description, folder / "run")


@needs_program
def test_classify_as_the_program(classifier: tarn.Trained, tmp_path: Path) -> None:
    lines = ["a nice film 3", "a poor film 4", "a fine film 5"]
    (tmp_path / "lines").write_text("\n".join(lines) + "\n")
    with classifier.open() as run:
        assert run.task == "classification" and run.labels == ["bad", "good"]
        found = run.classify(lines)
        assert [answer.label for answer in found] == ["good", "bad", "good"]
        assert all(math.isclose(sum(answer.probabilities.values()), 1, rel_tol=1e-6) for answer in found)
        said = program("classify", classifier.run, tmp_path / "lines").splitlines()
        assert [line.split()[0] for line in said] == ["good", "bad", "good"]
        with pytest.raises(tarn.DataError, match="^text:2: more than one tab"):
            run.classify(["a", "a\tb\tc"])
        with pytest.raises(tarn.UsageError, match="regression is for the task regression"):
            run.regress(lines)


@needs_program
def test_tag_as_the_program(tmp_path: Path) -> None:
    names = ["ann", "bob", "kim", "lee"]
    rows = [f"in {a} {b} goes\tO B-LOC I-LOC O" for a in names for b in names]
    rows += [f"goes {a} red\tO B-PER O" for a in names]
    (tmp_path / "table").write_text("\n".join(rows) + "\n")
    (tmp_path / "lines").write_text("\n".join(row.split("\t")[0] for row in rows) + "\n")
    tarn.Vocabulary.train(tmp_path / "vocab", [tmp_path / "lines"], type="whitespace", size=60, mask_symbols=True)
    done = tarn.prepare_labelled(
        tmp_path / "train", tmp_path / "vocab", tmp_path / "table", text="1", label="2", per_word=True
    )
    assert done["words"] == sum(len(row.split("\t")[1].split()) for row in rows)
    description: dict[str, Any] = {
        "model": {"d_model": 16, "task": "tagging", "max_length": 12},
        "encoder": {"layers": "L"},
        "kinds": {"L": {"mixer": "attention", "heads": 2, "ffn": 32}},
        "data": {"vocab": tmp_path / "vocab", "train": tmp_path / "train"},
        "train": {"max_updates": 80, "max_tokens": 300, "lr": 0.01, "warmup": 5},
    }
    lines = ["in ann kim goes", "goes  lee red"]
    (tmp_path / "two").write_text("\n".join(lines) + "\n")
    with tarn.train(description, tmp_path / "run").open() as run:
        assert run.task == "tagging" and run.labels == ["B-LOC", "B-PER", "I-LOC", "O"]
        found = run.tag(lines)
        assert [one.words for one in found] == [line.split() for line in lines]
        assert [one.labels for one in found] == [["O", "B-LOC", "I-LOC", "O"], ["O", "B-PER", "O"]]
        assert all(p is not None and 0 < p <= 1 for one in found for p in one.probabilities)
        said = program("tag", tmp_path / "run", tmp_path / "two", "--labels").splitlines()
        assert said == [" ".join(str(label) for label in one.labels) for one in found]
        cut = run.tag(["ann " * 20])[0]
        assert cut.truncated and len(cut.words) == 20 and cut.labels[-1] is None
        with pytest.raises(tarn.UsageError, match="classifying is for the task classification"):
            run.classify(lines)
        with pytest.raises(tarn.DataError, match="^text:1: a sentence without a word"):
            run.tag([" "])
        with pytest.raises(AttributeError, match="a run has no tagg"):
            run.tagg(lines)


def test_tagging_is_of_tagging_models(classifier: tarn.Trained) -> None:
    with classifier.open() as run, pytest.raises(tarn.UsageError, match="tagging is for a tagging model"):
        run.tag(["a"])


def test_regression(tmp_path: Path) -> None:
    rows = [f"{'good ' * n}{'bad ' * (4 - n)}film\t{n}" for n in range(5)] * 8
    (tmp_path / "table").write_text("text\tstars\n" + "\n".join(rows) + "\n")
    (tmp_path / "lines").write_text("\n".join(row.split("\t")[0] for row in rows) + "\n")
    tarn.Vocabulary.train(tmp_path / "vocab", [tmp_path / "lines"], type="whitespace", size=20, mask_symbols=True)
    columns: dict[str, Any] = {"text": "text", "label": "stars", "numbers": True}
    told = tarn.prepare_labelled(tmp_path / "train", tmp_path / "vocab", tmp_path / "table", **columns)
    assert told["rows"] == 40 and told["least"] == 0 and told["greatest"] == 4
    description: dict[str, Any] = {
        "model": {"d_model": 16, "task": "regression", "dropout": 0},
        "encoder": {"layers": "L"},
        "head": {"pool": "mean"},
        "kinds": {"L": {"mixer": "attention", "heads": 2, "ffn": 32}},
        "data": {"vocab": tmp_path / "vocab", "train": tmp_path / "train"},
        "train": {"max_updates": 150, "max_tokens": 300, "lr": 0.01, "warmup": 5},
    }
    with tarn.train(description, tmp_path / "run").open() as run:
        low, high = run.regress(["bad bad bad bad film", "good good good good film"])
        assert high - low > 2


def test_an_interrupt_is_raised_at_once(trained: tarn.Trained, corpus: Path) -> None:
    """What was computed goes on to its end, and the model is used as before."""
    lines = (corpus / "train.de").read_text().splitlines()
    with trained.open(threads=1) as run:
        expected = run.translate(lines[:3], beam=8)
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            run.translate(lines * 200, beam=8)
        assert run.translate(lines[:3], beam=8) == expected


def test_an_interrupted_opening_is_closed(trained: tarn.Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library goes on to open what nobody waits for any more."""
    # Translators that other tests have left are closed before this one counts.
    gc.collect()
    _library.worker.call(lambda: None)
    closed: list[int] = []
    close = _library.lib.tarn_translator_close

    def note(place: Any) -> None:
        closed.append(1)
        close(place)

    def interrupt(job: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_library.lib, "tarn_translator_close", note)
    with trained.open() as run:
        with monkeypatch.context() as patched:
            patched.setattr(_library._Job, "wait", interrupt)
            try:
                run.translate(["Ein Hund ."])
            except KeyboardInterrupt:
                pass
        gc.collect()
        for _ in range(2):  # until it is open, and until it is closed
            _library.worker.call(lambda: None)
        assert closed == [1]


def test_threads_of_the_caller_go_on(trained: tarn.Trained, corpus: Path) -> None:
    """While the library computes, another thread of Python counts."""
    lines = (corpus / "train.de").read_text().splitlines()
    counted, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            counted[0] += 1

    with trained.open(threads=1) as run:
        run.translate(lines[:1])
        other = threading.Thread(target=count)
        other.start()
        before = counted[0]
        run.translate(lines, beam=4)
        assert counted[0] > before + 100
        done.set()
        other.join()


def test_models_on_several_threads(trained: tarn.Trained, corpus: Path) -> None:
    """Each reads what its own lines gave, however often the interpreter changes between the threads."""
    lines = (corpus / "valid.de").read_text().splitlines()
    parts, names = [lines[i::4] for i in range(4)], ["encoder.0", "encoder.2", "encoder.3", "encoder.4"]
    interval = sys.getswitchinterval()
    with trained.open(threads=1) as run:

        def use(part: int) -> tuple[list[str], Any]:
            return run.translate(parts[part]), run.states(parts[part], [names[part]]).all(names[part])

        expected, found = [use(i) for i in range(4)], []

        def repeat(part: int) -> None:
            for _ in range(5):
                found.append((part, *use(part)))

        workers = [threading.Thread(target=repeat, args=(i,)) for i in range(4)]
        sys.setswitchinterval(1e-6)
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        finally:
            sys.setswitchinterval(interval)
    assert len(found) == 20
    for part, translations, states in found:
        assert translations == expected[part][0]
        assert np.array_equal(states, expected[part][1])


def test_what_is_closed_is_refused(trained: tarn.Trained, corpus: Path) -> None:
    vocabulary, results = tarn.Vocabulary(corpus / "vocab"), tarn.results(trained.run)
    vocabulary.close()
    results.close()
    uses: list[Callable[[], object]] = [
        lambda: len(vocabulary),
        lambda: vocabulary.eos,
        lambda: vocabulary.piece(1),
        lambda: vocabulary.encode(["Ein Hund ."]),
        lambda: vocabulary.decode([[1]]),
        lambda: results.compare(),
        lambda: results.runs(),
    ]
    for use in uses:
        with pytest.raises(tarn.UsageError, match="the (vocabulary is|results are) closed"):
            use()
    assert "closed" in repr(vocabulary)


def test_denormal_numbers_stay_the_callers(trained: tarn.Trained) -> None:
    """The library lets denormal numbers be zero on its own threads only."""
    with trained.open() as run:
        run.translate(["Ein Hund ."])
    assert np.float64(5e-324) * np.float64(1) > 0


def test_fork(trained: tarn.Trained) -> None:
    with trained.open() as run:
        expected = run.translate(["Ein Hund ."])
    child = os.fork()
    if child == 0:
        with trained.open() as run:
            os._exit(0 if run.translate(["Ein Hund ."]) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
