#!/usr/bin/env bash
# Opening, reading, writing, fsync, rename, mapping, waiting and allocation fail in every command that writes: one clear
# line, old files or new ones, nothing left over, and the same bytes once nothing fails. Also reads and writes of a part,
# and EINTR.
# A sample, spread over all calls; `./run faults --all` lets each of them fail.
set -euo pipefail
. "$(dirname "$0")/../fault_commands.sh"

make_inputs
calls="open read write fsync rename map mkdir unlink thread wait allocation"
sample=(--faults 2 --bends 2)
commands="$fault_commands record"
# There the point is that no failure leaks or touches memory that is gone; each process takes ten times as long.
if [ "${TARN_SANITIZED:-0}" = 1 ]; then sample=(--faults 3) calls="write allocation" commands="vocab prepare average generate test"; fi
for name in $commands; do fault_command "$name" --kinds "$calls" "${sample[@]}" --seed 16; done
# The steps of a recipe are commands of their own; of its calls only the waits for them fail.
[ "${TARN_SANITIZED:-0}" = 1 ] || fault_command recipe --kinds wait --faults 2 --seed 16
