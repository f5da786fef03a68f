#!/usr/bin/env bash
# Makes the folder of static libraries of which the bundle consists besides tarn's own code, and what the linker sees of
# an old glibc. usage: libraries.sh FOLDER PYTHON GLIBC
#   FOLDER   gets lib/ (archives, pkg-config modules), glibc/ (the C library to link with), licenses/, versions.txt
#   PYTHON   has ziglang, from which the old C library comes
#   GLIBC    its version, such as 2.28
# Most archives are those of Debian 12. Compiled from Debian's sources of the installed version are SentencePiece, for which
# there is no archive, libmicrohttpd, which with TLS would bring in GnuTLS and eight more, libgomp, whose archive does not fit
# into a shared library, and one file of ICU's for the same reason. ICU's data is left out (runtime.c): what tarn uses of ICU, properties of characters, case and
# NFD, is in its code.
# The folder is complete once versions.txt is there.
set -eu -o pipefail
folder=$(realpath -m "$1") python=$(realpath -s "$2") glibc=$3
jobs=${TARN_JOBS:-$(nproc)}
work=$folder/work
host=/usr/lib/x86_64-linux-gnu

fail() {
  echo "run wheel: $*" >&2
  exit 1
}

# quietly WORD COMMAND...: its output goes to a log, of which the end is shown if it fails.
quietly() {
  local name=$1 log=$work/$1.log
  shift
  "$@" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    fail "$name failed; see $log"
  }
}

version() { dpkg-query --show --showformat '${source:Version}' "$1"; }

rm -rf "$folder"
mkdir -p "$work/lists/partial" "$work/archives/partial" "$folder"/{lib/pkgconfig,glibc,licenses}

# --- sources ----------------------------------------------------------------------------------------------------------

# Where apt gets packages from, it gets their sources too; the machine's own settings stay as they are.
cat >"$work/apt.conf" <<TEXT
Dir::State::lists "$work/lists";
Dir::Cache "$work/archives";
Dir::Etc::SourceList "$work/sources.list";
Dir::Etc::SourceParts "-";
APT::Sandbox::User "root";
Acquire::Retries "5";
TEXT
apt-get indextargets --format 'deb-src $(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
  sort -u >"$work/sources.list"
export APT_CONFIG=$work/apt.conf
quietly apt-update apt-get -q update
cd "$work"
for pair in sentencepiece=libsentencepiece-dev libmicrohttpd=libmicrohttpd-dev icu=libicu-dev gcc-12=gcc-12-base; do
  source=${pair%=*}=$(version "${pair#*=}")
  quietly "source-${pair%=*}" apt-get -q source --download-only "$source"
done
# unpack SOURCE: into a folder of that name.
unpack() {
  quietly "unpack-$1" dpkg-source --no-check -x "$1"_*.dsc "$1"
}
for source in sentencepiece libmicrohttpd; do unpack $source; done
# Of the compiler's sources libgomp alone, and what its configuration reads.
mkdir gcc
tar xOf gcc-12_*.orig.tar.?z --wildcards '*/gcc-*-dfsg.tar.xz' | tar xJ -C gcc --strip-components=1 --wildcards --no-wildcards-match-slash \
  'gcc-*/libgomp' 'gcc-*/config' 'gcc-*/include' 'gcc-*/gcc/BASE-VER' 'gcc-*/gcc/DATESTAMP' 'gcc-*/*.m4' 'gcc-*/config*' \
  'gcc-*/ltmain.sh' 'gcc-*/install-sh' 'gcc-*/missing' 'gcc-*/depcomp' 'gcc-*/compile' 'gcc-*/mkinstalldirs'

mkdir icu
tar xf icu_*.orig.tar.?z -C icu --strip-components=1 --wildcards '*/source/common/*.h' '*/source/common/umutex.cpp'

# --- compiled ---------------------------------------------------------------------------------------------------------

# No path of this machine gets into the archives.
flags="-O2 -g0 -fPIC -ffunction-sections -fdata-sections -ffile-prefix-map=$work=. -Wp,-D_FORTIFY_SOURCE=2 -fstack-protector-strong"
CC=gcc CXX=g++ launcher=()
if command -v ccache >/dev/null; then
  CC="ccache gcc" CXX="ccache g++" launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1
fi
export CC CXX CFLAGS=$flags CXXFLAGS=$flags
unset LDFLAGS

# autotools NAME SOURCE MAKE-ARGUMENTS -- CONFIGURE-ARGUMENTS
autotools() {
  local name=$1 source=$2 targets=()
  shift 2
  while [ "$1" != -- ]; do targets+=("$1") && shift; done
  shift
  mkdir "$name-build"
  cd "$name-build"
  quietly "$name-configure" "../$source/configure" --disable-shared --enable-static "$@"
  quietly "$name-make" make -j "$jobs" "${targets[@]}"
  cd ..
}

# cmake_archives NAME TARGETS -- OPTIONS
cmake_archives() {
  local name=$1 targets=()
  shift
  while [ "$1" != -- ]; do targets+=("$1") && shift; done
  shift
  CC=gcc CXX=g++ quietly "$name-configure" cmake -G Ninja -S "$name" -B "$name-build" -DCMAKE_BUILD_TYPE=Release "${launcher[@]}" "$@"
  quietly "$name-make" cmake --build "$name-build" -j "$jobs" --target "${targets[@]}"
}

echo "compiling libgomp, libmicrohttpd, SentencePiece (logs in $work)"
# Its variables of threads are in the place that exists when a program starts, of which little is left for a library that Python
# loads, and libtarn's own would have to be there too. Symbol versions are for its own shared library.
sed -i 's/-ftls-model=initial-exec -DUSING_INITIAL_EXEC_TLS//' gcc/libgomp/configure.tgt
! grep -q initial-exec gcc/libgomp/configure.tgt || fail "this libgomp asks for static TLS in another way"
autotools libgomp gcc/libgomp libgomp.la -- --disable-multilib --with-pic --disable-symvers --disable-werror FC=no
autotools mhd libmicrohttpd -C src/microhttpd libmicrohttpd.la -- --with-pic --disable-https --disable-curl --disable-doc --disable-examples
# Debian's patch that removes the static libraries.
(cd sentencepiece && quietly spm-patch patch -R -p1 -i debian/patches/disable-static-library.patch)
cmake_archives sentencepiece sentencepiece-static sentencepiece_train-static -- -DSPM_ENABLE_SHARED=OFF -DSPM_ENABLE_TCMALLOC=OFF
# As libgomp's, these variables of threads would have to be in their place when a program starts.
# shellcheck disable=SC2086
$CXX $CXXFLAGS -std=c++11 -DU_COMMON_IMPLEMENTATION -DU_ATTRIBUTE_DEPRECATED= -Iicu/source/common -c icu/source/common/umutex.cpp -o umutex.ao

# --- archives ---------------------------------------------------------------------------------------------------------

cp libgomp-build/.libs/libgomp.a mhd-build/src/microhttpd/.libs/libmicrohttpd.a sentencepiece-build/src/libsentencepiece{,_train}.a \
  "$folder/lib/"
cp "$host/lapack/liblapack.a" "$host/blas/libblas.a" "$folder/lib/"  # those of LAPACK, not of another that is installed
for name in yaml pcre2-8 xxhash arpack z lzma zstd minizip; do cp -L "$host/lib$name.a" "$folder/lib/"; done
# These reach variables of the C library in a way that is open to programs only: they get other ones (runtime.c).
for name in icuuc jansson png16; do
  objcopy --enable-deterministic-archives --redefine-sym stdin=tarn__stdin --redefine-sym stderr=tarn__stderr \
    --redefine-sym __timezone=tarn__timezone --redefine-sym tzname=tarn__tzname "$host/lib$name.a" "$folder/lib/lib$name.a"
done
# Found here before the shared one, as are all that are linked by name.
cp "$(gcc -print-file-name=libstdc++.a)" "$folder/lib/"
ar rD "$folder/lib/libicuuc.a" umutex.ao

# module NAME LIBRARIES: the archives of one pkg-config module, which are found before the system's.
module() {
  local number
  number=$(pkg-config --modversion "$1") || fail "pkg-config does not find $1"
  printf '%s\n' 'libdir=${pcfiledir}/..' "Name: $1" "Description: for the bundle" "Version: $number" \
    "Cflags: $(pkg-config --cflags "$1")" "Libs: -L\${libdir} $2" >"$folder/lib/pkgconfig/$1.pc"
}
module jansson "-ljansson"
module yaml-0.1 "-lyaml"
module libpcre2-8 "-lpcre2-8"
module icu-uc "-licuuc"
module sentencepiece "-lsentencepiece_train -lsentencepiece"
module libxxhash "-lxxhash"
module arpack "-larpack -llapack -lblas"
module lapack "-llapack -lblas"
module zlib "-lz"
module liblzma "-llzma"
module libzstd "-lzstd"
module minizip "-lminizip -lz"
module libpng "-lpng16 -lz"
module libmicrohttpd "-lmicrohttpd"

# --- the C library ----------------------------------------------------------------------------------------------------

# Zig has what each version of glibc shows to the linker. The program is compiled with this machine's headers, and linked
# with these: a function that the old one lacks is an error, and one that has changed since gets the older version. They
# come into a cache when a program is linked.
export ZIG_GLOBAL_CACHE_DIR=$work/zig ZIG_LOCAL_CACHE_DIR=$work/zig-local
printf 'int main(void) { return 0; }\n' >empty.c
env -u CC -u CXX -u CFLAGS -u CXXFLAGS "$python" -m ziglang cc -target "x86_64-linux-gnu.$glibc" empty.c -o empty -lm -lpthread -ldl -lrt >zig.log 2>&1 ||
  fail "zig cannot link for glibc $glibc: $(tail -n 1 zig.log)"
found=$(find zig -name libc.so.6 -printf '%h\n' | head -n 1)
[ -n "$found" ] || fail "this zig keeps no libc.so.6 in its cache"
cp "$found"/lib{c.so.6,m.so.6,pthread.so.0,dl.so.2,rt.so.1} "$folder/glibc/"
cp "$found/libld.so.2" "$folder/glibc/ld-linux-x86-64.so.2"
find zig \( -name Scrt1.o -o -name libc_nonshared.a \) -exec cp {} "$folder/glibc/" \;
cd "$folder/glibc"
# As in newer ones, -lc is enough for threads and dlopen().
echo 'GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( libpthread.so.0 libdl.so.2 librt.so.1 ld-linux-x86-64.so.2 ) )' >libc.so
for name in m.so.6 pthread.so.0 dl.so.2 rt.so.1; do ln -s "lib$name" "lib${name%.*}"; done
cd ..

# --- licences ---------------------------------------------------------------------------------------------------------

# libc6: start-up code and wrappers of stat(), which glibc links into every program.
for package in libsentencepiece-dev libmicrohttpd-dev libicu-dev libjansson-dev libyaml-dev libpcre2-dev libxxhash-dev \
  liblapack-dev libblas-dev libarpack2-dev zlib1g-dev liblzma-dev libzstd-dev libminizip-dev libpng-dev gcc-12-base libc6; do
  cp -L "/usr/share/doc/$package/copyright" "licenses/$package.txt"
  dpkg-query --show --showformat '${Package} ${source:Package} ${source:Version}\n' "$package"
done >versions
cp /usr/share/common-licenses/{Apache-2.0,GPL-2,GPL-3,LGPL-2,LGPL-2.1} licenses/
cat >licenses/README <<TEXT
tarn is under the licence in LICENSE. Its program and libraries contain the libraries below, of Debian 12, by package,
source and version; NAME.txt has their licences and authors. libmicrohttpd and the few files of glibc are under the LGPL 2.1,
libgomp, libstdc++ and libgcc under the GPL 3 with the GCC Runtime Library Exception. Debian has the sources; those of tarn
make the program anew with other versions of them (./run wheel).

$(cat versions)
TEXT
rm -rf "$work"
mv versions versions.txt
