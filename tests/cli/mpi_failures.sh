#!/usr/bin/env bash
# Ranks that cannot start, differ, die or are stopped: all ranks end, with one line of tarn that names the rank and the
# host, and the saved files can be loaded.
set -eu
. "$(dirname "$0")/../mpi_ranks.sh"
. "$(dirname "$0")/../tiny_run.sh"
sed -i 's/threads: 2/threads: 1/' model.yaml
host=$(hostname)

# Rank 1 gets $ONE, the others the common arguments.
cat >apart.sh <<'END'
[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" != 1 ] || exec env $ONE
exec "$TARN" train model.yaml --run out
END
apart() {  # CODE|any PATTERN COMMAND...: rank 1 runs this command, and nothing comes of it
  local code=0 wanted=$1 pattern=$2
  shift 2
  export ONE="$*"
  launch_program 2 bash apart.sh >out.txt 2>error.txt || code=$?
  [ $code -ne 0 ] || fail "$kind: $*: ends well"
  [ "$wanted" = any ] || [ $code -eq "$wanted" ] || fail "$kind: $*: exit code $code, expected $wanted: $(cat error.txt)"
  one_line error.txt "$pattern"
  [ ! -e out/config.yaml ] || fail "$kind: $*: a run has begun"
}
same="$TARN train model.yaml --run out"
sed 's/lr: 0.005/lr: 0.006/' model.yaml >other.yaml
cp train.tarn one.tarn && cp valid.tarn two.tarn
trains() { [ -s "$1/log.jsonl" ] && [ "$(wc -l <"$1/log.jsonl")" -ge 3 ]; }
no_ranks() { ! { rank_process 0 || rank_process 1; } >/dev/null; }
loads() { for file in "$1"/*.safetensors; do "$TARN" inspect "$file" >out.txt || fail "$kind: $file cannot be read"; done; }

for kind in "${kinds[@]}"; do
  # Before it joins the others, and after.
  apart any "rank 1 on $host: unknown option --runs; did you mean --run?" "$TARN" train model.yaml --runs out
  apart any "rank 1 on $host: none.yaml: cannot read" "$TARN" train none.yaml --run out
  apart any "rank 1 on $host: .*none.tarn" "$same" --set data.train=none
  apart any "rank 1 on $host: .*there is none where TARN_MPI_MODULES says" TARN_MPI_MODULES=nowhere "$same"
  # Before the first step.
  apart any "rank 1 on $host has another description than rank 0 on $host: train: lr: 0.006 instead of lr: 0.005" \
    "$TARN" train other.yaml --run out
  apart any "rank 1 on $host has another version of the program, or other instructions of its processor, than rank 0 on $host: version .* with reference instead of version" \
    "$same" --device reference

  # Killed: the dead rank is named; MPICH kills the other ranks at once, so its line may be missing.
  launch 2 train model.yaml --run "$kind-killed" --set train.max_updates=100000 >killed.txt 2>&1 &
  launcher=$!
  within_two_minutes trains "$kind-killed" || fail "$kind: no training to kill: $(cat killed.txt)"
  victim=$(rank_process 1)
  kill -KILL "$victim"
  within_two_minutes gone $launcher || fail "$kind: it goes on without a rank"
  ! wait $launcher || fail "$kind: a training whose rank was killed ends well"
  within_two_minutes no_ranks || fail "$kind: ranks are left"
  ours killed.txt
  [ "$(grep -vc '^tarn: rank' ours.txt)" -eq 0 ] || fail "$kind: $(cat killed.txt)"
  if [ "$kind" = openmpi ] || [ -s ours.txt ]; then
    one_line killed.txt "rank 1 on $host has died (process $victim); this ends all ranks. Go on from what is saved with: tarn train --resume $kind-killed"
  fi
  loads "$kind-killed"

  # Stopped: the others wait for the stated time, and no longer.
  TARN_RANK_TIMEOUT=8 launch 2 train --resume "$kind-killed" >halted.txt 2>&1 &
  launcher=$!
  lines=$(wc -l <"$kind-killed/log.jsonl")
  further() { [ "$(wc -l <"$kind-killed/log.jsonl")" -ge $((lines + 2)) ]; }
  within_two_minutes further || fail "$kind: no training to halt: $(cat halted.txt)"
  victim=$(rank_process 1)
  kill -STOP "$victim"
  within_two_minutes gone $launcher || fail "$kind: it waits for a rank that is halted"
  ! wait $launcher || fail "$kind: a training whose rank was halted ends well"
  one_line halted.txt "rank 1 on $host has given no sign of life for 8 s: it was halted"
  within_two_minutes no_ranks || fail "$kind: ranks are left"
  loads "$kind-killed"
done
kind=${kinds[0]}
code=0
TARN_RANK_TIMEOUT=soon launch 2 train model.yaml --run out >out.txt 2>error.txt || code=$?
[ $code -ne 0 ] || fail "any text is a time"
one_line error.txt 'TARN_RANK_TIMEOUT is "soon": expected seconds from 2 to 86400, or 0 for never'
