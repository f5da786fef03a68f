# tarn split: every n-th line with the rest, ranges of bytes, and what cannot be taken.
set -u
. "$(dirname "$0")/../helpers.sh"

printf 'text\tlabel\n' >table
seq 1 10 >>table
"$TARN" split table --every 4 --header 1 --output held --rest rest >out || fail "split"
[ "$(cat out)" = "2 lines taken, 8 left" ] || fail "summary: $(cat out)"
printf 'text\tlabel\n4\n8\n' | cmp - held || fail "every fourth: $(cat held)"
printf 'text\tlabel\n1\n2\n3\n5\n6\n7\n9\n10\n' | cmp - rest || fail "the rest: $(cat rest)"
seq 1 10 | gzip >packed.gz
[ "$("$TARN" split packed.gz --every 4 --first 1 --output new/part --json)" = '{"unit":"lines","taken":3,"rest":7}' ] || fail "JSON"
printf '1\n5\n9\n' | cmp - new/part || fail "from the first: $(cat new/part)"
printf 'a\r\nb' >ends
"$TARN" split ends --every 1 --output same >out && printf 'a\r\nb\n' | cmp - same || fail "lines are changed: $(od -c same)"

# Ranges that follow each other are the whole, and cut no character.
printf 'ab\303\244\342\202\254z' >wide  # a b ä € z: 8 bytes
for cut in 1 2 3 4 5 6 7; do
  "$TARN" split wide --bytes $cut --output one >out || fail "bytes up to $cut"
  "$TARN" split wide --from $cut --bytes 100 --output two >out || fail "bytes from $cut"
  cat one two | cmp - wide || fail "cut at $cut: $(cat one) and $(cat two)"
  iconv -f UTF-8 one >out && iconv -f UTF-8 two >out || fail "cut within a character at $cut"
done
[ "$("$TARN" split wide --from 1 --bytes 2 --output one)" = "1 byte taken" ] || fail "count of bytes"

refuse 2 'every n-th of its lines, or a range' "$TARN" split table --output no
refuse 2 'either every n-th line is taken, or a range' "$TARN" split table --every 2 --bytes 5 --output no
refuse 2 'the first line taken is 1 to 2, not 3' "$TARN" split table --every 2 --first 3 --output no
refuse 2 'no rest' "$TARN" split table --bytes 2 --rest other --output no
refuse 2 'both parts cannot be one file' "$TARN" split table --every 2 --rest no --output no
refuse 2 'both parts cannot be one file' "$TARN" split table --every 2 --rest ./no --output no
refuse 2 'cannot replace the text' "$TARN" split table --every 2 --output ./table
refuse 2 'cannot replace the text' "$TARN" split table --every 2 --rest "$PWD/table" --output no
refuse 2 'path of a part is empty' "$TARN" split table --every 2 --output ''
refuse 1 'ends after 8 bytes of the range, which has 9' "$TARN" split wide --bytes 9 --exact --output no
"$TARN" split wide --bytes 8 --exact --output one >out && cmp one wide || fail "a whole range"
head -n 1 table | cmp - <(printf 'text\tlabel\n') || fail "the text was replaced"
refuse 2 '--output is needed' "$TARN" split table --every 2
refuse 1 'no line to take' "$TARN" split table --every 50 --output no
refuse 1 'ends before the range' "$TARN" split table --from 1000 --bytes 5 --output no
refuse 1 'missing: cannot read' "$TARN" split missing --every 2 --output no
[ ! -e no ] || fail "a failure left a file"
exit 0
