# The Debian packages: contents and dependencies, and whether the program and an example run from them.
set -u
. "$(dirname "$0")/../helpers.sh"
[ -z "${TARN_SANITIZED:-}" ] || exit 77
for tool in dpkg-deb dpkg-shlibdeps file cpack; do command -v $tool >/dev/null || exit 77; done
[ -f "$TARN_BUILD_DIR/CPackConfig.cmake" ] || exit 77
cpack --config "$TARN_BUILD_DIR/CPackConfig.cmake" -G DEB -B "$PWD/packages" \
  -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip >cpack.txt 2>&1 || fail "cpack: $(tail -n 5 cpack.txt)"
field() { dpkg-deb --field packages/"$1"_*.deb "$2"; }
for package in tarn libtarn1 libtarn-lab1 libtarn-dev; do
  [ -f packages/"$package"_*.deb ] || fail "no package $package: $(ls packages)"
  [ "$(field "$package" Package)" = "$package" ] || fail "$package has the name $(field "$package" Package)"
  dpkg-deb --extract packages/"$package"_*.deb root || fail "$package"
  [ -s root/usr/share/doc/"$package"/copyright ] || fail "$package has no copyright"
done
for package in tarn libtarn1; do
  for library in libc6 libgomp1 libicu libjansson4 libsentencepiece0 libyaml; do
    field $package Depends | grep -q "$library" || fail "$package does not depend on $library: $(field $package Depends)"
  done
done
! field tarn Depends | grep -q libtarn || fail "the program depends on the library"
version=$(field libtarn1 Version)
field libtarn-lab1 Depends | grep -qF "libtarn1 (= $version)" || fail "libtarn-lab1 depends on $(field libtarn-lab1 Depends)"
field libtarn-dev Depends | grep -qF "libtarn1 (= $version), libtarn-lab1 (= $version), g++, libjansson-dev, libyaml-dev" ||
  fail "libtarn-dev depends on $(field libtarn-dev Depends)"
dpkg-deb --ctrl-tarfile packages/libtarn1_*.deb | tar -t | grep -q shlibs || fail "libtarn1 has no shlibs"
[ "$(root/usr/bin/tarn --version | sed -n 's/^tarn: //p')-1" = "$version" ] || fail "another version than $version"
[ -f root/usr/share/man/man1/tarn-translate.1 ] || fail "no manual"
library=$(find root -name 'libtarn.so.1')
${CC:-cc} root/usr/share/doc/tarn/examples/forecast_series.c -Iroot/usr/include "${library%/*}/libtarn-lab.so.1" "$library" "-Wl,-rpath,$PWD/${library%/*}" -o example ||
  fail "an example cannot be built"
./example | grep -q NRMSE || fail "an example does not run"
