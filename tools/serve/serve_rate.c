#include "serve/serve_rate.h"

double serve_rate_take(serve_rate *rate, double per_minute, double now) {
  const double per_second = per_minute / 60.0, most = per_minute > 1.0 ? per_minute : 1.0;
  rate->used -= (now - rate->since) * per_second;
  if (rate->used < 0.0) rate->used = 0.0;
  rate->since = now;
  if (rate->used + 1.0 > most + 1e-9) return (rate->used + 1.0 - most) / per_second;
  rate->used += 1.0;
  return 0.0;
}
