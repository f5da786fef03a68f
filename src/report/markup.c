#include "report/markup.h"

#include <stdint.h>
#include <string.h>

#include "text/utf8.h"

static bool xml_forbids(int32_t code) {
  if (code < 0x20) return code != '\t' && code != '\n' && code != '\r';
  return (code >= 0xd800 && code <= 0xdfff) || code == 0xfffe || code == 0xffff;
}

void tarn__markup_xml(tarn__buffer *out, const char *text) {
  size_t left = strlen(text);
  while (left > 0) {
    int32_t code = -1;
    size_t length = tarn__utf8_decode(&code, text, left);
    if (xml_forbids(code))
      tarn__buffer_add(out, "\xEF\xBF\xBD");
    else if (code == '&')
      tarn__buffer_add(out, "&amp;");
    else if (code == '<')
      tarn__buffer_add(out, "&lt;");
    else if (code == '>')
      tarn__buffer_add(out, "&gt;");
    else if (code == '"')
      tarn__buffer_add(out, "&quot;");
    else
      tarn__buffer_put(out, text, length);
    text += length;
    left -= length;
  }
}

void tarn__markup_markdown(tarn__buffer *out, const char *text) {
  for (; *text; text++) {
    if (strchr("\\|`*_<>[]#&~$", *text)) tarn__buffer_add(out, "\\");
    tarn__buffer_put(out, *text == '\n' || *text == '\r' ? " " : text, 1);
  }
}

void tarn__markup_csv(tarn__buffer *out, const char *text) {
  bool quoted = text[strcspn(text, ",\"\r\n")] != '\0';
  if (quoted) tarn__buffer_add(out, "\"");
  for (; *text; text++) {
    if (*text == '"') tarn__buffer_add(out, "\"");
    tarn__buffer_put(out, text, 1);
  }
  if (quoted) tarn__buffer_add(out, "\"");
}

void tarn__markup_latex(tarn__buffer *out, const char *text) {
  static const struct {
    const char *from, *to;
  } words[] = {{"\\", "\\textbackslash{}"},
               {"{", "\\{"},
               {"}", "\\}"},
               {"$", "\\$"},
               {"&", "\\&"},
               {"#", "\\#"},
               {"%", "\\%"},
               {"_", "\\_"},
               {"~", "\\textasciitilde{}"},
               {"^", "\\textasciicircum{}"},
               {"<", "\\textless{}"},
               {">", "\\textgreater{}"},
               {"|", "\\textbar{}"},
               {"\"", "\\textquotedblright{}"},  // the character itself starts shorthands of babel
               {"--", "-{}-{}"},                 // ligatures: dashes, quotes, and the inverted marks of Spanish
               {"``", "`{}`{}"},
               {"''", "'{}'{}"},
               {",,", ",{},{}"},
               {"?`", "?{}`{}"},
               {"!`", "!{}`{}"},
               {"\n", " "},
               {"\xC2\xB1", "$\\pm$"},
               {"\xE2\x80\x93", "--"},
               {"\xE2\x80\x94", "---"},
               {"\xE2\x88\x92", "$-$"},
               {"\xC2\xB7", "$\\cdot$"},
               {"\xC3\x97", "$\\times$"},
               {"\xE2\x89\xA4", "$\\leq$"},
               {"\xE2\x80\x89", "\\,"}};
  while (*text) {
    size_t i = 0;
    while (i < sizeof words / sizeof *words && strncmp(text, words[i].from, strlen(words[i].from)) != 0) i++;
    if (i < sizeof words / sizeof *words) {
      tarn__buffer_add(out, words[i].to);
      text += strlen(words[i].from);
    } else {
      tarn__buffer_put(out, text++, 1);
    }
  }
}

void tarn__markup_file_name(tarn__buffer *out, const char *text) {
  for (size_t i = 0; text[i]; i++) {
    char c = text[i];
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    bool dot = c == '.' && i > 0;  // a file name with a leading dot is hidden
    tarn__buffer_put(out, plain || dot ? &c : "-", 1);
  }
}
