#!/usr/bin/env bash
# The long form of the tests in tests/faults: faults, kills and power losses for the commands that write files.
# usage: faults.sh BUILD [COMMAND...] [--places|--all] [--kills N] [--losses N] [--seed N]
#   COMMAND   one of those in tests/fault_commands.sh; `ranks` kills ranks, 50 for each MPI; default: all
#   --places  every single system call fails once, and of allocations the first and the last at each place in the
#             program; otherwise twenty of each kind
#   --all     every single call and every single allocation
#   --kills, --losses   for each command (default 60)
# Prints one line per command and kind; exit code 1 if anything was lost or left behind. With --all it takes hours.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/$1
shift
faults=20 places=() kills= losses=60 seed=1 names=()
while [ $# -gt 0 ]; do
  case $1 in
    --all) faults=0 places=() ;;
    --places) faults=0 places=(--places) ;;
    --kills) kills=$2 && shift ;;
    --losses) losses=$2 && shift ;;
    --seed) seed=$2 && shift ;;
    --*)
      echo "faults: unknown option $1; there are --places, --all, --kills, --losses and --seed" >&2
      exit 2
      ;;
    *) names+=("$1") ;;
  esac
  shift
done
export TARN=$build/tarn FAULT_DRIVER=$build/tests/fault_driver FAULT_LIBRARY=$build/tests/libfaults.so TARN_SOURCE_DIR=$PWD
. tests/fault_commands.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
make_inputs
# A run that is not reused is trained, so not every fault there leaves the same bytes.
kills_only=" sweep-reuse "
[ ${#names[@]} -gt 0 ] || read -ra names <<<"$(echo $fault_commands $fault_forms ranks)"
code=0
for name in "${names[@]}"; do
  if [ "$name" = ranks ]; then
    got=0
    TARN_BUILD_DIR=$build TARN_RANK_KILLS=${kills:-50} TARN_RANK_SEED=$seed \
      "$TARN_SOURCE_DIR/tests/run_script.sh" "$TARN_SOURCE_DIR/tests/faults/rank_kills.sh" || got=$?
    [ $got -eq 0 ] || [ $got -eq 77 ] || code=1
    continue
  fi
  options=(--kills "${kills:-60}" --losses "$losses" --seed "$seed")
  [[ $kills_only == *" $name "* ]] || options+=(--faults "$faults" "${places[@]}" --bends 20 --messages)
  fault_command "$name" "${options[@]}" || code=1
done
exit $code
