# tarn serve: answers equal to those of the commands, batches across requests, limits, tokens, TLS, slow clients,
# shutdown.
set -u
. "$(dirname "$0")/../helpers.sh"
command -v curl >/dev/null || { echo "serve.sh: skipped, there is no curl"; exit 77; }
! "$TARN" serve nowhere 2>&1 | grep -q "no libmicrohttpd" || { echo "serve.sh: skipped, this build has no libmicrohttpd"; exit 77; }

server=""
stop() {  # the exit code of the server
  kill -"${1:-TERM}" "$server" 2>/dev/null
  wait "$server"
  local code=$?
  server=""
  return $code
}
trap '[ -z "$server" ] || kill -KILL "$server"' EXIT
# start ARGUMENT...: starts the server; url is its address. A file captures its standard output: the line of an earlier
# server is deleted before waiting for the new one.
start() {
  rm -f address.txt
  "$TARN" serve "$@" --port 0 --threads 1 >address.txt 2>server.txt &
  server=$!
  within_two_minutes eval '[ -s address.txt ] || gone $server'
  url=$(sed 's|/$||' address.txt)
  [ -n "$url" ] || fail "serve $*: $(cat server.txt)"
}
# post PATH BODY [CURL...]: puts the answer into answer.json and prints its code.
type=application/json
post() {
  local path=$1 body=$2
  shift 2
  curl -s -o answer.json -w '%{http_code}' -H "Content-Type: $type" --data-binary "$body" "$@" "$url$path"
}
# expect CODE PATTERN PATH BODY [CURL...]
expect() {
  local code=$1 pattern=$2 got
  shift 2
  got=$(post "$@") || fail "$*: no answer"
  [ "$got" = "$code" ] || fail "$*: code $got, expected $code: $(cat answer.json)"
  grep -q -- "$pattern" answer.json || fail "$*: no \"$pattern\" in $(cat answer.json)"
  jq -e . answer.json >/dev/null || fail "$*: no JSON: $(cat answer.json)"
}
metric() { curl -s "$url/metrics" | sed -n "s/^$1 //p"; }

"$TARN" corpus --output corpus --sentences 200 --held-out 40 || fail "corpus"
"$TARN" vocab --type bpe --size 200 --output vocab.model corpus/train.de corpus/train.en 2>vocab.txt || fail "vocab"
for part in train valid; do
  "$TARN" prepare --vocab vocab.model --source corpus/$part.de --target corpus/$part.en --output $part >/dev/null || fail "prepare"
  "$TARN" prepare --vocab vocab.model --text corpus/$part.en --output text-$part >/dev/null 2>&1 || fail "prepare --text"
done
cat >model.yaml <<'END_MODEL'
model: { d_model: 32, embeddings: all, dropout: 0, max_length: 120 }
encoder: { layers: L }
decoder: { layers: L }
kinds: { L: { mixer: attention, heads: 2, ffn: 64 } }
data: { vocab: vocab.model, train: train, valid: valid }
train: { max_updates: 40, max_tokens: 1000, lr: 0.005, warmup: 20, threads: 1 }
valid: { every: 40, bleu: no }
translate: { beam: 3 }
END_MODEL
"$TARN" train model.yaml --run run >train.txt 2>&1 || fail "train: $(tail -n 3 train.txt)"
sed '/^encoder/d; /^translate/d; s/all/decoder/; s/ train: train, valid: valid/ train: text-train, valid: text-valid/' model.yaml >lm.yaml
"$TARN" train lm.yaml --run lm >train.txt 2>&1 || fail "train of a language model: $(tail -n 3 train.txt)"

# Translation: equal to the command's, for one text, several texts, with all hypotheses, with the tokens.
start run --max-text 300 --max-texts 5 --max-body 4000 --max-samples 8
head -n 4 corpus/test.de >lines.de
"$TARN" translate run --n-best 3 --json --threads 1 <lines.de 2>/dev/null >expected.txt
body=$(jq -R . lines.de | jq -s -c '{text: ., n_best: 3, tokens: true}')
expect 200 translations /translate "$body"
jq -c '.translations[] | [.source_tokens, .truncated, [.hypotheses[] | del(.pieces)]]' answer.json >got.txt
jq -c '[.source_tokens, .truncated, .hypotheses]' expected.txt | diff - got.txt || fail "other translations"
jq -e '[.translations[].hypotheses[] | (.pieces | length) == .tokens and .pieces[-1].text == "</s>" and
  ((([.pieces[].probability | log] | add) - .log_probability) | fabs) < 1e-4] | all' answer.json >/dev/null || fail "other tokens: $(cat answer.json)"
expect 200 '"hypotheses":\[{"text":""' /translate '{"text":""}'

# A request's own beam and length penalty; the next request has the server's again.
for own in '1 1' '2 0' '2 -1.5' '3 4'; do
  read -r beam penalty <<<"$own"
  "$TARN" translate run --beam $beam --n-best $beam --length-penalty $penalty --json --threads 1 <lines.de 2>/dev/null |
    jq -c '[.source_tokens, .truncated, .hypotheses]' >expected-own.txt
  expect 200 translations /translate "$(jq -R . lines.de | jq -s -c "{text: ., n_best: $beam, beam: $beam, length_penalty: $penalty}")"
  jq -c '.translations[] | [.source_tokens, .truncated, .hypotheses]' answer.json | diff expected-own.txt - ||
    fail "other translations with beam $beam, length penalty $penalty"
done
expect 200 translations /translate "$body"
jq -c '.translations[] | [.source_tokens, .truncated, [.hypotheses[] | del(.pieces)]]' answer.json | diff got.txt - ||
  fail "the beam of one request stayed for the next"

# Samples, prefixes and minimum Bayes risk, equal to the command's.
sampled() {  # KEYS OPTION...: the lines of $from with these
  local keys=$1
  shift
  "$TARN" translate run "$@" --json --threads 1 2>/dev/null | jq -c '[.source_tokens, .truncated, .hypotheses]' >expected-own.txt
  expect 200 translations /translate "$(jq -R . $from | jq -s -c "{text: ., $keys}")"
  jq -c '.translations[] | [.source_tokens, .truncated, .hypotheses]' answer.json | diff expected-own.txt - || fail "other translations with $keys"
}
head -n 1 lines.de >line.de
from=lines.de
sampled 'samples: 1, seed: 5, top_p: 0.9, temperature: 0.8' --samples 1 --seed 5 --top-p 0.9 --temperature 0.8 <lines.de
from=line.de
sampled 'samples: 4, n_best: 3, top_k: 7, min_p: 0.01, mbr: "chrf"' --samples 4 --n-best 3 --top-k 7 --min-p 0.01 --mbr chrf <line.de
from=lines.de
sampled 'repetition_penalty: 1.4, no_repeat_ngram: 2, groups: 3, diversity_penalty: 0.5' --repetition-penalty 1.4 --no-repeat-ngram 2 \
  --groups 3 --diversity-penalty 0.5 <lines.de
sed 's/$/\tThe/' lines.de | sampled 'prefix: ["The", "The", "The", "The"]' --prefixes
# Texts that translations contain, also behind a prefix, coverage and alignment.
sampled 'force_words: ["dog", "big"], coverage_penalty: 0.4, n_best: 2' --force-words dog --force-words big --coverage-penalty 0.4 --n-best 2 <lines.de
sed 's/$/\tThe\tdog/' lines.de | sampled 'prefix: ["The", "The", "The", "The"], force_words: "dog"' --prefixes --force-columns
"$TARN" translate run --alignment --json --threads 1 <lines.de 2>/dev/null | jq -c '[.source_pieces, .hypotheses[0].alignment]' >expected-own.txt
expect 200 translations /translate "$(jq -R . lines.de | jq -s -c '{text: ., alignment: true}')"
jq -c '.translations[] | [.source_pieces, .hypotheses[0].alignment]' answer.json | diff expected-own.txt - || fail "another alignment"
expect 400 'force_words.. need a search with a beam of 2 or more' /translate '{"text":"a","force_words":"b","beam":1}'
expect 400 'force_words.. need a search with a beam of 2 or more' /translate '{"text":"a","force_words":"b","samples":2}'
expect 400 'text.. has a tab, and ..force_words.. is given' /translate '{"text":"a\tb","force_words":"c"}'
expect 400 'force_words.. has a tab' /translate '{"text":"a","force_words":"c\td"}'
expect 400 'did you mean ..force_words' /translate '{"text":"a","force_word":"c"}'
expect 413 'a string of ..force_words.. has 257 bytes' /translate "{\"text\":\"a\",\"force_words\":\"$(printf '%257s' x)\"}"
expect 422 'the forced text .* needs [0-9]* tokens, and the translation has at most' /translate "{\"text\":\"a\",\"force_words\":\"$(printf 'x y %.0s' $(seq 30))\"}"
expect 400 'coverage_penalty.. must be' /translate '{"text":"a","coverage_penalty":200}'
# A stream: parts of a greedy translation or of one sample, token by token; of a beam the text when it is final; then the
# whole answers.
streamed() {  # LEAST-EVENTS KEYS: the lines of lines.de with these
  local body
  body=$(jq -R . lines.de | jq -s -c "{text: ., tokens: true, $2}")
  expect 200 translations /translate "$body"
  curl -sN -H 'Content-Type: application/json' --data-binary "$(jq -c '. + {stream: true}' <<<"$body")" "$url/translate" >stream.txt
  [ "$(tail -n 2 stream.txt | head -n 1)" = 'data: [DONE]' ] || fail "the end of a stream: $(tail -n 3 stream.txt)"
  sed -n 's/^data: {/{/p' stream.txt >events.txt
  jq -s -c 'map(select(.translation)) | sort_by(.index) | map(.translation)' events.txt | diff - <(jq -c .translations answer.json) || fail "a stream ends otherwise with $2"
  jq -s -c 'group_by(.index)[] | [.[].part // empty] | add' events.txt | diff - <(jq -c '.translations[].hypotheses[0].text' answer.json) || fail "other parts with $2"
  [ "$(wc -l <events.txt)" -ge "$1" ] || fail "a stream in $(wc -l <events.txt) pieces with $2: $(cat stream.txt)"
}
streamed 24 'beam: 1'
streamed 24 'samples: 1, seed: 4, temperature: 0.5'
streamed 8 'n_best: 2, force_words: "dog", alignment: true'
streamed 24 'beam: 1, prefix: ["The", "The", "The", "The"]'
expect 422 'the forced text .* needs [0-9]* tokens' /translate "{\"text\":\"a\",\"stream\":true,\"force_words\":\"$(printf 'x y %.0s' $(seq 30))\"}"
# A text that fails in the middle of a stream is named by its own number.
words=$(printf 'Das Bett. %.0s' $(seq 9))
curl -sN -H 'Content-Type: application/json' -d "{\"text\":[\"$words\",\"$words\",\"a\"],\"stream\":true,\"force_words\":\"$(printf 'x y %.0s' $(seq 8))\"}" \
  "$url/translate" >stream.txt
grep -q '^data: {"error":"line 3: the forced text' stream.txt || grep -q '^{"error":"line 3: the forced text' stream.txt || fail "the line of an error: $(cat stream.txt)"
expect 400 'stream.. must be true or false' /translate '{"text":"a","stream":1}'
expect 400 'prefix.. must have as many strings' /translate '{"text":["a","b"],"prefix":["c"]}'
expect 400 'text.. has a tab, and ..prefix.. is given' /translate '{"text":"a\tb","prefix":"c"}'
expect 400 'prefix.. has a tab' /translate '{"text":"a","prefix":"c\td"}'
expect 400 'beam.. has no effect where translations are drawn' /translate '{"text":"a","samples":2,"beam":2}'
expect 400 'seed.. has no effect without ..samples' /translate '{"text":"a","seed":2}'
expect 400 'n_best.. may be at most the ..samples.. of 2' /translate '{"text":"a","samples":2,"n_best":3}'
expect 400 'samples.. must be a whole number from 1 to 8' /translate '{"text":"a","samples":9}'
expect 413 '2 texts with 3 samples are more than 5 texts' /translate '{"text":["a","b"],"samples":3}'
expect 400 'mbr.. must be ..bleu.. or ..chrf' /translate '{"text":"a","samples":2,"mbr":"ter"}'
expect 413 'a string of ..banned.. has 301 bytes' /translate "{\"text\":\"a\",\"banned\":\"$(printf '%301s' x)\"}"
expect 200 translations /translate "$body"
jq -c '.translations[] | [.source_tokens, .truncated, [.hypotheses[] | del(.pieces)]]' answer.json | diff got.txt - ||
  fail "the samples of one request stayed for the next"

# Attention of each translated token to those of the source: rows of weights that sum to 1.
# It uses the translator's model in memory, not the file.
mv run moved
expect 200 weights /attend '{"text":"Ein Satz.","target":"A sentence."}'
mv moved run
jq -e '(.weights | length) == (.target | length) and .target[-1] == "</s>" and .source[-1] == "</s>" and
  ([.source | length] + [.weights[] | length] | unique | length) == 1 and
  ([.weights[] | (add - 1) | fabs < 1e-5] | all)' answer.json >/dev/null || fail "attention: $(cat answer.json)"
expect 200 '"truncated":true' /attend "{\"text\":\"$(printf 'a %.0s' $(seq 140))\",\"target\":\"a\"}"
expect 400 'must be strings' /attend '{"text":["a"],"target":"a"}'
expect 400 'must be strings' /attend '{"text":"a"}'

# Invalid and excessive requests.
expect 400 'not JSON' /translate '{"text":'
expect 400 'not JSON' /translate ''
expect 400 'not JSON' /translate "$(printf '{"text":"\377"}')"
expect 400 'must be a JSON object' /translate '["text"]'
expect 400 'did you mean.*n_best' /translate '{"text":"a","nbest":2}'
expect 400 'n_best.. may be at most the ..beam.. of 3' /translate '{"text":"a","n_best":4}'
expect 400 'beam.. must be a whole number from 1 to 3' /translate '{"text":"a","beam":4}'
expect 400 'beam.. must be a whole number from 1 to 3' /translate '{"text":"a","beam":0}'
expect 400 'n_best.. may be at most the ..beam.. of 1' /translate '{"text":"a","beam":1,"n_best":2}'
expect 400 'length_penalty.. must be a number from -10 to 10' /translate '{"text":"a","length_penalty":11}'
expect 400 'length_penalty.. must be a number' /translate '{"text":"a","length_penalty":"1"}'
expect 400 'true or false' /translate '{"text":"a","tokens":1}'
expect 400 'text.*missing' /translate '{}'
expect 400 'string' /translate '{"text":["a",7]}'
expect 400 'no string' /translate '{"text":[]}'
expect 413 '6 texts' /translate '{"text":["a","b","c","d","e","f"]}'
expect 413 '301 bytes' /translate "{\"text\":\"$(printf '%301s' x)\"}"
expect 413 '4000 bytes' /translate "{\"text\":\"$(printf '%5000s' x)\"}"
head -c 10000000 /dev/zero | tr '\0' a >large.txt
for way in 'Expect:' 'Expect: 100-continue' 'Transfer-Encoding: chunked'; do
  expect 413 '4000 bytes' /translate @large.txt -H "$way"
done
expect 404 'cannot do /score' /score '{"text":"a"}'
expect 404 'nothing here' /nothing '{"text":"a"}'
type=text/plain expect 415 'application/json' /translate '{"text":"a"}'
type=application/jsonp expect 415 'application/json' /translate '{"text":"a"}'
type='Application/JSON; charset=utf-8' expect 200 translations /translate '{"text":"a"}'
expect 405 'takes POST' /translate '' -X GET
expect 405 'takes GET' /health '{}'
[ "$(curl -s "$url/health" | jq -c '[.status, .uses, .languages, .beam, .length_penalty == 1]')" = '["ok",["translate","attend"],[],3,true]' ] || fail "health: $(curl -s "$url/health")"
curl -s "$url/openapi.json" | jq -e '.openapi | startswith("3.")' >/dev/null || fail "no description"
for path in $(curl -s "$url/openapi.json" | jq -r '.paths | keys[]'); do
  [ "$(curl -s -o page.html -w '%{http_code}' "$url${path/\{name\}/run}")" != 404 ] || [[ " /score /generate /v1/completions /classify /tag " == *" $path "* ]] ||
    fail "the description has $path, and the server has not"
done
[ "$(metric 'tarn_http_requests_total{path="\/translate",code="400"}')" -eq 30 ] || fail "metrics: $(curl -s "$url/metrics")"
[ "$(metric tarn_source_tokens_total)" -gt 4 ] || fail "metrics count no tokens"
refuse 1 'another program does' "$TARN" serve run --port "${url##*:}"

# Slow and disconnected clients: slow requests get 408, and no other client waits for them.
stop || fail "stopping: $(cat server.txt)"
start run --timeout 1
host=${url#http://}
exec 5<>"/dev/tcp/${host%:*}/${host#*:}" 6<>"/dev/tcp/${host%:*}/${host#*:}"
printf 'POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"te' >&5
printf 'POST /trans' >&6
answers() { [ "$(post /translate '{"text":"Ein Satz."}')" = 200 ]; }  # on a busy machine 1 second may be too short
within_two_minutes answers || fail "slow clients keep others waiting"
for number in 5 6; do
  timeout 120 head -n 1 <&$number >slow.txt
  grep -q '408 Request Timeout' slow.txt || fail "client $number: no 408: $(cat slow.txt)"
done
exec 5>&- 6>&-
# Both wait: the server has a second for a request, also for these, and counts an answer after it was sent.
counted() { [ "$(metric 'tarn_http_requests_total{path="other",code="408"}')" -ge 2 ]; }
within_two_minutes counted 2>slow.txt || fail "408 is not counted: $(curl -s "$url/metrics")"
# Clients that read their answer slowly are disconnected.
cuts() { cut=$(metric tarn_http_cut_total) && [ -n "$cut" ]; }
within_two_minutes cuts || fail "no metrics: $(curl -s "$url/metrics")"
"$HOSTILE_CLIENT" "${url##*:}" &
reader=$!
within_two_minutes eval '[ "$(metric tarn_http_cut_total)" -gt "$cut" ]' 2>slow.txt || fail "a client that reads slowly is not cut off"
kill $reader 2>slow.txt
wait $reader

stop INT || fail "stopping by SIGINT: $(cat server.txt)"

# Many at once: the queue takes two, and the others are told to retry; accepted ones get the right answer.
start run --timeout 300 --connections 50 --queue 2 --batch 1
expect 200 translations /translate '{"text":"Ein Satz."}'
cp answer.json expected.json
for i in $(seq 40); do
  curl -s -o many-$i.json -w '%{http_code} %header{retry-after}\n' -H 'Content-Type: application/json' -d '{"text":"Ein Satz."}' \
    "$url/translate" >code-$i.txt &
  pids[i]=$!
done
wait "${pids[@]}"
for i in $(seq 40); do
  case $(cat code-$i.txt) in
    200*) cmp -s many-$i.json expected.json || fail "another answer: $(cat many-$i.json)" ;;
    429*1 | 429*header*) grep -q 'wait already' many-$i.json || fail "429: $(cat many-$i.json)" ;;
    *) fail "many: $(cat code-$i.txt)" ;;
  esac
done
stop || fail "stopping: $(cat server.txt)"

# A token, from a file or the environment; paths that need none.
printf 'geheim\n' >token
start run --token-file token
expect 401 'token' /translate '{"text":"a"}'
expect 401 'token' /translate '{"text":"a"}' -H 'Authorization: Bearer geheimnis'
expect 401 'token' /translate '{"text":"a"}' -H 'Authorization: Bearer gehein'
expect 401 'token' /metrics '' -X GET
expect 200 translations /translate '{"text":"a"}' -H 'Authorization: Bearer geheim'
[ "$(curl -s -o answer.json -w '%{http_code}' "$url/health")" = 200 ] || fail "health asks for a token"
stop || fail "stopping"
TARN_TOKEN=anderes start run --max-texts 1000 --max-body 1000000 --batch 1
expect 401 'token' /translate '{"text":"a"}' -H 'Authorization: Bearer geheim'
expect 200 translations /translate '{"text":"a"}' -H 'Authorization: Bearer anderes'

# Requests completed after the queue has finished are refused, and the queue stays readable: freed memory is filled
# here.
stop || fail "stopping"
MALLOC_PERTURB_=165 start run
host=${url#http://}
exec 5<>"/dev/tcp/${host%:*}/${host#*:}" 6<>"/dev/tcp/${host%:*}/${host#*:}"
printf 'POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{"text":' >&5
printf 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n' >&6
timeout 120 head -n 1 <&6 >last.txt
kill -TERM "$server"
within_two_minutes eval '! curl -s -o answer.json "$url/health"' || fail "it still listens"
printf '"Ein Satz."}' >&5
printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n' >&6
timeout 120 cat <&5 >late.txt
timeout 120 cat <&6 >last.txt
exec 5>&- 6>&-
wait "$server" || fail "stopping with half a request: $(cat server.txt)"
server=""
[ ! -s late.txt ] || grep -q '^HTTP/1.1 503' late.txt || fail "late: $(cat late.txt)"  # nothing, if it was too late
! grep '^tarn_queue_requests ' last.txt | grep -qv ' 0$' || fail "the queue at the end: $(cat last.txt)"
TARN_TOKEN=anderes start run --max-texts 1000 --max-body 1000000 --batch 1

# Waiting requests are answered when the server stops: at the signal two at least have arrived, of which one may be
# in work already; those that arrive after it are not.
for i in 1 2 3 4 5 6 7 8 9 10; do cat corpus/test.de; done | jq -R . | jq -s -c '{text: .}' >long.json
for i in $(seq 6); do
  curl -s -o last-$i.json -w '%{http_code}' -H 'Content-Type: application/json' -H 'Authorization: Bearer anderes' \
    --data-binary @long.json "$url/translate" >last-$i.txt &
  pids[i]=$!
done
within_two_minutes eval '[ "$(curl -s -H "Authorization: Bearer anderes" "$url/metrics" |
  sed -n "s/^tarn_queue_requests //p")" -ge 2 ]' || fail "no two wait"
stop || fail "stopping with work: $(cat server.txt)"
wait "${pids[@]:1:6}"
answered=0
for i in $(seq 6); do
  case $(cat last-$i.txt) in
    200) answered=$((answered + 1)) ;;
    503 | 000) ;;  # it arrived after the signal
    *) fail "at the end: $(cat last-$i.txt)" ;;
  esac
done
[ $answered -ge 2 ] || fail "not all were answered at the end: $(cat last-*.txt)"

# TLS, and unusable certificates.
refuse 2 'belong together' "$TARN" serve run --certificate nowhere
refuse 1 'nowhere' "$TARN" serve run --port 0 --certificate nowhere --key nowhere
refuse 1 'cannot use the certificate' "$TARN" serve run --port 0 --certificate token --key token
if command -v openssl >/dev/null; then
  openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
    -addext subjectAltName=IP:127.0.0.1 2>openssl.txt || fail "openssl: $(cat openssl.txt)"
  start run --certificate cert.pem --key key.pem
  expect 200 translations /translate '{"text":"Ein Satz."}' --cacert cert.pem
  cmp -s answer.json expected.json || fail "another answer over TLS"
  stop || fail "stopping TLS"
fi

# A language model: scores and continuations equal to those of the commands.
start lm --max-tokens 64 --languages en,pt-BR,zh-Hant-TW
[ "$(curl -s "$url/health" | jq -c '[.uses, .languages]')" = '[["score","generate"],["en","pt-BR","zh-Hant-TW"]]' ] || fail "languages: $(curl -s "$url/health")"
"$TARN" score lm --json --threads 1 - <<<"She is here." 2>/dev/null >score.txt
expect 200 scores /score '{"text":"She is here.","tokens":true}'
[ "$(jq '.scores[0].log_probability' answer.json)" = "$(head -n 1 score.txt | jq .log_probability)" ] || fail "score: $(cat answer.json score.txt)"
"$TARN" generate lm --prompt "She is" --number 2 --top-p 0.9 --seed 7 --max-tokens 9 --json --threads 1 2>/dev/null >generated.txt
for round in 1 2; do  # other options in between make no difference
  expect 200 generations /generate '{"text":"She is","method":"sample","number":2,"top_p":0.9,"seed":7,"max_tokens":9}'
  jq -r '.generations[0].texts[].text' answer.json >got.txt
  jq -r '.texts[]?.text // .text' generated.txt | diff - got.txt || fail "generate: $(cat generated.txt)"
  expect 200 generations /generate '{"text":["She is","The"],"method":"beam","number":2,"beam":4,"max_tokens":5}'
done
expect 200 generations /generate '{"text":"She is","max_tokens":9,"repetition_penalty":1.5,"no_repeat_ngram":1,"banned":["the"],"stop":"e"}'
expect 200 generations /generate '{"text":"She is","max_tokens":9,"method":"sample","min_p":0.1,"typical_p":0.9,"presence_penalty":1,"frequency_penalty":1}'
expect 200 generations /generate '{"text":"She is","max_tokens":5,"method":"beam","beam":4,"groups":2,"diversity_penalty":1}'
# The method follows from the other keys, and what would have no effect is refused.
"$TARN" generate lm --prompt "She is" --number 2 --beam 4 --length-penalty 0.5 --max-tokens 5 --json --threads 1 2>/dev/null >generated.txt
expect 200 generations /generate '{"text":"She is","number":2,"beam":4,"length_penalty":0.5,"max_tokens":5}'
[ "$(jq -c '[.generations[0].texts[].score]' answer.json)" = "$(jq -c '[.texts[].score]' generated.txt)" ] || fail "beam: $(cat answer.json generated.txt)"
"$TARN" generate lm --prompt "She is" --number 3 --mbr chrf --seed 3 --max-tokens 9 --json --threads 1 2>/dev/null >generated.txt
expect 200 generations /generate '{"text":"She is","number":3,"mbr":"chrf","seed":3,"max_tokens":9}'
[ "$(jq -c '[.generations[0].texts[] | [.continuation, .score]]' answer.json)" = "$(jq -c '[.texts[] | [.continuation, .score]]' generated.txt)" ] ||
  fail "minimum Bayes risk: $(cat answer.json generated.txt)"
expect 400 'beam.. has no effect without the method ..beam' /generate '{"text":"a","method":"greedy","beam":4}'
expect 400 'length_penalty.. has no effect without the method ..beam' /generate '{"text":"a","length_penalty":0}'
expect 400 'groups.. has no effect without the method ..beam' /generate '{"text":"a","top_k":3,"groups":2}'
expect 400 'top_k.. has no effect without the method ..sample' /generate '{"text":"a","top_k":3,"beam":2}'
expect 400 'seed.. has no effect without the method ..sample' /generate '{"text":"a","seed":3}'
expect 400 'must be a string that is not empty' /generate '{"text":"a","stop":""}'
expect 400 'must be a string that is not empty' /generate '{"text":"a","stop":["e",1]}'
expect 400 'must be a number from 0.001 to 100' /generate '{"text":"a","repetition_penalty":0}'
expect 422 'groups must be from 1 to the beam' /generate '{"text":"a","method":"beam","beam":4,"groups":3,"max_tokens":5}'
expect 413 'more than 64 tokens' /generate '{"text":["a","b"],"max_tokens":40}'
expect 400 'at most 1' /generate '{"text":"a","number":2}'
expect 400 'greedy' /generate '{"text":"a","method":"other"}'
expect 422 '"prompt 2: .*tokens' /generate "{\"text\":[\"a\",\"$(printf 'She is here. %.0s' $(seq 60))\"],\"max_tokens\":5}"
stop || fail "stopping: $(cat server.txt)"
refuse 1 'nowhere' "$TARN" serve nowhere
for languages in '' de, ,en de,,en de_DE 'de en' d d-e de- german-123456789 '<b>' 1a abcdefghi de-aaaaaaaa-bbbbbbbb-cccccccc-dddddddd; do
  exactly 2 "tarn serve: --languages $languages: tags of languages are expected, such as de,en or pt-BR (see tarn serve --help)" "$TARN" serve run --languages "$languages"
done
exactly 2 "tarn serve: --languages names more than 32 languages (see tarn serve --help)" "$TARN" serve run --languages "$(seq -s , -f 'de-%.0f' 33)"
for languages in 'de 1 language' 'de,en,fr 3 languages'; do
  exactly 2 "tarn serve: --languages names ${languages#* }; a translation model has two, source and target, such as de,en (see tarn serve --help)" \
    "$TARN" serve run --port 0 --languages "${languages%% *}"
done
refuse 1 'no address' "$TARN" serve run --host no.such.host.invalid
