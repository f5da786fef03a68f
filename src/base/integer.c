#include <stdbool.h>
#include <string.h>

#include "tarn/text.h"

// Reads the exponent after the e: digits with a sign, cut off at 999. False if it is none.
static bool read_exponent(int *exponent, const char *text) {
  const bool minus = text[0] == '-';
  const char *digit = text + (text[0] == '-' || text[0] == '+');
  *exponent = 0;
  if (!*digit || strspn(digit, "0123456789") != strlen(digit)) return false;
  for (; *digit; digit++) *exponent = *exponent < 100 ? *exponent * 10 + (*digit - '0') : 999;
  if (minus) *exponent = -*exponent;
  return true;
}

// Appends a decimal digit to a number, saturating at its limit.
static void append(uint64_t *value, int digit) {
  const uint64_t limit = (uint64_t)INT64_MAX + 1;
  *value = *value > (limit - (uint64_t)digit) / 10 ? limit : *value * 10 + (uint64_t)digit;
}

bool tarn_text_integer(int64_t *value, const char *text) {
  static const char digits[] = "0123456789";
  const bool minus = text[0] == '-';
  const char *whole = text + (text[0] == '-' || text[0] == '+');
  const size_t whole_count = strspn(whole, digits);
  const bool point = whole[whole_count] == '.';
  const char *fraction = whole + whole_count + point;
  size_t fraction_count = point ? strspn(fraction, digits) : 0;
  const char *end = fraction + fraction_count;
  const bool power = *end == 'e' || *end == 'E';
  int exponent = 0;
  // A point without an exponent belongs to a number that need not be whole.
  if (whole_count + fraction_count == 0 || (point && !power) || (power && !read_exponent(&exponent, end + 1)) ||
      (!power && *end))
    return false;
  while (fraction_count > 0 && fraction[fraction_count - 1] == '0') fraction_count--;
  const int zeros = exponent - (int)(fraction_count < 1000 ? fraction_count : 1000);
  size_t kept = whole_count;
  // With a negative power the last digits of the whole part must be zeros: 1200e-2 is 12.
  if (zeros < 0 && fraction_count > 0) return false;
  for (int i = zeros; i < 0 && kept > 0; i++)
    if (whole[--kept] != '0') return false;
  uint64_t size = 0;
  for (size_t i = 0; i < kept; i++) append(&size, whole[i] - '0');
  for (size_t i = 0; i < fraction_count; i++) append(&size, fraction[i] - '0');
  for (int i = 0; i < zeros && size > 0; i++) append(&size, 0);
  if (minus)
    *value = size > (uint64_t)INT64_MAX ? INT64_MIN : -(int64_t)size;
  else
    *value = size > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)size;
  return true;
}
