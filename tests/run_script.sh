#!/usr/bin/env bash
# Runs one test script in its own folder, which is removed afterwards. Processes left there by a failing script, even
# stopped ones, are killed, because a reader of the script's output would wait for them.
set -u
script=$(readlink -f "$1")
folder=$(readlink -f "$(mktemp -d)") || exit 1
clear_away() {
  cd /
  local place process
  for place in $(find /proc/[0-9]* -maxdepth 1 -name cwd \( -lname "$folder" -o -lname "$folder/*" \) 2>/dev/null); do
    process=${place#/proc/} process=${process%/cwd}
    [ "$process" = $$ ] || kill -KILL "$process" 2>/dev/null
  done
  rm -rf "$folder"
}
trap clear_away EXIT
cd "$folder" || exit 1
# Restores the default of signals inherited as ignored (by nohup), because tests send them.
env --default-signal bash "$script"
