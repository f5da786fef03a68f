"""Translates a file of tokens with CTranslate2 and prints how long that took, as one line of JSON.

    tarn encode --vocab VOCAB <test.de >test.bpe
    python translate_ctranslate2.py DIRECTORY test.bpe --beam 5 --compute int8 --output hypothesis.en

DIRECTORY comes from convert_ctranslate2.py. The scores are those of `tarn translate`: log-probability over length to the
power of --length-penalty. Seconds are of translation alone, the least of --repeat runs behind one that is not counted;
empty lines stay empty. Environment variables of the library, such as CT2_USE_MKL, are the caller's.
"""

import argparse
import json
import resource
import time

import ctranslate2


def translate(translator, lines, options):
    results = translator.translate_batch(
        lines,
        beam_size=options.beam,
        length_penalty=options.length_penalty,
        max_batch_size=options.batch,
        batch_type=options.batch_type,
        max_input_length=0,
    )
    return [result.hypotheses[0] for result in results]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="a CTranslate2 model")
    parser.add_argument("input", help="one sentence a line, its tokens separated by spaces")
    parser.add_argument("--output", help="where to write the translations as text")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--length-penalty", type=float, default=1.0)
    parser.add_argument("--batch", type=int, default=64, help="sentences or tokens translated together")
    parser.add_argument("--batch-type", choices=("examples", "tokens"), default="examples")
    parser.add_argument("--inter", type=int, default=1, help="batches at the same time")
    parser.add_argument("--intra", type=int, default=2, help="threads of each batch")
    parser.add_argument("--compute", default="float32", help="float32, int8, bfloat16, ...")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()

    with open(options.input, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    translator = ctranslate2.Translator(
        options.directory,
        device="cpu",
        compute_type=options.compute,
        inter_threads=options.inter,
        intra_threads=options.intra,
    )
    full = [line for line in lines if line]
    seconds, cpu_seconds = [], []
    for _ in range(1 + options.repeat):
        start, cpu_start = time.perf_counter(), time.process_time()
        hypotheses = translate(translator, full, options)
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    best = min(seconds[1:])
    tokens = sum(len(hypothesis) + 1 for hypothesis in hypotheses)
    if options.output:
        rest = iter(hypotheses)
        with open(options.output, "w", encoding="utf-8") as file:
            for line in lines:
                text = "".join(next(rest)).replace("\u2581", " ").strip() if line else ""
                file.write(text + "\n")
    print(
        json.dumps(
            {
                "compute": translator.compute_type,
                "batch": options.batch,
                "batch_type": options.batch_type,
                "inter": options.inter,
                "intra": options.intra,
                "seconds": best,
                "cpu_seconds": min(cpu_seconds[1:]),
                "sentences_per_second": len(full) / best,
                "tokens_per_second": tokens / best,
                "tokens": tokens,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1.024e-3,
            }
        )
    )


if __name__ == "__main__":
    main()
