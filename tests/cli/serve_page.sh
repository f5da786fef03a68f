# The page of tarn serve in headless Chromium: it translates, shows source and translations side by side with the
# probability of each token, takes no text for markup, and loads nothing from elsewhere.
set -u
. "$(dirname "$0")/../helpers.sh"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "serve_page.sh: skipped, there is no Chromium"; exit 77; }
! "$TARN" serve nowhere 2>&1 | grep -q "no libmicrohttpd" || { echo "serve_page.sh: skipped, this build has no libmicrohttpd"; exit 77; }
! grep -E 'https?://' "$TARN_SOURCE_DIR/tools/serve/serve_page.html" || fail "the page names other servers"
"$TARN" corpus --output corpus --sentences 100 --held-out 10 || fail "corpus"
"$TARN" vocab --type whitespace --size 300 --output vocab corpus/train.de corpus/train.en >vocab.txt 2>&1 || fail "vocab"
"$TARN" prepare --vocab vocab --source corpus/train.de --target corpus/train.en --output train >/dev/null 2>&1 || fail "prepare"
cat >model.yaml <<'END_MODEL'
model: { d_model: 16, embeddings: all, max_length: 20 }
encoder: { layers: L }
decoder: { layers: L }
kinds: { L: { mixer: attention, heads: 2, ffn: 32 } }
data: { vocab: vocab, train: train }
train: { max_updates: 5, max_tokens: 500, threads: 1 }
translate: { beam: 3, max_len_a: 0, max_len_b: 5 }
END_MODEL
"$TARN" train model.yaml --run run >train.txt 2>&1 || fail "train: $(tail -n 3 train.txt)"
"$TARN" serve run --port 0 --threads 1 >address.txt 2>server.txt &
server=$!
trap 'kill -KILL $server 2>/dev/null' EXIT
within_two_minutes eval '[ -s address.txt ] || gone $server'
"$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --virtual-time-budget=20000 --dump-dom \
  "$(cat address.txt)#text=Ein%20Satz.%0A%3Cb%3Ezwei&n_best=2&beam=2&length_penalty=0.5&tokens=true&attention=true" >page.html 2>browser.txt ||
  fail "the browser: $(tail -n 3 browser.txt)"
kill -TERM $server
wait $server || fail "the server ended with $?: $(cat server.txt)"
trap - EXIT
shown=$(sed -n '/id="result"/,/<\/form>/p' page.html)
[ "$(grep -o '<section>' <<<"$shown" | wc -l)" -eq 2 ] || fail "not two sentences: $shown"
grep -q '<section><div>Ein Satz.</div><div><div><span class="piece" title="[^"]* %"' <<<"$shown" || fail "no pieces: $shown"
grep -q '&lt;b&gt;zwei' <<<"$shown" || fail "text became markup, or went away: $shown"
[ "$(grep -o '<div class="attention"><table><tr>' <<<"$shown" | wc -l)" -eq 2 ] || fail "not two pictures of attention: $shown"
! grep -q 'class="error"' <<<"$shown" || fail "an error: $shown"
[ "$(grep -o '</small></div>' <<<"$shown" | wc -l)" -eq 4 ] || fail "not two translations each: $shown"
grep -q '<small id="model">run/checkpoint_[a-z]*.safetensors, fp32</small>' page.html || fail "the page does not name its model: $(grep '<h1>' page.html)"
grep -q '<label id="token" hidden' page.html || fail "a field for a token that is not needed"
grep -q '<input id="beam" type="number" min="1" value="1" max="3">' page.html || fail "the beam has another bound: $(grep 'id="beam"' page.html)"
