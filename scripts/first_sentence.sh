#!/bin/sh
# From nothing to a translated sentence with the `tarn` that is in PATH: makes the demo's corpus, trains model3.yaml, which is in
# this folder, on it for 12 seconds, and translates (fresh_machine.sh --wheel).
set -eu
command -v tarn
tarn corpus --output text >log
tarn vocab --type bpe --size 1000 --output vocab text/train.de text/train.en >>log
for part in train valid; do
  tarn prepare --vocab vocab --source text/$part.de --target text/$part.en --output $part >>log
done
rm -rf run
tarn train model3.yaml --run run --quiet --set data.vocab=vocab \
  --set data.train=train --set data.valid=valid --set data.valid_reference=text/valid.en --set train.max_minutes=0.2 >>log
sentence="Mein Bruder kauft ein Haus."
translated=$(echo "$sentence" | tarn translate run)
echo "$sentence -> $translated"
[ -n "$translated" ]
