#!/usr/bin/env bash
# Runs fuzz targets, which the preset `sanitize` builds, and keeps in BUILD what they find.
#   fuzz.sh short BUILD TARGET             one second from the seeds, for the tests; what is found is thrown away
#   fuzz.sh long BUILD SECONDS [TARGET...] each target in turn, on from what earlier runs found (BUILD/corpus); a line each
#   fuzz.sh tally BUILD                    executions of each target in all long runs
#   fuzz.sh coverage BUILD [TARGET...]     lines of each reader's sources that seeds and BUILD/corpus reach
#   fuzz.sh dictionary TARGET              the words of a target's sources, as libFuzzer takes them
# A crash, a leak, a hang or too much memory ends with exit code 1 and the input's path in BUILD/failures/TARGET.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
programs=$root/build/sanitize/tests/fuzz
suppressions="$root/tests/sanitizers/lsan.supp"
# libFuzzer brings the C++ library, which is then before the run-time of the sanitizer: that matters to no reader.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=0:malloc_context_size=6:quarantine_size_mb=8:verify_asan_link_order=0
export UBSAN_OPTIONS=print_stacktrace=1 LSAN_OPTIONS=suppressions=$suppressions:print_suppressions=0

fail() { echo "fuzz: $*" >&2; exit 2; }
targets() { grep -v '^#' "$here/targets.txt" | awk '{print $1}'; }
row() { awk -v name="$1" '$1 == name' "$here/targets.txt"; }

# Every word in quotes of a target's sources that may be a key or a value: letters, digits and signs, no message.
dictionary() {
  local sources
  read -r -a sources <<<"$(row "$1" | cut -d ' ' -f 2- | sed 's/^ *[0-9]* *//')"
  (cd "$root/src" && grep -ohE '"[^"\\]{1,40}"' "${sources[@]}") | grep -E '^"[]A-Za-z0-9_.:<>|/*+()[-]+"$' | grep -vE '\.h"$|^"%' | sort -u
  case $1 in
    checkpoint | resume | esn | gpt2_model | llama_model) printf '"%s"\n' F32 F64 BF16 U8 data_offsets dtype shape __metadata__ vocab.source optimiser.moment1. ;;
    config | sweep) "$root/tests/fuzz/config_words.sh" "$root" ;;
  esac
  case $1 in
    bytes) echo '"tarn-vocab "' ;;
    sweep | run | pairs | gpt2_files) printf '"\\x0a-- %s --\\x0a"\n' config.yaml log.jsonl result.json sweep.yaml base.yaml a.jsonl vocab.json ;;
  esac
}

# seeds TARGET: the folders that it starts from.
seeds() {
  local folder
  for folder in "$here/corpus/$1" "$here/regressions/$1"; do [ ! -d "$folder" ] || echo "$folder"; done
}

# fuzz TARGET SECONDS FOLDER: one run, whose new inputs go to FOLDER. Its output is in $log.
fuzz() {
  local target=$1 seconds=$2 folder=$3 longest from code
  longest=$(row "$target" | awk '{print $2}')
  [ -n "$longest" ] || fail "there is no target $target, only $(targets | tr '\n' ' ')"
  [ -x "$programs/fuzz_$target" ] || fail "$programs/fuzz_$target is not built"
  mkdir -p "$folder" "$build/failures/$target" "$build/dictionaries"
  dictionary "$target" >"$build/dictionaries/$target.$$"
  mapfile -t from < <(seeds "$target")
  # A folder that goes away also when the process is killed.
  TARN_FUZZ_FOLDER=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)" tarn-fuzzing-XXXXXX)
  export TARN_FUZZ_FOLDER
  # The time of libFuzzer is looked at between inputs only, and does not run while it reads the corpus.
  timeout -k 10 $((seconds * 2 + 240)) "$programs/fuzz_$target" -max_total_time="$seconds" -max_len="$longest" -timeout="${TARN_FUZZ_TIMEOUT:-25}" \
    -rss_limit_mb=1500 -print_final_stats=1 -use_value_profile=0 -verbosity=1 -artifact_prefix="$build/failures/$target/" \
    -dict="$build/dictionaries/$target.$$" -detect_leaks=1 "$folder" "${from[@]}" >"$log" 2>&1
  code=$?
  rm -rf "$build/dictionaries/$target.$$" "$TARN_FUZZ_FOLDER"
  return $code
}

runs_of() { sed -n 's/^stat::number_of_executed_units: *//p' "$log"; }
# The last line of progress: "#1234 DONE cov: 567 ft: 890 corp: 12/34Kb".
reached() { grep -aoE 'cov: [0-9]+ ft: [0-9]+ corp: [0-9]+' "$log" | tail -n 1; }

short() {
  local folder code
  folder=$(mktemp -d)
  log=$folder/log
  fuzz "$1" "${TARN_FUZZ_SECONDS:-1}" "$folder/new"
  code=$?
  if [ $code -eq 0 ]; then
    echo "$1: $(runs_of) executions, $(reached)"
  else
    tail -n 60 "$log"
  fi
  rm -rf "$folder"
  [ $code -eq 0 ]
}

long() {
  local seconds=$1 target failed=0
  shift
  [ $# -gt 0 ] || mapfile -t list < <(targets)
  [ $# -eq 0 ] || list=("$@")
  mkdir -p "$build/logs" "$build/corpus"
  for target in "${list[@]}"; do
    log=$build/logs/$target
    if fuzz "$target" "$seconds" "$build/corpus/$target"; then
      printf '%s\t%s\t%s\tok\n' "$(date -u +%Y-%m-%dT%H:%M)" "$target" "$(runs_of)" >>"$build/tally"
      echo "$target: $(runs_of) executions, $(reached)"
    else
      failed=1
      printf '%s\t%s\t%s\tfailed\n' "$(date -u +%Y-%m-%dT%H:%M)" "$target" "$(runs_of)" >>"$build/tally"
      echo "$target: failed; $(grep -aE 'Test unit written|SUMMARY|ERROR:|runtime error' "$log" | head -n 3 | tr '\n' ' ')"
    fi
  done
  return $failed
}

tally() {
  [ -f "$build/tally" ] || fail "$build/tally is not there: nothing was run for long"
  awk -F '\t' '{ runs[$2] += $3; all += $3; if ($4 != "ok") failed[$2]++ }
    END { for (name in runs) printf "%-14s %12d executions %4d failures\n", name, runs[name], failed[name] | "sort"
          close("sort"); printf "%-14s %12d executions\n", "in all", all }' "$build/tally"
}

# Runs the corpus once through programs that count lines (clang's source-based coverage), made in BUILD-coverage.
coverage() {
  local list target sources from
  [ $# -gt 0 ] || mapfile -t list < <(targets)
  [ $# -eq 0 ] || list=("$@")
  for tool in llvm-profdata llvm-cov; do
    command -v $tool >/dev/null || { echo "coverage: skipped, $tool is not installed"; return 77; }
  done
  for target in "${list[@]}"; do
    mapfile -t from < <(seeds "$target"; [ ! -d "$build/corpus/$target" ] || echo "$build/corpus/$target")
    read -r -a sources <<<"$(row "$target" | cut -d ' ' -f 2- | sed 's/^ *[0-9]* *//')"
    LLVM_PROFILE_FILE="$build-coverage/$target.raw" timeout 900 "$build-coverage/tests/fuzz/fuzz_$target" "${from[@]}" >/dev/null 2>&1 ||
      echo "$target: a run over its corpus failed"
    llvm-profdata merge -sparse "$build-coverage/$target.raw" -o "$build-coverage/$target.data" || continue
    llvm-cov report "$build-coverage/tests/fuzz/fuzz_$target" -instr-profile="$build-coverage/$target.data" 2>/dev/null |
      awk -v target="$target" -v wanted="${sources[*]}" '
        BEGIN { count = split(wanted, name, " ") }
        { for (i = 1; i <= count; i++) if (substr($1, length($1) - length(name[i])) == "/" name[i] && $8 > 0) {
            printf "%-14s %-30s %5d of %5d lines\n", target, name[i], $8 - $9, $8
            lines += $8; reached += $8 - $9 } }
        END { printf "%-14s %-30s %5d of %5d lines, %d %%\n", target, "in all", reached, lines, lines ? 100 * reached / lines : 0 }'
  done
}

[ $# -gt 0 ] || fail "usage: fuzz.sh short|long|tally|coverage|dictionary ..."
word=$1
shift
if [ "$word" = dictionary ]; then
  dictionary "$1"
  exit
fi
build=$(readlink -m "${1:?the folder of what is found}")
shift
case $word in
  short) short "$@" ;;
  long) long "$@" ;;
  tally) tally ;;
  coverage) coverage "$@" ;;
  *) fail "unknown word $word" ;;
esac
