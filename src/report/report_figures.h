// The figures of a report.
#ifndef TARN_REPORT_REPORT_FIGURES_H
#define TARN_REPORT_REPORT_FIGURES_H

#include "report/report_view.h"

typedef enum tarn__figure_part {
  TARN__FIGURE_MODELS,  // layer patterns
  TARN__FIGURE_CURVES,
  TARN__FIGURE_SUMS,  // AUCC, parameters and layers against scores
  TARN__FIGURE_BACKSKIP,
  // Models as dynamical systems (src/dynamics):
  TARN__FIGURE_EXPONENTS,
  TARN__FIGURE_TOKENS,  // their distances, synchronisation, dimensions
  TARN__FIGURE_PLANES,
  TARN__FIGURE_SERIES  // over a training, over spectral radii
} tarn__figure_part;

typedef struct tarn__figure {
  tarn__figure_part part;
  const char *name;     // of the file, without ".svg"; unique; also the id in the page
  const char *title;    // as drawn
  const char *caption;  // a description in one or two sentences
  tarn__buffer page;    // the picture for the page
  tarn__buffer file;    // the picture as a separate file
} tarn__figure;

typedef struct tarn__figures {
  tarn__figure *items;
  size_t count, capacity;
} tarn__figures;

// Draws all figures that the comparison has data for.
tarn_status tarn__report_figures(tarn__figures *figures, tarn__report *view) TARN_CHECKED;
void tarn__report_figures_close(tarn__figures *figures);

// Adds a figure for the drawing functions of one section; its pictures are still empty. NULL after a failure.
tarn__figure *tarn__figure_add(tarn__figures *figures, tarn__report *view, tarn__figure_part part, const char *name,
                               const char *title, const char *caption);

// The first failure of the drawing.
tarn_status tarn__figures_status(const tarn__figures *figures, const tarn__report *view) TARN_CHECKED;

// The curves; in their own source file.
void tarn__report_curves(tarn__figures *figures, tarn__report *view);
void tarn__report_backskip(tarn__figures *figures, tarn__report *view);

#endif
