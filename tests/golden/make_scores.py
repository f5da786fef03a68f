#!/usr/bin/env python3
"""Writes scores.json: BLEU, chrF and TER of small texts by sacreBLEU, and its intervals and p over several seeds, for
tests/unit/test_bleu.c, test_chrf.c, test_ter.c and test_significance.c.

Usage: python3 make_scores.py > scores.json   (needs sacrebleu 2.x; the committed file was made by 2.6.0)
"""
import itertools
import json
import logging
import os
import random
import statistics

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

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

RANDOM = random.Random(13)
WORDS = "a the old new house tree dog cat sees likes and or in on under near red green small big".split()


def words(count, choice=WORDS):
    return [RANDOM.choice(choice) for _ in range(count)]


def moved(line, blocks, longest):
    """The words of a line after some blocks of them were moved."""
    line = list(line)
    for _ in range(blocks):
        begin, length = RANDOM.randrange(len(line)), RANDOM.randint(1, longest)
        block = line[begin:begin + length]
        del line[begin:begin + length]
        place = RANDOM.randint(0, len(line))
        line[place:place] = block
    return line


def numbered(count):
    return [f"w{i}" for i in range(count)]


def ter_pairs():
    """What TER's search has limits for: blocks of more than 10 words, more than 50 words away, more than 1000 moves,
    lengths too different for the beam, and words that occur often."""
    yield moved(numbered(12), 2, 4), numbered(12)
    yield moved(numbered(40), 3, 9), numbered(40)
    yield numbered(40)[15:] + numbered(40)[:15], numbered(40)
    yield numbered(80)[60:] + numbered(80)[:60], numbered(80)
    yield list(reversed(numbered(30))), numbered(30)
    yield numbered(3), numbered(200)
    yield numbered(200), numbered(3)
    yield ["w150"], numbered(200)
    yield ["x", "w199", "w20"], numbered(200)
    yield words(60, "ab"), words(60, "ab")
    yield words(90, "abc"), words(45, "abc")
    yield words(20, "ab"), words(90, "ab")
    line = numbered(80)
    for distance in (50, 51):
        yield line[1:distance + 1] + line[:1] + line[distance + 1:], line
    for beam in (25, 26):
        yield ["x"] * beam + line[:-beam], line
    for block in (10, 11):
        yield line[20:20 + block] + line[:20] + line[20 + block:], line
    yield "a a b b b a b a a c a c".split(), "a c c a c a b c a b b b".split()
    yield "c c b b a a a c b c a a".split(), "a a a a a c c c c b c b".split()
    for count in (5, 10, 20, 30, 50, 70):
        line = words(count)
        yield moved(line, 1 + count // 8, 6) + words(2), line
        yield words(count), words(count)


# For TER alone.
TER_CORPORA = {
    "moves": tuple(zip(*((" ".join(h), " ".join(r)) for h, r in ter_pairs()))),
    "twice": (  # what a second normalisation of the references changes
        ["x's.", "4.5's. 'S", "The dogs' 's, it's...that", "a 's.b"],
        [["x's.", "4.5's. 'S", "The dogs' 's, it's...That", "a's.b"]],
    ),
    "asian": (
        ["東京は、大きい（とても）都市です。", "｡｢ア｣､・ー 「中」㈀ ㌀Ａ 㐀豈︰⺀㇀", "ＡＢ！？；：．，＂（）"],
        [["東京 は、とても 大きい 都市 です。", "｡｢ア｣、・ー 中 ㈁ ㌀ A 㐀 豈 ︰ ⺀ ㇀", "ＡＢ ！ ？ ; : ． , \" ()"]],
    ),
}
TER_CORPORA["moves"] = (list(TER_CORPORA["moves"][0]), [list(TER_CORPORA["moves"][1])])


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


def ter_cases():
    for corpus, normalized, no_punct, asian_support, case_sensitive in itertools.product(
            {**CORPORA, **TER_CORPORA}, [False, True], [False, True], [False, True], [False, True]):
        if corpus == "moves" and (normalized or no_punct or asian_support or case_sensitive):
            continue
        hypotheses, references = {**CORPORA, **TER_CORPORA}[corpus]
        metric = TER(normalized=normalized, no_punct=no_punct, asian_support=asian_support,
                     case_sensitive=case_sensitive)
        score = metric.corpus_score(hypotheses, references)
        yield dict(corpus=corpus, normalized=normalized, no_punct=no_punct, asian_support=asian_support,
                   case_sensitive=case_sensitive, signature=str(metric.get_signature()), score=score.score,
                   edits=score.num_edits, ref_len=score.ref_length,
                   sentences=[metric.sentence_score(h, [r[i] for r in references if r[i] is not None]).score
                              for i, h in enumerate(hypotheses)])


# Systems of different quality, the first one the baseline.
SENTENCES, RESAMPLES, TRIALS, SEEDS = 120, 1000, 2000, 10


def damaged(line, share):
    line = [RANDOM.choice(WORDS) if RANDOM.random() < share else word for word in line]
    return moved(line, 1, 3) if RANDOM.random() < share else line


def significance_systems():
    references = [words(RANDOM.randint(6, 16)) for _ in range(SENTENCES)]
    systems = [[" ".join(damaged(line, share)) for line in references] for share in (0.3, 0.28, 0.25, 0.32)]
    return [" ".join(line) for line in references], systems


def over_seeds(values):
    values = [float(value) for value in values]
    return dict(mean=statistics.mean(values), sd=statistics.stdev(values))


def significance_cases(references, systems):
    for metric in (BLEU(), CHRF(word_order=2), TER()):
        name, results = type(metric).__name__, {}
        for test, samples in (("bs", RESAMPLES), ("ar", TRIALS)):
            for seed in range(1, SEEDS + 1):
                os.environ["SACREBLEU_SEED"] = str(seed)
                named = [(str(i), lines) for i, lines in enumerate(systems)]
                paired = PairedTest(named, {name: metric}, [references], test, samples)
                signatures, scores = paired()
                key = next(k for k in scores if k != "System")
                results.setdefault(test, []).append(scores[key])
                signature = str(signatures[key])
            results[test + "_signature"] = signature
        bs, ar = results["bs"], results["ar"]
        for i in range(len(systems)):
            yield dict(metric=name, system=i, score=bs[0][i].score, mean=over_seeds([r[i].mean for r in bs]),
                       half_width=over_seeds([r[i].ci for r in bs]),
                       p_bs=over_seeds([r[i].p_value for r in bs]) if i else None,
                       p_ar=over_seeds([r[i].p_value for r in ar]) if i else None,
                       bs_signature=results["bs_signature"], ar_signature=results["ar_signature"])


def lines(items):
    return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=True) for item in items) + "\n]"


print('{"sacrebleu": ' + json.dumps(sacrebleu.__version__) + ",")
print('"corpora": {\n' + ",\n".join(
    json.dumps(name) + ": " + json.dumps(dict(hypotheses=h, references=r)) for name, (h, r) in
    {**CORPORA, **TER_CORPORA}.items()) + "\n},")
print('"bleu": ' + lines(bleu_cases()) + ",")
print('"chrf": ' + lines(chrf_cases()) + ",")
print('"ter": ' + lines(ter_cases()) + ",")
REFERENCES, SYSTEMS = significance_systems()
print('"significance": {"resamples": %d, "trials": %d, "seeds": %d,' % (RESAMPLES, TRIALS, SEEDS))
print('"references": ' + lines(REFERENCES) + ",")
print('"systems": [' + ",\n".join(lines(system) for system in SYSTEMS) + "],")
print('"cases": ' + lines(significance_cases(REFERENCES, SYSTEMS)) + "}}")
