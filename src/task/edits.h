// The expert of the Levenshtein Transformer (Gu et al. 2019), and the sentences that a model learns from it.
//
// A sentence begins and ends with a border, which nothing deletes. An iteration of editing deletes tokens, inserts
// placeholders between those left, and puts words in their place. The expert takes the shortest way to the true
// sentence (base/edit_path.h). A training sentence (the roll-in) is
//
//   true         ^ a b c d $
//   kept         ^ b d $          the true sentence without a random number of random words
//   gaps         1 1 0            placeholders that the expert puts behind ^, b and d: what the placeholder policy
//   learns target       ^ _ b _ d $      with these placeholders targets      a c              what the token policy
//   puts in their place
//
// and what the deletion policy reads are the sentences with the token policy's own words (ops/deletions.h).
#ifndef TARN_TASK_EDITS_H
#define TARN_TASK_EDITS_H

#include "data/batch.h"
#include "description/description.h"
#include "tarn/vocab.h"

// The expert's edits from a[0 .. n - 1] to b[0 .. m - 1], both without borders.
typedef struct tarn__edits {
  int32_t *deleted;   // [n] 1: a[i] is deleted
  int32_t *inserted;  // [m] 1: b[j] is inserted
  uint64_t *scratch;  // [tarn__edit_path_words(n, m)]
} tarn__edits;
// Returns the number of tokens that are neither. *gaps [that number + 1] receives how many are inserted before the
// first of them, behind it, and so on.
int64_t tarn__edits_find(const tarn__edits *edits, int32_t *gaps, const int32_t *a, int64_t n, const int32_t *b,
                         int64_t m);

// Sets the completion of batches of a shard, of whose targets none longer than `longest` is used: the roll-in above.
// With the chance keys->beta all words are left out; else a number uniform from 0 to all, and which ones is random.
// Placeholders are the vocabulary's <mask>; USAGE if it has none, naming the file `name`. A gap of more than
// max_placeholders counts as so many.
tarn_status tarn__edits_open(tarn__batch_finish *finish, const tarn_config_levenshtein *keys, const tarn__shard *shard,
                             int64_t longest, const tarn_vocab *vocab, const char *name) TARN_CHECKED;

#endif
