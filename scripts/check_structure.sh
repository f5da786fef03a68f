#!/usr/bin/env bash
# Checks the rules that keep the project readable (see CONTRIBUTING.md). Prints one line a breach; exit code 1 if any.
# usage: check_structure.sh [libtarn.a]
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/sources.sh
max_file=800
max_function=80
breaches=0
breach() {
  echo "check_structure: $*"
  breaches=$((breaches + 1))
}
mapfile -t files < <(sources include src tools tests bench examples)

# room_of FILE: the room of a file below src/, the longest folder of its path that src/rooms.txt names.
declare -A may_take
while IFS=: read -r room rest; do
  case $room in \#* | "") continue ;; esac
  may_take[$room]=${rest%%|*}
done <src/rooms.txt
room_of() {
  local folder=${1%/*}
  while [ -z "${may_take[$folder]+x}" ] && [ "$folder" != "${folder%/*}" ]; do folder=${folder%/*}; done
  echo "$folder"
}

check_include() {  # FILE WORD: the word between the quotes of an include in FILE
  local file=$1 word=$2 folder=${2%%/*} own
  case $file in
    include/*)
      [ "$folder" = tarn ] || breach "$file: a public header includes \"$word\"; only tarn/ is allowed" ;;
    tools/*)
      [ "$folder" = tarn ] || [ -f "tools/$word" ] ||
        breach "$file: includes \"$word\"; the program uses tarn/ and its own headers only" ;;
    src/*)
      own=$(room_of "${file#src/}")
      [ "$folder" = "$word" ] && [ "$word" != build_info.h ] &&
        breach "$file: includes \"$word\" without its folder (\"$own/$word\")"
      case " tarn $own build_info.h ${may_take[$own]-} " in
        *" $(room_of "$word") "*) ;;
        *) breach "$file: src/$own must not include \"$word\" (src/rooms.txt)" ;;
      esac ;;
  esac
}

while IFS=$'\t' read -r file word; do
  check_include "$file" "$word"
done < <(grep -Hn '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "${files[@]}" |
  sed -E 's/^([^:]+):[0-9]+:[^"]*"([^"]+)".*/\1\t\2/' | grep -E '^(include|tools|src)/')

# Every folder is a room, and each takes only from rooms that are written above it.
while read -r folder; do
  [ -n "${may_take[${folder#src/}]+x}" ] || breach "$folder: src/rooms.txt does not name it"
done < <(printf '%s\n' "${files[@]}" | grep '^src/' | sed 's|/[^/]*$||' | sort -u)

# Lengths. All sources are formatted, so a function ends with a brace in the first column and begins with the last line
# before it that has a letter in the first column.
while read -r line; do breach "$line"; done < <(awk -v max_file=$max_file -v max_function=$max_function '
  function finish() { if (lines > max_file) print name ": " lines " lines, more than " max_file }
  FNR == 1 { finish(); name = FILENAME; start = 0 }
  { lines = FNR }
  /^[A-Za-z_]/ && !/^[A-Za-z_0-9]+:$/ && !/^extern "C"/ { if (!open) start = FNR; open = !/[;}][[:space:]]*(\/\/.*)?$/ }
  /^}/ {
    if (start && FNR - start + 1 > max_function && $0 == "}")
      print FILENAME ":" start ": a function of " FNR - start + 1 " lines, more than " max_function
    start = 0; open = 0
  }
  END { finish() }' "${files[@]}")

# A name tells where to look only if there is one file of that name (besides the public header of the same noun).
while read -r name; do
  breach "several files are named $name"
done < <(printf '%s\n' "${files[@]}" | grep -v '^include/' | sed 's|.*/||' | sort | uniq -d)

marks='TO''DO|FIX''ME|XX''X|HA''CK'
while read -r line; do breach "unfinished: $line"; done < <(grep -nwE "$marks" "${files[@]}")

# Each public header stands alone, in C and in C++.
warnings="-Wall -Wextra -Werror -Iinclude -fsyntax-only"
for header in include/tarn/*.h; do
  # shellcheck disable=SC2086
  echo "#include \"tarn/$(basename "$header")\"" | ${CC:-cc} -std=c11 $warnings -Wstrict-prototypes -x c - ||
    breach "$header: does not compile alone as C11"
  # shellcheck disable=SC2086
  echo "#include \"tarn/$(basename "$header")\"" | ${CXX:-c++} -std=c++17 $warnings -x c++ - ||
    breach "$header: does not compile alone as C++17"
  grep -q 'extern "C"' "$header" || ! grep -qE '\);$|\) TARN_CHECKED;$' "$header" ||
    breach "$header: declares functions without extern \"C\""
done

# What others can link against is named tarn_ or tarn__.
if [ $# -gt 0 ]; then
  while read -r symbol; do
    breach "$(basename "$1"): the symbol $symbol does not begin with tarn_"
  done < <(nm -g --defined-only "$1" 2>/dev/null | awk 'NF == 3 && $2 ~ /^[TDBRC]$/ && $3 !~ /^tarn_/ {print $3}')
fi

echo "check_structure: ${#files[@]} files, $breaches breaches"
[ "$breaches" -eq 0 ]
