// What the driver of the fault tests and the library that it puts before a command (LD_PRELOAD) share: orders,
// counters, and a journal of what the command did to files. The state is a page that both map; FAULT_STATE names its
// file.
#ifndef TARN_TESTS_FAULT_STATE_H
#define TARN_TESTS_FAULT_STATE_H

#include <stdint.h>
#ifndef __cplusplus
#include <stdatomic.h>
#endif

// Kinds of calls that can fail. A kind counts only what the command itself asks for, in the order of its calls.
#define FAULT_KINDS(X) \
  X(OPEN, "open")      \
  X(READ, "read")      \
  X(WRITE, "write")    \
  X(SYNC, "fsync")     \
  X(RENAME, "rename")  \
  X(MAP, "map")        \
  X(FOLDER, "mkdir")   \
  X(REMOVE, "unlink")  \
  X(THREAD, "thread")  \
  X(WAIT, "wait")      \
  X(ALLOC, "allocation")

typedef enum fault_kind {
#define FAULT_ENUM(name, word) FAULT_##name,
  FAULT_KINDS(FAULT_ENUM)
#undef FAULT_ENUM
      FAULT_KIND_COUNT
} fault_kind;

typedef enum fault_mode {
  FAULT_MODE_COUNT,        // nothing fails
  FAULT_MODE_ONCE,         // call `at` of `kind` fails
  FAULT_MODE_FROM,         // call `at` of `kind` and all later ones fail, as on a full disk
  FAULT_MODE_KILL,         // the command dies (SIGKILL) in place of call `at` of all that are no allocations
  FAULT_MODE_KILL_CHANGE,  // the same, counting only what changes files
  FAULT_MODE_SHORT,        // reads and writes do a part of what they are asked for
  FAULT_MODE_INTERRUPT     // now and then a call returns EINTR first
} fault_mode;

enum { FAULT_PLACES = 1 << 16, FAULT_MODULES = 48, FAULT_MODULE_NAME = 48, FAULT_PATH = 512 };

#ifndef __cplusplus  // which has no _Atomic, and no need of it
typedef struct fault_state {
  // Orders, written before the command starts.
  int32_t mode, kind, error;
  int32_t root;       // process number of the command, which a kill ends even where a process of its own meets it
  int32_t only_root;  // calls of processes that the command starts pass uncounted
  int32_t places;     // whether the places of allocations are noted
  int32_t journal;    // whether changes of files are recorded in journal_path
  uint64_t at, seed;
  char program[64];    // the base name of the program that is meant; others are left alone
  char excluded[256];  // modules whose allocations do not fail: "libgomp libsentencepiece"
  char journal_path[FAULT_PATH];
  // What happened.
  _Atomic uint64_t count[FAULT_KIND_COUNT];
  _Atomic uint64_t calls;    // all but allocations
  _Atomic uint64_t changes;  // calls that change files
  _Atomic uint32_t fired;
  _Atomic uint32_t module_count;
  char module[FAULT_MODULES][FAULT_MODULE_NAME];
  _Atomic uint64_t allocations[FAULT_MODULES];
  uint64_t place[FAULT_PLACES];  // of the first allocations: a hash of the calls that led to each
} fault_state;
#endif

// The journal: records one after the other, each followed by its two names and its data.
typedef enum fault_change {
  FAULT_CREATE,       // name: an empty file, `inode`
  FAULT_WRITE_AT,     // data at `offset` of `inode`
  FAULT_TRUNCATE,     // `inode` has `offset` bytes from now on
  FAULT_SYNC_FILE,    // `inode` is on the disk
  FAULT_SYNC_NAMES,   // the entries of folder `name` are
  FAULT_MOVE,         // name to other
  FAULT_UNLINK,       // name
  FAULT_MAKE_FOLDER,  // name
  FAULT_MAKE_LINK     // name, leading to other
} fault_change;

typedef struct fault_record {
  uint32_t change, name_length, other_length, data_length;
  uint64_t inode, offset;
} fault_record;

#endif
