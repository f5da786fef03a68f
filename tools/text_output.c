#include "text_output.h"

#include <errno.h>
#include <string.h>

static int cannot_write(const cli_command *command, const text_output *output, int error) {
  fprintf(stderr, "tarn %s: %s: cannot write: %s\n", command->name, output->name, strerror(error));
  return CLI_FAILURE;
}

int text_output_open(const cli_command *command, text_output *output, const char *path) {
  output->file = path ? fopen(path, "wb") : stdout;
  output->name = path ? path : "standard output";
  return output->file ? CLI_OK : cannot_write(command, output, errno);
}

int text_output_close(const cli_command *command, text_output *output) {
  int error = errno;
  bool unwritten = ferror(output->file) != 0;
  if (fflush(output->file) != 0) {
    unwritten = true;
    error = errno;
  }
  if (output->file != stdout && fclose(output->file) != 0 && !unwritten) {
    unwritten = true;
    error = errno;
  }
  return unwritten ? cannot_write(command, output, error) : CLI_OK;
}

void text_output_line(text_output *output, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    const char c = text[i];
    putc(c == '\n' || c == '\r' ? ' ' : c, output->file);
  }
}
