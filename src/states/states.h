// The inside of tarn_states: a checkpoint, its available and selected arrays, the tokens of texts.
#ifndef TARN_STATES_STATES_H
#define TARN_STATES_STATES_H

#include "data/sentence_pair.h"
#include "model/shows.h"
#include "store/checkpoint.h"
#include "tarn/lab/states.h"
#include "text/repair.h"

// The source of an array.
typedef enum tarn__states_from { TARN__STATES_LAYER, TARN__STATES_STACK, TARN__STATES_ANSWER } tarn__states_from;
typedef struct tarn__states_origin {
  tarn__states_from from;
  tarn__stack_id stack;
  int layer;  // 0: the embeddings
  tarn__show show;
  tarn__answer answer;
  int stacks;  // needed stacks of the model, from the first
} tarn__states_origin;

typedef struct tarn__states_list {
  tarn_states_array *arrays;
  tarn__states_origin *origins;
  size_t count, arrays_room, origins_room;
  tarn__arena names;
} tarn__states_list;

// The sentences of a side. Zero-initialise it.
typedef struct tarn__states_text {
  bool given;
  int32_t *ids, *segments;  // [tokens]; segments if the model has some
  int64_t *offsets;         // [sentences + 1]
  int64_t tokens, longest;
  size_t ids_room, segments_room, offsets_room;
} tarn__states_text;

struct tarn_states {
  tarn_states_options options;
  tarn__checkpoint *checkpoint;
  bool shared;  // it belongs to a translator, which has packed its weights
  const tarn__task *task;
  int32_t first;  // token in front of each row of tasks that read whole sentences; -1: none
  void *packed;   // weights of products, in the memory of the device, as the workspace
  tarn__states_list offered, selected;
  tarn__model_shows shows;  // the selected tensors, for the layers of every stack
  int stacks;               // stacks needed by the selection; 0: nothing is selected
  // The texts.
  tarn_states_summary summary;
  tarn__states_text sides[TARN_STATES_SIDE_COUNT];
  tarn_vocab_ids line_ids;
  tarn__sentence_pair pair;
  tarn__repaired repaired;
  // A batch.
  tarn__graph graph;
  void *workspace;
  size_t workspace_bytes;
  int64_t together;  // most tokens per side; reduced if memory is short
  int32_t *positions[TARN_STATES_SIDE_COUNT], *offsets[TARN_STATES_SIDE_COUNT], *pooled;
  size_t positions_room[TARN_STATES_SIDE_COUNT], offsets_room[TARN_STATES_SIDE_COUNT], pooled_room;
};

// tarn_states_open() for a checkpoint that stays open, of any precision.
tarn_status tarn__states_open_checkpoint(tarn_states **states, tarn__checkpoint *checkpoint,
                                         const tarn_states_options *options) TARN_CHECKED;

// Sets states->offered.
tarn_status tarn__states_offer(tarn_states *states) TARN_CHECKED;
void tarn__states_list_close(tarn__states_list *list);

// The tensor of an array, after building the graph of the selection.
tarn__shown tarn__states_shown(const tarn_states *states, size_t array);

// Numbers of a sentence of an array.
int64_t tarn__states_numbers(const tarn_states *states, const tarn_states_array *array, int64_t sentence);

// Fails if the selection cannot be computed, or exceeds options.max_result.
tarn_status tarn__states_check(const tarn_states *states) TARN_CHECKED;

// The vocabulary of a side, and its side of the task.
const tarn_vocab *tarn__states_vocab(const tarn_states *states, tarn_states_side side);

#endif
