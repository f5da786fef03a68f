"""A trained model: a run directory or a checkpoint, opened to translate, score, generate and classify."""

from __future__ import annotations

import ctypes
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, KeysView, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from . import _binding as c
from . import _html
from ._check import bounds, whole
from ._library import (
    Handle,
    PathLike,
    T,
    Text,
    call,
    choice,
    fill,
    lib,
    nearest,
    path_bytes,
    pool,
    strings,
    texts,
    words,
    worker,
)
from .errors import StoppedError, TarnError, UsageError
from .parameters import Parameters, Tensor, Weights, open_info
from .states import Observer, Offer, States
from .vocabulary import Tokens, Vocabulary

TEXTS = ("banned", "stop", "force_words")  # options that are lists of texts
WORDS = {
    "precision": words("TARN_TRANSLATE_PRECISION_"),
    "overlong": words("TARN_TRANSLATE_OVERLONG_"),
    "method": words("TARN_GENERATOR_METHOD_"),
    "mbr": words("TARN_MBR_"),
}
CHOICES = words("TARN_CHECKPOINT_CHOICE_")
BLOCK = 2000  # lines passed to the library at a time, as in the program; an interrupt takes effect between blocks


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a line."""

    text: str
    tokens: int  # with the end of sentence
    log_probability: float  # natural logarithm, sum over the tokens
    score: float  # log_probability / tokens^length_penalty
    attention: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)
    """With alignment=True: the attention of each token to each source token, both with their ends of sentence."""


@dataclass(frozen=True)
class Score:
    """The score of a line under a language model."""

    log_probability: float  # natural logarithm, sum over the tokens
    ids: Tokens  # with the end of sentence
    log_probabilities: NDArray[np.float64]  # of each token
    characters: int  # of the line, plus one for its end
    bytes: int
    unknown: int  # tokens not in the vocabulary
    truncated: bool

    @property
    def perplexity(self) -> float:
        """Per token: exp(-log_probability / tokens)."""
        return float(np.exp(-self.log_probability / len(self.ids)))


@dataclass(frozen=True)
class Continuation:
    """How likely a text continues another one under a language model."""

    log_probability: float  # natural logarithm, sum over the tokens of the continuation
    tokens: int
    greedy: bool  # each of its tokens is the most likely one
    unknown: int  # tokens not in the vocabulary, of both texts
    truncated: bool  # the context lost its beginning to the model's maximum


@dataclass(frozen=True)
class Generated:
    """One continuation of a prompt."""

    text: str  # with the prompt
    continuation: str
    ids: Tokens  # of the continuation
    log_probabilities: NDArray[np.float32]
    log_probability: float
    score: float
    end: str  # "eos", "max_tokens" or "max_length"


@dataclass(frozen=True)
class Label:
    """A classifier's prediction for a line, or for two sentences separated by a tab."""

    label: str  # the most likely class
    probabilities: dict[str, float]  # of all classes
    truncated: bool


@dataclass(frozen=True)
class WordLabels:
    """The labels of the words of a line. A word cut off by truncation has neither label nor probability."""

    words: list[str]
    labels: list[str | None]
    probabilities: list[float | None]
    truncated: bool


def _verbs() -> list[Any]:
    """The verbs of models that predict labels."""
    found: list[Any] = []
    while verb := lib.tarn_verb_at(len(found)):
        found.append(verb.contents)
    return found


def _array(pointer: Any, count: int, kind: Any) -> Any:
    """A copy of numbers in memory that the library reuses."""
    size = np.dtype(kind).itemsize * count
    return np.frombuffer(ctypes.string_at(pointer, size) if size else b"", kind)


def _text(pointer: bytes | None) -> str:
    return (pointer or b"").decode("utf-8", "replace")


def _json(config: Handle) -> str:
    """A description as JSON."""
    text = ctypes.c_char_p()
    call("tarn_config_write_json", config, ctypes.byref(text))
    try:
        return _text(text.value)
    finally:
        call("tarn_config_text_close", ctypes.byref(text))


def find_checkpoint(path: PathLike | bytes, which: str) -> tuple[str, str]:
    """The checkpoint of a run directory to read, with the reason; a file is returned unchanged."""
    found = c.tarn_checkpoint_found()
    number = choice("which", which, CHOICES)
    call("tarn_checkpoint_find", ctypes.byref(found), path if isinstance(path, bytes) else path_bytes(path), number)
    try:
        return os.fsdecode(found.path), _text(found.reason)
    finally:
        call("tarn_checkpoint_found_close", ctypes.byref(found))


class Run:
    """A trained model: `path` is a run directory, with its checkpoint selected by `which` (auto: the best one in
    validation), or a checkpoint file. Each use of a model is opened when first needed and kept: weights are read and
    computed once for each set of options. `threads` 0: all available to the process.

        with tarn.Run("runs/model") as run:
            print(run.translate(["Ein Hund läuft."]))

    `run["encoder.L1.ffn.in.weight"]` is an array of weights, `name in run` and `for name in run` are about their names.
    """

    def __init__(self, path: PathLike, *, which: str = "auto", threads: int = 0) -> None:
        self.threads = whole("threads", threads, 0, bounds(ctypes.c_int)[1])
        self._parameters: Parameters | None = None
        self._users: dict[str, tuple[object, Handle]] = {}
        self._observed: tuple[dict[str, Any], Observer] | None = None
        self._vocabularies: tuple[Vocabulary, Vocabulary] | None = None
        self.checkpoint, self.reason = find_checkpoint(path, which)  # the file, and the reason for it
        self._file = path_bytes(self.checkpoint)
        self._info = open_info(self._file)
        config = Handle(c.tarn_config, "tarn_config_close")
        text = self.info.config
        call("tarn_config_parse", config.out(), self._file, text, len(text), None, 0)
        self.task = _text(lib.tarn_task_word(lib.tarn_config_task(config.pointer)))
        uses = [verb for verb in _verbs() if lib.tarn_config_has_use(config.pointer, verb.word)]
        self._verb = uses[0] if uses else None  # for predicting labels
        self._json = _json(config)
        config.close()

    # --- what it is

    @property
    def info(self) -> Any:
        """The library's tarn_checkpoint_info."""
        return self._info.pointer.contents

    @property
    def description(self) -> dict[str, Any]:
        """The complete description of the training, with every key, in the form for `tarn.train`:
        `run.description["model"]["d_model"]`."""
        self.info  # noqa: B018 - says that the run is closed
        found: dict[str, Any] = json.loads(self._json)
        return found

    @property
    def yaml(self) -> str:
        """The same as the text in the checkpoint."""
        return _text(self.info.config)

    @property
    def update(self) -> int:
        """Number of optimiser steps of its training."""
        return int(self.info.update)

    @property
    def trained_parameters(self) -> int:
        """Number of trained parameters, shared ones counted once."""
        return int(self.info.trained)

    @property
    def frozen_parameters(self) -> int:
        """Number of random parameters that were never trained."""
        return int(self.info.frozen)

    def parameters(self) -> Parameters:
        """The weights by name, as read-only arrays; `run["encoder.R1.ffn.in.weight"]` is one of them."""
        self.info  # noqa: B018 - says that the run is closed
        if self._parameters is None:
            self._parameters = Parameters(self._info)
        return self._parameters

    def keys(self) -> KeysView[str]:
        """The names of the weights, so that `dict(run)` has them all."""
        return self.parameters().keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.parameters())

    def __contains__(self, name: object) -> bool:
        return name in self.parameters()

    def __getitem__(self, name: str) -> Weights:
        return self.parameters()[name]

    def tensor(self, name: str) -> Tensor:
        """Weights as the file has them, in bf16 or int8 if they are stored so, for other libraries:
        `torch.from_dlpack(run.tensor("embeddings.weight")).clone()`. Without the copy they are the file's own memory,
        read-only, which PyTorch is said to ignore: writing to it ends the process (see `tarn.Tensor`)."""
        return self.parameters().tensor(name)

    def _open_vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        if self._vocabularies is None:
            source, target = (Handle(c.tarn_vocab, "tarn_vocab_close", "the vocabulary is closed") for _ in range(2))
            call("tarn_checkpoint_vocabs", source.out(), target.out(), self._file)
            first = Vocabulary._of(source)
            self._vocabularies = first, Vocabulary._of(target) if target else first
        return self._vocabularies

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the source, or of the text."""
        return self._open_vocabularies()[0]

    @property
    def target_vocabulary(self) -> Vocabulary:
        """The vocabulary of the target; the same as `vocabulary` if both sides share one."""
        return self._open_vocabularies()[1]

    def encode(self, lines: Sequence[Text]) -> list[Tokens]:
        """The tokens of source lines, or of a text, without ends of sentence."""
        return self.vocabulary.encode(lines)

    def decode(self, tokens: Sequence[Sequence[int] | Tokens]) -> list[str]:
        """The text of tokens of the target, or of a text."""
        return self.target_vocabulary.decode(tokens)

    # --- what it does

    def _need(self, use: str, *tasks: str) -> None:
        if self.task not in tasks:
            raise UsageError(f"{self.checkpoint}: {use} is for the task {' or '.join(tasks)}; this is {self.task}")

    def _user(self, use: str, kind: Any, key: object, open_it: Callable[[Handle], None], close: str) -> Handle:
        """The translator, scorer, ... opened with these options. One of each kind is kept."""
        self.info  # noqa: B018 - says that the run is closed
        kept = self._users.get(use)
        if kept is not None and kept[0] == key:
            return kept[1]
        self._users.pop(use, None)
        handle = Handle(kind, close, "the run is closed")
        open_it(handle)
        self._users[use] = (key, handle)
        return handle

    def _each(self, lines: list[bytes], kind: Any, function: str, handle: Handle, take: Callable[[Any], T]) -> list[T]:
        """Passes the lines to the library, in blocks like the program, and returns `take` of each result. Results are
        converted on the worker, because the next call of any thread overwrites their memory."""
        found: list[T] = []
        for begin in range(0, len(lines), BLOCK):
            items, lengths, count = strings(lines[begin : begin + BLOCK])

            def work() -> list[T]:
                results = (kind * count)()
                call(function, handle, results, items, lengths, count)
                return [take(result) for result in results]

            with _numbered_from(begin):
                found += worker.call(work)
        return found

    @overload
    def translate(self, lines: Sequence[Text], *, details: Literal[False] = False, **options: Any) -> list[str]: ...
    @overload
    def translate(self, lines: Sequence[Text], *, details: Literal[True], **options: Any) -> list[list[Hypothesis]]: ...

    def translate(
        self, lines: Sequence[Text], *, details: bool = False, **options: Any
    ) -> list[str] | list[list[Hypothesis]]:
        """Translates lines of raw text: returns the best translation of each, or with `details` the `n_best` of each.

        Options (None: the value of the description, or the default of `tarn translate`): beam, length_penalty, n_best,
        max_len_a, max_len_b, of masked translation iterations and length_beam in their place, of a Levenshtein
        Transformer iterations and placeholder_penalty, max_tokens,
        precision (fp32, bf16, int8, int4, or auto: int8 or int4 for a file that holds it, else fp32),
        overlong (truncate or refuse), strict (refuse invalid UTF-8), prefixes (a line is a sentence, a tab, and the
        beginning of its translation), repetition_penalty, presence_penalty, frequency_penalty, no_repeat_ngram, banned
        (texts), groups, diversity_penalty; samples (drawn instead of a search), temperature, top_k, top_p, min_p,
        typical_p, seed, mbr (bleu or chrf: the sample that agrees best with all); force_words (texts that translations
        contain), force_columns (what follows each tab of a line, or each but the first with prefixes, is one of that
        line), coverage_penalty, alignment (with `details`: hypotheses have their `attention`)."""
        self._need("translating", "translation")
        given = texts(lines, "translate")
        handle = self._translator(_translating(options))
        call_of = c.tarn_translate_result, "tarn_translator_lines", handle
        if details:
            return self._each(given, *call_of, _hypotheses)
        return self._each(given, *call_of, _best)

    def _translator(self, given: dict[str, Any]) -> Handle:
        options = c.tarn_translator_options()
        lib.tarn_translator_default(ctypes.byref(options))
        options.threads = pool(self.threads)
        kept = _fill_decoded(options, given)

        def open_it(handle: Handle) -> None:
            call("tarn_translator_open", handle.out(), self._file, ctypes.byref(options))
            kept.clear()  # the library has copies

        return self._user("translate", c.tarn_translator, given, open_it, "tarn_translator_close")

    def score(self, lines: Sequence[Text], **options: Any) -> list[Score]:
        """The log-probability of each line under a language model, and of each of its tokens.

        Options: precision, overlong (refuse, the default, or truncate), max_tokens, strict."""
        texts_given = texts(lines, "score")
        handle = self._scorer(options)
        return self._each(texts_given, c.tarn_lm_line, "tarn_lm_score", handle, _score)

    def continuations(
        self, pairs: Iterable[tuple[Text, Text]], *, bos: bool = True, **options: Any
    ) -> list[Continuation]:
        """The log-probability of the second text of each pair after the first one, as lm-evaluation-harness computes
        it: the space between them belongs to the second. `bos`: an end of sentence is read before the first text, with
        which tarn's models begin.

        Options as for `score`; with overlong "truncate" contexts lose their beginning."""
        given = list(pairs)
        handle = self._scorer(options)
        contexts = texts([first for first, _ in given], "continuations")
        ends = texts([second for _, second in given], "continuations")
        found: list[Continuation] = []
        for begin in range(0, len(given), BLOCK):
            part = slice(begin, begin + BLOCK)
            count = len(contexts[part])
            items = (c.tarn_continuation * count)()
            scores = (c.tarn_continuation_score * count)()
            for item, context, end in zip(items, contexts[part], ends[part]):
                item.context, item.context_length, item.text, item.length = context, len(context), end, len(end)
            with _numbered_from(begin):
                call("tarn_continuations_score", handle, scores, items, count, bos)
            found += [
                Continuation(s.log_probability, s.tokens, bool(s.greedy), s.unknown, bool(s.truncated)) for s in scores
            ]
        return found

    def _scorer(self, options: dict[str, Any]) -> Handle:
        self._need("scoring", "language-model")
        given = _known(options, c.tarn_lm_options, "window", "threads", "ranks")
        opened = c.tarn_lm_options()
        lib.tarn_lm_default(ctypes.byref(opened))
        opened.threads = pool(self.threads)
        fill(opened, given)

        def open_it(handle: Handle) -> None:
            call("tarn_lm_open", handle.out(), self._file, ctypes.byref(opened))

        return self._user("score", c.tarn_lm, given, open_it, "tarn_lm_close")

    def _generator(self, options: dict[str, Any]) -> Handle:
        self._need("generating", "language-model")
        drawing = ("temperature", "top_k", "top_p", "min_p", "typical_p", "mbr")
        if "method" not in options and any(options.get(key) is not None for key in drawing):
            options["method"] = "sample"
        given = _known(options, c.tarn_generator_options, "window", "threads", "stop_count")
        opened = c.tarn_generator_options()
        lib.tarn_generator_default(ctypes.byref(opened))
        opened.threads = pool(self.threads)
        kept = _fill_decoded(opened, given)

        def open_it(handle: Handle) -> None:
            call("tarn_generator_open", handle.out(), self._file, ctypes.byref(opened))
            kept.clear()  # the library has copies

        return self._user("generate", c.tarn_generator, given, open_it, "tarn_generator_close")

    def generate(self, prompts: Sequence[Text] = ("",), **options: Any) -> list[list[Generated]]:
        """Continues each prompt; an empty prompt starts a new sentence.

        Options: method (greedy, beam or sample; sample if temperature, top_k, top_p, min_p, typical_p or mbr is given),
        number, max_tokens, min_tokens, beam, length_penalty, temperature, top_k, top_p, min_p, typical_p, seed, stop
        (strings that end a continuation), repetition_penalty, presence_penalty, frequency_penalty, no_repeat_ngram,
        banned (texts), groups, diversity_penalty, mbr (bleu or chrf: samples by their agreement with all), precision,
        strict."""
        prompts_given = texts(prompts, "generate")
        handle = self._generator(options)
        return self._each(prompts_given, c.tarn_generator_result, "tarn_generator_lines", handle, _continuations)

    def stream(self, prompt: Text, part: Callable[[str], object], **options: Any) -> Generated:
        """Continues one prompt, greedily or by a sample, and calls `part` with the text as it is generated: whole
        characters, without what may become a stop string. If it returns False, the generation ends
        with StoppedError.
        Options as for `generate`."""
        handle = self._generator(options)
        given = texts([prompt], "stream")[0]
        result = c.tarn_generator_result()
        self._tell("tarn_generator_stream", handle, result, given, c.tarn_generator_part, part)
        return _generated(result.texts[0])

    def stream_translation(self, line: Text, part: Callable[[str], object], **options: Any) -> Hypothesis:
        """Translates one line and calls `part` with the text as it is made: with a beam of 1, or one sample, after each
        token, else when it is final, and after each step with an empty text. If it returns False, the translation ends
        with StoppedError.
        Options as for `translate`."""
        self._need("translating", "translation")
        given = texts([line], "stream_translation")[0]
        handle = self._translator(_translating(options))
        result = c.tarn_translate_result()
        self._tell("tarn_translator_stream", handle, result, given, c.tarn_translator_part, part)
        return _hypotheses(result)[0]

    @staticmethod
    def _tell(
        function: str, handle: Handle, result: Any, given: bytes, kind: Any, part: Callable[[str], object]
    ) -> None:
        failed: list[BaseException] = []

        def hear(user: Any, text: bytes, length: int) -> int:
            try:
                return int(c.TARN_STATUS_INTERRUPTED if part(_text(text)) is False else c.TARN_STATUS_OK)
            except BaseException as error:  # noqa: BLE001 - raised again below
                failed.append(error)
                return int(c.TARN_STATUS_INTERRUPTED)

        sink = kind(hear)
        try:
            call(function, handle, ctypes.byref(result), given, len(given), sink, None)
        except StoppedError:
            if failed:
                raise failed[0] from None
            raise StoppedError("the work was stopped") from None

    @property
    def labels(self) -> list[str]:
        """The classes of a classifier, also of one for words."""
        if self._verb is None or not self._verb.words:
            self._need("the classes", "classification")
        kept = self._users.get("classify")
        handle = kept[1] if kept is not None else self._classifier({})
        count = lib.tarn_classifier_classes(handle.pointer)
        return [_text(lib.tarn_classifier_label(handle.pointer, i)) for i in range(count)]

    def _classifier(self, given: dict[str, Any]) -> Handle:
        opened = c.tarn_classify_options()
        lib.tarn_classify_default(ctypes.byref(opened))
        opened.threads = pool(self.threads)
        fill(opened, given)

        def open_it(handle: Handle) -> None:
            call("tarn_classifier_open", handle.out(), self._file, ctypes.byref(opened))

        return self._user("classify", c.tarn_classifier, given, open_it, "tarn_classifier_close")

    def _answers(self, lines: Sequence[Text], handle: Handle, take: Callable[[Any], Any]) -> list[Any]:
        given_lines = texts(lines, "classify")
        found: list[Any] = []

        def add(user: Any, number: int, result: Any) -> int:
            found.append(take(result.contents))
            return int(c.TARN_STATUS_OK)

        sink = c.tarn_classify_sink(add)
        for begin in range(0, len(given_lines), BLOCK):
            items, lengths, count = strings(given_lines[begin : begin + BLOCK])
            with _numbered_from(begin):
                call("tarn_classifier_lines", handle, items, lengths, count, sink, None)
        return found

    def classify(self, lines: Sequence[Text], **options: Any) -> list[Label]:
        """The class of each line, or of each pair of sentences separated by a tab, with the probabilities of all
        classes.

        Options: precision, overlong (truncate or refuse), max_tokens, strict."""
        self._need("classifying", "classification")
        handle = self._classifier(_known(options, c.tarn_classify_options, "verb", "window", "threads", "ranks"))
        names = self.labels

        def take(result: Any) -> Label:
            shares = {name: float(result.probabilities[i]) for i, name in enumerate(names)}
            return Label(names[result.order[0]], shares, bool(result.truncated))

        return self._answers(lines, handle, take)

    def regress(self, lines: Sequence[Text], **options: Any) -> NDArray[np.float64]:
        """The number predicted by a regression model for each line, or for each pair separated by a tab; options as for
        `classify`."""
        self._need("regression", "regression")
        handle = self._classifier(_known(options, c.tarn_classify_options, "verb", "window", "threads", "ranks"))
        return np.array(self._answers(lines, handle, lambda result: result.number), np.float64)

    def __getattr__(self, name: str) -> Callable[..., list[WordLabels]]:
        """A method for each verb of models that predict labels of words: `run.tag(lines)`, with the options of
        `classify`. The words of a line are separated by white space."""
        verb = next((verb for verb in _verbs() if verb.words and _text(verb.word) == name), None)
        if verb is None:
            raise AttributeError(f"a run has no {name}")

        def method(lines: Sequence[Text], **options: Any) -> list[WordLabels]:
            if self._verb is None or self._verb.word != verb.word:
                raise UsageError(f"{self.checkpoint}: {_text(verb.doing)} is for {_text(verb.models)}")
            return self._label_words(lines, options)

        return method

    def _label_words(self, lines: Sequence[Text], options: dict[str, Any]) -> list[WordLabels]:
        handle = self._classifier(_known(options, c.tarn_classify_options, "verb", "window", "threads", "ranks"))
        names = self.labels

        def take(result: Any) -> tuple[int, str, str | None, float | None, bool]:
            best = result.order[0] if result.order else None
            return (
                result.word,
                ctypes.string_at(result.text, result.length).decode("utf-8", "replace"),
                names[best] if best is not None else None,
                float(result.probabilities[best]) if best is not None else None,
                bool(result.truncated),
            )

        found: list[WordLabels] = []
        for word, text, label, probability, truncated in self._answers(lines, handle, take):
            if word == 0:
                found.append(WordLabels([], [], [], truncated))
            found[-1].words.append(text)
            found[-1].labels.append(label)
            found[-1].probabilities.append(probability)
        return found

    def offers(self) -> list[Offer]:
        """The arrays that `states` can compute, in the order of the layers."""
        return self._observer({}).offered()

    def states(
        self, lines: Sequence[Text], names: Sequence[str], *, targets: Sequence[Text] | None = None, **options: Any
    ) -> States:
        """The internal states of the model for given texts: `names` are those of `offers()`, such as "encoder.3",
        "decoder.1.attention", "output.top5", and may have * for any characters. `targets`: for a translation model the
        translations, required for everything outside the encoder.

        Options: precision, overlong (refuse or truncate), max_tokens, max_memory, max_result, strict."""
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise TypeError(f"states: a list of names is expected, not {names!r}")
        return self._observer(options).compute(names, lines, targets)

    def _observer(self, options: dict[str, Any]) -> Observer:
        self.info  # noqa: B018 - says that the run is closed
        given = _known(options, c.tarn_states_options, "threads", "progress", "user")
        kept = self._observed
        if kept is None or kept[0] != given:
            self._observed = kept = (given, Observer(self.checkpoint, self.threads, given))
        return kept[1]

    def close(self) -> None:
        """Frees all memory; the run cannot be used any more. Its arrays stay valid."""
        for _, handle in self._users.values():
            handle.close()
        self._users.clear()
        if self._observed is not None:
            self._observed[1].handle.close()
            self._observed = None
        if self._parameters is None:
            self._info.close()
        else:  # arrays of weights may be views of the file, which is closed with the last of them
            self._info = Handle(c.tarn_checkpoint_info, "tarn_checkpoint_info_close", "the run is closed")
            self._parameters = None

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _repr_html_(self) -> str:
        if not self._info:
            return _html.cell(repr(self))
        description = self.description
        layers = [(f"{side} layers", description.get(side, {}).get("layers")) for side in ("encoder", "decoder")]
        pairs = [
            ("task", self.task),
            ("update", self.update),
            *layers,
            ("d_model", description["model"]["d_model"]),
            ("trained parameters", self.trained_parameters),
            ("frozen parameters", self.frozen_parameters),
            ("precision", _text(self.info.precision)),
            ("vocabulary", self.info.source_vocab or self.info.target_vocab),
            ("chosen for", self.reason or None),
        ]
        return _html.facts(self.checkpoint, pairs)

    def __repr__(self) -> str:
        return f"<tarn.Run {self.checkpoint}: {self.task}>"


@contextmanager
def _numbered_from(begin: int) -> Iterator[None]:
    """The library numbers the lines of a block; an error message has the number in the call."""
    try:
        yield
    except TarnError as failure:
        line = re.sub(r"^(text|context|continuation):(\d+)(?=: )", lambda at: f"{at[1]}:{begin + int(at[2])}", str(failure))
        failure.args = (line,)
        raise


def _known(options: dict[str, Any], kind: Any, *others: str) -> dict[str, Any]:
    """Checks the names of options, and converts words to their values. `others` are fields that are not options."""
    names = [name for name, _ in kind._fields_ if name not in others]
    if "decoding" in names:  # its fields count as options of their own
        names.remove("decoding")
        names += [field[0] for field in c.tarn_decoding._fields_ if field[0] != "banned_count"]
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name not in names:
            near = nearest(name, names)
            meant = f'did you mean "{near}"? There' if near else "there"
            raise TypeError(f'there is no option "{name}"; {meant} are {", ".join(names)}')
        if value is None:
            continue
        given[name] = choice(name, value, WORDS[name]) if name in WORDS else value
    return given


def _translating(options: dict[str, Any]) -> dict[str, Any]:
    others = ("window", "threads", "prune", "profile", "ranks", "force_words_count")
    return _known(options, c.tarn_translator_options, *others)


def _fill_decoded(options: Any, given: dict[str, Any]) -> list[Any]:
    """Sets the given fields of a structure and of its `decoding`; returns what must live until the library has copies."""
    kept: list[Any] = []
    for name, value in given.items():
        to = options if any(name == field for field, _ in options._fields_) else options.decoding
        if name in TEXTS:
            items, _, count = strings(texts(value, name))
            kept.append(items)
            setattr(to, name + "_count", count)
            value = ctypes.cast(items, ctypes.POINTER(ctypes.c_char_p))
        setattr(to, name, value)
    return kept


# Conversions of the library's results to Python objects; called on the worker.


def _best(result: Any) -> str:
    return _text(result.hypotheses[0].text)


def _hypotheses(result: Any) -> list[Hypothesis]:
    return [_hypothesis(result.hypotheses[i], result.source_tokens) for i in range(result.count)]


def _hypothesis(item: Any, source_tokens: int) -> Hypothesis:
    attention = None
    if item.attention:
        attention = _array(item.attention, item.tokens * source_tokens, np.float32).reshape(item.tokens, source_tokens)
    return Hypothesis(_text(item.text), item.tokens, item.log_probability, item.score, attention)


def _score(line: Any) -> Score:
    return Score(
        log_probability=line.log_probability,
        ids=_array(line.ids, line.tokens, np.int32),
        log_probabilities=_array(line.log_probabilities, line.tokens, np.float64),
        characters=line.characters,
        bytes=line.bytes,
        unknown=line.unknown,
        truncated=bool(line.truncated),
    )


def _continuations(result: Any) -> list[Generated]:
    return [_generated(result.texts[i]) for i in range(result.count)]


def _generated(item: Any) -> Generated:
    return Generated(
        text=_text(item.text),
        continuation=_text(item.continuation),
        ids=_array(item.ids, item.tokens, np.int32),
        log_probabilities=_array(item.log_probabilities, item.tokens, np.float32),
        log_probability=item.log_probability,
        score=item.score,
        end=_text(lib.tarn_generator_end_word(item.end)),
    )
