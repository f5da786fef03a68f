#!/usr/bin/env bash
# Runs one test script in a folder of its own that is removed afterwards. Processes that a failing script leaves there, halted
# ones too, are killed, because whoever waits for the end of the script's output would wait for them.
set -u
script=$(readlink -f "$1")
folder=$(readlink -f "$(mktemp -d)") || exit 1
clear_away() {
  cd /
  local process place
  for process in /proc/[0-9]*; do
    place=$(readlink "$process/cwd" 2>/dev/null) || continue
    case $place in "$folder" | "$folder"/*) [ "${process#/proc/}" = $$ ] || kill -KILL "${process#/proc/}" 2>/dev/null ;; esac
  done
  rm -rf "$folder"
}
trap clear_away EXIT
cd "$folder" || exit 1
bash "$script"
