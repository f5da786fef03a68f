# Tokens on standard output equal those stored by tarn prepare; invalid UTF-8 is replaced, counted and reported, or
# refused.
set -u
. "$(dirname "$0")/../helpers.sh"

"$TARN" corpus --output corpus --sentences 300 --held-out 20 || fail "corpus"
"$TARN" vocab --type bpe --size 400 --output vocab corpus/train.de corpus/train.en || fail "vocab"
printf 'a\xff\xfeb c\r\nein Haus\n\nZ\xc3' >text
printf 'a\xef\xbf\xbd\xef\xbf\xbdb c\nein Haus\n\nZ\xef\xbf\xbd\n' >repaired
"$TARN" encode --vocab vocab --ids <text >ids 2>error.txt || fail "$(cat error.txt)"
grep -qx 'invalid UTF-8 replaced in: 2 lines' error.txt || fail "not reported: $(cat error.txt)"
"$TARN" encode --vocab vocab --ids <repaired 2>error.txt | cmp - ids || fail "replaced text has other tokens"
[ ! -s error.txt ] || fail "good text is reported: $(cat error.txt)"
[ "$(wc -l <ids)" -eq 4 ] || fail "lines are lost: $(cat ids)"

# The inverse, from ids and from pieces.
"$TARN" decode --vocab vocab --ids <ids >back || fail "decode --ids"
"$TARN" encode --vocab vocab --ids <back | cmp - ids || fail "decode --ids loses something: $(cat back)"
"$TARN" encode --vocab vocab <corpus/valid.de | "$TARN" decode --vocab vocab | cmp - corpus/valid.de || fail "decode pieces"
for type in char whitespace byte; do
  text=corpus/train.de
  [ $type = byte ] && text=
  "$TARN" vocab --type $type --output $type $text || fail "vocab $type"
  "$TARN" encode --vocab $type --ids <corpus/train.de | "$TARN" decode --vocab $type --ids | cmp - corpus/train.de || fail "decode $type"
  "$TARN" encode --vocab $type <corpus/valid.de | "$TARN" decode --vocab $type >back || fail "pieces of $type"
  cmp <("$TARN" encode --vocab $type <back) <("$TARN" encode --vocab $type <corpus/valid.de) || fail "pieces of $type are others"
done
refuse 1 'line 2: "99999" is no token from 0 to 399' bash -c 'printf "5 6\n99999\n" | "$TARN" decode --vocab vocab --ids'
refuse 1 'line 1: "-1" is no token' bash -c 'echo -1 | "$TARN" decode --vocab vocab --ids'
refuse 1 'line 1: "qqqqq" is no piece of the vocabulary' bash -c 'echo qqqqq | "$TARN" decode --vocab vocab'
refuse 2 '--vocab is missing' "$TARN" decode

"$TARN" prepare --vocab vocab --source text --target text --output shard --json >summary || fail "prepare"
grep -q "\"source_tokens\":$(($(wc -w <ids) + 3))," summary || fail "tarn prepare counts others: $(cat summary ids)"

"$TARN" encode --vocab vocab --strict <text >ids 2>error.txt
[ $? -eq 1 ] || fail "--strict takes invalid UTF-8"
grep -q ':1: invalid UTF-8 at byte 2' error.txt || fail "unclear: $(cat error.txt)"
if [ -w /dev/full ]; then
  "$TARN" encode --vocab vocab <repaired >/dev/full 2>error.txt
  [ $? -eq 1 ] && [ "$(wc -l <error.txt)" -eq 1 ] || fail "a full disk: $(cat error.txt)"
fi
exit 0
