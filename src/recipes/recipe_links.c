// The links to the data in a recipe's folder.
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "recipes/recipe_spec.h"

// Under this name a link is made before it replaces another, below TARN_RECIPE_INPUTS. No file of the data is hidden.
static const char NEW[] = TARN_RECIPE_INPUTS "/.new";

static bool leads_to(const char *link, const char *file) {
  char target[PATH_MAX];
  const ssize_t length = readlink(link, target, sizeof target);
  return length >= 0 && (size_t)length == strlen(file) && memcmp(target, file, (size_t)length) == 0;
}

bool tarn__recipe_leads_to_data(const tarn_recipe_need *need, size_t file) {
  return leads_to(need->links[file], need->files[file]);
}

bool tarn__recipe_is_linked(const tarn_recipe *recipe) {
  for (size_t i = 0; i < recipe->need_count; i++)
    for (size_t k = 0; k < recipe->needs[i].file_count; k++)
      if (!tarn__recipe_leads_to_data(&recipe->needs[i], k)) return false;
  return true;
}

static tarn_status make_link(const char *link, const char *file) {
  struct stat info;
  if (leads_to(link, file)) return TARN_STATUS_OK;
  // As in a copy of the folder that was made through the links.
  TARN_REQUIRE(lstat(link, &info) != 0 || S_ISLNK(info.st_mode), USAGE,
               "%s is not a link to the data: move " TARN_RECIPE_INPUTS " elsewhere, and give it with --data", link);
  TARN_TRY(tarn__mkdir_of_file(link));
  unlink(NEW);
  const bool made = symlink(file, NEW) == 0 && rename(NEW, link) == 0;
  const int reason = errno;
  if (!made) unlink(NEW);
  TARN_REQUIRE(made, IO, "%s: cannot make a link to %s: %s", link, file, strerror(reason));
  tarn__sync_folder_of(link);
  return TARN_STATUS_OK;
}

static bool is_wanted(const tarn_recipe *recipe, const char *link) {
  for (size_t i = 0; i < recipe->need_count; i++)
    for (size_t k = 0; k < recipe->needs[i].file_count; k++)
      if (strcmp(recipe->needs[i].links[k], link) == 0) return true;
  return false;
}

// Removes the links to data that an attempt had found before any step was done: a command may read all files of a
// folder. Other files than links stay.
static tarn_status drop_others(const tarn_recipe *recipe, const char *folder) {
  tarn_status status = TARN_STATUS_OK;
  DIR *dir = opendir(folder);
  if (!dir) return TARN_STATUS_OK;
  for (const struct dirent *entry; status == TARN_STATUS_OK && (entry = readdir(dir));) {
    char path[PATH_MAX];
    struct stat info;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    status = tarn__path_join(path, folder, entry->d_name);
    if (status != TARN_STATUS_OK || lstat(path, &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      status = drop_others(recipe, path);
      rmdir(path);  // if nothing is left in it, since a file may have its name now
    } else if (S_ISLNK(info.st_mode) && !is_wanted(recipe, path) && unlink(path) != 0) {
      status = tarn__fail(TARN_STATUS_IO, "%s: cannot remove: %s", path, strerror(errno));
    }
  }
  closedir(dir);
  return status;
}

tarn_status tarn__recipe_link_data(const tarn_recipe *recipe) {
  struct stat info;
  TARN_REQUIRE(lstat(TARN_RECIPE_INPUTS, &info) != 0 || S_ISDIR(info.st_mode), USAGE,
               TARN_RECIPE_INPUTS " is not the folder of links that the recipe makes; remove it");
  TARN_TRY(drop_others(recipe, TARN_RECIPE_INPUTS));
  for (size_t i = 0; i < recipe->need_count; i++) {
    const tarn_recipe_need *need = &recipe->needs[i];
    for (size_t k = 0; k < need->file_count; k++) TARN_TRY(make_link(need->links[k], need->files[k]));
  }
  return TARN_STATUS_OK;
}
