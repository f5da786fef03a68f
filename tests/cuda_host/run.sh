#!/bin/bash
# Runs a test on the CUDA module for the host, in the natural order of threads and in orders drawn from the numbers given:
# run.sh COVERAGE ORDERS PROGRAM [ARGUMENTS]. The kernels that ran are written to the file COVERAGE (coverage.sh).
set -euo pipefail
coverage=$1 orders=$2
shift 2
export TARN_DEVICE=cuda
rm -f "$coverage"
for order in $orders; do
  TARN_CUDA_ORDER=$order TARN_CUDA_COVERAGE=$coverage "$@" || {
    echo "with TARN_CUDA_ORDER=$order" >&2
    exit 1
  }
done
