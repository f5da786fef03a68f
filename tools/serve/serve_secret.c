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

static int read_file(const cli_command *command, serve_secret *secret, const char *path) {
  errno = 0;
  FILE *file = fopen(path, "r");
  if (!file) return refuse(command, path, strerror(errno));
  const size_t size = fread(secret->memory, 1, sizeof secret->memory - 1, file);
  const int error = ferror(file) ? errno : 0;
  fclose(file);
  if (error) return refuse(command, path, strerror(error));
  if (memchr(secret->memory, '\0', size))
    return refuse(command, path, "a token has visible ASCII characters only, and no blanks");
  if (size == sizeof secret->memory - 1) return refuse(command, path, "it is too long for a file of tokens");
  return -1;
}

static int take_token(const cli_command *command, serve_secret *secret, const char *where, const char *text) {
  const size_t length = strlen(text);
  if (length >= SERVE_SECRET_BYTES) return refuse(command, where, "the token has more than 4095 bytes");
  for (size_t i = 0; i < length; i++)
    if (text[i] <= ' ' || text[i] > '~')
      return refuse(command, where, "a token has visible ASCII characters only, and no blanks");
  if (secret->count == SERVE_SECRETS) return refuse(command, where, "it has more than 256 tokens");
  secret->texts[secret->count] = text;
  secret->lengths[secret->count++] = length;
  return -1;
}

int serve_secret_read(const cli_command *command, serve_secret *secret, const char *path) {
  const char *where = path ? path : "TARN_TOKEN", *variable = getenv("TARN_TOKEN");
  int code = -1;
  memset(secret, 0, sizeof *secret);
  if (path)
    code = read_file(command, secret, path);
  else if (variable && strlen(variable) < sizeof secret->memory)
    memcpy(secret->memory, variable, strlen(variable) + 1);
  else if (variable)
    code = refuse(command, where, "the token has more than 4095 bytes");
  else
    return -1;
  char *rest = NULL;
  for (char *line = strtok_r(secret->memory, "\r\n", &rest); code < 0 && line; line = strtok_r(NULL, "\r\n", &rest))
    code = take_token(command, secret, where, line);
  if (code < 0 && secret->count == 0) code = refuse(command, where, "the token is empty");
  return code;
}

static bool is_same(const serve_secret *secret, int number, const char *given, size_t length) {
  volatile unsigned char different = length != secret->lengths[number];
  for (size_t i = 0; i < length; i++)
    different |= (unsigned char)(given[i] ^ secret->texts[number][i % secret->lengths[number]]);
  return different == 0;
}

int serve_secret_find(const serve_secret *secret, const char *header) {
  static const char scheme[] = "Bearer ";
  int found = -1;
  if (secret->count == 0) return 0;
  if (!header || strncasecmp(header, scheme, sizeof scheme - 1) != 0) return -1;
  const char *given = header + sizeof scheme - 1;
  const size_t length = strlen(given);
  for (int i = 0; i < secret->count; i++)
    if (is_same(secret, i, given, length)) found = i;
  return found;
}
