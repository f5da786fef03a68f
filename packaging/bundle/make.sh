#!/usr/bin/env bash
# Makes build/dist/tarn-VERSION-py3-none-manylinux_2_28_x86_64.whl and build/dist/tarn-VERSION-linux-x86_64.tar.gz, and checks
# them (check.sh). `./run wheel` calls it once its packages are there.
set -eu -o pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
here=packaging/bundle
libraries=build/libraries tools=build/wheel-tools dist=build/dist
glibc=2.28 tag=manylinux_2_28_x86_64  # what the program needs to run: getrandom(), memfd_create(), fcntl64()
export TARN_JOBS=${TARN_JOBS:-$(nproc)}
# Every time in the files is that of the commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1767225600)}
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC

# again FOLDER KEY: whether FOLDER is not what was made from the same KEY.
again() { [ "$(cat "$1/key" 2>/dev/null)" != "$2" ]; }

key=$(sha256sum $here/requirements.txt; python3 --version)
if again $tools "$key"; then
  rm -rf $tools
  python3 -m venv $tools
  # ziglang has 80 MB: pip tries again where it cannot connect, but not where a download breaks off. What had arrived whole is
  # in its cache.
  for try in 1 2 3 4 5; do
    $tools/bin/pip install -q --disable-pip-version-check --retries 5 --timeout 60 -r $here/requirements.txt && break
    [ $try -lt 5 ] || {
      echo "run wheel: pip could not install what $here/requirements.txt names, in 5 tries (its last message is above);" \
        "./run wheel goes on from here" >&2
      exit 1
    }
    echo "run wheel: pip tries again ($try of 4)" >&2
    sleep $((try * 5))
  done
  echo "$key" >$tools/key
fi
key=$(sha256sum $here/libraries.sh $here/requirements.txt; dpkg-query --show gcc-12-base libc6-dev 'libsentencepiece-dev' \
  libmicrohttpd-dev libicu-dev libjansson-dev libyaml-dev libpcre2-dev libxxhash-dev liblapack-dev libblas-dev libarpack2-dev \
  zlib1g-dev liblzma-dev libzstd-dev libminizip-dev libpng-dev; echo $glibc)
if again $libraries "$key"; then
  $here/libraries.sh $libraries $tools/bin/python $glibc
  rm -rf build/bundle
  echo "$key" >$libraries/key
fi

cmake --preset bundle "-DTARN_PYTHON=$PWD/$tools/bin/python" >build/bundle.log 2>&1 || {
  tail -n 20 build/bundle.log >&2
  exit 1
}
cmake --build --preset bundle -j "$TARN_JOBS" --target tarn_installed tarn_python
rm -rf build/bundle/tree $dist
mkdir -p $dist
for component in program library lab dev; do
  cmake --install build/bundle --prefix build/bundle/tree --component $component >/dev/null
done
$tools/bin/python $here/pack.py . build/bundle/tree build/bundle/python/tarn/_binding.py $libraries/licenses $tag $dist >/dev/null
$here/check.sh $dist/*.whl $dist/*.tar.gz $tools $glibc
(cd $dist && sha256sum -- *)
