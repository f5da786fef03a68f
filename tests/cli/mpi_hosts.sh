#!/usr/bin/env bash
# Training over simulated hosts, network namespaces with their own addresses: the bits are those of as many ranks on one
# host, even if a link is slow; a cut link ends all ranks within a stated time, and the run resumes from what it saved;
# a rank that dies on another host is reported. Skipped if namespaces cannot be created.
set -eu
. "$(dirname "$0")/../mpi_ranks.sh"
. "$(dirname "$0")/../helpers.sh"
. "$(dirname "$0")/../namespaces.sh"
namespaces_possible || exit 77
. "$(dirname "$0")/../tiny_run.sh"
sed -i 's/threads: 2/threads: 1/; s/max_updates: 60/max_updates: 100000/' model.yaml
# Only Open MPI: with MPICH's channel UCX over TCP, ranks may wait for each other in MPI_Finalize forever after a link
# was cut and restored.
[[ " ${kinds[*]} " == *" openmpi "* ]] || { echo "skipped: Open MPI is not there"; exit 77; }
kinds=(openmpi)
namespaces_open 3 || fail "namespaces"

over_hosts() {  # ARGUMENT...: tarn on three ranks, each on its host
  mpirun_on_nodes "$kind" 3 "$TARN" "$@"
}
lines() { { cat "$1/log.jsonl" 2>/dev/null || true; } | wc -l; }
update_of() { "$TARN" inspect "$1" | sed -nE '1s/.*update ([0-9]+).*/\1/p'; }
begin() {  # ARGUMENT...: in the background, until some lines of the log are there; sets $launcher
  local before
  before=$(lines far)
  over_hosts "$@" >far.txt 2>&1 &
  launcher=$!
  further() { gone $launcher || [ "$(lines far)" -ge $((before + 3)) ]; }
  within_two_minutes further && ! gone $launcher || fail "$kind: no training over hosts: $(cat far.txt)"
}
no_ranks() { ! { rank_process 0 || rank_process 1 || rank_process 2; } >/dev/null; }
ended() {  # what was done to it: all ranks end, and $launcher with a failure
  within_two_minutes no_ranks || fail "$kind: $1: it goes on: $(cat far.txt)"
  # Hydra's mpiexec waits for the other end of a cut link while it is cut.
  [ "$kind" = openmpi ] || nodes_clear
  within_two_minutes gone $launcher || fail "$kind: $1: the launcher does not end: $(cat far.txt)"
  ! wait $launcher || fail "$kind: $1: ends well"
  for file in far/*.safetensors; do "$TARN" inspect "$file" >out.txt || fail "$kind: $1: $file cannot be read"; done
}

for kind in "${kinds[@]}"; do
  rm -rf far near
  # One host's link is slowed to a hundredth.
  link_rate 2 20mbit || fail "$kind: the link is not slowed"
  export TARN_RANK_TIMEOUT=3
  begin train model.yaml --run far
    seconds=$SECONDS
  link_cut 3
  within_two_minutes no_ranks || true
  echo "$kind: a cut link ended all ranks within $((SECONDS - seconds)) s"
  ended "a link that is cut"
  one_line far.txt "rank 2 on node3 has given no sign of life for 3 s: it was halted, or its host or the link to it is down; this ends all ranks. Go on from what is saved with: tarn train --resume far"
  link_mend 3 || fail "$kind: the link is not mended"

  # Only the launcher sees the death of a rank that is alone on its host.
  if [ "$kind" = openmpi ]; then
    begin train --resume far
    kill -KILL "$(rank_process 1)"
    ended "a rank that dies on another host"
    ours far.txt
    [ "$(grep -c '^tarn: ' ours.txt)" -le 1 ] || fail "$kind: more than one line of tarn: $(cat far.txt)"
  fi
  link_rate 2 -

  last=$(($(update_of far/checkpoint_last.safetensors) / 20 * 20 + 40))
  over_hosts train --resume far --set train.max_updates=$last >out.txt 2>error.txt || fail "$kind: after all that: $(cat error.txt)"
  launch 3 train model.yaml --run near --set train.max_updates=$last >out.txt 2>error.txt || fail "$kind: on one host: $(cat error.txt)"
  same_runs near far
done
