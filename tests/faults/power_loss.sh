#!/usr/bin/env bash
# Power is lost: of what was not brought to the disk, writes are dropped or torn and names made, moved and removed or not.
# What is there then loads, a training goes on to the same bits, and what a command had ended with is not lost.
set -euo pipefail
. "$(dirname "$0")/../fault_commands.sh"

make_inputs
losses=10 commands="$fault_commands sweep-reuse record"
if [ "${TARN_SANITIZED:-0}" = 1 ]; then losses=2 commands="prepare train average"; fi
for name in $commands; do fault_command "$name" --losses $losses --seed 18; done
[ "${TARN_SANITIZED:-0}" = 1 ] || fault_command recipe --losses 4 --seed 18
