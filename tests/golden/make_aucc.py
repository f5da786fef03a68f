#!/usr/bin/env python3
"""Writes aucc.json: areas under curves by NumPy, and paired bootstrap resampling with BLEU by sacreBLEU, for
tests/unit/test_results.c and test_bootstrap.c.

Usage: python3 make_aucc.py > aucc.json   (needs numpy and sacrebleu 2.x; the committed file was made by 2.4.6 and 2.6.0)
"""
import json
import logging

import numpy as np
from sacrebleu.metrics import BLEU
from sacrebleu.significance import _compute_p_value

logging.disable(logging.WARNING)
RNG = np.random.default_rng(20210803)


def area(times, values, start, limit):
    """The integral from 0 to limit of the line through (0, start) and the points, held after the last one."""
    x = np.concatenate([[0.0], times])
    y = np.concatenate([[start], values])
    inside = x < limit
    return float(np.trapezoid(np.append(y[inside], np.interp(limit, x, y)), np.append(x[inside], limit)))


def curves():
    cases = []
    for count in [1, 2, 3, 7, 40]:
        for limit in [0.5, 60.0, 600.0, 5000.0]:
            times = np.round(np.sort(RNG.uniform(0, 1200, count)), 3)
            values = np.round(RNG.uniform(-5, 40, count), 3)
            start = float(np.round(RNG.uniform(0, 10), 3))
            cases.append({"times": times.tolist(), "values": values.tolist(), "start": start, "limit": limit,
                          "area": area(times, values, start, limit)})
    times, values = np.array([0.0, 60.0, 120.0]), np.array([3.0, 10.0, 20.0])
    cases.append({"times": times.tolist(), "values": values.tolist(), "start": 3.0, "limit": 120.0,
                  "area": area(times, values, 3.0, 120.0)})
    return cases


# Two configurations, three seeds: validations every 50 updates, seconds of training, BLEU.
BUDGET = 240.0


def runs():
    result = []
    for name, speed, top in [("regular", 1.0, 30.0), ("reservoir", 0.8, 31.0)]:
        for seed in [1, 2, 3]:
            steps, seconds, time = [0], [0.0], 0.0
            while time < BUDGET:
                time = float(np.round(time + speed * RNG.uniform(28, 33), 6))
                steps.append(steps[-1] + 50)
                seconds.append(time)
            bleu = np.round(top * (1 - np.exp(-np.array(seconds) / 70)) + RNG.normal(0, 0.4, len(seconds)), 6)
            bleu[0] = 0.1
            value = area(np.array(seconds), bleu, bleu[0], BUDGET)
            best = int(np.argmax(bleu))
            result.append({"group": name, "seed": seed, "steps": steps, "seconds": seconds, "bleu": bleu.tolist(),
                           "aucc": value / 60, "aucc_mean": value / BUDGET, "best": float(bleu[best]),
                           "best_seconds": seconds[best],
                           "budget_step": float(np.interp(BUDGET, seconds, steps))})
    return result


def summary(all_runs):
    result = {}
    for name in ["regular", "reservoir"]:
        for key in ["aucc", "aucc_mean", "best", "best_seconds", "budget_step"]:
            values = [run[key] for run in all_runs if run["group"] == name]
            result.setdefault(name, {})[key] = [float(np.mean(values)), float(np.std(values, ddof=1))]
    result["ratio"] = result["reservoir"]["best_seconds"][0] / result["regular"]["best_seconds"][0]
    return result


def noisy(sentence, share):
    words = [str(RNG.choice(VOCABULARY)) if RNG.random() < share else word for word in sentence.split()]
    if RNG.random() < share:
        words = words[1:]
    return " ".join(words) + " ."


VOCABULARY = [a + b for a in "bdfgklmnprst" for b in ["a", "e", "i", "o", "u"]]


def bootstrap():
    sentences, resamples, pairs = 60, 400, 2
    references = [" ".join(RNG.choice(VOCABULARY, RNG.integers(3, 16))) for _ in range(sentences)]
    systems = [[noisy(s, 0.25) for s in references] for _ in range(pairs)]
    baselines = [[noisy(s, 0.28) for s in references] for _ in range(pairs)]
    references = [s + " ." for s in references]
    indices = RNG.integers(0, sentences, (resamples, sentences))
    metric = BLEU()

    def score(hypotheses, chosen):
        return metric.corpus_score([hypotheses[i] for i in chosen], [[references[i] for i in chosen]]).score

    def judge(observed, differences):
        differences = np.array(differences)
        tail = resamples // 40
        ordered = np.sort(differences)
        sign = np.sign(observed)
        return {"difference": observed, "low": float(ordered[tail]), "high": float(ordered[-1 - tail]),
                "wins": float(np.mean(differences > 0)), "p": float(np.mean(differences * sign <= 0)),
                "p_sacrebleu": _compute_p_value(np.abs(differences) - np.abs(differences).mean(), abs(observed))}

    whole = range(sentences)
    observed = [score(s, whole) - score(b, whole) for s, b in zip(systems, baselines)]
    differences = [[score(s, rows) - score(b, rows) for rows in indices] for s, b in zip(systems, baselines)]
    return {"references": references, "systems": systems, "baselines": baselines, "indices": indices.tolist(),
            "scores": [score(s, whole) for s in systems + baselines],
            "resampled": [score(systems[0], rows) for rows in indices[:5]],
            "pairs": [judge(o, d) for o, d in zip(observed, differences)],
            "pooled": judge(float(np.mean(observed)), np.mean(differences, axis=0))}


ALL_RUNS = runs()
print(json.dumps({"curves": curves(), "budget": BUDGET, "runs": ALL_RUNS, "summary": summary(ALL_RUNS),
                  "bootstrap": bootstrap()}, indent=None, separators=(",", ":")))
