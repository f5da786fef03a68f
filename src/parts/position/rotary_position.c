// Rotary positions (RoPE: Su et al. 2021), in the convention of LLaMA and GPT-NeoX: nothing is added to embeddings, and
// queries and keys of self-attention are rotated by their positions, so a score depends on their distance.
#include <math.h>

#include "parts/block.h"

typedef struct rotary_keys {
  double base;
  double share;  // of the columns of a head
} rotary_keys;

static const tarn__option options[] = {
    {"base", TARN__KEY_REAL(rotary_keys, base, 1, 1e12), TARN__KEY_ABOVE_LEAST, .value = "10000",
     .help = "the slowest pair of columns turns about this many times more slowly than the fastest, which turns by 1 "
             "radian a token",
     .also = "rope_theta theta rope_base rotary_emb_base"},
    {"share", TARN__KEY_REAL(rotary_keys, share, 0, 1), TARN__KEY_ABOVE_LEAST, .value = "1",
     .help = "share of the columns of each head that is turned, an even number of them; the others know no positions",
     .also = "partial_rotary_factor rotary_pct rotary_percentage"},
};

// Rotated columns of a head, not necessarily a whole number.
static double turned(const rotary_keys *keys, int64_t head) { return keys->share * (double)head; }

static tarn__tensor *turn(const tarn__block_run *run, tarn__tensor *x, int64_t columns, int64_t head) {
  const rotary_keys *keys = run->position->keys;
  const tarn__rotary_spec spec = {
      .heads = columns / head, .width = head, .rotated = llround(turned(keys, head)), .base = keys->base};
  return tarn__rotary(run->graph, x, run->positions, spec);
}

// Columns are rotated in pairs.
static tarn_status check_heads(const tarn__part_site *site, int64_t heads, int64_t width) {
  const rotary_keys *keys = site->model->positions.keys;
  const double pairs = turned(keys, width) / 2.0;
  if (pairs > 0.5 && fabs(pairs - round(pairs)) < 1e-6) return TARN_STATUS_OK;
  return tarn__part_fail(site, "heads",
                         "%lld heads have %lld columns each, of which rotary positions turn %.6g; it must be an even "
                         "number: change heads, model.d_model or model.positions.share",
                         (long long)heads, (long long)width, turned(keys, width));
}

// As with sinusoids: the formula has no limit, but a model has only learnt positions below max_length.
const tarn__position_entry tarn__position_rotary = {
    .part = {.word = "rotary",
             .text = "rotary positions, Su et al. 2021: queries and keys of self-attention are turned by their "
                     "positions, as in LLaMA",
             .equation =
                 "columns i and i + d_head/2 of queries and keys at position t are turned by t base^(-2 i / d_head)",
             .source = "Su et al. 2021 (arXiv 2104.09864)",
             .also = "rope rotary_embedding roformer",
             TARN__PART_KEYS(rotary_keys, options)},
    .reads = true,
    .bounded = true,
    .turn = turn,
    .check_heads = check_heads,
};
