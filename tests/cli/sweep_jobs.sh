#!/usr/bin/env bash
# tarn sweep --launcher slurm with stubs of Slurm's programs, for cases that are hard to provoke with the real ones
# (tests/cli/sweep_slurm.sh): refusals, an unreachable controller, states of jobs. And --launcher mpi, --only and
# --watch.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"
real_path=$PATH

# --- a Slurm of shell scripts
# -------------------------------------------------------------------------------------------
# tasks/JOB_INDEX has NAME STATE REASON; the file `ended` overrides some. sbatch runs the tasks at once, or release does
# if the file `hold` exists.
export FAKE=$PWD/fake
mkdir -p bin fake/tasks
cat >bin/sbatch <<'END'
#!/usr/bin/env bash
printf '%s\n' "$*" >>"$FAKE/sbatch.log"
while [ -e "$FAKE/slow" ]; do sleep 0.05; done
[ -z "${SBATCH_WAIT:-}${SBATCH_CLUSTERS:-}" ] && [ "${SBATCH_QOS:-}" = mine ] || { echo 'sbatch: error: the environment is not right' >&2; exit 1; }
[ ! -e "$FAKE/refuse" ] || { cat "$FAKE/refuse" >&2; exit 1; }
job=$(($(wc -l <"$FAKE/sbatch.log") + 100))
for argument in "$@"; do
  case $argument in --array=*) last=${argument#--array=0-}; last=${last%%%*} ;; esac
  [ "${before:-}" != --job-name ] || name=$argument
  before=$argument
done
cp "$before" "$FAKE/$job.sh"
for index in $(seq 0 "$last"); do
  if [ -e "$FAKE/hold" ]; then echo "$name $(cat "$FAKE/hold")" >"$FAKE/tasks/${job}_$index"; else
    echo "$name RUNNING None" >"$FAKE/tasks/${job}_$index"
    "$FAKE/../bin/task" "${job}_$index" >/dev/null 2>&1 &
  fi
done
[ ! -e "$FAKE/unsure" ] || { echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1; }
echo "$job"
END
cat >bin/task <<'END'
#!/usr/bin/env bash
name=$(cut -d' ' -f1 "$FAKE/tasks/$1")
state() { echo "$name $1 None" >"$FAKE/tasks/.$2" && mv "$FAKE/tasks/.$2" "$FAKE/tasks/$2"; }
state RUNNING "$1"
echo "$1" >>"$FAKE/begun.log"
SLURM_JOB_ID=${1/_/000} SLURM_ARRAY_JOB_ID=${1%_*} SLURM_ARRAY_TASK_ID=${1#*_} sh "$FAKE/${1%_*}.sh" >>"$FAKE/$1.log" 2>&1 && end=COMPLETED || end=FAILED
state $end "$1"
END
cat >bin/squeue <<'END'
#!/usr/bin/env bash
[ ! -e "$FAKE/mute" ] || { echo x >>"$FAKE/mute.log"; echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1; }
echo x >>"$FAKE/asked.log"
case " $* " in *" --all "*) ;; *) exit 0 ;; esac  # the partition is hidden
[ -z "${SQUEUE_USERS:-}" ] || exit 0
ended=$(cat "$FAKE/ended" 2>/dev/null)
cd "$FAKE/tasks" || exit 1
for task in *_*; do
  [ -e "$task" ] || continue
  read -r name state reason <"$task"
  if end=$(grep "^$task " <<<"$ended"); then state=${end#* } reason=None; fi
  echo "$name|${task#*_}|${task%_*}|$state|$reason"
done
END
cat >bin/scancel <<'END'
#!/usr/bin/env bash
[ -z "${SCANCEL_INTERACTIVE:-}" ] || exit 1
echo "$*" >>"$FAKE/scancel.log"
cd "$FAKE/tasks" && for task in *_*; do
  read -r name state reason <"$task"
  [ "$name" != "${*: -1}" ] || case $state in PENDING | RUNNING) echo "$name CANCELLED None" >"$task" ;; esac
done
END
echo 'echo "$*" >>"$FAKE/scontrol.log"' | cat <(echo '#!/bin/sh') - >bin/scontrol
chmod +x bin/*
export PATH=$PWD/bin:$PATH
# User settings: only those that give jobs their defaults reach the programs.
export SQUEUE_USERS=nobody SCANCEL_INTERACTIVE=1 SBATCH_WAIT=1 SBATCH_QOS=mine
submitted() { wc -l <fake/sbatch.log; }
# All existing tasks end at the same time.
set_states() { ls fake/tasks | sed "s/$/ $1/" >fake/.ended && mv fake/.ended fake/ended; }
release() { rm -f fake/hold; local task; for task in fake/tasks/*_*; do grep -q PENDING "$task" && bin/task "$(basename "$task")" & done; }
all_ended() { ! grep -q RUNNING fake/tasks/*_* 2>/dev/null; }
# A sweep ends with the results of its runs, its tasks later. Those that were ended may still write output.
fresh() { within_two_minutes all_ended || fail "tasks run for ever"; until rm -rf fake 2>/dev/null; do sleep 0.1; done; mkdir -p fake/tasks; }

cat >sweep.yaml <<'END'
base: model.yaml
baseline: regular
seeds: [1, 2]
threads: 1
set:
  train: { max_updates: 6, save_every: 2, keep_last: 1, log_every: 2 }
  valid: { every: 3, max_sentences: 2 }
test: { source: corpus/valid.de, reference: corpus/valid.en, beam: 1 }
variants:
  regular: { encoder.layers: L*2 }
  half: { encoder.layers: R L }
END
slurm() { "$TARN" sweep --launcher slurm --interval 0.1 "$@"; }
behind() { : >out.txt; "$TARN" sweep --launcher slurm --interval 0.1 "$@" >out.txt 2>error.txt & pid=$!; }
"$TARN" sweep sweep.yaml --output here --quiet

# --- success: the arguments of sbatch, and the same runs as with a local sweep
# -------------------------------------------
slurm sweep.yaml --output there --partition short --account me --time 1:00 --sbatch=--nice=7 --sbatch=--qos=low --most-jobs 3 \
  >out.txt 2>error.txt || fail "jobs: $(cat out.txt error.txt)"
[ "$(grep -c '^submitted .*job 101_[0-3] ' out.txt)" -eq 4 ] || fail "submitted: $(cat out.txt)"
[ "$(grep -c '^finished .*test BLEU' out.txt)" -eq 4 ] || fail "finished: $(cat out.txt)"
grep -q '^4 of 4 runs are finished' out.txt && grep -q 'tarn compare there' out.txt || fail "the end: $(cat out.txt)"
for word in --parsable --requeue --open-mode=append --array=0-3%3 --cpus-per-task=1 --signal=B:HUP@90 --partition=short \
  --account=me --time=1:00 --nice=7 --qos=low; do
  grep -q -- " $word \|^$word " fake/sbatch.log || fail "sbatch is not told $word: $(cat fake/sbatch.log)"
done
memory=$(grep -o -- '--mem=[0-9]*M' fake/sbatch.log | tr -dc 0-9)
planned=$("$TARN" sweep sweep.yaml --dry-run --json | jq '[.variants[].planned_bytes] | max / 1048576 * 1.2 + 256 | ceil')
[ "$memory" -eq "$planned" ] || fail "--mem=${memory}M, planned are $planned"
for run in here/*/seed-*; do
  same_runs "$run" "there/${run#here/}"
  cmp "$run/test.hyp" "there/${run#here/}/test.hyp"
  [ "$(cat fake/101_*.log | grep -c "^started   $(basename "$(dirname "$run")") seed ${run##*-} ")" -eq 1 ] || fail "$run was not begun once"
done
within_two_minutes all_ended || fail "tasks run for ever"
slurm --output there >out.txt || fail "again: $(cat out.txt)"
[ "$(grep -c '^skipped' out.txt)" -eq 4 ] && [ "$(submitted)" -eq 1 ] || fail "submitted again: $(cat out.txt)"
[ -z "$(find there/slurm -name '*.runs')" ] || fail "lists of jobs that are over stay"

# --- refusals -----------------------------------------------------------------------------------------------------------
fresh
printf 'sbatch: error: invalid partition specified: shrot\nsbatch: error: Batch job submission failed: Invalid partition name specified\n' >fake/refuse
refuse 1 'sbatch: Batch job submission failed: Invalid partition name specified' slurm sweep.yaml --output refused --partition shrot
[ -z "$(find refused/slurm -name 'tarn-*')" ] && [ ! -e refused/slurm/options ] || fail "a refused job leaves $(ls refused/slurm)"
for option in --job-name=x -Jx --arr=0-9 -M --wrap=true; do
  refuse 2 "$option is for a sweep itself to tell sbatch" slurm sweep.yaml --output refused --sbatch=$option
done
refuse 2 '"low" is no option for sbatch' slurm sweep.yaml --output refused --sbatch low
[ "$(submitted)" -eq 1 ] || fail "an option that is not allowed reaches sbatch"
refuse 2 'SBATCH_CLUSTERS=far is for sbatch alone' env SBATCH_CLUSTERS=far "$TARN" sweep sweep.yaml --output refused --launcher slurm
refuse 1 'no sbatch on PATH' env PATH=/nowhere "$TARN" sweep sweep.yaml --output refused --launcher slurm
refuse 2 'cannot be "slrum"; did you mean slurm?' "$TARN" sweep sweep.yaml --output refused --launcher slrum
refuse 2 '--partition is for --launcher slurm' "$TARN" sweep sweep.yaml --output refused --partition short
refuse 2 '--sbatch is for --launcher slurm' "$TARN" sweep sweep.yaml --output refused --launcher mpi --sbatch=--nice
refuse 2 'this process was started alone' "$TARN" sweep sweep.yaml --output refused --launcher mpi
refuse 2 'only one of' "$TARN" sweep --output here --watch --cancel
refuse 2 'regular/seed-9 is no run of this sweep' "$TARN" sweep --output here --only regular/seed-9
refuse 2 'no sweep to go on with' "$TARN" sweep --output nowhere --watch
"$TARN" sweep --output here --cancel >out.txt && grep -q 'no job of this sweep' out.txt || fail "nothing to cancel: $(cat out.txt)"

# --- a killed command leaves the jobs, and the next one attaches
# ----------------------------------------------------------
fresh
echo 'PENDING Resources' >fake/hold
behind sweep.yaml --output kept
all_submitted() { [ "$(grep -c '^submitted' out.txt)" -eq 4 ]; }
within_two_minutes all_submitted || fail "nothing is submitted: $(cat out.txt)"
refuse 1 'another process' slurm --output kept
kill -KILL $pid
wait $pid 2>/dev/null || true
[ ! -e fake/scancel.log ] || fail "a killed command cancels jobs"
refuse 1 'Slurm has jobs of this sweep .*--launcher slurm attaches' "$TARN" sweep --output kept
# watched FOLDER COMMAND...: watches until the command succeeds; only a stop ends it before the runs are over.
watched() {
  "$TARN" sweep --output "$1" --watch --interval 0.1 >watch.txt 2>error.txt &
  pid=$!
  within_two_minutes "${@:2}" || fail "watch: not seen: $(cat watch.txt error.txt)"
  kill -TERM $pid
  code=0; wait $pid || code=$?
  [ $code -eq 143 ] || fail "watching ends before the runs: exit code $code: $(cat error.txt)"
}
watched kept grep -q '^0 of 4 done, 4 waiting' watch.txt
[ "$(grep -c '^waiting .*job 101_[0-3] PENDING (Resources)' watch.txt)" -eq 4 ] || fail "watch: $(cat watch.txt)"
# If the controller never answers, nothing is submitted; if it becomes unreachable later, the sweep waits.
: >fake/mute
refuse 1 'squeue: slurm_load_jobs error: Unable to contact' slurm --output kept
rm fake/mute
before=$(wc -l <fake/asked.log)
behind --output kept
attached() { [ "$(wc -l <fake/asked.log)" -ge $((before + 2)) ]; }
within_two_minutes attached || fail "not attached: $(cat error.txt)"
: >fake/mute
asked() { [ "$(wc -l <fake/mute.log)" -ge 8 ]; }
within_two_minutes asked || fail "Slurm is not asked again"
rm fake/mute
release
code=0; wait $pid || code=$?
[ $code -eq 0 ] || fail "attaching: exit code $code: $(cat out.txt error.txt)"
[ "$(submitted)" -eq 1 ] || fail "submitted twice: $(cat fake/sbatch.log)"
[ "$(grep -c 'asked again until it answers' error.txt)" -eq 1 ] && grep -q 'answers again' error.txt || fail "a mute Slurm: $(cat error.txt)"
[ "$(sort fake/begun.log | uniq | wc -l)" -eq 4 ] && [ "$(wc -l <fake/begun.log)" -eq 4 ] || fail "tasks: $(cat fake/begun.log)"
same_runs here/half/seed-2 kept/half/seed-2

# --- a command stopped while submitting, and an sbatch that fails although the job exists
# ---------------------------------
fresh
echo 'PENDING Resources' >fake/hold
: >fake/slow
: >out.txt
setsid "$TARN" sweep --launcher slurm --interval 0.1 sweep.yaml --output cut >out.txt 2>error.txt &
pid=$!
at_work() { [ "$(submitted 2>/dev/null || echo 0)" -eq 1 ]; }
within_two_minutes at_work || fail "nothing is submitted: $(cat out.txt error.txt)"
kill -TERM -- -$pid  # like Ctrl-C: its whole process group
rm fake/slow
code=0; wait $pid || code=$?
[ $code -eq 143 ] && grep -q 'the jobs go on' error.txt || fail "stopped while it submits: $code $(cat error.txt)"
[ "$(ls fake/tasks | wc -l)" -eq 4 ] || fail "sbatch was cut off half done: $(ls fake/tasks)"
slurm --output cut --detach >out.txt || fail "attaching: $(cat out.txt)"
[ "$(submitted)" -eq 1 ] || fail "submitted twice: $(cat fake/sbatch.log)"
fresh
echo 'PENDING Resources' >fake/hold
: >fake/unsure
slurm sweep.yaml --output unsure --partition short --detach >out.txt 2>error.txt || fail "a job that is there: $(cat error.txt)"
grep -qx -- '--partition=short' unsure/slurm/options || fail "its options are forgotten: $(ls unsure/slurm)"
grep -q 'Socket timed out.*Slurm has the jobs all the same' error.txt || fail "a job that is there: $(cat error.txt)"
slurm --output unsure --detach >out.txt || fail "attaching: $(cat out.txt)"
[ "$(submitted)" -eq 1 ] || fail "submitted twice: $(cat fake/sbatch.log)"
# If Slurm does not answer, --watch says so once.
: >fake/mute
looked() { [ "$(cat fake/mute.log 2>/dev/null | wc -l)" -ge 3 ]; }
watched unsure looked
[ "$(grep -c 'states of the jobs are not known' error.txt)" -eq 1 ] || fail "watch: $(cat error.txt)"
rm fake/mute

# --- jobs that end before their runs
# --------------------------------------------------------------------------------------
fresh
echo 'PENDING Priority' >fake/hold
behind sweep.yaml --output lost --partition short
within_two_minutes all_submitted || fail "nothing is submitted: $(cat out.txt)"
sent() { [ "$(submitted)" -ge "$1" ] && [ "$(ls fake/tasks | wc -l)" -ge "$((4 * $1))" ]; }
for state in PREEMPTED NODE_FAIL; do
  set_states $state
  [ $state = PREEMPTED ] && n=2 || n=3
  within_two_minutes sent $n || fail "not submitted again after $state: $(cat out.txt error.txt)"
done
[ "$(grep -c -- '--partition=short' fake/sbatch.log)" -eq 3 ] || fail "other options the next time: $(cat fake/sbatch.log)"
set_states OUT_OF_MEMORY
code=0; wait $pid || code=$?
[ $code -eq 1 ] || fail "lost jobs: exit code $code: $(cat out.txt)"
[ "$(grep -c '^failed .*its job ended 3 times without progress (OUT_OF_MEMORY)' out.txt)" -eq 4 ] || fail "lost jobs: $(cat out.txt)"
grep -q '^lost .*job 102_0 NODE_FAIL' out.txt || fail "lost jobs: $(cat out.txt)"
fresh
slurm --output lost --retry-failed >out.txt 2>error.txt || fail "after they failed: $(cat out.txt error.txt fake/*.log)"
[ "$(grep -c '^finished' out.txt)" -eq 4 ] || fail "after they failed: $(cat out.txt)"
grep -q -- '--partition=short' fake/sbatch.log || fail "the options are forgotten: $(cat fake/sbatch.log)"

# --- cancelled ------------------------------------------------------------------------------------------------------------
fresh
echo 'PENDING Priority' >fake/hold
behind sweep.yaml --output ended
within_two_minutes all_submitted || fail "nothing is submitted: $(cat out.txt)"
"$TARN" sweep --output ended --cancel >cancel.txt || fail "cancel: $(cat cancel.txt)"
[ "$(grep -c '^cancelled .* job 101_[0-3] PENDING (Priority)' cancel.txt)" -eq 4 ] && grep -q '^4 jobs cancelled' cancel.txt || fail "cancel: $(cat cancel.txt)"
code=0; wait $pid || code=$?
[ $code -eq 1 ] && grep -q 'the jobs were cancelled.*go on with' error.txt || fail "cancelled: $code $(cat error.txt)"
[ "$(submitted)" -eq 1 ] || fail "cancelled jobs are submitted again"
# While sbatch is running: the job that it creates is cancelled as well.
mv fake/scancel.log fake/scancel.before
: >fake/slow
behind --output ended
submitting() { [ "$(submitted)" -eq 2 ]; }
within_two_minutes submitting || fail "nothing is submitted: $(cat out.txt error.txt)"
"$TARN" sweep --output ended --cancel >cancel.txt || fail "cancel: $(cat cancel.txt)"
rm fake/slow
code=0; wait $pid || code=$?
[ $code -eq 1 ] && grep -q 'the jobs were cancelled' error.txt || fail "cancelled while submitted: $code $(cat error.txt)"
[ -e fake/scancel.log ] && ! grep -q PENDING fake/tasks/*_* || fail "cancelled while submitted: jobs go on"
# Cancelled by Slurm's own command: not resubmitted in the background, but by the next command.
behind --output ended
within_two_minutes all_submitted || fail "nothing is submitted: $(cat out.txt)"
set_states CANCELLED
code=0; wait $pid || code=$?
[ $code -eq 1 ] && grep -q 'the jobs of 4 runs were cancelled' error.txt && [ "$(submitted)" -eq 3 ] || fail "by hand: $code $(cat error.txt)"
rm fake/hold
slurm --output ended --detach >out.txt || fail "detached: $(cat out.txt)"
grep -q -- '--watch shows them' out.txt || fail "detached: $(cat out.txt)"
"$TARN" sweep --output ended --watch --interval 0.1 --json >watch.txt || fail "watch: $(tail -1 watch.txt)"
[ "$(tail -n 1 watch.txt | jq '[.runs[] | select(.state == "finished")] | length')" -eq 4 ] || fail "watch: $(tail -n 1 watch.txt)"

# --- a job runs out of time: its run is saved, and the job is requeued
# ----------------------------------------------------
fresh
sed 's/max_updates: 6, save_every: 2/max_updates: 100000, save_every: 100000/' sweep.yaml >long.yaml
"$TARN" sweep long.yaml --output long --only half/seed-1 >out.txt 2>&1 &
begun() { grep -q '"step":4,' long/half/seed-1/log.jsonl 2>/dev/null; }
within_two_minutes begun || fail "one run alone does not train: $(cat out.txt)"
refuse 1 'another process' "$TARN" train --resume long/half/seed-1
kill -TERM $!
code=0; wait $! || code=$?
[ $code -eq 143 ] && [ ! -e long/regular ] || fail "one run alone: $code $(cat out.txt)"
(SLURM_JOB_ID=77 exec "$TARN" sweep --launcher slurm --output long --only half/seed-1) >out.txt 2>error.txt &
pid=$!
grown() { [ "$(wc -l <long/half/seed-1/log.jsonl)" -gt "$1" ]; }
within_two_minutes grown $(($(wc -l <long/half/seed-1/log.jsonl) + 2)) || fail "the job does not train: $(cat error.txt)"
kill -HUP $pid
code=0; wait $pid || code=$?
[ $code -eq 129 ] && grep -q 'waits again' error.txt && grep -qx 'requeue 77' fake/scontrol.log || fail "time over: $code $(cat error.txt)"
# Only its own task of an array, also the one with the array's number; and with an unreadable record of its jobs.
rm long/half/.seed-1.requeued && mkdir long/half/.seed-1.requeued
(SLURM_JOB_ID=78 SLURM_ARRAY_JOB_ID=78 SLURM_ARRAY_TASK_ID=3 exec "$TARN" sweep --launcher slurm --output long --only half/seed-1) \
  >out.txt 2>error.txt &
pid=$!
within_two_minutes grown $(($(wc -l <long/half/seed-1/log.jsonl) + 1)) || fail "the task does not train: $(cat error.txt)"
kill -HUP $pid
code=0; wait $pid || code=$?
[ $code -eq 129 ] && grep -qx 'requeue 78_3' fake/scontrol.log || fail "the time of a task is over: $code $(cat error.txt fake/scontrol.log)"
grep -q 'warning: .*seed-1.requeued.*is not known' error.txt && rmdir long/half/.seed-1.requeued || fail "no warning: $(cat error.txt)"
# But not forever: after three in a row without progress the run fails. Each is signalled during the long validation
# before the first update; one that is signalled later makes progress anyway, and does not count.
sed 's/valid: {.*/valid: { every: 3, at_start: yes, max_sentences: 300, beam: 64 }/; s/^set:/&\n  data: { valid: train }/' long.yaml >stuck.yaml
has_begun() { grep -q '^started' out.txt; }
time_over() {  # JOB OPTION...
  : >out.txt
  (SLURM_JOB_ID=$1 exec "$TARN" sweep stuck.yaml --launcher slurm --output stuck --only half/seed-1 "${@:2}") >out.txt 2>error.txt &
  pid=$!
  within_two_minutes has_begun || fail "the job does not begin: $(cat out.txt error.txt)"
  kill -HUP $pid
  code=0; wait $pid || code=$?
}
code=129
for ((time = 0; code == 129 && time < 12; time++)); do time_over 79; done
[ $code -eq 1 ] && grep -q '^failed .*3 times without progress' out.txt || fail "requeued for ever: $code $(cat out.txt error.txt)"
[ $time -ge 3 ] && [ "$(grep -cx 'requeue 79' fake/scontrol.log)" -eq $((time - 1)) ] || fail "requeued: $time, $(cat fake/scontrol.log)"
grep -q 'longer --time' stuck/half/seed-1/result.json || fail "it did not fail: $(ls -a stuck/half)"
# A retry resets the count, whatever the run failed of.
echo '2 0 0' >stuck/half/.seed-1.requeued
time_over 80 --retry-failed
[ $code -eq 129 ] && grep -qx 'requeue 80' fake/scontrol.log || fail "tried again: $code $(cat out.txt error.txt)"
# The system may kill its training: no failure of the run.
(SLURM_JOB_ID=77 exec "$TARN" sweep --launcher slurm --output long --only half/seed-1) >out.txt 2>error.txt &
pid=$!
child() { cat "/proc/$pid/task/$pid/children"; }
within_two_minutes grown $(($(wc -l <long/half/seed-1/log.jsonl) + 1)) || fail "the job does not train: $(cat error.txt)"
kill -KILL $(child)
code=0; wait $pid || code=$?
[ $code -eq 1 ] && grep -q 'ended by signal 9' error.txt && [ ! -e long/half/seed-1/result.json ] || fail "a killed training: $code $(cat error.txt)"

# --- MPI ranks: each run is assigned once; without an MPI, because ranks do not communicate
# -------------------------------
export PATH=$real_path
for rank in 0 1 2; do
  OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=3 TARN_FILE_SYSTEM=shared "$TARN" sweep sweep.yaml --output dealt --launcher mpi >rank$rank.txt 2>&1 &
done
wait
[ "$(cat rank?.txt | grep -c '^started')" -eq 4 ] && [ "$(cat rank?.txt | grep '^finished' | cut -c1-26 | sort -u | wc -l)" -eq 4 ] || fail "ranks: $(cat rank?.txt)"
[ "$(cat rank?.txt | grep -c '^4 of 4 runs are finished')" -eq 1 ] || fail "ranks: $(cat rank?.txt)"
for run in here/*/seed-*; do same_runs "$run" "dealt/${run#here/}"; done
[ -z "$(find dealt -name '*.holder')" ] || fail "claims are left: $(find dealt -name '*.holder')"

# A free rank retries failed runs, and rank 0 ends after that, because a launcher ends all ranks when it fails.
for name in half/seed-1 half/seed-2 regular/seed-2; do
  rm dealt/$name/test.json
  echo '{ "version": "1", "status": "failed", "message": "it was dark", "update": 1, "seconds": 1 }' >dealt/$name/test.json
done
for rank in 0 1 2; do
  { OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=3 "$TARN" sweep --output dealt --launcher mpi --retry-failed; } >rank$rank.txt 2>&1 || echo "exit $?" >>rank$rank.txt &
done
wait
! grep exit rank?.txt && grep -q '^4 of 4 runs are finished' rank0.txt || fail "ranks that retry: $(cat rank?.txt)"
[ "$(cat rank?.txt | grep -c '^finished')" -eq 3 ] || fail "ranks that retry: $(cat rank?.txt)"

# --- another machine holds the folder on a network file system
# -------------------------------------------------------------
echo 'another-boot pid:[1] 77 5 faraway' >dealt/lock.holder
refuse 1 '(77 on faraway)' env TARN_FILE_SYSTEM=shared "$TARN" sweep --output dealt
touch -d '2 minutes ago' dealt/lock.holder
TARN_FILE_SYSTEM=shared "$TARN" sweep --output dealt --quiet || fail "a machine that is gone holds the folder"
