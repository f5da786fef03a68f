# The page of tarn serve in headless Chromium: it translates, shows source and translations side by side with the
# probability of each token, treats no text as markup, and loads no external resources.
set -u
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "serve_page.sh: skipped, there is no Chromium"; exit 77; }
. "$(dirname "$0")/../tiny_server.sh"
! grep -E 'https?://' "$TARN_SOURCE_DIR/tools/serve/serve_page.html" || fail "the page names other servers"
# The page as rendered by a browser that has run its script.
shown() {  # ADDRESS
  "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --virtual-time-budget=20000 --dump-dom \
    "$1" >page.html 2>browser.txt || fail "the browser: $(tail -n 3 browser.txt)"
}
start
shown "$(cat address.txt)#text=Ein%20Satz.%0A%3Cb%3Ezwei&n_best=2&beam=2&length_penalty=0.5&tokens=true&attention=true"
stop
result=$(sed -n '/id="result"/,/<\/form>/p' page.html)
[ "$(grep -o '<section>' <<<"$result" | wc -l)" -eq 2 ] || fail "not two sentences: $result"
grep -q '<section><div>Ein Satz.</div><div><div><span class="piece" title="[^"]* %"' <<<"$result" || fail "no pieces: $result"
grep -q '&lt;b&gt;zwei' <<<"$result" || fail "text became markup, or went away: $result"
[ "$(grep -o '<div class="attention"><table><tr>' <<<"$result" | wc -l)" -eq 2 ] || fail "not two pictures of attention: $result"
! grep -q 'class="error"' <<<"$result" || fail "an error: $result"
[ "$(grep -o '</small></div>' <<<"$result" | wc -l)" -eq 4 ] || fail "not two translations each: $result"
grep -q '<small id="model">run/checkpoint_[a-z]*.safetensors, fp32</small>' page.html || fail "the page does not name its model: $(grep '<h1>' page.html)"
[ "$(grep -o '<title>.*</title>' page.html)" = "<title>$(sed -n 's/.*<small id="model">\([^,]*\),.*/\1/p' page.html) – tarn</title>" ] ||
  fail "the title: $(grep '<title>' page.html)"
grep -q '<label id="token" hidden' page.html || fail "a field for a token that is not needed"
grep -q '<input id="beam" type="number" min="1" value="1" max="3">' page.html || fail "the beam has another bound: $(grep 'id="beam"' page.html)"

# The languages, if known: by the browser's names if it has them, else as given.
heading() {  # LANGUAGES NAMES [ARGUMENT...]
  local languages=$1 names=$2
  shift 2
  start --languages "$languages" "$@"
  shown "$(cat address.txt)"
  stop
  grep -qE "<small id=\"model\">run/checkpoint_[a-z]*\.safetensors, $names</small>" page.html ||
    fail "--languages $languages $*: $(grep '<h1>' page.html)"
}
heading de,en 'German to English, fp32'
heading pt-BR,abcd 'Brazilian Portuguese to abcd, int8' --precision int8
