// Drawings of stacks of layers. Trained layers are filled; frozen ones are hollow and hatched; layers with shared
// weights have the same name and are joined by a line.
#ifndef TARN_REPORT_SVG_LAYERS_H
#define TARN_REPORT_SVG_LAYERS_H

#include "report/svg.h"
#include "tarn/lab/results.h"

// A row of small boxes: the encoder's layers with the bottom one on the left, a bar, then the decoder's. (x, y) is the
// lower left corner; it is TARN__SVG_STRIP high.
enum { TARN__SVG_STRIP = 11 };
double tarn__svg_strip_width(const tarn_results_stack *encoder, const tarn_results_stack *decoder);
void tarn__svg_strip(tarn__buffer *out, double x, double y, const tarn_results_stack *encoder,
                     const tarn_results_stack *decoder);

// A picture of both stacks side by side: the layers as boxes from bottom to top with the names of their weights, the
// mixer, and whether they are frozen. `head->width` and `height` are set here. `foot` is as in charts.
void tarn__svg_layers(tarn__buffer *out, tarn__svg_head head, const char *foot, const tarn_results_stack *encoder,
                      const tarn_results_stack *decoder);

#endif
