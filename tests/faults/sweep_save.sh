#!/usr/bin/env bash
# SIGUSR1 has the runs of a sweep save and go on, SIGHUP has them save and stop; a half-made copy of a run is removed.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

cat >sweep.yaml <<'END'
base: model.yaml
baseline: regular
seeds: [1, 2]
parallel: 2
threads: 1
set:
  train: { max_updates: 100000, save_every: 100000, keep_last: 1, log_every: 2 }
  valid: { every: 100000, max_sentences: 3 }
variants:
  regular: { encoder.layers: L*2 }
END
mkdir -p runs/regular/.seed-2.partial
: >runs/regular/.seed-2.partial/config.yaml
"$TARN" sweep sweep.yaml --output runs --quiet 2>error.txt &
pid=$!
lines() { cat runs/regular/seed-"$1"/log.jsonl 2>/dev/null | wc -l; }
update_of() { "$TARN" inspect runs/regular/seed-"$1" 2>/dev/null | sed -nE '1s/.*update ([0-9]+).*/\1/p'; }
both_train() { gone $pid || { [ "$(lines 1)" -ge 3 ] && [ "$(lines 2)" -ge 3 ]; }; }
within_two_minutes both_train || fail "the sweep trains nothing: $(cat error.txt)"
! gone $pid || fail "the sweep ended: $(cat error.txt)"
[ ! -e runs/regular/.seed-2.partial ] || fail "a half-made copy is left"
kill -USR1 $pid
saved() { local update; update=$(update_of "$1"); [ "${update:-0}" -gt 0 ]; }
for seed in 1 2; do within_two_minutes saved $seed || fail "SIGUSR1 does not save seed $seed"; done
kill -0 $pid || fail "SIGUSR1 ended the sweep: $(cat error.txt)"
kill -HUP $pid
got=0; wait $pid || got=$?
[ $got -eq 129 ] || fail "SIGHUP gives exit code $got: $(cat error.txt)"
grep -q "all is saved; go on with: tarn sweep --output runs" error.txt || fail "SIGHUP: $(cat error.txt)"
