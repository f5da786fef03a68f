#!/usr/bin/env bash
# Makes the files of one version of the program that every later version has to read: tests/cli/versions.sh.
# usage: TARN=PROGRAM make.sh FOLDER    for example tests/versions/0.1.0
# All is tiny and made from the program's own corpus. Texts and losses are kept only if every instruction set of this
# machine agrees on them.
set -eu
tarn=$(readlink -f "${TARN:?the program}")
here=$(cd "$(dirname "$0")" && pwd)
output=$1
[ ! -e "$output" ] || { echo "make: $output is there" >&2; exit 2; }
mkdir -p "$output"
output=$(readlink -f "$output")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$output"
mkdir data models models/expected vocabularies series

"$tarn" corpus --output "$work/corpus" --sentences 400 --held-out 12 >/dev/null
# So few sentences that they can be learnt by heart.
for side in de en; do
  head -n 12 "$work/corpus/train.$side" >data/train.$side
  head -n 6 data/train.$side >data/test.$side
done
"$tarn" vocab --type whitespace --size 200 --output data/vocab data/train.de data/train.en 2>/dev/null
mkdir data/pairs
paste data/test.en <(rev data/test.en) | while IFS=$'\t' read -r good bad; do
  printf '{"sentence_good": "%s", "sentence_bad": "%s", "field": "order"}\n' "$good" "$bad"
done >data/pairs/order.jsonl
"$tarn" prepare --vocab data/vocab --source data/train.de --target data/train.en --output data/train >/dev/null
"$tarn" prepare --vocab data/vocab --source data/test.de --target data/test.en --output data/valid >/dev/null
"$tarn" prepare --vocab data/vocab --text data/train.en --output data/text >/dev/null
"$tarn" prepare --vocab data/vocab --text data/test.en --output data/text-valid >/dev/null

# --- vocabularies of each kind, and what they make of a text ------------------------------------------------------------
cat "$work/corpus/train.de" "$work/corpus/train.en" >"$work/text"
for kind in bpe; do  # one: most of such a file is Unicode tables
  "$tarn" vocab --type $kind --size 120 --output vocabularies/$kind "$work/text" 2>/dev/null
done
"$tarn" vocab --type char --size 50 --output vocabularies/char "$work/text" 2>/dev/null
"$tarn" vocab --type byte --output vocabularies/byte
"$tarn" vocab --type whitespace --size 30 --lowercase --output vocabularies/words "$work/text" 2>/dev/null
"$tarn" vocab --import-gpt2 "$here/../golden/gpt2_toy" --output vocabularies/gpt2
{ cat data/test.de; printf 'Caf\xc3\xa9, 12 o\x27clock \xe2\x82\xac!\n'; } >vocabularies/text
"$tarn" vocab --import-wordpiece "$here/../golden/wordpiece_toy" --output vocabularies/wordpiece
for file in bpe char byte words gpt2 wordpiece; do
  "$tarn" encode --vocab vocabularies/$file --ids <vocabularies/text >vocabularies/$file.ids
done

# --- models of each kind ------------------------------------------------------------------------------------------------
train="{ max_updates: 400, max_tokens: 150, lr: 0.02, warmup: 20, schedule: constant, label_smoothing: 0, save_every: 200, keep_last: 2, threads: 1, tensorboard: no }"
model() {  # NAME SIDE: description on standard input without data and train; trains it and keeps the model without moments
  local name=$1 data="{ vocab: data/vocab, train: data/train }" last=checkpoint_last.safetensors
  shift
  [ "$1" = lm ] && data="{ vocab: data/vocab, train: data/text }"
  shift
  { cat; echo "data: $data"; echo "train: $train"; } >"$work/$name.yaml"
  "$tarn" train "$work/$name.yaml" --run "$work/$name" --quiet "$@"
  [ -f "$work/$name/$last" ] || { echo "make: $name has no checkpoint" >&2; exit 1; }
  "$tarn" average --output "models/$name.safetensors" "$work/$name/$last" >/dev/null
}
pair="model: { d_model: 8, embeddings: all, dropout: 0, max_length: 32"
frozen="mixer: attention, heads: 2, ffn: 8, frozen: yes"
attention="L: { mixer: attention, heads: 2, ffn: 16 }"
lm="model: { d_model: 8, positions: none, embeddings: none, frozen_embeddings: decoder, dropout: 0, output_bias: yes }"

model attention-post pair <<<"$pair }
encoder: { layers: L*2 }
decoder: { layers: L }
kinds: { $attention }"
model frozen-shared-pre pair <<<"$pair, norm: pre }
encoder: { layers: (R1 L1)*2 }
decoder: { layers: L }
kinds: { $attention, R: { $frozen } }"
model hadamard pair <<<"$pair, norm: pre }
encoder: { layers: R L }
decoder: { layers: L }
kinds: { $attention, R: { $frozen, init: hadamard } }"
model no-mixer pair <<<"$pair }
encoder: { layers: R L }
decoder: { layers: L }
kinds: { $attention, R: { mixer: none, ffn: 16, frozen: yes } }"
model convolutions pair <<<"$pair }
encoder: { layers: R C }
decoder: { layers: D }
kinds: { C: { mixer: light_conv, heads: 2, kernel: 3, ffn: 8 }, D: { mixer: dynamic_conv, heads: 2, kernel: 3, ffn: 8 }, R: { mixer: light_conv, heads: 2, kernel: 3, ffn: 8, frozen: yes } }"
model bigru pair <<<"$pair }
encoder: { layers: R L }
decoder: { layers: G }
kinds: { $attention, R: { mixer: bigru, hidden: 4, ffn: 8, frozen: yes }, G: { mixer: gru, heads: 2, ffn: 8 } }"
model bf16 pair --set train.precision=bf16 <<<"$pair }
encoder: { layers: R L }
decoder: { layers: L }
kinds: { $attention, R: { $frozen } }"
model learned-positions pair <<<"model: { d_model: 8, embeddings: none, dropout: 0, max_length: 24, positions: learned, output_rank: 4, activation: gelu, frozen_embeddings: encoder }
encoder: { place: { reservoirs: 1, of: 2, rule: bottom } }
decoder: { layers: L }
kinds: { $attention, R: { $frozen, init: xavier } }"
model lstm lm <<<"model: { d_model: 8, positions: none, embeddings: decoder, dropout: 0 }
decoder: { layers: G*2 }
kinds: { G: { mixer: lstm, residual: no } }"
for topology in random small_world scale_free ring; do
  model esn-$topology lm <<<"$lm
decoder: { layers: E }
kinds: { E: { mixer: esn, input: direct, residual: no, frozen: yes, sparsity: 0.5, topology: $topology } }"
done
model esn-sparse lm <<<"$lm
decoder: { layers: E }
kinds: { E: { mixer: esn, hidden: 64, sparsity: 0.9, leak_rate: 0.6, nonlinearity: tanh, frozen_input: yes, ffn: 8 } }"
adam=$train
train="{ optimiser: ridge, ridge: 0.1, max_updates: 0, max_epochs: 1, max_tokens: 300, label_smoothing: 0, threads: 1, tensorboard: no }"
model ridge lm <<<"$lm
decoder: { layers: E }
kinds: { E: { mixer: esn, input: direct, residual: no, frozen: yes, sparsity: 0.5 } }"
train=$adam
model backskip pair <<<"$pair }
encoder: { layers: L R }
decoder: { layers: L }
kinds: { $attention, R: { $frozen, backskip: { method: predictor, refresh: 4 } } }"
model for-pruning pair <<<"$pair }
encoder: { layers: L*2, layerdrop: 0.1 }
decoder: { layers: L*2, layerdrop: 0.1 }
kinds: { $attention }"
"$tarn" prune --rate 0.5 models/for-pruning.safetensors models/pruned.safetensors
rm models/for-pruning.safetensors
"$tarn" average --output models/averaged.safetensors "$work"/frozen-shared-pre/checkpoint_{200,400}.safetensors >/dev/null
"$tarn" export --dense models/hadamard.safetensors models/dense.safetensors >/dev/null
# A model of Hugging Face's package, with the least matrices that it can have.
model own-gpt2 lm <<<"model: { d_model: 8, norm: pre, positions: learned, max_length: 20, embedding_scale: no, activation: gelu_tanh, dropout: 0 }
decoder: { layers: L }
kinds: { L: { mixer: attention, heads: 2, ffn: 32 } }"
"$tarn" export --format gpt2 models/own-gpt2.safetensors gpt2
"$tarn" import-gpt2 gpt2 --vocab data/vocab --output models/gpt2.safetensors
rm models/own-gpt2.safetensors

# say MODEL: what it makes of the test text.
say() {
  if "$tarn" inspect "$1" | grep -q '^encoder:'; then
    "$tarn" translate "$1" --scores --beam 2 --threads 1 <data/test.de 2>/dev/null
  else
    "$tarn" score "$1" --threads 1 data/test.en 2>/dev/null
  fi
}
# near FILE FILE: the same texts, and numbers in the first column within 0.001.
near() { paste -d '\t' "$1" "$2" | awk -F '\t' '{ n = NF / 2; d = $1 - $(n + 1); if (d > 1e-3 || d < -1e-3) exit 1
    for (i = 2; i <= n; i++) if ($i != $(n + i)) exit 1 }'; }
for file in models/*.safetensors; do
  name=$(basename "$file" .safetensors)
  say "$file" >"models/expected/$name"
  for isa in portable avx2 avx512 avx512_bf16; do
    TARN_ISA=$isa say "$file" >"$work/other"
    near "models/expected/$name" "$work/other" || { echo "make: $name differs with $isa" >&2; exit 1; }
  done
done

# --- run directories: a sweep of two variants and two seeds, and runs that go on ----------------------------------------
for seed in 1 2; do
  for variant in full half; do
    layers="L*2"
    [ $variant = full ] || layers="R1 L"
    { echo "$pair }"; echo "encoder: { layers: $layers }"; echo "decoder: { layers: L }"
      echo "kinds: { $attention, R: { $frozen } }"
      echo "data: { vocab: data/vocab, train: data/train, valid: data/valid }"
      echo "train: { max_updates: 30, max_tokens: 300, lr: 0.03, warmup: 5, log_every: 10, keep_last: 0, clock: cpu, threads: 1, tensorboard: no, seed: $seed }"
      echo "valid: { every: 10, at_start: yes }"; } >"$work/run.yaml"
    "$tarn" train "$work/run.yaml" --run sweep/$variant/seed-$seed --quiet
    "$tarn" test sweep/$variant/seed-$seed --source data/test.de --reference data/test.en --threads 1 >/dev/null 2>&1
    rm -f sweep/$variant/seed-$seed/{checkpoint_*,lock}
  done
done
cat >sweep/sweep.json <<'END'
{"name": "version", "baseline": "full", "budget_seconds": null, "clock": "cpu", "seeds": [1, 2],
 "variants": [{"name": "full", "set": {"encoder.layers": "L*2"}}, {"name": "half", "set": {"encoder.layers": "R1 L"}}]}
END
# go_on NAME: a run of 10 updates, stopped there, with the line of the log that its eleventh update gives. Description on
# standard input.
go_on() {
  local name=$1 data="{ vocab: data/vocab, train: data/train, valid: data/valid }"
  shift
  { cat; echo "data: $data"; echo "train: { max_updates: 10, max_tokens: 300, lr: 0.01, warmup: 5, log_every: 1, keep_last: 1, threads: 1, tensorboard: no }"; echo "valid: { every: 5, bleu: no }"; } >"$work/run.yaml"
  mkdir -p resume
  "$tarn" train "$work/run.yaml" --run resume/$name --quiet "$@"
  rm -f resume/$name/{checkpoint_best.safetensors,checkpoint_1*.safetensors,checkpoint_5.safetensors,lock}
  cp -r resume/$name "$work/copy"
  "$tarn" train --resume "$work/copy" --set train.max_updates=11 --quiet
  grep '"kind":"train","step":11,' "$work/copy/log.jsonl" >resume/$name.expected
  [ -s resume/$name.expected ] || { echo "make: the log of $name has no update 11" >&2; exit 1; }
  rm -rf "$work/copy"
}
go_on shared <<<"$pair }
encoder: { layers: (R1 L1)*2 }
decoder: { layers: L }
kinds: { $attention, R: { $frozen } }"
go_on cached --set train.cache_frozen=yes --set train.precision=bf16 <<<"model: { d_model: 8, embeddings: none, dropout: 0, max_length: 32, frozen_embeddings: encoder }
encoder: { layers: R L }
decoder: { layers: L }
kinds: { $attention, R: { $frozen } }"
go_on predictor --set train.autofreeze=4 <<<"$pair }
encoder: { layers: L R L }
decoder: { layers: L }
kinds: { $attention, R: { $frozen, backskip: { method: predictor, refresh: 2 } } }"

# --- encoders alone: rows with labels, packed rows and windows, classifiers and a masked language model -----------------
mkdir encoders
"$tarn" vocab --type whitespace --size 60 --mask-symbols --output encoders/vocab data/train.en 2>/dev/null
{ printf 'first\tsecond\tclass\tvalue\n'; awk '{ print $0 "\t" $1 "\t" (NR % 2 ? "odd" : "even") "\t" NR / 8 }' data/train.en; } >encoders/rows.tsv
tail -n +2 encoders/rows.tsv | cut -f 1,2 >encoders/text
rows() { "$tarn" prepare --vocab encoders/vocab "$@" >/dev/null; }
rows --table encoders/rows.tsv --text first --pair second --labels class --output encoders/classes
rows --table encoders/rows.tsv --text first --pair second --labels value --numbers --output encoders/values
rows --text data/train.en --pack 24 --output encoders/packed
rows --text data/train.en --stream 12 --output encoders/stream
encoder="d_model: 8, dropout: 0, positions: learned, max_length: 32 }
encoder: { layers: R L }
kinds: { $attention, R: { $frozen } }"
for name in classes values; do
  task=classification
  [ $name = classes ] || task=regression
  { echo "model: { task: $task, segments: 2, $encoder"; echo "data: { vocab: encoders/vocab, train: encoders/$name }"
    echo "train: $train"; } >"$work/$name.yaml"
  "$tarn" train "$work/$name.yaml" --run "$work/$name" --quiet
  "$tarn" average --output "encoders/$name.safetensors" "$work/$name/checkpoint_last.safetensors" >/dev/null 2>&1
  # The number first, as near() wants it.
  "$tarn" classify "encoders/$name.safetensors" encoders/text --threads 1 2>/dev/null |
    awk -F '\t' '{ print $NF (NF > 1 ? "\t" $1 : "") }' >"encoders/$name.expected"
done
of() { echo --set data.vocab=encoders/vocab --set data.train=encoders/$1 --set data.valid=encoders/$1 --set valid.bleu=; }
go_on masked $(of packed) <<<"model: { task: masked-language-model, $encoder"
go_on windows $(of stream) <<<"model: { d_model: 8, dropout: 0 }
decoder: { layers: L }
kinds: { $attention }"

# --- series -------------------------------------------------------------------------------------------------------------
"$tarn" series generate lorenz --rows 300 --output series/lorenz.csv
"$tarn" series train series/lorenz.csv --rows 250 --units 20 --output series/model.safetensors >/dev/null
"$tarn" series forecast series/model.safetensors series/lorenz.csv --from 250 --steps 10 --output series/forecast.csv >/dev/null
du -sb "$output"
