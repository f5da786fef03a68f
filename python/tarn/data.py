"""Turns raw text into the data for a training (docs/data.md)."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _binding as c
from ._library import PathLike, call, choice, fill, lib, path_bytes, pool, word_bytes, words
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
    source: PathLike | None = None,
    target: PathLike | None = None,
    text: PathLike | None = None,
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
    `text` for a language model. Returns the counts of `tarn prepare`."""
    if (text is None) == (source is None and target is None):
        raise UsageError("prepare: source and target, or a text, are expected")
    paths = {"output": output, "vocab": vocab, "source": source, "target": target, "text": text}
    paths["target_vocab"] = target_vocab
    options = c.tarn_prepare_options()
    lib.tarn_prepare_default(ctypes.byref(options))
    fill(options, {name: path_bytes(path) for name, path in paths.items() if path is not None})
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


def prepare_labelled(
    output: PathLike,
    vocab: PathLike,
    table: PathLike,
    *,
    text: str,
    label: str,
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
    `per_word` each word of a text has a label; labels, like words, are separated by white space. `delimiter` is the
    character between columns, `decimal` the decimal mark of numbers; None: detected. Returns the counts of
    `tarn prepare --table`."""
    options = c.tarn_labelled_options()
    lib.tarn_labelled_default(ctypes.byref(options))
    fill(options, {"output": path_bytes(output), "vocab": path_bytes(vocab), "table": path_bytes(table)})
    options.labels_from = path_bytes(labels_from) if labels_from is not None else None
    options.text, options.label = word_bytes("text", text), word_bytes("label", label)
    options.pair = word_bytes("pair", pair) if pair is not None else None
    options.overlong = choice("overlong", overlong, OVERLONG)
    fill(options, {"numbers": numbers, "per_word": per_word, "header": header, "max_tokens": max_tokens, "strict": strict})
    fill(options, {"delimiter": _mark("delimiter", delimiter), "decimal": _mark("decimal", decimal)})
    result = c.tarn_labelled_result()
    call("tarn_labelled_prepare", ctypes.byref(result), ctypes.byref(options))
    return _fields(result)
