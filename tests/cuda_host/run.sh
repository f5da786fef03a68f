#!/bin/bash
# Runs a test on the CUDA module for the host: run.sh COVERAGE SHARES ORDERS PROGRAM [ARGUMENTS]. In each of the orders of
# threads (0 is the natural one, others are drawn from these numbers) one of that many shares of its cases runs. The kernels
# that ran are written to the file COVERAGE (coverage.sh).
set -euo pipefail
coverage=$1 shares=$2 orders=$3
shift 3
export TARN_DEVICE=cuda
rm -f "$coverage"
for order in $orders; do
  TARN_TEST_SHARE=$order/$shares TARN_CUDA_ORDER=$order TARN_CUDA_COVERAGE=$coverage "$@" || {
    echo "with TARN_CUDA_ORDER=$order" >&2
    exit 1
  }
done
