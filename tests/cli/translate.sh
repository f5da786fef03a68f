# tarn translate: order, empty lines, n-best, scores, JSON, windows, bad input, with a model trained here.
set -u
. "$(dirname "$0")/../helpers.sh"
# A translation of lines.de that must be refused.
refuse_lines() {  # CODE PATTERN ARGUMENT...
  local code=$1 pattern=$2
  shift 2
  refuse "$code" "$pattern" "$TARN" translate "$@" <lines.de
}
translate() { "$TARN" translate run --threads 2 "$@" 2>summary.txt || fail "translate $*: $(cat summary.txt)"; }

"$TARN" corpus --output corpus --sentences 300 --held-out 60 || fail "corpus"
"$TARN" vocab --type bpe --size 200 --output vocab.model corpus/train.de corpus/train.en 2>vocab.txt ||
  fail "vocab: $(cat vocab.txt)"
for part in train valid; do
  "$TARN" prepare --vocab vocab.model --source corpus/$part.de --target corpus/$part.en --output $part >/dev/null ||
    fail "prepare $part"
done
cat >model.yaml <<'END'
model: { d_model: 32, embeddings: all, dropout: 0, max_length: 120 }
encoder: { layers: R L }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 64 }
  R: { mixer: attention, heads: 2, ffn: 64, frozen: yes }
data: { vocab: vocab.model, train: train, valid: valid }
train: { max_updates: 200, max_tokens: 1000, lr: 0.005, warmup: 20 }
valid: { every: 200, bleu: no }
translate: { beam: 3 }
END
"$TARN" train model.yaml --run run --threads 2 >train.txt 2>&1 || fail "train: $(tail -n 3 train.txt)"

# Lines with and without text, the last one without an end.
{ head -n 20 corpus/test.de; echo; echo '   '; tail -n 20 corpus/test.de; printf 'letzte Zeile'; } >lines.de
translate <lines.de >plain.en
[ "$(wc -l <plain.en)" -eq 43 ] || fail "43 lines give $(wc -l <plain.en)"
translate --profile trace.json <lines.de | cmp - plain.en || fail "measuring changes the translation"
grep -Eq '^available +[0-9]+ % of the peak of fp32, by samples between the steps$' summary.txt && grep -Eq '^limit .* of what was available$' summary.txt || fail "no samples: $(cat summary.txt)"
grep -Eq '^beam search +outside ' summary.txt || fail "no profile: $(cat summary.txt)"
grep -q '"name":"attention_rows".*"ph":"X"' trace.json || fail "no trace: $(head -c 500 trace.json)"
translate <lines.de >plain.en
grep -q '^43 sentences, .* target tokens/s$' summary.txt || fail "no summary: $(cat summary.txt)"
grep -q '^empty lines: 2$' summary.txt || fail "empty lines are not counted: $(cat summary.txt)"
[ "$(grep -n '^$' plain.en | cut -d: -f1 | head -n 2 | tr '\n' ' ')" = "21 22 " ] || fail "empty lines have moved"

# Order, windows, batches, pipes and files make no difference.
cat lines.de | translate --window 7 >window.en
cmp -s plain.en window.en || fail "a small window changes the translations"
translate --max-tokens 20 --input lines.de --output batches.en
cmp -s plain.en batches.en || fail "small batches change the translations"
translate --beam 3 <lines.de >beam.en
cmp -s plain.en beam.en || fail "the beam of the description is not the default"
printf '%s\n' "$(cat lines.de)" | tac | translate >backwards.en
tac backwards.en | cmp -s plain.en - || fail "lines do not come back in order"
for beam in 1 8; do
  translate --beam $beam <lines.de >greedy.en
  [ "$(wc -l <greedy.en)" -eq 43 ] || fail "beam $beam gives $(wc -l <greedy.en) lines"
done

# Many lines are encoded by all threads, and counted, cut short and refused as by one: of two lines that need it, the first.
long=$(printf 'Hund %.0s' {1..90})
{ cat lines.de lines.de; printf '\nroh \377 Byte\n%s\n' "$long"; cat lines.de lines.de; printf '\nnoch \376 eins\n%s\n' "$long"; } >many.de
# counts THREADS: what the summary says, without times
counts() {
  "$TARN" translate run --threads "$1" --beam 1 --input many.de --output "many$1.en" 2>summary.txt || fail "many lines: $(cat summary.txt)"
  sed 's/ in [0-9.]* s: .*//' summary.txt
}
[ "$(counts 1)" = "$(counts 2)" ] || fail "many lines, counts of one thread and of two: $(counts 1) / $(counts 2)"
cmp -s many1.en many2.en || fail "many lines: other translations with two threads"
grep -q '^invalid UTF-8 replaced in: 2 lines$' summary.txt && grep -q '^truncated to .*: 2 lines$' summary.txt || fail "counts: $(cat summary.txt)"
refuse 1 "many.de: line 86: invalid UTF-8 at byte 5 of the line" "$TARN" translate run --threads 2 --strict --input many.de --output no.en
refuse 1 "many.de: line 87: " "$TARN" translate run --threads 2 --overlong refuse --input many.de --output no.en

sed 's/$/\tMy/' many.de >columns.txt
for threads in 1 2; do
  "$TARN" translate run --threads $threads --beam 1 --prefixes --input columns.txt --output prefix$threads.en 2>summary.txt || fail "prefixes: $(cat summary.txt)"
done
cmp -s prefix1.en prefix2.en && grep -q '^My ' prefix2.en || fail "many lines with prefixes: other translations with two threads"

# Penalties and prefixes of the target; under sanitizers one of them, and one measure of risk below: unit tests have the others.
penalties=("--repetition-penalty 1.5" "--no-repeat-ngram 2" "--presence-penalty 1" "--beam 4 --groups 2 --diversity-penalty 1") risks=(bleu chrf)
[ -z "${TARN_SANITIZED:-}" ] || penalties=("${penalties[3]}") risks=(chrf)
for options in "${penalties[@]}"; do
  # shellcheck disable=SC2086
  translate $options <lines.de >changed.en
  [ "$(wc -l <changed.en)" -eq 43 ] || fail "$options gives $(wc -l <changed.en) lines"
  cmp -s plain.en changed.en && fail "$options has no effect"
  # shellcheck disable=SC2086
  [ "$(sed -n 5p lines.de | translate $options)" = "$(sed -n 5p changed.en)" ] || fail "$options: neighbours change a translation"
done
first=$(sed -n 1p plain.en) && first=${first%% *}
sed -n 1p lines.de | translate --prefixes | cmp -s <(sed -n 1p plain.en) - || fail "no prefix changes the translation"
printf '%s\t%s\n' "$(sed -n 1p lines.de)" "$first" | translate --prefixes --beam 1 >prefix.en
sed -n 1p lines.de | translate --beam 1 >greedy.en
[ "${first}" != "$(cut -d' ' -f1 greedy.en)" ] || cmp -s greedy.en prefix.en || fail "the prefix \"$first\" of greedy search gives $(cat prefix.en)"
printf '%s\tMy own words\n%s\n' "$(sed -n 1p lines.de)" "$(sed -n 2p lines.de)" | translate --prefixes >prefix.en
grep -q '^My own words' prefix.en || fail "the prefix is not there: $(cat prefix.en)"
[ "$(sed -n 2p prefix.en)" = "$(sed -n 2p plain.en)" ] || fail "a prefix changes another line"
# Samples do not depend on neighbours, windows or threads; the best by score, or by agreement with the others.
translate --samples 6 --n-best 6 --top-p 0.9 --seed 3 <lines.de >samples.en
[ "$(wc -l <samples.en)" -eq $((6 * 41 + 2)) ] || fail "samples: $(wc -l <samples.en) lines"
sed -n 5p lines.de | "$TARN" translate run --threads 1 --samples 6 --n-best 6 --top-p 0.9 --seed 3 2>/dev/null | cut -d'|' -f 4- |
  cmp -s - <(grep '^4 |||' samples.en | cut -d'|' -f 4-) || fail "neighbours change the samples of a line"
grep '^4 |||' samples.en | sed 's/.*||| //' | sort -rg | cmp -s - <(grep '^4 |||' samples.en | sed 's/.*||| //') || fail "samples are not sorted"
for mbr in "${risks[@]}"; do
  translate --samples 6 --n-best 6 --top-p 0.9 --seed 3 --mbr $mbr <lines.de >risk.en
  cmp -s <(cut -d'|' -f 4 samples.en | sort) <(cut -d'|' -f 4 risk.en | sort) || fail "$mbr: other samples"
  # The expected utility of a sample is its mean sentence score with all samples as references.
  grep '^4 |||' risk.en | cut -d'|' -f 4 | sed 's/^ //; s/ $//' >all.txt
  sed -n 1p all.txt >first.txt
  while IFS= read -r reference; do
    printf '%s\n' "$reference" >reference.txt
    "$TARN" $mbr --sentence --reference reference.txt first.txt 2>/dev/null | grep -o "[0-9]*\.[0-9]*" | head -n 1
  done <all.txt >utilities.txt
  grep '^4 |||' risk.en | head -n 1 | sed 's/.*||| //' | cat - utilities.txt |
    awk 'NR == 1 { u = $1 } NR > 1 { s += $1; n++ } END { d = u - s / n; exit n != 6 || d > 0.06 || d < -0.06 }' ||
    fail "$mbr: $(head -n 6 risk.en), utilities $(cat utilities.txt)"
done
translate --json --tokens --window 7 <lines.de |
  jq -se 'all(.[]; .hypotheses[0] | (.pieces | length) == .tokens and ((.pieces | map(.[2]) | add // 0) - .log_probability | fabs) < 1e-4)' >pieces.txt ||
  fail "the scores of tokens are not that of the text"
refuse_lines 2 '--mbr ter: it is bleu or chrf' run --mbr ter
refuse_lines 2 'minimum Bayes risk chooses among 2 to 1024 samples, not 1$' run --mbr chrf
refuse_lines 2 '--beam searches: it excludes --samples' run --beam 2 --samples 2
refuse_lines 2 '--seed needs --samples' run --seed 2
refuse_lines 2 'n-best must be from 1 to the samples of 2, not 3' run --samples 2 --n-best 3
refuse_lines 2 'repetition penalty must be above 0 and at most 100, not 101' run --repetition-penalty 101
refuse_lines 2 'groups must be from 1 to the beam of 3 and divide it, not 2' run --groups 2
printf '%s\t%s\n' "$(sed -n 1p lines.de)" "$(yes word | head -n 200 | tr '\n' ' ')" >long.de
refuse 1 'the prefix of sentence 1 has .* tokens, and the model takes at most 118' "$TARN" translate run --prefixes --input long.de

# An open pipe gets its answers: one line in, one line out. Meanwhile ps and pkill know the program by its name,
# although it has executed itself again.
mkfifo questions
env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY "$TARN" translate run --threads 2 <questions >answers.en 2>/dev/null &
program=$!
exec 3>questions
head -n 1 lines.de >&3
answered() { [ -s answers.en ] || gone $program; }
within_two_minutes answered || fail "no answer while the pipe is open"
cmp -s answers.en <(head -n 1 plain.en) || fail "another answer while the pipe is open: $(cat answers.en)"
name=$(cat /proc/$program/comm)
[ "$name" = "$(basename "$TARN")" ] || fail "the program runs under the name $name"
exec 3>&-
wait $program || fail "it fails at the end of its input"

# Typed lines are answered one by one, after a hint on how to end.
if command -v script >/dev/null; then
  head -n 1 plain.en >first-line.txt  # a file, which can be read repeatedly
  { head -n 1 lines.de; within_two_minutes grep -qFf first-line.txt typed.txt; sed -n 2p lines.de; printf '\004'; } |
    script -qec "'$TARN' translate run --threads 2" /dev/null >typed.txt || fail "typed: $(cat typed.txt)"
  grep -q 'a line is answered when it is typed; Ctrl-D ends' typed.txt || fail "no word to whoever types: $(cat typed.txt)"
  [ "$(grep -cFf <(sed -n 1,2p plain.en) typed.txt)" -ge 2 ] || fail "typed: $(cat typed.txt)"
fi

# n-best lists are sorted, and their first lines are the plain translations.
translate --n-best 3 <lines.de >n-best.txt
awk -F ' [|][|][|] ' '{ if (NF != 3) exit 1
                        if (NR == 1 || $1 != last) { print $2; last = $1 } else if ($3 > score) exit 1
                        score = $3 }' n-best.txt >first.txt || fail "the n-best list is not sorted"
[ "$(awk 'NR > 1 && $1 != last { n++ } { last = $1 } END { print n + 1 }' n-best.txt)" -eq 43 ] || fail "n-best numbers"
cmp -s first.txt plain.en || fail "the best of n-best is not the translation"
translate --scores <lines.de >scores.txt
cut -f 2 scores.txt | cmp -s plain.en - || fail "scores change the translations"
grep -Eqv '^-?[0-9]+\.[0-9]{6}	' scores.txt && fail "a line of --scores without score"
translate --json <lines.de >lines.json
[ "$(grep -c '^{"index":[0-9]*,"source_tokens":[0-9]*,"truncated":false,"hypotheses":\[{"text":".*}\],"checkpoint":"run/checkpoint_best.safetensors"}$' lines.json)" \
  -eq 43 ] || fail "JSON: $(head -n 1 lines.json)"
for precision in bf16 int8 int4; do
  translate --precision $precision <lines.de >$precision.en
  [ "$(wc -l <$precision.en)" -eq 43 ] || fail "$precision gives $(wc -l <$precision.en) lines"
done
# Rounding to 8 bits changes scores slightly, and to 4 bits somewhat more: it must have an effect but destroy nothing.
for precision in int8 int4; do
  translate --precision $precision --scores <lines.de >$precision-scores.txt
  cmp -s scores.txt $precision-scores.txt && fail "--precision $precision changes no score"
  most=0.1 && [ $precision = int8 ] || most=0.5
  paste scores.txt $precision-scores.txt | awk -F '\t' -v most=$most '{ d = $1 - $3; if (d < 0) d = -d; if (d < most) near++ }
    END { exit near < 38 }' || fail "scores of $precision are far from those of fp32: $(paste scores.txt $precision-scores.txt | head -n 5)"
done
cmp -s int8-scores.txt int4-scores.txt && fail "int4 is int8"
translate </dev/null >nothing.en
[ ! -s nothing.en ] || fail "no input gives output"

# Invalid UTF-8 and overlong lines.
printf 'gut\nschl\xffecht\ngut\n' >invalid.de
translate <invalid.de >invalid.en
[ "$(wc -l <invalid.en)" -eq 3 ] || fail "invalid UTF-8 loses lines"
grep -q '^invalid UTF-8 replaced in: 1 line$' summary.txt || fail "invalid UTF-8 is not reported: $(cat summary.txt)"
yes Hund | head -n 100000 | tr '\n' ' ' >long.de
translate <long.de >long.en
[ "$(wc -l <long.en)" -eq 1 ] || fail "an overlong line gives $(wc -l <long.en) lines"
grep -q '^truncated .*: 1 line$' summary.txt || fail "an overlong line is not reported: $(cat summary.txt)"
cp lines.de kept.de
cp invalid.de lines.de
refuse_lines 1 'line 2: invalid UTF-8' run --strict
cp long.de lines.de
refuse_lines 1 'line 1: .* tokens, and the model takes 120' run --overlong refuse
cp kept.de lines.de

refuse_lines 1 'nowhere' nowhere
refuse_lines 1 'lines.de' lines.de
refuse_lines 1 'no-such-input' run --input no-such-input
refuse_lines 1 'no/such/folder' run --output no/such/folder
# The old contents of a file are kept until all is written: after a refused line, and if the file is also the input.
echo before >kept.en
cp invalid.de lines.de
refuse_lines 1 'line 2: invalid UTF-8' run --strict --output kept.en
cp kept.de lines.de
[ "$(cat kept.en)" = before ] || fail "a refused line empties the output"
cp lines.de same.de
translate --input same.de --output same.de
cmp -s plain.en same.de || fail "the input cannot be the output"
for left in *.tmp.*; do [ ! -e "$left" ] || fail "$left is left"; done
refuse_lines 2 'n-best' run --beam 2 --n-best 3
refuse_lines 2 'did you mean bf16' run --precision bf61
refuse_lines 2 'truncate' run --overlong cut
refuse_lines 2 'from 0 to 1024' run --beam 2000
refuse_lines 2 'argument is missing'
refuse_lines 2 'from -10 to 10' run --length-penalty 11
for penalty in -0.5 1; do
  translate --beam 5 --n-best 1 --length-penalty $penalty <lines.de >"penalty$penalty"
done
cmp -s penalty-0.5 penalty1 && fail "a negative length penalty changes nothing"
translate --max-len-a 0 --max-len-b 3 --json <lines.de >short.json
jq -e 'select(.hypotheses[0].tokens > 4)' short.json && fail "--max-len-b 3 gives more than three tokens"
jq -se 'any(.hypotheses[0].tokens == 4)' short.json >/dev/null || fail "--max-len-b 3 gives no three tokens"
# Standard input is read from its current position, and "-" names it.
{ read -r first; translate; } <lines.de >rest.en
cmp -s rest.en <(tail -n +2 plain.en) || fail "standard input is not read from where it stands"
translate --input - <lines.de | cmp -s plain.en - || fail "\"-\" is not standard input"
refuse 1 'long.de: line 1: .* tokens, and the model takes' "$TARN" translate run --overlong refuse --input long.de
if [ -w /dev/full ]; then
  "$TARN" translate run --threads 2 <lines.de >/dev/full 2>error.txt
  [ $? -eq 1 ] || fail "a full disk is not noticed"
  grep -q 'No space left' error.txt || fail "a full disk is not named: $(cat error.txt)"
  [ "$(wc -l <error.txt)" -eq 1 ] || fail "a full disk gives several lines: $(cat error.txt)"
fi
truncate -s 3000 run/checkpoint_last.safetensors
refuse_lines 1 'checkpoint_last' run/checkpoint_last.safetensors
exit 0
