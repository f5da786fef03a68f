#!/usr/bin/env bash
# scripts/arm.sh root|test [TEST...]: 64-bit ARM on another machine (./run arm). `root` fetches the libraries of Debian for
# arm64 into build/arm-root, without installing them; `test` runs the tests of build/arm under qemu, as plain C and for each
# instruction set, and counts them; TEST: only those, such as test_gemm.
# ARM_SETS: the sets with which tests of kernels are run (default: all), such as "sve_256 sve_512"; with it no others are run.
# ARM_LIMIT: seconds after which a test that has not ended counts as failed (default 7200; a test that hangs would hold up all).
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
root=$PWD/build/arm-root build=$PWD/build/arm

packages=(libsentencepiece-dev libprotobuf-dev libyaml-dev libjansson-dev libpcre2-dev libicu-dev libxxhash-dev liblapack-dev
  libarpack2-dev libcmocka-dev zlib1g-dev liblzma-dev libzstd-dev libminizip-dev libpng-dev libc6-dev libgomp1)

fail() {
  echo "arm: $*" >&2
  exit 1
}

# apt with nothing installed and lists of its own, so that it finds all that the packages need, and leaves this machine alone.
apt_of_root() {
  apt-get -q "-oAPT::Architecture=arm64" "-oAPT::Architectures=arm64" "-oAPT::Install-Recommends=false" \
    "-oAPT::Sandbox::User=" "-oDebug::NoLocking=true" "-oDir::State=$fresh/apt" "-oDir::State::status=$fresh/apt/status" \
    "-oDir::Cache=$fresh/apt/cache" "$@"
}

make_root() {
  [ ! -e "$root/complete" ] || return 0
  local name link lib archive
  fresh=$root.new
  rm -rf "$fresh" "$root"
  mkdir -p "$fresh/apt/lists/partial" "$fresh/apt/cache/archives/partial"
  : >"$fresh/apt/status"
  echo "fetching the libraries for arm64 (build/arm-root)"
  { apt_of_root update && apt_of_root -y --download-only install "${packages[@]}"; } >"$fresh/log" 2>&1 || {
    tail -n 5 "$fresh/log" >&2
    fail "the distribution of this machine has no packages for arm64 at its own address, as Debian does"
  }
  for archive in "$fresh"/apt/cache/archives/*.deb; do
    dpkg-deb -x "$archive" "$fresh" || fail "$archive cannot be unpacked"
  done
  rm -rf "$fresh/apt"
  # Links from the root of the file system, and those that installing would make.
  find "$fresh" -type l -lname '/*' | while IFS= read -r link; do
    ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$fresh$(readlink "$link")")" "$link"
  done
  lib=$fresh/usr/lib/aarch64-linux-gnu
  for name in blas lapack; do
    ln -sfn "$name/lib$name.so.3" "$lib/lib$name.so.3"
    ln -sfn "$name/lib$name.so" "$lib/lib$name.so"
    ln -sfn "$name-netlib.pc" "$lib/pkgconfig/$name.pc"
  done
  # Distributions in which /lib is a link: the loader is expected there.
  [ -e "$fresh/lib" ] || ln -s usr/lib "$fresh/lib"
  touch "$fresh/complete" && mv "$fresh" "$root"
}

limit=${ARM_LIMIT:-7200}
emulator=qemu-aarch64-static
command -v $emulator >/dev/null || emulator=qemu-aarch64

sets="portable neon neon_dot neon_bf16 sve_256 sve_512"

# processor_of SET: one that runs it, with registers of SVE of the length that it needs (in bytes for qemu).
processor_of() {
  case $1 in
    sve_256) echo max,sve-default-vector-length=32 ;;
    sve_512) echo max,sve-default-vector-length=64 ;;
    *) echo max ;;
  esac
}

# emulate CPU PROGRAM...
emulate() {
  local cpu=$1
  shift
  timeout "$limit" $emulator -L "$root" -cpu "$cpu" "$@"
}

# one CPU ISA TEST: runs a test; ISA "own" leaves the choice to the program. As in `./run test --quick` the longest tests do
# fewer rounds, and only every third case is compared with the reference where bits are on record
# (tests/kernels/bits_check.h).
one() {
  local cpu=$1 isa=$2 test=$3 start=$SECONDS log code word=passed
  log=$build/arm-logs/$test.$cpu.$isa
  (
    cd "$build/tests" || exit 1
    export TARN_SYSFS=/nonexistent OMP_WAIT_POLICY=passive TARN_SAMPLE=1
    [ "$isa" = own ] || export TARN_ISA=$isa TARN_EACH_ISA=1
    emulate "$cpu" "./$test"
  ) >"$log" 2>&1
  code=$?
  [ $code -eq 0 ] || word=failed
  [ $code -ne 124 ] || echo "not ended after $limit s (ARM_LIMIT)" >>"$log"
  echo "$word $test $cpu $isa $((SECONDS - start)) s" | tee -a "$build/arm-results.txt"
  [ $code -eq 0 ] || tail -n 20 "$log"
}

# On each of these processors each of these sets is used, so that no test is passed by another one than it names. Those of
# SVE are used only by name.
check_choice() {
  local cpu isa got
  for isa in ${ARM_SETS:-}; do
    [[ " $sets " == *" $isa "* ]] || fail "$isa is none of the sets: $sets"
  done
  while read -r cpu isa; do
    got=$(emulate "$cpu" "$build/tarn" version | sed -n 's/^instruction set: \([a-z0-9_]*\) .*/\1/p')
    [ "$got" = "$isa" ] || fail "on the processor $cpu the program chooses \"$got\", not $isa"
  done <<<"cortex-a53 neon
neoverse-n1 neon_dot
max,sve=off neon_bf16
max,sve-default-vector-length=16 neon_bf16
max,sve-default-vector-length=32 neon_bf16
a64fx neon"
  for isa in $sets; do
    got=$(TARN_ISA=$isa emulate "$(processor_of "$isa")" "$build/tarn" version | sed -n 's/^instruction set: \([a-z0-9_]*\) .*/\1/p')
    [ "$got" = "$isa" ] || fail "TARN_ISA=$isa chooses \"$got\""
  done
  got=$(TARN_ISA=sve_256 emulate cortex-a53 "$build/tarn" version 2>&1)
  [[ $got == *"TARN_ISA=sve_256 needs registers of SVE of 256 bits, and this processor has no SVE; using neon"* ]] ||
    fail "nothing says that there is no SVE: $got"
  for isa in 256 512; do
    got=$(TARN_ISA=sve_$isa emulate max,sve-default-vector-length=16 "$build/tarn" version 2>&1)
    [[ $got == *"TARN_ISA=sve_$isa needs registers of SVE of $isa bits, and here they have 128; using neon_bf16"* ]] ||
      fail "nothing says that registers of 128 bits are not those of sve_$isa: $got"
  done
}

run_tests() {
  local test kind passed failed
  for test; do
    grep -q " $test\$" "$build/arm_tests.txt" || fail "$test is none of the tests for ARM, which build/arm/arm_tests.txt names"
  done
  check_choice
  rm -rf "$build/arm-results.txt" "$build/arm-logs"
  mkdir -p "$build/arm-logs"
  # Kernels with every set; gradients and whole models with the least one, on a processor that has no other, and the greatest
  # of NEON; whole models with both of SVE as well.
  while read -r kind test; do
    [ $# -eq 0 ] || [[ " $* " == *" $test "* ]] || continue
    if [ "$kind" = kernels ]; then
      for isa in ${ARM_SETS:-$sets}; do echo "$(processor_of "$isa") $isa $test"; done
    elif [ -z "${ARM_SETS:-}" ]; then
      printf '%s\n' "max,sve=off own $test" "cortex-a53 own $test"
      [ "$kind" != golden ] || for isa in sve_256 sve_512; do echo "$(processor_of $isa) $isa $test"; done
    fi
  done <"$build/arm_tests.txt" >"$build/arm-runs.txt"
  [ -s "$build/arm-runs.txt" ] || fail "ARM_SETS is for tests of kernels alone"
  : >"$build/arm-results.txt"
  xargs -P "${TARN_JOBS:-$(nproc)}" -L 1 scripts/arm.sh one <"$build/arm-runs.txt"
  passed=$(grep -c '^passed' "$build/arm-results.txt") failed=$(grep -c '^failed' "$build/arm-results.txt")
  echo "$passed passed, $failed failed, of $(wc -l <"$build/arm-runs.txt")"
  [ "$passed" -gt 0 ] && [ "$passed" -eq "$(wc -l <"$build/arm-runs.txt")" ]
}

case ${1:-} in
  root) make_root ;;
  test) run_tests "${@:2}" ;;
  one) one "${@:2}" ;;
  *) fail "root or test is expected" ;;
esac
