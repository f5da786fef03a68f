#include "fault_power.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault_state.h"
#include "fault_tree.h"

enum { BLOCK = 512, MOST_NODES = 20000, MOST_PENDING = 200000 };

typedef struct bytes {
  char *data;
  size_t size, capacity;
} bytes;

typedef struct node node;

typedef struct entry {
  char name[256];
  node *node;
} entry;

typedef struct entries {
  entry *list;
  size_t count, capacity;
} entries;

// A file or a folder: as the command sees it, and as it surely is on the disk.
struct node {
  uint64_t inode;
  bool folder;
  char *target;  // of a symbolic link
  bytes now, disk;
  entries names_now, names_disk;
};

// A change that need not be on the disk yet. Of names: the entry `name` of `folder` is `node` (NULL: gone), and with
// it, for a move, the entry `old` of `old_folder` is gone.
typedef struct pending {
  node *file;  // NULL: a change of names
  size_t at, size;
  char *data;  // NULL: the file has `at` bytes from now on
  node *folder, *node, *old_folder;
  char name[256], old[256];
  bool done;  // surely on the disk
} pending;

static node *nodes[MOST_NODES];
static size_t node_count;
static pending *waiting;
static size_t waiting_count;
static char root_path[PATH_MAX];
static node *root;
static uint64_t random_state;

static uint64_t draw(void) {
  random_state += 0x9e3779b97f4a7c15;
  uint64_t x = random_state;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// --- bytes and names
// --------------------------------------------------------------------------------------------------

static void resize(bytes *b, size_t size) {
  if (size > b->capacity) {
    size_t larger = size + size / 2 + 4096;
    b->data = realloc(b->data, larger);
    if (!b->data) give_up("out of memory");
    memset(b->data + b->capacity, 0, larger - b->capacity);
    b->capacity = larger;
  }
  if (size > b->size) memset(b->data + b->size, 0, size - b->size);
  b->size = size;
}

static void put_bytes(bytes *b, size_t at, const char *data, size_t size) {
  if (at + size > b->size) resize(b, at + size);
  if (size) memcpy(b->data + at, data, size);
}

static void copy_bytes(bytes *to, const bytes *from) {
  resize(to, from->size);
  if (from->size) memcpy(to->data, from->data, from->size);
}

static entry *look(entries *e, const char *name) {
  for (size_t i = 0; i < e->count; i++)
    if (strcmp(e->list[i].name, name) == 0) return &e->list[i];
  return NULL;
}

static void set_entry(entries *e, const char *name, node *n) {
  entry *old = look(e, name);
  if (old && n) old->node = n;
  if (old && !n) *old = e->list[--e->count];
  if (old || !n) return;
  if (e->count == e->capacity) {
    e->capacity = e->capacity ? 2 * e->capacity : 16;
    e->list = realloc(e->list, e->capacity * sizeof *e->list);
    if (!e->list) give_up("out of memory");
  }
  entry *fresh = &e->list[e->count++];
  snprintf(fresh->name, sizeof fresh->name, "%s", name);
  fresh->node = n;
}

static node *add_node(uint64_t inode, bool folder) {
  if (node_count == MOST_NODES) give_up("more than %d files", MOST_NODES);
  node *n = calloc(1, sizeof *n);
  if (!n) give_up("out of memory");
  n->inode = inode;
  n->folder = folder;
  nodes[node_count++] = n;
  return n;
}

// The youngest of that number: numbers are used again.
static node *node_of(uint64_t inode) {
  for (size_t i = node_count; i-- > 0;)
    if (nodes[i]->inode == inode && !nodes[i]->folder) return nodes[i];
  return NULL;
}

// --- the folder before
// ------------------------------------------------------------------------------------------------

static node *read_node(const char *path) {
  struct stat info;
  if (lstat(path, &info) != 0) give_up("%s: %s", path, strerror(errno));
  node *n = add_node(info.st_ino, S_ISDIR(info.st_mode));
  if (S_ISLNK(info.st_mode)) {
    char target[PATH_MAX];
    const ssize_t length = readlink(path, target, sizeof target);
    if (length < 0) give_up("%s: %s", path, strerror(errno));
    n->target = strndup(target, (size_t)length);
    return n;
  }
  if (!n->folder) {
    size_t size;
    char *data = file_contents(path, &size);
    put_bytes(&n->now, 0, data, size);
    put_bytes(&n->disk, 0, data, size);
    free(data);
    return n;
  }
  DIR *folder = opendir(path);
  if (!folder) give_up("%s: %s", path, strerror(errno));
  for (const struct dirent *e; (e = readdir(folder));) {
    char below[PATH_MAX];
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    (void)!snprintf(below, sizeof below, "%s/%s", path, e->d_name);
    node *child = read_node(below);
    set_entry(&n->names_now, e->d_name, child);
    set_entry(&n->names_disk, e->d_name, child);
  }
  closedir(folder);
  return n;
}

static void forget(void) {
  for (size_t i = 0; i < node_count; i++) {
    free(nodes[i]->target);
    free(nodes[i]->now.data);
    free(nodes[i]->disk.data);
    free(nodes[i]->names_now.list);
    free(nodes[i]->names_disk.list);
    free(nodes[i]);
  }
  for (size_t i = 0; i < waiting_count; i++) free(waiting[i].data);
  node_count = waiting_count = 0;
}

void power_begin(const char *folder) {
  forget();
  if (!waiting && !(waiting = calloc(MOST_PENDING, sizeof *waiting))) give_up("out of memory");
  if (!realpath(folder, root_path)) give_up("%s: %s", folder, strerror(errno));
  root = read_node(root_path);
}

// --- the journal
// ------------------------------------------------------------------------------------------------------

// The folder that holds a path, and the last word of it; NULL: outside of the working folder.
static node *folder_of(const char *path, char name[256]) {
  size_t length = strlen(root_path);
  if (strncmp(path, root_path, length) != 0 || path[length] != '/') return NULL;
  node *n = root;
  for (const char *word = path + length + 1;;) {
    size_t size = strcspn(word, "/");
    snprintf(name, 256, "%.*s", (int)size, word);
    const char *next = word + size + strspn(word + size, "/");
    if (!*next) return n;
    word = next;
    if (size == 0 || strcmp(name, ".") == 0) continue;
    entry *e = look(&n->names_now, name);
    if (!e || !e->node->folder) give_up("%s: a folder that the journal does not know", path);
    n = e->node;
  }
}

static pending *wait_with(void) {
  if (waiting_count == MOST_PENDING) give_up("more than %d changes", MOST_PENDING);
  pending *p = &waiting[waiting_count++];
  *p = (pending){0};
  return p;
}

static void change_name(const char *path, node *n, const char *old) {
  pending p = {.node = n};
  p.folder = folder_of(path, p.name);
  if (old) p.old_folder = folder_of(old, p.old);
  if (!p.folder || (old && !p.old_folder)) return;
  if (old) {
    entry *e = look(&p.old_folder->names_now, p.old);
    if (!e) give_up("%s is moved, but the journal does not know it", old);
    p.node = e->node;
    set_entry(&p.old_folder->names_now, p.old, NULL);
  }
  set_entry(&p.folder->names_now, p.name, p.node);
  *wait_with() = p;
}

// All that waits for a file is on the disk.
static void sync_file(node *n) {
  copy_bytes(&n->disk, &n->now);
  for (size_t i = 0; i < waiting_count; i++)
    if (waiting[i].file == n) waiting[i].done = true;
}

static void apply_names(const pending *p) {
  if (p->old_folder) set_entry(&p->old_folder->names_disk, p->old, NULL);
  set_entry(&p->folder->names_disk, p->name, p->node);
}

static void sync_names(const char *path) {
  char name[256];
  node *n = root;
  if (strcmp(path, root_path) != 0) {
    char word[PATH_MAX];
    (void)!snprintf(word, sizeof word, "%s/.", path);
    n = folder_of(word, name);
  }
  for (size_t i = 0; i < waiting_count && n; i++) {
    pending *p = &waiting[i];
    if (p->file || p->done || (p->folder != n && p->old_folder != n)) continue;
    apply_names(p);
    p->done = true;
  }
}

static void change_file(const fault_record *r, const char *data) {
  node *n = node_of(r->inode);
  if (!n) return;  // outside of the folder
  if (r->change == FAULT_SYNC_FILE) {
    sync_file(n);
    return;
  }
  pending *p = wait_with();
  p->file = n;
  p->at = r->offset;
  p->size = r->data_length;
  if (r->change == FAULT_TRUNCATE) {
    resize(&n->now, p->at);
    return;
  }
  p->data = malloc(p->size + 1);
  if (!p->data) give_up("out of memory");
  memcpy(p->data, data, p->size);
  put_bytes(&n->now, p->at, p->data, p->size);
}

static void take_record(const fault_record *r, const char *name, const char *other, const char *data) {
  char word[256];
  switch ((fault_change)r->change) {
    case FAULT_CREATE:
      if (folder_of(name, word)) change_name(name, add_node(r->inode, false), NULL);
      break;
    case FAULT_MAKE_FOLDER:
      if (folder_of(name, word)) change_name(name, add_node(0, true), NULL);
      break;
    case FAULT_MAKE_LINK:
      if (folder_of(name, word)) {
        node *n = add_node(0, false);
        n->target = strdup(other);
        change_name(name, n, NULL);
      }
      break;
    case FAULT_MOVE:
      change_name(other, NULL, name);
      break;
    case FAULT_UNLINK:
      change_name(name, NULL, NULL);
      break;
    case FAULT_SYNC_NAMES:
      sync_names(name);
      break;
    case FAULT_WRITE_AT:
    case FAULT_TRUNCATE:
    case FAULT_SYNC_FILE:
      change_file(r, data);
      break;
  }
}

static void read_journal(const char *path) {
  size_t size;
  char *all = file_contents(path, &size);
  for (size_t at = 0; at + sizeof(fault_record) <= size;) {
    fault_record r;
    char name[PATH_MAX];
    char other[PATH_MAX];
    memcpy(&r, all + at, sizeof r);
    at += sizeof r;
    snprintf(name, sizeof name, "%.*s", (int)r.name_length, all + at);
    at += r.name_length;
    snprintf(other, sizeof other, "%.*s", (int)r.other_length, all + at);
    at += r.other_length;
    take_record(&r, name, other, all + at);
    at += r.data_length;
  }
  free(all);
}

// --- the loss
// ---------------------------------------------------------------------------------------------------------

// What file systems do: the data of a file as a whole, up to some write, by blocks, or only its size.
typedef enum fate { DROPPED, WHOLE, PREFIX, BLOCKS, ZEROS, FATES } fate;

static void tear(bytes *b, const pending *p, bool by_blocks) {
  size_t end = by_blocks ? p->size : draw() % (p->size + 1);
  for (size_t from = 0; from < end;) {
    size_t to = ((p->at + from) / BLOCK + 1) * BLOCK - p->at;
    if (to > end) to = end;
    if (!by_blocks || draw() % 2) put_bytes(b, p->at + from, p->data + from, to - from);
    from = to;
  }
}

static void lose_data(node *n, size_t changes) {
  const fate what = draw() % FATES;
  size_t stop = changes ? draw() % changes : 0;  // of a prefix: this one is torn
  size_t seen = 0;
  for (size_t i = 0; i < waiting_count; i++) {
    const pending *p = &waiting[i];
    if (p->file != n || p->done) continue;
    if (what == PREFIX && seen++ > stop) break;
    if (what == DROPPED || what == ZEROS) continue;
    if (!p->data)
      resize(&n->disk, p->at);
    else if (what == WHOLE || (what == PREFIX && seen <= stop))
      put_bytes(&n->disk, p->at, p->data, p->size);
    else
      tear(&n->disk, p, what == BLOCKS);
  }
  if (what == ZEROS || (what == BLOCKS && draw() % 2)) resize(&n->disk, n->now.size);
}

// In the order of a journal (up to some change), or each for itself.
static void lose_names(void) {
  const bool in_order = draw() % 2;
  const size_t until = draw() % (waiting_count + 1);
  for (size_t i = 0; i < waiting_count; i++) {
    const pending *p = &waiting[i];
    if (!p->file && !p->done && (in_order ? i < until : draw() % 2)) apply_names(p);
  }
}

static void write_node(const char *path, node *n) {
  if (n->target) {
    if (symlink(n->target, path) != 0) give_up("%s: %s", path, strerror(errno));
    return;
  }
  if (!n->folder) {
    file_put(path, n->disk.data ? n->disk.data : "", n->disk.size);
    return;
  }
  if (mkdir(path, 0777) != 0 && errno != EEXIST) give_up("%s: %s", path, strerror(errno));
  for (size_t i = 0; i < n->names_disk.count; i++) {
    char below[PATH_MAX];
    (void)!snprintf(below, sizeof below, "%s/%s", path, n->names_disk.list[i].name);
    write_node(below, n->names_disk.list[i].node);
  }
}

void power_lose(const char *folder, const char *journal, uint64_t seed) {
  random_state = seed;
  read_journal(journal);
  for (size_t i = 0; i < node_count; i++) {
    size_t changes = 0;
    for (size_t p = 0; p < waiting_count; p++) changes += waiting[p].file == nodes[i] && !waiting[p].done;
    if (changes) lose_data(nodes[i], changes);
  }
  lose_names();
  tree_remove(folder);
  write_node(folder, root);
}
