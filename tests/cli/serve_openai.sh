# tarn serve as OpenAI's clients expect it: models, completions, errors, streams that are read, not read and left, and
# requests that join a running batch.
set -u
command -v curl >/dev/null || { echo "serve_openai.sh: skipped, there is no curl"; exit 77; }
tiny_model=language
. "$(dirname "$0")/../tiny_server.sh"
# ask BODY: the answer goes to answer.json, its code to standard output.
ask() { curl -s -o answer.json -w '%{http_code}' -H 'Content-Type: application/json' --data-binary "$1" "$url/v1/completions"; }
good() { [ "$(ask "$1")" = 200 ] || fail "$1: $(cat answer.json)"; }
is() {  # JQ-FILTER JSON: what it gives of the answer
  [ "$(jq -c "$1" answer.json)" = "$2" ] || fail "$1 is $(jq -c "$1" answer.json), not $2: $(cat answer.json)"
}
bad() {  # CODE PARAM PATTERN BODY
  local code
  code=$(ask "$4")
  [ "$code" = "$1" ] || fail "$4: code $code, not $1: $(cat answer.json)"
  is '[.error | keys, .type, .param]' "[[\"code\",\"message\",\"param\",\"type\"],\"invalid_request_error\",$2]"
  jq -r .error.message answer.json | grep -q -- "$3" || fail "$4: no \"$3\" in $(cat answer.json)"
}
metric() { curl -s "$url/metrics" | sed -n "s/^$1 //p"; }

start --max-tokens 3000000 --max-samples 8 --stream-bytes 1000000000
url=http://127.0.0.1:$port

# Models.
curl -s -o answer.json "$url/v1/models"
is '[.object, (.data | length), .data[0].id, .data[0].object, .data[0].owned_by, (.data[0].created | type)]' '["list",1,"run","model","tarn","number"]'
curl -s -o answer.json "$url/v1/models/run"
is '[.id, .object]' '["run","model"]'
[ "$(curl -s -o answer.json -w '%{http_code}' "$url/v1/models/other")" = 404 ] || fail "a model that is not there: $(cat answer.json)"
is '[.error.type, .error.param, .error.code]' '["invalid_request_error","model","model_not_found"]'

# Completions, equal to those of the command.
"$TARN" generate run --prompt "The cat" --number 2 --temperature 0.7 --top-p 0.9 --seed 5 --max-tokens 7 --min-tokens 7 --json --threads 1 >alone.txt 2>/dev/null
sampled='"prompt": "The cat", "n": 2, "temperature": 0.7, "top_p": 0.9, "seed": 5, "max_tokens": 7, "min_tokens": 7'
good "{\"model\": \"run\", $sampled}"
is '[.choices[].text]' "$(jq -c '[.texts[].continuation]' alone.txt)"
is '[.object, (.id | startswith("cmpl-")), .model, [.choices[].index], [.choices[].finish_reason], [.choices[].logprobs]]' \
  '["text_completion",true,"run",[0,1],["length","length"],[null,null]]'
is '[.usage | .completion_tokens, .prompt_tokens + .completion_tokens == .total_tokens]' '[14,true]'
"$TARN" generate run --prompt "The cat" --max-tokens 6 --min-tokens 6 --repetition-penalty 1.3 --json --threads 1 >alone.txt 2>/dev/null
good '{"prompt": ["The cat", "The cat"], "temperature": 0, "max_tokens": 6, "min_tokens": 6, "repetition_penalty": 1.3, "logprobs": 0, "user": "me", "suffix": null}'
is '[.choices[].text]' "$(jq -c '[.texts[0].continuation, .texts[0].continuation]' alone.txt)"
is '.choices[1] | [.index, (.logprobs.tokens | length), .logprobs.top_logprobs]' '[1,6,null]'
[ "$(jq '[.choices[0].logprobs.token_logprobs | add] == [.choices[1].logprobs.token_logprobs | add]' answer.json)" = true ] || fail "equal prompts differ"
good '{"prompt": "The cat", "temperature": 0, "max_tokens": 3, "logprobs": 1}'
is '.choices[0].logprobs | [.tokens, .token_logprobs] == [[.top_logprobs[] | keys[0]], [.top_logprobs[] | .[]]]' true
# The likeliest tokens are those of the model: as /score has a text's own, and above it whatever is not.
good '{"prompt": ["The cat", "A"], "n": 2, "seed": 3, "max_tokens": 4, "min_tokens": 4, "temperature": 2, "logprobs": 5, "presence_penalty": 1}'
is '[.choices[].logprobs | ([.top_logprobs[] | length | . == 5 or . == 6] | all) and ([.top_logprobs, .tokens, .token_logprobs] | transpose | all(.[0][.[1]] == .[2])) and
  ([.top_logprobs[] | [.[] | exp] | add < 1.00001] | all)] | all' true
jq '.choices[0].logprobs' answer.json >tops.json
good '{"prompt": ["The cat", "A"], "n": 2, "seed": 3, "max_tokens": 4, "min_tokens": 4, "temperature": 2, "logprobs": 1, "presence_penalty": 1}'
is '[.choices[0].logprobs.top_logprobs[] | length | . == 1 or . == 2] | all' true
jq -e --slurpfile all tops.json '[.choices[0].logprobs.top_logprobs, $all[0].top_logprobs] | transpose | all(([.[0][]] | max) == ([.[1][]] | max))' answer.json >/dev/null ||
  fail "the likeliest of one and of five: $(cat answer.json tops.json)"
good '{"prompt": "The cat", "max_tokens": 3, "echo": true}'
is '.choices[0].text | startswith("The cat")' true
"$TARN" generate run --prompt "The cat" --max-tokens 40 --min-tokens 40 --json --threads 1 2>/dev/null >alone.txt
plain=$(jq -r '.texts[0].continuation' alone.txt)
stop_at=${plain:9:2}
stopped="\"prompt\": \"The cat\", \"temperature\": 0, \"max_tokens\": 40, \"min_tokens\": 40, \"stop\": [\"$stop_at\"]"
good "{$stopped}"
is '.choices[0] | [.finish_reason, .text]' "$(jq -n -c --arg text "${plain%%"$stop_at"*}" '["stop", $text]')"
good '{"prompt": "The cat"}'
is '.usage.completion_tokens <= 16' true
good '{"prompt": ["The cat", "A"], "n": 2, "logprobs": 0}'
is '.usage.completion_tokens == ([.choices[].logprobs.tokens | length] | add)' true

# Errors.
bad 400 null 'the body is not JSON' '{'
bad 400 null 'must be a JSON object' '[]'
bad 400 '"promt"' 'did you mean "prompt"' '{"promt": "a"}'
bad 400 '"prompt"' 'is missing' '{"model": "run"}'
bad 400 '"prompt"' 'must be a string, or an array of strings' '{"prompt": [1, 2]}'
bad 404 '"model"' 'there is no model "gpt-4"' '{"model": "gpt-4", "prompt": "a"}'
bad 400 '"stop"' 'not empty' '{"prompt": "a", "stop": ""}'
bad 413 '"stop"' 'has 257 bytes, but may have at most 256' "{\"prompt\": \"a\", \"stop\": \"$(printf '%257s' x)\"}"
bad 400 '"presence_penalty"' 'from -100 to 100' '{"prompt": "a", "presence_penalty": 101}'
bad 400 '"temperature"' '0, or from 0.001' '{"prompt": "a", "temperature": 1e-5}'
bad 400 '"suffix"' 'not possible here' '{"prompt": "a", "suffix": "b"}'
bad 400 '"logit_bias"' 'not possible here' '{"prompt": "a", "logit_bias": {"5": 1}}'
bad 400 '"best_of"' 'equal to "n"' '{"prompt": "a", "best_of": 2}'
bad 400 '"logprobs"' 'from 0 to 5' '{"prompt": "a", "logprobs": 6}'
bad 400 '"min_p"' 'no effect with a "temperature" of 0' '{"prompt": "a", "temperature": 0, "top_p": 0.9, "min_p": 0.1}'
bad 400 '"echo"' 'excludes' '{"prompt": "a", "logprobs": 0, "echo": true}'
bad 400 '"stream_options"' 'with "stream": true' '{"prompt": "a", "stream_options": {"include_usage": true}}'
bad 400 '"n"' 'from 1 to 8' '{"prompt": "a", "n": 9}'
bad 413 '"max_tokens"' 'more than 3000000 tokens' '{"prompt": "a", "n": 8, "max_tokens": 3000000}'
bad 422 null 'the banned text "\\u200b\|a banned text' '{"prompt": "a", "banned": " "}'

# A stream: the same text, in chunks.
stream() { curl -sN -H 'Content-Type: application/json' --data-binary "$1" "$url/v1/completions" >stream.txt; }
chunks() { sed -n 's/^data: {/{/p' stream.txt; }
good "{$sampled}"
jq -c '[.choices[].text]' answer.json >whole.txt
stream "{$sampled, \"stream\": true, \"stream_options\": {\"include_usage\": true}}"
[ "$(tail -n 2 stream.txt | head -n 1)" = 'data: [DONE]' ] || fail "the end of a stream: $(tail -n 3 stream.txt)"
[ "$(chunks | jq -s -c '[.[].choices[]?] as $all | [0, 1] | map(. as $i | [$all[] | select(.index == $i) | .text] | add)')" = "$(cat whole.txt)" ] ||
  fail "a stream is another text: $(cat stream.txt whole.txt)"
[ "$(chunks | jq -s -c '[([.[].choices[]?.finish_reason] | map(select(. != null))), .[-1].choices, .[-1].usage.completion_tokens, .[0].usage, ([.[].id] | unique | length)]')" = \
  '[["length","length"],[],14,null,1]' ] || fail "the chunks: $(cat stream.txt)"
[ "$(chunks | wc -l)" -ge 8 ] || fail "a stream in one piece: $(cat stream.txt)"
stream "{$sampled, \"stream\": true, \"logprobs\": 2}"
good "{$sampled, \"logprobs\": 2}"
[ "$(chunks | jq -s -c '[.[].choices[] | select(.index == 1) | .logprobs.top_logprobs[]]')" = "$(jq -c '.choices[1].logprobs.top_logprobs' answer.json)" ] ||
  fail "other likeliest tokens in a stream: $(cat stream.txt)"
stream "{$stopped, \"echo\": true, \"stream\": true}"
[ "$(chunks | jq -s -c '[([.[].choices[].text] | add), .[-1].choices[0].finish_reason]')" = "$(jq -n -c --arg text "The cat${plain%%"$stop_at"*}" '[$text, "stop"]')" ] ||
  fail "a stop string in a stream: $(cat stream.txt)"
# What fails before the first token has a code.
[ "$(ask '{"prompt": "a", "banned": " ", "stream": true}')" = 422 ] || fail "a stream that cannot begin: $(cat answer.json)"

# The same of /generate, in its own language, with the whole answers in the end.
own='"text": ["The cat", "A"], "number": 2, "temperature": 0.7, "top_p": 0.9, "seed": 5, "max_tokens": 7, "min_tokens": 7'
generate() { curl -sN -o "$1" -w '%{http_code}' -H 'Content-Type: application/json' --data-binary "$2" "$url/generate"; }
[ "$(generate answer.json "{$own}") $(generate stream.txt "{$own, \"stream\": true, \"tokens\": true}")" = '200 200' ] || fail "/generate: $(cat answer.json stream.txt)"
[ "$(tail -n 2 stream.txt | head -n 1)" = 'data: [DONE]' ] || fail "the end of a stream: $(tail -n 3 stream.txt)"
[ "$(chunks | jq -s -c '[.[] | select(.generation)] | sort_by(.index) | [.[].generation | del(.texts[].pieces)]')" = "$(jq -c .generations answer.json)" ] ||
  fail "a stream of /generate ends otherwise: $(cat stream.txt answer.json)"
[ "$(chunks | jq -s -c '[.[] | select(.sample != null)] | group_by([.index, .sample]) | map([(map(.part) | add), (map(.piece) | length)])')" = \
  "$(jq -c '[.generations[].texts[] | [.continuation, .tokens]]' answer.json)" ] || fail "parts of /generate: $(cat stream.txt)"
[ "$(generate answer.json '{"text": "a", "method": "beam", "stream": true}')" = 400 ] && grep -q 'stream.*excludes the method.*beam' answer.json ||
  fail "a beam in a stream: $(cat answer.json)"
[ "$(generate answer.json '{"text": "a", "banned": " ", "stream": true}')" = 422 ] || fail "a stream that cannot begin: $(cat answer.json)"

# begin NUMBER BODY: a stream on this file descriptor, of which nothing is read.
begin() {
  eval "exec $1<>/dev/tcp/127.0.0.1/$port"
  printf 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "${#2}" "$2" >&"$1"
}
first() { timeout 120 sed -n '/^data: {/{p;q}' <&"$1" | grep -q text_completion || fail "no first token of stream $1"; }
endless='{"prompt": "The", "max_tokens": 3000000, "min_tokens": 3000000, "stream": true}'
ended() { metric tarn_first_token_seconds_count; }  # requests for continuations that are over
# Its first token comes although there is no end, others join it and are answered, and it ends when its client leaves.
before=$(ended) tokens=$(metric tarn_target_tokens_total)
begin 5 "$endless"
first 5
for i in 1 2 3; do good '{"prompt": "The cat", "max_tokens": 5, "min_tokens": 5}'; done
[ "$(ended)" -eq $((before + 3)) ] || fail "the endless stream has an end"
curl -s "$url/metrics" | grep -q '^tarn_running_texts_bucket{le="1"} [0-9]' || fail "no running texts"
exec 5>&-
within_two_minutes eval '[ "$(ended)" -eq $((before + 4)) ]' || fail "a stream whose client left goes on"
tokens=$(($(metric tarn_target_tokens_total) - tokens))
[ $tokens -gt 15 ] && [ $tokens -lt 3000000 ] || fail "$tokens tokens, of a stream that was left and 15 others"
# Scores and beams, which cannot join, have their turn although one stream follows the other.
begin 7 "${endless//3000000/2000}"
[ "$(curl -s -o answer.json -w '%{http_code}' -H 'Content-Type: application/json' -d '{"text": "The cat", "method": "beam", "max_tokens": 3}' "$url/generate")" = 200 ] ||
  fail "a beam beside a stream: $(cat answer.json)"
exec 7>&-
# A stream goes on to its end when the server stops.
begin 8 "${endless//3000000/3000}"
first 8
kill -TERM $server
timeout 120 grep -q 'data: \[DONE\]' <&8 || fail "a stream did not end before the server"
exec 8>&-
wait $server || fail "the server ended with $?: $(cat server.txt)"
server=""

# A client that does not read: its stream ends when the buffer is full, and nobody waits for it.
start --max-tokens 3000000 --stream-bytes 1024
url=http://127.0.0.1:$port
begin 6 "${endless%\}}, \"logprobs\": 0}"
good '{"prompt": "The cat", "max_tokens": 5, "min_tokens": 5}'
within_two_minutes eval '[ "$(ended)" -eq 2 ]' || fail "a stream that is not read goes on"
tokens=$(metric tarn_target_tokens_total)
[ "$tokens" -gt 5 ] && [ "$tokens" -lt 3000000 ] || fail "$tokens tokens, of a stream that is not read and 5 others"
exec 6>&-
good '{"prompt": "The cat", "max_tokens": 5}'
stop

# A running batch has at most --batch requests: the second waits for the end of the first.
start --max-tokens 3000000 --timeout 600 --batch 1 --stream-bytes 1000000000 --max-body 100000 --max-pending-bytes 1000000
url=http://127.0.0.1:$port
begin 9 "${endless//3000000/2000}"
first 9
good '{"prompt": "The cat", "max_tokens": 5}'
[ "$(curl -s "$url/metrics" | sed -n 's/^tarn_running_texts_bucket{le="1"} //p')" = 2 ] || fail "more than one request runs: $(curl -s "$url/metrics")"
exec 9>&-
# One that is not read ends when those of all clients take --max-pending-bytes.
begin 9 "${endless%\}}, \"logprobs\": 0}"
within_two_minutes eval '[ "$(ended)" -eq 3 ]' || fail "a stream that is not read goes on beyond --max-pending-bytes"
tokens=$(metric tarn_target_tokens_total)
[ "$tokens" -gt 5 ] && [ "$tokens" -lt 1000000 ] || fail "$tokens tokens of a stream that is not read"
exec 9>&-
stop

# Tokens, each with its rate.
printf 'key\n\nother\n' >tokens
start --token-file tokens --rate 2
url=http://127.0.0.1:$port
grep -q 'must carry one of 2 tokens' server.txt || fail "the number of tokens: $(cat server.txt)"
[ "$(ask '{"prompt": "a"}')" = 401 ] || fail "no token is needed"
is '[.error.type, .error.code]' '["invalid_request_error","invalid_api_key"]'
with() {  # TOKEN: the code
  curl -s -D head.txt -o answer.json -w '%{http_code}' -H "Authorization: Bearer $1" -H 'Content-Type: application/json' -d '{"prompt": "a"}' "$url/v1/completions"
}
# Two at once, one more every 30 s: on a busy machine these requests may take that long.
rated() {
  local begun=$SECONDS codes
  codes="$(with key) $(with key) $(with key) $(with other) $(with key)"
  [ $((SECONDS - begun)) -lt 25 ] || return 0
  [ "$codes" = '200 200 429 200 429' ] || fail "rates: $codes $(cat answer.json)"
  is '[.error.type, .error.code]' '["rate_limit_error","rate_limit_exceeded"]'
  grep -qiE '^Retry-After: ([1-9]|[12][0-9]|30|31).$' head.txt || fail "when to try again: $(cat head.txt)"
}
rated
[ "$(with oth)" = 401 ] || fail "a part of a token is enough"
[ "$(curl -s -o answer.json -w '%{http_code}' -H 'Authorization: Bearer key' "$url/v1/models")" = 200 ] || fail "the list of models has a rate"
stop
# A rate below 1 is one request after another, however long that takes.
start --token-file tokens --rate 1e-9
url=http://127.0.0.1:$port
[ "$(with key) $(with key)" = '200 429' ] || fail "a small rate: $(cat answer.json)"
grep -qiE '^Retry-After: 1000000000.$' head.txt || fail "a small rate: $(cat head.txt)"
stop
printf '\n' >tokens
refuse 1 'the token is empty' "$TARN" serve run --port 0 --token-file tokens
printf 'a b\n' >tokens
refuse 1 'no blanks' "$TARN" serve run --port 0 --token-file tokens
seq 257 >tokens
refuse 1 'more than 256 tokens' "$TARN" serve run --port 0 --token-file tokens
