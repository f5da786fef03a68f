#!/usr/bin/env bash
# --json, for every command that prints results: one object per line and nothing else on standard output, as read by jq.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"
command -v jq >/dev/null || { echo "no jq"; exit 77; }
sed -i 's/max_updates: 60/max_updates: 4/; s/every: 20,/every: 2, at_start: yes,/' model.yaml

# objects FILTER COMMAND...: the output is objects, one per line, and the last one passes the filter.
objects() {
  local filter=$1
  shift
  "$@" --json >out.json 2>error.txt </dev/null || fail "$*: $(cat error.txt)"
  check "$filter" "$*"
}
check() {
  [ -s out.json ] || fail "$2: it prints nothing"
  jq -e -R 'fromjson | type == "object"' out.json >types.txt || fail "$2: not an object a line: $(cat out.json)"
  jq -e -s ".[-1] | $1" out.json >/dev/null || fail "$2: not so: $1: $(tail -n 1 out.json)"
}
input() {  # FILE FILTER COMMAND...: the same with an input
  local file=$1 filter=$2
  shift 2
  "$@" --json >out.json 2>error.txt <"$file" || fail "$*: $(cat error.txt)"
  check "$filter" "$*"
}

objects '.output == "again"' "$TARN" corpus --output again --sentences 20 --held-out 5
objects '.lines == 300 and .used == 1 and .output == "v"' "$TARN" vocab --type char --output v corpus/train.de
# U+0085, U+2028 and U+2029 end lines for some readers.
ends=$(printf 'v\xe2\x80\xa8w\xe2\x80\xa9x\xc2\x85y')
objects ".output == \"$ends\"" "$TARN" vocab --type char --output "$ends" corpus/train.de
grep -q '"v\\u2028w\\u2029x\\u0085y"' out.json || fail "ends of lines in a line: $(cat out.json)"
objects '.output == "v2" and (.from | endswith("gpt2_toy"))' "$TARN" vocab --import-gpt2 "$TARN_SOURCE_DIR/tests/golden/gpt2_toy" --output v2
objects '.sentences >= 300' "$TARN" sentences corpus/train.en --output sentences.txt
input corpus/valid.de '.line == 20 and (.ids | length) == (.pieces | length)' "$TARN" encode --vocab vocab
"$TARN" encode --vocab vocab <corpus/valid.de >tokens
input tokens '.line == 20 and (.text | length) > 0' "$TARN" decode --vocab vocab
objects '.pairs > 250 and .longest_source > 1' "$TARN" prepare --vocab vocab --source corpus/train.de --target corpus/train.en --output train
objects '.total_bytes > 1e6 and (.parts | length) > 3 and .parts[0].label == "embeddings"' "$TARN" plan model.yaml
objects '.kind == "end" and .step == 4' "$TARN" train model.yaml --run run
objects '.kind == "summary" and .runs == 2 and .best_sd >= 0' "$TARN" train model.yaml --run seeds --seeds 1,2
objects '.kind and (.params | length) > 3' "$TARN" inspect run
objects '.found == 0 and .translated == 20 and .data.lines == 20' "$TARN" distill run --source corpus/valid.de --vocab vocab --output distilled
input corpus/valid.de '.index == 19 and (.hypotheses[0].text | type) == "string"' "$TARN" translate run
objects '.score > 99.99' "$TARN" bleu --reference corpus/valid.en corpus/valid.en
objects '.score > 99.99' "$TARN" chrf --reference corpus/valid.en corpus/valid.en
objects '.score == 0' "$TARN" ter --reference corpus/valid.en corpus/valid.en
objects '.output == "mean" and (.checkpoints | length) == 2' "$TARN" average --output mean run/checkpoint_best.safetensors run/checkpoint_last.safetensors
objects '.output == "dense" and (.checkpoint | startswith("run/"))' "$TARN" export --dense run dense
objects '.output == "pruned" and (.checkpoint | startswith("run/"))' "$TARN" prune --encoder-layers-to-keep 1,2 run pruned
objects '.bleu >= 0 and .sentences == 20' "$TARN" test run --source corpus/valid.de --reference corpus/valid.en
objects '.metric and (.configurations | length) == 1' "$TARN" compare seeds --metric loss --budget 1
objects '.output == "page/report.html"' "$TARN" report seeds --metric loss --budget 1 --output page
"$TARN" vocab --type byte --output bytes
objects '.output == "lm" and (.folder | endswith("tied"))' "$TARN" import-gpt2 "$TARN_SOURCE_DIR/tests/golden/gpt2_model/tied" --vocab bytes --output lm
printf 'ab\nb a\n' >text
objects '.line == 2 and .log_probability < 0' "$TARN" score lm text
objects '.lines == 2 and .bits_per_byte > 0' "$TARN" score lm text --summary-only
objects '.index == 0 and (.texts | length) == 1' "$TARN" generate lm --prompt a --max-tokens 3
head -2 corpus/valid.de >two
objects '.output == "dynamics/dynamics.html"' "$TARN" dynamics run --input two --iterations 3 --exponents 2 --output dynamics
mkdir pairs && printf '{"sentence_good": "ab", "sentence_bad": "abcd"}\n' >pairs/p.jsonl
objects '.overall.pairs == 1 and .paradigms[0].name == "p"' "$TARN" blimp lm pairs
printf '{"context": "a", "choices": ["b", "ba"], "answer": 1}\n{"context": "b", "choices": ["a", "b"], "answer": "0"}\n' >questions
objects '.files[0].format == "choices" and .files[0].questions == 2 and (.files[0].answers | length) == 2' "$TARN" choices lm questions --output told
objects '.output == "x.csv"' "$TARN" series generate lorenz --rows 300 --output x.csv
objects '.unit == "lines" and .taken == 300' "$TARN" split x.csv --every 1 --header 1 --output y.csv
objects '.recipes | length >= 8' "$TARN" recipe list
objects '.score == "nrmse" and .model == null' "$TARN" recipe show esn-series
objects '.name == "esn-series"' "$TARN" recipe run esn-series --output gone --dry-run
objects '.units == 10 and .nrmse > 0' "$TARN" series train x.csv --units 10 --rc-connectivity 0.5 --output esn
objects '.nrmse or .forecasts or .starts' "$TARN" series forecast esn x.csv --steps 10

# Commands whose help does not mention --json print none.
for command in $("$TARN" help | sed -n '/^commands:/,/^$/s/^  \([a-z0-9-]*\) .*/\1/p'); do
  case $command in series | recipe | serve) continue ;; esac
  "$TARN" help "$command" >help.txt
  grep -q -- ' --json ' help.txt || fail "tarn $command has no --json"
done
