#include "corpus/strokes.h"

#include <math.h>
#include <stdbool.h>

#include "base/fixed.h"

// Coordinates of a drawing are -1 .. 1 in both directions, y downwards. Arithmetic is that of base/fixed.h alone: equal
// bits on every machine.
typedef struct point {
  double x, y;
} point;

// A stroke is a line from point to point, or an arc of an ellipse, in turns from the right end clockwise.
typedef struct stroke {
  point a, b;          // of a line; of an arc its centre and radii
  double begin, turn;  // of an arc; turn 0: a line
} stroke;

enum { STROKES = 6, SEGMENTS = 96, ARC_STEPS = 16, SHAPES = 6, DIGITS = 10, CLUTTER = 2 };
#define LINE(x, y, to_x, to_y) \
  { {x, y}, {to_x, to_y}, 0, 0 }
#define ARC(x, y, radius_x, radius_y, begin, turn) \
  { {x, y}, {radius_x, radius_y}, begin, turn }

typedef struct drawing {
  stroke strokes[STROKES];  // behind the last one: a line of no length at the origin
  int count;
} drawing;

// Two forms of each digit, as people write them.
static const drawing digits[DIGITS][2] = {
    {{{ARC(0, 0, 0.6, 0.95, 0, 1)}, 1}, {{ARC(0, 0, 0.75, 0.8, 0, 1)}, 1}},
    {{{LINE(-0.3, -0.6, 0.05, -0.95), LINE(0.05, -0.95, 0.05, 0.95)}, 2}, {{LINE(0, -0.95, 0, 0.95)}, 1}},
    {{{ARC(0, -0.45, 0.55, 0.5, 0.5, 0.62), LINE(0.4, -0.1, -0.6, 0.95), LINE(-0.6, 0.95, 0.65, 0.95)}, 3},
     {{ARC(0, -0.4, 0.6, 0.55, 0.45, 0.7), LINE(0.2, 0.1, -0.55, 0.8), LINE(-0.55, 0.8, 0.7, 0.9)}, 3}},
    {{{ARC(-0.05, -0.47, 0.5, 0.47, 0.55, 0.7), ARC(-0.05, 0.47, 0.6, 0.48, 0.75, 0.7)}, 2},
     {{LINE(-0.5, -0.95, 0.5, -0.95), LINE(0.5, -0.95, -0.05, -0.2), ARC(-0.05, 0.37, 0.6, 0.57, 0.75, 0.65)}, 3}},
    {{{LINE(0.25, -0.95, -0.6, 0.3), LINE(-0.6, 0.3, 0.65, 0.3), LINE(0.25, -0.95, 0.25, 0.95)}, 3},
     {{LINE(-0.45, -0.9, -0.5, 0.05), LINE(-0.5, 0.05, 0.55, 0.05), LINE(0.4, -0.9, 0.35, 0.95)}, 3}},
    {{{LINE(0.5, -0.95, -0.45, -0.95), LINE(-0.45, -0.95, -0.5, -0.1), ARC(-0.05, 0.35, 0.6, 0.58, 0.62, 0.8)}, 3},
     {{LINE(0.55, -0.9, -0.3, -0.9), LINE(-0.3, -0.9, -0.4, -0.15), ARC(-0.1, 0.35, 0.65, 0.55, 0.68, 0.67)}, 3}},
    {{{ARC(0, 0.42, 0.55, 0.53, 0, 1), ARC(0.55, 0.42, 1.1, 1.4, 0.5, 0.19)}, 2},
     {{ARC(0, 0.45, 0.5, 0.5, 0, 1), LINE(-0.47, 0.3, 0.2, -0.95)}, 2}},
    {{{LINE(-0.6, -0.95, 0.6, -0.95), LINE(0.6, -0.95, -0.15, 0.95)}, 2},
     {{LINE(-0.55, -0.9, 0.55, -0.9), LINE(0.55, -0.9, 0, 0.95), LINE(-0.3, 0, 0.5, 0)}, 3}},
    {{{ARC(0, -0.48, 0.48, 0.46, 0, 1), ARC(0, 0.46, 0.58, 0.49, 0, 1)}, 2},
     {{ARC(0, -0.45, 0.42, 0.45, 0, 1), ARC(0, 0.45, 0.42, 0.45, 0, 1)}, 2}},
    {{{ARC(0, -0.42, 0.55, 0.53, 0, 1), ARC(-0.55, -0.42, 1.1, 1.4, 0, 0.19)}, 2},
     {{ARC(0, -0.45, 0.5, 0.5, 0, 1), LINE(0.5, -0.45, 0.4, 0.95)}, 2}}};

static const drawing shapes[SHAPES] = {
    {{ARC(0, 0, 0.8, 0.8, 0, 1)}, 1},
    {{LINE(-0.7, -0.7, 0.7, -0.7), LINE(0.7, -0.7, 0.7, 0.7), LINE(0.7, 0.7, -0.7, 0.7), LINE(-0.7, 0.7, -0.7, -0.7)},
     4},
    {{LINE(0, -0.85, 0.8, 0.6), LINE(0.8, 0.6, -0.8, 0.6), LINE(-0.8, 0.6, 0, -0.85)}, 3},
    {{LINE(-0.8, 0, 0.8, 0), LINE(0, -0.8, 0, 0.8)}, 2},
    {{LINE(0, -0.9, 0.53, 0.73), LINE(0.53, 0.73, -0.86, -0.28), LINE(-0.86, -0.28, 0.86, -0.28),
      LINE(0.86, -0.28, -0.53, 0.73), LINE(-0.53, 0.73, 0, -0.9)},
     5},
    {{ARC(-0.4, -0.35, 0.4, 0.4, 0.4, 0.6), ARC(0.4, -0.35, 0.4, 0.4, 0.5, 0.6), LINE(-0.72, -0.12, 0, 0.85),
      LINE(0.72, -0.12, 0, 0.85)},
     4}};

int tarn__strokes_classes(tarn_drawings_what what) { return what == TARN_DRAWINGS_SHAPES ? SHAPES : DIGITS; }

static double turn_cos(double turn) { return tarn__fixed_cos_turn(turn - floor(turn)); }
static double turn_sin(double turn) { return turn_cos(turn - 0.25); }

// Uniform between two numbers.
static double between(tarn__random *random, double low, double high) {
  return low + (high - low) * tarn__random_uniform(random);
}

// All segments of an image, in pixels.
typedef struct sketch {
  point from[SEGMENTS], to[SEGMENTS];
  double ink[SEGMENTS];
  int count;
} sketch;

// The map of a drawing to an image: a bend, a slant, scales, a turn and a place.
typedef struct placing {
  double bend_x, bend_y, bend_phase, slant, scale_x, scale_y, cos, sin;
  point middle;
} placing;

static placing draw_placing(tarn__random *random, int size, double turns) {
  const double half = 0.5 * (double)size, scale = half * between(random, 0.58, 0.8), shape = between(random, 0.82, 1.2);
  const double angle = between(random, -turns, turns), free = half - 0.85 * scale;
  placing p = {.bend_x = between(random, -0.12, 0.12),
               .bend_y = between(random, -0.12, 0.12),
               .bend_phase = tarn__random_uniform(random),
               .slant = between(random, -0.25, 0.25),
               .scale_x = scale * shape,
               .scale_y = scale / shape,
               .cos = turn_cos(angle),
               .sin = turn_sin(angle)};
  p.middle.x = half + between(random, -0.5, 0.5) * free;
  p.middle.y = half + between(random, -0.5, 0.5) * free;
  return p;
}

static point place(const placing *p, point at) {
  const double bent_x = at.x + p->bend_x * turn_cos(0.4 * at.y + p->bend_phase);
  const double bent_y = at.y + p->bend_y * turn_cos(0.4 * at.x + p->bend_phase);
  const double x = p->scale_x * (bent_x - p->slant * bent_y), y = p->scale_y * bent_y;
  return (point){p->middle.x + p->cos * x - p->sin * y, p->middle.y + p->sin * x + p->cos * y};
}

static void add_segment(sketch *s, point from, point to, double ink) {
  if (s->count == SEGMENTS) return;
  s->from[s->count] = from;
  s->to[s->count] = to;
  s->ink[s->count++] = ink;
}

static point arc_at(const stroke *arc, double share) {
  const double at = arc->begin + arc->turn * share;
  return (point){arc->a.x + arc->b.x * turn_cos(at), arc->a.y + arc->b.y * turn_sin(at)};
}

// Lines are cut too, because they are bent.
static void add_stroke(sketch *s, const stroke *k, const placing *p, double ink) {
  const int steps = k->turn > 0 ? ARC_STEPS : 4;
  for (int i = 0; i < steps; i++) {
    const double begin = (double)i / steps, end = (double)(i + 1) / steps;
    point from, to;
    if (k->turn > 0) {
      from = arc_at(k, begin);
      to = arc_at(k, end);
    } else {
      from = (point){k->a.x + (k->b.x - k->a.x) * begin, k->a.y + (k->b.y - k->a.y) * begin};
      to = (point){k->a.x + (k->b.x - k->a.x) * end, k->a.y + (k->b.y - k->a.y) * end};
    }
    add_segment(s, place(p, from), place(p, to), ink);
  }
}

// Short strokes anywhere, weaker than those of the drawing.
static void add_clutter(sketch *s, tarn__random *random, int size) {
  for (int i = 0; i < CLUTTER; i++) {
    const double length = 0.18 * (double)size, turn = tarn__random_uniform(random);
    const point from = {between(random, 0, (double)size), between(random, 0, (double)size)};
    const point to = {from.x + length * turn_cos(turn), from.y + length * turn_sin(turn)};
    add_segment(s, from, to, between(random, 0.3, 0.7));
  }
}

static double distance_of(point at, point from, point to) {
  const double x = to.x - from.x, y = to.y - from.y, length = x * x + y * y;
  double share = length > 0 ? ((at.x - from.x) * x + (at.y - from.y) * y) / length : 0;
  share = share < 0 ? 0 : share > 1 ? 1 : share;
  const double dx = at.x - from.x - share * x, dy = at.y - from.y - share * y;
  return sqrt(dx * dx + dy * dy);
}

// The ink of a pixel: that of the strongest stroke on it, whose edge is one pixel wide.
static double ink_at(const sketch *s, point at, double half_width) {
  double ink = 0;
  for (int i = 0; i < s->count; i++) {
    double cover = half_width + 0.5 - distance_of(at, s->from[i], s->to[i]);
    cover = (cover < 0 ? 0 : cover > 1 ? 1 : cover) * s->ink[i];
    if (cover > ink) ink = cover;
  }
  return ink;
}

void tarn__strokes_draw(uint8_t *pixels, int size, tarn_drawings_what what, int class, tarn__random *random) {
  const bool is_digit = what == TARN_DRAWINGS_DIGITS;
  const drawing *drawn = is_digit ? &digits[class][tarn__random_below(random, 2)] : &shapes[class];
  // Turned digits are others: 6 and 9.
  const placing p = draw_placing(random, size, is_digit ? 0.06 : 0.5);
  const double ink = between(random, 0.65, 1.0), half_width = (double)size / 28.0 * between(random, 0.7, 1.5);
  const double noise = between(random, 0.03, 0.12), ground = between(random, 0.0, 0.12);
  sketch s = {.count = 0};
  for (int i = 0; i < drawn->count; i++) add_stroke(&s, &drawn->strokes[i], &p, ink);
  add_clutter(&s, random, size);
  for (int y = 0; y < size; y++)
    for (int x = 0; x < size; x++) {
      const double value = ground + (1.0 - ground) * ink_at(&s, (point){x + 0.5, y + 0.5}, half_width) +
                           noise * tarn__random_normal(random);
      pixels[y * size + x] = (uint8_t)(value <= 0 ? 0 : value >= 1 ? 255 : floor(value * 255.0 + 0.5));
    }
}
