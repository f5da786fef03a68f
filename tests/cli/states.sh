# tarn states: output for translation models, language models, masked models and classifiers; independence of batching
# and agreement with other commands; and every message.
set -u
. "$(dirname "$0")/../helpers.sh"
states() { "$TARN" states "$@" --threads 1 >printed.txt 2>error.txt || fail "states $*: $(cat error.txt)"; }
# numbers FILE TYPE COLUMNS: prints a NumPy file with a header of 128 bytes, one row per line.
numbers() { od -An -v -j128 -t "$2" -w$((4 * $3)) "$1"; }

"$TARN" corpus --output corpus --sentences 120 --held-out 12 >/dev/null || fail "corpus"
de=corpus/valid.de en=corpus/valid.en
"$TARN" vocab --type whitespace --size 60 --mask-symbols --output v corpus/train.de corpus/train.en >/dev/null || fail "vocab"
"$TARN" prepare --vocab v --source corpus/train.de --target corpus/train.en --output pairs >/dev/null 2>&1 || fail "prepare"
"$TARN" prepare --vocab v --text corpus/train.en --output text >/dev/null 2>&1 || fail "prepare --text"
awk '{ print $0 "\t" (length($0) > 40 ? "long" : "short") }' corpus/train.en >table.tsv
"$TARN" prepare --vocab v --table table.tsv --text 1 --labels 2 --output labels >/dev/null 2>&1 || fail "prepare --table"
cat >mt.yaml <<'END'
model: { d_model: 16, max_length: 40, norm: pre }
encoder: { layers: "L E C" }
decoder: { layers: "G T L" }
kinds:
  L: { mixer: attention, heads: 2, ffn: 24 }
  E: { mixer: esn, hidden: 20, ffn: 0 }
  C: { mixer: dynamic_conv, heads: 2, kernel: 3, ffn: 0 }
  G: { mixer: gru, hidden: 12, heads: 2, ffn: 0 }
  T: { mixer: lstm, hidden: 12, heads: 2, ffn: 0 }
data: { vocab: v, train: pairs }
train: { max_updates: 3, max_tokens: 400, threads: 1, tensorboard: no }
END
cat >lm.yaml <<'END'
model: { d_model: 16, max_length: 40, positions: rotary }
decoder: { layers: "L*2" }
kinds: { L: { mixer: attention, heads: 2, ffn: { type: swiglu, width: 20 } } }
data: { vocab: v, train: text }
train: { max_updates: 3, max_tokens: 400, threads: 1, tensorboard: no }
END
sed 's/decoder:/encoder:/; s/, positions: rotary/, segments: 2/' lm.yaml >masked.yaml
sed 's/train: text/train: labels/; s/model: { /model: { task: classification, /' masked.yaml >classes.yaml
for model in mt lm masked classes; do "$TARN" train $model.yaml --run $model --quiet 2>error.txt || fail "$model: $(cat error.txt)"; done

# The offered arrays.
"$TARN" states mt --list 2>/dev/null >list.txt || fail "--list"
for name in encoder.0 encoder.1.attention encoder.2.states encoder.3.gates encoder.3.kernel encoder decoder.1.cross_attention \
  decoder.1.gates decoder.2.cells decoder.3.hidden output output.log_probabilities output.topK output.topK.ids output.input; do
  grep -q "^$name " list.txt || fail "--list lacks $name: $(cat list.txt)"
done
! grep -q 'encoder.2.gates\|decoder.1.cells\|encoder.1.cross' list.txt || fail "--list has what there is not"
grep -Eq '^decoder.2.gates +48 +target token +gates' list.txt || fail "--list: $(cat list.txt)"
"$TARN" states lm --list 2>/dev/null | grep -Eq '^decoder.1.hidden +20 ' || fail "--list of a gated network"
"$TARN" states mt --list --json 2>/dev/null | grep -q '{"name":"encoder.1.attention","type":"float32","rows":"source token","width":2,' ||
  fail "--list --json"

# The bits do not depend on batching or the number of threads.
states mt '*' output.top3 --input $de --target $en --output all.safetensors
grep -Pq '^encoder.0\t[0-9]+ x 16$' printed.txt && grep -Pq '^output.top3.ids\t[0-9]+ x 3$' printed.txt || fail "printed: $(cat printed.txt)"
cp printed.txt all.txt
for how in "--max-tokens 1" "--max-tokens 60" "--batch-memory 300k"; do
  # shellcheck disable=SC2086
  states mt '*' output.top3 --input $de --target $en --output few.safetensors $how
  cmp all.safetensors few.safetensors || fail "results depend on $how"
done
"$TARN" states mt '*' output.top3 --input $de --target $en --output few.safetensors --threads 2 --quiet && cmp all.safetensors few.safetensors ||
  fail "results depend on the number of threads"
states mt '*' output.top3 --input $de --target $en --output all --format npy
diff all.txt printed.txt || fail "formats differ"
[ "$(ls all | wc -l)" -eq $(($(wc -l <all.txt) + 4 + $(grep -c heads all.txt))) ] || fail "npy: $(ls all)"
# Safetensors has the same values as the NumPy files.
values() { tail -c +129 "all/$1.npy"; }
size=$(values encoder.2.states | wc -c)
name='"encoder.2.states":{"dtype":"F32","shape":\[[0-9]*,20\],"data_offsets":\['
at=$(head -c 20000 all.safetensors | tr -d '\0' | grep -ao "$name[0-9]*" | grep -o '[0-9]*$')
header=$(od -An -t u8 -N 8 all.safetensors)
tail -c +$((header + 8 + at + 1)) all.safetensors | head -c "$size" | cmp - <(values encoder.2.states) || fail "formats differ in values"
tokens=$(numbers all/source.tokens.npy d4 1 | wc -l)
[ "$size" -eq $((tokens * 20 * 4)) ] || fail "$size bytes of states for $tokens tokens"
[ "$(wc -l <$de)" -eq $(($(od -An -v -j128 -t d8 -w8 all/source.offsets.npy | wc -l) - 1)) ] || fail "offsets"
[ "$(od -An -v -j128 -t d8 -w8 all/source.offsets.npy | tail -n 1)" -eq "$tokens" ] || fail "the last offset"
# The first of the most likely words has the largest logit and log-probability.
paste -d' ' <(numbers all/output.npy f4 60) <(numbers all/output.top3.ids.npy d4 3) <(numbers all/output.top3.npy f4 3) |
  awk '{ b = 1; for (c = 2; c <= 60; c++) if ($c > $b) b = c; if ($61 != b - 1 || $64 < $65 || $65 < $66) bad = 1 } END { exit bad }' ||
  fail "output.top3 are not the likeliest words"

# Only the ids of the most likely words, and from a model whose name is not UTF-8.
cp -r mt $'mt\377'
states $'mt\377' output.top3.ids --input $de --target $en --output ids.safetensors
[ "$(cut -f1 printed.txt | tr '\n' ' ')" = "output.top3.ids " ] || fail "output.top3.ids brings more: $(cat printed.txt)"
head -c 4000 ids.safetensors | grep -aq $'mt\xEF\xBF\xBD' || fail "the checkpoint's name is not repaired"
states mt output.top3.ids --input $de --target $en --format npy --output ids
cmp ids/output.top3.ids.npy all/output.top3.ids.npy || fail "output.top3.ids alone differs"

# The encoder needs no translations, and pipes work.
states mt encoder.1 --output one.safetensors <$de
states mt encoder.1 --input - --output again.safetensors < <(cat $de)
cmp one.safetensors again.safetensors || fail "a pipe gives other results"
"$TARN" states mt encoder.1 --input $de --output one.safetensors --json 2>/dev/null >json.txt || fail "--json"
grep -q '"output":"one.safetensors","sentences":12,"tokens":[0-9]*,"target_tokens":0,.*"arrays":\[{"name":"encoder.1","width":16,"numbers":[0-9]*}\]' json.txt || fail "--json: $(cat json.txt)"
for precision in bf16 int8 int4; do states mt encoder.3 decoder.1.cross_attention --input $de --target $en --precision $precision --output x.safetensors; done

# A language model: log-probabilities equal those of tarn score.
states lm output.log_probabilities --input $en --format npy --output lm-states
"$TARN" score lm $en --tokens --threads 1 2>/dev/null | grep '^  ' | cut -f1 >scored.txt
width=$(sed -n 's/.* x //p' printed.txt)
paste -d' ' <(numbers lm-states/tokens.npy d4 1) <(numbers lm-states/output.log_probabilities.npy f4 "$width") |
  awk -v eos=2 '{ if (NR > 1) { next_id = $1; printf "%.4f\n", p[next_id] } for (c = 2; c <= NF; c++) p[c - 2] = $c }
    END { printf "%.4f\n", p[eos] }' >looked.txt
paste scored.txt looked.txt | awk '{ if (($1 - $2) ^ 2 > 0.001 ^ 2) bad = 1 } END { exit bad || NR < 50 }' ||
  fail "log-probabilities differ from tarn score: $(paste scored.txt looked.txt | head -n 3)"
# A classifier: they equal those of tarn classify.
cut -f1 table.tsv | head -n 7 >lines
states classes output.log_probabilities encoder output.input --input lines --format npy --output class-states
"$TARN" classify classes lines --top 2 --threads 1 2>/dev/null | awk -F'\t' '{ print $1 == "long" ? $2 : $4 }' >classified.txt
numbers class-states/output.log_probabilities.npy f4 2 | awk '{ printf "%.6f\n", exp($1) }' | paste - classified.txt |
  awk '{ if (($1 - $2) ^ 2 > 0.00001 ^ 2) bad = 1 } END { exit bad || NR != 7 }' || fail "probabilities differ from tarn classify"
paste -d'\t' lines lines >twice
states masked output.top1 'encoder.*.attention' --input twice --output x.safetensors

# Messages.
s() { refuse "$1" "$2" "$TARN" states "${@:3}"; }
s 2 'it has no "encoder.1.atention"; did you mean "encoder.1.attention"' mt encoder.1.atention --input $de --output x
s 2 'it has no "decoder.1.cross_attention", because no layer of a language model attends to an encoder$' lm decoder.1.cross_attention --input $de --output x
s 2 'it has no "encoder.1.cross_attention"; the first layer that attends to the encoder is "decoder.1.cross_attention"$' mt encoder.1.cross_attention --input $de --output x
s 2 'it has no "encoder.9' mt 'encoder.9*' --input $de --output x
s 2 'output.top0: K is a number from 1 to 60' mt output.top0 --input $de --output x
s 2 'it has no "nix"; it has "encoder.0", and more that --list names' mt nix --input $de --output x
s 2 'of "output.topK.ids" K is a number, as in "output.top10.ids"$' mt output.topk.ids --input $de --target $en --output x
s 2 'it has no "output.topK"; of "output.topK" K is a number, as in "output.top10"$' mt output.topK --input $de --target $en --output x
s 2 'no NAME is given' mt --input $de --output x
s 2 '--output is missing' mt encoder --input $de
s 2 '--list takes no NAME' mt encoder --list
s 2 '--format is safetensors or npy' mt encoder --input $de --output x --format hdf5
s 2 'decoder.1 is of the decoder, which reads targets, and there are none; give them with --target$' mt encoder decoder.1 --input $de --output x
s 2 'reads one text: there are no targets' lm decoder --input $en --target $en --output x
head -n 5 $en >five
s 1 'has more lines than five; line 5 is the last of both' mt decoder --input $de --target five --output x
yes a | head -n 50 | tr '\n' ' ' >long
s 1 'long:1: 51 tokens, and the model takes 40' mt encoder --input long --output x
states mt encoder --input long --output x.safetensors --overlong truncate
grep -q '1 line cut to what the model takes' error.txt || fail "a cut line is not counted: $(cat error.txt)"
printf 'a\n\377\n' >bytes
s 1 'bytes:2: .*UTF-8' mt encoder --input bytes --output x --strict
s 1 'there is no line' mt encoder --input /dev/null --output x
s 1 'nowhere' mt encoder --input nowhere --output x
s 2 'the results would be .* MB, and 0.0 MB are allowed' mt encoder --input $de --output x --max-size 1k
s 1 'line 1 alone needs .* MB to be computed, and 0.0 MB are allowed' mt encoder --input $de --output x --batch-memory 2k
s 2 'takes a number such as 4G' mt encoder --input $de --output x --max-size much
s 1 'no/where/x: cannot write' mt encoder --input $de --output no/where/x
s 1 'corpus: cannot write: is a folder' mt encoder --input $de --output corpus
s 1 '/dev/null: cannot write: arrays are written in turns' mt encoder --input $de --output /dev/null
s 1 'list.txt' mt encoder --input $de --output list.txt --format npy
s 1 'ids: has output.top3.ids.npy, which is none of these results' mt output.input --input $de --target $en --format npy --output ids
[ "$(ls ids | wc -l)" -eq 5 ] || fail "a refused call wrote into the folder: $(ls ids)"
[ ! -e x ] || fail "something was left of what failed"
ls | grep -q '\.tmp\.' && fail "temporary files are left: $(ls)"
# A signal while waiting for input.
mkfifo questions
"$TARN" states mt encoder --input questions --output x 2>error.txt &
program=$!
exec 3>questions
kill -TERM $program
code=0
wait $program || code=$?
exec 3>&-
[ $code -ge 128 ] && grep -q 'stopped' error.txt && [ ! -e x ] || fail "SIGTERM: $code, $(cat error.txt)"
