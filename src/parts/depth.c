#include "parts/depth.h"

#include <math.h>

tarn__deepnorm tarn__deepnorm_of(int64_t depth, int64_t other, bool attends) {
  const double own = (double)depth;
  if (other == 0) return (tarn__deepnorm){pow(2.0 * own, 0.25), pow(8.0 * own, -0.25)};
  if (attends) return (tarn__deepnorm){pow(3.0 * own, 0.25), pow(12.0 * own, -0.25)};
  const double both = pow(pow(own, 4.0) * (double)other, 1.0 / 16.0);
  return (tarn__deepnorm){0.81 * both, 0.87 / both};
}

double tarn__fixup_factor(int64_t branches, int products) {
  return pow((double)branches, -1.0 / (2.0 * products - 2.0));
}
