#include "serve/serve_secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int refuse(const cli_command *command, const char *where, const char *why) {
  fprintf(stderr, "tarn %s: %s: %s\n", command->name, where, why);
  return CLI_FAILURE;
}

int serve_secret_read(const cli_command *command, serve_secret *secret, const char *path) {
  const char *where = path ? path : "TARN_TOKEN";
  *secret = (serve_secret){0};
  if (path) {
    errno = 0;
    FILE *file = fopen(path, "r");
    if (!file) return refuse(command, where, strerror(errno));
    secret->length = fread(secret->text, 1, sizeof secret->text, file);
    const int error = ferror(file) ? errno : 0;
    fclose(file);
    if (error) return refuse(command, where, strerror(error));
  } else {
    const char *variable = getenv("TARN_TOKEN");
    if (!variable) return -1;
    secret->length = strnlen(variable, sizeof secret->text);
    memcpy(secret->text, variable, secret->length);
  }
  if (secret->length == sizeof secret->text) return refuse(command, where, "the token has more than 4095 bytes");
  secret->text[secret->length] = '\0';
  secret->length = strcspn(secret->text, "\r\n");
  secret->text[secret->length] = '\0';
  if (secret->length == 0) return refuse(command, where, "the token is empty");
  for (size_t i = 0; i < secret->length; i++)
    if (secret->text[i] <= ' ' || secret->text[i] > '~')
      return refuse(command, where, "a token has visible ASCII characters only, and no blanks");
  return -1;
}

bool serve_secret_matches(const serve_secret *secret, const char *header) {
  static const char scheme[] = "Bearer ";
  if (secret->length == 0) return true;
  if (!header || strncasecmp(header, scheme, sizeof scheme - 1) != 0) return false;
  const char *given = header + sizeof scheme - 1;
  const size_t length = strlen(given);
  volatile unsigned char different = length != secret->length;
  for (size_t i = 0; i < length; i++) different |= (unsigned char)(given[i] ^ secret->text[i % secret->length]);
  return different == 0;
}
