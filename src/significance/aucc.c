#include "significance/aucc.h"

double tarn__curve_area(const tarn_results_point *points, size_t count, double start, double limit) {
  double area = 0;
  double time = 0;
  double value = start;
  for (size_t i = 0; i < count; i++) {
    const tarn_results_point *p = &points[i];
    double width = p->seconds - time;
    if (p->seconds >= limit) {
      double share = width > 0 ? (limit - time) / width : 0;
      double end = (1 - share) * value + share * p->value;
      return area + (limit - time) * (value + end) / 2;
    }
    area += width * (value + p->value) / 2;
    time = p->seconds;
    value = p->value;
  }
  return area + (limit - time) * value;
}
