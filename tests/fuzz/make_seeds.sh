#!/usr/bin/env bash
# Makes the seeds of the fuzz targets, the inputs that fuzzing starts from: small files that the program itself wrote, in
# FOLDER/TARGET. The checkpoints are those of tests/versions/, which fuzz.sh takes from there.
# usage: TARN=PROGRAM make_seeds.sh FOLDER
set -eu
tarn=$(readlink -f "${TARN:?the program}")
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
mkdir -p "$1"
out=$(readlink -f "$1")
made="$root/tests/versions/0.1.0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
while read -r name _; do mkdir -p "$out/$name"; done < <(grep -v '^#' "$here/targets.txt")
# archive FOLDER FILE...: as fuzz_unpack() takes it apart.
archive() {
  local folder=$1 file
  shift
  for file in "$@"; do printf -- '-- %s --\n' "$file"; cat "$folder/$file"; done
}

# The tiny language model that scores the minimal pairs; every byte is known to it.
printf 'a b\nab ba\nc\n' >text
"$tarn" vocab --type byte --output bytes
"$tarn" prepare --vocab bytes --text text --output text >/dev/null
cat >lm.yaml <<'END'
model: { d_model: 4, positions: none, embeddings: decoder, dropout: 0, max_length: 64 }
decoder: { layers: G }
kinds: { G: { mixer: gru, residual: no } }
data: { vocab: bytes, train: text }
train: { max_updates: 2, max_tokens: 50, threads: 1, tensorboard: no }
END
"$tarn" train lm.yaml --run lm --quiet
mkdir -p "$out/../data"
"$tarn" average --output "$out/../data/lm.safetensors" lm/checkpoint_last.safetensors >/dev/null

# --- resume: the last checkpoint of the training that the target itself makes
printf 'tarn-vocab whitespace 1\nlowercase 0\nsize 12\n<unk>\n<s>\n</s>\nw3\nw4\nw5\nw6\nw7\nw8\nw9\nw10\nw11\n' >vocab
printf 'w3 w4\nw5 w6 w7\nw8 w9 w10 w11\n' >pairs
"$tarn" prepare --vocab vocab --source pairs --target pairs --output train >/dev/null
cat >resume.yaml <<'END'
model: { d_model: 4, embeddings: all, max_length: 64 }
encoder: { layers: (R1 L1)*2 }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 4 }
  R: { mixer: attention, heads: 2, ffn: 4, frozen: yes, backskip: { method: predictor, refresh: 2 } }
data: { vocab: vocab, train: train }
train: { max_updates: 3, lr: 0.01, warmup: 2, max_tokens: 100, log_every: 1, save_every: 2, threads: 1, tensorboard: no, autofreeze: 2, moments: fp8 }
END
"$tarn" train resume.yaml --run resume --quiet
cp resume/checkpoint_last.safetensors last.safetensors

# --- checkpoints: those of tests/versions/ say all keys of their configuration; here are some that say only what is not a
# default, so that reading them takes less time. Hashes are passed over.
"$tarn" export --dense "$made/models/frozen-shared-pre.safetensors" dense
for file in "$made/models/frozen-shared-pre.safetensors" "$made/models/gpt2.safetensors" dense; do
  for precision in int8 int4; do
    "$tarn" export --precision $precision "$file" "$precision-$(basename "$file" .safetensors).safetensors"
  done
done
python3 - "$made/models" "$out/checkpoint" <<'END'
import json, re, struct, sys

KEEP = re.compile(r"(d_model|embeddings|max_length|positions|frozen_embeddings|output_rank|output_bias|activation|layers|mixer|"
                  r"heads|ffn|frozen|hidden|sparsity|topology|residual|input|init|kernel|norm|embedding_scale|frozen_input|"
                  r"spectral_radius|embedding_std|nonlinearity|leak_rate|embedding_dropout|dropout): ")
for name in sys.argv[3:] or ["frozen-shared-pre", "hadamard", "convolutions", "bigru", "esn-random", "esn-sparse", "lstm",
                             "learned-positions", "gpt2", "no-mixer", "int8-frozen-shared-pre", "int8-dense",
                             "int4-frozen-shared-pre", "int4-dense", "int8-gpt2", "int4-gpt2"]:
    folder = "." if name.startswith("int") else sys.argv[1]
    data = open(f"{folder}/{name}.safetensors", "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    texts = head["__metadata__"]
    lines = [line for line in texts["tarn.model"].split("\n") if not line.startswith("  ") or line.endswith(":") or KEEP.match(line.strip())]
    texts["tarn.model"] = texts["tarn.config"] = "\n".join(lines)
    new = json.dumps(head, separators=(",", ":")).encode()
    open(f"{sys.argv[2]}/{name}", "wb").write(struct.pack("<Q", len(new)) + new + data[8 + size:])
data = open("last.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + size])
head["__metadata__"]["tarn.config"] = head["__metadata__"]["tarn.model"] = open("resume.yaml").read()
new = json.dumps(head, separators=(",", ":")).encode()
open(f"{sys.argv[2]}/../resume/last", "wb").write(struct.pack("<Q", len(new)) + new + data[8 + size:])
END

# --- shards
cp train.tarn "$out/shard/pairs"
cp text.tarn "$out/shard/text"
cp "$made/data/valid.tarn" "$out/shard/valid"
mkdir set
for _ in {1..40}; do cat text; done >often
"$tarn" prepare --vocab bytes --text often --shard-size 1k --output set/data >/dev/null
# Name and size before each file, as the target takes them apart.
sized() {
  python3 -c 'import os, sys, struct
for path in sys.argv[1:]:
    name, data = os.path.basename(path).encode(), open(path, "rb").read()
    sys.stdout.buffer.write(bytes([len(name)]) + name + struct.pack("<H", len(data)) + data)' "$@"
}
sized set/data.tarn set/data.0* >"$out/shard_index/text"
rm set/*
"$tarn" prepare --vocab bytes --text often --stream 20 --shard-size 1k --output set/data >/dev/null
sized set/data.tarn set/data.0* >"$out/shard_index/windows"

# --- sentences with labels: shards, and the tables that they are made of behind a byte that says how
printf 'text\tlabel\tpair\na b\t1\tc\nab ba\t2\ta b c\nc\t1\tba\n' >table
"$tarn" prepare --vocab bytes --table table --text text --pair pair --labels label --output labels >/dev/null
cp labels.tarn "$out/shard/labels"
"$tarn" prepare --vocab bytes --table table --text text --labels label --numbers --output labels >/dev/null
cp labels.tarn "$out/shard/numbers"
"$tarn" prepare --vocab bytes --table <(printf 'a b\tx y\nba\tx\n') --text 1 --labels 2 --per-word --output labels >/dev/null
cp labels.tarn "$out/shard/words"
for how in 003 007 217 023 203; do { printf "\\$how"; cat table; } >"$out/labels/named-$how"; done
for how in 000 014 020; do { printf "\\$how"; tail -n +2 table; } >"$out/labels/numbered-$how"; done
printf '\043text\tlabel\nx\ta\ny\tb\n' >"$out/labels/known"

# --- images: a shard; files of labels (12 bytes) and of images, and PNG files, behind a byte that says how
"$tarn" draw --output drawn --images 4 --held-out 1 --size 16
"$tarn" prepare --images drawn/train-images.idx --labels drawn/train-labels.idx --output images >/dev/null
cp images.tarn "$out/shard/images"
{ printf '\030'; cat drawn/train-labels.idx drawn/train-images.idx; } >"$out/images/idx"
python3 - "$out/images" <<'END'
import struct, sys, zlib

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

# name: (how, bits, colour type, the chunks before the pixels, bytes of a pixel)
for name, how, bits, colour, before, width in [("grey", 1, 8, 0, b"", 1), ("colour", 3, 8, 2, b"", 3), ("grey-of", 5, 8, 6, b"", 4),
                                               ("palette", 1, 8, 3, chunk(b"PLTE", bytes(range(48))), 1), ("deep", 1, 16, 0, b"", 2)]:
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, bits, colour, 0, 0, 0)) + before
    data += chunk(b"IDAT", zlib.compress(bytes(1 + width))) + chunk(b"IEND", b"")
    open(f"{sys.argv[1]}/{name}", "wb").write(bytes([how]) + data)
END

# --- configurations: examples, and what is written of them
cp resume.yaml "$out/config/resume"
for file in demo/model3 babylm/esn babylm/gpt2 iwslt14/model4 multi30k/backskip multi30k/half-conv multi30k/bigru-reservoir; do
  cp "$root/examples/$file.yaml" "$out/config/$(tr / - <<<$file)"
done
cp "$made/resume/predictor/config.yaml" "$out/config/written"
cat >"$out/config/overrides" <<'END'
#set encoder.layers=(R1 L1)*2
#set train.seeds=[1,2]
model: { d_model: 8 }
encoder: { place: { reservoirs: 1, of: 3, rule: middle } }
decoder: { layers: L*2, layers_to_keep: [1] }
kinds: { L: { heads: 2, ffn: 8 }, R: { mixer: none, ffn: 8, init: hadamard, frozen: yes } }
train: { freeze: { encoder.layer1: 5 }, schedule: cosine, max_updates: 9, autofreeze: 3 }
dynamics: { input: lines, every: 2, iterations: 5, map: period, precision: double }
END

# --- sweeps, with the data that the target makes
cat >base.yaml <<'END'
model: { d_model: 8, embeddings: all }
encoder: { layers: (R1 L)*2 }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 8 }
  R: { mixer: attention, heads: 2, ffn: 8, frozen: yes }
data: { vocab: vocab, train: train, valid: valid }
train: { max_updates: 4, warmup: 2, max_tokens: 100, threads: 1 }
END
cat >sweep.yaml <<'END'
base: base.yaml
baseline: full
seeds: [1, 2]
budget: 10 min
parallel: 2
threads: 1
set: { train.clock: cpu, data: { train: train } }
test: { source: test.de, reference: test.en, beam: 2, precision: fp32 }
variants:
  full: { encoder.layers: L*2 }
  half: { encoder: { place: { reservoirs: 1, of: 2 } } }
  same: { equalize: parameters, kinds.L.ffn: 16, train.lr: 0.01 }
END
archive . sweep.yaml base.yaml >"$out/sweep/three"

# --- recipes: built-in ones, and one with a description of its own
for name in multi30k blimp sst2 esn-series; do
  cp "$root/examples/recipes/$name.yaml" recipe.yaml
  archive . recipe.yaml >"$out/recipe/$name"
done
printf 'task: a\nsummary: b\ndata: { x: [no, "*.x"] }\nprepare:\n  - vocab: { size: 9, lowercase: yes, output: v, files: [$x, v] }\nmodel: base.yaml\nset: { train.lr: 2 }\ntest: { source: $x, reference: v }\nscore: test.bleu\nexpected: { scores: [1, 2], from: c }\n' >recipe.yaml
cp pairs one.x
archive . recipe.yaml base.yaml one.x >"$out/recipe/own"
# A sweep that was run; it is not the data that are looked at when it is opened, but what was said of them.
mkdir in
printf 'base: base.yaml\nbaseline: full\nseeds: [1]\nthreads: 1\ntest: { source: test.de, reference: test.en }\nvariants: { full: {}, half: { encoder.layers: R1 } }\n' >in/sweep.yaml
cp base.yaml in
cp train.tarn valid.tarn
cp pairs test.de
cp pairs test.en
"$tarn" sweep in/sweep.yaml --output in/out --quiet
archive in {,out/}{sweep.yaml,base.yaml} out/sweep.json out/{full,half}/seed-1/{config.yaml,log.jsonl,result.json,test.json} >"$out/sweep/done"
rm in/out/half/seed-1/*.json
archive in {,out/}{sweep.yaml,base.yaml} out/sweep.json out/full/seed-1/{config.yaml,log.jsonl,result.json} out/half/seed-1/{config.yaml,log.jsonl} >"$out/sweep/begun"

# --- runs: those of a version, and one alone
mkdir -p runs/sweep
cp -r "$made/sweep" runs
for run in runs/sweep/*/seed-*; do
  sed -i 's/"source": "[^"]*"/"source": "test.de"/; s/"reference": "[^"]*"/"reference": "test.en"/; s/"sentences": *[0-9]*/"sentences": 2/' "$run/test.json"
  printf 'a b c d\ne g\n' >"$run/test.hyp"
  printf 'a b c d\ne f\n' >test.en  # as the target has it
  score=$("$tarn" bleu --json --reference test.en <"$run/test.hyp" | sed -E 's/.*"score": *([0-9.]+).*/\1/')
  chrf=$("$tarn" chrf --json --reference test.en <"$run/test.hyp" | sed -E 's/.*"score": *([0-9.]+).*/\1/')
  sed -i "s/\"bleu\": *[0-9.]*/\"bleu\": $score/; s/\"chrf\": *[0-9.]*/\"chrf\": $chrf/" "$run/test.json"
  head -n 4 "$run/log.jsonl" >"$run/log" && mv "$run/log" "$run/log.jsonl"
done
for variant in full half; do
  archive runs/sweep sweep.json $variant/seed-1/{config.yaml,log.jsonl,result.json,test.json,test.hyp} >"$out/run/$variant"
done
archive runs/sweep {full,half}/seed-1/{config.yaml,log.jsonl,result.json} >"$out/run/two"
# As a record has them, with what BLEU is computed from in place of translations.
for run in runs/sweep/{full,half}/seed-1; do
  { sed -n 's/.*"signature": *"\([^"]*\)".*/\1/p' "$run/test.json" && printf '4 3 2 1 4 3 2 1 4 4\n1 0 0 0 2 1 0 0 2 2\n'; } >"$run/test.bleu"
done
archive runs/sweep sweep.json {full,half}/seed-1/{config.yaml,log.jsonl,result.json,test.json,test.bleu} >"$out/run/recorded"
archive "$made/resume" predictor/{config.yaml,log.jsonl,result.json} >"$out/run/backskip"

# Two language models, tested on minimal pairs.
mkdir pairs-folder
printf '{"sentence_good": "ab", "sentence_bad": "ba"}\n{"sentence_good": "a", "sentence_bad": "c"}\n' >pairs-folder/order.jsonl
sed 's/train: text }/train: text, valid: text }/' lm.yaml >lm-valid.yaml
echo 'valid: { every: 1, at_start: yes }' >>lm-valid.yaml
for rate in 0.1 0.01; do
  "$tarn" train lm-valid.yaml --run lms/lr-$rate --quiet --set train.lr=$rate
  "$tarn" test lms/lr-$rate --blimp pairs-folder --threads 1 >/dev/null 2>&1
done
archive lms lr-{0.1,0.01}/{config.yaml,log.jsonl,result.json,test.json,test.pairs} >"$out/run/pairs"

{ printf '\x14\x01'; cat "$made/sweep/full/seed-1/log.jsonl"; } >"$out/log/events"
{ printf '\x04\x02'; head -n 6 "$made/resume/predictor/log.jsonl"; } >"$out/log/backskip"

# --- vocabularies. SentencePiece's tables of Unicode, which are most of its file, are cut down to a few units.
cp "$made/vocabularies/words" "$out/words/lowercase"
cp "$made/data/vocab" "$out/words/data"
cp vocab "$out/words/vocab"
cp "$made/vocabularies/char" "$out/characters/char"
cp bytes "$out/bytes/byte"
cp "$made/vocabularies/gpt2" "$out/gpt2_vocab/toy"
python3 - "$made/vocabularies/bpe" "$out/sentencepiece" <<'END'
import sys

def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])

def fields(data):
    at = 0
    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = number()
        if key & 7 == 0:
            yield key, number()
        else:
            size = number() if key & 7 == 2 else 8 if key & 7 == 1 else 4
            yield key, data[at:at + size]
            at += size

def join(items):
    out = b""
    for key, value in items:
        out += varint(key)
        out += varint(value) if key & 7 == 0 else (varint(len(value)) if key & 7 == 2 else b"") + value
    return out

model = list(fields(open(sys.argv[1], "rb").read()))
def write(name, tables, pieces, kind):
    items = []
    for key, value in model:
        if key >> 3 == 1:
            if pieces == 0:
                continue
            pieces -= 1
        if key >> 3 == 2 and kind:
            value = join([(k, kind if k >> 3 == 3 else v) for k, v in fields(value)])
        if key >> 3 == 3:
            value = join([(k, tables if k >> 3 == 2 else v) for k, v in fields(value)])
        items.append((key, value))
    open(sys.argv[2] + "/" + name, "wb").write(join(items))

write("bpe", b"", 120, 0)
write("unigram", b"", 40, 1)
units = bytes(4) * 512
write("tables", (len(units)).to_bytes(4, "little") + units + b"a\0bc\0", 12, 0)
END

# --- GPT-2: a vocabulary of the 256 bytes and a few merges in its own files, and a model
cp -r "$root/tests/golden/gpt2_toy" toy
archive toy vocab.json merges.txt >"$out/gpt2_files/toy"
cp toy/vocab.json toy/encoder.json
cp toy/merges.txt toy/vocab.bpe
archive toy encoder.json vocab.bpe >"$out/gpt2_files/openai"
# --- WordPiece: BERT's two files, and ours
mkdir -p bert && head -n 80 "$root/tests/golden/wordpiece_toy/vocab.txt" >bert/vocab.txt
printf '{"do_lower_case": false, "strip_accents": null, "tokenize_chinese_chars": true}\n' >bert/tokenizer_config.json
archive bert vocab.txt tokenizer_config.json >"$out/wordpiece/bert"
"$tarn" vocab --import-wordpiece bert/vocab.txt --lowercase --output "$out/wordpiece/ours"

# --- Marian: the files of the package, a vocabulary a side, and ours
cp -r "$root/tests/golden/marian_model/separate" marian
archive marian vocab.json source.spm tokenizer_config.json >"$out/marian/source"
archive marian target_vocab.json target.spm tokenizer_config.json >"$out/marian/target"
"$tarn" vocab --import-marian "$root/tests/golden/marian_model/swish" --output "$out/marian/ours"
# Marian's own files: lists in YAML, and a SentencePiece model as the vocabulary.
own="$root/tests/golden/marian_own"
cp "$own/separate/"{decoder.yml,vocab.src.yml,vocab.trg.yml} marian
archive marian decoder.yml vocab.src.yml vocab.trg.yml source.spm target.spm >"$out/marian/own"
archive "$own/source" decoder.yml both.spm >"$out/marian/own_pieces"
# fairseq's: a dictionary and codes.
archive "$root/tests/golden/fairseq/iwslt" dict.de.txt code >"$out/marian/fairseq"
# Lists of tokens, with and without a SentencePiece model, and one in front of which a token is put.
archive "$root/tests/golden/torch/tutorial" tokens.source.txt >"$out/marian/list"
mkdir list && cp "$root/tests/golden/torch/stacks/tokens.target.txt" list/tokens.source.txt
cp "$root/tests/golden/torch/stacks/target.spm" list/source.spm
archive list tokens.source.txt source.spm >"$out/marian/list_pieces"
printf 'tarn-vocab prefixed 1\nfirst 2\ntarn-vocab whitespace 3\nlowercase 0\nsize 5\n<unk>\n\n<bos>\n<eos>\na\n' >"$out/marian/prefixed"

cat >gpt2.yaml <<'END'
model: { d_model: 4, norm: pre, positions: learned, max_length: 6, embedding_scale: no, activation: gelu_tanh, dropout: 0 }
decoder: { layers: L }
kinds: { L: { mixer: attention, heads: 2, ffn: 16 } }
data: { vocab: bytes, train: text }
train: { max_updates: 1, max_tokens: 50, threads: 1, tensorboard: no }
END
"$tarn" train gpt2.yaml --run gpt2 --quiet
"$tarn" export --format gpt2 gpt2 hf
{ cat hf/config.json; printf -- '\n-- model --\n'; cat hf/model.safetensors; } >"$out/gpt2_model/tied"
{ cat "$root/tests/golden/gpt2_model/untied/config.json"; printf -- '\n-- model --\n'; cat hf/model.safetensors; } >"$out/gpt2_model/other"

# --- tokenizers, each as an archive and as the file of ours
for name in bytes pieces; do
  mkdir -p tokenizer-$name && cp "$root/tests/golden/tokenizers/$name.json" tokenizer-$name/tokenizer.json
  printf '{"eos_token":"</s>","bos_token":"<s>"}\n' >tokenizer-$name/tokenizer_config.json
  archive tokenizer-$name tokenizer.json tokenizer_config.json >"$out/tokenizer/$name"
  "$tarn" vocab --import-tokenizer tokenizer-$name --output "$out/tokenizer/$name-ours"
done

# --- LLaMA
for name in grouped qwen2; do
  { cat "$root/tests/golden/llama_model/$name/config.json"; printf -- '\n-- model --\n'; cat "$root/tests/golden/llama_model/$name/model.safetensors"; } >"$out/llama_model/$name"
done

# --- GGUF: of the package gguf, of ours without a vocabulary, and with pieces of SentencePiece
cp "$root/tests/golden/gguf/model.gguf" "$out/gguf/package"
cp "$root/tests/golden/gguf/gpt2.gguf" "$out/gguf/gpt2"
printf 'sees\na sea\nas\nsee\n' >pieces.txt
"$tarn" vocab --type bpe --size 9 --output pieces.model pieces.txt >/dev/null
"$tarn" prepare --vocab pieces.model --text pieces.txt --output pieces >/dev/null
sed 's/vocab: bytes, train: text/vocab: pieces.model, train: pieces/' gpt2.yaml >pieces.yaml
"$tarn" train pieces.yaml --run pieces-run --quiet
"$tarn" export --format gguf pieces-run "$out/gguf/pieces"
"$tarn" import "$root/tests/golden/llama_model/qwen2" --vocab bytes --output qwen2-model
"$tarn" export --format gguf --type f16 qwen2-model "$out/gguf/ours"

# --- Marian
"$tarn" prepare --vocab bytes --source text --target text --output pairs >/dev/null
cat >marian.yaml <<'END'
model: { d_model: 4, positions: sinusoidal_paper, max_length: 6, embeddings: all, output_bias: yes, activation: swish, dropout: 0 }
encoder: { layers: L }
decoder: { layers: L }
kinds: { L: { mixer: attention, heads: 2, ffn: 4 } }
data: { vocab: bytes, train: pairs }
train: { max_updates: 1, max_tokens: 50, threads: 1, tensorboard: no }
END
"$tarn" train marian.yaml --run marian-run --quiet
"$tarn" export --format marian marian-run marian-folder
{ cat marian-folder/config.json; printf -- '\n-- model --\n'; cat marian-folder/model.safetensors; } >"$out/marian_model/shared"

# --- PyTorch's nn.Transformer: the tutorial's names with positions in a table, and others with one matrix for the words
python3 - "$out/marian_model" <<'END'
import json, math, struct, sys
def make(path, config, shapes, table):
    head, data = {}, b""
    for name, shape in shapes.items():
        count = math.prod(shape)
        values = [0.25] * count
        if name == table:
            values = [f(p * 10000 ** (-i / shape[-1])) for p in range(shape[0]) for i in range(0, shape[-1], 2) for f in (math.sin, math.cos)]
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *values)
    text = json.dumps(head).encode()
    with open(path, "wb") as out:
        out.write(json.dumps(dict({"model_type": "nn.Transformer", "nhead": 2}, **config)).encode() + b"\n-- model --\n")
        out.write(struct.pack("<Q", len(text)) + text + data)
def stack(before, decoder, top, d=2, ffn=2):
    shapes, at = {}, before + "layers.0."
    for part in ("self_attn", "multihead_attn")[:2 if decoder else 1]:
        shapes.update({f"{at}{part}.in_proj_weight": [3 * d, d], f"{at}{part}.in_proj_bias": [3 * d], f"{at}{part}.out_proj.weight": [d, d], f"{at}{part}.out_proj.bias": [d]})
    shapes.update({at + "linear1.weight": [ffn, d], at + "linear1.bias": [ffn], at + "linear2.weight": [d, ffn], at + "linear2.bias": [d]})
    for norm in [f"{at}norm{i}" for i in range(1, 4 if decoder else 3)] + ([before + "norm"] if top else []):
        shapes.update({norm + ".weight": [d], norm + ".bias": [d]})
    return shapes
words, pe = [259, 2], "positional_encoding.pos_embedding"
whole = {"src_tok_emb.embedding.weight": words, "tgt_tok_emb.embedding.weight": words, "generator.weight": words, "generator.bias": [259], pe: [3, 1, 2]}
make(sys.argv[1] + "/torch", {}, {**whole, **stack("transformer.encoder.", False, True), **stack("transformer.decoder.", True, True)}, pe)
# FFNs of one unit, whose matrices are as long as vectors.
make(sys.argv[1] + "/torch_unit", {}, {**whole, **stack("transformer.encoder.", False, True, ffn=1), **stack("transformer.decoder.", True, True, ffn=1)}, pe)
names = {k: "embed" for k in ("source_embedding", "target_embedding", "generator")}
make(sys.argv[1] + "/torch_stacks", dict(names, norm_first=True, positions="place", source_bos=False),
     {"module.embed.weight": words, "module.place": [3, 2], **stack("module.a.", False, False), **stack("module.b.", True, False)}, None)
END

# --- Marian's own files: the tensors' names, norms after the sublayers and before them, stored and deflated
python3 - "$out/marian_own" <<'END'
import struct, sys, zipfile
def make(path, pre, method):
    names = {"Wemb": (258, 4), "decoder_ff_logit_out_b": (1, 258)}
    end = "_pre" if pre else ""
    for side, parts in (("encoder", ("self",)), ("decoder", ("self", "context"))):
        for part in parts:
            names.update({f"{side}_l1_{part}_W{x}": (4, 4) for x in "qkvo"})
            names.update({f"{side}_l1_{part}_b{x}": (1, 4) for x in "qkvo"})
        names.update({f"{side}_l1_ffn_W1": (4, 2), f"{side}_l1_ffn_b1": (1, 2), f"{side}_l1_ffn_W2": (2, 4), f"{side}_l1_ffn_b2": (1, 4)})
        for norm in [part + "_Wo" for part in parts] + ["ffn_ffn"]:
            names.update({f"{side}_l1_{norm}_ln_{x}{end}": (1, 4) for x in ("scale", "bias")})
        if pre:
            names.update({f"{side}_top_ln_{x}": (1, 4) for x in ("scale", "bias")})
    text = "type: transformer\ndim-emb: 4\nenc-depth: 1\ndec-depth: 1\ntransformer-heads: 2\ntransformer-dim-ffn: 2\ntied-embeddings-all: true\ndim-vocabs: [258, 258]\n"
    if pre:
        text += "transformer-preprocess: n\ntransformer-postprocess: da\ntransformer-postprocess-top: n\n"
    with zipfile.ZipFile(path, "w", method) as file:
        def add(name, kind, shape, values):
            head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
            entry = zipfile.ZipInfo(name + ".npy")
            file.writestr(entry, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + values, method)
        add("special:model.yml", "|i1", (len(text) + 1,), text.encode() + b"\0")
        for name, shape in names.items():
            add(name, "<f4", shape, struct.pack("<f", 0.25) * (shape[0] * shape[1]))
make(sys.argv[1] + "/stored", False, zipfile.ZIP_STORED)
make(sys.argv[1] + "/deflated", True, zipfile.ZIP_DEFLATED)
END

# --- BERT and RoBERTa
"$tarn" vocab --type byte --mask-symbols --output bytes
"$tarn" prepare --vocab bytes --text text --output masked >/dev/null
cat >bert.yaml <<'END'
model: { d_model: 4, segments: 2, positions: learned, max_length: 6, embedding_norm: yes, embedding_scale: no, activation: gelu, dropout: 0 }
encoder: { layers: L }
kinds: { L: { mixer: attention, heads: 2, ffn: 16 } }
data: { vocab: bytes, train: masked }
train: { max_updates: 1, max_tokens: 50, threads: 1, tensorboard: no }
END
"$tarn" train bert.yaml --run bert-run --quiet
for name in bert roberta; do
  "$tarn" export --format $name bert-run $name-folder
  { cat $name-folder/config.json; printf -- '\n-- model --\n'; cat $name-folder/model.safetensors; } >"$out/bert_model/$name"
done

# --- series
head -n 6 "$made/series/lorenz.csv" >"$out/series/lorenz"
printf '1,2\n-3e2,.5\r\n4,5\n' >"$out/series/plain"
{ echo '#columns z,1'; head -n 4 "$made/series/lorenz.csv"; } >"$out/series/columns"
"$tarn" series train "$made/series/lorenz.csv" --rows 150 --units 6 --rc-connectivity 0.6 --output "$out/esn/model" >/dev/null
"$tarn" series train "$made/series/lorenz.csv" --rows 150 --units 6 --rc-connectivity 0.6 --activation relu --lr 0.5 --bias-scaling 0 --output "$out/esn/relu" >/dev/null

# --- texts
printf 'a b\t\tc\n\nd' >"$out/forced/columns"
printf 'a b a\tb a\ta\nb a b\nc d' >"$out/forced/overlap"
printf 'a \xff\tx' >"$out/forced/unknown"
for task in arc hellaswag piqa lambada; do head -n 2 "$here/../golden/choices/$task.jsonl" >"$out/choices/$task"; done
printf '{"context": "ab", "choices": ["a", "b c"], "answer": 1}\n{"question": {"stem": "a?", "choices": [{"text": "b", "label": "A"}, {"text": "c", "label": "B"}]}, "answerKey": "B"}\n' >"$out/choices/plain"
archive "$made/data/pairs" order.jsonl >"$out/pairs/order"
printf -- '-- a.jsonl --\n{"sentence_good": "ab a", "sentence_bad": "ab b", "field": "x/y", "linguistics_term": "t"}\n-- b.jsonl --\n{"sentence_good": "caf\\u00e9 \\ud83d\\ude00", "sentence_bad": "b"}\n' >"$out/pairs/two"
{ printf 'ab'; cat "$made/data/test.en" "$made/data/test.de"; } >"$out/scores/corpus"
{ printf '\x47\x23'; printf 'It costs 1,234.5 \xe2\x82\xac (don\x27t ask).\nB\n\xe4\xbd\xa0\xe5\xa5\xbd &quot;x&quot;\nIt cost 1,234.5$.\nB c\n\xe4\xbd\xa0 \xff\n'; } >"$out/scores/signs"
cp "$made/data/train.de" "$out/sentences/german"
head -n 30 "$made/data/train.de" >"$out/split/german"
printf 'text\tlabel\na\t1\r\nb\303\244\342\202\254\t0' >"$out/split/table"
printf '"Why?" John asked. He lives in the U.S. No. 5 is Dr. Smith... "Yes!" (See p. 3.) Etc.\n1. One\n\nAm 3. Mai z.\xc2\xa0B. kam Prof. Dr. M\xc3\xbcller.\n' >"$out/sentences/marks"
cp "$made/data/train.en" "$out/text/english"
printf '\xef\xbb\xbfa b\r\nc \xff\xfe b\n\na a\xcc\x81 \xf0\x9f\x98\x80 b\nlast' >"$out/text/bytes"
for pack in gzip xz zstd; do
  command -v $pack >/dev/null || continue
  head -n 3 "$made/data/train.en" | $pack -c >"$out/packed/$pack"
  { printf 'a\n' | $pack -c; printf 'b\n' | $pack -c; } >"$out/packed/$pack-two"
  yes ab | head -n 2000 | $pack -c >"$out/packed/$pack-repeats"
done
printf '\x1f\x8bno\n' >"$out/packed/plain"
