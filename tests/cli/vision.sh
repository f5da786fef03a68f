#!/usr/bin/env bash
# Images from drawing to labels: sets from IDX and PNG files, training, resuming, plan, tarn test and tarn recognise, and
# every message about what cannot be read.
set -euo pipefail

. "$(dirname "$0")/../helpers.sh"

# --- drawn images: equal options give equal files
"$TARN" draw --output drawn --images 600 --held-out 120 --size 16 --seed 3
"$TARN" draw --output again --images 600 --held-out 120 --size 16 --seed 3
"$TARN" draw --output other --images 600 --held-out 120 --size 16 --seed 4
diff -r drawn again >/dev/null || fail "drawing again gave other files"
cmp -s drawn/train-images.idx other/train-images.idx && fail "another seed gave the same images"
[ "$(stat -c %s drawn/test-images.idx)" -eq $((16 + 120 * 256)) ] || fail "bytes of IDX"
"$TARN" draw --output shapes --what shapes --images 20 --held-out 20 --size 20 --json >/dev/null
refuse 2 '--what cannot be "digit"' "$TARN" draw --output x --what digit

p() { "$TARN" prepare --images "drawn/$1-images.idx" --labels "drawn/$1-labels.idx" --output "$1" "${@:2}"; }
p train >out.txt
grep -qE '^images +600 of 16 x 16 pixels, grey$' out.txt && grep -qE '^labels +10 classes' out.txt || fail "summary: $(cat out.txt)"
p valid --labels-from train >/dev/null
p test --json | grep -q '"images":120,"height":16,"width":16,"channels":1,"classes":10' || fail "JSON summary"
cp train.tarn plain.tarn
gzip -k drawn/train-images.idx
"$TARN" prepare --images drawn/train-images.idx.gz --labels drawn/train-labels.idx --output train >/dev/null
cmp train.tarn plain.tarn || fail "compressed images gave another shard"
"$TARN" inspect train.tarn >out.txt
grep -q '^rows *600 images with labels$' out.txt && grep -q '^size *16 x 16 pixels, grey$' out.txt || fail "inspect: $(cat out.txt)"

# --- training, resuming, frozen and shared layers, mean pooling
cat >c.yaml <<'END'
model: { task: image-classification, d_model: 16, norm: pre, positions: learned, dropout: 0.1 }
image: { patch: 4 }
encoder: { layers: "L R1 L R1" }
kinds:
  L: { mixer: attention, heads: 2, ffn: 32 }
  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }
data: { train: train, valid: valid }
train: { max_updates: 60, lr: 0.01, warmup: 10, max_tokens: 600, threads: 1, tensorboard: no, save_every: 20 }
valid: { every: 30 }
END
"$TARN" plan c.yaml --json >plan.json || fail "plan"
"$TARN" train c.yaml --run c --quiet
grep -q 'max_length: 17$' c/config.yaml && grep -q 'height: 16$' c/config.yaml && grep -q 'channels: 1$' c/config.yaml ||
  fail "the description: $(grep -A4 '^image' c/config.yaml)"
"$TARN" train c.yaml --run half --quiet --set train.max_updates=30
"$TARN" train --resume half --quiet --set train.max_updates=60
"$TARN" export --dense c a.safetensors --checkpoint last
"$TARN" export --dense half b.safetensors --checkpoint last
cmp a.safetensors b.safetensors || fail "a resumed training gave other bits"
"$TARN" train c.yaml --run mean --quiet --set head.pool=mean --set image.patch=8 --set train.precision=bf16 --set train.max_updates=5
grep -q 'max_length: 4$' mean/config.yaml || fail "patches without a class token"
"$TARN" train c.yaml --run frozen --quiet --set model.frozen_embeddings=encoder --set train.max_updates=5
"$TARN" train c.yaml --run freeze --quiet --set 'train.freeze={ embeddings.patches: 2 }' --set train.max_updates=5
"$TARN" train c.yaml --run learnt --quiet --set train.max_updates=400 --set train.lr=0.003 --set model.d_model=32 --set model.dropout=0 --set encoder.layers=L*2 --set valid.every=0
"$TARN" test learnt --labelled train >out.txt 2>/dev/null  # 600 images do not tell much about others
awk '/^accuracy / { found = 1; exit $2 < 0.6 } END { if (!found) exit 1 }' out.txt || fail "it has not learnt: $(cat out.txt)"
"$TARN" test learnt --labelled test >out.txt 2>/dev/null
grep -q '^120 rows in' out.txt || fail "rows: $(cat out.txt)"
right=$(sed -n 's/^accuracy \([0-9.]*\) .*/\1/p' out.txt)

# --- labels of images, of which the test has the same
"$TARN" recognise learnt drawn/test-images.idx >labels.txt
"$TARN" recognise learnt drawn/test-images.idx --max-tokens 1 --top 3 >few.txt
cmp <(cut -f1,2 few.txt) labels.txt || fail "labels depend on what is computed together"
[ "$(awk -F'\t' '{ print NF }' few.txt | sort -u)" = 6 ] || fail "--top 3"
tail -c +9 drawn/test-labels.idx | od -An -v -tu1 -w1 | tr -d ' ' >wanted.txt
counted=$(paste <(cut -f1 labels.txt) wanted.txt | awk '$1 == $2 { n++ } END { printf "%.4f", n / NR }')
[ "$counted" = "$right" ] || fail "recognise is right in $counted, test says $right"

# --- PNG files: of the drawn images, so that the shard and the labels are the same
png() { python3 - "$@" <<'END'
import struct, sys, zlib

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

def png(path, pixels, height, width, channels=1, bits=8):
    line = width * channels * bits // 8
    rows = b"".join(b"\0" + pixels[y * line:(y + 1) * line] for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, bits, 0 if channels == 1 else 2, 0, 0, 0)
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

import os
images = open("drawn/test-images.idx", "rb").read()[16:]
labels = open("drawn/test-labels.idx", "rb").read()[8:]
os.makedirs("all", exist_ok=True)
with open("list.tsv", "w") as table:
    table.write("file\tkind\n")
    for i, label in enumerate(labels):
        os.makedirs(f"png/{label}", exist_ok=True)
        for path in (f"png/{label}/{i:03}.png", f"all/{i:03}.png"):
            png(path, images[i * 256:(i + 1) * 256], 16, 16)
        table.write(f"all/{i:03}.png\t{label}\n")
# Every byte as 16 bits that round to it; 0x6400 is 99.6 of 255.
shallow = bytes([*range(256), 100])
deep = [min(65535, max(0, value * 257 + value % 200 - 100)) for value in range(256)] + [0x6400]
for depth in ("shallow", "deep"):
    os.makedirs(f"{depth}/a", exist_ok=True)
    os.makedirs(f"{depth}/b", exist_ok=True)
png("shallow/a/1.png", shallow, 1, 257)
png("shallow/b/1.png", shallow[-3:] * 257, 1, 257, 3)
png("deep/a/1.png", struct.pack(">257H", *deep), 1, 257, 1, 16)
png("deep/b/1.png", struct.pack(">771H", *(deep[-3:] * 257)), 1, 257, 3, 16)
png("tall.png", bytes(10000), 10000, 1)
png("wide.png", bytes(16 * 17), 16, 17)
png("colour.png", bytes(i % 256 for i in range(16 * 16 * 3)), 16, 16, 3)
data = open("all/000.png", "rb").read()
open("cut.png", "wb").write(data[:len(data) - 40])
broken = bytearray(data)
broken[-14] ^= 1  # of the CRC of the pixels
open("crc.png", "wb").write(broken)
END
}
if "$TARN" recognise learnt "$(png; echo all/000.png)" 2>&1 | grep -q 'this build reads no PNG'; then
  echo "vision.sh: this build reads no PNG" >&2
  exit 77
fi
"$TARN" prepare --table list.tsv --images file --labels kind --output listed >/dev/null
cmp listed.tarn test.tarn || fail "a list of PNG files gave another shard than IDX"
"$TARN" prepare --images png --output folders --json | grep -q '"images":120,' || fail "folders"
"$TARN" test learnt --labelled folders 2>/dev/null | grep -q "^accuracy $right " || fail "accuracy of a folder"
"$TARN" recognise learnt all >named.txt
cmp <(cut -f2,3 named.txt) labels.txt || fail "labels of PNG files"
[ "$(head -n 1 named.txt | cut -f1)" = all/000.png ] || fail "names of files"
"$TARN" recognise learnt all/001.png --json | grep -qE '^\{"line":1,.*"file":"all/001.png","label":"[0-9]"' || fail "JSON"
"$TARN" prepare --images png --channels 3 --output coloured --json | grep -q '"channels":3,' || fail "--channels 3"

for channels in 3 1; do
  for depth in shallow deep; do
    [ "$channels" = 3 ] || { rm $depth/b/1.png && cp $depth/a/1.png $depth/b/1.PNG; }
    "$TARN" prepare --images $depth --channels "$channels" --output $depth-$channels >/dev/null
  done
  cmp shallow-"$channels".tarn deep-"$channels".tarn || fail "16 bits are not those of 8, $channels channels"
done
mkdir -p mixed/a mixed/b mixed/a/more mixed/.hidden
cp all/000.png mixed/a/1.png
cp all/001.png mixed/b/x.PNG
touch mixed/a/x.JPG mixed/b/.hidden mixed/notes.txt
"$TARN" prepare --images mixed --output mixed >out.txt
grep -qE '^skipped +3 files and folders that are not named \*\.png$' out.txt || fail "skipped files: $(cat out.txt)"
"$TARN" prepare --images mixed --output mixed --json | grep -q '"images":2,.*"skipped":3}' || fail "skipped files in JSON"
"$TARN" prepare --images png --output folders | grep -q skipped && fail "nothing was skipped"
"$TARN" prepare --images - --labels drawn/test-labels.idx --output piped <drawn/test-images.idx >/dev/null
cmp piped.tarn test.tarn || fail "images of standard input"
"$TARN" prepare --images <(gzip -c drawn/test-images.idx) --labels drawn/test-labels.idx --output piped >/dev/null
cmp piped.tarn test.tarn || fail "images of a pipe"

# --- what cannot be read
i() { refuse "$1" "$2" "$TARN" prepare --output x "${@:3}"; }
i 1 'cut.png: a broken PNG: ' --table <(printf '%s/cut.png\ta\n' "$PWD") --images 1 --labels 2
i 1 'crc.png: a broken PNG: .*CRC' --table <(printf '%s/crc.png\ta\n' "$PWD") --images 1 --labels 2
printf 'all/000.png\ta\nwide.png\tb\n' >sizes.tsv
i 1 'wide.png: an image of 16 x 17 pixels, but all/000.png has 16 x 16: all images of a set have one size' --table sizes.tsv --images 1 --labels 2
printf 'all/000.png\ta\nall/missing.png\tb\n' >missing.tsv
i 1 'missing.tsv:2: all/missing.png: ' --table missing.tsv --images 1 --labels 2
printf 'all/000.png\ta\nall/001.png\n' >unlabelled.tsv
i 1 'unlabelled.tsv:2: ' --table unlabelled.tsv --images 1 --labels 2
i 1 'tall.png: an image of 10000 x 1 pixels; expected at most 8192 pixels a side' --table <(printf '%s/tall.png\ta\n' "$PWD") --images 1 --labels 2
mkfifo pipe
for special in /dev/zero "$PWD/pipe" "$PWD/all"; do
  i 1 ":1: $special: not a PNG: it is a special file or has more than 268435456 bytes" --table <(printf '%s\ta\n' "$special") --images 1 --labels 2
done
truncate -s 268435457 vast.png
i 1 ':1: .*vast.png: not a PNG: ' --table <(printf '%s/vast.png\ta\n' "$PWD") --images 1 --labels 2
i 1 '/nonexistent: cannot read: no such file or folder' --images /nonexistent
refuse 1 '/nonexistent: cannot read: no such file or folder' "$TARN" recognise learnt /nonexistent
i 1 'test-images.idx: its images have 1 channel, not 3: only PNG files are converted' --images drawn/test-images.idx --labels drawn/test-labels.idx --channels 3
"$TARN" prepare --images drawn/test-images.idx --labels drawn/test-labels.idx --channels 1 --output piped >/dev/null
cmp piped.tarn test.tarn || fail "--channels that IDX has"
mkdir -p bare/a bare/b
cp all/000.png bare/a
cp all/001.png bare/b/1.JPG
i 1 'bare/b: no file \*.png is in this folder, which stands for a class' --images bare
i 1 'has no label: expected a subfolder of images for each class' --images all
i 2 'the labels of an IDX file are missing' --images drawn/test-images.idx
i 2 'the label of this image is missing' --images all/000.png
i 2 'images have no --vocab' --images png --vocab v
i 2 '--header and --delimiter need --table' --images png --header
i 1 'test-images.idx has 120 images, but drawn/train-labels.idx has 600 labels' --images drawn/test-images.idx --labels drawn/train-labels.idx
i 1 'c.yaml: not an IDX file of images: it begins with the bytes 6D 6F 64 65' --images c.yaml --labels drawn/test-labels.idx
i 1 'not an IDX file of labels: .* 00 00 08 03' --images drawn/test-images.idx --labels drawn/test-images.idx
head -c 5000 drawn/test-images.idx >short.idx
i 1 'short.idx: a truncated IDX file: it ends after 19 of 120' --images short.idx --labels drawn/test-labels.idx
{ cat drawn/test-images.idx; printf x; } >long.idx
i 1 'long.idx: a damaged IDX file: bytes follow the 120' --images long.idx --labels drawn/test-labels.idx
printf '\000\000\010\003\000\000\000\001\000\000\000\000\000\000\000\001' >empty.idx
i 1 'empty.idx: images of 0 x 1 pixels' --images empty.idx --labels drawn/test-labels.idx
{ printf '\000\000\010\003\000\000\000\001\000\000\047\020\000\000\000\001'; head -c 10000 /dev/zero; } >tall.idx
i 1 'tall.idx: images of 10000 x 1 pixels with 1 channels; expected 1 or 3, and at most 8192 pixels a side' --images tall.idx --labels drawn/test-labels.idx
mkdir -p none one/a
i 1 'no file \*.png is in this folder' --images none
cp all/000.png one/a
i 1 'all 1 labels are "a"' --images one
mkdir one/b && cp all/001.png one/b
i 1 '"a" is none of the 10 classes of train' --images one --labels-from train

# --- models and sets that do not fit
t() { refuse "$1" "$2" "$TARN" train c.yaml --run x --quiet "${@:3}"; }
"$TARN" prepare --images shapes/train-images.idx --labels shapes/train-labels.idx --output shapes/train >/dev/null
t 1 'shapes/train.tarn: its images have 20 x 20 pixels of 1 channel, and those of the model 16 x 16 of 1' --set data.valid=shapes/train
refuse 1 'coloured.tarn: its images have 16 x 16 pixels of 3 channels' "$TARN" test learnt --labelled coloured
refuse 1 'wide.png: an image of 16 x 17 pixels with 1 channel, but the images of' "$TARN" recognise learnt wide.png
"$TARN" recognise learnt colour.png >/dev/null || fail "a coloured image is not made grey"
t 2 'image.patch: patches of 5 x 5 pixels do not cover images of 16 x 16; choose a divisor, such as 2' --set image.patch=5
t 2 'image.height: an image has at most 8192 pixels a side and 16777216 bytes' --set image.height=8192 --set image.width=8192
t 2 'model.max_length: an image has 16 patches and a class token' --set model.max_length=16
t 2 'data.vocab: images have no vocabulary' --set data.vocab=v
t 2 'model.embeddings: patches are not predicted' --set model.embeddings=encoder_output
t 2 'head.pool: ' --set head.pool=last
"$TARN" vocab --type byte --output v
printf 'a b\nc d\n' >text
"$TARN" prepare --vocab v --table <(printf 'a b\tx\nc d\ty\n') --text 1 --labels 2 --output words >/dev/null
t 1 'image: words.tarn: it holds no images' --set data.train=words
t 1 'words.tarn: it holds no images' --set data.valid=words
refuse 2 'it is an image classifier, .*; its verb is recognise\|does not classify; its verb is recognise' "$TARN" classify learnt text
refuse 2 'the model is one of images, which reads no text' "$TARN" states learnt encoder.1 --input text --output s.safetensors
cat >w.yaml <<'END'
model: { task: classification, d_model: 8, max_length: 32 }
encoder: { layers: L }
kinds: { L: { mixer: attention, heads: 2, ffn: 8 } }
head: { pool: mean }
data: { vocab: v, train: test }
train: { max_updates: 2, threads: 1, tensorboard: no }
END
refuse 1 'test.tarn: it holds images, and a classifier reads text' "$TARN" train w.yaml --run w --quiet
refuse 2 'image.patch: a classifier has no image' "$TARN" train w.yaml --run w --quiet --set image.patch=2
