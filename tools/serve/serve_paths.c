#include "serve/serve_paths.h"

#include <stdio.h>
#include <string.h>

extern const char serve_page_html[], serve_openapi_json[];
extern const size_t serve_page_html_size, serve_openapi_json_size;

static const serve_file page = {serve_page_html, &serve_page_html_size};
static const serve_file description = {serve_openapi_json, &serve_openapi_json_size};

static const char json[] = "application/json";
static const serve_path fixed[] = {
    {"/translate", SERVE_TRANSLATE, SERVE_FORM_TARN, NULL, json, false, NULL},
    {"/score", SERVE_SCORE, SERVE_FORM_TARN, NULL, json, false, NULL},
    {"/generate", SERVE_GENERATE, SERVE_FORM_TARN, NULL, json, false, NULL},
    {"/attend", SERVE_ATTEND, SERVE_FORM_TARN, NULL, json, false, NULL},
    {"/v1/completions", SERVE_GENERATE, SERVE_FORM_OPENAI, NULL, json, false, NULL},
    {"/v1/models", SERVE_USES, SERVE_FORM_OPENAI, NULL, json, false, NULL},
    {"/health", SERVE_USES, SERVE_FORM_TARN, NULL, json, true, NULL},
    {"/metrics", SERVE_USES, SERVE_FORM_TARN, NULL, "text/plain; version=0.0.4; charset=utf-8", false, NULL},
    {"/openapi.json", SERVE_USES, SERVE_FORM_TARN, NULL, json, true, &description},
    {"/", SERVE_USES, SERVE_FORM_TARN, NULL, "text/html; charset=utf-8", true, &page},
    {"", SERVE_USES, SERVE_FORM_TARN, NULL, json, true, NULL},
};
enum { FIXED = sizeof fixed / sizeof *fixed, BEFORE = 3, NAME = 32 };

// The paths above, with one for each verb of models that predict labels after the first three.
static serve_path paths[SERVE_PATHS];
static char names_of_verbs[SERVE_PATHS][NAME];
static int path_count;

void serve_paths_start(void) {
  const tarn_verb *verb;
  memcpy(paths, fixed, BEFORE * sizeof *fixed);
  path_count = BEFORE;
  for (int i = 0; i < SERVE_PATHS - FIXED && (verb = tarn_verb_at(i)) != NULL; i++) {
    if (verb->images) continue;  // a request holds text
    snprintf(names_of_verbs[i], NAME, "/%s", verb->word);
    paths[path_count++] = (serve_path){names_of_verbs[i], SERVE_LABEL, SERVE_FORM_TARN, verb, json, false, NULL};
  }
  memcpy(paths + path_count, fixed + BEFORE, (FIXED - BEFORE) * sizeof *fixed);
  path_count += FIXED - BEFORE;
}

const serve_path *serve_path_find(const char *name) {
  int i = 0;
  while (i < path_count - 1 && strcmp(paths[i].name, name) != 0 && !serve_path_item(&paths[i], name)) i++;
  return &paths[i];
}

const char *serve_path_item(const serve_path *path, const char *name) {
  static const char list[] = "/v1/models";
  const size_t length = sizeof list - 1;
  return strcmp(path->name, list) == 0 && strncmp(name, list, length) == 0 && name[length] == '/' && name[length + 1]
             ? name + length + 1
             : NULL;
}

int serve_path_number(const serve_path *path) { return (int)(path - paths); }

int serve_paths_names(const char *names[SERVE_PATHS]) {
  for (int i = 0; i < path_count; i++) names[i] = i < path_count - 1 ? paths[i].name : "other";
  return path_count;
}
