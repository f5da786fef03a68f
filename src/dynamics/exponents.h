// Conclusions from the local exponents of a sentence.
#ifndef TARN_DYNAMICS_EXPONENTS_H
#define TARN_DYNAMICS_EXPONENTS_H

#include "tarn/lab/dynamics.h"

// Fills in finite_time, exponents, counted, kaplan_yorke, state_growth, growth, expansion_end and verdict of a sentence
// with `local` [iterations, k], `norm` and `diverged`; the exponents leave out the first `discard` iterations.
void tarn__exponents_judge(tarn_dynamics_sentence *sentence, int64_t k, int64_t discard);

// The Kaplan-Yorke dimension of k exponents in descending order, of `dimensions` in all; *least: it may be more.
double tarn__kaplan_yorke(const double *exponents, int64_t k, int64_t dimensions, bool *least);

#endif
