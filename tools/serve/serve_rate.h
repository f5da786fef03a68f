// Limits how often something may happen, by a bucket of permissions that fills steadily (token bucket; Turner 1986).
#ifndef TARN_TOOLS_SERVE_RATE_H
#define TARN_TOOLS_SERVE_RATE_H

// Zero-initialise.
typedef struct serve_rate {
  double used, since;  // permissions taken and not yet replaced at this time, in seconds
} serve_rate;

// Takes a permission at time `now`, of which there are `per_minute` > 0 a minute, and as many at once, but at least
// one. Returns 0, or the seconds until there is one again, which may be infinite.
double serve_rate_take(serve_rate *rate, double per_minute, double now);

#endif
