// Adam, squares and sums of the gradients of one parameter in plain C: in float, and in double if its values are F64
// (moments, sums and the stored copy are always fp32).
#ifndef TARN_DEVICE_REFERENCE_OPTIMISER_REF_H
#define TARN_DEVICE_REFERENCE_OPTIMISER_REF_H

#include "graph/param.h"
#include "optim/adam.h"

double tarn__squares_ref_f32(const tarn__param *param);
double tarn__squares_ref_f64(const tarn__param *param);
// `gradient_factor` multiplies the gradients, instead of factors->gradient.
void tarn__adam_ref_f32(const tarn__param *param, const tarn__adam_factors *factors, double gradient_factor);
void tarn__adam_ref_f64(const tarn__param *param, const tarn__adam_factors *factors, double gradient_factor);
void tarn__grad_sum_ref_f32(const tarn__param *param);
void tarn__grad_sum_ref_f64(const tarn__param *param);

#endif
