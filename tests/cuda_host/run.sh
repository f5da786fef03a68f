#!/bin/bash
# Runs a test on the CUDA module for the host: run.sh COVERAGE ORDERS PROGRAM [ARGUMENTS]. With order 0, the natural order of
# threads, all cases run; with orders 1 to 3, drawn from these numbers, each runs a third of them. The kernels that ran are
# written to the file COVERAGE (coverage.sh).
set -euo pipefail
coverage=$1 orders=$2
shift 2
export TARN_DEVICE=cuda
rm -f "$coverage"
for order in $orders; do
  [ "$order" -eq 0 ] || export TARN_TEST_SHARE=$order/3
  TARN_CUDA_ORDER=$order TARN_CUDA_COVERAGE=$coverage "$@" || {
    echo "with TARN_CUDA_ORDER=$order" >&2
    exit 1
  }
done
