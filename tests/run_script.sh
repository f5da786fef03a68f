#!/usr/bin/env bash
# Runs one test script in a folder of its own that is removed afterwards.
set -u
script=$(readlink -f "$1")
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
bash "$script"
