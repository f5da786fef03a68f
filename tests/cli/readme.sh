#!/usr/bin/env bash
# README.md is correct: its files exist, its commands have their options, and the descriptions that it trains read the
# files that it makes. The same holds for the commands in docs/ and the pages to which parts have moved: docs/README.md
# lists all pages, docs/training.md pastes the plan printed by tarn, docs/data.md trains on bytes, docs/design.md names
# the folders of the source.
set -euo pipefail
. "$(dirname "$0")/../helpers.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
readme=$root/README.md
planned=$root/docs/training.md

# The pasted plan: the lines under "$ tarn plan ..." appear in the output in that order; "..." stands for any lines. It
# is for kernels without AVX-512, which every machine can plan.
command=$(sed -n 's/^    \$ tarn \(plan .*\)/\1/p' "$planned")
[ "$(wc -l <<<"$command")" -eq 1 ] && [ -n "$command" ] || fail "docs/training.md has not one plan: $command"
# shellcheck disable=SC2086
(cd "$root" && TARN_ISA=portable "$TARN" $command) >printed.txt || fail "tarn $command"
awk '/^    \$ tarn plan /{ on = 1; next } on && !/^    / && !/^$/ { exit } on { sub(/^    /, ""); print }' "$planned" >pasted.txt
[ "$(wc -l <pasted.txt)" -gt 20 ] || fail "the pasted plan is short: $(cat pasted.txt)"
at=0
while IFS= read -r line; do
  [ -n "$line" ] && [ "$line" != ... ] || continue
  found=$(awk -v at="$at" -v line="$line" 'NR > at { sub(/ +$/, ""); if ($0 == line) { print NR; exit } }' printed.txt)
  [ -n "$found" ] || fail "docs/training.md pastes what tarn $command does not print (any more): $line
It prints: $(cat printed.txt)"
  at=$found
done <pasted.txt

# The project files that it names, and those named by the pages of docs/ that list pages and folders.
names() { grep -oE '(docs|examples|scripts|src|include|tests|bench|tools|results)/[A-Za-z0-9_./-]*[A-Za-z0-9_]' "$@" | sort -u; }
names "$readme" >named.txt
[ "$(wc -l <named.txt)" -gt 20 ] || fail "few files are named: $(cat named.txt)"
names -h "$root/docs/README.md" "$root/docs/design.md" "$root/docs/data.md" "$root/docs/install.md" >>named.txt
while IFS= read -r path; do [ -e "$root/$path" ] || fail "README.md or docs/ name $path, which is not there"; done <named.txt
grep -oE '^\| `[a-z-]+\.md`(, `[a-z-]+\.md`)*' "$root/docs/README.md" | grep -oE '[a-z-]+\.md' | while IFS= read -r page; do
  [ -e "$root/docs/$page" ] || fail "docs/README.md names docs/$page, which is not there"
done
for page in "$root"/docs/*.md; do
  [ "${page##*/}" = README.md ] || grep -q "^| .*\`${page##*/}\`" "$root/docs/README.md" || fail "docs/README.md does not list docs/${page##*/}"
done

# All commands shown in it and in the pages have the options shown. Subcommands have their own options.
sed -n 's/^    .*\(tarn [a-z][a-z0-9-]* .*\)/\1/p' "$readme" "$root"/docs/*.md | sed 's/  #.*//' | grep -v '^tarn plan\b.*\.\.\.' | grep '^tarn [a-z0-9-]* .* --' >commands.txt
[ "$(wc -l <commands.txt)" -gt 100 ] || fail "few commands are shown: $(cat commands.txt)"
while read -r _ word rest; do
  case $word in series | recipe) word="$word ${rest%% *}" ;; esac
  # shellcheck disable=SC2086
  [ -e "help-$word.txt" ] || "$TARN" $word --help >"help-$word.txt" 2>error.txt || fail "README.md or docs/ show tarn $word: $(cat error.txt)"
  for option in $(grep -oE -- '(^| )--[a-z][a-z0-9-]*' <<<"$rest"); do
    grep -qE -- "(^|[ ,])$option( |\$)" "help-$word.txt" || fail "tarn $word has no $option, which README.md or docs/ show: $rest"
  done
done <commands.txt

# Its trainings read the folders that it makes: the vocabulary and both shards are outputs of earlier commands.
sed -n 's/.*--output \(data\/[^ ]*\).*/\1/p' "$readme" "$root/docs/data.md" | sort -u >made.txt
grep -ohE '^    tarn train examples/[^ ]+\.yaml' "$readme" "$root/docs/data.md" | awk '{ print $3 }' | sort -u >trained.txt
[ "$(wc -l <trained.txt)" -ge 4 ] || fail "few descriptions are trained: $(cat trained.txt)"
{ cat trained.txt; echo examples/babylm/gpt2.yaml; } | sort -u | while IFS= read -r file; do
  for key in vocab train valid; do
    path=$(awk -v key="$key:" '/^data:/ { on = 1; next } /^[a-z]/ { on = 0 } on && $1 == key { print $2 }' "$root/$file")
    grep -qxF "$path" made.txt || fail "$file reads $path, which neither README.md nor docs/data.md makes: $(cat made.txt)"
  done
done
