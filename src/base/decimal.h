// Numbers as tables have them, with a decimal point or a decimal comma.
#ifndef TARN_BASE_DECIMAL_H
#define TARN_BASE_DECIMAL_H

#include <stdbool.h>

// Whether all of the text is a number as strtod() takes one, finite or not, with `decimal` ('.' or ',') as its mark. A
// decimal comma is followed by a digit, and the text has no point, which would be a thousands separator.
bool tarn__decimal_read(double *value, const char *text, char decimal);

// Whether the comma of a number may also be a thousands separator: "1,234" and "-12,345", but neither "0,234" nor
// "1,5".
bool tarn__decimal_may_be_thousands(const char *text);

#endif
