#!/usr/bin/env python3
"""Makes the golden files of test_choices.c: questions of multiple choice, and what lm-evaluation-harness says of them.

    python3 tests/golden/make_choices.py     (needs torch, transformers, datasets and lm-eval; writes choices/ into its folder)

choices/model is a small random GPT-2 with the vocabulary of gpt2_toy. choices/TASK.jsonl are invented questions in the form that
Hugging Face gives the task's data. expected.json has for each task and for the context with and without an end of sentence before
it the log-probability of every choice, and the task's measures.
"""

import json
import os
import tempfile

import torch
import yaml
from lm_eval import evaluator, tasks
from lm_eval.api.task import ConfigurableTask
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks.hellaswag import utils as hellaswag
from tokenizers.processors import TemplateProcessing
from transformers import GPT2Config, GPT2LMHeadModel, GPT2TokenizerFast

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "choices")
EVENTS = os.path.dirname(tasks.__file__)

ARC = [("Which of these rocks glows?", ["the moss", "granite", "a lamp", "zinc"], "ABCD", "B"),
       ("What is 7 - 4 ?", ["three", "3", "four", "ocean tides"], "1234", "1"),
       ("A plant turns to the light because…", ["it grows", "it is told to do so by someone", "of wind"], "ABC", "C"),
       ("Größe heißt", ["size", "weight", "Maß\u00a0des Lichts"], "ABC", "A"),
       ("Vowels", ["ÆØÅÆØÅ", "x"], "AB", "A"), ("Vowels", ["ÆØÅÆØÅ", "_"], "AB", "B"),
       ("Why?", ["Because.", "Because!", "🙂 yes", "no"], "ABCD", "D")]
HELLASWAG = [("Washing", "A man holds a dish.", "the man", ["washes it [laughs] twice.", "eats  the   sink.", " runs [title] away", "sings."], "3"),
             ("Skating", "[header] How to skate [title] Find ice.", "", ["Go on it.", "Melt it [x", "It ] ends.", "Leave."], "3"),
             ("Ørsted", "She writes", "ÆON AND Ω WORDS", ["in Greek.", "aloud.", "never", "to  him"], 3),
             ("Cooking", "  Two cups. ", "éTÉ pass by", ["slowly", "at once", "again", "[all] over"], "1")]
PIQA = [("Keep bread fresh", "Put it in a bag.", "Put it in a lake.", 0),
        ("", "Nothing to do", "Something to do", 1),
        ("open a jar\nof glue", "twist", "Hit it until it breaks, then wait for a day or two", 0),
        ("x", "aaa", "aaa", 1)]
LAMBADA = ["the rock ran to the 99 weights", "She said: “Take the\nrock,” and he took the rock", "no one ran", "word", "she zzz snake", "ran zzz snake", "zzz zzz zzz zzz zzz zzz"]


def write(name, lines):
    with open(os.path.join(FOLDER, name + ".jsonl"), "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def write_questions():
    write("arc", [{"question": q, "choices": {"text": c, "label": list(labels)}, "answerKey": key} for q, c, labels, key in ARC])
    keys = ("activity_label", "ctx_a", "ctx_b", "endings", "label")
    write("hellaswag", [dict(zip(keys, line)) for line in HELLASWAG])
    write("piqa", [dict(zip(("goal", "sol1", "sol2", "label"), line)) for line in PIQA])
    write("lambada", [{"text": text} for text in LAMBADA])


def make_model():
    tokenizer = GPT2TokenizerFast(os.path.join(HERE, "gpt2_toy", "vocab.json"), os.path.join(HERE, "gpt2_toy", "merges.txt"))
    end = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    torch.manual_seed(3)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_positions=64, n_embd=8, n_layer=1, n_head=2, bos_token_id=end,
                                       eos_token_id=end)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.4)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<|endoftext|> $A",
                                                                    special_tokens=[("<|endoftext|>", end)])
    model.save_pretrained(os.path.join(FOLDER, "model"))
    os.remove(os.path.join(FOLDER, "model", "generation_config.json"))
    return model, tokenizer


class Function(yaml.SafeLoader):
    """The tasks' descriptions name functions beside them."""


Function.add_constructor("!function", lambda loader, node: getattr(hellaswag, node.value.split(".")[-1]))


def task_of(name, path):
    file = {"arc": "arc/arc_easy", "lambada": "lambada/lambada_openai"}.get(name, f"{name}/{name}")
    with open(os.path.join(EVENTS, file + ".yaml"), encoding="utf-8") as text:
        config = yaml.load(text, Function)
    lines = [json.loads(line) for line in open(path, encoding="utf-8")]
    for line in lines:  # in one file all labels are of one type
        if name == "hellaswag":
            line["label"] = str(line["label"])
    plain = os.path.join(tempfile.mkdtemp(), name + ".jsonl")
    with open(plain, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    config.update(dataset_path="json", dataset_name=None, dataset_kwargs={"data_files": {"test": plain}}, training_split=None,
                  validation_split=None, test_split="test", task=name)
    if name != "lambada":
        config["metric_list"] = [{"metric": m, "aggregation": "mean", "higher_is_better": True} for m in ("acc", "acc_norm", "acc_bytes")]
    return ConfigurableTask(config=config)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    write_questions()
    model, tokenizer = make_model()
    expected = {}
    for bos in (False, True):
        lm = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=1, device="cpu", add_bos_token=bos)
        for name in ("arc", "hellaswag", "piqa", "lambada"):
            task = task_of(name, os.path.join(FOLDER, name + ".jsonl"))
            out = evaluator.evaluate(lm=lm, task_dict={name: task}, bootstrap_iters=0)
            sums = [[float(r[0][0]) for r in s["resps"]] for s in out["samples"][name]]
            measures = {k.split(",")[0]: v for k, v in out["results"][name].items() if "stderr" not in k and isinstance(v, float)}
            expected[name + ("-bos" if bos else "")] = {"log_probabilities": sums, **measures}
    with open(os.path.join(FOLDER, "expected.json"), "w", encoding="utf-8") as file:
        json.dump(expected, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
