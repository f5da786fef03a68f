// Labelled points: each label is at the nearest free place or, if there is not enough space, in a column.
#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "report/svg_axis.h"
#include "report/svg_chart.h"

enum { HEIGHT = 400, RADIUS = 6, ANGLES = 24, RINGS = 60 };

// Kinds of box contents. A label may cover a line rather than a point, and a point rather than another label.
typedef enum content { CONTENT_LABEL, CONTENT_POINT, CONTENT_LINE } content;

typedef struct box {
  double left, top, right, bottom;
  content content;
} box;

// Occupied places: points, their error bars and lines, and labels placed before.
typedef struct crowd {
  box *boxes;
  size_t count;
  box area;
} crowd;

static bool overlap(const box *a, const box *b) {
  return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

// Whether the box is free, ignoring contents above `most`.
static bool is_free(const crowd *taken, const box *place, content most) {
  if (place->left < taken->area.left || place->right > taken->area.right) return false;
  if (place->top < taken->area.top || place->bottom > taken->area.bottom) return false;
  for (size_t i = 0; i < taken->count; i++) {
    if (taken->boxes[i].content <= most && overlap(&taken->boxes[i], place)) return false;
  }
  return true;
}

static box place_at(double x, double y, double angle, double distance, double width, double height) {
  double dx = cos(angle) * distance;
  double dy = sin(angle) * distance;
  // The nearest side or corner of the label faces the point.
  double left = dx > 1 ? x + dx : dx < -1 ? x + dx - width : x - width / 2;
  double top = dy > 1 ? y + dy : dy < -1 ? y + dy - height : y - height / 2;
  return (box){left, top, left + width, top + height, CONTENT_LABEL};
}

// Number of occupied places crossed by a line from (x, y) to the nearest edge of a label, sampled along it.
static int crossings(const crowd *taken, double x, double y, const box *place) {
  double to_x = fmin(fmax(x, place->left), place->right);
  double to_y = fmin(fmax(y, place->top), place->bottom);
  int found = 0;
  for (size_t i = 0; i < taken->count; i++) {
    const box *b = &taken->boxes[i];
    bool hit = false;
    for (int k = 5; k <= 20 && !hit; k++) {
      double px = x + (to_x - x) * k / 20;
      double py = y + (to_y - y) * k / 20;
      bool own = fabs(px - x) < RADIUS + 4 && fabs(py - y) < RADIUS + 4;
      hit = !own && px > b->left && px < b->right && py > b->top && py < b->bottom;
    }
    found += hit;
  }
  return found;
}

// The nearest place with few crossings among those that are free up to `most`. False: none.
static bool nearest_place(const crowd *taken, double x, double y, content most, box *place, double *distance) {
  double width = place->right - place->left;
  double height = place->bottom - place->top;
  double least = INFINITY;
  for (int r = 0; r < RINGS; r++) {
    double ring = RADIUS + 5 + 7.0 * r;
    if (ring >= least) break;
    for (int a = 0; a < ANGLES; a++) {
      box candidate = place_at(x, y, 2 * M_PI * a / ANGLES, ring, width, height);
      if (!is_free(taken, &candidate, most)) continue;
      double cost = ring + 45 * crossings(taken, x, y, &candidate);
      if (cost >= least) continue;
      least = cost;
      *place = candidate;
      *distance = ring;
    }
  }
  return isfinite(least);
}

// False: everything is occupied.
static bool find_place(const crowd *taken, double x, double y, box *place, double *distance) {
  for (int most = CONTENT_LINE; most >= CONTENT_LABEL; most--)
    if (nearest_place(taken, x, y, (content)most, place, distance)) return true;
  return false;
}

static void take_point(const tarn__svg_plot *plot, const tarn__chart_point *point, crowd *taken) {
  double x = tarn__svg_axis_at(&plot->x, point->x);
  double y = tarn__svg_axis_at(&plot->y, point->y);
  if (!isnan(point->error)) {
    double high = tarn__svg_axis_at(&plot->y, point->y + point->error);
    double low = tarn__svg_axis_at(&plot->y, point->y - point->error);
    taken->boxes[taken->count++] = (box){x - 5, fmin(low, high), x + 5, fmax(low, high), CONTENT_LINE};
  }
  if (!isnan(point->x_also) && point->x_also != point->x) {
    double also = tarn__svg_axis_at(&plot->x, point->x_also);
    taken->boxes[taken->count++] = (box){fmin(x, also) - 6, y - 6, fmax(x, also) + 6, y + 6, CONTENT_LINE};
  }
  taken->boxes[taken->count++] = (box){x - RADIUS - 2, y - RADIUS - 2, x + RADIUS + 2, y + RADIUS + 2, CONTENT_POINT};
}

static void draw_point(tarn__buffer *out, const tarn__svg_plot *plot, const tarn__chart_point *point) {
  double x = tarn__svg_axis_at(&plot->x, point->x);
  double y = tarn__svg_axis_at(&plot->y, point->y);
  const char *colour = tarn__svg_colour(point->label.style);
  if (!isnan(point->error)) {
    double high = tarn__svg_axis_at(&plot->y, point->y + point->error);
    double low = tarn__svg_axis_at(&plot->y, point->y - point->error);
    tarn__svg_line(out, x, low, x, high, colour, 1.6, NULL);
    tarn__svg_line(out, x - 5, low, x + 5, low, colour, 1.6, NULL);
    tarn__svg_line(out, x - 5, high, x + 5, high, colour, 1.6, NULL);
  }
  if (!isnan(point->x_also) && point->x_also != point->x) {
    double also = tarn__svg_axis_at(&plot->x, point->x_also);
    double end = also > x ? also - 5 : also + 5;
    tarn__svg_line(out, x, y, end, y, colour, 1.2, "2 3");
    tarn__buffer_format(out,
                        "<circle class=\"%s\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.6\" "
                        "cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>\n",
                        colour, also, y);
  }
  tarn__svg_marker(out, point->label.style, x, y, RADIUS);
}

// A label's place beside its point. A line leads to it if `led`.
typedef struct spot {
  box place;
  double width, to_x, to_y;
  bool led;
} spot;

// False: no place.
static bool take_label(const tarn__svg_plot *plot, const tarn__chart_point *point, crowd *taken, spot *out) {
  double x = tarn__svg_axis_at(&plot->x, point->x);
  double y = tarn__svg_axis_at(&plot->y, point->y);
  double distance = 0;
  const double width = tarn__chart_label_width(&point->label);
  *out = (spot){{0, 0, width, tarn__chart_label_height(width, &point->label) - 4, CONTENT_LABEL}, width, 0, 0, false};
  if (!find_place(taken, x, y, &out->place, &distance)) return false;
  const box *place = &out->place;
  out->to_x = fmin(fmax(x, place->left), place->right);
  out->to_y = fmin(fmax(y, place->top), place->bottom);
  out->led = distance > RADIUS + 16;
  if (out->led)  // later labels avoid the far half of this line
    taken->boxes[taken->count++] =
        (box){fmin((x + out->to_x) / 2, out->to_x) - 2, fmin((y + out->to_y) / 2, out->to_y) - 2,
              fmax((x + out->to_x) / 2, out->to_x) + 2, fmax((y + out->to_y) / 2, out->to_y) + 2, CONTENT_LINE};
  taken->boxes[taken->count++] =
      (box){place->left - 5, place->top - 1, place->right + 5, place->bottom + 1, CONTENT_LABEL};
  return true;
}

static void draw_label(tarn__buffer *out, const tarn__svg_plot *plot, const tarn__chart_point *point, const spot *at) {
  double x = tarn__svg_axis_at(&plot->x, point->x);
  double y = tarn__svg_axis_at(&plot->y, point->y);
  if (at->led) tarn__svg_line(out, x, y, at->to_x, at->to_y, tarn__svg_colour(point->label.style), 1, NULL);
  tarn__svg_rect(out, at->place.left - 2, at->place.top, at->width + 4, at->place.bottom - at->place.top, 2, "paper",
                 0.85);
  tarn__chart_label_draw(out, at->place.left, at->place.top + TARN__CHART_ABOVE, at->width, &point->label);
}

static tarn__svg_plot make_plot(const tarn__chart *chart, const tarn__chart_point *points, size_t count, double right,
                                double height) {
  double x[2] = {INFINITY, -INFINITY};
  double y[2] = {INFINITY, -INFINITY};
  for (size_t i = 0; i < count; i++) {
    double error = isnan(points[i].error) ? 0 : points[i].error;
    double also = isnan(points[i].x_also) ? points[i].x : points[i].x_also;
    x[0] = fmin(x[0], fmin(points[i].x, also));
    x[1] = fmax(x[1], fmax(points[i].x, also));
    y[0] = fmin(y[0], points[i].y - error);
    y[1] = fmax(y[1], points[i].y + error);
  }
  double x_room = 0.06 * (x[1] - x[0]);
  double y_room = 0.08 * (y[1] - y[0]);
  const double top = tarn__svg_title_height(chart->head.title) + TARN__SVG_PLOT_HEAD;
  return (tarn__svg_plot){
      .left = TARN__SVG_PLOT_LEFT,
      .right = right,
      .top = top,
      .bottom = top + height,
      .x = tarn__svg_axis_make(fmax(x[0] - x_room, 0), x[1] + x_room, 8, true),
      .y = tarn__svg_axis_make(y[0] < 0 ? y[0] - y_room : fmax(y[0] - y_room, 0), y[1] + y_room, 8, true),
      .x_label = chart->x_label,
      .y_label = chart->y_label,
      .title = chart->head.title};
}

static void place_axes(tarn__svg_plot *plot) {
  plot->x.from = plot->left, plot->x.to = plot->right;
  plot->y.from = plot->bottom, plot->y.to = plot->top;
}

// The memory used for drawing.
typedef struct room {
  box *boxes;             // 5 per point
  spot *spots;            // 1 per point
  tarn__chart_end *ends;  // 1 per point
} room;

static bool take_labels(const tarn__svg_plot *plot, const tarn__chart_point *points, size_t count, const room *memory) {
  crowd taken = {memory->boxes, 0, {plot->left + 2, plot->top, plot->right, plot->bottom - 2, CONTENT_LABEL}};
  for (size_t i = 0; i < count; i++) take_point(plot, &points[i], &taken);
  for (size_t i = 0; i < count; i++)
    if (!take_label(plot, &points[i], &taken, &memory->spots[i])) return false;
  return true;
}

// With many points, lines to labels among them would be cluttered. Then the labels form a column, in the order of their
// points' heights, and are identified by their marks.
enum { BESIDE = 8 };

static void draw(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_point *points, size_t count,
                 const room *memory) {
  double width = 40, labelled = 0;
  for (size_t i = 0; i < count; i++) width = fmax(width, tarn__chart_label_width(&points[i].label));
  for (size_t i = 0; i < count; i++) labelled += tarn__chart_label_height(width, &points[i].label);
  tarn__svg_plot plot = make_plot(chart, points, count, TARN__SVG_WIDTH - 20, fmax(HEIGHT, 90 + labelled));
  place_axes(&plot);
  const bool beside = count <= BESIDE && take_labels(&plot, points, count, memory);
  if (!beside)
    plot = make_plot(chart, points, count, TARN__SVG_WIDTH - width - TARN__CHART_LEADER - 8,
                     fmax(HEIGHT, labelled - TARN__CHART_ABOVE - TARN__SVG_PLOT_FOOT + 8));
  tarn__svg_head head = chart->head;
  head.width = TARN__SVG_WIDTH;
  head.height = plot.bottom + TARN__SVG_PLOT_FOOT + tarn__svg_foot_height(chart->foot, head.width);
  tarn__svg_open(out, &head);
  tarn__svg_plot_frame(out, &plot);
  for (size_t i = 0; i < count; i++) draw_point(out, &plot, &points[i]);
  for (size_t i = 0; i < count; i++) {
    if (beside) draw_label(out, &plot, &points[i], &memory->spots[i]);
    memory->ends[i] = (tarn__chart_end){&points[i].label, NAN, tarn__svg_axis_at(&plot.y, points[i].y)};
  }
  if (!beside && out->status == TARN_STATUS_OK) {
    const tarn_status status = tarn__chart_column(out, memory->ends, count, plot.right, width,
                                                  plot.top - TARN__CHART_ABOVE, plot.bottom + TARN__SVG_PLOT_FOOT - 8);
    if (out->status == TARN_STATUS_OK) out->status = status;
  }
  tarn__svg_foot(out, plot.bottom + TARN__SVG_PLOT_FOOT, head.width, chart->foot);
  tarn__svg_close(out);
}

void tarn__chart_points(tarn__buffer *out, const tarn__chart *chart, const tarn__chart_point *points, size_t count) {
  void *boxes = NULL, *spots = NULL, *ends = NULL;
  tarn_status status = out->status;
  if (status == TARN_STATUS_OK) status = tarn__alloc(&boxes, TARN__MEMORY_OTHER, 5 * count, sizeof(box));
  if (status == TARN_STATUS_OK) status = tarn__alloc(&spots, TARN__MEMORY_OTHER, count, sizeof(spot));
  if (status == TARN_STATUS_OK) status = tarn__alloc(&ends, TARN__MEMORY_OTHER, count, sizeof(tarn__chart_end));
  if (status == TARN_STATUS_OK) draw(out, chart, points, count, &(room){boxes, spots, ends});
  if (out->status == TARN_STATUS_OK) out->status = status;
  tarn__free(ends);
  tarn__free(spots);
  tarn__free(boxes);
}
