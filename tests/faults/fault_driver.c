// Runs one command again and again, each time with another fault: a call that fails, a kill, a loss of power. After
// each the folder must hold the old files or the new ones, nothing else, and going on must end with the bytes of a run
// that was not disturbed. The script faults.sh of this folder knows the commands.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault_power.h"
#include "fault_verdict.h"

static const char usage[] =
    "usage: fault_driver [options] -- PROGRAM [arguments]\n"
    "  --name NAME         in messages\n"
    "  --library FILE      put before the program\n"
    "  --work DIR          holds before/; now/ (the working folder) and other things are made there\n"
    "  --input FILE        standard input\n"
    "  --again SCRIPT      what goes on after a fault (default: the command)\n"
    "  --loads SCRIPT      opens what a killed command may leave half done\n"
    "  --only-first        calls of processes that the command starts do not fail\n"
    "  --drops FILES       that the command removes on its way\n"
    "  --at N              only that call of each kind\n"
    "  --excluded MODULES  whose allocations do not fail\n"
    "  --kinds WORDS       of calls that fail (default: all)\n"
    "  --faults N          of each kind let N calls fail, spread over all; 0: every one\n"
    "  --places            of allocations, the first and the last of each place in the program (stack of calls) fails\n"
    "  --kills N           at random moments and at random calls, in turns\n"
    "  --losses N          of power\n"
    "  --bends N           rounds of parts of reads and writes, and of EINTR\n"
    "  --seed N  --messages\n";

typedef struct plan {
  verdict v;
  fault_command command;
  fault_state counted;
  const char *kinds;
  long faults, kills, losses, bends;  // -1: none
  long seed, at;
  const char *excluded;
  bool only_first, places;
  char journal[PATH_MAX];
} plan;

static uint64_t random_state;

static uint64_t draw(void) {
  random_state += 0x9e3779b97f4a7c15;
  uint64_t x = random_state;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

static const char *const kind_words[] = {
#define FAULT_WORD(name, word) word,
    FAULT_KINDS(FAULT_WORD)
#undef FAULT_WORD
};

// What the system says where such a call fails.
static int error_of(fault_kind kind) {
  static const int errors[] = {
      [FAULT_OPEN] = EMFILE,   [FAULT_READ] = EIO,    [FAULT_WRITE] = ENOSPC,  [FAULT_SYNC] = EIO,
      [FAULT_RENAME] = ENOSPC, [FAULT_MAP] = ENOMEM,  [FAULT_FOLDER] = ENOSPC, [FAULT_REMOVE] = EROFS,
      [FAULT_THREAD] = EAGAIN, [FAULT_WAIT] = ECHILD, [FAULT_ALLOC] = ENOMEM};
  return errors[kind];
}

static void order(plan *p, fault_mode mode, fault_kind kind, uint64_t at) {
  fault_state *s = p->command.state;
  verdict_reset(&p->v);
  command_reset(&p->command);
  s->mode = (int32_t)mode;
  s->kind = (int32_t)kind;
  s->at = at;
  s->error = error_of(kind);
}

static void fail_call(plan *p, fault_kind kind, uint64_t at, bool from_there) {
  char what[128];
  snprintf(what, sizeof what, "%s %llu%s", kind_words[kind], (unsigned long long)at,
           from_there ? " and all later" : "");
  order(p, from_there ? FAULT_MODE_FROM : FAULT_MODE_ONCE, kind, at);
  int status = command_run(&p->command, NULL, -1, NULL);
  p->v.keeps = kind == FAULT_REMOVE;
  verdict_after_failure(&p->v, what, status, kind == FAULT_ALLOC || kind == FAULT_MAP);
  p->v.keeps = false;
}

// Lets the first and the last allocation of every place fail. Which allocation is whose does not depend on the run.
static uint64_t fail_places(plan *p, uint64_t all) {
  uint64_t rounds = 0;
  const uint64_t *place = p->counted.place;
  if (all > FAULT_PLACES) give_up("%s: more than %d allocations", p->command.name, FAULT_PLACES);
  for (uint64_t i = 0; i < all; i++) {
    bool first = true;
    bool last = true;
    for (uint64_t j = 0; j < i && first; j++) first = place[j] != place[i];
    for (uint64_t j = i + 1; j < all && last && !first; j++) last = place[j] != place[i];
    if (!first && !last) continue;
    fail_call(p, FAULT_ALLOC, i + 1, false);
    rounds++;
  }
  return rounds;
}

static void fail_calls(plan *p, fault_kind kind) {
  const uint64_t all = atomic_load(&p->counted.count[kind]);
  const size_t before = p->v.failures;
  uint64_t rounds = p->faults == 0 || (uint64_t)p->faults > all ? all : (uint64_t)p->faults;
  if (kind == FAULT_ALLOC && p->places) rounds = fail_places(p, all);
  for (uint64_t i = 0; i < rounds && !(kind == FAULT_ALLOC && p->places); i++) {
    // One place in each of equal parts of all calls.
    uint64_t first = i * all / rounds;
    uint64_t next = (i + 1) * all / rounds;
    uint64_t at = 1 + first + draw() % (next - first);
    if (p->at && (i > 0 || (uint64_t)p->at > all)) break;
    if (p->at) at = (uint64_t)p->at;
    fail_call(p, kind, at, false);
    // A disk that is full stays so; so do other lasting faults of what is written.
    bool lasts = kind == FAULT_WRITE || kind == FAULT_SYNC || kind == FAULT_RENAME || kind == FAULT_REMOVE;
    if (lasts) fail_call(p, kind, at, true);
  }
  printf("%-14s %-10s %7llu calls %7llu failed %5zu wrong\n", p->command.name, kind_words[kind],
         (unsigned long long)all, (unsigned long long)rounds, p->v.failures - before);
  fflush(stdout);
}

static void bend(plan *p) {
  const size_t before = p->v.failures;
  for (long i = 0; i < p->bends; i++) {
    char what[64];
    const fault_mode mode = i % 2 ? FAULT_MODE_INTERRUPT : FAULT_MODE_SHORT;
    order(p, mode, FAULT_READ, 0);
    p->command.state->seed = draw();
    snprintf(what, sizeof what, "%s, round %ld", i % 2 ? "EINTR" : "short reads and writes", i);
    int status = command_run(&p->command, NULL, -1, NULL);
    if (mode == FAULT_MODE_SHORT && status != 0) {
      size_t size;
      char *said = file_contents(p->command.err, &size);
      printf("FAILED %s, %s: status %d: %s", p->command.name, what, status, said);
      free(said);
      p->v.failures++;
    }
    verdict_after_failure(&p->v, what, status, false);
  }
  printf("%-14s %-10s %7s       %7ld rounds %5zu wrong\n", p->command.name, "short", "", p->bends,
         p->v.failures - before);
  fflush(stdout);
}

static void kill_it(plan *p) {
  const size_t before = p->v.failures;
  const uint64_t calls = atomic_load(&p->counted.calls);
  for (long i = 0; i < p->kills; i++) {
    char what[96];
    double after = -1;
    if (i % 2 == 0) {
      uint64_t at = 1 + draw() % calls;
      order(p, FAULT_MODE_KILL, FAULT_OPEN, at);
      snprintf(what, sizeof what, "kill at call %llu", (unsigned long long)at);
    } else {
      order(p, FAULT_MODE_COUNT, FAULT_OPEN, 0);
      after = p->v.seconds * (double)(draw() % 1000) / 1000;
      snprintf(what, sizeof what, "kill after %.4f s", after);
    }
    command_run(&p->command, NULL, after, NULL);
    verdict_after_kill(&p->v, what);
  }
  printf("%-14s %-10s %7llu calls %7ld kills  %5zu wrong\n", p->command.name, "kill", (unsigned long long)calls,
         p->kills, p->v.failures - before);
  fflush(stdout);
}

static void lose_power(plan *p) {
  const size_t before = p->v.failures;
  const uint64_t changes = atomic_load(&p->counted.changes);
  for (long i = 0; i < p->losses; i++) {
    char what[96];
    uint64_t at = 1 + draw() % (changes + 1);
    if (i % 4 == 0) at = changes + 1;  // after its end, when all must be there
    uint64_t seed = draw();
    order(p, FAULT_MODE_KILL_CHANGE, FAULT_OPEN, at);
    p->command.state->journal = 1;
    snprintf(p->command.state->journal_path, FAULT_PATH, "%s", p->journal);
    file_put(p->journal, "", 0);
    power_begin(p->command.folder);
    int status = command_run(&p->command, NULL, -1, NULL);
    power_lose(p->command.folder, p->journal, seed);
    snprintf(what, sizeof what, "power loss at change %llu, seed %llu", (unsigned long long)at,
             (unsigned long long)seed);
    if (at > changes && status == 0) {
      tree now;
      tree_read(&now, p->command.folder);
      for (size_t f = 0; f < p->v.whole.count; f++) {
        if (tree_has(&now, &p->v.whole.files[f])) continue;
        printf("FAILED %s, %s: it had ended, and %s is lost\n", p->command.name, what, p->v.whole.files[f].path);
        p->v.failures++;
      }
      tree_close(&now);
    }
    verdict_after_kill(&p->v, what);
  }
  printf("%-14s %-10s %7llu changes %5ld losses %5zu wrong\n", p->command.name, "power", (unsigned long long)changes,
         p->losses, p->v.failures - before);
  fflush(stdout);
}

static bool wanted(const plan *p, const char *word) {
  size_t length = strlen(word);
  for (const char *at = p->kinds; at && *at; at += strcspn(at, " ") + strspn(at + strcspn(at, " "), " "))
    if (strcspn(at, " ") == length && strncmp(at, word, length) == 0) return true;
  return !p->kinds;
}

static void print_modules(const plan *p) {
  for (uint32_t i = 0; i < atomic_load(&p->counted.module_count); i++) {
    unsigned long long count = atomic_load(&p->counted.allocations[i]);
    if (count) printf("%-14s allocations of %s: %llu\n", p->command.name, p->counted.module[i], count);
  }
}

static char *below(const char *folder, const char *name) {
  char path[PATH_MAX];
  (void)!snprintf(path, sizeof path, "%s/%s", folder, name);
  return strdup(path);
}

static void run(plan *p, const char *work) {
  fault_command *c = &p->command;
  char *state_path = below(work, "state");
  c->folder = below(work, "now");
  c->out = below(work, "out");
  c->err = below(work, "err");
  c->state_path = state_path;
  p->v.before = below(work, "before");
  snprintf(p->journal, sizeof p->journal, "%s/journal", work);
  c->state = command_state(state_path, c->program);
  if (p->excluded) snprintf(c->state->excluded, sizeof c->state->excluded, "%s", p->excluded);
  p->v.command = c;
  c->only_first = p->only_first;
  verdict_begin(&p->v, &p->counted);
  c->timeout = 20 + 20 * p->v.seconds;
  if (p->v.messages) print_modules(p);
  for (int kind = 0; p->faults >= 0 && kind < FAULT_KIND_COUNT; kind++)
    if (wanted(p, kind_words[kind])) fail_calls(p, (fault_kind)kind);
  if (p->bends > 0) bend(p);
  if (p->only_first && (p->kills > 0 || p->losses > 0)) {  // whichever process is killed, the command ends
    c->only_first = false;
    verdict_close(&p->v);
    verdict_begin(&p->v, &p->counted);
  }
  if (p->kills > 0) kill_it(p);
  if (p->losses > 0) lose_power(p);
  if (p->v.messages) verdict_print_messages();
  verdict_close(&p->v);
}

// One word of the command line: a flag (bool), a number or a text.
typedef struct word {
  const char *name;
  bool *flag;
  long *number;
  const char **text;
} word;

// Returns the index of the first argument that is no option, or 0 where one is not known.
static int read_words(const word *words, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--") == 0) return i + 1;
    const word *w = words;
    while (w->name && (strncmp(argv[i], "--", 2) != 0 || strcmp(w->name, argv[i] + 2) != 0)) w++;
    if (!w->name || (!w->flag && i + 1 == argc)) return 0;
    if (w->flag) *w->flag = true;
    if (w->number) *w->number = atol(argv[++i]);
    if (w->text) *w->text = argv[++i];
  }
  return 0;
}

int main(int argc, char **argv) {
  static plan p = {.faults = -1, .kills = -1, .losses = -1, .bends = -1, .command = {.timeout = 120}};
  fault_command *c = &p.command;
  const char *work = NULL;
  const word words[] = {{"name", .text = &c->name},
                        {"library", .text = &c->library},
                        {"work", .text = &work},
                        {"input", .text = &c->input},
                        {"again", .text = &c->again},
                        {"loads", .text = &p.v.loads},
                        {"drops", .text = &p.v.drops},
                        {"excluded", .text = &p.excluded},
                        {"kinds", .text = &p.kinds},
                        {"faults", .number = &p.faults},
                        {"kills", .number = &p.kills},
                        {"losses", .number = &p.losses},
                        {"bends", .number = &p.bends},
                        {"seed", .number = &p.seed},
                        {"at", .number = &p.at},
                        {"places", .flag = &p.places},
                        {"only-first", .flag = &p.only_first},
                        {"messages", .flag = &p.v.messages},
                        {0}};
  const int program = read_words(words, argc, argv);
  if (program == 0 || program >= argc || !work || !c->library || !c->name) {
    fputs(usage, stderr);
    return 2;
  }
  c->program = argv[program];
  c->arguments = argv + program;
  random_state = (uint64_t)p.seed;
  run(&p, work);
  return p.v.failures ? 1 : 0;
}
