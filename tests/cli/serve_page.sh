# The page of tarn serve in headless Chromium: it translates, shows source and translations side by side with the
# probability of each token, takes no text for markup, and loads nothing from elsewhere.
set -u
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "serve_page.sh: skipped, there is no Chromium"; exit 77; }
. "$(dirname "$0")/../tiny_server.sh"
! grep -E 'https?://' "$TARN_SOURCE_DIR/tools/serve/serve_page.html" || fail "the page names other servers"
start
"$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --virtual-time-budget=20000 --dump-dom \
  "$(cat address.txt)#text=Ein%20Satz.%0A%3Cb%3Ezwei&n_best=2&beam=2&length_penalty=0.5&tokens=true&attention=true" >page.html 2>browser.txt ||
  fail "the browser: $(tail -n 3 browser.txt)"
stop
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
