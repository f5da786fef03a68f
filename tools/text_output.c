#include "text_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int cannot_write(const cli_command *command, const char *name, int error) {
  fprintf(stderr, "tarn %s: %s: cannot write: %s\n", command->name, name, strerror(error));
  return CLI_FAILURE;
}

// A file is written beside its place and then put there. A link keeps being a link; a device or a pipe is written
// directly, because it cannot be replaced.
static int open_file(text_output *output, const char *path) {
  struct stat info;
  if (!*path) return ENOENT;
  bool exists = stat(path, &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return EISDIR;
  if (exists && !S_ISREG(info.st_mode)) {
    output->file = fopen(path, "wb");
    return output->file ? 0 : errno;
  }
  output->target = exists ? realpath(path, NULL) : strdup(path);
  if (!output->target) return errno;
  size_t size = strlen(output->target) + 32;
  output->temporary = malloc(size);
  if (!output->temporary) return ENOMEM;
  snprintf(output->temporary, size, "%s.tmp.%ld", output->target, (long)getpid());
  output->file = fopen(output->temporary, "wb");
  return output->file ? 0 : errno;
}

static void free_names(text_output *output) {
  free(output->target);
  free(output->temporary);
  output->target = output->temporary = NULL;
}

int text_output_open(const cli_command *command, text_output *output, const char *path) {
  *output = (text_output){.file = stdout, .name = path ? path : "standard output"};
  int error = path ? open_file(output, path) : 0;
  if (error == 0) return CLI_OK;
  free_names(output);
  return cannot_write(command, output->name, error);
}

int text_output_close(const cli_command *command, text_output *output, bool keep) {
  int error = ferror(output->file) ? errno : 0;
  bool unwritten = ferror(output->file) != 0;
  if (fflush(output->file) != 0 || (output->temporary && fsync(fileno(output->file)) != 0)) {
    if (!unwritten) error = errno;
    unwritten = true;
  }
  if (output->file != stdout && fclose(output->file) != 0 && !unwritten) {
    unwritten = true;
    error = errno;
  }
  if (output->temporary && keep && !unwritten && rename(output->temporary, output->target) != 0) {
    unwritten = true;
    error = errno;
  }
  if (output->temporary && (unwritten || !keep)) unlink(output->temporary);
  free_names(output);
  return unwritten ? cannot_write(command, output->name, error) : CLI_OK;
}

void text_output_line(text_output *output, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    const char c = text[i];
    putc(c == '\n' || c == '\r' ? ' ' : c, output->file);
  }
}
