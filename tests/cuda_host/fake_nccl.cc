// A stand-in for NCCL between processes of one machine, for the module of cuda-host: sends and receives of a group go
// through named pipes, at its end. FAKE_NCCL_FOLDER holds the pipes.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace {

struct comm {
  std::string folder;
  int rank, size;
  std::vector<int> to, from;  // descriptors by rank
};

struct operation {
  comm *group;
  char *memory;
  size_t left;
  int peer;
  bool sends;
};

struct id {
  char internal[128];
};

std::vector<operation> pending;

int open_pipe(const comm *c, int from, int to) {
  const std::string path = c->folder + "/" + std::to_string(from) + "-" + std::to_string(to);
  mkfifo(path.c_str(), 0600);
  return open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

// Moves what can be moved now; false on an error.
bool move(operation *o, bool *moved) {
  const ssize_t n = o->sends ? write(o->group->to[(size_t)o->peer], o->memory, o->left)
                             : read(o->group->from[(size_t)o->peer], o->memory, o->left);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  o->memory += n;
  o->left -= (size_t)n;
  *moved |= n > 0;
  return true;
}

}  // namespace

extern "C" {

int ncclGetUniqueId(id *unique) {
  const char *folder = getenv("FAKE_NCCL_FOLDER");
  memset(unique, 0, sizeof *unique);
  if (!folder) return 3;
  snprintf(unique->internal, sizeof unique->internal, "%s/%ld", folder, (long)getpid());
  return mkdir(unique->internal, 0700) == 0 ? 0 : 2;
}

int ncclCommInitRank(comm **out, int size, id unique, int rank) {
  comm *c = new comm{unique.internal, rank, size, {}, {}};
  for (int r = 0; r < size; r++) {
    c->to.push_back(open_pipe(c, rank, r));
    c->from.push_back(open_pipe(c, r, rank));
  }
  *out = c;
  return 0;
}

int ncclCommDestroy(comm *c) {
  for (const int fd : c->to) close(fd);
  for (const int fd : c->from) close(fd);
  delete c;
  return 0;
}

int ncclCommAbort(comm *c) { return ncclCommDestroy(c); }

int ncclCommGetAsyncError(comm *, int *error) {
  *error = 0;
  return 0;
}

int ncclGroupStart() { return 0; }

int ncclGroupEnd() {
  for (bool all = false; !all;) {
    bool moved = false;
    all = true;
    for (operation &o : pending) {
      if (o.left && !move(&o, &moved)) return 2;
      all = all && o.left == 0;
    }
    if (!all && !moved) usleep(100);
  }
  pending.clear();
  return 0;
}

int ncclSend(const void *from, size_t count, int, int peer, comm *c, void *) {
  pending.push_back({c, (char *)const_cast<void *>(from), count, peer, true});
  return 0;
}

int ncclRecv(void *to, size_t count, int, int peer, comm *c, void *) {
  pending.push_back({c, (char *)to, count, peer, false});
  return 0;
}

const char *ncclGetErrorString(int error) { return error == 3 ? "internal error" : "unhandled system error"; }

}  // extern "C"
