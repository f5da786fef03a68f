#!/usr/bin/env bash
# Builds the kernels with every installed C compiler and runs their tests under every instruction set, which compare the
# bits with tests/kernels/bits.txt. Prints one line per compiler; exit code 1 if one of them fails.
# usage: check_compilers.sh [COMPILER...]   default: every gcc-N from 11 and clang-N from 14 on the path
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
jobs=${TARN_JOBS:-$(nproc)}
folder=build/compilers
failed=0

compilers() {
  compgen -c | grep -E '^(gcc|clang)-[0-9]+$' | sort -u -V | awk -F- '$2 >= ($1 == "gcc" ? 11 : 14)'
}

# A clang without its own version of OpenMP uses the newest OpenMP installed. The header is copied, because its folder
# also contains headers of its own compiler.
openmp_options() {  # COMPILER
  local version=${1#clang-} library header
  [ "$version" != "$1" ] && [ ! -e "/usr/lib/llvm-$version/lib/libomp.so" ] || return 0
  library=$(compgen -G '/usr/lib/llvm-*/lib/libomp.so' | sort -V | tail -n 1)
  header=$(compgen -G '/usr/lib/llvm-*/lib/clang/*/include/omp.h' | sort -V | tail -n 1)
  [ -n "$library" ] && [ -n "$header" ] || return 0
  mkdir -p $folder/openmp && cp "$header" $folder/openmp/
  printf '%s\n' "-DCMAKE_C_FLAGS=-I$PWD/$folder/openmp" \
    "-DCMAKE_EXE_LINKER_FLAGS=-L$(dirname "$library") -Wl,-rpath,$(dirname "$library")"
}

try() {  # COMPILER
  local build=$folder/$1 options tests
  mapfile -t options < <(openmp_options "$1")
  mkdir -p "$build"
  cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_COMPILER=$1" -DTARN_TESTS=ON \
    "${options[@]}" >"$build/configure.log" 2>&1 || { echo "$1: $build/configure.log"; return 1; }
  mapfile -t tests < <(basename -s .c -a tests/kernels/test_*.c)
  cmake --build "$build" --target "${tests[@]}" -j "$jobs" >"$build/build.log" 2>&1 || {
    grep -m 3 error "$build/build.log"
    echo "$1: does not build ($build/build.log)"
    return 1
  }
  local warnings
  warnings=$(grep -c 'warning:' "$build/build.log")
  (cd "$build" && ctest -L kernels --output-on-failure --no-tests=error) >"$build/test.log" 2>&1 || {
    grep -E '\(Failed\)|^bits' "$build/test.log"
    echo "$1: kernel tests fail ($build/test.log)"
    return 1
  }
  echo "$1: all kernel tests pass, $warnings warnings"
}

list=("$@")
[ ${#list[@]} -gt 0 ] || mapfile -t list < <(compilers)
[ ${#list[@]} -gt 0 ] || list=(cc)
for compiler in "${list[@]}"; do try "$compiler" || failed=$((failed + 1)); done
echo "check_compilers: ${#list[@]} compilers, $failed failed"
[ $failed -eq 0 ]
