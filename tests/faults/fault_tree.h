// Folders of files, compared by contents.
#ifndef TARN_TESTS_FAULT_TREE_H
#define TARN_TESTS_FAULT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tree_file {
  char *path;  // below the folder
  uint64_t hash;
  size_t size;
} tree_file;

typedef struct tree {
  tree_file *files;  // by path
  size_t count, capacity;
} tree;

// Reads all regular files of a folder; locks and event files of TensorBoard, which belong to one process and have its
// number, are left out, and so is memory that was measured (peak_bytes), which a second run may have otherwise.
void tree_read(tree *t, const char *folder);
void tree_close(tree *t);
const tree_file *tree_find(const tree *t, const char *path);
bool tree_has(const tree *t, const tree_file *file);  // the same path with the same contents

void tree_copy(const char *from, const char *to);  // `to` is emptied first
void tree_remove(const char *folder);

// Contents of a file; ends the program where it cannot be read. To be freed.
char *file_contents(const char *path, size_t *size);
void file_put(const char *path, const void *data, size_t size);

// Ends the program with a line: the test itself cannot go on.
void give_up(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
