#!/usr/bin/env bash
# SIGINT and SIGTERM finish the step, save and stop; --resume goes on to the same bits. A second process is kept out.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

stop_at() {  # SIGNAL CODE LINES COMMAND...: waits for so many lines of the log, sends the signal, checks the exit code
  local signal=$1 code=$2 lines=$3 got=0
  shift 3
  "$@" >out.txt 2>error.txt &
  local pid=$!
  until [ "$(cat run/log.jsonl 2>/dev/null | wc -l)" -ge "$lines" ] || gone $pid; do sleep 0.02; done
  if [ "$lines" = 3 ]; then refuse 1 "another process" "$TARN" train --resume run; fi
  kill -"$signal" $pid
  wait $pid || got=$?
  [ $got -eq "$code" ] || fail "SIG$signal gives exit code $got: $(cat error.txt)"
  grep -q "resume run" error.txt || fail "no word on how to go on: $(cat error.txt)"
}
sed 's/max_updates: 60/max_updates: 100000/' model.yaml >long.yaml
stop_at INT 130 3 env "$TARN" train long.yaml --run run
stop_at TERM 143 8 "$TARN" train --resume run
# However far it came, it ends as a training that nobody stopped.
last=$("$TARN" inspect run/checkpoint_last.safetensors | sed -nE '1s/.*update ([0-9]+).*/\1/p')
limit=$((last / 20 * 20 + 40))
"$TARN" train --resume run --set train.max_updates=$limit --quiet
sed "s/max_updates: 60/max_updates: $limit/" model.yaml >whole.yaml
"$TARN" train whole.yaml --run whole --quiet
same_runs whole run
refuse 2 "no run to resume" "$TARN" train --resume nowhere
refuse 2 "stands alone" "$TARN" train model.yaml --resume run
refuse 2 "already holds" "$TARN" train model.yaml --run run
refuse 2 "train.lr cannot change" "$TARN" train --resume run --set train.lr=1
