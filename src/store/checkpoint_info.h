// The inside of an open tarn_checkpoint_info, shared by the description of its parameters and the reading of their
// values.
#ifndef TARN_STORE_CHECKPOINT_INFO_H
#define TARN_STORE_CHECKPOINT_INFO_H

#include "base/memory.h"
#include "store/checkpoint.h"

struct tarn__checkpoint_info_memory {
  tarn__arena arena;
  tarn__checkpoint_file file;
  tarn_config *config;
  tarn_vocab *source, *target;
  tarn__model *model;  // in F32, without memory for values
  char *path;
};

#endif
