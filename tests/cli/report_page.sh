#!/usr/bin/env bash
# The pages of tarn report and of tarn dynamics in headless Chromium: they load without errors, wide and narrow, light
# and dark; tables and pictures have a size; no text in a picture overlaps another or exceeds it. On a phone letters
# stay readable, and elements wider than the window scroll, not the page.
set -euo pipefail
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
  echo "report_page.sh: skipped, there is no Chromium"
  exit 77
fi
. "$(dirname "$0")/../report_runs.sh"
"$TARN" report sweep --output out --resamples 100 >/dev/null || fail "report"

# The page has no script; the test adds one that measures the layout and writes the result at the end of the page.
cat >measure.js <<'END'
function overlaps(svg) {
  const found = [];
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  texts.forEach(([text, r], i) => {
    if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1)
      found.push('outside: ' + text);
    for (const [other, s] of texts.slice(0, i)) {
      const across = Math.min(r.right, s.right) - Math.max(r.left, s.left);
      const down = Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top);
      if (across > 2 && down > 4) found.push('overlap: ' + text + ' / ' + other);
    }
  });
  return found;
}
window.addEventListener('load', () => {
  const lines = [];
  for (const e of document.querySelectorAll('figure svg, table')) {
    const r = e.getBoundingClientRect();
    if (!(r.width > 100 && r.height > 60)) lines.push('small: ' + e.outerHTML.slice(0, 80));
  }
  for (const svg of document.querySelectorAll('figure svg')) {
    lines.push(...overlaps(svg));
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    for (const text of svg.querySelectorAll('text'))
      if (text.getAttribute('font-size') * scale < 9) lines.push('too small to be read: ' + text.textContent);
  }
  for (const e of document.querySelectorAll('.picture, .wide')) {
    if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX != 'auto') lines.push('cut: ' + e.innerHTML.slice(0, 80));
    if (innerWidth >= 1200 && e.matches('.wide') && e.scrollWidth > e.clientWidth + 1) lines.push('a table does not fit: ' + e.textContent.slice(0, 80));
    const first = e.querySelector('tbody th');
    if (first && first.getBoundingClientRect().width > 0.5 * e.clientWidth) lines.push('names leave no room: ' + first.textContent);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) lines.push('wider than the window');
  const scripts = performance.getEntriesByType('resource').length;
  if (scripts) lines.push('loads ' + scripts + ' files');
  const out = document.createElement('pre');
  out.id = 'measured';
  out.textContent = ['figures ' + document.querySelectorAll('figure svg').length,
    'tables ' + document.querySelectorAll('table').length,
    'background ' + getComputedStyle(document.body).backgroundColor,
    'width ' + innerWidth,
    'used ' + Math.max(...[...document.querySelectorAll('figure')].map(f => f.getBoundingClientRect().right)),
    'ink ' + getComputedStyle(document.querySelector('figure svg text')).color,
    'problems ' + lines.length, ...lines].join('\n');
  document.body.append(out);
});
END
measured() { sed '/<\/main><\/body><\/html>/d' "$1"; echo '</main><script>'; cat measure.js; echo '</script></body></html>'; }
measured out/report.html >page.html

page=page.html tables=7
show() {  # NAME WIDTH FLAG...: leaves NAME.txt, what the script measured
  local name=$1 width=$2
  shift 2
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$PWD/profile" \
    --enable-logging=stderr --window-size="$width,1000" "$@" --dump-dom "file://$PWD/$page" >dom.html 2>console.txt ||
    fail "$name: the browser failed: $(tail -5 console.txt)"
  ! grep 'CONSOLE' console.txt || fail "$name: messages on the console"
  sed -n '/<pre id="measured">/,/<\/pre>/p' dom.html | sed 's/<pre id="measured">//; s/<\/pre>.*//' >"$name.txt"
  grep -qx 'problems 0' "$name.txt" || fail "$name: $(cat "$name.txt")"
  grep -qx "tables $tables" "$name.txt" || fail "$name: not $tables tables: $(cat "$name.txt")"
}
show wide 1200
show narrow 600
show huge 1920
show dark 1280 --blink-settings=preferredColorScheme=0
[ "$(sed -nE 's/^used ([0-9]+).*/\1/p' huge.txt)" -gt 1700 ] || fail "the width of a large window is not used: $(cat huge.txt)"
# The browser has no window as narrow as a phone's, but a frame in one may be.
page=phone.html
measured out/report.html >inner.html
cat >phone.html <<'END'
<body><iframe id="phone" src="inner.html" style="width:390px;height:800px;border:0"></iframe><pre id="measured"></pre><script>
window.addEventListener('load', () => {
  document.getElementById('measured').textContent = document.getElementById('phone').contentDocument.getElementById('measured').textContent;
});
</script></body>
END
show phone 1280 --allow-file-access-from-files
grep -qx 'width 390' phone.txt || fail "not as wide as a phone: $(cat phone.txt)"
[ "$(sed -nE 's/^figures ([0-9]+)/\1/p' wide.txt)" -ge 7 ] || fail "figures are missing: $(cat wide.txt)"
grep -qx 'background rgb(255, 255, 255)' wide.txt || fail "light: $(cat wide.txt)"
! grep -q 'background rgb(255, 255, 255)' dark.txt || fail "dark: $(cat dark.txt)"
[ "$(grep '^ink' wide.txt)" != "$(grep '^ink' dark.txt)" ] || fail "figures do not follow the scheme: $(cat dark.txt)"

# The page of tarn dynamics has the same elements.
head -3 corpus/valid.de >three
"$TARN" dynamics sweep/full/seed-1 "sweep/$half/seed-1" model.yaml --input three --map period --first-layer 1 --last-layer 2 --iterations 300 \
  --exponents 3 --over-training --output dynamics >/dev/null 2>error.txt || fail "dynamics: $(cat error.txt)"
page=dynamics.page.html tables=4
measured dynamics/dynamics.html >$page
show dynamics 1200
[ "$(sed -nE 's/^figures ([0-9]+)/\1/p' dynamics.txt)" -ge 20 ] || fail "figures are missing: $(cat dynamics.txt)"
