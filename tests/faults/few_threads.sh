#!/usr/bin/env bash
# Where threads cannot be had, by a limit on memory or on processes, the commands go on with fewer and say so; OpenMP does
# not end them.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"
"$TARN" train model.yaml --run run --quiet --set train.max_updates=10
"$TARN" translate run --threads 1 <corpus/valid.de >one.en

# few LIMIT...: the command under the limit, with 200 threads.
few() {
  "$@" "$TARN" translate run --threads 200 <corpus/valid.de >few.en 2>error.txt || fail "$*: $(cat error.txt)"
  grep -q "^tarn: warning: [0-9]* of 200 threads are used, more cannot be started" error.txt ||
    fail "$*: no word of it: $(cat error.txt)"
  cmp one.en few.en || fail "$*: another translation"
  rm -rf other
  "$@" "$TARN" train model.yaml --run other --quiet --set train.max_updates=10 --threads 200 2>error.txt ||
    fail "$*: $(cat error.txt)"
  grep -q "of 200 threads are used" error.txt || fail "$*: no word of it: $(cat error.txt)"
}
# A sanitizer takes all addresses for itself.
[ -n "${TARN_SANITIZED:-}" ] || few prlimit --as=900000000
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
  # A user of its own: the limit counts the processes of all tests that run as the same one.
  chmod 777 . && chmod -R a+rwX .
  few setpriv --reuid=$((61000 + RANDOM % 4000)) --clear-groups prlimit --nproc=6
fi
