#!/usr/bin/env bash
# A full disk, a run directory that cannot be written, too little memory: one clear line, and nothing is lost.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

# A limit on the size of files stands for the full disk: the signal for it is ignored, so that writing fails.
limited() { (trap '' XFSZ; ulimit -f "$1"; shift; "$@"); }

"$TARN" train model.yaml --run run --set train.max_updates=20 --quiet
cp run/checkpoint_last.safetensors keep
refuse 1 "cannot write" limited 100 "$TARN" train --resume run --set train.max_updates=60
cmp keep run/checkpoint_last.safetensors || fail "the last checkpoint is damaged"
[ -z "$(find run -name '*.tmp.*')" ] || fail "files are left over: $(ls run)"
"$TARN" inspect run >out.txt || fail "nothing to read"
refuse 1 "cannot write" limited 8 "$TARN" average --output mean run/checkpoint_20.safetensors run/checkpoint_10.safetensors
refuse 1 "cannot write" limited 8 "$TARN" export --dense run dense
[ ! -e mean ] && [ ! -e dense ] || fail "half a file is left"
"$TARN" train --resume run --set train.max_updates=60 --quiet
"$TARN" train model.yaml --run whole --quiet
cmp <(tensors_of run/checkpoint_last.safetensors) <(tensors_of whole/checkpoint_last.safetensors) || fail "other bits"

refuse 1 "file/run: cannot make the folder" env bash -c 'touch file; "$TARN" train model.yaml --run file/run'
mkdir read-only
chmod a-w read-only
touch read-only/x 2>/dev/null || refuse 1 "read-only" "$TARN" train model.yaml --run read-only/run
refuse 1 "MiB are available" "$TARN" train model.yaml --run big --set model.d_model=65536 --set kinds.L.ffn=1048576 \
  --set kinds.R.ffn=1048576 --set kinds.L.heads=64 --set kinds.R.heads=64
if [ "${TARN_SANITIZED:-0}" != 1 ]; then
  refuse 1 "needs .* MiB of memory and .* MiB are available" env bash -c 'ulimit -v 400000; "$TARN" train model.yaml \
    --run big --set model.d_model=1024 --set kinds.L.ffn=16384 --set kinds.R.ffn=16384'
fi

# Damaged checkpoints.
head -c 3000 whole/checkpoint_best.safetensors >cut
refuse 1 "cut" "$TARN" inspect cut
refuse 1 "cut" "$TARN" train --resume whole --set data.vocab=cut --set data.target_vocab=cut
refuse 1 "a folder without a run" "$TARN" inspect corpus
cp run/checkpoint_last.safetensors flipped
printf 'x' | dd of=flipped bs=1 seek=90000 conv=notrunc 2>/dev/null
refuse 1 "damaged" "$TARN" inspect flipped
cp flipped run/checkpoint_last.safetensors
refuse 1 "damaged.*put a copy of that file back" "$TARN" train --resume run
