#!/usr/bin/env bash
# kill -9 at any moment leaves loadable checkpoints, and the run goes on to the same bits.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

"$TARN" train model.yaml --run whole --quiet
"$TARN" train model.yaml --run killed --quiet &
pid=$!
# However fast the machine is: at a place in the log, and once before there is one.
for lines in 0 2 5 7 11; do
  sleep 0.0$((RANDOM % 10))
  until [ "$(cat killed/log.jsonl 2>/dev/null | wc -l)" -ge $lines ] || gone $pid; do :; done
  kill -9 $pid 2>/dev/null || true
  wait $pid 2>/dev/null || true
  if [ -e killed/checkpoint_last.safetensors ]; then
    for file in killed/*.safetensors; do
      "$TARN" inspect $file >out.txt || fail "$file cannot be read after kill -9"
    done
    "$TARN" train --resume killed --quiet &
  else
    rm -rf killed
    "$TARN" train model.yaml --run killed --quiet &
  fi
  pid=$!
done
wait $pid || fail "the last piece failed"
same_runs whole killed
[ -z "$(find killed -name '*.tmp.*')" ] || fail "half-written files are left: $(ls killed)"

# A kill between saving and dropping what was too much then leaves one checkpoint more, until the run goes on.
cp killed/checkpoint_60.safetensors killed/checkpoint_5.safetensors
"$TARN" train --resume killed --quiet || fail "a whole run does not go on"
[ ! -e killed/checkpoint_5.safetensors ] && [ -e killed/checkpoint_60.safetensors ] || fail "numbered checkpoints: $(ls killed)"
