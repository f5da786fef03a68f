#!/usr/bin/env python3
"""Writes scores.json: BLEU and chrF of small texts by sacreBLEU, for tests/unit/test_bleu.c and test_chrf.c.

Usage: python3 make_scores.py > scores.json   (needs sacrebleu 2.x; the committed file was made by 2.6.0)
"""
import itertools
import json
import logging

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

logging.disable(logging.WARNING)

# hypotheses, then the streams of references; None: this stream has no reference for the sentence.
CORPORA = {
    "plain": (
        ["The cat sits on the mat.", "A man is riding a bicycle down the street, and a dog follows him.",
         "Two children play in the snow!", "Nobody knows it"],
        [["The cat is sitting on the mat.", "A man rides a bicycle down the street and a dog is following him.",
          "Two children are playing in the snow.", "Nobody knows."]],
    ),
    "marks": (
        ["It cost 1,234.56 dollars (or 1.5 euros), on 3-4-2019; \"really\"?", "Mail me at a.b@c.org -- now: 50% off & more!",
         "&quot;x&quot; &lt;y&gt; &amp;lt; <skipped>end", "e.g. the U.S. of A. ... 10,000,000 and .5 , ,. 5.", "snake_case, kebab-case 7-fold [a]{b}|c~d`e^f\\g",
         "#1 * 2 + 3 = 5 / x < y > z @ $ %"],
        [["It costs 1,234.56 dollars (or 1.50 euros) on 3-4-2019: \"really?\"", "Mail me at a.b@c.org - now: 50 % off & more!",
          "\"x\" <y> &lt; end", "E.g. the U.S. of A. ... 10,000,000 and .5, ,. 5.", "snake_case, kebab-case 7-fold (a){b}|c~d`e^f/g",
          "#1 * 2 + 3 = 5 / x < y > z @ $ &"]],
    ),
    "unicode": (
        ["«Où est-il ?» demanda l’élève – 3,5 €…", "ΟΔΥΣΣΕΥΣ ΚΑΙ ΣΙΣΥΦΟΣ, Σ", "İstanbul'da ILIK bir GÜN; IŞIK", "猫が、マットの上に座っています。１２３，４５",
         "Straße STRASSE ẞ ÄÖÜ äöü", "शुक्रवार १२३.४५ को", "Это «ЁЖ» № 5 — ½ ² ①.", "🙂👍🏽 ok 🙂", "a\u00a0b\u3000c\u2028d\u0085e\u001cf\u200bg"],
        [["« Où est-il ? » demande l'élève — 3,5 € …", "Οδυσσευς και Σισυφος, σ", "istanbul'da ılık bir gün; ışık", "猫はマットの上に座っている。１２３，４５",
          "Strasse STRAẞE ß äÖÜ ÄöÜ", "शुक्रवार १२३.४६ को", "Это «ёж» № 5 – ½ ² ①", "🙂👍 ok 🙂", "a b c d e f\u200bg"]],
    ),
    "references": (
        ["the house is very small", "he goes to the big market today", "", "yes", "green trees , green hills", "a b a b a b a"],
        [["the house is quite small", "he is going to the market today", "", "yes indeed", "green hills", "a b a b c"],
         ["this house is really very small", "today he walks to the large market", "nothing", "", "the trees are green", "b a b a a a a"],
         ["the home is very little", "he goes to market", "", "yes", "green green green", "a a b b a"]],
    ),
    "variable": (
        ["one two three four five", "six seven eight nine", "ten eleven twelve thirteen"],
        [["one two three four six", "six seven nine eight", "ten eleven thirteen"],
         [None, "six seven eight", "ten eleven twelve thirteen"], ["one two four five", None, None]],
    ),
    "empty": (["", "   ", "word"], [["something", "", "word word"]]),
    "nothing_matches": (["aaa bbb", "ccc"], [["xxx yyy", "zzz"]]),
    "all_empty": (["", ""], [["", " "]]),
    "short": (["yes", "no no"], [["yes", "no"]]),
}
SMOOTHING = [("exp", None), ("floor", None), ("floor", 0.01), ("add-k", None), ("add-k", 0.5), ("none", None)]


def bleu_cases():
    for corpus, tokenize, (smooth, value), lowercase in itertools.product(
            CORPORA, ["13a", "intl", "char", "none"], SMOOTHING, [False, True]):
        if lowercase and smooth not in ("exp", "none"):
            continue
        options = dict(tokenize=tokenize, smooth_method=smooth, smooth_value=value, lowercase=lowercase)
        hypotheses, references = CORPORA[corpus]
        metric = BLEU(**options)
        score = metric.corpus_score(hypotheses, references)
        case = dict(corpus=corpus, tokenize=tokenize, smooth=smooth, smooth_value=-1 if value is None else value,
                    lowercase=lowercase, signature=str(metric.get_signature()), score=score.score,
                    precisions=score.precisions, bp=score.bp, sys_len=score.sys_len, ref_len=score.ref_len)
        if smooth != "add-k":  # sacreBLEU's counts are smoothed ones there
            case.update(counts=score.counts, totals=score.totals)
        metric = BLEU(effective_order=True, **options)
        case["sentences"] = [metric.sentence_score(h, [r[i] for r in references if r[i] is not None]).score
                             for i, h in enumerate(hypotheses)]
        yield case


def chrf_cases():
    for corpus, (char_order, word_order, beta), lowercase, whitespace, eps in itertools.product(
            CORPORA, [(6, 0, 2), (6, 2, 2), (4, 1, 3)], [False, True], [False, True], [False, True]):
        hypotheses, references = CORPORA[corpus]
        metric = CHRF(char_order=char_order, word_order=word_order, beta=beta, lowercase=lowercase,
                      whitespace=whitespace, eps_smoothing=eps)
        score = metric.corpus_score(hypotheses, references)
        yield dict(corpus=corpus, char_order=char_order, word_order=word_order, beta=beta, lowercase=lowercase,
                   whitespace=whitespace, eps_smoothing=eps, signature=str(metric.get_signature()), name=score.name,
                   score=score.score,
                   sentences=[metric.sentence_score(h, [r[i] for r in references if r[i] is not None]).score
                              for i, h in enumerate(hypotheses)])


def lines(items):
    return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=True) for item in items) + "\n]"


print('{"sacrebleu": ' + json.dumps(sacrebleu.__version__) + ",")
print('"corpora": {\n' + ",\n".join(
    json.dumps(name) + ": " + json.dumps(dict(hypotheses=h, references=r)) for name, (h, r) in CORPORA.items()) + "\n},")
print('"bleu": ' + lines(bleu_cases()) + ",")
print('"chrf": ' + lines(chrf_cases()) + "}")
