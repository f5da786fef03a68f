# Tokens on standard output are those that tarn prepare stores; invalid UTF-8 is replaced, counted and reported, or refused.
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

"$TARN" prepare --vocab vocab --source text --target text --output shard --json >summary || fail "prepare"
grep -q "\"source_tokens\": $(($(wc -w <ids) + 3))," summary || fail "tarn prepare counts others: $(cat summary ids)"

"$TARN" encode --vocab vocab --strict <text >ids 2>error.txt
[ $? -eq 1 ] || fail "--strict takes invalid UTF-8"
grep -q ':1: invalid UTF-8 at byte 2' error.txt || fail "unclear: $(cat error.txt)"
if [ -w /dev/full ]; then
  "$TARN" encode --vocab vocab <repaired >/dev/full 2>error.txt
  [ $? -eq 1 ] && [ "$(wc -l <error.txt)" -eq 1 ] || fail "a full disk: $(cat error.txt)"
fi
exit 0
