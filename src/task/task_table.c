// The table of the tasks in task_list.h. Tests with a task of their own replace this table.
#include "task/task.h"

#define ENTRIES(NAME, entries, word, text) tarn__tasks_##entries,
const tarn__task *const *const tarn__task_table[] = {TARN__TASK_LIST(ENTRIES)};
const int tarn__task_count = sizeof tarn__task_table / sizeof *tarn__task_table;
