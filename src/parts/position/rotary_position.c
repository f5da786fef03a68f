// Rotary positions (RoPE: Su et al. 2021), in the convention of LLaMA and GPT-NeoX: nothing is added to embeddings, and
// queries and keys of self-attention are rotated by their positions, so a score depends on their distance.
#include <math.h>

#include "parts/block.h"

typedef struct rotary_keys {
  double base;
  double share;  // of the columns of a head
  double factor, low_freq_factor, high_freq_factor;
  int64_t original_length;
} rotary_keys;

static const tarn__option options[] = {
    {"base", TARN__KEY_REAL(rotary_keys, base, 1, 1e12), TARN__KEY_ABOVE_LEAST, .value = "10000",
     .help = "the slowest pair of columns turns about this many times more slowly than the fastest, which turns by 1 "
             "radian a token",
     .also = "rope_theta theta rope_base rotary_emb_base"},
    {"share", TARN__KEY_REAL(rotary_keys, share, 0, 1), TARN__KEY_ABOVE_LEAST, .value = "1",
     .help = "share of the columns of each head that is turned, an even number of them; the others know no positions",
     .also = "partial_rotary_factor rotary_pct rotary_percentage"},
    {"factor", TARN__KEY_REAL(rotary_keys, factor, 1, 1e6), .value = "1",
     .help = "how many times more slowly the columns turn, for texts longer than those of training (position "
             "interpolation, Chen et al. 2023)",
     .later = true, .also = "rope_scaling scaling_factor rope_scaling_factor rope_freq_scale"},
    {"original_length", TARN__KEY_INTEGER(rotary_keys, original_length, 0, 1 << 24), .value = "0", .unit = "tokens",
     .help = "as in Llama 3.1, `factor` is for columns that turn seldom in a text of this length; 0: for all",
     .later = true, .also = "original_max_position_embeddings"},
    {"low_freq_factor", TARN__KEY_REAL(rotary_keys, low_freq_factor, 0, 1e6), TARN__KEY_ABOVE_LEAST, .value = "1",
     .help = "with `original_length`: columns that turn less often in such a text are slowed by the whole `factor`",
     .later = true},
    {"high_freq_factor", TARN__KEY_REAL(rotary_keys, high_freq_factor, 0, 1e6), TARN__KEY_ABOVE_LEAST, .value = "4",
     .help = "with `original_length`: columns that turn more often are not slowed, those in between in part; more than "
             "`low_freq_factor`",
     .later = true},
};

// Rotated columns of a head, not necessarily a whole number.
static double turned(const rotary_keys *keys, int64_t head) { return keys->share * (double)head; }

static tarn__tensor *turn(const tarn__block_run *run, tarn__tensor *x, int64_t columns, int64_t head) {
  const rotary_keys *keys = run->position->keys;
  const tarn__rotary_spec spec = {
      .heads = columns / head,
      .width = head,
      .rotated = llround(turned(keys, head)),
      .base = keys->base,
      .scaling = {keys->factor, keys->low_freq_factor, keys->high_freq_factor, (double)keys->original_length}};
  return tarn__rotary(run->graph, x, run->positions, spec);
}

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  const rotary_keys *keys = memory;
  if (keys->original_length == 0 || keys->high_freq_factor > keys->low_freq_factor) return TARN_STATUS_OK;
  return tarn__part_fail(site, "high_freq_factor", "%.6g is not more than low_freq_factor %.6g", keys->high_freq_factor,
                         keys->low_freq_factor);
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
    .part =
        {.word = "rotary",
         .text = "rotary positions, Su et al. 2021: queries and keys of self-attention are turned by their "
                 "positions, as in LLaMA",
         .equation =
             "columns i and i + d_head/2 of queries and keys at position t are turned by t f_i, where\n"
             "f_i = base^(-2 i / d_head), divided by factor; with original_length, n_i = f_i original_length / 2 pi\n"
             "and s_i = (n_i - low_freq_factor) / (high_freq_factor - low_freq_factor), kept within 0 and 1, it is\n"
             "multiplied by s_i + (1 - s_i) / factor",
         .source = "Su et al. 2021 (arXiv 2104.09864); factor: Chen et al. 2023 (arXiv 2306.15595)",
         .also = "rope rotary_embedding roformer",
         TARN__PART_KEYS(rotary_keys, options),
         .resolve = resolve},
    .reads = true,
    .bounded = true,
    .turn = turn,
    .check_heads = check_heads,
};
