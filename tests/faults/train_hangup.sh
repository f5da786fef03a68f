#!/usr/bin/env bash
# SIGHUP saves and stops, SIGUSR1 saves and goes on, nohup stays nohup; before anything is trained the first signal ends
# the process at once, also where it waits for a file.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

sed 's/max_updates: 60/max_updates: 100000/; s/save_every: 10/save_every: 100000/; s/every: 20/every: 100000/' \
  model.yaml >long.yaml
lines() { cat "$1/log.jsonl" 2>/dev/null | wc -l; }
trained() { [ "$(lines "$1")" -ge "$2" ] || gone "$3"; }
wait_for() { within_two_minutes trained "$@" || fail "$1 has no $2 lines of log: $(cat error.txt)"; }  # RUN LINES PID
update_of() { "$TARN" inspect "$1" | sed -nE '1s/.*update ([0-9]+).*/\1/p'; }
saved_after() { [ "$(update_of long)" -gt "$1" ]; }  # UPDATE

"$TARN" train long.yaml --run hung >out.txt 2>error.txt &
pid=$!
wait_for hung 3 $pid
kill -HUP $pid $pid  # a shell and the system both send it
got=0; wait $pid || got=$?
[ $got -eq 129 ] || fail "SIGHUP gives exit code $got: $(cat error.txt)"
grep -q "all is saved; go on with: tarn train --resume hung" error.txt || fail "SIGHUP: $(cat error.txt)"
[ "$(update_of hung)" -ge 10 ] || fail "SIGHUP saved update $(update_of hung)"

# Under nohup it does not stop, and SIGUSR1 saves while it goes on.
(trap '' HUP; exec "$TARN" train long.yaml --run long >out.txt 2>error.txt) &
pid=$!
wait_for long 3 $pid
kill -HUP $pid
[ "$(update_of long)" -eq 0 ] || fail "it was saved before it was asked for"
kill -USR1 $pid
within_two_minutes saved_after 0 || fail "SIGUSR1 saves nothing"
saved=$(update_of long)
kill -0 $pid || fail "it did not go on: $(cat error.txt)"
wait_for long $((saved / 5 + 2)) $pid
kill -USR1 $pid
within_two_minutes saved_after "$saved" || fail "a second SIGUSR1 saves nothing"
kill -TERM $pid
got=0; wait $pid || got=$?
[ $got -eq 143 ] || fail "SIGTERM after SIGUSR1 gives exit code $got: $(cat error.txt)"

# What was saved is the state of that update: the run goes on to the bits of one that ran through.
update=$(update_of long)
"$TARN" train --resume long --set train.max_updates=$((update + 5)) --quiet
sed "s/max_updates: 100000/max_updates: $((update + 5))/" long.yaml >whole.yaml
"$TARN" train whole.yaml --run whole --quiet
cmp <(tensors_of long/checkpoint_last.safetensors) <(tensors_of whole/checkpoint_last.safetensors) ||
  fail "a training that was saved and stopped ends with other bits"

# A configuration that never comes, and one of a run that is busy reading: the first signal is enough.
mkfifo never.yaml
for signal in HUP INT TERM; do
  "$TARN" train never.yaml --run nothing >out.txt 2>error.txt &
  pid=$!
  within_two_minutes catches $pid $(kill -l $signal) || fail "SIG$signal has no handler"
  sleep 0.3  # time to come to the file; before that the answer is the same
  kill -$signal $pid
  within_two_minutes gone $pid || { kill -9 $pid; fail "SIG$signal does not end a training that waits for its file"; }
  got=0; wait $pid || got=$?
  [ $got -eq $((128 + $(kill -l $signal))) ] || fail "SIG$signal while opening: $got: $(cat error.txt)"
  [ "$(cat error.txt)" = "tarn train: stopped before it trained; nothing is lost" ] ||
    fail "SIG$signal while opening: $(cat error.txt)"
done
# SIGUSR1 does not end it, as early as it can be told from a signal that nobody handles.
"$TARN" train never.yaml --run nothing >out.txt 2>error.txt &
pid=$!
within_two_minutes catches $pid $(kill -l USR1) || fail "SIGUSR1 has no handler"
kill -USR1 $pid
sleep 0.2
kill -0 $pid 2>/dev/null || fail "SIGUSR1 ended a training that was opening"
kill -TERM $pid
wait $pid || true
