#!/usr/bin/env python3
"""Measures tarn, in turns (A B A B ...) with the peers that are installed: training, translation, kernels, and how cost
grows. bench/performance.md tells what is measured and how; --list names the measurements. Environment: TARN (the
program), TARN_BUILD (folder of the measuring programs), TARN_DATA (folder that holds multi30k/), TARN_PEERS (folder of
torch_mt.py), PYTHON (Pythons with the peers' packages, colons between them), TCMALLOC and OPENBLAS (a library and the
folder of one that PyTorch runs faster with), THREADS (default 2)."""

import argparse
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import architectures
import characters
import dynamics
import freezing
import generation
import growth
import kernels
import labelled
import language
import masked
import parts
import peak
import peers
import ranks
import serving
import threads
import training
import translation
from data import CharacterData, Data, ImageData, LabelledData, LanguageData, MaskedData, PartsData
from settings import TARN, Failure, Usage, say
from tables import print_table


# A group is a module with NAMES, measure(context, names), which gives {name: entry}, and table(entries).
GROUPS = {"peak": peak, "training": training, "language": language, "masked": masked, "labelled": labelled, "characters": characters,
          "parts": parts, "architectures": architectures,
          "freezing": freezing, "threads": threads, "ranks": ranks,
          "translation": translation, "generation": generation, "serving": serving, "kernels": kernels, "growth": growth,
          "dynamics": dynamics}


class Context:
    """What the measurements share; data and peers are made when the first of them asks."""

    def __init__(self, folder, rounds, updates):
        self.folder, self.rounds, self._updates = folder, rounds, updates
        self._data = self._language = self._masked = self._labelled = self._characters = self._parts = self._images = self._peers = None

    def updates(self, usual):
        return self._updates or usual

    def data(self):
        if self._data is None:
            say("preparing Multi30k ...")
            self._data = Data(self.folder)
        return self._data

    def language_data(self):
        if self._language is None:
            say("preparing random text ...")
            self._language = LanguageData(self.folder)
        return self._language

    def masked_data(self):
        if self._masked is None:
            say("preparing rows of random words ...")
            self._masked = MaskedData(self.folder)
        return self._masked

    def parts_data(self):
        if self._parts is None:
            say("preparing rows of few random words ...")
            self._parts = PartsData(self.folder)
        return self._parts

    def image_data(self):
        if self._images is None:
            say("drawing digits ...")
            self._images = ImageData(self.folder)
        return self._images

    def labelled_data(self):
        if self._labelled is None:
            say("preparing labelled sentences of random words ...")
            self._labelled = LabelledData(self.folder)
        return self._labelled

    def character_data(self):
        if self._characters is None:
            say("preparing random letters ...")
            self._characters = CharacterData(self.folder)
        return self._characters

    def peers(self):
        if self._peers is None:
            self._peers = peers.find()
        return self._peers


def choose(wanted):
    """For each group the names that are wanted, by themselves or with their group."""
    known = set(GROUPS).union(*(group.NAMES for group in GROUPS.values()))
    for name in wanted:
        if name not in known:
            raise Usage(f'there is no measurement "{name}"; there are the groups {", ".join(GROUPS)}, and\n  ' +
                        "\n  ".join(" ".join(group.NAMES) for group in GROUPS.values()))
    return {key: [name for name in group.NAMES if not wanted or key in wanted or name in wanted]
            for key, group in GROUPS.items()}


def count(text):
    value = int(text)
    if not 1 <= value <= 1000000:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 1,000,000")
    return value


def arguments():
    parser = argparse.ArgumentParser(prog="run bench", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", default=[],
                        help="measure this, or this group; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the groups and their measurements, and stop")
    parser.add_argument("--rounds", type=count, default=3, help="turns of each side (default 3)")
    parser.add_argument("--updates", type=count,
                        help="updates of each training, the first 3 not counted (default 15; 12 for growth, "
                             "33 for language, 800 for the model of translation)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--output", metavar="FILE", help="write the JSON to a file as well")
    return parser.parse_args()


def main():
    options = arguments()
    if options.list:
        for key, group in GROUPS.items():
            print(f"{key}: {' '.join(group.NAMES)}")
        return
    chosen = choose(options.only)
    if not os.access(TARN, os.X_OK):
        raise Failure(f"{TARN} is not there: ./run build, or set TARN")
    with tempfile.TemporaryDirectory() as folder:
        context = Context(folder, options.rounds, options.updates)
        results = {key: GROUPS[key].measure(context, names) for key, names in chosen.items() if names}
    flat = json.dumps({name: entry for entries in results.values() for name, entry in entries.items()}, indent=2)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(flat + "\n")
    if options.json:
        print(flat)
        return
    for key, entries in results.items():
        if entries:
            print_table(*GROUPS[key].table(entries))


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        say(f"bench: {failure}")
        sys.exit(failure.code)
    except OSError as error:
        say(f"bench: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
