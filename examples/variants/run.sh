#!/usr/bin/env bash
# Compares the parts of variants.txt on a task, under equal parameters or operations if asked, and writes a table and a report.
#   run.sh TASK OUTPUT --data PATH [--text FILE] [--equal parameters|operations [--change ffn|layers|heads]]
#          [--quick | --seconds N | --updates N] [--rows NAMES] [--dry-run]
# TASK and its data:
#   translation  PATH holds train, val (or valid) and test (or test_2016_flickr), each .de and .en: Multi30k, Tatoeba
#   masked       PATH holds SST-2/train.tsv and dev.tsv, on which bodies are fine-tuned; --text is a plain text to pre-train them on.
#                CoLA and RTE, where they are there, are prepared for the questions in results/ too
#   language     PATH is a text file, or one packed by xz: a language model of bytes
# Each row is trained with three seeds for five minutes of one core, with --quick for 20 seconds, which makes a first table in
# about an hour on two cores, or for as many --seconds or --updates as are given; bodies are fine-tuned for four updates a
# second of that, or for half the updates. Runs of equal updates compare on machines that differ, or do other work as well.
# --rows NAME,NAME,... takes these rows and vanilla. OUTPUT/TASK has the runs, OUTPUT/table-TASK.md the table,
# OUTPUT/report-TASK the report with figures. The same command goes on where it was stopped. --dry-run prints sizes and how long
# it will take.
set -euo pipefail
fail() { echo "run.sh: $*" >&2; exit 2; }
usage="usage: run.sh TASK OUTPUT --data PATH [--text FILE] [--equal parameters|operations [--change ffn|layers|heads]] [--quick | --seconds N | --updates N] [--rows NAMES] [--dry-run]"
here=$(cd "$(dirname "$0")" && pwd)
tarn=$(realpath "${TARN:-$here/../../build/release/tarn}")
[ -x "$tarn" ] || fail "$tarn is no program; build it with ./run build, or name it in TARN"
command -v jq >/dev/null || fail "jq is missing; it makes the table"
[ $# -ge 2 ] || fail "$usage"
task=$1 output=$2 data='' text='' equal=no change=ffn rows='' seconds='' updates='' options=()
shift 2
while [ $# -gt 0 ]; do
  case $1 in
    --data | --text | --equal | --change | --rows | --seconds | --updates) [ $# -gt 1 ] || fail "$1 wants a value" ;;&
    --data) data=$2 && shift ;;
    --text) text=$2 && shift ;;
    --equal) equal=$2 && shift ;;
    --change) change=$2 && shift ;;
    --rows) rows=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    --updates) updates=$2 && shift ;;
    --quick) seconds=20 ;;
    --dry-run) options=(--dry-run) ;;
    *) fail "unknown option $1; $usage" ;;
  esac
  shift
done
case $equal in parameters | no) ;; operations) equal=flops ;; *) fail "--equal $equal: there are parameters and operations" ;; esac
case $change in ffn | layers | heads) ;; *) fail "--change $change: there are ffn, layers and heads" ;; esac
[ $equal != no ] || [ $change = ffn ] || fail "--change $change says what is changed for --equal, which is missing"
[ -e "$data" ] || fail "--data ${data:-is missing}: there is no such file or folder"
data=$(realpath "$data")
[ -z "$seconds" ] || [[ $seconds =~ ^[1-9][0-9]{0,6}$ ]] || fail "--seconds $seconds: it is a whole number above 0"
[ -z "$updates" ] || [[ $updates =~ ^[1-9][0-9]{0,6}$ ]] || fail "--updates $updates: it is a whole number above 0"
[ -z "$updates" ] || [ -z "$seconds" ] || fail "--updates and --seconds (or --quick): give one of them"
seconds=${seconds:-300} updates=${updates:-0}
case $task in
  translation) stack=encoder test="{ source: data-$task/test.source, reference: data-$task/test.reference }" ;;
  masked)
    stack=encoder test=''
    [ -f "$text" ] || fail "--text ${text:-is missing}: masked pre-trains on a text file"
    text=$(realpath "$text") ;;
  language) stack=decoder test="{ text: data-$task/test.txt, window: 256, stride: 128 }" ;;
  *) fail "there is no task $task; there are: translation masked language" ;;
esac
mkdir -p "$output/data-$task"
cd "$output"
store=data-$task  # the descriptions name data/, which becomes this

# --- the data -------------------------------------------------------------------------------------------------------------

asked="$data $text"
[ ! -s $store/ready ] || [ "$(cat $store/ready)" = "$asked" ] || fail "$PWD/$store was made of $(cat $store/ready), not of $asked; give another OUTPUT"
both() {  # NAME...: the first of these that the corpus has in both languages
  local name
  for name in "$@"; do [ ! -e "$data/$name.de" ] || [ ! -e "$data/$name.en" ] || { echo "$data/$name"; return; }; done
  fail "$data holds none of these in both de and en: $*"
}
prepare_translation() {
  local train valid tests
  train=$(both train) && valid=$(both val valid dev) && tests=$(both test test_2016_flickr) || exit 2
  "$tarn" vocab --type bpe --size 4000 --output $store/vocab.model "$train.de" "$train.en"
  "$tarn" prepare --vocab $store/vocab.model --source "$train.de" --target "$train.en" --output $store/train
  "$tarn" prepare --vocab $store/vocab.model --source "$valid.de" --target "$valid.en" --output $store/valid
  cp "$valid.en" $store/valid.reference
  cp "$tests.de" $store/test.source
  cp "$tests.en" $store/test.reference
}
# tasks NAME FOLDER N HEADER COLUMNS: shards NAME-train, NAME-valid (every Nth row of the training set) and NAME-dev.
tasks() {
  local shard="$store/$1" options=(--vocab $store/vocab.model --max-tokens 127 "${@:5}")
  "$tarn" split --every "$3" --header "$4" --rest $store/train.tsv --output $store/valid.tsv "$data/$2/train.tsv"
  "$tarn" prepare "${options[@]}" --table $store/train.tsv --output "$shard-train"
  "$tarn" prepare "${options[@]}" --table $store/valid.tsv --output "$shard-valid" --labels-from "$shard-train"
  "$tarn" prepare "${options[@]}" --table "$data/$2/dev.tsv" --output "$shard-dev" --labels-from "$shard-train"
}
prepare_masked() {
  [ -f "$data/SST-2/train.tsv" ] && [ -f "$data/SST-2/dev.tsv" ] || fail "$data has no SST-2/train.tsv and SST-2/dev.tsv"
  "$tarn" split --every 200 --rest $store/train.part --output $store/valid.part "$text"
  "$tarn" vocab --type bpe --size 4000 --lowercase --mask-symbols --sentences 500000 --output $store/vocab.model $store/train.part
  for part in train valid; do
    "$tarn" prepare --vocab $store/vocab.model --text $store/$part.part --min-tokens 5 --max-tokens 127 --output $store/$part
  done
  tasks sst2 SST-2 40 1 --text sentence --labels label
  [ ! -f "$data/CoLA/dev.tsv" ] || tasks cola CoLA 10 0 --text 4 --labels 2
  [ ! -f "$data/RTE/dev.tsv" ] || tasks rte RTE 10 1 --text sentence1 --pair sentence2 --labels label
  rm $store/*.part $store/*.tsv
}
prepare_language() {
  local size part
  "$tarn" vocab --type byte --output $store/vocab.model
  case $data in *.xz) xz -dc "$data" ;; *) cat "$data" ;; esac >$store/all.part
  size=$(wc -c <$store/all.part)
  part=$((size / 20))
  [ $part -gt 0 ] || fail "$data is too short to be cut into three"
  take() { "$tarn" split --quiet --from "$1" --bytes "$2" --output "$3" $store/all.part; }
  take 0 $((size - 2 * part)) $store/train.part
  take $((size - 2 * part)) $((part < 65536 ? part : 65536)) $store/valid.part
  take $((size - part)) $((part < 65536 ? part : 65536)) $store/test.txt
  for part in train valid; do "$tarn" prepare --vocab $store/vocab.model --text $store/$part.part --stream 256 --output $store/$part; done
  rm $store/*.part
}
if [ ! -e $store/ready ]; then
  prepare_$task
  echo "$asked" >$store/ready
fi

# --- the sweep ------------------------------------------------------------------------------------------------------------

# A line of variants.txt as variants of this task: "  NAME: { keys }", and "  NAME-frozen: { ... }" for a twin.
variants() {
  awk -F'|' -v task="$task" -v stack=$stack -v change=$change -v rows="${rows:+,vanilla,$rows,}" '
    function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
    function put(name, keys) { if (!rows || index(rows, "," name ",")) printf "  %s: {%s }\n", name, keys ? " " keys : "" }
    # The kinds that a pattern of cells names, besides L and R.
    function evolved_kinds(pattern,  n, all, i, part, added) {
      n = split("G: mixer: none, ffn: gated_linear;H: mixer: none, ffn: gated_linear, frozen: yes;B: mixer: evolved_conv, ffn: 0;" \
        "C: mixer: evolved_conv, ffn: 0, frozen: yes;A: mixer: evolved_attention, ffn: 0;E: mixer: evolved_attention, ffn: 0, frozen: yes;" \
        "S: ffn: { width: 256, activation: swish };T: ffn: { width: 256, activation: swish }, frozen: yes", all, ";")
      for (i = 1; i <= n; i++) {
        part = substr(all[i], 1, 1)
        if (pattern ~ "[ (]" part "[ ,)]" || pattern ~ "[ (]" part "$") added = added ", kinds." part ": { " substr(all[i], 4) " }"
      }
      return added
    }
    /^#/ || NF < 4 { next }
    {
      name = trim($1); keys = trim($3)
      if (trim($5) ~ "(^|; )" task ":") next
      if (change == "heads" && name ~ /^heads-/) next  # made equal it would be vanilla
      gsub(/ALL_SHARED/, task == "translation" ? "encoder.layers: L1*4, decoder.layers: D1*2" : "STACK.layers: L1*4", keys)
      gsub(/ALL_HALTING/, "STACK.step_embeddings: yes, STACK.act_threshold: 0.99" \
        (task == "translation" ? ", decoder.step_embeddings: yes, decoder.act_threshold: 0.99" : ""), keys)
      evolved = keys == "EVOLVED"
      if (evolved) keys = task == "translation" ? "encoder.layers: (G B L)*2, decoder.layers: A B S" : task == "language" ? "decoder.layers: (A B S)*2" : "encoder.layers: (G B L)*2"
      gsub(/TIES/, task == "translation" ? "encoder_decoder" : "none", keys)
      gsub(/STACK/, stack, keys)
      out = ""; frozen = stack ".layers: (R L)*2"
      count = split(keys, parts, /, /)
      for (i = 1; i <= count; i++) {
        own = parts[i]
        if (sub(/^\*\./, "", own)) also = task == "translation" ? ", kinds.D." own : ""
        else if (!sub(/^L\./, "", own)) { out = out (out ? ", " : "") own; frozen = frozen ", " own; continue }
        else also = ""
        out = out (out ? ", " : "") "kinds.L." own also
        frozen = frozen ", kinds.L." own also ", kinds.R." own
      }
      if (evolved) {  # its cells stand in the place of layers, and every second one is frozen
        frozen = out
        if (!sub(/\(G B L\)\*2/, "H C R G B L", frozen)) sub(/\(A B S\)\*2/, "E C T A B S", frozen)
        out = out evolved_kinds(out); frozen = frozen evolved_kinds(frozen)
      }
      put(name, out)
      if (trim($4) == "twin") put(name "-frozen", frozen)
    }' "$here/variants.txt"
}
{
  printf '# Made by run.sh of variants.txt.\nbase: %s.base.yaml\nbaseline: vanilla\nseeds: [1, 2, 3]\nparallel: 2\nthreads: 1\nequalize: { by: %s, change: %s }\n' "$task" "$equal" "$change"
  if [ "$updates" -gt 0 ]; then
    echo "set: { train.max_updates: $updates, train.warmup: $((updates / 5 + 1)), train.log_every: $((updates / 20 + 1)), valid.every: $((updates / 5 + 1)) }"
  else
    echo "budget: $seconds s"
    # Short trainings want to be looked at more often, so that the curve has points.
    [ "$seconds" -ge 60 ] || echo "set: { valid.every: 50, train.warmup: 50 }"
  fi
  [ -z "$test" ] || echo "test: $test"
  echo 'variants:'
  variants
} >"$task.sweep.new"
[ ! -e "$task.sweep.yaml" ] || cmp -s "$task.sweep.new" "$task.sweep.yaml" || [ -n "$rows" ] || [ ! -e "$task/sweep.json" ] ||
  echo "run.sh: $PWD/$task.sweep.yaml has changed; tarn sweep says if its runs can go on" >&2
mv "$task.sweep.new" "$task.sweep.yaml"
sed "s|data/|$store/|g" "$here/$task.yaml" >"$task.base.yaml"
. "$here/sweep_and_table.sh"
