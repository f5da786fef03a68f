"""Writes decoding.cases: what transformers' processors of logits and its sampling make of rows of logits.

usage: make_decoding.py OUTPUT    (transformers 5, torch)

A case is a line of options, the tokens so far (those of the prompt first), the logits, and what is expected: of a
processor the changed logits, of sampling the probabilities. Presence and frequency penalty, which transformers lacks,
are computed by the formula of OpenAI's interface: logit - frequency * count - presence * (count > 0), over what was
generated.
"""

import random
import sys

import torch
from transformers.generation import logits_process as processors

WORDS = 24


def line(*items):
    return " ".join(str(item) for item in items) + "\n"


def floats(row):
    return line(*(f"{float(x):.9g}" for x in row))


def process(case, so_far, prompt, logits):
    ids = torch.tensor([so_far], dtype=torch.long)
    row = logits[None].clone()
    if case["repetition"] != 1:
        row = processors.RepetitionPenaltyLogitsProcessor(case["repetition"])(ids, row)
    counts = torch.bincount(ids[0, prompt:], minlength=WORDS).float()
    row = row - case["frequency"] * counts - case["presence"] * (counts > 0)
    if case["ngram"] > 0:
        row = processors.NoRepeatNGramLogitsProcessor(case["ngram"])(ids, row)
    if case["banned"]:
        row = processors.NoBadWordsLogitsProcessor(case["banned"])(ids, row)
    return row[0]


def sample(case, logits):
    row = logits[None].clone()
    ids = torch.zeros((1, 1), dtype=torch.long)
    row = processors.TemperatureLogitsWarper(case["temperature"])(ids, row)
    if case["top_k"] > 0:
        row = processors.TopKLogitsWarper(case["top_k"])(ids, row)
    if case["top_p"] < 1:
        row = processors.TopPLogitsWarper(case["top_p"])(ids, row)
    if case["min_p"] > 0:
        row = processors.MinPLogitsWarper(case["min_p"])(ids, row)
    if case["typical_p"] < 1:
        row = processors.TypicalLogitsWarper(case["typical_p"])(ids, row)
    return torch.softmax(row[0].double(), -1)


def main():
    torch.manual_seed(5)
    rng = random.Random(5)
    with open(sys.argv[1], "w", encoding="ascii") as out:
        for number in range(60):
            length = rng.choice([0, 1, 2, 5, 12, 40])
            so_far = [rng.randrange(rng.choice([4, WORDS])) for _ in range(length)]
            prompt = rng.randint(0, length)
            case = {
                "repetition": rng.choice([1, 1, 1.3, 0.7, 5.0]),
                "presence": rng.choice([0, 0, 0.75, -1.5]),
                "frequency": rng.choice([0, 0, 0.5, -0.25]),
                "ngram": rng.choice([0, 0, 1, 2, 3, 5]),
                "banned": [],
            }
            if number % 2:
                for size in (1, 2, 3):
                    phrase = [rng.randrange(WORDS) for _ in range(size)]
                    if length >= size - 1 and rng.random() < 0.6:
                        phrase[:-1] = so_far[length - size + 1 :]  # it stands there but for its last token
                    case["banned"].append(phrase)
            logits = torch.randn(WORDS) * 3
            expected = process(case, so_far, prompt, logits)
            out.write(line("process", *(case[k] for k in ("repetition", "presence", "frequency", "ngram"))))
            out.write(line(len(case["banned"]), *(x for p in case["banned"] for x in (len(p), *p))))
            out.write(line(length, prompt, *so_far))
            out.write(floats(logits) + floats(expected))
        for number in range(60):
            case = {
                "temperature": rng.choice([1.0, 0.6, 1.7]),
                "top_k": rng.choice([0, 0, 5, 15]),
                "top_p": rng.choice([1, 1, 0.9, 0.5]),
                "min_p": rng.choice([0, 0.02, 0.1, 0.4]),
                "typical_p": rng.choice([1, 0.95, 0.6, 0.2]),
            }
            logits = torch.randn(WORDS) * rng.choice([0.5, 2, 4])
            out.write(line("sample", *case.values()))
            out.write(floats(logits) + floats(sample(case, logits)))


main()
