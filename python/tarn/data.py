"""Turns raw text into the data for a training (docs/data.md)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _binding as c
from ._library import PathLike, Text, call, choice, fill, lib, path_bytes, pool, word_bytes, words
from ._sources import Row, Sources, Texts, class_name, joined, number
from .errors import UsageError

OVERLONG = words("TARN_PREPARE_OVERLONG_")


def _fields(result: Any) -> dict[str, Any]:
    return {name: getattr(result, name) for name, _ in result._fields_}


def write_corpus(folder: PathLike, *, sentences: int = 12000, held_out: int = 500, seed: int = 1) -> None:
    """Writes the embedded German-English corpus: train, valid and test, .de and .en each."""
    path = path_bytes(folder)
    options = c.tarn_corpus_options()
    lib.tarn_corpus_default(ctypes.byref(options))
    fill(options, {"output": path, "sentences": sentences, "held_out": held_out, "seed": seed})
    call("tarn_corpus_write", ctypes.byref(options))


def prepare(
    output: PathLike,
    vocab: PathLike,
    *,
    source: Texts | None = None,
    target: Texts | None = None,
    pairs: Iterable[tuple[Text, Text]] | None = None,
    text: Texts | None = None,
    target_vocab: PathLike | None = None,
    min_tokens: int | None = None,
    max_tokens: int | None = None,
    overlong: str = "truncate",
    stream: int | None = None,
    pack: int | None = None,
    strict: bool | None = None,
    threads: int = 0,
    memory: int | None = None,
    shard_bytes: int | None = None,
) -> dict[str, int]:
    """Writes the shard `output`.tarn from raw text, one sentence per line: `source` and `target` for translation,
    `text` for a language model. Each is the path of a file or an iterable of texts: a list, a generator, a column of a
    frame or data set. `pairs`, in place of source and target, has both: an iterable of pairs, or a frame with two
    columns. Returns the counts of `tarn prepare`."""
    kinds = [source is not None or target is not None, pairs is not None, text is not None]
    if sum(kinds) != 1:
        raise UsageError("prepare: source and target, or pairs, or a text, are expected")
    with Sources() as sources:
        sides = {"source": source, "target": target, "text": text}
        files = {name: sources.lines(name, side) for name, side in sides.items() if side is not None}
        if pairs is not None:
            files["source"], files["target"] = sources.pairs(pairs)
        options = c.tarn_prepare_options()
        lib.tarn_prepare_default(ctypes.byref(options))
        paths = {"output": output, "vocab": vocab, "target_vocab": target_vocab}
        fill(options, {name: path_bytes(path) for name, path in paths.items() if path is not None})
        fill(options, files)
        options.overlong = choice("overlong", overlong, OVERLONG)
        options.threads = pool(threads)
        given = {"min_tokens": min_tokens, "max_tokens": max_tokens, "stream": stream, "pack": pack, "strict": strict}
        given |= {"memory": memory, "shard_bytes": shard_bytes}
        fill(options, given)
        result = c.tarn_prepare_result()
        call("tarn_prepare_run", ctypes.byref(result), ctypes.byref(options))
        return _fields(result)


def _mark(name: str, mark: str | None) -> bytes | None:
    if mark is not None and (len(mark) != 1 or not mark.isascii()):
        raise UsageError(f"{name} {mark!r}: one character is expected")
    return mark.encode() if mark is not None else None


def _class_names(table: Any, label: str) -> list[str] | None:
    """The names of the classes that a column of a Hugging Face data set has numbers of."""
    features = getattr(table, "features", None)  # of a frame, a column of that name
    feature = features.get(label) if isinstance(features, Mapping) else None
    feature = getattr(feature, "feature", feature)  # of a list of labels, its items
    names: list[str] | None = getattr(feature, "names", None)
    return names


def _named(value: Any, where: str, names: list[str]) -> Text:
    if not 0 <= value < len(names):
        raise UsageError(f"{where}: {value!r} is none of the {len(names)} classes")
    name: str = names[value]
    return name


def _write_table(sources: Sources, table: Any, columns: list[str], numbers: bool, per_word: bool) -> bytes:
    """Rows as a table: the label, the text, and possibly its partner."""
    names = None if numbers else _class_names(table, columns[0])

    def label(value: Any, where: str) -> Text:
        if names is not None and hasattr(value, "__index__"):
            return _named(value, where, names)
        return number(value, where) if numbers else class_name(value, where)

    def take(place: int, value: Any, where: str) -> Text:
        one: Callable[[Any, str], Text] = (lambda value, _: value) if place else label
        return joined(value, where, one) if per_word else one(value, where)

    return sources.table(table, columns, take)


def prepare_labelled(
    output: PathLike,
    vocab: PathLike,
    table: PathLike | Iterable[Row],
    *,
    text: str | None = None,
    label: str | None = None,
    pair: str | None = None,
    labels_from: PathLike | None = None,
    numbers: bool = False,
    per_word: bool = False,
    header: bool = False,
    max_tokens: int | None = None,
    overlong: str = "truncate",
    strict: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
) -> dict[str, Any]:
    """Writes the shard `output`.tarn from labelled sentences in a table, with columns given by name or number. With
    `per_word` each word of a text has a label; labels, like words, are separated by white space. Returns the counts of
    `tarn prepare --table`.

    `table` is the path of a file, whose `delimiter` is the character between columns, and `decimal` the decimal mark of
    numbers; None: detected. Or it is an iterable of rows: tuples (by default a text and its label), dictionaries, a
    frame, or a data set, of which class numbers become class names unless `numbers`; with `per_word` texts and labels
    may be lists."""
    with Sources() as sources:
        options = c.tarn_labelled_options()
        lib.tarn_labelled_default(ctypes.byref(options))
        fill(options, {"output": path_bytes(output), "vocab": path_bytes(vocab)})
        options.labels_from = path_bytes(labels_from) if labels_from is not None else None
        fill(options, {"numbers": numbers, "per_word": per_word, "max_tokens": max_tokens, "strict": strict})
        options.overlong = choice("overlong", overlong, OVERLONG)
        if isinstance(table, (str, os.PathLike)):
            if text is None or label is None:
                raise UsageError("prepare_labelled: the columns text and label of the table are expected")
            fill(options, {"table": path_bytes(table), "header": header})
            fill(options, {"delimiter": _mark("delimiter", delimiter), "decimal": _mark("decimal", decimal)})
        else:
            if header or delimiter is not None or decimal is not None:
                raise UsageError("prepare_labelled: header, delimiter and decimal are of files; these are rows")
            text, label = "1" if text is None else text, "2" if label is None else label
            columns = [label, text, *([pair] if pair is not None else [])]
            for what, column in zip(("label", "text", "pair"), columns):
                word_bytes(what, column)
            options.table = _write_table(sources, table, columns, numbers, per_word)
            options.delimiter = b","
            label, text, pair = "1", "2", "3" if pair is not None else None
        options.text, options.label = word_bytes("text", text), word_bytes("label", label)
        options.pair = word_bytes("pair", pair) if pair is not None else None
        result = c.tarn_labelled_result()
        call("tarn_labelled_prepare", ctypes.byref(result), ctypes.byref(options))
        return _fields(result)
