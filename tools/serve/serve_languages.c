#include "serve/serve_languages.h"

#include <ctype.h>
#include <string.h>

// A tag in the form of RFC 5646: a language of 2 to 8 letters, and parts of 1 to 8 letters and digits after hyphens.
static bool is_tag(const char *text, size_t size) {
  if (size >= SERVE_LANGUAGE_BYTES) return false;
  for (size_t begin = 0; begin <= size;) {
    size_t end = begin;
    while (end < size && text[end] != '-') {
      const unsigned char c = (unsigned char)text[end++];
      if (begin == 0 ? !isalpha(c) : !isalnum(c)) return false;
    }
    if (end - begin > 8 || end - begin < (begin == 0 ? 2 : 1)) return false;
    begin = end + 1;
  }
  return true;
}

int serve_languages_read(const cli_command *command, serve_languages *languages, const char *text) {
  languages->count = 0;
  if (!text) return -1;
  for (const char *at = text;;) {
    const size_t size = strcspn(at, ",");
    if (!is_tag(at, size))
      return cli_usage(command, "--languages %s: tags of languages are expected, such as de,en or pt-BR", text);
    if (languages->count == SERVE_LANGUAGES)
      return cli_usage(command, "--languages names more than %d languages", SERVE_LANGUAGES);
    char *tag = languages->tags[languages->count++];
    memcpy(tag, at, size);
    tag[size] = '\0';
    if (!at[size]) return -1;
    at += size + 1;
  }
}

int serve_languages_check(const cli_command *command, const serve_languages *languages, bool translates) {
  if (!translates || languages->count == 0 || languages->count == 2) return -1;
  return cli_usage(command, "--languages names %s; a translation model has two, source and target, such as de,en",
                   CLI_COUNT(languages->count, "language"));
}
