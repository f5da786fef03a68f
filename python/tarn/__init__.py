"""tarn: translation and language models whose layers can be random, frozen and shared, on an ordinary CPU.

    import tarn

    tarn.train("model.yaml", "runs/model", callback=lambda event: event.kind == "update" and event.loss < 1)
    with tarn.Run("runs/model") as run:
        print(run.translate(["Ein Hund läuft."]))

The libraries libtarn.so and libtarn-lab.so are next to this package's files. See docs/python.md.
"""

from ._library import build_info, version
from .data import prepare, prepare_labelled, write_corpus
from .errors import (
    BusyError,
    DataError,
    FileError,
    InternalError,
    NotFoundError,
    NumericError,
    OutOfMemoryError,
    StoppedError,
    TarnError,
    UnknownNameError,
    UnsupportedError,
    UsageError,
)
from .parameters import Parameter, Parameters, Tensor
from .results import Comparison, Figure, Records, Results, Scores, results
from .run import Continuation, Generated, Hypothesis, Label, Run, Score, WordLabels
from .states import Offer, States
from .training import Event, Trained, to_yaml, train, train_seeds
from .vocabulary import Vocabulary

__version__ = version()

__all__ = [
    "BusyError",
    "Comparison",
    "Continuation",
    "DataError",
    "Event",
    "FileError",
    "Figure",
    "Generated",
    "Hypothesis",
    "InternalError",
    "Label",
    "NotFoundError",
    "NumericError",
    "Offer",
    "OutOfMemoryError",
    "Parameter",
    "Parameters",
    "Records",
    "Results",
    "Run",
    "Score",
    "Scores",
    "States",
    "StoppedError",
    "TarnError",
    "Tensor",
    "Trained",
    "UnknownNameError",
    "UnsupportedError",
    "UsageError",
    "Vocabulary",
    "WordLabels",
    "build_info",
    "prepare",
    "prepare_labelled",
    "results",
    "to_yaml",
    "train",
    "train_seeds",
    "version",
    "write_corpus",
]
