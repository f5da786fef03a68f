#include "parts/part.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tarn_status tarn__part_fail(const tarn__part_site *site, const char *key, const char *format, ...) {
  char text[320];
  char path[128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(path, sizeof path, "%s.%s", site->path, key);
  return site->fail(site, path, text);
}

bool tarn__part_listed(const char *list, const char *word) {
  while (list && *list) {
    size_t n = strcspn(list, " ");
    size_t i = 0;
    while (i < n && word[i] &&
           (list[i] == word[i] || (list[i] == '-' && word[i] == '_') || (list[i] == '_' && word[i] == '-'))) {
      i++;
    }
    if (i == n && word[n] == 0) return true;
    list += n + (list[n] == ' ');
  }
  return false;
}
