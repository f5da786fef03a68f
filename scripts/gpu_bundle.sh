#!/usr/bin/env bash
# Makes the bundle that scripts/gpu.sh takes to a machine with a card and without a network: program, CUDA module, tests,
# what they read, and every shared library that a bare machine may lack (docs/gpu.md). Prints a table of the sizes.
#   scripts/gpu_bundle.sh OUTPUT.tar.xz
# Needs nvcc. It fails above 45 MB, and where a file needs a later C library than that of Ubuntu 22.04. Multi30k and Tatoeba
# are in it where ../shared/data is, or TARN_DATA names such a folder.
set -euo pipefail
fail() { echo "gpu_bundle.sh: $1" >&2; exit "${2:-1}"; }
[ $# -eq 1 ] || fail "usage: scripts/gpu_bundle.sh OUTPUT.tar.xz" 2
[[ $1 == [!-]*.tar.xz ]] || fail "$1: a name that ends in .tar.xz is expected" 2
output=$(realpath -m -- "$1")
cd "$(dirname "$(readlink -f "$0")")/.."
most_bytes=45000000
newest=(GLIBC_2.35 GLIBCXX_3.4.30)  # of Ubuntu 22.04
data=$(realpath -m -- "${TARN_DATA:-../shared/data}")
build=build/gpu
kept=${TARN_JOBS:-$(nproc)}

# The C library and its loader are the machine's, and that of C++ too: the toolkit's libraries, which are loaded into the
# program, may need a later one than ours, and every machine with a toolkit has one.
of_the_machine='^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s)\.so'

compile() {
  [ -f $build/build.ninja ] || { mkdir -p $build && cmake --preset gpu >$build/configure.log 2>&1; } || {
    tail -n 20 $build/configure.log >&2
    fail "the preset gpu cannot be configured"
  }
  cmake --build --preset gpu -j "$kept" >$build/build.log || {
    tail -n 20 $build/build.log >&2
    fail "the preset gpu cannot be built: $build/build.log"
  }
}

# needed FILE...: paths of the shared libraries of these programs and of all that those need.
needed() {
  local file
  for file in "$@"; do ldd "$file"; done | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    while read -r file; do [[ ${file##*/} =~ $of_the_machine ]] || echo "$file"; done
}

# tests: names of the tests of the preset, as KIND/NAME.
tests() {
  local file
  for file in tests/kernels/test_*.c tests/golden/test_*.c tests/unit/test_resume.c; do
    file=${file#tests/}
    [ ! -x "$build/tests/$(basename "$file" .c)" ] || echo "${file%.c}"
  done
}

copy_programs() {
  local name
  mkdir -p "$to"/{bin,host,lib,tests}
  cp $build/tarn $build/tarn-cuda.so $build/cuda_ceilings $build/bench_batches "$to/bin/"
  cp $build/tests/cuda_host/tarn-cuda.so $build/tests/cuda_host/cuda_ceilings "$to/host/"
  tests >"$to/tests/gpu_tests.txt"
  while read -r name; do cp "$build/tests/${name#*/}" "$to/tests/"; done <"$to/tests/gpu_tests.txt"
  needed $build/tarn $build/bench_batches $build/tests/test_* | while read -r name; do cp -L "$name" "$to/lib/"; done
  find "$to"/{bin,host,lib,tests} -type f -exec strip --strip-unneeded {} + 2>/dev/null || true
}

# Golden files, the record of bits, descriptions, and the scripts of the measurements.
copy_files() {
  mkdir -p "$to/tests/kernels" "$to/bench" "$to/scripts"
  cp -r tests/golden "$to/tests/"
  find "$to/tests/golden" \( -name '*.c' -o -name '*.h' -o -name '*.py' -o -name __pycache__ \) -exec rm -rf {} +
  cp tests/kernels/bits.txt "$to/tests/kernels/"
  cp -r examples "$to/"
  cp -r bench/gpu "$to/bench/"
  rm -rf "$to/bench/gpu/__pycache__"
  cp bench/torch_peer_cuda.py bench/small.yaml "$to/bench/"
  cp scripts/gpu.sh "$to/scripts/"
  cp LICENSE "$to/"
  ln -s scripts/gpu.sh "$to/gpu.sh"
}

# prepare NAME CORPUS PIECES VALID TEST: the vocabulary and shards of a corpus of ../shared/data, with its validation and
# test sets of these names; kept in the build folder for the next bundle.
prepare() {
  local from=$data/$2 side out="$build/data/$1"
  [ -f "$from/train.de" ] && [ -f "$from/train.en" ] || return 0
  if [ ! -f "$out/valid.tarn" ]; then
    mkdir -p "$out"
    for side in de en; do
      cp "$from/$4.$side" "$out/valid.$side"
      cp "$from/$5.$side" "$out/test.$side"
    done
    $build/tarn vocab --quiet --type bpe --size "$3" --output "$out/vocab.model" "$from/train.de" "$from/train.en" >/dev/null
    $build/tarn prepare --quiet --vocab "$out/vocab.model" --source "$from/train.de" --target "$from/train.en" \
      --output "$out/train" >/dev/null
    $build/tarn prepare --quiet --vocab "$out/vocab.model" --source "$out/valid.de" --target "$out/valid.en" \
      --output "$out/valid" >/dev/null
  fi
  mkdir -p "$to/data"
  cp -r --no-preserve=mode "$out" "$to/data/"
}

# later VERSION FILE: the first symbol of a later version than this, such as GLIBC_2.35, that the file needs.
later() {
  objdump -T "$2" 2>/dev/null | awk -v newest="$1" '
    function number(text,    part, n) { n = split(text, part, "."); return part[1] * 1e6 + part[2] * 1e3 + (n > 2 ? part[3] : 0) }
    BEGIN { split(newest, may, "_") }
    !found && /\*UND\*/ && match($0, "[(]" may[1] "_[0-9.]+") {
      has = substr($0, RSTART + length(may[1]) + 2, RLENGTH - length(may[1]) - 2)
      if (number(has) > number(may[2])) found = $NF " of " may[1] "_" has
    }
    END { print found }' || true
}

# Refuses a file that needs a symbol of a later C or C++ library than the oldest machine has.
check_versions() {
  local file version found
  while read -r file; do
    for version in "${newest[@]}"; do
      found=$(later "$version" "$file")
      [ -z "$found" ] || fail "${file#"$to"/} needs $found, and the bundle may need at most $version"
    done
  done < <(find "$to"/{bin,host,lib} "$to"/tests/test_* -type f)
}

# Whatever folder it lies in, every program finds its libraries below its own.
check_libraries() {
  local file lost
  for file in "$to"/bin/tarn "$to"/bin/bench_batches "$to"/tests/test_*; do
    lost=$(ldd "$file" | awk -v own="$to/" -v machine="$of_the_machine" '
      $2 == "=>" && $1 !~ machine && index($3, own) != 1 && !found { found = $1 } END { print found }')
    [ -z "$lost" ] || fail "${file#"$to"/} does not take $lost from the bundle"
  done
}

# Megabytes of each part, as it is and roughly as packed.
table() {
  local part
  printf '%-10s %10s %10s\n' part MB packed
  for part in bin host lib tests data examples bench; do
    [ -e "$to/$part" ] || continue
    printf '%-10s %10s %10s\n' $part "$(find "$to/$part" -type f -printf '%s\n' | megabytes)" \
      "$(tar -C "$to" -c $part | xz -1 -T0 | wc -c | megabytes)"
  done
}
megabytes() { awk '{ sum += $1 } END { printf "%.1f", sum / 1e6 }'; }

compile
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
to=$folder/tarn-gpu
copy_programs
copy_files
prepare multi30k multi30k 10000 val test_2016_flickr
prepare tatoeba tatoeba-de-en 20000 valid test
check_versions
check_libraries
table
tar -C "$folder" --sort=name --owner=0 --group=0 -c tarn-gpu | xz -6 -T0 >"$output.new"
size=$(stat -c %s "$output.new")
printf '%-10s %10s %10s\n' all "$(find "$to" -type f -printf '%s\n' | megabytes)" "$(echo "$size" | megabytes)"
if [ "$size" -gt $most_bytes ]; then
  rm -f "$output.new"
  fail "the bundle would have $size bytes; $most_bytes are the most"
fi
mv "$output.new" "$output"
echo "made: $output"
