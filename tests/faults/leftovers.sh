#!/usr/bin/env bash
# Commands that are killed while they write: the next run of the command removes their temporary files, and only those.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"
"$TARN" train model.yaml --run run --quiet --set train.max_updates=20

temporary() { find . -name '*.tmp.*' | sort; }

# killed OUTPUT COMMAND...: kills the command once its temporary file is there, which it must leave, then runs it again.
# A limit on the size of files keeps it from ending before.
killed() {
  local output=$1 pid
  shift
  for try in $(seq 40); do
    "$@" >/dev/null 2>&1 &
    pid=$!
    while [ -z "$(compgen -G "$output.tmp.*")" ] && kill -0 $pid 2>/dev/null; do :; done
    kill -9 $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    if [ -n "$(temporary)" ]; then break; fi
  done
  [ -n "$(temporary)" ] || fail "$*: could not be killed while it wrote"
  "$@" >/dev/null 2>error.txt || fail "$*: $(cat error.txt)"
  [ -z "$(temporary)" ] || fail "$*: it leaves $(temporary)"
}
for i in $(seq 200); do cat corpus/train.de; done >long.de
for i in $(seq 200); do cat corpus/train.en; done >long.en
killed big.tarn "$TARN" prepare --vocab vocab --source long.de --target long.en --output big
killed mean.safetensors "$TARN" average --output mean.safetensors run/checkpoint_best.safetensors run/checkpoint_last.safetensors
killed dense.safetensors "$TARN" export --dense run dense.safetensors
killed out.en "$TARN" translate run --output out.en --input corpus/train.de

# What is not ours stays.
: >'dense.safetensors.tmp.mine'
: >other.tmp.12
: >dense.safetensors.tmp.12
"$TARN" export --dense run dense.safetensors
[ "$(temporary | xargs)" = "./dense.safetensors.tmp.mine ./other.tmp.12" ] || fail "what is there: $(temporary)"
