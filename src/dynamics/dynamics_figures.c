// Figures: quantities over iterations, spectra, trajectories, and curves over a training and over spectral radii.
// Curves are medians over sentences, with bands from quartile to quartile.
#include <math.h>
#include <string.h>

#include "dynamics/dynamics.h"
#include "dynamics/dynamics_page.h"

enum { SAMPLES = 200, CLOSE = 64, PATHS = 24 };

// A quantity of a sentence after iteration t, 0 being the start; NAN: none.
typedef struct measure {
  const char *name, *title, *y_label, *caption;
  tarn__figure_part part;
  double (*at)(const tarn_dynamics_sentence *sentence, const tarn_dynamics_result *result, int64_t t);
  bool of_steps;  // it belongs to an iteration, so it begins at the first, and several are shown as their mean
} measure;

static double *numbers(tarn__dynamics_page *page, size_t count) {
  void *memory = NULL;
  if (page->view.status == TARN_STATUS_OK)
    page->view.status = tarn__arena_alloc(&page->view.arena, &memory, count, sizeof(double));
  return memory;
}

static tarn__chart_line *lines_for(tarn__dynamics_page *page, size_t count) {
  void *memory = NULL;
  if (page->view.status == TARN_STATUS_OK)
    page->view.status = tarn__arena_alloc(&page->view.arena, &memory, count, sizeof(tarn__chart_line));
  return memory;
}

// A growing curve.
static bool begin_line(tarn__dynamics_page *page, tarn__chart_line *line, double *data[4], size_t room) {
  double *memory = numbers(page, 4 * room);
  for (size_t i = 0; i < 4 && memory; i++) data[i] = memory + i * room;
  if (memory)
    *line = (tarn__chart_line){.label = line->label, .x = data[0], .y = data[1], .low = data[2], .high = data[3]};
  return memory != NULL;
}

static void add_point(tarn__chart_line *line, double *data[4], double x, const tarn_dynamics_spread *spread) {
  if (!isfinite(spread->median) || !isfinite(spread->lower) || !isfinite(spread->upper)) return;
  data[0][line->count] = x;
  data[1][line->count] = spread->median;
  data[2][line->count] = spread->lower;
  data[3][line->count++] = spread->upper;
}

static void draw(tarn__dynamics_page *page, const measure *m, const char *x_label, const tarn__chart_line *lines,
                 size_t count, bool paths) {
  tarn__report *view = &page->view;
  tarn__figure *figure = tarn__figure_add(&page->figures, view, m->part, m->name, m->title, m->caption);
  if (!figure) return;
  tarn__chart chart = {.head = {.id = figure->name, .title = figure->title, .description = figure->caption},
                       .x_label = x_label,
                       .y_label = m->y_label};
  double first = INFINITY;
  for (size_t i = 0; i < count; i++)
    if (lines[i].count > 0) first = fmin(first, lines[i].x[0]);
  for (int file = 0; file < 2; file++) {
    tarn__buffer *out = file ? &figure->file : &figure->page;
    chart.head.standalone = file;
    chart.foot = file ? view->origin : NULL;
    if (paths)
      tarn__chart_paths(out, &chart, lines, count);
    else
      tarn__chart_lines(out, &chart, lines, count, first, NAN, NAN);
  }
}

// --- over iterations

static double local(const tarn_dynamics_sentence *s, const tarn_dynamics_result *r, int64_t t) {
  return r->exponents > 0 ? s->local[(t - 1) * r->exponents] : NAN;
}

static double finite_time(const tarn_dynamics_sentence *s, const tarn_dynamics_result *r, int64_t t) {
  return r->exponents > 0 ? s->finite_time[(t - 1) * r->exponents] : NAN;
}

static double logarithm(double value) { return value > 0 ? log10(value) : NAN; }

static double start_distance(const tarn_dynamics_sentence *s, const tarn_dynamics_result *r, int64_t t) {
  return r->apart > 0 ? logarithm(s->start_distance[t]) : NAN;
}

static double step_length(const tarn_dynamics_sentence *s, const tarn_dynamics_result *r, int64_t t) {
  (void)r;
  return logarithm(s->step[t]);
}

static double token_distance(const tarn_dynamics_sentence *s, const tarn_dynamics_result *r, int64_t t) {
  (void)r;
  return logarithm(s->token_distance[t]);
}

static double token_cosine(const tarn_dynamics_sentence *s, const tarn_dynamics_result *r, int64_t t) {
  (void)r;
  return s->token_cosine[t];
}

static double participation(const tarn_dynamics_sentence *s, const tarn_dynamics_result *r, int64_t t) {
  (void)r;
  return s->participation[t];
}

static double rank_collapse(const tarn_dynamics_sentence *s, const tarn_dynamics_result *r, int64_t t) {
  (void)r;
  return s->rank_collapse[t];
}

#define LOG "log\xE2\x82\x81\xE2\x82\x80 of "
static const measure measures[] = {
    {"local-exponent", "Largest local exponent", "natural logarithm per iteration",
     "Growth rate of perturbations in each iteration, of the direction that grows the most: above 0 they grow, below 0 "
     "they shrink.",
     TARN__FIGURE_EXPONENTS, local, true},
    {"finite-time-exponent", "Largest finite-time exponent", "natural logarithm per iteration",
     "Mean growth rate of perturbations from the start to each iteration.", TARN__FIGURE_EXPONENTS, finite_time, true},
    {"start-distance", "Distance of two starts", LOG "the relative distance",
     "Distance of two trajectories of a sentence whose starts differ, relative to the largest norm of the state so "
     "far.",
     TARN__FIGURE_EXPONENTS, start_distance, false},
    {"step", "Length of a step", LOG "the relative distance",
     "Distance of a state from the one before it, relative to the largest norm of the state so far: a fixed point is "
     "where it falls to rounding errors.",
     TARN__FIGURE_EXPONENTS, step_length, true},
    {"token-distance", "Distance between tokens", LOG "the mean distance",
     "Mean Euclidean distance between pairs of tokens of a sentence.", TARN__FIGURE_TOKENS, token_distance, false},
    {"token-cosine", "Cosine between tokens", "mean cosine",
     "Mean cosine of the angle between the representations of two tokens of a sentence: 1 where all point one way.",
     TARN__FIGURE_TOKENS, token_cosine, false},
    {"participation", "Effective dimension", "participation ratio",
     "Participation ratio of the covariance of a sentence's tokens: in how many directions they lie.",
     TARN__FIGURE_TOKENS, participation, false},
    {"rank-collapse", "Rank collapse", "share that tokens do not have in common",
     "Norm of the tokens' representations without their mean, over that with it: 0 where all tokens are alike.",
     TARN__FIGURE_TOKENS, rank_collapse, false}};

// The value of a sentence that represents the iterations first .. last.
static double value_of(const measure *m, const tarn_dynamics_sentence *s, const tarn_dynamics_result *r, int64_t first,
                       int64_t last) {
  double sum = 0;
  int64_t count = 0;
  if (first > s->iterations) return NAN;
  if (last > s->iterations) last = s->iterations;
  for (int64_t t = m->of_steps ? first : last; t <= last; t++) {
    const double value = m->at(s, r, t);
    if (!isfinite(value)) continue;
    sum += value;
    count++;
  }
  return count > 0 ? sum / (double)count : NAN;
}

// The curve of a model up to iteration `end`; long ones with a point per sample of several iterations.
static void collect(tarn__dynamics_page *page, const measure *m, const tarn_dynamics_result *r, int64_t end,
                    tarn__chart_line *line) {
  const int64_t begin = m->of_steps ? 1 : 0, count = end - begin + 1, samples = count < SAMPLES ? count : SAMPLES;
  double *data[4], *values = numbers(page, (size_t)r->count);
  if (!values || !begin_line(page, line, data, (size_t)samples)) return;
  for (int64_t k = 0; k < samples; k++) {
    const int64_t first = begin + k * count / samples;
    // The first state is the start itself.
    const int64_t last = !m->of_steps && k == 0 ? first : begin + (k + 1) * count / samples - 1;
    tarn_dynamics_spread spread;
    for (int64_t i = 0; i < r->count; i++) values[i] = value_of(m, &r->sentences[i], r, first, last);
    tarn__dynamics_spread_of(&spread, values, r->count);
    add_point(line, data, m->of_steps ? (double)(first + last) / 2 : (double)last, &spread);
  }
}

static int64_t longest(const tarn__dynamics_page *page) {
  int64_t most = 0;
  for (size_t i = 0; i < page->options->model_count; i++)
    if (page->options->models[i].result->iterations > most) most = page->options->models[i].result->iterations;
  return most;
}

static void draw_measure(tarn__dynamics_page *page, const measure *m, int64_t limit) {
  const size_t count = page->options->model_count;
  tarn__chart_line *lines = lines_for(page, count);
  size_t known = 0;
  if (!lines) return;
  for (size_t i = 0; i < count; i++) {
    const tarn_dynamics_result *r = page->options->models[i].result;
    lines[known] = (tarn__chart_line){.label = tarn__dynamics_label(page, i)};
    collect(page, m, r, r->iterations < limit ? r->iterations : limit, &lines[known]);
    if (page->view.status != TARN_STATUS_OK) return;
    if (lines[known].count > 0) known++;
  }
  if (known > 0) draw(page, m, "iteration", lines, known, false);
}

static void draw_over_iterations(tarn__dynamics_page *page) {
  const int64_t end = longest(page);
  for (size_t k = 0; k < sizeof measures / sizeof *measures; k++) {
    measure m = measures[k];
    m.caption = tarn__report_text(&page->view, "%s Median over sentences, and the quartiles as a band.", m.caption);
    draw_measure(page, &m, end);
    if (end < 4 * CLOSE) continue;
    m.name = tarn__report_text(&page->view, "%s-close", m.name);
    m.title = tarn__report_text(&page->view, "%s, the first iterations", m.title);
    draw_measure(page, &m, CLOSE);
  }
}

// --- spectra

static void draw_spectra(tarn__dynamics_page *page) {
  static const measure spectrum = {
      .name = "spectrum",
      .title = "Lyapunov spectrum",
      .y_label = "natural logarithm per iteration",
      .caption =
          "The leading Lyapunov exponents, largest first: median over sentences, and the quartiles as a band. "
          "Exponents of directions that vanish altogether are left out.",
      .part = TARN__FIGURE_EXPONENTS};
  const size_t count = page->options->model_count;
  tarn__chart_line *lines = lines_for(page, count);
  size_t known = 0;
  for (size_t i = 0; i < count && lines; i++) {
    const tarn_dynamics_result *r = page->options->models[i].result;
    double *data[4], *values = numbers(page, (size_t)r->count);
    lines[known] = (tarn__chart_line){.label = tarn__dynamics_label(page, i)};
    if (!values || !begin_line(page, &lines[known], data, (size_t)r->exponents)) return;
    for (int64_t k = 0; k < r->exponents; k++) {
      tarn_dynamics_spread spread;
      for (int64_t s = 0; s < r->count; s++)
        values[s] = isfinite(r->sentences[s].exponents[k]) ? r->sentences[s].exponents[k] : NAN;
      tarn__dynamics_spread_of(&spread, values, r->count);
      add_point(&lines[known], data, (double)(k + 1), &spread);
    }
    if (lines[known].count > 0) known++;
  }
  if (known > 0) draw(page, &spectrum, "exponent", lines, known, false);
}

// --- trajectories

// The path of one token; false if nothing of it is finite.
static bool trace(tarn__dynamics_page *page, tarn__chart_line *line, const tarn_dynamics_result *r,
                  const tarn_dynamics_sentence *s, int64_t token) {
  const int64_t end = r->kept < s->iterations ? r->kept : s->iterations;
  double *x = numbers(page, 2 * (size_t)(end + 1)), *y = x ? x + end + 1 : NULL;
  if (!x) return false;
  size_t count = 0;
  for (int64_t t = 0; t <= end; t++) {
    const double *at = s->plane + 2 * (t * s->tokens + token);
    if (!isfinite(at[0]) || !isfinite(at[1])) break;
    x[count] = at[0];
    y[count++] = at[1];
  }
  *line = (tarn__chart_line){.label = line->label, .x = x, .y = y, .count = count};
  return count > 0;
}

static const tarn_dynamics_sentence *drawn_sentence(const tarn_dynamics_result *r) {
  const tarn_dynamics_sentence *found = NULL;
  for (int64_t i = 0; i < r->count; i++) {
    const tarn_dynamics_sentence *s = &r->sentences[i];
    if (s->plane && (!found || (found->tokens == 1 && s->tokens > 1))) found = s;
  }
  return found;
}

static void draw_plane(tarn__dynamics_page *page, const tarn_dynamics_model *model) {
  tarn__report *view = &page->view;
  const tarn_dynamics_result *r = model->result;
  const tarn_dynamics_sentence *sentence = drawn_sentence(r);
  tarn__chart_line *lines = sentence ? lines_for(page, PATHS) : NULL;
  size_t count = 0;
  if (!lines) return;
  // Systems of one state each are drawn together, else the tokens of one sentence.
  const bool systems = sentence->tokens == 1;
  const int64_t all = systems ? r->count : sentence->tokens;
  for (int64_t k = 0; k < all && count < PATHS; k++) {
    const tarn_dynamics_sentence *s = systems ? &r->sentences[k] : sentence;
    lines[count].label.style = (int)k;
    if (s->plane && trace(page, &lines[count], r, s, systems ? 0 : k)) count++;
    if (view->status != TARN_STATUS_OK) return;
  }
  if (count == 0) return;
  const char *what = systems ? tarn__report_text(view, "%zu of the %lld trajectories", count, (long long)all)
                             : tarn__report_text(view, "%zu of the %lld tokens of line %lld", count, (long long)all,
                                                 (long long)sentence->line);
  const measure plane = {
      .name = tarn__report_text(view, "plane-%s", model->name),
      .title = tarn__report_text(view, "%s: trajectories in the plane of two principal components", model->name),
      .y_label = tarn__report_text(view, "second component (%.0f %% of the variance)", 100 * r->plane_share[1]),
      .caption = tarn__report_text(view,
                                   "%s, from the start (hollow) to iteration %lld (filled), in the plane in which the "
                                   "states of these iterations vary the most.",
                                   what, (long long)r->kept),
      .part = TARN__FIGURE_PLANES};
  draw(page, &plane, tarn__report_text(view, "first component (%.0f %% of the variance)", 100 * r->plane_share[0]),
       lines, count, true);
}

// --- over a training, over spectral radii

static void draw_training(tarn__dynamics_page *page, const measure *m, size_t offset) {
  const tarn_dynamics_report_options *o = page->options;
  tarn__chart_line line = {.label = tarn__dynamics_label(page, 0)};
  double *data[4];
  line.label.note = NULL;
  if (o->moment_count == 0 || !begin_line(page, &line, data, o->moment_count)) return;
  for (size_t i = 0; i < o->moment_count; i++) {
    tarn_dynamics_spread spread;
    memcpy(&spread, (const char *)&o->moments[i].summary + offset, sizeof spread);
    add_point(&line, data, (double)o->moments[i].update, &spread);
  }
  if (line.count > 0) draw(page, m, "updates", &line, 1, false);
}

static double free_exponent(const tarn_dynamics_point *p) { return p->free; }
static double driven_exponent(const tarn_dynamics_point *p) { return p->driven; }
static double capacity(const tarn_dynamics_point *p) { return p->memory_capacity; }

// A line for each leak rate: points are grouped by leak rate.
static size_t add_radii(tarn__dynamics_page *page, tarn__chart_line *lines, size_t count,
                        double (*of)(const tarn_dynamics_point *point), const char *what) {
  const tarn_dynamics_scan *scan = page->options->scan;
  for (size_t begin = 0; begin < scan->count;) {
    size_t end = begin;
    while (end < scan->count && scan->points[end].leak_rate == scan->points[begin].leak_rate) end++;
    double *x = numbers(page, 2 * (end - begin)), *y = x ? x + (end - begin) : NULL;
    if (!x) return count;
    tarn__chart_line line = {
        .label = {.name = tarn__report_text(&page->view, "%sleak rate %g", what, scan->points[begin].leak_rate),
                  .style = (int)count},
        .x = x,
        .y = y};
    for (size_t i = begin; i < end; i++) {
      if (!isfinite(of(&scan->points[i]))) continue;
      x[line.count] = scan->points[i].spectral_radius;
      y[line.count++] = of(&scan->points[i]);
    }
    if (line.count > 0) lines[count++] = line;
    begin = end;
  }
  return count;
}

static void draw_radii(tarn__dynamics_page *page) {
  static const measure exponent = {
      .name = "radius-exponent",
      .title = "Largest exponent over the spectral radius",
      .y_label = "natural logarithm per iteration",
      .caption =
          "Largest Lyapunov exponent of the reservoir, without input (free) and driven: below 0 it forgets its "
          "start, which the echo state property asks for.",
      .part = TARN__FIGURE_SERIES};
  static const measure memory = {
      .name = "radius-memory",
      .title = "Memory capacity over the spectral radius",
      .y_label = "memory capacity",
      .caption =
          "Sum over delays of the squared correlation of a past input with its best linear readout of the states "
          "(Jaeger 2002); at most the number of units.",
      .part = TARN__FIGURE_SERIES};
  if (!page->options->scan || page->options->scan->count == 0) return;
  tarn__chart_line *lines = lines_for(page, 2 * page->options->scan->count);
  if (!lines) return;
  size_t count = add_radii(page, lines, 0, free_exponent, "free, ");
  count = add_radii(page, lines, count, driven_exponent, "driven, ");
  if (count > 0) draw(page, &exponent, "spectral radius", lines, count, false);
  count = add_radii(page, lines, 0, capacity, "");
  if (count > 0) draw(page, &memory, "spectral radius", lines, count, false);
}

static void draw_series(tarn__dynamics_page *page) {
  static const measure exponent = {
      .name = "training-exponent",
      .title = "Largest exponent over the training",
      .y_label = "natural logarithm per iteration",
      .caption = "Largest Lyapunov exponent of each checkpoint: median over sentences, and the quartiles as a band.",
      .part = TARN__FIGURE_SERIES};
  static const measure dimension = {
      .name = "training-dimension",
      .title = "Kaplan-Yorke dimension over the training",
      .y_label = "dimension",
      .caption = "Kaplan-Yorke dimension of each checkpoint: median over sentences, and the quartiles as a band.",
      .part = TARN__FIGURE_SERIES};
  draw_training(page, &exponent, offsetof(tarn_dynamics_summary, exponent));
  draw_training(page, &dimension, offsetof(tarn_dynamics_summary, kaplan_yorke));
  draw_radii(page);
}

tarn_status tarn__dynamics_figures(tarn__dynamics_page *page) {
  draw_over_iterations(page);
  draw_spectra(page);
  for (size_t i = 0; i < page->options->model_count; i++) draw_plane(page, &page->options->models[i]);
  draw_series(page);
  return tarn__figures_status(&page->figures, &page->view);
}
