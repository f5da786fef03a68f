# Shared by all test scripts; each runs in its own folder (run_script.sh). Source it with: . "$(dirname
# "$0")/../helpers.sh"
fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

# refuse CODE PATTERN COMMAND...: the command must exit with this code and print one line with the pattern.
refuse() {
  local code=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>error.txt || got=$?
  [ $got -eq "$code" ] || fail "$*: exit code $got, expected $code: $(cat error.txt)"
  [ "$(wc -l <error.txt)" -eq 1 ] || fail "$*: not one line: $(cat error.txt)"
  grep -q -- "$pattern" error.txt || fail "$*: no \"$pattern\" in: $(cat error.txt)"
}

# exactly CODE LINE COMMAND...: the command must exit with this code and print only this line, or nothing if it is
# empty.
exactly() {
  local code=$1 line=$2 got=0
  shift 2
  "$@" >out.txt 2>error.txt || got=$?
  [ $got -eq "$code" ] || fail "$*: exit code $got, expected $code: $(cat error.txt)"
  diff <(printf '%s' "$line${line:+$'\n'}") error.txt >difference.txt || fail "$*: another line: $(cat difference.txt)"
}

# within_two_minutes COMMAND...: waits until the command succeeds, and fails if it never does. That is enough on a busy
# machine; an idle one takes a moment.
within_two_minutes() {
  local end=$((SECONDS + 120))
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.02
  done
}

# catches PID NUMBER: whether the process handles this signal now; there is no other way to know before main() says so.
catches() {
  local mask
  mask=$(sed -n 's/^SigCgt:[[:space:]]*/0x/p' "/proc/$1/status" 2>/dev/null) && [ -n "$mask" ] &&
    [ $((mask >> ($2 - 1) & 1)) -eq 1 ]
}

# gone PID: whether a process started by this script has ended.
gone() { ! kill -0 "$1" 2>/dev/null; }
