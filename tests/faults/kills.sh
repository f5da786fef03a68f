#!/usr/bin/env bash
# Every command that writes is killed (SIGKILL), at calls of the system and at moments: what stands in the folder is old
# or new and loads, and the next run ends with the bytes of one that was not disturbed, without anything left over.
set -euo pipefail
. "$(dirname "$0")/../fault_commands.sh"

make_inputs
kills=6 commands="$fault_commands sweep-reuse record recipe"
if [ "${TARN_SANITIZED:-0}" = 1 ]; then kills=2 commands="prepare train average"; fi
for name in $commands; do fault_command "$name" --kills $kills --seed 17; done
