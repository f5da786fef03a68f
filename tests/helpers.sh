# For all test scripts; each runs in a folder of its own (run_script.sh). Source it with: . "$(dirname "$0")/../helpers.sh"
fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

# refuse CODE PATTERN COMMAND...: the command must end with this code and one line that has the pattern.
refuse() {
  local code=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>error.txt || got=$?
  [ $got -eq "$code" ] || fail "$*: exit code $got, expected $code: $(cat error.txt)"
  [ "$(wc -l <error.txt)" -eq 1 ] || fail "$*: not one line: $(cat error.txt)"
  grep -q -- "$pattern" error.txt || fail "$*: no \"$pattern\" in: $(cat error.txt)"
}
