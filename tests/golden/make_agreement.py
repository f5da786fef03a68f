#!/usr/bin/env python3
"""Writes agreement.json: accuracy, F1 and Matthews correlation of answers by scikit-learn, Pearson's and Spearman's
correlation by SciPy, of whole sets and of resamples, for tests/unit/test_agreement.c.

Usage: python3 make_agreement.py > agreement.json   (needs numpy, scikit-learn and scipy)
"""
import json
import sys
import warnings

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

RNG = np.random.default_rng(20261123)
warnings.simplefilter("ignore")


def classes_case(classes, count, skill):
    right = RNG.choice(classes, count, p=RNG.dirichlet(np.ones(classes) * 2))
    found = np.where(RNG.random(count) < skill, right, RNG.integers(0, classes, count))
    times = np.bincount(RNG.integers(0, count, count), minlength=count)
    return right, found, times


def class_measures(right, found, classes):
    average = {"labels": [1], "average": "macro"} if classes == 2 else {"average": "macro"}
    return [float(accuracy_score(right, found)), float(f1_score(right, found, zero_division=0, **average)),
            float(matthews_corrcoef(right, found))]


def number_measures(right, found):
    if np.all(right == right[0]) or np.all(found == found[0]):
        return [0.0, 0.0]  # SciPy says NaN
    return [float(pearsonr(right, found)[0]), float(spearmanr(right, found)[0])]


def main():
    cases = []
    for classes, count, skill in [(2, 1, 1.0), (2, 7, 0.5), (2, 300, 0.8), (2, 50, 0.0), (3, 40, 0.6), (5, 500, 0.3),
                                  (20, 60, 0.5)]:
        right, found, times = classes_case(classes, count, skill)
        cases.append({"classes": classes, "right": right.tolist(), "found": found.tolist(), "times": times.tolist(),
                      "whole": class_measures(right, found, classes),
                      "resampled": class_measures(np.repeat(right, times), np.repeat(found, times), classes)})
    for right, found in [([1, 1, 1, 1], [0, 1, 1, 0]), ([0, 0], [0, 0]), ([0, 1], [1, 0])]:
        cases.append({"classes": 2, "right": right, "found": found, "times": [1] * len(right),
                      "whole": class_measures(right, found, 2), "resampled": class_measures(right, found, 2)})
    for count, ties in [(2, False), (3, True), (30, False), (200, True), (200, False)]:
        right = RNG.normal(size=count)
        found = 0.7 * right + 0.5 * RNG.normal(size=count)
        if ties:
            right, found = np.round(right), np.round(found * 2)
        right, found = right.astype(np.float32), found.astype(np.float32)
        times = np.bincount(RNG.integers(0, count, count), minlength=count)
        if np.unique(right[times > 0]).size < 2 or np.unique(found[times > 0]).size < 2:
            times = np.ones(count, dtype=int)
        wide = right.astype(np.float64), found.astype(np.float64)
        cases.append({"classes": 0, "right": wide[0].tolist(), "found": wide[1].tolist(), "times": times.tolist(),
                      "whole": number_measures(*wide),
                      "resampled": number_measures(np.repeat(wide[0], times), np.repeat(wide[1], times))})
    cases.append({"classes": 0, "right": [1.0, 1.0, 1.0], "found": [1.0, 2.0, 3.0], "times": [1, 1, 1],
                  "whole": [0.0, 0.0], "resampled": [0.0, 0.0]})
    json.dump({"cases": cases}, sys.stdout)
    print()


main()
