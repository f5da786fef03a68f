"""A run as a model of EleutherAI's lm-evaluation-harness (the package lm_eval), for tasks that `tarn choices` does not read:

    import lm_eval
    import tarn.lm_eval

    lm_eval.simple_evaluate(model="tarn", model_args="path=runs/lm", tasks=["arc_easy"])

Contexts that are too long for the model lose their beginning, as the harness does it. Prompts of generation that are too
long, and whole texts of more tokens than the model takes, are refused.
"""

from __future__ import annotations

from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from .errors import UsageError
from .run import Run


@register_model("tarn")
class TarnLM(LM):
    """`path` and `which` as for tarn.Run; `bos`: contexts begin with an end of sentence, as tarn's models do (the harness's
    add_bos_token); generation always begins so. A device and sizes of batches, which the harness passes to every model, have no effect."""

    def __init__(
        self,
        path: str,
        which: str = "auto",
        threads: int = 0,
        bos: bool = True,
        precision: str = "auto",
        batch_size: Any = None,
        max_batch_size: Any = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        self.run = Run(path, which=which, threads=threads)
        self.bos = bos
        self.precision = precision

    def _pairs(self, pairs: list[tuple[str, str]], overlong: str) -> list[tuple[float, bool]]:
        found = self.run.continuations(pairs, bos=self.bos, overlong=overlong, precision=self.precision)
        return [(one.log_probability, one.greedy) for one in found]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """The log-probability of a continuation after a context, and whether it is the greedy one."""
        return self._pairs([request.args for request in requests], "truncate")

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """The log-probability of a whole text."""
        return [score for score, _ in self._pairs([("", request.args[0]) for request in requests], "refuse")]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Continues contexts until one of the texts `until`."""
        found = []
        for number, request in enumerate(requests):
            context, given = request.args
            found.append(self._generate(context, given, number))
        return found

    def _generate(self, context: str, given: dict[str, Any], number: int) -> str:
        given = {key: value for key, value in given.items() if value is not None}
        until = given.pop("until", [])
        lengths = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
        tokens = [given.pop(key) for key in lengths if key in given]
        options: dict[str, Any] = {"max_tokens": tokens[0] if tokens else 256, "precision": self.precision}
        if stop := [until] if isinstance(until, str) else [text for text in until if text]:
            options["stop"] = stop
        draws = bool(given.pop("do_sample", given.get("temperature", 0.0) > 0))
        keys = ("temperature", "top_p", "top_k", "min_p", "typical_p")
        drawing = {key: given.pop(key) for key in keys if key in given}
        if draws and drawing.get("temperature", 1.0) > 0:
            # The harness asks for several samples of a text by the same request several times.
            options |= drawing | {"method": "sample", "seed": 1 + number}
        if given:
            raise UsageError(f"tarn.lm_eval: the task wants {', '.join(sorted(given))}, which this model has not")
        return self.run.generate([context], **options)[0][0].continuation
