#!/usr/bin/env bash
# A sweep of 12 runs that is killed (SIGKILL) at random moments, and stopped by a signal, ends with the results of one
# that was not. No process outlives it.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

cat >sweep.yaml <<'END'
base: model.yaml
baseline: regular
seeds: [1, 2, 3]
parallel: 2
threads: 1
set:
  train: { max_updates: 24, save_every: 4, keep_last: 1, log_every: 8 }
  valid: { every: 8, max_sentences: 3 }
test: { source: corpus/valid.de, reference: corpus/valid.en, beam: 2 }
variants:
  regular: { encoder.layers: L*2 }
  frozen: { encoder.layers: R L }
  shared: { encoder.layers: (R1 L1)*2 }
  wide: { encoder.layers: R*3, equalize: parameters }
END
"$TARN" sweep sweep.yaml --output whole --quiet || fail "the sweep fails"

# Processes that work in the folder: their command line names it, as that of grep does not, and they run where we do.
workers() {
  local process
  for process in $(grep -l -a "[k]illed/" /proc/[0-9]*/cmdline 2>/dev/null); do
    [ "$(readlink "${process%/cmdline}/cwd")" != "$PWD" ] || echo "$process"
  done
}
no_workers() { [ -z "$(workers)" ]; }
# Signals may be caught before the folder is held; until then another sweep may take it.
holds() { [ "$(cat killed/lock 2>/dev/null)" = "$1" ] && catches "$1" "$(kill -l TERM)"; }
halted_or_gone() { gone "$1" || grep -q '^State:[[:space:]]*T' "/proc/$1/status" 2>/dev/null; }
reached() { cat killed/*/seed-*/log.jsonl 2>/dev/null | wc -l || true; }
# Whatever the machine's speed, the signal comes in the middle: after so many lines of all logs, and a random pause.
interrupt_after() {  # LINES SIGNAL
  local lines=$1 signal=$2 pid got=0
  "$TARN" sweep sweep.yaml --output killed --quiet 2>error.txt &
  pid=$!
  while { [ "$(reached)" -lt "$lines" ] || ! holds $pid; } && kill -0 $pid 2>/dev/null; do sleep 0.02; done
  sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
  if [ "$signal" = KILL ]; then
    # A sweep that is halted does not end while another one looks at its lock.
    kill -STOP $pid 2>/dev/null || true
    within_two_minutes halted_or_gone $pid || fail "SIGSTOP does not halt the sweep"
    gone $pid || refuse 1 "another process" "$TARN" sweep sweep.yaml --output killed --quiet
  fi
  kill -"$signal" $pid 2>/dev/null || true
  wait $pid 2>/dev/null || got=$?
  if [ "$signal" = KILL ]; then
    within_two_minutes no_workers || fail "processes outlive the sweep: $(workers)"
  elif [ $got -ne 0 ]; then
    [ $got -eq $((128 + $(kill -l "$signal"))) ] || fail "SIG$signal gives exit code $got: $(cat error.txt)"
    grep -q "tarn sweep --output killed\|stopped before it began" error.txt || fail "no word on how to go on: $(cat error.txt)"
  fi
}
interrupt_after 1 KILL
interrupt_after 12 TERM
interrupt_after 20 HUP
interrupt_after 30 KILL
# What a sweep leaves that is killed between the end of a run and its own look at it.
for done in killed/*/seed-*/test.json; do [ ! -e "$done" ] || : >"$(dirname "$done")/errors.txt"; done
"$TARN" sweep --output killed >out.txt || fail "the last piece fails: $(cat out.txt)"
[ "$(grep -c '^skipped' out.txt)" -ge 1 ] || fail "nothing was skipped: $(cat out.txt)"
grep -q '^12 of 12 runs are finished' out.txt || fail "not all are finished: $(tail -1 out.txt)"

# Results without times and the log's length and hash, in which times are, and without memory, which depends on where a run
# went on.
plain() { sed -E '/"(seconds|peak_bytes|epoch|bytes|hash|date)":/d' "$1"; }
for run in whole/*/seed-*; do
  other=killed/${run#whole/}
  diff <(plain $run/result.json) <(plain $other/result.json) || fail "results differ in $run"
  diff <(plain $run/test.json) <(plain $other/test.json) || fail "tests differ in $run"
  cmp $run/test.hyp $other/test.hyp
  cmp $run/config.yaml $other/config.yaml
  same_runs $run $other
done
cmp whole/sweep.json killed/sweep.json
[ -z "$(find killed -name errors.txt)" ] || fail "messages are left: $(find killed -name errors.txt)"
