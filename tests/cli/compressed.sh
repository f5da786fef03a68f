#!/usr/bin/env bash
# Text compressed by gzip, xz or zstd is read like plain text, by its first bytes whatever its name, from files and
# pipes; truncation, damage, trailing data and bombs give one clear line.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"
"$TARN" train model.yaml --run run --quiet --set train.max_updates=3
plain=corpus/train.de
line=$(head -c 4000 /dev/zero | tr '\0' a)

packs=()
for pack in gzip xz zstd; do
  command -v $pack >/dev/null || continue
  $pack -c <$plain >packed
  if "$TARN" encode --vocab vocab <packed >ids.txt 2>error.txt; then
    packs+=($pack)
  else
    grep -Eq "^tarn encode: standard input: compressed by $pack, which this build cannot unpack; .* install [a-z0-9-]+ " \
      error.txt || fail "$pack: $(cat error.txt)"
  fi
done
[ ${#packs[@]} -gt 0 ] || { echo "no gzip, xz or zstd here"; exit 77; }

"$TARN" encode --vocab vocab <$plain >plain.ids
"$TARN" translate run <corpus/valid.de >plain.en 2>error.txt
"$TARN" prepare --vocab vocab --source $plain --target corpus/train.en --output plain --json >plain.json
"$TARN" prepare --vocab vocab --text $plain --stream 9 --output plain-stream >/dev/null
"$TARN" sentences $plain --output plain.txt >/dev/null
"$TARN" vocab --type bpe --size 300 --output plain.vocab $plain >/dev/null
"$TARN" bleu --reference corpus/valid.en corpus/valid.en >plain.bleu 2>error.txt
"$TARN" series generate lorenz --rows 300 --output plain.csv
"$TARN" series train plain.csv --units 20 --rc-connectivity 0.5 --json --output esn >plain.series
for pack in "${packs[@]}"; do
  for file in $plain corpus/train.en corpus/valid.de corpus/valid.en plain.csv; do $pack -c <$file >"${file##*/}.$pack"; done
  same() { cmp "$1" "$2" || fail "$pack: $3"; }
  "$TARN" encode --vocab vocab <train.de.$pack | same plain.ids - "standard input"
  cat train.de.$pack | "$TARN" encode --vocab vocab | same plain.ids - "a pipe"
  { $pack -c <$plain; $pack -c <$plain; } | "$TARN" encode --vocab vocab | same <(cat plain.ids plain.ids) - "two behind one another"
  "$TARN" translate run --input valid.de.$pack 2>error.txt | same plain.en - translate
  "$TARN" prepare --vocab vocab --source train.de.$pack --target train.en.$pack --output out --json | same plain.json - prepare
  same plain.tarn out.tarn prepare
  "$TARN" prepare --vocab vocab --text train.de.$pack --stream 9 --output out >/dev/null
  same plain-stream.tarn out.tarn "a stream"
  "$TARN" sentences train.de.$pack --output out.txt >/dev/null
  same plain.txt out.txt sentences
  "$TARN" vocab --type bpe --size 300 --output out.vocab train.de.$pack >/dev/null
  same plain.vocab out.vocab vocab
  "$TARN" bleu --reference valid.en.$pack corpus/valid.en 2>error.txt | same plain.bleu - bleu
  "$TARN" series train plain.csv.$pack --units 20 --rc-connectivity 0.5 --json --output esn | same plain.series - series

  size=$(stat -c %s train.de.$pack)
  for kept in 7 20 $((size / 2)) $((size - 1)); do
    head -c $kept train.de.$pack >cut
    refuse 1 "cut: truncated $pack data" "$TARN" prepare --vocab vocab --text cut --output out2
  done
  { head -c $((size / 2)) train.de.$pack; head -c 40 /dev/zero | tr '\0' U; tail -c +$((size / 2 + 41)) train.de.$pack; } >bad
  refuse 1 "bad: \\(damaged\\|truncated\\) $pack data" "$TARN" prepare --vocab vocab --text bad --output out2
  { cat train.de.$pack; echo more; } >more
  refuse 1 "more: \\(bytes that are not $pack data follow\\|\\(damaged\\|truncated\\) $pack data\\)" \
    "$TARN" prepare --vocab vocab --text more --output out2
  [ ! -e out2.tarn ] || fail "$pack: a shard of a damaged file"
  # A bomb is refused before it fills the memory, also as a file of lines (only for the first format).
  bombs=(a lines)
  [ -z "${TARN_SAMPLE:-}" ] || [ "$pack" = "${packs[0]}" ] || bombs=()
  for text in "${bombs[@]}"; do
    # Lines that are not short: the time of each is another test's matter.
    { if [ $text = a ]; then head -c 70000000 /dev/zero | tr '\0' a; else (yes "$line" || true) | head -c 70000000; fi; } | $pack -c >bomb
    refuse 1 'bomb: it unpacks to more than 250 times its size' "$TARN" sentences bomb --output out2.txt
  done
  $pack -c <train.de.$pack >twice
  refuse 1 'twice: this is a compressed file; .*unpack it first' "$TARN" prepare --vocab vocab --text twice --output out2
done

# Skippable frames of zstd before, between and after the text.
skipped() { printf '\x50\x2a\x4d\x18\x04\0\0\0abcd'; }
if [ -e train.de.zstd ]; then
  { skipped; skipped; cat train.de.zstd; skipped; cat train.de.zstd; skipped; } | "$TARN" encode --vocab vocab |
    cmp - <(cat plain.ids plain.ids) || fail "skipped frames"
fi
# A window of 256 MB is not an error.
if [ -e train.de.zstd ]; then
  printf '\x28\xb5\x2f\xfd\x00\x90\x01\0\0' >wide
  refuse 1 'wide: this zstd data cannot be unpacked here: it takes more than 128 MB of memory' \
    "$TARN" prepare --vocab vocab --text wide --output out2
fi
printf 'Punkt\nP' | "$TARN" encode --vocab vocab >ids.txt
[ "$(wc -l <ids.txt)" -eq 2 ] || fail "a text that begins as they do: $(cat ids.txt)"

# A partial magic number is text.
printf '\x1f\nb' | "$TARN" encode --vocab vocab >ids.txt 2>error.txt || fail "a control character: $(cat error.txt)"
[ "$(wc -l <ids.txt)" -eq 2 ] || fail "lines: $(cat ids.txt)"
