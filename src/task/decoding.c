// The options of translation, by kind of decoding.
#include <stdio.h>
#include <string.h>

#include "task/task.h"

enum { TOKENS = 1u << TARN__DECODING_TOKENS, MASKS = 1u << TARN__DECODING_MASKS, EDITS = 1u << TARN__DECODING_EDITS };

// Options that all kinds have are not listed.
static const struct {
  const char *word;
  unsigned of;
} table[] = {{"beam", TOKENS},
             {"length_penalty", TOKENS},
             {"max_len_a", TOKENS},
             {"max_len_b", TOKENS},
             {"min_length", TOKENS},
             {"early_stopping", TOKENS},
             {"iterations", MASKS | EDITS},
             {"length_beam", MASKS},
             {"placeholder_penalty", EDITS}};
enum { COUNT = sizeof table / sizeof *table };

bool tarn__decoding_has(char text[2 * TARN__TASK_TEXT], const tarn__task *task, const char *option) {
  const size_t room = 2 * (size_t)TARN__TASK_TEXT;
  int at = 0, left = 0, used;
  while (at < COUNT && strcmp(table[at].word, option) != 0) at++;
  if (at == COUNT || table[at].of >> task->decoding & 1u) return true;
  for (int i = 0; i < COUNT; i++) left += table[i].of >> task->decoding & 1u;
  used = snprintf(text, room, "%s has no %s; its options are ", task->model, option);
  for (int i = 0; i < COUNT; i++) {
    if (!(table[i].of >> task->decoding & 1u)) continue;
    used += snprintf(text + used, room - (size_t)used, "%s%s", table[i].word,
                     --left > 1 ? ", "
                     : left > 0 ? " and "
                                : "");
  }
  return false;
}

bool tarn__task_reads_whole(const tarn__task *task) {
  const tarn__task_stack *decoder = tarn__task_stack_of(task, TARN__STACK_DECODER);
  return decoder && !decoder->causal;
}
