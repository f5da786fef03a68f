#!/usr/bin/env bash
# Tries and measures tarn on a machine with a card (docs/gpu.md). The steps are in bench/gpu; this reads the options,
# unpacks a bundle, and finds a Python.
set -u
here=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)

usage() {
  cat <<'TEXT'
usage: scripts/gpu.sh [options]

Tries tarn on this machine's card, measures it in turns with PyTorch, and writes DIR/gpu.json anew after every step.
No network is needed; of programs python3, and for the comparison PyTorch with NumPy.

  --bundle FILE   what scripts/gpu_bundle.sh made; without it this folder, a bundle that is unpacked or a source tree
  --out DIR       folder of gpu.json, gpu.log and ncu.csv (default gpu-results)
  --minutes N     steps for which nothing is left of these are skipped (default 9)
  --science       trains the models of the papers in place of all checks; goes on in the same DIR
  --host          all that runs without a card, at tiny sizes, on the module of tests/cuda_host: says nothing of speed
  --help          print this text

PYTHON names the Python that has PyTorch (default python3). Exit code 1: a step failed; 2: usage.
TEXT
}

fail() { echo "gpu.sh: $1" >&2; exit "${2:-1}"; }

# nearest WORD CANDIDATE...: the candidate with the fewest changes of a letter.
nearest() {
  printf '%s\n' "$@" | awk '
    function least(a, b, c) { return a < b ? (a < c ? a : c) : (b < c ? b : c) }
    function distance(a, b,    i, j, d) {
      for (i = 0; i <= length(a); i++) d[i, 0] = i
      for (j = 0; j <= length(b); j++) d[0, j] = j
      for (i = 1; i <= length(a); i++)
        for (j = 1; j <= length(b); j++)
          d[i, j] = least(d[i - 1, j] + 1, d[i, j - 1] + 1,
                          d[i - 1, j - 1] + (substr(a, i, 1) != substr(b, j, 1)))
      return d[length(a), length(b)]
    }
    NR == 1 { word = $0; best = 1e9; next }
    { now = distance(word, $0); if (now < best) { best = now; found = $0 } }
    END { print found }'
}

known=(--bundle --out --minutes --science --host --help)
bundle="" out=gpu-results minutes=9 passed=()
while [ $# -gt 0 ]; do
  case $1 in
    --bundle | --out | --minutes)
      [ -n "${2:-}" ] || fail "$1 needs a value" 2
      case $1 in
        --bundle) bundle=$2 ;;
        --out) out=$2 ;;
        --minutes) minutes=$2 ;;
      esac
      shift
      ;;
    --science | --host) passed+=("$1") ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) fail "unknown option $1; did you mean $(nearest "$1" "${known[@]}")?" 2 ;;
  esac
  shift
done
awk -v m="$minutes" 'BEGIN { exit !(m ~ /^[0-9]+([.][0-9]+)?$/ && m > 0 && m <= 100000) }' ||
  fail "--minutes $minutes: a number above 0 and up to 100000 is expected" 2
python=${PYTHON:-python3}
command -v "$python" >/dev/null || fail "there is no $python (PYTHON)"

mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
if [ -n "$bundle" ]; then
  [ -f "$bundle" ] || fail "$bundle is no file"
  unpacked=$(mktemp -d "${TMPDIR:-/tmp}/tarn-bundle-XXXXXX") || exit 1
  trap 'rm -rf "$unpacked"' EXIT
  # Python unpacks it where there is no xz.
  tar -xf "$bundle" -C "$unpacked" 2>/dev/null ||
    "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$bundle" "$unpacked" 2>/dev/null ||
    fail "$bundle is no bundle, or is damaged: scripts/gpu_bundle.sh makes one"
  here=$unpacked/tarn-gpu
  [ -f "$here/bench/gpu/main.py" ] || fail "$bundle is no bundle: it has no tarn-gpu/bench/gpu/main.py"
fi
"$python" "$here/bench/gpu/main.py" --out "$out" --minutes "$minutes" "${passed[@]+"${passed[@]}"}"
