// The report on models as dynamical systems, shared by the files of its parts. It uses the tables, charts and pages of
// src/report.
#ifndef TARN_DYNAMICS_DYNAMICS_PAGE_H
#define TARN_DYNAMICS_DYNAMICS_PAGE_H

#include "report/report_figures.h"
#include "report/report_table.h"
#include "tarn/lab/dynamics.h"

enum {
  TARN__DYNAMICS_MODELS,
  TARN__DYNAMICS_MEDIANS,    // over sentences
  TARN__DYNAMICS_SENTENCES,  // a row each
  TARN__DYNAMICS_TRAINING,
  TARN__DYNAMICS_RADII,
  TARN__DYNAMICS_TABLES
};

typedef struct tarn__dynamics_page {
  tarn__report view;  // texts, title and origin, without results of trainings
  const tarn_dynamics_report_options *options;
  tarn_dynamics_summary *summaries;           // [model_count]
  tarn__table tables[TARN__DYNAMICS_TABLES];  // without rows: not shown
  tarn__figures figures;
} tarn__dynamics_page;

// The label of a model in charts.
tarn__chart_label tarn__dynamics_label(tarn__dynamics_page *page, size_t model);

// Draws all figures for which there are numbers.
tarn_status tarn__dynamics_figures(tarn__dynamics_page *page) TARN_CHECKED;
tarn_status tarn__dynamics_tables(tarn__dynamics_page *page) TARN_CHECKED;

void tarn__dynamics_sentences_csv(tarn__buffer *out, const tarn__dynamics_page *page);
void tarn__dynamics_iterations_csv(tarn__buffer *out, const tarn__dynamics_page *page);
void tarn__dynamics_training_csv(tarn__buffer *out, const tarn__dynamics_page *page);
void tarn__dynamics_radii_csv(tarn__buffer *out, const tarn__dynamics_page *page);

#endif
