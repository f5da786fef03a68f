#!/usr/bin/env bash
# Cost limits of models from files: estimated first, reported during computation, bounded by --max-memory and
# --max-operations; trainings of the user's own descriptions are not bounded.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

"$TARN" train model.yaml --run run --quiet --set train.max_updates=2
"$TARN" translate run <corpus/valid.de >plain.en 2>error.txt
! grep -q "computing" error.txt || fail "a small model is told of: $(cat error.txt)"
for command in translate "export --dense" test prune; do
  case $command in
    translate) set -- translate run --input corpus/valid.de ;;
    export*) set -- export --dense run dense.safetensors ;;
    prune) set -- prune run pruned.safetensors --decoder-layers-to-keep 1 ;;
    test) set -- test run --source corpus/valid.de --reference corpus/valid.en ;;
  esac
  refuse 1 "run/checkpoint.*safetensors: computing its frozen weights again takes .* operations, more than the 1e+03 of --max-operations" \
    "$TARN" "$@" --max-operations 1k
  refuse 1 "frozen weights, which are computed from a line of text, take .* bytes of memory, more than the 1e+04 of --max-memory" \
    "$TARN" "$@" --max-memory 1e4
  refuse 2 '--max-memory takes a number such as 4G or 1e12, not "4X"' "$TARN" "$@" --max-memory 4X
  refuse 2 '--max-operations takes a number' "$TARN" "$@" --max-operations=-1
done
"$TARN" translate run --max-operations 0 --max-memory 0 <corpus/valid.de >all.en 2>error.txt
cmp plain.en all.en
"$TARN" translate run --max-operations 1T --max-memory 0.5G <corpus/valid.de >all.en 2>error.txt
cmp plain.en all.en
# A dense file has nothing to compute, so nothing is estimated. A run resumes whatever the limits are; the initial model
# of a training is a file like any other.
"$TARN" export --dense run dense.safetensors
"$TARN" translate dense.safetensors --max-operations 1 --max-memory 1 <corpus/valid.de >all.en 2>error.txt
cmp plain.en all.en
"$TARN" train --resume run --quiet --set train.max_updates=4 --max-operations 1 --max-memory 1
refuse 1 "train.init_from: run/checkpoint.*--max-operations" "$TARN" train model.yaml --run next \
  --set train.init_from=run --max-operations 1k

# Computations of some seconds are reported on a terminal or on request.
[ -z "${TARN_SANITIZED:-}" ] || exit 0
sed 's/d_model: 32/d_model: 768/; s/ffn: 64, frozen/ffn: 1536, frozen/' model.yaml >wide.yaml
"$TARN" train wide.yaml --run wide --quiet --set train.max_updates=1 --set data.valid=
"$TARN" export --dense wide dense.safetensors 2>error.txt
[ "$(wc -l <error.txt)" -eq 1 ] || fail "more than the file taken: $(cat error.txt)"
"$TARN" export --dense wide dense.safetensors --progress 2>error.txt
grep -Eq "^tarn: computing frozen weights  [0-9]+ %  .* operations/s" error.txt ||
  fail "no word of what takes long: $(cat error.txt)"

# On a terminal the progress line is removed at the end, and nothing follows it.
command -v script >/dev/null || exit 0
script -qec "'$TARN' export --dense wide dense.safetensors --progress" /dev/null >screen.txt || fail "$(cat screen.txt)"
tr '\r' '\n' <screen.txt >lines.txt
grep -aq 'computing frozen weights' lines.txt || fail "no progress: $(cat -v screen.txt)"
grep -aq $'^\033\\[Ktarn export: took wide/' lines.txt || fail "what is behind: $(cat -v screen.txt)"
