# The front door: --help, --version, unknown words, exit codes, output that cannot be written.
set -u
. "$(dirname "$0")/../helpers.sh"
expect() {  # CODE PATTERN ARGUMENT...: runs the program; standard output and error together must match
  local code=$1 pattern=$2 output got
  shift 2
  output=$("$TARN" "$@" 2>&1 </dev/null)
  got=$?
  [ $got -eq "$code" ] || fail "tarn $*: exit code $got, expected $code: $output"
  grep -q -- "$pattern" <<<"$output" || fail "tarn $*: no \"$pattern\" in: $output"
}

expect 0 '^usage: tarn COMMAND' --help
for name in instruction.set threads SentencePiece libyaml Jansson PCRE2 ICU xxHash build; do
  expect 0 "^$name: .*[A-Za-z0-9]" --version
done
expect 0 '^tarn: [0-9]*\.[0-9]*\.[0-9]*$' --version
expect 2 '^usage: tarn COMMAND'
"$TARN" >alone.txt 2>error.txt
"$TARN" --help >help.txt
[ ! -s error.txt ] && cmp -s alone.txt help.txt || fail "tarn without arguments: $(diff alone.txt help.txt) $(cat error.txt)"
expect 2 'unknown command "trian"; did you mean train?' trian
expect 2 'unknown command "--nothing"' --nothing
expect 2 'unknown command ""' ''

commands=$("$TARN" --help | sed -n '/^commands:/,/^$/s/^  \([a-z0-9-]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 28 ] || fail "fewer than 28 commands: $commands"
for command in $commands; do
  expect 0 "^usage: tarn $command " "$command" --help
  expect 2 "^tarn $command: unknown option --no-such-option" "$command" --no-such-option
  expect 2 "^tarn $command: unknown option --hepl; did you mean --help?" "$command" --hepl
  expect 0 "^usage: tarn $command " help "$command"
  expect 0 "^usage: tarn $command " "$command" -h
  "$TARN" "$command" --help >/dev/null 2>error.txt
  [ ! -s error.txt ] || fail "tarn $command --help writes to standard error"
done

# Equivalent words and letters.
expect 0 '^usage: tarn COMMAND' help
expect 2 '^tarn: unexpected argument "nothing"' help train nothing
expect 2 '^tarn series: the first word is generate, train or forecast, not "nothing"' help series nothing
expect 0 '^usage: tarn COMMAND' -h
expect 0 '^usage: tarn series train ' help series train
expect 0 '^tarn: [0-9]' version
expect 0 '^tarn: [0-9]' -v
expect 2 'unknown command "trian"; did you mean train?' help trian
expect 2 'unknown command "versoin"; did you mean version?' versoin
expect 2 'unexpected argument "c"' help series b c
expect 0 '^  -o, --output DIR ' corpus --help
expect 2 '^tarn corpus: --held-out takes a whole number, not "x"' corpus --held-out=x
for words in '-o corpus --sentences=120 --held-out 5' '--sentences 120 -ocorpus --held-out=5' '--held-out 5 --sentences 120 --output=corpus'; do
  # shellcheck disable=SC2086
  expect 0 '' corpus $words
  [ "$(cat corpus/train.de | wc -l)" -eq 120 ] && [ "$(cat corpus/test.de | wc -l)" -eq 5 ] || fail "tarn corpus $words"
  rm -r corpus
done
# Abbreviated options are refused, so that a new option breaks no script.
expect 2 'unknown option --sentence; did you mean --sentences?' corpus --sentence 5
expect 2 'unknown option --held' corpus --held=5
expect 2 'unknown option -x ' corpus -x
expect 2 'unknown option -x ' blimp -qx
expect 2 'unknown option -ü ' corpus -ü
expect 2 'unknown option -你 ' blimp -q你x
expect 2 'unknown option -output; did you mean --output?' corpus -output
expect 2 'unknown option -sentences; did you mean --sentences?' corpus -sentences 5
expect 2 '^tarn corpus: --output needs a value (DIR)' corpus -o
expect 2 '^tarn corpus: --output needs a value (DIR)' corpus --output
expect 2 '^tarn blimp: --quiet takes no value' blimp --quiet=yes a b
expect 2 '^tarn corpus: unexpected argument "--output"' corpus -- --output
expect 2 '^tarn corpus: unexpected argument "-"' corpus -

# --help after everything else does not run the command.
echo text >lines.txt
expect 0 '^usage: tarn vocab ' vocab --type whitespace --output made.vocab lines.txt --help
[ ! -e made.vocab ] || fail "tarn vocab ... --help makes a vocabulary"

if [ -w /dev/full ]; then
  "$TARN" --help >/dev/full 2>error.txt
  [ $? -eq 1 ] || fail "a full disk is not noticed"
  grep -q 'No space left' error.txt || fail "a full disk is not named: $(cat error.txt)"
fi
# A pipe without a reader ends the work silently.
mkfifo pipe
exec 3<>pipe 4>pipe 3<&-
for words in --help --version 'help train' 'corpus --help'; do
  # shellcheck disable=SC2086
  "$TARN" $words >&4 2>error.txt
  code=$?
  [ $code -eq 141 ] && [ ! -s error.txt ] || fail "tarn $words to nobody: $code $(cat error.txt)"
done
(trap '' PIPE; "$TARN" --help >&4 2>error.txt)
code=$?
[ $code -eq 1 ] && [ ! -s error.txt ] || fail "tarn --help to nobody, SIGPIPE ignored: $code $(cat error.txt)"
exec 4>&-
exit 0
