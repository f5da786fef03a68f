#!/usr/bin/env bash
# Commands that are killed while they write: the next run of the command removes their temporary files, and only those.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"
"$TARN" train model.yaml --run run --quiet --set train.max_updates=20

temporary() { find . -name '*.tmp.*' | sort; }

# killed COMMAND...: kills the command while it writes, which must leave its temporary file, then runs it again. What kills
# it is the signal for files that are too large, at the first kilobyte.
killed() {
  local got=0
  (ulimit -c 0; ulimit -f 1; exec "$@") >/dev/null 2>&1 || got=$?
  [ $got -eq $((128 + $(kill -l XFSZ))) ] || fail "$*: not killed, but exit code $got"
  [ -n "$(temporary)" ] || fail "$*: could not be killed while it wrote"
  "$@" >/dev/null 2>error.txt || fail "$*: $(cat error.txt)"
  [ -z "$(temporary)" ] || fail "$*: it leaves $(temporary)"
}
killed "$TARN" prepare --vocab vocab --source corpus/train.de --target corpus/train.en --output big
killed "$TARN" average --output mean.safetensors run/checkpoint_best.safetensors run/checkpoint_last.safetensors
killed "$TARN" export --dense run dense.safetensors
killed "$TARN" translate run --output out.en --input corpus/train.de

# What is not ours stays.
: >'dense.safetensors.tmp.mine'
: >other.tmp.12
: >dense.safetensors.tmp.12
"$TARN" export --dense run dense.safetensors
[ "$(temporary | xargs)" = "./dense.safetensors.tmp.mine ./other.tmp.12" ] || fail "what is there: $(temporary)"
