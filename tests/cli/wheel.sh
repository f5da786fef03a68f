#!/usr/bin/env bash
# What can be checked of the bundle (packaging) in a second, without making it: that it is packed with equal bits from equal
# contents, and that its lists agree with what they are lists of. `./run wheel` checks the rest.
set -u
. "$(dirname "$0")/../helpers.sh"
[ -z "${TARN_SANITIZED:-}" ] || exit 77  # nothing of it is compiled
python3 -c 'import tomllib' 2>/dev/null || { echo "wheel.sh: skipped, python3 is not there, or older than 3.11"; exit 77; }
packaging=$TARN_SOURCE_DIR/packaging

# One tree, written at two times in another order.
tree() {
  mkdir -p "$1"/{bin,lib/pkgconfig,include/tarn,share/man/man1,share/doc/tarn/examples}
  for file in ${2:-bin/tarn lib/libtarn.so.1 lib/pkgconfig/tarn.pc include/tarn/tarn.h share/man/man1/tarn.1 share/doc/tarn/examples/a.c}; do
    echo "$file" >"$1/$file"
  done
  chmod 755 "$1/bin/tarn"
  ln -s libtarn.so.1 "$1/lib/libtarn.so"
}
tree one
(umask 077 && tree two "share/doc/tarn/examples/a.c include/tarn/tarn.h lib/libtarn.so.1 share/man/man1/tarn.1 lib/pkgconfig/tarn.pc bin/tarn")
find two -exec touch -h -d 2001-02-03 {} +
mkdir licenses && echo terms >licenses/library.txt && echo "VERSION = 1" >_binding.py
export SOURCE_DATE_EPOCH=1000000000
for which in one two; do
  mkdir packed-$which
  "$packaging/bundle/pack.py" "$TARN_SOURCE_DIR" $which _binding.py licenses manylinux_2_28_x86_64 packed-$which >names.txt || fail "pack.py"
done
diff -r packed-one packed-two || fail "the same contents give other bits"
wheel=packed-one/$(head -n 1 names.txt) archive=packed-one/$(tail -n 1 names.txt)
tar tvzf "$archive" | grep -q '^lrwx.* tarn-[0-9.]*-linux-x86_64/lib/libtarn.so -> libtarn.so.1$' || fail "no link in the archive"
tar tvzf "$archive" | awk '$1 ~ /^-rwx/ { print $NF }' | grep -qx 'tarn-[0-9.]*-linux-x86_64/bin/tarn' || fail "no program in the archive"
python3 - "$wheel" <<'PY' || fail "the wheel"
import base64, hashlib, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    names = wheel.namelist()
    record = next(name for name in names if name.endswith(".dist-info/RECORD"))
    rows = [line.split(",") for line in wheel.read(record).decode().splitlines()]
    assert sorted(row[0] for row in rows) == sorted(names), "RECORD leaves out files"
    for name, digest, size in rows:
        if name != record:
            data = wheel.read(name)
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), name
            assert int(size) == len(data), name
    program = next(name for name in names if name.endswith(".data/scripts/tarn"))
    assert wheel.getinfo(program).external_attr >> 16 & 0o111, "the program cannot be executed"
    for name in ("tarn/__init__.py", "tarn/_binding.py", "tarn/lib/libtarn.so.1", "tarn/include/tarn/tarn.h"):
        assert name in names, name
    assert wheel.read("tarn/lib/libtarn.so") == b"INPUT ( libtarn.so.1 )\n"
    assert any(name.endswith(".dist-info/licenses/library.txt") for name in names), "no licences"
PY

# Every library that the build asks pkg-config for is in the bundle, and in the key after which it is made anew.
sed -n 's/^tarn_\(module\|optional\)([A-Z0-9]* \([a-z0-9.-]*\).*/\2/p' "$TARN_SOURCE_DIR/cmake/dependencies.cmake" | sort >asked.txt
[ "$(wc -l <asked.txt)" -ge 12 ] || fail "cmake/dependencies.cmake is not understood"
sed -n 's/^module \([a-z0-9.-]*\) .*/\1/p' "$packaging/bundle/libraries.sh" | grep -v '^libmicrohttpd$' | sort >bundled.txt
diff asked.txt bundled.txt || fail "packaging/bundle/libraries.sh bundles other libraries than the build uses"
sed -n '/^for package in lib/,/; do$/p' "$packaging/bundle/libraries.sh" | grep -oE '[a-z0-9.-]+-dev' >packages.txt
[ "$(wc -l <packages.txt)" -ge 12 ] || fail "packaging/bundle/libraries.sh is not understood"
while read -r package; do
  grep -qE "(^| )'?$package'?( |;)" "$packaging/bundle/make.sh" || fail "make.sh does not know when $package changes"
done <packages.txt

# conda's recipe has the optional ones too, under conda's names.
sed -n 's/^tarn_optional([A-Z0-9]* \([a-z0-9.-]*\).*/\1/p' "$TARN_SOURCE_DIR/cmake/dependencies.cmake" >optional.txt
[ "$(wc -l <optional.txt)" -ge 3 ] || fail "cmake/dependencies.cmake is not understood"
while read -r module; do
  case $module in libzstd) package=zstd ;; liblzma) package=liblzma-devel ;; *) package=$module ;; esac
  grep -qx "    - $package" "$packaging/conda/meta.yaml" || fail "the recipe lacks $package"
done <optional.txt

version=$(sed -n 's/^project(tarn VERSION \([0-9.]*\).*/\1/p' "$TARN_SOURCE_DIR/CMakeLists.txt")
grep -qF "{% set version = \"$version\" %}" "$packaging/conda/meta.yaml" || fail "the recipe is for another version than $version"
# shellcheck disable=SC2053  # the pattern of the Dockerfile
[[ $(basename "$archive") == $(sed -n 's/^ADD \([^ ]*\) .*/\1/p' "$packaging/Dockerfile") ]] || fail "the Dockerfile adds another archive"
for script in "$packaging"/bundle/*.sh "$packaging"/conda/*.sh; do bash -n "$script" || fail "$script"; done
