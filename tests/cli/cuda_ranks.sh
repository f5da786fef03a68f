#!/usr/bin/env bash
# Two ranks with a card each (communicator nccl): the bits of two ranks that sum in the host's memory, in fp32 and bf16,
# and with a sharded optimiser. The cards are the module for the host, NCCL is a stand-in over named pipes.
set -eu
. "$(dirname "$0")/../mpi_ranks.sh"
. "$(dirname "$0")/../tiny_run.sh"
. "$(dirname "$0")/../cuda_host/cuda_here.sh"
sed -i 's/threads: 2/threads: 1/; s/max_updates: 60/max_updates: 6/; s/save_every: 10/save_every: 3/; s/every: 20, max_sentences/every: 3, max_sentences/; s/max_tokens: 500/max_tokens: 80/; s/log_every: 5/log_every: 1/' model.yaml
export TARN_CUDA_CARDS=2 FAKE_NCCL_FOLDER=$PWD
export LD_LIBRARY_PATH=$TARN_CUDA_MODULES${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
kind=${kinds[0]}

for reduce in fp32 bf16; do
  launch 2 train model.yaml --run host-$reduce --device cuda --set train.reduce=$reduce >/dev/null 2>two.err ||
    fail "mpi: $(cat two.err)"
  launch 2 train model.yaml --run card-$reduce --device cuda --comm nccl --set train.reduce=$reduce >/dev/null 2>two.err ||
    fail "nccl: $(cat two.err)"
  same_runs host-$reduce card-$reduce
done
# A plan counts what peers take of a card, and no more.
for comm in mpi nccl; do
  TARN_CUDA_MEMORY=$comm.txt launch 2 train model.yaml --run memory-$comm --device cuda --comm $comm \
    --set train.max_updates=2 --json >$comm.json 2>two.err || fail "memory: $(cat two.err)"
done
more() { echo $(($1 - $2)); }
planned=$(more "$(grep -o '"planned_bytes":[0-9]*' nccl.json | cut -d: -f2)" "$(grep -o '"planned_bytes":[0-9]*' mpi.json | cut -d: -f2)")
taken=$(more "$(sort -n nccl.txt | tail -n 1)" "$(sort -n mpi.txt | tail -n 1)")
[ "$planned" -eq $((64 << 20)) ] && [ "$taken" -gt $((planned * 19 / 20)) ] && [ "$taken" -lt $((planned * 21 / 20)) ] ||
  fail "peers: $planned bytes planned, $taken taken"
launch 2 train model.yaml --run shared --device cuda --comm nccl --set train.shard_optimiser=yes >/dev/null 2>two.err ||
  fail "sharded: $(cat two.err)"
same_runs host-fp32 shared

# A rank without a card of its own, and no NCCL: one line each.
code=0
TARN_CUDA_CARDS=1 launch 2 train model.yaml --run none --device cuda --comm nccl >/dev/null 2>error.txt || code=$?
[ $code -ne 0 ] || fail "two ranks share a card"
grep -q 'processes on this machine have a card each' error.txt || fail "no card: $(cat error.txt)"
code=0
LD_LIBRARY_PATH=nowhere FAKE_NCCL_FOLDER=nowhere launch 2 train model.yaml --run none --device cuda --comm nccl >/dev/null 2>error.txt || code=$?
[ $code -ne 0 ] && grep -q 'NCCL' error.txt || fail "without NCCL: $code $(cat error.txt)"
