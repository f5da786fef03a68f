#include "serve/serve_paths.h"

#include <string.h>

extern const char serve_page_html[], serve_openapi_json[];
extern const size_t serve_page_html_size, serve_openapi_json_size;

static const serve_file page = {serve_page_html, &serve_page_html_size};
static const serve_file description = {serve_openapi_json, &serve_openapi_json_size};

static const char json[] = "application/json";
static const serve_path paths[] = {
    {"/translate", SERVE_TRANSLATE, json, false, NULL},
    {"/score", SERVE_SCORE, json, false, NULL},
    {"/generate", SERVE_GENERATE, json, false, NULL},
    {"/classify", SERVE_CLASSIFY, json, false, NULL},
    {"/attend", SERVE_ATTEND, json, false, NULL},
    {"/health", SERVE_USES, json, true, NULL},
    {"/metrics", SERVE_USES, "text/plain; version=0.0.4; charset=utf-8", false, NULL},
    {"/openapi.json", SERVE_USES, json, true, &description},
    {"/", SERVE_USES, "text/html; charset=utf-8", true, &page},
    {"", SERVE_USES, json, true, NULL},
};
enum { PATHS = sizeof paths / sizeof *paths };

const serve_path *serve_path_find(const char *name) {
  int i = 0;
  while (i < PATHS - 1 && strcmp(paths[i].name, name) != 0) i++;
  return &paths[i];
}

int serve_path_number(const serve_path *path) { return (int)(path - paths); }

int serve_paths_names(const char *names[SERVE_PATHS]) {
  for (int i = 0; i < PATHS; i++) names[i] = i < PATHS - 1 ? paths[i].name : "other";
  return PATHS;
}
