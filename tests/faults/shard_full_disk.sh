#!/usr/bin/env bash
# A full disk while a shard, a vocabulary or a corpus is written: one clear line, exit code 1, the old file whole, no
# file left over. A limit on the size of files stands for the full disk.
set -euo pipefail

. "$(dirname "$0")/../helpers.sh"

"$TARN" corpus --output c --sentences 2000 --held-out 100
"$TARN" vocab --size 800 --output v.model c/train.de c/train.en
"$TARN" prepare --vocab v.model --source c/valid.de --target c/valid.en --output data/p > out.txt
cp data/p.tarn keep.tarn
cp v.model keep.model

# limited KIB COMMAND...: no file may grow beyond KIB; the signal for it is ignored, so that writing fails as on a full disk.
limited() { (trap '' XFSZ; ulimit -f "$1"; shift; "$@"); }

for limit in 1 8 40 70; do
  code=0
  limited $limit "$TARN" prepare --vocab v.model --source c/train.de --target c/train.en --output data/p > out.txt 2> err.txt || code=$?
  [ $code = 1 ] || fail "prepare ends with $code under a limit of $limit KiB"
  grep -q "cannot write" err.txt || fail "unclear message: $(cat err.txt)"
  cmp data/p.tarn keep.tarn || fail "the old shard is damaged"
  [ "$(ls data)" = p.tarn ] || fail "files are left over: $(ls data)"
done
code=0
limited 8 "$TARN" vocab --size 800 --output v.model c/train.de c/train.en 2> err.txt || code=$?
[ $code = 1 ] && grep -q "cannot write" err.txt || fail "vocab: $code, $(cat err.txt)"
cmp v.model keep.model || fail "the old vocabulary is damaged"
mkdir read-only
chmod a-w read-only
if ! touch read-only/x 2> /dev/null; then
  code=0
  "$TARN" prepare --vocab v.model --source c/valid.de --target c/valid.en --output read-only/p 2> err.txt || code=$?
  [ $code = 1 ] && grep -q "read-only" err.txt || fail "read-only folder: $code, $(cat err.txt)"
fi
