#include "report/svg_layers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/pattern.h"
#include "report/svg_axis.h"
#include "report/svg_wrap.h"

// --- a row of small boxes

enum { STRIP_WIDEST = 120, STRIP_BAR = 9 };

// Both stacks have boxes, with a bar between them if both are non-empty.
enum { STACKS = 2 };

typedef struct strip {
  int count, bars;
  double pitch;  // distance between boxes: 9 units, less if the row would not fit
} strip;

static strip measure(const tarn_results_stack *const stacks[STACKS]) {
  strip size = {0};
  for (int s = 0; s < STACKS; s++) {
    size.bars += size.count > 0 && stacks[s]->count > 0;
    size.count += stacks[s]->count;
  }
  size.pitch = size.count < 1 ? 9 : fmin(9, (double)(STRIP_WIDEST - STRIP_BAR) / size.count);
  return size;
}

double tarn__svg_strip_width(const tarn_results_stack *encoder, const tarn_results_stack *decoder) {
  const tarn_results_stack *const stacks[STACKS] = {encoder, decoder};
  const strip size = measure(stacks);
  return size.count * size.pitch + size.bars * STRIP_BAR;
}

static double strip_part(tarn__buffer *out, double x, double y, double pitch, const tarn_results_stack *stack) {
  double width = pitch > 4 ? pitch - 2 : pitch * 0.7;
  double top = y - TARN__SVG_STRIP;
  for (int i = 0; i < stack->count; i++, x += pitch) {
    if (stack->layers[i].frozen)
      tarn__buffer_format(
          out, "<path d=\"M%.1f %.1fh%.1fv%.1fh%.1fzl%.1f %.1f\" fill=\"none\" stroke=\"currentColor\"/>", x + 0.5,
          top + 0.5, width - 1, TARN__SVG_STRIP - 1.0, 1 - width, width - 1, TARN__SVG_STRIP - 1.0);
    else
      tarn__buffer_format(out, "<path d=\"M%.1f %.1fh%.1fv%dh%.1fz\" fill=\"currentColor\"/>", x, top, width,
                          TARN__SVG_STRIP, -width);
  }
  return x;
}

void tarn__svg_strip(tarn__buffer *out, double x, double y, const tarn_results_stack *encoder,
                     const tarn_results_stack *decoder) {
  const tarn_results_stack *const stacks[STACKS] = {encoder, decoder};
  const double pitch = measure(stacks).pitch;
  int drawn = 0;
  tarn__buffer_add(out, "<g class=\"soft\">");
  for (int s = 0; s < STACKS; s++) {
    if (drawn > 0 && stacks[s]->count > 0) {
      tarn__buffer_format(out, "<path d=\"M%.1f %.1fv%d\" stroke=\"currentColor\" stroke-width=\"1.5\"/>",
                          x + STRIP_BAR / 2.0 - 1, y - TARN__SVG_STRIP - 2, TARN__SVG_STRIP + 4);
      x += STRIP_BAR;
    }
    x = strip_part(out, x, y, pitch, stacks[s]);
    drawn += stacks[s]->count;
  }
  tarn__buffer_add(out, "</g>\n");
}

// --- stacks of boxes

enum { BOX_WIDTH = 196, LANE = 12, LANES = 4, MARGIN = 12, TAB = 26, HEAD = 15, PITCH = 21, FOOT = 30 };

static double box_pitch(int count) { return count <= 16 ? 30 : fmax(18, 480.0 / count); }

// Lanes beside the boxes for the lines between layers of one set; sets beyond the last lane share it.
static int lane_of(const tarn_results_stack *stack, int layer) {
  int lane = 0;
  for (int i = 0; i < stack->layers[layer].first; i++) lane += stack->layers[i].shared && stack->layers[i].first == i;
  return lane < LANES ? lane : LANES - 1;
}

static int lanes(const tarn_results_stack *stack) {
  int most = 0;
  for (int i = 0; i < stack->count; i++) {
    if (stack->layers[i].shared && lane_of(stack, i) + 1 > most) most = lane_of(stack, i) + 1;
  }
  return most;
}

static void hatch(tarn__buffer *out, double x, double y, double width, double height) {
  tarn__buffer_add(out, "<path fill=\"none\" stroke=\"currentColor\" d=\"");
  for (double start = x - height; start < x + width; start += 6) {
    double left = fmax(start, x);
    double right = fmin(start + height, x + width);
    if (right > left)
      tarn__buffer_format(out, "M%.1f %.1fL%.1f %.1f", left, y + height - (left - start), right,
                          y + height - (right - start));
  }
  tarn__buffer_add(out, "\"/>");
}

static void box(tarn__buffer *out, double x, double y, double height, const tarn_results_layer *layer) {
  const char *colour = layer->frozen ? "c1" : "c2";
  double size = height < 22 ? 11 : TARN__SVG_SMALL;
  double line = y + height / 2 + size * 0.36;
  tarn__buffer_format(out, "<g class=\"%s\">", colour);
  if (layer->frozen)
    hatch(out, x, y, TAB, height);
  else
    tarn__buffer_format(out, "<rect fill=\"currentColor\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>", x, y,
                        TAB, height);
  tarn__buffer_format(out,
                      "<rect fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\" x=\"%.1f\" y=\"%.1f\" "
                      "width=\"%d\" height=\"%.1f\"/></g>\n",
                      x, y, BOX_WIDTH, height);
  bool own = tarn__pattern_is_bare(layer->set);
  char text[160];
  snprintf(text, sizeof text, "%s \xC2\xB7 %s", own ? layer->kind : layer->set,
           layer->empty ? "FFN only" : layer->mixer);
  tarn__svg_font font = {size, TARN__SVG_START, "ink", false};
  // Hatching also shows that a layer is frozen, so the word is dropped for a long name.
  const double room = BOX_WIDTH - TAB - 10;
  const bool word = layer->frozen && tarn__svg_text_width(text, size) <= room - 48;
  tarn__svg_text_within(out, x + TAB + 7, line, font, room, text);
  font.anchor = TARN__SVG_END, font.colour = "soft";
  if (word) tarn__svg_text(out, x + BOX_WIDTH - 6, line, font, "frozen");
}

static void draw_stack(tarn__buffer *out, double x, double bottom, double pitch, const tarn_results_stack *stack,
                       const char *name) {
  char text[64];
  double height = pitch - 5;
  for (int i = 0; i < stack->count; i++) {
    const tarn_results_layer *layer = &stack->layers[i];
    double y = bottom - (i + 1) * pitch;
    box(out, x, y, height, layer);
    if (!layer->shared) continue;
    double lane = x + BOX_WIDTH + 6 + LANE * lane_of(stack, i);
    double middle = y + height / 2;
    tarn__svg_line(out, x + BOX_WIDTH + 1, middle, lane, middle, "soft", 1.5, NULL);
    tarn__buffer_format(out, "<circle class=\"soft\" fill=\"currentColor\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", lane,
                        middle);
    int below = i - 1;
    while (below >= layer->first && stack->layers[below].first != layer->first) below--;
    if (below >= layer->first) tarn__svg_line(out, lane, middle, lane, middle + (i - below) * pitch, "soft", 1.5, NULL);
  }
  snprintf(text, sizeof text, "%s, %d of %d frozen", name, stack->frozen, stack->count);
  tarn__svg_text(out, x, bottom + 16, (tarn__svg_font){TARN__SVG_SMALL, TARN__SVG_START, "soft", false}, text);
}

void tarn__svg_layers(tarn__buffer *out, tarn__svg_head head, const char *foot, const tarn_results_stack *encoder,
                      const tarn_results_stack *decoder) {
  static const char *const names[STACKS] = {"encoder", "decoder"};
  static const int behind[STACKS] = {16, 8};  // right of the boxes, before the lanes
  const tarn_results_stack *const stacks[STACKS] = {encoder, decoder};
  double x[STACKS], width = MARGIN;
  int most = 0;
  for (int s = 0; s < STACKS; s++) {
    x[s] = width;
    if (stacks[s]->count > 0) width += BOX_WIDTH + behind[s] + LANE * lanes(stacks[s]);
    if (stacks[s]->count > most) most = stacks[s]->count;
  }
  const double pitch = box_pitch(most);
  head.width = width + MARGIN;
  const tarn__svg_lines title = tarn__svg_wrap(head.title, TARN__SVG_HEADING * 1.06, head.width - 2 * MARGIN);
  const double bottom = HEAD + title.count * PITCH + most * pitch + FOOT;
  head.height = bottom + tarn__svg_foot_height(foot, head.width);
  tarn__svg_open(out, &head);
  tarn__svg_wrap_draw(out, MARGIN, 22, (tarn__svg_font){TARN__SVG_HEADING, TARN__SVG_START, "ink", true}, PITCH,
                      &title);
  for (int s = 0; s < STACKS; s++)
    if (stacks[s]->count > 0) draw_stack(out, x[s], bottom - FOOT, pitch, stacks[s], names[s]);
  tarn__svg_foot(out, bottom, head.width, foot);
  tarn__svg_close(out);
}
