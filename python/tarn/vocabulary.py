"""Vocabularies: text to tokens and back (docs/vocabularies.md)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _binding as c
from ._check import bounds, integers, whole
from ._library import Handle, PathLike, Text, call, choice, fill, lib, path_bytes, paths, strings, texts, words, worker
from ._sources import Sources, is_path

TYPES = words("TARN_VOCAB_TYPE_")
NORMALIZATIONS = [lib.tarn_vocab_normalization_name(i).decode() for i in range(c.TARN_VOCAB_NORMALIZATION_COUNT)]
Tokens = NDArray[np.int32]


class Vocabulary:
    """Turns text into token ids and back: a file written by `tarn vocab`, GPT-2's or BERT's files, or, by
    `Run.vocabulary`, the vocabulary of a model."""

    def __init__(self, path: PathLike) -> None:
        self._handle = Handle(c.tarn_vocab, "tarn_vocab_close", "the vocabulary is closed")
        call("tarn_vocab_open", self._handle.out(), path_bytes(path))

    @classmethod
    def _of(cls, handle: Handle) -> Vocabulary:
        vocabulary = cls.__new__(cls)
        vocabulary._handle = handle
        return vocabulary

    @classmethod
    def train(
        cls,
        output: PathLike,
        files: Iterable[PathLike] = (),
        *,
        texts: Iterable[Text] | None = None,
        type: str = "bpe",
        size: int | None = None,
        lowercase: bool | None = None,
        character_coverage: float | None = None,
        byte_fallback: bool | None = None,
        minimum_count: int | None = None,
        sentences: int | None = None,
        memory: int | None = None,
        mask_symbols: bool | None = None,
        allow_loss: bool | None = None,
        threads: int | None = None,
        normalization: str = "auto",
    ) -> Vocabulary:
        """Trains a vocabulary on the lines of the files, and on `texts`, an iterable of lines (a list, a generator, a
        column of a frame or data set); writes it to `output` and opens it. `type` is one of bpe,
        unigram, whitespace, byte (which takes no files) and char; `normalization` one of those of `tarn vocab`
        (docs/vocabularies.md); None is the default of `tarn vocab`."""
        options = c.tarn_vocab_options()
        lib.tarn_vocab_default(ctypes.byref(options))
        options.type = choice("type", type, TYPES)
        options.normalization = choice("normalization", normalization, NORMALIZATIONS)
        given = {
            "size": size,
            "lowercase": lowercase,
            "character_coverage": character_coverage,
            "byte_fallback": byte_fallback,
            "minimum_count": minimum_count,
            "sentences": sentences,
            "memory": memory,
            "mask_symbols": mask_symbols,
            "allow_loss": allow_loss,
            "threads": threads,
        }
        fill(options, given)
        given_files = paths(files, "files")
        with Sources() as sources:
            if is_path(texts):
                raise TypeError(f"texts: a list of texts is expected, not {texts!r}; files are the second argument")
            if texts is not None:
                given_files.append(sources.lines("texts", texts))
            names, _, count = strings(given_files)
            call("tarn_vocab_train", path_bytes(output), names, count, ctypes.byref(options))
        return cls(output)

    def __len__(self) -> int:
        """Number of tokens; ids are 0 .. len - 1."""
        return int(lib.tarn_vocab_size(self._handle.pointer))

    @property
    def eos(self) -> int:
        """Id of the end of sentence."""
        return int(lib.tarn_vocab_eos(self._handle.pointer))

    @property
    def unk(self) -> int:
        """Id of the unknown token, or -1."""
        return int(lib.tarn_vocab_unk(self._handle.pointer))

    @property
    def kind(self) -> str:
        """Its kind in words, such as "SentencePiece bpe"."""
        return str(lib.tarn_vocab_kind(self._handle.pointer).decode())

    @property
    def normalization(self) -> str:
        """Its normalisation of a text before tokenization, such as "nmt_nfkc"; "identity": none."""
        return str(lib.tarn_vocab_normalization_of(self._handle.pointer).decode())

    @property
    def keeps_joiners(self) -> bool:
        """Whether U+200C and U+200D, which spell words in Persian, Sinhala and others, are kept."""
        return bool(lib.tarn_vocab_keeps_joiners(self._handle.pointer))

    @property
    def hash(self) -> str:
        """Hash of the vocabulary's bytes, used by models and data to refer to it."""
        return str(lib.tarn_vocab_hash(self._handle.pointer).decode())

    def piece(self, token: int) -> str:
        """The text of one token, such as "▁Haus"; "" for an invalid id."""
        number = whole("token", token, *bounds(ctypes.c_int32))
        return str(lib.tarn_vocab_piece(self._handle.pointer, number).decode("utf-8", "replace"))

    def pieces(self, tokens: Iterable[int]) -> list[str]:
        """The texts of tokens."""
        return [self.piece(token) for token in tokens]

    def encode(self, lines: Sequence[Text]) -> list[Tokens]:
        """The tokens of each line, without an end of sentence."""
        given = texts(lines, "encode")

        def work() -> list[Tokens]:
            ids, found = c.tarn_vocab_ids(), []
            try:
                for line in given:
                    lib.tarn_vocab_encode(self._handle.pointer, ctypes.byref(ids), line, len(line))
                    # The buffer is reused for the next line.
                    bytes_of = ctypes.string_at(ids.data, 4 * ids.count) if ids.count else b""
                    found.append(np.frombuffer(bytes_of, np.int32))
            finally:
                lib.tarn_vocab_ids_close(ctypes.byref(ids))
            return found

        return worker.call(work)

    def decode(self, tokens: Sequence[Iterable[int]]) -> list[str]:
        """The text of each list of tokens; bytes that are not UTF-8 are replaced by U+FFFD."""
        if isinstance(tokens, (str, bytes)) or not isinstance(tokens, Iterable):
            raise TypeError(f"decode: a list of lists of tokens is expected, not {tokens!r}")
        lists = [integers("decode: token", ids) for ids in tokens]

        def work() -> list[str]:
            text, found = c.tarn_vocab_text(), []
            try:
                for ids in lists:
                    data = ids.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
                    lib.tarn_vocab_decode(self._handle.pointer, ctypes.byref(text), data, ids.size)
                    found.append(ctypes.string_at(text.data, text.length).decode("utf-8", "replace"))
            finally:
                lib.tarn_vocab_text_close(ctypes.byref(text))
            return found

        return worker.call(work)

    def close(self) -> None:
        """Frees the memory; the vocabulary cannot be used any more."""
        self._handle.close()

    def __repr__(self) -> str:
        return f"<tarn.Vocabulary of {len(self)} tokens>" if self._handle else "<tarn.Vocabulary, closed>"
