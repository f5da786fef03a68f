#include "base/decimal.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 400 };  // bytes of a number with a comma; the longest double has 309 digits before it

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool read(double *value, const char *text) {
  char *end;
  *value = strtod(text, &end);
  return *text && !*end;
}

bool tarn__decimal_read(double *value, const char *text, char decimal) {
  const char *comma = decimal == ',' ? strchr(text, ',') : NULL;
  *value = 0;
  if (decimal == ',' && strchr(text, '.')) return false;
  if (!comma) return read(value, text);
  char copy[LONGEST];
  const size_t length = strlen(text);
  if (!is_digit(comma[1]) || length >= LONGEST) return false;
  memcpy(copy, text, length + 1);
  copy[comma - text] = '.';
  return read(value, copy);
}

bool tarn__decimal_may_be_thousands(const char *text) {
  text += strspn(text, "+- ");
  const size_t before = strspn(text, "0123456789");
  if (before < 1 || before > 3 || *text == '0' || text[before] != ',') return false;
  return strspn(text + before + 1, "0123456789") == 3 && text[before + 4] == 0;
}
