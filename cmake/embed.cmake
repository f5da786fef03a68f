# cmake -DINPUT=FILE -DOUTPUT=FILE.c -DSYMBOL=name -P embed.cmake: embeds the bytes of a file as
#   const char name[] (followed by a zero byte) and const size_t name_size (without it).
file(READ ${INPUT} bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
string(REGEX REPLACE "(......................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <stddef.h>\nextern const char ${SYMBOL}[];\nextern const size_t ${SYMBOL}_size;\n"
  "const char ${SYMBOL}[] = {\n${bytes}0};\nconst size_t ${SYMBOL}_size = ${size};\n")
