#!/usr/bin/env bash
# The benchmark: names, errors, and JSON with the measurements. Needs no other program for comparison.
set -eu
. "$(dirname "$0")/../helpers.sh"
command -v python3 >/dev/null || { echo "bench.sh: skipped, python3 is not installed"; exit 77; }
TARN_BUILD=$(dirname "$TARN")
export TARN_BUILD TARN_PEERS=none THREADS=1
bench() { python3 "$TARN_SOURCE_DIR/bench/run.py" "$@"; }

bench --list >list.txt
for name in peak-bf16 train-model0-bf16 train-esn-i-bf16 train-mlm-bf16 train-classify-bf16 train-char-bf16 freezing-structured-fp32 threads-small-bf16 growth-width translate-beam5-int8 generate-1-int4; do
  grep -qw -e "$name" list.txt || fail "no $name in the list"
done

code=0
bench --only train-model9 >out.txt 2>error.txt || code=$?
[ $code -eq 2 ] || fail "an unknown measurement gave code $code"
grep -q 'no measurement "train-model9"' error.txt && grep -qw train-model0-bf16 error.txt || fail "unclear: $(cat error.txt)"

code=0
TARN_DATA=nowhere bench --only train-small-fp32 >out.txt 2>error.txt || code=$?
[ $code -eq 1 ] && grep -q 'TARN_DATA' error.txt || fail "no data: code $code, $(cat error.txt)"

code=0
bench --rounds 0 >out.txt 2>error.txt || code=$?
[ $code -eq 2 ] || fail "no rounds gave code $code"

bench --only peak-fp32 --json --output peak.json >out.txt 2>error.txt
cmp -s out.txt peak.json || fail "what is printed and what is written differ"
python3 - <<'PY' || fail "the entry is wrong: $(cat peak.json)"
import json
entry = json.load(open("peak.json"))["peak-fp32"]
assert entry["ours"] > 0 and entry["peer"] is None and entry["ratio"] is None, entry
PY
bench --only peak-fp32 2>/dev/null | grep -q '^peak-fp32 .*GOP/s' || fail "no line in the table"

# The listed kernels exist; runs a fast one.
grep -o 'kernel-[a-z0-9-]*-fp32' list.txt | sed 's/^kernel-//; s/-fp32$//' | sort >named.txt
"$TARN_BUILD/bench_kernels" --list | sort | cmp -s - named.txt || fail "bench and bench_kernels list other kernels"
PYTHON=none bench --only kernel-residual-norm-bf16 --rounds 1 --json >out.txt 2>error.txt
grep -q '"op": "residual_norm_backward"' out.txt || fail "no parts: $(cat out.txt)"
