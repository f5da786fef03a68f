# tarn translate: texts that a translation must contain, coverage penalty and alignment, against translation.json of
# tests/golden (make_translation.py), and what is refused.
set -u
. "$(dirname "$0")/../helpers.sh"
golden="$TARN_SOURCE_DIR/tests/golden"
translate() { "$TARN" translate "$@" --threads 1 2>error.txt || fail "translate $*: $(tail -n 2 error.txt)"; }
wanted() { jq "$@" "$golden/translation.json"; }

for model in swish relu; do
  beam=4  # of the search that transformers did
  [ $model = swish ] || beam=3
  "$TARN" import-marian "$golden/marian_model/$model" --output $model || fail "import $model"
  # A wide beam finds the best of all translations with the texts, as options and as columns, in a batch and alone.
  wanted -r ".$model.forced[] | [.text, .forced[]] | @tsv" >columns.txt
  for ((i = 0; i < $(wc -l <columns.txt); i++)); do
    wanted -c ".$model.forced[$i].best[] | [.ids, .score]" >best.txt
    longest=$(wanted ".$model.forced[$i].longest")
    sed -n $((i + 1))p columns.txt >column.txt
    translate $model --beam 400 --n-best 2 --length-penalty 1 --max-len-a 0 --max-len-b "$longest" --force-columns --json --tokens <column.txt >out.json
    jq -c '.hypotheses[] | [[.pieces[:-1][][1]], .score]' out.json | paste -d' ' - best.txt |
      jq -s -e 'length == 4 and all(_nwise(2); .[0][0] == .[1][0] and (.[0][1] - .[1][1] | fabs) < 2e-5)' >/dev/null ||
      fail "$model: $(cat column.txt) gives $(jq -c '.hypotheses[] | [.pieces, .score]' out.json), not $(cat best.txt)"
    options=()
    while IFS= read -r text; do options+=(--force-words "$text"); done < <(wanted -r ".$model.forced[$i].forced[]")
    cut -f 1 column.txt | translate $model --beam 400 --n-best 2 --length-penalty 1 --max-len-a 0 --max-len-b "$longest" "${options[@]}" --json --tokens |
      cmp -s - out.json || fail "$model: ${options[*]} gives other translations than columns"
  done
  # Beam search as by default: every translation has its texts, and neighbours and threads change none.
  jq -r '.translations[].text' "$golden/marian_model/$model/cases.json" | head -n 12 >lines.txt
  awk -F'\t' '{ print $0 (NR % 3 == 0 ? "\tball\t\tsun" : NR % 3 == 1 ? "\tThe old" : "") }' lines.txt >columns.txt
  translate $model --force-columns --beam 5 <columns.txt >forced.txt
  awk 'NR % 3 == 0 && !(/ball/ && /sun/) || NR % 3 == 1 && !/The old/' forced.txt >missing.txt
  [ ! -s missing.txt ] && [ "$(wc -l <forced.txt)" -eq 12 ] || fail "$model: $(wc -l <forced.txt) lines; without their texts: $(cat missing.txt)"
  translate $model --beam 5 <lines.txt | awk 'NR % 3 == 2' | cmp -s - <(awk 'NR % 3 == 2' forced.txt) || fail "$model: texts change other lines"
  sed -n 6p columns.txt | "$TARN" translate $model --force-columns --beam 5 --threads 2 2>/dev/null | cmp -s - <(sed -n 6p forced.txt) || fail "$model: alone"

  # The attention of translations: what each token attends to most, sums, and what they add to a score.
  for ((i = 0; i < 2; i++)); do
    wanted ".$model.attention[$i]" >case.json
    jq -r .text case.json >line.txt
    translate $model --alignment --json --tokens <line.txt >out.json
    jq -e --slurpfile c case.json '.hypotheses[0] as $h | $c[0] as $c | [$h.pieces[:-1][][1]] == $c.ids and $h.alignment == $c.most and
      (.source_pieces | length) == ($c.sums | length) and
      ([$h.attention | transpose[] | add] | [., $c.sums] | transpose | all(.[]; .[0] - .[1] | fabs < 2e-4))' out.json >/dev/null ||
      fail "$model: attention $(jq -c '.hypotheses[0] | [.alignment, (.attention | [transpose[] | add])]' out.json), not $(jq -c '[.most, .sums]' case.json)"
    translate $model --alignment <line.txt | cut -f 2 >pairs.txt
    jq -r '[.most[:-1] | to_entries[] | "\(.value)-\(.key)"] | join(" ")' case.json | cmp -s - pairs.txt || fail "$model: pairs $(cat pairs.txt)"
    translate $model --n-best $beam --json --tokens <line.txt >plain.json
    translate $model --n-best $beam --json --tokens --coverage-penalty 0.7 --alignment <line.txt >covered.json
    jq -s -e --slurpfile c case.json 'def ids: [.pieces[][1]]; def plain($h): [.[0].hypotheses[] | select(ids == ($h | ids)).score][0];
      def sums: [.attention | transpose[] | add | if . > 1 then 1 else . end | log] | add;
      . as $both | .[1].hypotheses as $covered | $c[0] as $c | ([.[] | [.hypotheses[] | ids] | sort] | .[0] == .[1]) and
      ($covered | [.[].score] | . == (sort | reverse)) and
      all($covered[]; . as $h | .score - ($both | plain($h)) - 0.7 * ($h | sums) | fabs < 1e-4) and
      ([$covered[] | select(ids[:-1] == $c.ids) | sums - $c.coverage | fabs < 1e-3] == [true])' \
      plain.json covered.json >/dev/null || fail "$model: coverage $(jq -c '.hypotheses[] | [.score, .text]' plain.json covered.json), not $(jq .coverage case.json)"
  done
done

# Alignment beside n-best, of every line; empty ones have none, and those of a prefix are not counted.
{ sed -n 1,2p lines.txt; echo; sed -n 3p lines.txt; } >some.txt
translate relu --alignment --n-best 2 <some.txt >n-best.txt
awk -F ' [|][|][|] ' 'NF != 4 || $1 != 2 && $3 !~ /^([0-9]+-[0-9]+ ?)+$/ || $1 == 2 && $3 != ""' n-best.txt >bad.txt
[ "$(wc -l <n-best.txt)" -eq 7 ] && [ ! -s bad.txt ] || fail "n-best with alignment: $(cat n-best.txt)"
printf '%s\tTwo\n' "$(sed -n 2p lines.txt)" | translate relu --prefixes --alignment --json --tokens |
  jq -e '.hypotheses[0] | .tokens == (.pieces | length) and .tokens == (.alignment | length)' >/dev/null || fail "alignment behind a prefix"
# Texts with the options that go with them: samples and coverage, a prefix that has the text, a penalty.
printf '%s\n' "$(sed -n 2p lines.txt)" | translate relu --samples 4 --n-best 4 --coverage-penalty 1 --alignment >samples.txt
[ "$(wc -l <samples.txt)" -eq 4 ] || fail "samples: $(cat samples.txt)"
printf 'Die\tThe sun\tsun\n' | translate relu --prefixes --force-columns --max-len-a 0 --max-len-b 5 | grep -q '^The sun' || fail "a prefix has the text"
printf 'Die\n' | translate relu --force-words 'The ball' --force-words ball --presence-penalty 1 >out.txt
grep -q 'The ball' out.txt || fail "a penalty: $(cat out.txt)"

refuse_die() { printf 'Regen\n\nDie%b\n' "$2" | refuse "$1" "$3" "$TARN" translate relu "${@:4}"; }
refuse_die 1 '\tball' 'line 3: the forced text "ball" needs 3 tokens, and the translation has at most 2' --force-columns --max-len-a 0 --max-len-b 2
refuse_die 1 '\tball' 'line 3: the forced text "sun", with the others, needs 5 tokens, and the' --force-columns --force-words sun --max-len-a 0 --max-len-b 4
refuse_die 1 '\tball' 'line 3: the forced text "ball" cannot be written: its tokens are forbidden there' --force-columns --banned ball
refuse_die 1 '\tsun\tball ☃' 'line 3: the forced text "ball ☃" has a token that is not in the vocabulary' --force-columns
refuse_die 1 "\\t$(yes ball | head -n 40 | tr '\n' ' ')" 'line 3: with the forced text .* have more than [0-9]* tokens' --force-columns
refuse_die 1 '\tball\xff' 'line 3: invalid UTF-8' --force-columns --strict
refuse_die 2 '' 'the forced text "☃" has a token' --force-words ☃
refuse_die 2 '' 'a forced text has no token' --force-words ''
refuse_die 2 '' 'forced texts need a search with a beam of 2 or more' --force-words ball --beam 1
refuse_die 2 '' 'forced texts need a search with a beam of 2 or more' --force-words ball --samples 2
refuse_die 2 '' 'forced texts exclude groups of the beam' --force-words ball --beam 4 --groups 2
refuse_die 2 '' 'from -100 to 100' --coverage-penalty 101
refuse_die 2 '' 'did you mean --force-words' --force-word ball
exit 0
