# tarn score: columns, summary, tokens, JSON, truncation and replacement, an infinite perplexity, a full disk.
set -u
. "$(dirname "$0")/../helpers.sh"
score() { "$TARN" score "$@" --threads 1 2>summary.txt || fail "score $*: $(cat summary.txt)"; }

# A GPT-2 with 16 positions and a byte vocabulary, so tokens are bytes.
"$TARN" vocab --type byte --output bytes || fail "byte vocabulary"
"$TARN" import-gpt2 "$TARN_SOURCE_DIR/tests/golden/gpt2_model/tied" --vocab bytes --output model || fail "import"
printf 'ab c\n\n\xc3\xa4h\n' >text
score model text >lines.txt
cut -f 2,3 lines.txt | diff - <(printf '5\t5\n1\t1\n4\t3\n') || fail "tokens and characters: $(cat lines.txt)"
grep -Eq '^3 lines, 10 tokens: [0-9.]+ nats a token, perplexity [0-9.]+, [0-9.]+ bits a character, [0-9.]+ bits a byte$' \
  summary.txt || fail "summary: $(cat summary.txt)"
[ "$(wc -l <summary.txt)" -eq 1 ] || fail "there is nothing else to say: $(cat summary.txt)"
cp summary.txt whole.txt
score model <text | cmp - lines.txt || fail "standard input"
score model - <text | cmp - lines.txt || fail "standard input as -"
# A pipe that stays open gets its answers.
mkfifo questions
"$TARN" score model --threads 1 <questions >answers.txt 2>/dev/null &
program=$!
exec 3>questions
head -n 1 text >&3
answered() { [ -s answers.txt ] || gone $program; }
within_two_minutes answered || fail "no answer while the pipe is open"
cmp -s answers.txt <(head -n 1 lines.txt) || fail "another answer while the pipe is open: $(cat answers.txt)"
exec 3>&-
wait $program || fail "it fails at the end of its input"
score model text --max-tokens 3 | cmp - lines.txt || fail "--max-tokens changes the scores"
score model text --summary-only | cmp - whole.txt || fail "--summary-only"

score model text --tokens >tokens.txt
[ "$(grep -c '^  -[0-9.]*	' tokens.txt)" -eq 10 ] || fail "tokens: $(cat tokens.txt)"
grep -v '^  ' tokens.txt | cmp - lines.txt || fail "lines with tokens"
awk 'BEGIN { FS = "\t" } /^  / { sum -= $1; next } { d = whole - sum; if (d > 1e-4 || d < -1e-4) exit 1; whole = -$1; sum = 0 }
  END { d = whole - sum; if (d > 1e-4 || d < -1e-4) exit 1 }' \
  tokens.txt || fail "the tokens do not make the line: $(cat tokens.txt)"

score model text --json >lines.json
[ "$(wc -l <lines.json)" -eq 3 ] || fail "JSON lines"
grep -q '^{"line":3,"log_probability":-[0-9.]*,"tokens":4,"characters":3,"bytes":4,"unknown":0,"truncated":false,"replaced":false,"checkpoint":"model"}$' \
  lines.json || fail "JSON: $(cat lines.json)"
score model text --json --tokens >tokens.json
grep -Eq '"pieces":\[\["a",100,-[0-9.]+\],\["b",101,-[0-9.]+\],\["<0x20>",35,' tokens.json || fail "pieces: $(cat tokens.json)"
score model text --json --summary-only >sums.json
grep -Eq '^\{"lines":3,"tokens":10,"characters":9,"bytes":10,"unknown":0,"truncated":0,"replaced":0,"log_probability":-[0-9.]+,"nll":[0-9.]+,"perplexity":[0-9.]+,"bits_per_character":[0-9.]+,"bits_per_byte":[0-9.]+,"checkpoint":"model"\}$' \
  sums.json || fail "summary as JSON: $(cat sums.json)"
# Bytes are tokens here, so bits per byte are bits per token.
sed 's/.*"nll":\([0-9.]*\),.*"bits_per_byte":\([0-9.]*\)}/\1 \2/' sums.json |
  awk '{ d = $1 / log(2) - $2; exit !(d < 1e-9 && d > -1e-9) }' || fail "bits of a byte: $(cat sums.json)"

# The model takes at most 15 bytes and the end of sentence.
printf 'ab\n0123456789abcdefghij\n\xff\n' >hard
refuse 1 '^tarn score: hard: line 2: 21 tokens, and the model takes 16 with the end of sentence' "$TARN" score model hard
refuse 1 '^tarn score: hard: line 3: invalid UTF-8 at byte 1' "$TARN" score model hard --strict --overlong truncate
score model hard --overlong truncate >cut.txt
cut -f 2,3 cut.txt | diff - <(printf '3\t3\n16\t16\n4\t2\n') || fail "what is kept of a line: $(cat cut.txt)"
grep -q "^truncated to the model's longest sentence: 1 line$" summary.txt || fail "truncated: $(cat summary.txt)"
grep -q '^invalid UTF-8 replaced in: 1 line$' summary.txt || fail "replaced: $(cat summary.txt)"
score model hard --overlong truncate --json --summary-only >cut.json
grep -q '"characters":21,"bytes":23,"unknown":0,"truncated":1,"replaced":1,' cut.json || fail "$(cat cut.json)"

# Exploding weights: an infinite perplexity is null in JSON.
"$TARN" prepare --vocab bytes --text text --output data >/dev/null || fail "prepare"
cat >wild.yaml <<'END'
model: { d_model: 8, dropout: 0, max_length: 16 }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 8 }
data: { vocab: bytes, train: data }
train: { max_updates: 3, max_tokens: 100, lr: 100, warmup: 1, clip_norm: 0, threads: 1 }
END
"$TARN" train wild.yaml --run wild >train.txt 2>&1 || fail "train: $(cat train.txt)"
score wild text --json --summary-only >wild.json
grep -q '"perplexity":null,"bits_per_character":[0-9.]*,' wild.json || fail "an infinite perplexity: $(cat wild.json)"
score wild text --summary-only | grep -q 'perplexity inf,' || fail "an infinite perplexity"

# A model without positions has no length limit.
cat >free.yaml <<'END'
model: { d_model: 8, dropout: 0, max_length: 16, positions: none }
decoder: { layers: G }
kinds:
  G: { mixer: gru }
data: { vocab: bytes, train: data }
train: { max_updates: 1, max_tokens: 100, threads: 1 }
END
"$TARN" train free.yaml --run free >train.txt 2>&1 || fail "train: $(cat train.txt)"
score free hard >free.txt
cut -f 2 free.txt | tr '\n' ' ' | grep -q '^3 21 4 $' || fail "a model without positions refuses long lines: $(cat free.txt)"

refuse 2 'an argument is missing' "$TARN" score
refuse 1 'nowhere: cannot read' "$TARN" score model nowhere
# A window that slides over the text as one stream: every byte counts once, line ends included.
score model text --stride 4 --window 8 >stream.txt
cut -f 2,3 stream.txt | diff - <(printf '8\t0\n2\t7\n') || fail "windows: $(cat stream.txt)"
[ "$(score model text --stride 1 --tokens | grep -c '^  -')" -eq "$(wc -c <text)" ] || fail "tokens of the stream"
score model text --stride 4 --json --tokens >stream.json
[ "$(jq -s 'map(.pieces | length) | add' stream.json 2>/dev/null || wc -c <text)" -eq "$(wc -c <text)" ] || fail "JSON of windows"
head -c 3000000 /dev/zero | tr '\0' 'x' | head -c 5000 >endless
score model endless --stride 16 --summary-only
refuse 2 'the stride is 1 to the window of 8 tokens, not 9' "$TARN" score model text --stride 9 --window 8
refuse 2 'a window of 17 tokens, and the model takes 1 to 16' "$TARN" score model text --stride 9 --window 17
refuse 2 'leaves nothing out' "$TARN" score model text --stride 9 --overlong truncate
: >empty
refuse 1 'there is no line to score' "$TARN" score model empty --stride 4
refuse 1 '^tarn score: empty: there is no line to score$' "$TARN" score model empty
refuse 2 'summary-only leaves out' "$TARN" score model text --tokens --summary-only
refuse 2 'did you mean truncate' "$TARN" score model text --overlong truncat
if [ -w /dev/full ]; then
  for options in "" --json "--json --summary-only" --summary-only; do
    # shellcheck disable=SC2086
    refuse 1 'cannot write to standard output' \
      bash -c '"$TARN" score model text "$@" 2>error >/dev/full; code=$?; grep tarn error >&2; exit $code' - $options
  done
fi
# A closed pipe ends the work without a message.
mkfifo pipe
exec 3<>pipe 4>pipe 3<&-
for options in "" --json --tokens "--json --summary-only" "--stride 4"; do
  # shellcheck disable=SC2086
  "$TARN" score model text --quiet $options >&4 2>error
  code=$?
  [ $code -eq 141 ] && [ ! -s error ] || fail "score $options to nobody: $code $(cat error)"
done
exec 4>&-
exit 0
