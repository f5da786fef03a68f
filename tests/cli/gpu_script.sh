#!/usr/bin/env bash
# scripts/gpu.sh: its options, its record, and all of its steps that run without a card (--host), also from a bundle. What a
# card alone can show is not tested.
set -u
. "$(dirname "$0")/../helpers.sh"
command -v python3 >/dev/null || { echo "gpu_script.sh: skipped, python3 is not installed"; exit 77; }
[ -f "$TARN_BUILD_DIR/tests/cuda_host/tarn-cuda.so" ] || { echo "gpu_script.sh: skipped, tests/cuda_host is not built"; exit 77; }
gpu=$TARN_SOURCE_DIR/scripts/gpu.sh
# No PyTorch, which would take most of the time: --host compares with it in other words only.
cat >python <<'SH'
#!/bin/sh
case "$*" in *torch*) exit 1 ;; esac
exec python3 "$@"
SH
chmod +x python
mkdir temporary
export TARN_BUILD=$TARN_BUILD_DIR PYTHON=$PWD/python TMPDIR=$PWD/temporary

"$gpu" --help >help.txt || fail "--help"
grep -q -- '--science' help.txt || fail "--help does not tell of --science"
refuse 2 'gpu.sh: unknown option --scince; did you mean --science?' "$gpu" --scince
refuse 2 'gpu.sh: unknown option host; did you mean --host?' "$gpu" host
refuse 2 'gpu.sh: --minutes needs a value' "$gpu" --minutes
refuse 2 'gpu.sh: --minutes soon: a number above 0' "$gpu" --minutes soon
refuse 1 'gpu.sh: none.tar.xz is no file' "$gpu" --bundle none.tar.xz
echo none >damaged.tar.xz
refuse 1 'gpu.sh: damaged.tar.xz is no bundle, or is damaged' "$gpu" --bundle damaged.tar.xz
refuse 2 'usage: scripts/gpu_bundle.sh OUTPUT.tar.xz' "$TARN_SOURCE_DIR/scripts/gpu_bundle.sh"
refuse 2 'x.zip: a name that ends in .tar.xz is expected' "$TARN_SOURCE_DIR/scripts/gpu_bundle.sh" x.zip

# record FILE EXIT PYTHON: the record is whole, its steps are as `all` says, and the exit code is that of its steps.
record() {
  [ ! -e "$1.new" ] || fail "$1.new is left"
  python3 - "$1" "$2" "$3" <<'PY' || fail "$1: $(cat "$1")"
import json, sys
value = json.load(open(sys.argv[1]))
steps = {step["name"]: step for step in value["steps"]}
assert value["finished"] and value["host"] and value["card"] == "cuda-host", value
for step in steps.values():
    assert step["status"] in ("ok", "failed", "skipped") and step["seconds"] >= 0, step
    assert step["status"] == "ok" or step["line"].strip(), step
failed = [step for step in steps.values() if step["status"] == "failed"]
assert int(sys.argv[2]) == (1 if failed else 0), sys.argv[2]
exec(sys.argv[3])
PY
}

# Without time everything but the probe is skipped, and says so.
code=0
"$gpu" --host --out none --minutes 0.00001 >out.txt 2>&1 || code=$?
record none/gpu.json $code 'assert steps["ceilings"]["status"] == "skipped" and "0 s are left" in steps["ceilings"]["line"]'

# All of it, from a bundle made of this build.
mkdir -p tarn-gpu/{bin,host,tests/kernels,bench,scripts}
ln -s "$TARN_SOURCE_DIR/examples" tarn-gpu/examples
ln -s "$TARN_SOURCE_DIR/tests/golden" tarn-gpu/tests/golden
cp "$TARN" "$TARN_BUILD_DIR/bench_batches" tarn-gpu/bin/
cp "$TARN_BUILD_DIR"/tests/cuda_host/{tarn-cuda.so,cuda_ceilings} tarn-gpu/host/
for name in kernels/test_dropout_op kernels/test_residual_norm golden/test_golden; do
  cp "$TARN_BUILD_DIR/tests/${name#*/}" tarn-gpu/tests/
  echo "$name" >>tarn-gpu/tests/gpu_tests.txt
done
mkdir -p tarn-gpu/bench/gpu
cp "$TARN_SOURCE_DIR"/bench/gpu/*.py tarn-gpu/bench/gpu/
cp "$TARN_SOURCE_DIR"/bench/{torch_peer_cuda.py,small.yaml} tarn-gpu/bench/
tar -cf bundle.tar.xz --use-compress-program='xz -0' tarn-gpu 2>tar.txt || fail "tar: $(cat tar.txt)"
rm -r tarn-gpu
code=0
"$gpu" --bundle bundle.tar.xz --host --out all >out.txt 2>&1 || code=$?
grep -q '^all/gpu.json: \|/all/gpu.json: ' out.txt || fail "no last line: $(cat out.txt)"
record all/gpu.json $code '
assert value["bundle"]
wanted = "probe ceilings data peers-begin kernels golden resume memcheck racecheck train-model0 train-wide profile ncu translate freezing"
assert list(steps) == wanted.split(), list(steps)
for name in ("probe", "ceilings", "data", "peers-begin"):
    assert steps[name]["status"] == "ok", steps[name]
for name in ("racecheck", "ncu"):
    assert steps[name]["line"] == "only on a card", steps[name]
assert not failed, failed
tests = steps["kernels"]["figures"]["tests"]
assert [test["status"] for test in tests.values()] == ["ok", "ok"] and tests["test_residual_norm"]["bits"], tests
assert steps["golden"]["figures"]["tests"]["test_golden"]["status"] == "ok", steps["golden"]
assert next(iter(steps["train-model0"]["figures"]["sizes"].values()))["tokens_per_second"] > 0'

# Sweeps: two tiny ones, which the same command goes on with.
code=0
"$gpu" --host --science --out science >out.txt 2>&1 || code=$?
record science/gpu.json $code '
step = steps["science"]
assert step["status"] == "ok", step'
[ -z "$(ls temporary)" ] || fail "files are left: $(ls temporary)"
exit 0
