#!/usr/bin/env bash
# A rank that is killed (SIGKILL) at any moment, whichever it is: all ranks end, what is saved loads, and the run goes on
# and ends with the bits of one that nobody disturbed. TARN_RANK_KILLS: how many kills for each MPI (./run faults ranks).
set -euo pipefail
. "$(dirname "$0")/../mpi_ranks.sh"
. "$(dirname "$0")/../tiny_run.sh"
sed -i 's/threads: 2/threads: 1/' model.yaml
wanted=${TARN_RANK_KILLS:-2} ranks=3
[ "${TARN_SANITIZED:-0}" != 1 ] || wanted=${TARN_RANK_KILLS:-1}
RANDOM=${TARN_RANK_SEED:-17}

lines() { { cat killed/log.jsonl 2>/dev/null || true; } | wc -l; }
for kind in "${kinds[@]}"; do
  rm -rf whole killed
  launch $ranks train model.yaml --run whole --quiet 2>error.txt || fail "$kind: $(cat error.txt)"
  kills=0 runs=0 again=0
  while [ $kills -lt "$wanted" ]; do
    how=(model.yaml --run killed)
    [ ! -e killed/config.yaml ] || how=(--resume killed)
    before=$(lines)
    launch $ranks train "${how[@]}" --quiet >out.txt 2>error.txt &
    launcher=$! rank=$((RANDOM % ranks)) more=$((RANDOM % 5)) victim=
    # After so many further lines of the log; none: while it begins.
    ready() { gone $launcher || { victim=$(rank_process $rank) && [ "$(lines)" -ge $((before + more)) ]; }; }
    within_two_minutes ready || fail "$kind: no training to kill: $(cat error.txt)"
    sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
    killed=no
    [ -z "$victim" ] || ! kill -KILL "$victim" 2>/dev/null || killed=yes
    within_two_minutes gone $launcher || fail "$kind: the other ranks do not end after rank $rank was killed"
    code=0
    wait $launcher || code=$?
    if [ $code -eq 0 ]; then
      same_runs whole killed
      rm -rf killed
      runs=$((runs + 1))
    fi
    [ $killed = yes ] || { [ $code -eq 0 ] || fail "$kind: it ends by itself: $(cat error.txt)"; continue; }
    kills=$((kills + 1))
    none_left() { ! { rank_process 0 || rank_process 1 || rank_process 2; } >/dev/null; }
    within_two_minutes none_left || fail "$kind: ranks outlive the launcher"
    for file in killed/*.safetensors; do
      [ ! -e "$file" ] || "$TARN" inspect "$file" >out.txt || fail "$kind: $file cannot be read after a kill of rank $rank"
    done
    [ $code -eq 0 ] || again=$((again + 1))
  done
  how=(model.yaml --run killed)
  [ ! -e killed/config.yaml ] || how=(--resume killed)
  launch $ranks train "${how[@]}" --quiet 2>error.txt || fail "$kind: the last piece: $(cat error.txt)"
  same_runs whole killed
  [ -z "$(find killed -name '*.tmp.*')" ] || fail "$kind: half-written files are left: $(ls killed)"
  echo "ranks, $kind: $kills kills, $again in the middle of a run; $((runs + 1)) runs ended with the bits of an undisturbed one"
done
