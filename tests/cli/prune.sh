#!/usr/bin/env bash
# tarn prune and the options of tarn translate: a pruned checkpoint translates like the options.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

"$TARN" train model.yaml --run run --set train.max_updates=20 --set encoder.layerdrop=0.2 --quiet
head -5 corpus/valid.de >in.txt
"$TARN" translate run --encoder-layers-to-keep 1,3 --input in.txt >a.txt 2>/dev/null
"$TARN" prune run cut --encoder-layers-to-keep 1,3
"$TARN" translate cut --input in.txt >b.txt 2>/dev/null
cmp a.txt b.txt || fail "the pruned checkpoint translates otherwise"
"$TARN" translate run --prune-rate 0.5 --input in.txt >c.txt 2>/dev/null
cmp a.txt c.txt || fail "every other layer is not 1,3"
"$TARN" inspect cut >out.txt
grep -q 'layers_to_keep: \[1, 3\]' <("$TARN" inspect --json cut) || fail "inspect: $(cat out.txt)"
refuse 2 "there is no layer 9" "$TARN" prune run x --encoder-layers-to-keep 1,9
refuse 2 "say which layers" "$TARN" prune run x
refuse 2 "prune-rate" "$TARN" translate run --prune-rate 0.7
[ ! -e x ] || fail "a refused pruning left a file"
