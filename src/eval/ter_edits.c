#include "eval/ter_edits.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

// A cell outside of the beam. Larger than any number of edits, and adding one does not overflow.
static const int32_t infinite = INT32_MAX / 2;

// The cells of a row: columns first .. end - 1 of 0 .. reference words.
typedef struct window {
  int64_t first, end;
} window;

typedef struct pair {
  tarn__ter_edits *kept;
  const uint32_t *reference;
  int64_t h, r;        // words
  int64_t beam, most;  // the widest window
  double ratio;        // words of the reference per word of the hypothesis
  uint32_t *words;     // (h) the current hypothesis
  uint32_t *moved;     // (h) the same after the move being tried
  const int32_t *hypothesis_wrong, *reference_wrong;
  int32_t distance;  // of `words`
  int64_t tried;
} pair;

// The words [first, middle) change places with [middle, end).
typedef struct move {
  int64_t first, middle, end;
} move;

// A move with its rank. Tercom takes the largest gain, then the longest block, the first block and the first target.
typedef struct candidate {
  int32_t gain;
  int64_t length, start, target;
  move by;
  bool any;
} candidate;

void tarn__ter_edits_close(tarn__ter_edits *edits) {
  tarn__free(edits->cells);
  tarn__free(edits->rows);
  tarn__free(edits->words);
  tarn__free(edits->align);
  tarn__free(edits->wrong);
  *edits = (tarn__ter_edits){0};
}

// Around the diagonal of a table that is seldom square. The last row reaches the end of the reference. Row 0 is
// complete.
static window window_of(const pair *p, int64_t row) {
  if (row == 0) return (window){0, p->r + 1};
  int64_t diagonal = (int64_t)floor((double)row * p->ratio);
  window w = {diagonal - p->beam, diagonal + p->beam};
  if (w.first < 0) w.first = 0;
  if (w.end > p->r + 1 || row == p->h) w.end = p->r + 1;
  return w;
}

static int32_t *row_of(const pair *p, int64_t row) { return p->kept->cells + (row - 1) * p->most; }

// Edits that make the first `column` words of the reference from the first `row` words of the hypothesis.
static int32_t cell(const pair *p, int64_t row, int64_t column) {
  if (row == 0) return (int32_t)column;
  window w = window_of(p, row);
  return column < w.first || column >= w.end ? infinite : row_of(p, row)[column - w.first];
}

static inline int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

// Row `row`, for the word `word`, from the previous row `above`, NULL for row 0.
static void fill(const pair *p, int32_t *out, int64_t row, uint32_t word, const int32_t *above) {
  window now = window_of(p, row);
  window before = window_of(p, row - 1);
  int32_t left = infinite;
  int32_t corner = infinite;
  if (now.first > before.first && now.first <= before.end)
    corner = above ? above[now.first - 1 - before.first] : (int32_t)(now.first - 1);
  for (int64_t j = now.first; j < now.end; j++) {
    int32_t up = infinite;
    if (j < before.end) up = above ? above[j - before.first] : (int32_t)j;
    int32_t value = smaller(smaller(up, left) + 1, infinite);
    if (j > 0) value = smaller(value, corner + (word != p->reference[j - 1]));
    out[j - now.first] = left = value;
    corner = up;
  }
}

// Computes the rows of p->words after `row`, and the distance.
static void fill_from(pair *p, int64_t row) {
  for (int64_t i = row + 1; i <= p->h; i++) fill(p, row_of(p, i), i, p->words[i - 1], i > 1 ? row_of(p, i - 1) : NULL);
  p->distance = cell(p, p->h, p->r);
}

// Whether two rows differ by the same number in all cells; then so do all later rows with equal words.
static bool differs_evenly(const int32_t *a, const int32_t *b, int64_t count, int32_t *by) {
  bool found = false;
  for (int64_t i = 0; i < count; i++) {
    if ((a[i] == infinite) != (b[i] == infinite)) return false;
    if (a[i] == infinite) continue;
    if (found && a[i] - b[i] != *by) return false;
    *by = a[i] - b[i];
    found = true;
  }
  return found;
}

static void apply(uint32_t *out, const uint32_t *words, move by) {
  size_t head = (size_t)(by.end - by.middle);
  memcpy(out + by.first, words + by.middle, head * sizeof *out);
  memcpy(out + by.first + head, words + by.first, (size_t)(by.middle - by.first) * sizeof *out);
}

// The distance after a move. Earlier rows are known; later rows are computed only until they differ evenly from those
// of the current words.
static int32_t distance_after(pair *p, move by) {
  if (by.first == by.middle || by.middle == by.end) return p->distance;
  int32_t *rows[2] = {p->kept->rows, p->kept->rows + p->most};
  const int32_t *above = by.first > 0 ? row_of(p, by.first) : NULL;
  int32_t distance = infinite;
  apply(p->moved, p->words, by);
  for (int64_t i = by.first + 1; i <= p->h; i++) {
    int32_t *row = rows[i & 1];
    fill(p, row, i, p->moved[i - 1], above);
    window w = window_of(p, i);
    int32_t difference = 0;
    if (i == p->h) {
      distance = row[p->r - w.first];
    } else if (i >= by.end && differs_evenly(row, row_of(p, i), w.end - w.first, &difference)) {
      distance = p->distance + difference;
      break;
    }
    above = row;
  }
  memcpy(p->moved + by.first, p->words + by.first, (size_t)(by.end - by.first) * sizeof *p->words);
  return distance;
}

// Walks back through the table: which words are wrong, and where the words of the reference are in the hypothesis. Of
// equally short paths Tercom prefers a substitution (or none), then a deletion, then an insertion.
static void align(pair *p) {
  int32_t *hypothesis_wrong = p->kept->wrong;
  int32_t *reference_wrong = p->kept->wrong + p->h + 1;
  memset(p->kept->wrong, 0, (size_t)(p->h + p->r + 2) * sizeof *p->kept->wrong);
  int64_t i = p->h;
  int64_t j = p->r;
  while (i > 0 || j > 0) {
    int32_t value = cell(p, i, j);
    bool equal = i > 0 && j > 0 && p->words[i - 1] == p->reference[j - 1];
    if (i > 0 && j > 0 && cell(p, i - 1, j - 1) + !equal == value) {
      hypothesis_wrong[i] = reference_wrong[j] = !equal;
      p->kept->align[j - 1] = (int32_t)(i - 1);
      i--;
      j--;
    } else if (i > 0 && (j == 0 || cell(p, i - 1, j) + 1 == value)) {
      hypothesis_wrong[i--] = 1;
    } else {
      reference_wrong[j] = 1;
      p->kept->align[--j] = (int32_t)(i - 1);
    }
  }
  for (i = 1; i <= p->h; i++) hypothesis_wrong[i] += hypothesis_wrong[i - 1];
  for (j = 1; j <= p->r; j++) reference_wrong[j] += reference_wrong[j - 1];
  p->hypothesis_wrong = hypothesis_wrong;
  p->reference_wrong = reference_wrong;
}

static bool better(const candidate *a, const candidate *b) {
  if (!b->any) return true;
  if (a->gain != b->gain) return a->gain > b->gain;
  if (a->length != b->length) return a->length > b->length;
  if (a->start != b->start) return a->start < b->start;
  return a->target < b->target;
}

static move move_of(const pair *p, int64_t start, int64_t length, int64_t target) {
  if (target < start) return (move){target, start, start + length};
  if (target > start + length) return (move){start, start + length, target};
  // A target within the block moves it by the target's distance from its start.
  return (move){start, start + length, target + length < p->h ? target + length : p->h};
}

// Tries to move the block to the places before, within and after its equal in the reference. False if enough has been
// tried.
static bool try_block(pair *p, candidate *best, int64_t start, int64_t at, int64_t length) {
  const int32_t *place = p->kept->align;
  if (p->hypothesis_wrong[start + length] == p->hypothesis_wrong[start]) return true;
  if (p->reference_wrong[at + length] == p->reference_wrong[at]) return true;
  if (start <= place[at] && place[at] < start + length) return true;
  int64_t last = -1;
  for (int64_t offset = -1; offset < length; offset++) {
    int64_t target = at + offset < 0 ? 0 : place[at + offset] + 1;
    if (target == last) continue;
    last = target;
    candidate c = {.length = length, .start = start, .target = target, .any = true};
    c.by = move_of(p, start, length, target);
    c.gain = p->distance - distance_after(p, c.by);
    p->tried++;
    if (better(&c, best)) *best = c;
  }
  return p->tried < TARN__TER_CANDIDATES;
}

static candidate find(pair *p) {
  candidate best = {0};
  for (int64_t start = 0; start < p->h; start++) {
    int64_t end = start + TARN__TER_BLOCK < p->h ? start + TARN__TER_BLOCK : p->h;
    if (p->hypothesis_wrong[end] == p->hypothesis_wrong[start]) continue;  // no block starting here has an error
    int64_t first = start > TARN__TER_DISTANCE ? start - TARN__TER_DISTANCE : 0;
    int64_t last = start + TARN__TER_DISTANCE < p->r - 1 ? start + TARN__TER_DISTANCE : p->r - 1;
    for (int64_t at = first; at <= last; at++) {
      for (int64_t n = 0; start + n < end && at + n < p->r && p->words[start + n] == p->reference[at + n]; n++)
        if (!try_block(p, &best, start, at, n + 1)) return best;
    }
  }
  return best;
}

static tarn_status prepare(pair *p, const uint32_t *hypothesis) {
  tarn__ter_edits *k = p->kept;
  size_t h = (size_t)p->h;
  size_t most = (size_t)p->most;
  size_t cells;
  TARN_TRY(tarn__mul_size(&cells, h, most));
  TARN_TRY(tarn__grow(&k->cells, &k->cells_capacity, cells + 1, sizeof *k->cells));
  TARN_TRY(tarn__grow(&k->rows, &k->rows_capacity, 2 * most, sizeof *k->rows));
  TARN_TRY(tarn__grow(&k->words, &k->words_capacity, 2 * h + 1, sizeof *k->words));
  TARN_TRY(tarn__grow(&k->align, &k->align_capacity, (size_t)p->r, sizeof *k->align));
  TARN_TRY(tarn__grow(&k->wrong, &k->wrong_capacity, h + (size_t)p->r + 2, sizeof *k->wrong));
  p->words = k->words;
  p->moved = k->words + h;
  for (size_t i = 0; i < h; i++) p->words[i] = p->moved[i] = hypothesis[i];
  return TARN_STATUS_OK;
}

tarn_status tarn__ter_edits_count(tarn__ter_edits *edits, int64_t *number, const uint32_t *hypothesis,
                                  size_t hypothesis_count, const uint32_t *reference, size_t reference_count) {
  TARN_REQUIRE(hypothesis_count <= TARN__TER_WORDS && reference_count <= TARN__TER_WORDS, DATA,
               "a line has %zu words; TER takes %d at most",
               hypothesis_count > reference_count ? hypothesis_count : reference_count, TARN__TER_WORDS);
  *number = (int64_t)(hypothesis_count > reference_count ? hypothesis_count : reference_count);
  if (!hypothesis_count || !reference_count) return TARN_STATUS_OK;
  pair p = {.kept = edits, .reference = reference, .h = (int64_t)hypothesis_count, .r = (int64_t)reference_count};
  p.ratio = (double)reference_count / (double)hypothesis_count;
  // Rows of a table with few rows are far apart, and their windows must overlap.
  p.beam = TARN__TER_BEAM < p.ratio / 2 ? (int64_t)ceil(p.ratio / 2 + TARN__TER_BEAM) : TARN__TER_BEAM;
  p.most = 2 * p.beam < p.r + 1 ? 2 * p.beam : p.r + 1;
  TARN_TRY(prepare(&p, hypothesis));
  fill_from(&p, 0);
  int64_t moves = 0;
  for (;;) {
    align(&p);
    candidate best = find(&p);
    if (p.tried >= TARN__TER_CANDIDATES || best.gain <= 0) break;
    moves++;
    apply(p.moved, p.words, best.by);
    memcpy(p.words + best.by.first, p.moved + best.by.first, (size_t)(best.by.end - best.by.first) * sizeof *p.words);
    fill_from(&p, best.by.first);
  }
  *number = moves + p.distance;
  return TARN_STATUS_OK;
}
