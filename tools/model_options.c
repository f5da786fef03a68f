#include "model_options.h"

#include <stdio.h>

int model_options_set(const cli_command *command, const model_options *model, tarn_translate_precision *precision,
                      tarn_translate_overlong *overlong, int *threads) {
  static const char *const ways[] = {"truncate", "refuse"};
  const char *names[TARN_TRANSLATE_PRECISION_COUNT];
  int value = 0, way = 0;
  for (int i = 0; i < TARN_TRANSLATE_PRECISION_COUNT; i++)
    names[i] = tarn_translate_precision_name((tarn_translate_precision)i);
  int code = limit_options_set(command, &model->limits);
  if (code < 0)
    code = cli_word(command, &value, "--precision", model->precision, names, TARN_TRANSLATE_PRECISION_COUNT);
  if (code < 0 && overlong) code = cli_word(command, &way, "--overlong", model->overlong, ways, 2);
  *precision = (tarn_translate_precision)value;
  if (overlong) *overlong = way == 0 ? TARN_TRANSLATE_OVERLONG_TRUNCATE : TARN_TRANSLATE_OVERLONG_REFUSE;
  *threads = (int)model->threads;
  return code;
}

int model_options_choice(const cli_command *command, tarn_checkpoint_choice *choice, const char *word) {
  // Without the first choice, which is the default without the option.
  const char *names[TARN_CHECKPOINT_CHOICE_COUNT - 1];
  int value = 0;
  for (int i = 1; i < TARN_CHECKPOINT_CHOICE_COUNT; i++)
    names[i - 1] = tarn_checkpoint_choice_name((tarn_checkpoint_choice)i);
  int code = word ? cli_word(command, &value, "--checkpoint", word, names, TARN_CHECKPOINT_CHOICE_COUNT - 1) : -1;
  *choice = word ? (tarn_checkpoint_choice)(value + 1) : TARN_CHECKPOINT_CHOICE_AUTO;
  return code;
}

int model_options_find(const cli_command *command, tarn_checkpoint_found *found, const char *path, const char *word) {
  tarn_checkpoint_choice choice;
  const int code = model_options_choice(command, &choice, word);
  if (code >= 0) return code;
  tarn_status status = tarn_checkpoint_find(found, path, choice);
  return status == TARN_STATUS_OK ? -1 : cli_report(command, status);
}

void model_options_done(const cli_command *command, tarn_checkpoint_found *found, int code, bool quiet) {
  // If standard output cannot be written, main() fails and prints the only message.
  if (found->in_run && code == CLI_OK && !quiet && !ferror(stdout))
    fprintf(stderr, "tarn %s: took %s (%s)\n", command->name, found->path,
            found->reason[0] ? found->reason : "--checkpoint");
  tarn_checkpoint_found_close(found);
}
