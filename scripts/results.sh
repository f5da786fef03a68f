#!/usr/bin/env bash
# Recomputes the pages of results/ from the records there, what documents quote from them, and the expected scores of recipes.
#   results.sh [--check] [NAME...]
# results/NAME has a record (`tarn record`), question.md, and perhaps published.tsv: variant and published figures, or fits.txt:
# scaling laws to fit, a line for each: the name of its figure (FIGURE.svg beside the page) and options of `tarn fit`, quoted
# as in a shell. Its page is results/NAME/README.md. A document has a summary between the lines "<!-- results/NAME -->" and
# "<!-- end -->", with "<!-- results/NAME: VARIANT... -->" a table of these variants and the baseline, or with "<!-- results -->"
# a table of all folders, in docs/. A recipe has its scores "from: results/NAME, VARIANT". --check changes nothing and fails where a page, a
# figure, a document or a recipe differs from its record. Any other figure about quality in a document is refused, unless a line
# "<!-- figures: SOURCE -->" before it, which holds up to the next heading, says where it comes from.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
tarn=${TARN:-$root/build/release/tarn}
results=${TARN_RESULTS:-$root/results}
documents=${TARN_DOCUMENTS:-$root/README.md $root/CONTRIBUTING.md $root/docs $root/examples $root/src $root/tools $root/tests}
recipes=${TARN_RECIPES:-$root/examples/recipes}
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

# all: a table of the folders.
all() {
  local question name state page
  echo '| question | runs |'
  echo '| --- | --- |'
  for question in "$results"/*/question.md; do
    name=$(basename "$(dirname "$question")") state='not begun'
    [ ! -f "$work/$name.json" ] || state=$(jq -r '
      [.configurations[].runs[]] as $runs | ($runs | map(select(.state == "finished")) | length) as $finished |
      if .sequential then
        [.configurations[] | .sequential | select(.)] as $comparisons |
        "\($finished) runs, \($comparisons | map(select(.decision != "open")) | length) of \($comparisons | length) comparisons decided or closed"
      else "\($finished) of \($runs | length) finished" end' "$work/$name.json")
    [ -f "$work/$name.json" ] && page=README.md || page=question.md
    printf '| [%s](../results/%s/%s) | %s |\n' "$(sed -n '1s/^# //p' "$question")" "$name" $page "$state"
  done
}

# quality FILE: sentences, and rows of tables with their heads, that have figures about quality, are no code and no quotes, and
# have no source.
quality() {
  awk '
    function judge(text) {
      gsub(/95 %|[0-9.]+e-[0-9]+|[0-9]+\.[0-9]+\.[0-9]+|arXiv [0-9.]+|(sacreBLEU|CTranslate2) [0-9.]+/, "", text)
      if (!source && text ~ /BLEU|[Pp]erplexit|[Aa]ccurac|BLiMP|AUCC|chrF|(^|[^_])nll|NRMSE|(^|[^a-z])nats|[Bb]its.(a |per )?(char|byte)|F1([^0-9]|$)|loss of [0-9]/ &&
          text ~ /[0-9]\.[0-9]|[0-9] (%|points|per cent)|(BLEU|loss) (of )?(about )?[0-9]/) print first ": " substr(text, 1, 100)
    }
    function flush(  sentences, count, i) {
      count = split(text, sentences, /[.!?] /)
      for (i = 1; i <= count; i++) judge(sentences[i])
      text = head = ""
    }
    /^```/ { fenced = !fenced }
    /^<!-- results/ { flush(); quoted = 1 }
    /^<!-- end -->/ { quoted = 0; next }
    /^<!-- figures: .* -->$/ { flush(); source = 1; next }
    /^#/ && !fenced { flush(); source = 0; next }
    /^$/ { flush(); next }
    quoted || fenced || /^    / { next }
    /^ *([-*]|[0-9]+\.) / { flush() }
    { first = FNR; line = $0; gsub(/`[^`]*`/, "", line) }
    /^\|/ { if (head == "") head = line; else judge(head " " line); next }
    { text = text " " line }
    END { flush() }' "$1"
}

claims=("$@")
[ $# -gt 0 ] || for folder in "$results"/*/; do
  # A queue writes sweep.json when it starts the first run.
  [ ! -f "$folder/sweep.json" ] || ! compgen -G "$folder/*/seed-*" >"$work/runs" || claims+=("$(basename "$folder")")
done
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
quoting=$(grep -l -r '^<!-- results[ /]' --include='*.md' $documents || true)
while read -r file; do
  [ -n "$file" ] || continue
  cp "$file" "$work/document"
  while IFS= read -r quote; do
    name=${quote%%:*} rows=${quote#"$name"}
    name=${name#/}
    read -r rows <<<"${rows#:}" || true
    [ -z "$quote" ] || [ -f "$work/$name.json" ] || { [ $# -gt 0 ] && continue; fail "$file quotes results/$name, which is no record"; }
    if [ -z "$quote" ]; then
      [ $# -eq 0 ] || continue  # a table of all needs the records of all
      all
    elif [ -n "$rows" ]; then
      page "$name" rows "$rows" || fail "$file quotes $rows of results/$name"
    elif [ -f "$results/$name/fits.txt" ]; then
      fits "$name" summary
    else
      page "$name" summary
    fi >"$work/quoted"
    if [ -z "$quote$rows" ] || [ -n "$rows" ]; then cat "$work/quoted"; else fold -s -w 124 "$work/quoted" | sed 's/ *$//'; fi >"$work/text"
    awk -v begin="<!-- results$quote -->" -v text="$work/text" '
      $0 == begin { print; print ""; while ((getline line < text) > 0) print line; print ""; inside = 1; next }
      inside && $0 == "<!-- end -->" { inside = 0 }
      !inside { print }
      END { exit inside }' "$work/document" >"$work/next" || fail "$file: <!-- results$quote --> has no <!-- end -->"
    mv "$work/next" "$work/document"
  done < <(sed -n 's|^<!-- results\(/.*\)\{0,1\} -->$|\1|p' "$file")
  put "$work/document" "$file"
done <<<"$quoting"

# shellcheck disable=SC2086
while read -r file; do
  found=$(quality "$file")
  [ -z "$found" ] && continue
  sed "s|^|${file#"$root"/}:|" <<<"$found" >&2
  echo "results.sh: ${file#"$root"/} has figures about quality that are quoted from no record and have no source" >&2
  code=1
done < <(find $documents -name '*.md' | sort)

# Expected scores of recipes, one a seed.
for file in "$recipes"/*.yaml; do
  [ -f "$file" ] || continue
  from=$(sed -n 's|^  from: results/||p' "$file")
  [ -n "$from" ] || continue
  name=${from%%, *} variant=${from#*, }
  [ -f "$work/$name.json" ] || { [ $# -gt 0 ] && continue; fail "$file has its scores from results/$name, which is no record"; }
  scores=$(jq -r --arg variant "$variant" '[.configurations[] | select(.name == $variant) | .runs[] | .test_score | select(.) | . * 10000 | round / 10000 | tostring] |
    if . == [] then error("no variant \($variant) with scores") else join(", ") end' "$work/$name.json") || fail "$file has its scores from $from"
  sed "s|^  scores: .*|  scores: [$scores]|" "$file" >"$work/recipe"
  put "$work/recipe" "$file"
done
exit $code
