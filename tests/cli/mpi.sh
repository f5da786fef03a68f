#!/usr/bin/env bash
# Training on several processes with Open MPI and MPICH, whichever the program was built for: the same number of ranks
# gives the same bits every time, equal to one rank with gradient accumulation; another number of ranks can resume; an
# error on one rank ends all ranks with one line of tarn. Skipped without a module, or without mpirun.
set -eu
. "$(dirname "$0")/../mpi_ranks.sh"
. "$(dirname "$0")/../tiny_run.sh"
sed -i 's/threads: 2/threads: 1/' model.yaml

losses() { grep '"kind":"train"' "$1/log.jsonl" | grep -o '"loss":[0-9.]*'; }
near() { paste -d' ' <(losses "$1" | cut -d: -f2) <(losses "$2" | cut -d: -f2) | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 2e-4 * $1) bad = 1; n++ } END { exit bad || n < 5 }'; }

"$TARN" train model.yaml --run alone --set train.accumulate=2 >alone.txt
for kind in "${kinds[@]}"; do
  launch 2 train model.yaml --run "$kind" >two.txt 2>two.err || fail "$kind: $(cat two.err)"
  grep -q 'fp32, 2 ranks$' two.txt || fail "$kind: the head does not tell the ranks: $(cat two.txt)"
  [ "$(grep -c '^run ' two.txt)" -eq 1 ] || fail "$kind: more than one rank prints"
  near alone "$kind" || fail "$kind: two ranks do not learn what accumulation learns: $(losses alone) $(losses "$kind")"
  # The same bits again, with and without a sharded optimiser; with a program found on the path.
  PATH=$(dirname "$TARN"):$PATH launch_program 2 tarn train model.yaml --run "$kind-again" --set train.shard_optimiser=yes >/dev/null 2>two.err || fail "$kind: $(cat two.err)"
  same_runs "$kind" "$kind-again"

  # Three ranks resume the run of two, and one rank that of three.
  launch 2 train model.yaml --run "$kind-parts" --set train.shard_optimiser=yes --set train.max_updates=20 >/dev/null 2>two.err || fail "$kind: $(cat two.err)"
  launch 3 train --resume "$kind-parts" --set train.max_updates=40 >/dev/null 2>two.err || fail "$kind: three: $(cat two.err)"
  "$TARN" train --resume "$kind-parts" --set train.max_updates=60 >/dev/null 2>two.err || fail "$kind: one: $(cat two.err)"
  [ "$(losses "$kind-parts" | wc -l)" -eq 12 ] || fail "$kind: the parts do not make a whole"

  # One line, whichever rank fails.
  code=0
  launch 2 train model.yaml --run "$kind" >/dev/null 2>error.txt || code=$?
  ours error.txt
  [ $code -ne 0 ] && [ "$(wc -l <ours.txt)" -eq 1 ] && grep -q "holds" ours.txt || fail "$kind: a run that exists: $code $(cat error.txt)"
done

kind=${kinds[0]}
# A rank with different data is detected before the first step.
cat >other.sh <<'END'
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
[ "$rank" = 0 ] && exec "$TARN" train model.yaml --run other
exec "$TARN" train model.yaml --run other --set data.train=valid
END
code=0
if [ "$kind" = openmpi ]; then mpirun.openmpi --bind-to none -n 2 bash other.sh; else mpirun.mpich -n 2 bash other.sh; fi >/dev/null 2>error.txt || code=$?
ours error.txt
[ $code -ne 0 ] && [ "$(wc -l <ours.txt)" -eq 1 ] && grep -q 'rank 1' ours.txt || fail "other data: $code $(cat error.txt)"

# If the launcher's MPI sees a process alone that was started with others, it must not train alone: all would write one
# run.
refuse 2 'were started together' env SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 TARN_MPI="$kind" "$TARN" train model.yaml --run srun
refuse 1 'docs/ranks.md' env TARN_MPI_MODULES=nowhere "$TARN" train model.yaml --run nowhere --comm mpi
[ ! -e srun ] && [ ! -e nowhere ] || fail "a refused training leaves a folder"

# Several seeds share a folder that all ranks would write.
code=0
launch 2 train model.yaml --run seeds --seeds 1,2 >/dev/null 2>error.txt || code=$?
ours error.txt
[ $code -ne 0 ] && [ "$(wc -l <ours.txt)" -eq 1 ] && grep -q 'one training for each seed' ours.txt || fail "seeds: $code $(cat error.txt)"
[ ! -e seeds ] || fail "refused seeds leave a folder"

[ -z "${TARN_SANITIZED:-}" ] || exit 0  # ranks/test_train_ranks stops and resumes them there

# Killed ranks: the others end, the last checkpoint can be loaded, and a resumed run ends with the bits of an
# undisturbed one.
launch 2 train model.yaml --run killed >killed.txt 2>&1 &
begun() { [ -s killed/log.jsonl ] && grep -q '"step":10,' killed/log.jsonl; }
within_two_minutes begun || fail "no training to kill: $(cat killed.txt)"
rank=$(cat killed/lock 2>/dev/null) && kill -KILL "$rank" 2>/dev/null || true  # it may just have ended
code=0
wait $! || code=$?
[ $code -ne 0 ] || grep -q '"step":60,' killed/log.jsonl || fail "a training whose rank was killed ends well"
none_left() { ! rank_process 0 >none.txt && ! rank_process 1 >none.txt; }
within_two_minutes none_left || fail "ranks are left: $(cat none.txt)"
[ $code -eq 0 ] || launch 2 train --resume killed >/dev/null 2>two.err || fail "after a kill: $(cat two.err)"
same_runs "$kind" killed
