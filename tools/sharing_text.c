#include "sharing_text.h"

#include <stdio.h>

static const char *count(char text[32], int64_t parameters, bool millions) {
  if (millions)
    snprintf(text, 32, "%.2f M", (double)parameters / 1e6);
  else
    snprintf(text, 32, "%lld", (long long)parameters);
  return text;
}

const char *sharing_text(char text[SHARING_TEXT], int64_t all, int64_t layers, bool millions) {
  char a[32], l[32], e[32];
  count(a, all, millions);
  text[0] = '\0';
  if (all > layers && layers > 0)
    snprintf(text, SHARING_TEXT, "; sharing saves %s more (layers %s, embeddings %s)", a, count(l, layers, millions),
             count(e, all - layers, millions));
  else if (all > 0)
    snprintf(text, SHARING_TEXT, "; sharing %s saves %s more", layers > 0 ? "layers" : "embeddings", a);
  return text;
}
