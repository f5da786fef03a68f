#!/bin/bash
# Whether nvcc takes the sources of the module, without warnings: nvcc.sh VERSION FILES. It makes the code between alone, for
# which it reads all of a file, also what the processor runs; machine code for a card would take ten times as long, and the
# target tarn_cuda makes it. What the C++ compiler says of a file, it says when it compiles the module for the host. Skipped
# without nvcc.
set -euo pipefail
version=$1
shift
cd "$(dirname "$0")/../.."
nvcc=$(PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin command -v nvcc) || { echo "nvcc: skipped: there is none"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export nvcc version folder
# shellcheck disable=SC2016 # the inner shell expands these
printf '%s\n' "$@" | xargs -P 2 -I FILE bash -c '
  "$nvcc" -std=c++17 -O0 -Xcicc=-O0 -gencode arch=compute_80,code=compute_80 \
    -Werror=all-warnings --diag-suppress=1650 -D_GNU_SOURCE "-DTARN_VERSION=\"$version\"" "-DTARN_CUDA_TOOLKIT=\"none\"" \
    -Isrc -Iinclude -ptx FILE -o "$(mktemp -p "$folder")" || { echo FILE >&2; exit 1; }'
echo "nvcc takes $# files"
