# Checks the objects of libtarn.a against src/rooms.txt: one line per violation. Reads lines "room LINE OF rooms.txt",
# "file SOURCE" and "symbol LINE OF nm -A -P". File names are unique, so an object's name identifies its source (kernels
# have several objects).

function room_of(path) {
  sub(/^src\//, "", path)
  do sub(/\/?[^\/]*$/, "", path)
  while (path != "" && !(path in rooms))
  return path
}

$1 == "room" && $2 ~ /^[a-z]/ {
  sub(/^room /, "")
  name = $0
  sub(/:.*/, "", name)
  rooms[name] = 1
  sub(/^[^:]*:/, "")
  sub(/\|.*/, "")
  for (i = 1; i <= NF; i++) {
    mark = $i ~ /^[@!]/ ? substr($i, 1, 1) : "="
    sub(/^[@!]/, "", $i)
    rule[name, $i] = mark
  }
}

$1 == "file" && $2 ~ /^src\// {
  file = $2
  sub(/.*\//, "", file)
  source[file] = $2
}

$1 == "symbol" && $3 ~ /^tarn_/ {
  object = $2
  sub(/.*\[/, "", object)
  sub(/\.o\]:?$/, "", object)
  if ($4 == "U" && !seen[object, $3]++) {
    user[++uses] = object
    used[uses] = $3
  } else if ($4 ~ /^[TDBRCVW]$/) {
    home[$3] = object
    is_data[$3] = $4 != "T" && $4 != "W"
  }
}

END {
  for (i = 1; i <= uses; i++) {
    symbol = used[i]
    from = source[user[i]]
    to = source[home[symbol]]
    if (from == "" || to == "") continue  # from a removed source, or not in our sources
    a = room_of(from)
    b = room_of(to)
    mark = a == b ? "=" : rule[a, b]
    known[a, b] = 1
    if (mark == "" || (mark == "@" && !is_data[symbol]))
      print from ": src/" a " must not use " symbol " of " to " (src/rooms.txt)"
  }
  for (pair in rule) {
    split(pair, ends, SUBSEP)
    if (rule[pair] != "=" && !known[ends[1], ends[2]])
      print "src/rooms.txt: " ends[1] " names " rule[pair] ends[2] " and uses nothing of it; take it away"
  }
}
