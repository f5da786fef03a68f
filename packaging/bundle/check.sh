#!/usr/bin/env bash
# Checks a wheel and an archive: tag, size, no path of this machine, and that both work elsewhere: a C program built against
# the moved archive in both ways of docs/install.md, and against the installed wheel; the program and the package of the wheel.
# usage: check.sh WHEEL ARCHIVE TOOLS GLIBC   (TOOLS: a virtual environment with auditwheel)
set -eu -o pipefail
wheel=$(realpath "$1") archive=$(realpath "$2") tools=$(realpath -s "$3") glibc=$4
sources=$(realpath "$(dirname "$(readlink -f "$0")")/../..")
limit=$((20 * 1000 * 1000))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "run wheel: $*" >&2
  exit 1
}
cd "$work"

for file in "$wheel" "$archive"; do
  bytes=$(stat -c %s "$file")
  [ "$bytes" -le $limit ] || fail "$(basename "$file") has $bytes bytes, more than $limit"
done
said=$("$tools/bin/auditwheel" show "$wheel" 2>&1) || fail "auditwheel: $said"
tr '\n' ' ' <<<"$said" | grep -q 'following platform tag: "manylinux_2_[0-9]*_x86_64"' || fail "auditwheel: $said"
allowed=$(tr '\n' ' ' <<<"$said" | sed 's/.*platform tag: "manylinux_2_\([0-9]*\)_x86_64".*/\1/')
[ "$allowed" -le "${glibc#2.}" ] || fail "auditwheel would tag the wheel manylinux_2_$allowed"

mkdir first
tar xzf "$archive" -C first
mkdir other
mv first/tarn-* other/place  # wherever it is unpacked
tree=$work/other/place
for file in "$tree"/bin/tarn "$tree"/lib/lib*.so.?; do
  newest=$(objdump -T "$file" | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1)
  [ "$(printf '%s\n' "GLIBC_$glibc" "$newest" | sort -V | tail -n 1)" = "GLIBC_$glibc" ] || fail "$file needs $newest"
  ! readelf -dW "$file" | grep NEEDED | grep -vE '\[(lib(c|m|pthread|dl|rt|gcc_s)\.so\.[0-9]|ld-linux-x86-64\.so\.2|libtarn\.so\.[0-9])\]' ||
    fail "$file needs other libraries"
  ! readelf -dW "$file" | grep -E 'STATIC_TLS|TEXTREL' || fail "$file cannot be loaded everywhere"
done
! grep -rlF -e "$sources" -e "$HOME/" "$tree" || fail "a path of this machine is in these files"

# libtarn shows what its headers declare, and the rest only to libtarn-lab of the same version.
nm -D --with-symbol-versions --defined-only "$tree/lib/libtarn.so.1" | awk '$2 != "A" { print $3 }' | grep -v @TARN_PRIVATE_ |
  sed 's/@.*//' | sort >shown
sed -n 's/^TARN_API .*[ *]\(tarn_[a-z0-9_]*\)(.*/\1/p' "$tree"/include/tarn/*.h | sort | diff - shown || fail "libtarn shows something else"

# examples PREFIX NAME: builds an example against that prefix, which alone pkg-config and CMake know, and runs it.
examples() {
  local example=$sources/examples/c/forecast_series.c
  export PKG_CONFIG_LIBDIR=$1/lib/pkgconfig
  # shellcheck disable=SC2046
  cc "$example" $(pkg-config --cflags --libs tarn-lab) "-Wl,-rpath,$1/lib" -lm -o "$2-1" || fail "$2: pkg-config"
  mkdir "$2-cmake"
  cat >"$2-cmake/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.22)
project(example C)
find_package(tarn 0.1 REQUIRED COMPONENTS lab)
find_package(tarn 0.1 QUIET COMPONENTS static)
if(tarn_FOUND)
  message(FATAL_ERROR "the static libraries are not in the bundle")
endif()
add_executable(example $example)
target_link_libraries(example PRIVATE tarn::tarn_lab m)
TEXT
  cmake -S "$2-cmake" -B "$2-cmake/build" "-DCMAKE_PREFIX_PATH=$1" >"$2.log" 2>&1 && cmake --build "$2-cmake/build" >>"$2.log" 2>&1 ||
    fail "$2: find_package: $(tail -n 5 "$2.log")"
  "./$2-1" >"$2.txt" && "$2-cmake/build/example" | diff - "$2.txt" || fail "$2: the example fails"
  grep -q '^one step ahead: NRMSE 0\.0' "$2.txt" || fail "$2: $(cat "$2.txt")"
}
examples "$tree" archive

# Whether the optional parts are in the program: Marian's own files need minizip, and its deflated arrays zlib.
cp -r "$sources/tests/golden/marian_own/all" marian && cp "$sources"/tests/golden/marian_model/swish/*.spm marian
"$tree/bin/tarn" import marian --output marian.safetensors >marian.log 2>&1 || fail "import of Marian's .npz: $(cat marian.log)"
python3 - marian/cases.json lines wanted <<'TEXT'
import json, sys
cases = json.load(open(sys.argv[1]))["translations"]
for path, key in zip(sys.argv[2:], ("text", "translation")):
    open(path, "w").write("".join(case[key] + "\n" for case in cases))
TEXT
"$tree/bin/tarn" translate marian.safetensors <lines 2>marian.log | diff - wanted || fail "translations of Marian's model: $(cat marian.log)"
for pack in gzip:gz xz:xz zstd:zst; do
  command -v ${pack%:*} >/dev/null || continue
  ${pack%:*} -c wanted >"wanted.${pack#*:}"
  "$tree/bin/tarn" bleu --reference "wanted.${pack#*:}" <wanted >bleu.log 2>&1 || fail "text in .${pack#*:}: $(cat bleu.log)"
done

python3 -m venv environment
environment/bin/pip install -q --disable-pip-version-check "$wheel" || fail "pip cannot install the wheel"
package=$(environment/bin/python -c 'import tarn; print(tarn.__path__[0])') || fail "the package cannot be imported"
[ "$(environment/bin/tarn --version | head -n 1)" = "$("$tree/bin/tarn" --version | head -n 1)" ] || fail "the wheel's program"
[ -f environment/share/man/man1/tarn-translate.1 ] && [ -f environment/share/bash-completion/completions/tarn ] ||
  fail "the wheel has no pages"
examples "$package" wheel
environment/bin/python - <<'TEXT' || fail "the package does not train"
import tarn
tarn.write_corpus("corpus", sentences=300, held_out=20)
tarn.Vocabulary.train("vocab", ["corpus/train.de", "corpus/train.en"], size=300)
for part in ("train", "valid"):
    tarn.prepare(part, "vocab", source=f"corpus/{part}.de", target=f"corpus/{part}.en")
model = {"model": {"d_model": 32}, "encoder": {"layers": "L"}, "decoder": {"layers": "L"},
         "kinds": {"L": {"mixer": "attention", "heads": 2, "ffn": 64}},
         "data": {"vocab": "vocab", "train": "train", "valid": "valid"},
         "train": {"max_updates": 10, "max_tokens": 500, "warmup": 5}}
tarn.train(model, "run")
with tarn.Run("run") as run:
    assert len(run.translate(["Ein Hund läuft."])) == 1
TEXT
echo "checked: $(basename "$wheel"), $(basename "$archive"); manylinux_2_$allowed would do"
