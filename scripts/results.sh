#!/usr/bin/env bash
# Recomputes the pages of results/ from the records there, and the paragraphs of documents that quote them.
#   results.sh [--check] [NAME...]
# results/NAME has a record (`tarn record`), question.md, and perhaps published.tsv: variant and published figures, or fits.txt:
# scaling laws to fit, a line for each: the name of its figure (FIGURE.svg beside the page) and options of `tarn fit`, quoted
# as in a shell. Its page is results/NAME/README.md. A document has a summary between the lines "<!-- results/NAME -->" and
# "<!-- end -->", or with "<!-- results/NAME: VARIANT... -->" a table of these variants and the baseline. --check changes
# nothing and fails where a page, a figure or a document differs from its record.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
tarn=${TARN:-$root/build/release/tarn}
results=${TARN_RESULTS:-$root/results}
documents=${TARN_DOCUMENTS:-$root/docs $root/README.md}
check=no
fail() { echo "results.sh: $*" >&2; exit 2; }
[ "${1:-}" != --check ] || { check=yes; shift; }
[ -x "$tarn" ] || fail "$tarn is no program; build it with ./run build, or name it in TARN"
command -v jq >/dev/null || fail "jq is missing"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
code=0

# put NEW FILE: replaces a file by a new version, or says that it differs.
put() {
  cmp -s "$1" "$2" && return
  if [ $check = yes ]; then
    echo "$2 is not what its records say; ./run results makes it so:" >&2
    diff -u "$2" "$1" | head -n 20 >&2 || true
    code=1
  else
    cp "$1" "$2"
    echo "$2"
  fi
}

# page NAME FORM [VARIANTS]: from the comparison of its record.
page() {
  local published=null
  [ ! -f "$results/$1/published.tsv" ] ||
    published=$(jq -R -s 'split("\n") | map(select(. != "") | split("\t") | {key: .[0], value: .[1]}) | from_entries' "$results/$1/published.tsv")
  jq -r -L "$root/examples/variants" --argjson published "$published" --arg form "$2" --arg rows "${3:-}" -f "$root/results/page.jq" "$work/$1.json"
}

# fits NAME FORM: the laws of its record; FORM "page": with figures, which it makes, "summary": their differences alone.
fits() {
  local figure words options between=''
  [ -f "$results/$1/fits.txt" ] || return 0
  while read -r figure words; do
    [ -n "$figure" ] || continue
    eval "options=($words)"
    if [ "$2" = page ]; then
      (cd "$root" && "$tarn" fit "$results/$1" "${options[@]}" --svg "$work/$figure.svg") >"$work/fit.txt" || exit 1
      put "$work/$figure.svg" "$results/$1/$figure.svg" >&2
      printf '\n    tarn fit %s\n\n' "results/$1 $words"
      # The options leave configurations out on purpose.
      sed '/^note: .* is in no family$/d; s/^/    /; s/ *$//' "$work/fit.txt"
      printf '\n![%s](%s.svg)\n' "the laws in this table, and the runs that they are fitted to" "$figure"
    else
      (cd "$root" && "$tarn" fit "$results/$1" "${options[@]}" --json) >"$work/fit.json" || exit 1
      printf '%s' "$between"
      between=$'\n'
      jq -r -f "$root/results/fit.jq" "$work/fit.json" || exit 1
    fi
  done <"$results/$1/fits.txt"
}

claims=("$@")
[ $# -gt 0 ] || for file in "$results"/*/sweep.json; do [ ! -e "$file" ] || claims+=("$(basename "$(dirname "$file")")"); done
for name in ${claims[@]+"${claims[@]}"}; do
  [ -f "$results/$name/sweep.json" ] || fail "results/$name holds no record: it has no sweep.json"
  [ -f "$results/$name/question.md" ] || fail "results/$name/question.md is missing"
  (cd "$root" && "$tarn" compare "$results/$name" --json) >"$work/$name.json" || exit 1
  { cat "$results/$name/question.md"; echo; page "$name" page; fits "$name" page; } >"$work/page"
  sed -i "s|$results/|results/|g" "$work/page"
  put "$work/page" "$results/$name/README.md"
done

# Documents that quote a record.
# shellcheck disable=SC2086
quoting=$(grep -l -r '^<!-- results/' --include='*.md' $documents || true)
while read -r file; do
  [ -n "$file" ] || continue
  cp "$file" "$work/document"
  while IFS= read -r quote; do
    name=${quote%%:*} rows=${quote#"$name"}
    read -r rows <<<"${rows#:}" || true
    [ -f "$work/$name.json" ] || { [ $# -gt 0 ] && continue; fail "$file quotes results/$name, which is no record"; }
    if [ -n "$rows" ]; then
      page "$name" rows "$rows" || fail "$file quotes $rows of results/$name"
    elif [ -f "$results/$name/fits.txt" ]; then
      fits "$name" summary
    else
      page "$name" summary
    fi >"$work/quoted"
    if [ -n "$rows" ]; then cat "$work/quoted"; else fold -s -w 124 "$work/quoted" | sed 's/ *$//'; fi >"$work/text"
    awk -v begin="<!-- results/$quote -->" -v text="$work/text" '
      $0 == begin { print; print ""; while ((getline line < text) > 0) print line; print ""; inside = 1; next }
      inside && $0 == "<!-- end -->" { inside = 0 }
      !inside { print }
      END { exit inside }' "$work/document" >"$work/next" || fail "$file: <!-- results/$quote --> has no <!-- end -->"
    mv "$work/next" "$work/document"
  done < <(sed -n 's|^<!-- results/\(.*\) -->$|\1|p' "$file")
  put "$work/document" "$file"
done <<<"$quoting"
exit $code
