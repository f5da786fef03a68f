#!/usr/bin/env bash
# The whole workflow up to a comparison: makes a German-English corpus, trains a model with all layers trained and one
# with half of the encoder kept random, with two seeds each, shows their translations as they learn, and writes a
# report. TARN is the program; DEMO_MINUTES is the training time of each run (default 1) in processor time, so other
# work on the machine makes the demo longer but its results no worse.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tarn=${TARN:-$root/build/release/tarn}
minutes=${DEMO_MINUTES:-1}
folder=$root/build/demo

usage() {
  cat <<'TEXT'
usage: ./run demo [FOLDER]        the whole of it, in about three minutes on two cores
       ./run demo --try [MODEL [FOLDER]]
                                  type German at a model of the demo: half-random (default) or all-trained
       ./run demo --help

Makes a German-English corpus from a grammar (12,000 sentence pairs; nothing is downloaded), trains two models on it, with two
seeds each and for a minute each time, shows their translations after 5, 20 and 60 seconds, compares them on 500 sentences that
they have not seen, and writes a page with figures. Everything goes to FOLDER (default: build/demo, which is emptied first).

DEMO_MINUTES=0.2 ./run demo is quicker, but its models translate badly.
TEXT
}

# --- interactive translation

try() {
  local model=${1:-half-random} folder=${2:-$folder} run
  run=$folder/runs/$model/seed-1
  if [ ! -d "$folder/runs" ]; then
    echo "demo: there is no $folder yet; ./run demo makes it" >&2
    exit 2
  elif [ ! -d "$run" ]; then
    echo "demo: no model \"$model\"; there are all-trained and half-random" >&2
    exit 2
  fi
  if [ -t 0 ]; then
    echo "German to English with $model, which knows the demo's grammar and nothing else. Try sentences such as:"
    sed -n '7p;70p;200p' "$folder/text/test.de" | sed 's/^/    /'
    echo "End with Ctrl-D."
  fi
  exec "$tarn" translate "$run"
}

case ${1:-} in
  --help | -h)
    usage
    exit 0
    ;;
  --try)
    [ $# -le 3 ] || { usage >&2 && exit 2; }
    try "${2:-}" "${3:-}"
    ;;
  -*)
    echo "demo: unknown option $1" >&2
    usage >&2
    exit 2
    ;;
esac
[ $# -le 1 ] || { usage >&2 && exit 2; }

# --- settings

if [ $# -eq 0 ]; then
  rm -rf "$folder"
else
  folder=$1
  if [ -e "$folder" ] && [ -n "$(ls -A "$folder")" ]; then
    echo "demo: $folder is not empty" >&2
    exit 2
  fi
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$folder"

cores=$(nproc)
jobs=$((cores < 4 ? cores < 2 ? 1 : 2 : 4))
threads=$((cores / jobs))
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; else bold='' plain=''; fi
[ -z "${NO_COLOR:-}" ] || bold='' plain=''
step() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
seconds_of() { awk -v m="$minutes" -v share="$1" 'BEGIN { s = 60 * m * share; printf s < 10 ? "%.2g" : "%.0f", s }'; }

# quietly COMMAND...: shows its output only if it fails.
quietly() {
  local log
  log=$(mktemp -p "$folder" log.XXXXXX)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    echo "demo: failed: $*" >&2
    return 1
  fi
  rm -f "$log"
}

# --- training

# The names of the two models, and their descriptions.
models="all-trained half-random"
description() { if [ "$1" = all-trained ]; then echo model0; else echo model3; fi; }

# train MODEL SEED SHARE: trains until this share of the time is over, from the current state of the run.
train() {
  local run=runs/$1/seed-$2 end
  end=$(awk -v m="$minutes" -v share="$3" 'BEGIN { printf "%.6g", m * share }')
  if [ -d "$run" ]; then
    quietly "$tarn" train --resume "$run" --quiet --set "train.max_minutes=$end"
  else
    quietly "$tarn" train "$root/examples/demo/$(description "$1").yaml" --run "$run" --quiet --set data.vocab=vocab.model \
      --set data.train=grammar/train --set data.valid=grammar/valid --set data.valid_reference=text/valid.en --set "train.seed=$2" \
      --set "train.threads=$threads" --set "train.max_minutes=$end"
  fi
}

# all COMMAND RUN...: runs the command for each MODEL:SEED, as many in parallel as the machine allows.
all() {
  local command=$1 run pids=() pid failed=0
  shift
  for run in "$@"; do
    if [ ${#pids[@]} -ge "$jobs" ]; then
      wait "${pids[0]}" || failed=1
      pids=("${pids[@]:1}")
    fi
    $command "${run%:*}" "${run#*:}" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  [ $failed -eq 0 ] || exit 1
}

part() { train "$1" "$2" "$share"; }
score() { quietly "$tarn" test "runs/$1/seed-$2" --source text/test.de --reference text/test.en --threads "$threads" --quiet; }
sample() { quietly "$tarn" translate "runs/$1/seed-$2" --threads "$threads" --input samples.de --output "samples.$1.$share"; }

# --- translations side by side

width=$(tput cols 2>/dev/null || echo 100)
[ -t 1 ] || width=110
# A terminal may report zero columns; two texts need some in any case.
[ "$width" -gt 0 ] || width=100
[ "$width" -ge 50 ] || width=50
column=$(((width - 9) / 2))

# row NAME LEFT RIGHT: prints two columns, each wrapped.
row() {
  local name=$1
  paste -d $'\037' <(fold -s -w $((column - 2)) <<<"$2") <(fold -s -w $((column - 2)) <<<"$3") |
    while IFS=$'\037' read -r left right; do
      printf '%7s  %-*s%s\n' "$name" "$column" "$left" "$right"
      name=''
    done
}

# head NUMBER: prints one of the sample sentences.
head() {
  printf '\n%7s  %s\n%7s  %s\n' German "$(sed -n "${1}p" samples.de)" English "$(sed -n "${1}p" samples.en)"
  row '' 'all trained' 'half of the encoder random'
}
# show NUMBER: prints it with the translations of all models.
show() {
  local number=$1 share
  head "$number"
  for share in $shares; do show_row "$number"; done
}
show_row() {
  row "$(seconds_of "$share") s" "$(sed -n "${1}p" "samples.all-trained.$share")" "$(sed -n "${1}p" "samples.half-random.$share")"
}

# --- the demo

step "A corpus from a grammar"
quietly "$tarn" corpus --output text
quietly "$tarn" vocab --type bpe --size 1000 --output vocab.model text/train.de text/train.en
mkdir -p grammar
for split in train valid; do
  quietly "$tarn" prepare --vocab vocab.model --source "text/$split.de" --target "text/$split.en" --output "grammar/$split"
done
echo "$(wc -l <text/train.de) sentence pairs to learn from and $(wc -l <text/test.de) to test with, German and English, with a vocabulary of 1000 word pieces."
# Sentences that fit into a column, at equal distances.
awk -v most=$((column - 2)) 'FNR == NR { german[FNR] = $0; next } length(german[FNR]) <= most && length() <= most && length() > 25 { print german[FNR] "\t" $0 }' \
  text/test.de text/test.en | awk '{ line[NR] = $0 } END { for (i = 1; i <= 3; i++) print line[int(i * NR / 4) + 1] }' >samples.tsv
cut -f1 samples.tsv >samples.de
cut -f2 samples.tsv >samples.en

shares="0.0833333 0.333333 1"
step "Training two models to translate it, with two seeds each: $(seconds_of 1) seconds a run, $jobs at a time"
head 1
first="all-trained:1 half-random:1" second="all-trained:2 half-random:2"
[ "$jobs" -lt 4 ] || first="$first $second" second=
for share in $shares; do
  # shellcheck disable=SC2086
  all part $first
  all sample all-trained:1 half-random:1
  show_row 1
done
show 2
show 3
if [ -n "$second" ]; then
  printf '\nNow the second seed, which takes as long again, to see how much is chance.\n'
  # shellcheck disable=SC2086
  all part $second
fi

step "Results"
all score all-trained:1 half-random:1 all-trained:2 half-random:2
"$tarn" compare runs --json >compare.json
quietly "$tarn" report runs --output report --title 'The demo'
for model in $models; do "$tarn" inspect "runs/$model/seed-1" --json >"$model.json" 2>inspect.log; done

# shown PATH [full]: the path relative to the root of the sources, if it is inside.
shown() { if [ -n "${2:-}" ]; then echo "$1"; else echo "${1#"$root/"}"; fi; }
random_share() { jq -r '"\(.frozen * 100 / (.trained + .frozen) | round) %"' "${1:-half-random}.json"; }
bleu() { jq -r --arg name "$1" '.configurations[] | select(.name == $name) | .test_bleu | "\(.mean * 10 | round / 10) \u00b1 \(.sd * 10 | round / 10)"' compare.json; }
speed() { jq -rs '[.[].tokens_per_second | numbers] | add / length / 1000 | round' runs/"$1"/seed-*/log.jsonl; }
megabytes() { jq -r '.bytes.file / 1e5 | round / 10' "$1.json"; }
line='%-12s %18s %17s %15s %14s\n'
# shellcheck disable=SC2059
printf "$line" '' 'random and frozen' 'checkpoint (MB)' '1000 tokens/s' BLEU
for model in $models; do
  # shellcheck disable=SC2059
  printf "$line" "$model" "$(random_share "$model") of weights" \
    "$(megabytes "$model")" "$(speed "$model")" "$(bleu "$model")"
done
cat <<TEXT

$(fold -s -w "$((width < 112 ? width : 112))" <<<"Of the weights of half-random, $(random_share) are random and never trained. Its checkpoint has $(megabytes half-random) MB (all-trained: $(megabytes all-trained) MB), it trains at $(speed half-random),000 tokens a second with $threads thread$([ "$threads" -eq 1 ] || echo s) (all-trained: $(speed all-trained),000), and its translations have a BLEU of $(bleu half-random) (all-trained: $(bleu all-trained)). These are means and standard deviations of two seeds, which are too few to say which model is better; docs/experiments.md explains how to find out." | sed 's/ *$//')

The page with curves, tables and translations:
    file://$folder/report/report.html

To go on:
    ./run demo --try                                                 # type German for it to translate
    $(shown "$tarn") inspect $(shown "$folder")/runs/half-random/seed-1     # what it is made of
    (cd $(shown "$folder") && $(shown "$tarn" full) train --resume runs/half-random/seed-1 --set train.max_minutes=5)
TEXT
