// The contents of a recipe, for the files that share it: recipe_open.c, recipe_needs.c, recipe_links.c, recipe_steps.c,
// recipe_sweep.c, recipe_prepare.c, recipe_score.c.
#ifndef TARN_RECIPES_RECIPE_SPEC_H
#define TARN_RECIPES_RECIPE_SPEC_H

#include "base/memory.h"
#include "config/yaml_tree.h"
#include "tarn/lab/recipes.h"

struct tarn__recipe_memory {
  tarn__arena arena;
  tarn__yaml tree;
  tarn__yaml_node *root;
  const tarn_recipe_options *options;  // while it is opened
  tarn_recipe_need *needs;             // the writable form of the public lists
  bool *settings;                      // (need_count) whether tokenizer_config.json is beside the files of a need
  tarn_recipe_step *steps;
  size_t step_capacity;
  int64_t vocabulary;  // tokens, before it is made; 0: not given
};

// Files that are compiled into the library (cmake/recipes.cmake), by their paths below examples/.
typedef struct tarn__recipe_file {
  const char *path, *text;
  const char *recipe;  // its name; NULL: a description
} tarn__recipe_file;
extern const tarn__recipe_file tarn__recipe_files[];  // the recipes by name; ends with an entry without a path

// A text in the recipe's arena.
tarn_status tarn__recipe_text(const tarn_recipe *recipe, const char **out, const char *format, ...)
    __attribute__((format(printf, 3, 4))) TARN_CHECKED;

// Whether a path leads below a folder: relative, without "..", and nothing that an option could begin with.
bool tarn__recipe_is_below(const char *path);

// Reads the key `data` and looks for the files. recipe_needs.c.
tarn_status tarn__recipe_read_needs(tarn_recipe *recipe) TARN_CHECKED;
// What "$NAME" or "$NAME/", the folder of its files, stands for: *files are the links. Fails with USAGE for another
// name.
tarn_status tarn__recipe_resolve(const tarn_recipe *recipe, const tarn__yaml_node *node, const char *text,
                                 const char *const **files, size_t *count) TARN_CHECKED;
// The same for a value that is one path: a need, or a path below the current folder.
tarn_status tarn__recipe_path(const tarn_recipe *recipe, const tarn__yaml_node *node, const char *text,
                              const char **path) TARN_CHECKED;

// Makes the links to the data in the current folder. Fails with USAGE, and touches nothing, if other files are in their
// place. recipe_links.c.
tarn_status tarn__recipe_link_data(const tarn_recipe *recipe) TARN_CHECKED;
// Whether the link to a file of a need is there and leads to it; and whether all do.
bool tarn__recipe_leads_to_data(const tarn_recipe_need *need, size_t file);
bool tarn__recipe_is_linked(const tarn_recipe *recipe);

// Reads a list of steps, for a seed (0: none). recipe_steps.c.
tarn_status tarn__recipe_read_steps(tarn_recipe *recipe, const char *key, int64_t seed) TARN_CHECKED;
// Fails, naming `node`, if two steps write the same file.
tarn_status tarn__recipe_check_made(const tarn_recipe *recipe, const tarn__yaml_node *node) TARN_CHECKED;

// Writes the sweep of the description. recipe_sweep.c.
tarn_status tarn__recipe_write_sweep(tarn_recipe *recipe) TARN_CHECKED;
// Checks the description with all changes, the test, and the paths in both, before any file is made. `origin`: the
// recipe's, for messages.
tarn_status tarn__recipe_check_description(const tarn_recipe *recipe, const char *origin) TARN_CHECKED;
// Whether the runs in the current folder, if there are any, are those of this sweep.
tarn_status tarn__recipe_check_runs(const tarn_recipe *recipe) TARN_CHECKED;

// The file that lists the steps that are done.
#define TARN__RECIPE_STATE "prepared.json"
// What this program keeps in the folder itself, so that no step may write it; ends with NULL. Without a description
// TARN_RECIPE_RUNS, the last, belongs to the steps.
extern const char *const tarn__recipe_own[];

#endif
