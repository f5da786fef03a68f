#!/usr/bin/env bash
# Checks the README on a bare machine: a minimal Debian or Ubuntu (debootstrap and chroot), a fresh clone of HEAD, and
# in it `./run demo` and `./run test`. Needs root and debootstrap; uses the apt sources, proxies and keys of this
# machine.
# usage: fresh_machine.sh DISTRIBUTION [--quick | --build | --packages | --compilers | --names | --wheel] [--keep]
#   DISTRIBUTION  a suite: bookworm, trixie, testing, jammy, noble ...
#   --quick       a demo of ten seconds per model and `./run test --quick`, the fast tests
#   --build       only `./run build` and `tarn --version`
#   --packages    `./run package`, and its packages installed on another bare root, with an example built there; if this
#                 machine has that distribution, the packages made here (build/package)
#   --compilers   kernels and their tests with every gcc and clang of the distribution (check_compilers.sh)
#   --wheel       what `./run wheel` made (build/dist), where there is no compiler, by a user: archive, wheel and what an image
#                 does, each to a model that is trained in 12 seconds and translates
#   --names       no root: whether the suite has a package for every name in ./run's lists (for ./run test)
#   --keep        keep the root that was used, and print its path
# FRESH_ROOTS is the folder of bare roots (default /var/tmp/tarn-roots/SUITE; each run uses a copy), FRESH_MIRROR the
# archive (default: that of this machine's apt). The last line says what passed. Exit code 77: it cannot be tried here.
set -u
source_dir=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
name=$(basename "$0")
roots=${FRESH_ROOTS:-/var/tmp/tarn-roots}
suite="" what=all keep=no
for word in "$@"; do
  case $word in
    --quick | --build | --packages | --compilers | --names | --wheel) what=${word#--} ;;
    --keep) keep=yes ;;
    -*) suite="" && break ;;
    *) suite=$word ;;
  esac
done
if ! [[ $suite =~ ^[a-z][a-z0-9-]*$ ]]; then
  sed -n 's/^# usage: /usage: /p; s/^#   /  /p' "$0" >&2
  exit 2
fi

skip() {
  echo "$name: skipped, $*"
  exit 77
}
fail() {
  echo "$name: $suite: $*" >&2
  exit 1
}

# --- this machine's apt -----------------------------------------------------------------------------------------------

command -v apt-get >/dev/null || skip "there is no apt here"

# The archives that apt uses, one "URI SUITE" per line, in the order of its sources.
archives() {
  apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' | sort -u
}

# Whether an archive has the suite.
has_suite() {
  /usr/lib/apt/apt-helper download-file "$1/dists/$suite/InRelease" "$2/InRelease" >/dev/null 2>&1
}

# The archive of the suite: one of apt's, except those of security updates.
mirror_of() {
  local candidate
  if [ -n "${FRESH_MIRROR:-}" ]; then
    echo "$FRESH_MIRROR"
    return
  fi
  while read -r candidate; do
    has_suite "$candidate" "$1" && echo "$candidate" && return
  done < <(archives | cut -d ' ' -f 1 | grep -v security | sort -u)
}

# Checks every name in ./run's lists, except those that it omits if they are unknown.
names() {
  sed -n '/^build_packages=(/,/^bench_packages/p' "$source_dir/run" | grep -vE '^(format|sanitizer|abi)_packages' |
    sed 's/^[a-z_]*=//; s/#.*//' | tr -d '()' | tr -s ' \n' '\n\n' | grep .
}

check_names() {  # MIRROR FOLDER
  local all missing=()
  cat >"$2/apt.conf" <<TEXT
Dir::State "$2/state";
Dir::Cache "$2/cache";
Dir::Etc::SourceList "$2/sources.list";
Dir::Etc::SourceParts "-";
Dir::State::status "/dev/null";
Acquire::Retries "1";
TEXT
  mkdir -p "$2/state/lists/partial" "$2/cache/archives/partial"
  local parts="main"
  [[ $1 != *ubuntu* ]] || parts="main universe"
  echo "deb $1 $suite $parts" >"$2/sources.list"
  APT_CONFIG="$2/apt.conf" apt-get -q -q update >"$2/update.log" 2>&1 || skip "apt cannot read $suite: $(tail -n 1 "$2/update.log")"
  all=$(APT_CONFIG="$2/apt.conf" apt-cache --no-all-names pkgnames | sort)
  while read -r package; do
    grep -qxF "$package" <<<"$all" || missing+=("$package")
  done < <(names)
  [ ${#missing[@]} -eq 0 ] || fail "no package ${missing[*]}"
  echo "$name: $suite has all $(names | wc -l) packages"
}

work=$(mktemp -d) || exit 1
root="" made=()
leave() {
  local place root
  for root in "${made[@]}"; do
    for place in proc dev; do
      mountpoint -q "$root/$place" && umount -R -l "$root/$place"
    done
    # Never through a mount that could not be undone.
    if ! grep -qF " $root/" /proc/self/mounts; then
      [ $keep = yes ] && echo "$name: kept $root" || rm -rf --one-file-system "$root"
    fi
  done
  rm -rf "$work"
}
trap leave EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

mirror=$(mirror_of "$work")
[ -n "$mirror" ] || skip "no archive of apt's sources has the suite $suite (or none can be reached)"
if [ $what = names ]; then
  check_names "$mirror" "$work"
  exit 0
fi

# --- the bare root ----------------------------------------------------------------------------------------------------

[ "$(id -u)" -eq 0 ] || skip "only root can make a bare root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
command -v git >/dev/null || skip "git is not installed"

# Proxies, keys and settings of this machine's apt; debootstrap takes proxies from the environment.
http_proxy=${http_proxy:-$(apt-config dump --format '%v' Acquire::http::Proxy)}
[ -z "$http_proxy" ] || export http_proxy

bare=$roots/$suite
if [ ! -e "$bare/etc/debian_version" ]; then
  mkdir -p "$roots"
  rm -rf --one-file-system "$bare.new"
  script=""
  [ -e "/usr/share/debootstrap/scripts/$suite" ] || script=/usr/share/debootstrap/scripts/sid
  echo "$name: debootstrap of $suite"
  debootstrap --variant=minbase "$suite" "$bare.new" "$mirror" ${script:+"$script"} >"$work/debootstrap.log" 2>&1 ||
    fail "debootstrap failed: $(tail -n 3 "$work/debootstrap.log")"
  mv "$bare.new" "$bare"
fi
# Sets `root` to a new copy of the bare root with a working apt.
new_root() {
  local file
  root=$(mktemp -d "$roots/$suite-XXXXXX") || exit 1
  made+=("$root")
  chmod 755 "$root"
  cp -a --reflink=auto "$bare/." "$root/" || fail "the bare root cannot be copied"
  local components=main
  [[ $mirror != *ubuntu* ]] || components="main universe"
  echo "deb $mirror $suite $components" >"$root/etc/apt/sources.list"
  rm -f "$root"/etc/apt/sources.list.d/*
  # Settings of proxies, certificates or dates, but no hooks that run after an installation.
  for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
    [ -f "$file" ] && grep -q '^ *Acquire' "$file" && cp "$file" "$root/etc/apt/apt.conf.d/"
  done
  [ ! -d /etc/apt/auth.conf.d ] || cp -r /etc/apt/auth.conf.d "$root/etc/apt/"
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null
  mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev" ||
    skip "this machine does not let root mount"
}
new_root
[ $what = wheel ] || git clone -q "$source_dir" "$root/tarn" || fail "git clone failed"

# --- the commands of the README ---------------------------------------------------------------------------------------

passed=() failed=()
inside() {  # NAME COMMAND...
  local title=$1 code=0 start=$SECONDS
  shift
  echo "=== $suite: $title"
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    ${TARN_JOBS:+"TARN_JOBS=$TARN_JOBS"} ${DEMO_MINUTES:+"DEMO_MINUTES=$DEMO_MINUTES"} \
    ${CTEST_PARALLEL_LEVEL:+"CTEST_PARALLEL_LEVEL=$CTEST_PARALLEL_LEVEL"} sh -c "cd ${directory:-/tarn} && $*" </dev/null || code=$?
  if [ $code -eq 0 ]; then passed+=("$title ($((SECONDS - start)) s)"); else failed+=("$title (exit code $code)"); fi
}

case $what in
  compilers)
    inside "./run build" ./run build
    list="apt-cache pkgnames | grep -E '^(gcc-1[1-9]|clang-(1[4-9]|[2-9][0-9]))\$'"
    inside "compilers" "apt-get -q -q -y --no-install-recommends install libcmocka-dev libomp-dev \$($list) >/dev/null &&
      scripts/check_compilers.sh"
    ;;
  packages)
    debs=$source_dir/build/package
    if [ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" != "$suite" ] || ! compgen -G "$debs/*.deb" >/dev/null; then
      inside "./run package" ./run package
      debs=$root/tarn/build/package
    fi
    compgen -G "$debs/*.deb" >/dev/null || fail "./run package made no package"
    new_root
    mkdir "$root/debs" && cp "$debs"/*.deb "$root/debs/"
    directory=/debs
    get="apt-get -q -q -y --no-install-recommends install"
    inside "the program's package" "apt-get -q -q update && $get ./tarn_*.deb >/dev/null &&
      tarn --version && tarn corpus --output corpus --sentences 200 && tarn bleu --reference corpus/valid.en corpus/valid.en"
    inside "the library's packages" "$get ./libtarn*.deb gcc libc6-dev pkg-config >/dev/null &&
      cc /usr/share/doc/tarn/examples/forecast_series.c \$(pkg-config --cflags --libs tarn-lab) -o example && ./example &&
      cc /usr/share/doc/tarn/examples/forecast_series.c \$(pkg-config --cflags tarn) -Wl,-Bstatic -ltarn-lab -ltarn -Wl,-Bdynamic \
        \$(pkg-config --static --libs tarn) -o static && ./static"
    ;;
  wheel)
    dist=$source_dir/build/dist
    compgen -G "$dist/*.whl" >/dev/null && compgen -G "$dist/*.tar.gz" >/dev/null || fail "nothing in build/dist; ./run wheel makes it"
    prepare_user() {
      mkdir "$root/dist" && cp "$dist"/* "$root/dist/"
      # With which this machine's pip trusts its index.
      [ ! -f "${PIP_CERT:-}" ] || cp -L "$PIP_CERT" "$root/dist/index.crt"
      chroot "$root" useradd --create-home --uid 1000 someone || fail "no user"
      cp "$source_dir/scripts/first_sentence.sh" "$source_dir/examples/demo/model3.yaml" "$root/home/someone/"
    }
    prepare_user
    directory=/home/someone
    user="setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/home/someone ${PIP_CERT:+PIP_CERT=/dist/index.crt} sh -c"
    inside "the archive" "$user '! command -v cc && tar xzf /dist/*.tar.gz && PATH=\$(echo ~/tarn-*/bin):\$PATH sh first_sentence.sh'"
    if chroot "$root" sh -c "apt-get -q -q update && apt-cache show python3 | grep -qE '^Version: 3\.(9|[1-9][0-9])'"; then
      inside "its Python" "apt-get -q -q -y --no-install-recommends install python3-venv >/dev/null"
      inside "the wheel by pip" "$user '! command -v cc && python3 -m venv there && there/bin/pip install -q /dist/*.whl'"
      inside "its first sentence" "$user 'PATH=~/there/bin:\$PATH sh first_sentence.sh'"
      inside "its package" "$user 'there/bin/python -c \"import tarn; print(tarn.Run(\\\"run\\\").translate([\\\"Mein Bruder kauft ein Haus.\\\"]))\"'"
    else
      echo "$name: $suite has a Python that is too old for the package"
    fi
    # The lines of the Dockerfile in their order, in one root.
    new_root
    prepare_user
    directory=/
    inside "the Dockerfile" "export PATH=/usr/local/bin:\$PATH && $(awk '/^ADD / { print "mkdir -p " $3 " && tar xzf /dist/" $2 " -C " $3 " &&" }
      /^COPY --from=/ { print "cp -a " $3 ". " $4 " &&" }
      /^RUN / { sub("^RUN ", ""); sub("--uid 1000", ""); print $0 " &&" }' "$source_dir/packaging/Dockerfile")
      setpriv --reuid 1001 --regid 1001 --clear-groups tarn --version"
    ;;
  build) inside "./run build" "./run build && build/release/tarn --version" ;;
  quick)
    DEMO_MINUTES=${DEMO_MINUTES:-0.17} inside "./run demo" ./run demo
    inside "./run test --quick" "./run test --quick"
    ;;
  all)
    inside "./run demo" ./run demo
    inside "./run test" "./run test"
    ;;
esac
echo "=== $suite: $(. "$root/etc/os-release" && echo "$PRETTY_NAME"), commit $(git -C "$source_dir" rev-parse --short HEAD)"
printf 'passed: %s\n' "${passed[@]}"
[ ${#failed[@]} -eq 0 ] || printf 'failed: %s\n' "${failed[@]}"
[ ${#failed[@]} -eq 0 ]
