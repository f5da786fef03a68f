#include "graph/profile.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

tarn_status tarn_profile_open(tarn_profile **profile, int64_t traced) {
  *profile = NULL;
  TARN_REQUIRE(traced >= 0, USAGE, "a trace shows 0 or more updates, not %lld", (long long)traced);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_profile)));
  tarn_profile *p = memory;
  for (int b = 0; b < TARN__PROFILE_BUCKETS; b++) p->buckets[b] = -1;
  p->traced = traced;
  p->unit = "";
  *profile = p;
  return TARN_STATUS_OK;
}

void tarn_profile_close(tarn_profile **profile) {
  tarn_profile *p = *profile;
  if (!p) return;
  tarn__arena_close(&p->arena);
  tarn__free(p->entries);
  tarn__free(p->events);
  tarn__free(p->rows);
  tarn__free(p);
  *profile = NULL;
}

double tarn__profile_clock(const tarn_profile *profile) { return profile ? tarn__seconds() : 0.0; }

void tarn__profile_start(tarn_profile *profile) {
  if (profile) profile->started = tarn__seconds();
}

void tarn__profile_stop(tarn_profile *profile) {
  if (!profile) return;
  profile->seconds += tarn__seconds() - profile->started;
  profile->leaving_out = false;
}

void tarn__profile_leave_out(tarn_profile *profile) {
  if (!profile) return;
  profile->leaving_out = true;
  profile->leaving_since = tarn__seconds();
}

// The end of a unit that is left out: as if its time had not been.
static void end_leaving_out(tarn_profile *p) {
  const double seconds = tarn__seconds() - p->leaving_since;
  p->leaving_out = false;
  p->started += seconds;
  p->left_out_seconds += seconds;
  p->left_out++;
}

static uint32_t mix(uint32_t h, const char *text) {
  for (; *text; text++) h = (h ^ (uint8_t)*text) * 16777619u;  // FNV-1a
  return h;
}

// Finds or creates the entry. Names are compared and copied, because a profile may outlive models.
static tarn_status find_entry(tarn_profile *p, int *found, const char *op, const char *label, tarn_profile_pass pass,
                              bool counted) {
  uint32_t h = mix(mix(2166136261u + (uint32_t)pass, op) ^ '/', label);
  int *bucket = &p->buckets[(h ^ h >> 15) % TARN__PROFILE_BUCKETS];
  for (int i = *bucket; i >= 0; i = p->entries[i].next) {
    const tarn__profile_entry *e = &p->entries[i];
    if (e->pass != pass || e->counted != counted || strcmp(e->op, op) != 0 || strcmp(e->label, label) != 0) continue;
    *found = i;
    return TARN_STATUS_OK;
  }
  tarn__profile_entry fresh = {.pass = pass, .counted = counted, .next = *bucket};
  char *copy;
  TARN_TRY(tarn__arena_strdup(&p->arena, &copy, op));
  fresh.op = copy;
  TARN_TRY(tarn__arena_strdup(&p->arena, &copy, label));
  fresh.label = copy;
  TARN_TRY(tarn__grow(&p->entries, &p->entry_capacity, p->entry_count + 1, sizeof *p->entries));
  p->entries[p->entry_count] = fresh;
  *found = *bucket = (int)p->entry_count++;
  return TARN_STATUS_OK;
}

static tarn_status add_event(tarn_profile *p, tarn__profile_event event) {
  if (p->units + p->left_out >= p->traced || p->event_count >= TARN__PROFILE_EVENTS) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&p->events, &p->event_capacity, p->event_count + 1, sizeof *p->events));
  p->events[p->event_count++] = event;
  return TARN_STATUS_OK;
}

// The fastest rate at which a working set of that size can be read and written; 0: unknown.
static double rate_of(const tarn__device_peaks *peaks, double bytes) {
  for (int set = 0; set < TARN__PEAK_SETS; set++)
    if (bytes < (double)((int64_t)1 << (20 + 2 * set)))
      return peaks->cached[set] > peaks->bytes ? peaks->cached[set] : peaks->bytes;
  return peaks->bytes;
}

// `peak`: of the operations; 0 if unknown.
static tarn_status record(tarn_profile *p, int entry, tarn__profile_event event, double peak) {
  tarn__profile_entry *e = &p->entries[entry];
  event.entry = entry;
  event.lane = TARN__PROFILE_MAIN;
  if (p->leaving_out) return add_event(p, event);
  e->calls++;
  e->seconds += event.end - event.begin;
  e->flops += event.flops;
  e->bytes += event.bytes;
  const double rate = rate_of(&p->peaks, event.bytes);
  const double arithmetic = peak > 0 ? event.flops / peak : 0, traffic = rate > 0 ? event.bytes / rate : 0;
  e->flops_seconds += arithmetic;
  e->bytes_seconds += traffic;
  e->floor += arithmetic > traffic ? arithmetic : traffic;
  return add_event(p, event);
}

tarn_status tarn__profile_peaks(tarn_profile *profile, const tarn__device *device, int threads) {
  if (!profile) return TARN_STATUS_OK;
  profile->device = device;
  profile->threads = threads;
  if (profile->peaks_known || !device->type->peaks) return TARN_STATUS_OK;
  TARN_TRY(device->type->peaks(device, &profile->peaks, threads));
  profile->peaks_known = true;
  return TARN_STATUS_OK;
}

// The peak rate of the type that a node computes in: that of its first non-integer input. Each fp32 product with split
// weights (node->fp32) takes six or three bf16 products, and in TF32 the time of two. The peak of products of integers
// is not measured.
static double peak_of(const tarn_profile *p, const tarn__node *node) {
  double peak = 0.0;
  tarn__dtype dtype = TARN__I32;
  bool weighs = node->dparam[0] != NULL;
  for (int i = TARN__MAX_INPUTS - 1; i >= 0; i--) {
    const tarn__tensor *in = node->in[i];
    if (in && in->param && in->param->decoding.rounding != TARN__ROUNDING_NONE) return 0.0;
    weighs |= in && in->param;
    if (!in || in->dtype == TARN__I32) continue;
    dtype = in->dtype;
    peak = p->peaks.flops[dtype];
  }
  if (!weighs || dtype != TARN__F32 || node->fp32 == TARN__FP32_EXACT) return peak;
  static const double products[] = {[TARN__FP32_SPLIT6] = 6, [TARN__FP32_SPLIT3] = 3, [TARN__FP32_TF32] = 2};
  return p->peaks.flops[TARN__BF16] / products[node->fp32];
}

tarn_status tarn__profile_node(tarn_profile *profile, const tarn__node *node, bool backward, double begin,
                               double bytes) {
  double end = tarn__profile_clock(profile);
  if (!profile) return TARN_STATUS_OK;
  const tarn__op *op = node->op;
  double flops = op->flops ? op->flops(node) : 0.0;
  double gradient = op->gradient_flops ? op->gradient_flops(node) : 0.0;
  tarn_profile_pass pass = backward ? TARN_PROFILE_BACKWARD : gradient > 0 ? TARN_PROFILE_BOTH : TARN_PROFILE_FORWARD;
  int entry;
  TARN_TRY(find_entry(profile, &entry, op->name, node->label ? node->label : "", pass, true));
  const tarn__profile_event event = {.begin = begin, .end = end, .flops = flops + gradient, .bytes = bytes};
  return record(profile, entry, event, peak_of(profile, node));
}

tarn_status tarn__profile_work(tarn_profile *profile, const char *what, double begin) {
  return tarn__profile_moving(profile, what, begin, 0.0);
}

tarn_status tarn__profile_moving(tarn_profile *profile, const char *what, double begin, double bytes) {
  double end = tarn__profile_clock(profile);
  if (!profile) return TARN_STATUS_OK;
  int entry;
  TARN_TRY(find_entry(profile, &entry, what, "", TARN_PROFILE_OUTSIDE, true));
  return record(profile, entry, (tarn__profile_event){.begin = begin, .end = end, .bytes = bytes}, 0.0);
}

// What the machine gives at the moment, as if its time had not been: on a processor that other programs or other
// virtual machines use as well, that changes within seconds.
static void sample(tarn_profile *p) {
  const double begin = tarn__seconds();
  if (!p->device || !p->device->type->flops_now || begin - p->sample_end < TARN__PROFILE_SAMPLE_SECONDS) return;
  p->sampled += p->device->type->flops_now(p->device, p->threads);
  p->samples++;
  p->sample_end = tarn__seconds();
  p->started += p->sample_end - begin;
}

tarn_status tarn__profile_unit(tarn_profile *profile, const char *what, double begin) {
  if (!profile) return TARN_STATUS_OK;
  int entry;
  TARN_TRY(find_entry(profile, &entry, what, "", TARN_PROFILE_OUTSIDE, false));
  const double end = tarn__seconds();
  TARN_TRY(record(profile, entry, (tarn__profile_event){.begin = begin, .end = end}, 0.0));
  profile->unit = what;
  if (profile->leaving_out) {
    end_leaving_out(profile);
    return TARN_STATUS_OK;
  }
  profile->unit_seconds += end - begin;
  profile->units++;
  sample(profile);
  return TARN_STATUS_OK;
}

tarn_status tarn__profile_beside(tarn_profile *profile, const char *what, double begin, double end) {
  if (!profile) return TARN_STATUS_OK;
  int entry;
  TARN_TRY(find_entry(profile, &entry, what, "", TARN_PROFILE_OUTSIDE, false));
  return add_event(profile, (tarn__profile_event){entry, TARN__PROFILE_BATCHES, begin, end, 0.0, 0.0});
}

// The label of a layer without its number: "encoder 3 R" belongs to the part "encoder R".
static tarn_status part_of(tarn_profile *p, const char **part, const char *label) {
  char *copy;
  TARN_TRY(tarn__arena_strdup(&p->arena, &copy, label));
  *part = copy;
  char *number = strchr(copy, ' ');
  if (!number) return TARN_STATUS_OK;
  char *end = ++number;
  while (isdigit((unsigned char)*end)) end++;
  if (end > number && *end == ' ') memmove(number, end + 1, strlen(end + 1) + 1);
  return TARN_STATUS_OK;
}

static tarn_status add_row(tarn_profile *p, const tarn_profile_row *row) {
  for (size_t i = 0; i < p->row_count; i++) {
    tarn_profile_row *same = &p->rows[i];
    if (same->pass != row->pass || strcmp(same->op, row->op) != 0 || strcmp(same->part, row->part) != 0) continue;
    same->calls += row->calls;
    same->seconds += row->seconds;
    same->flops += row->flops;
    same->bytes += row->bytes;
    same->flops_seconds += row->flops_seconds;
    same->bytes_seconds += row->bytes_seconds;
    same->floor_seconds += row->floor_seconds;
    return TARN_STATUS_OK;
  }
  TARN_TRY(tarn__grow(&p->rows, &p->row_capacity, p->row_count + 1, sizeof *p->rows));
  p->rows[p->row_count++] = *row;
  return TARN_STATUS_OK;
}

static int slower_first(const void *a, const void *b) {
  const tarn_profile_row *x = a;
  const tarn_profile_row *y = b;
  return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static double available(const tarn_profile *p) {
  const double peak = p->peaks.flops[TARN__F32];
  return p->samples > 0 && peak > 0 ? p->sampled / (double)p->samples / peak : 0.0;
}

tarn_status tarn_profile_sum(tarn_profile *profile, tarn_profile_summary *summary) {
  double known = 0.0, limit = 0.0;
  profile->row_count = 0;
  for (size_t i = 0; i < profile->entry_count; i++) {
    const tarn__profile_entry *e = &profile->entries[i];
    if (!e->counted || e->calls == 0) continue;
    tarn_profile_row row = {.op = e->op,
                            .pass = e->pass,
                            .calls = e->calls,
                            .seconds = e->seconds,
                            .flops = e->flops,
                            .bytes = e->bytes,
                            .flops_seconds = e->flops_seconds,
                            .bytes_seconds = e->bytes_seconds,
                            .floor_seconds = e->floor};
    TARN_TRY(part_of(profile, &row.part, e->label));
    TARN_TRY(add_row(profile, &row));
    known += e->seconds;
    limit += e->floor;
  }
  tarn_profile_row other = {.op = "other", .part = "", .pass = TARN_PROFILE_OUTSIDE};
  other.seconds = profile->seconds > known ? profile->seconds - known : 0.0;
  TARN_TRY(add_row(profile, &other));
  qsort(profile->rows, profile->row_count, sizeof *profile->rows, slower_first);
  const tarn__device_peaks *peaks = &profile->peaks;
  *summary = (tarn_profile_summary){.rows = profile->rows,
                                    .count = profile->row_count,
                                    .seconds = profile->seconds,
                                    .unit_seconds = profile->unit_seconds,
                                    .floor_seconds = limit,
                                    .units = profile->units,
                                    .unit = profile->unit,
                                    .left_out = profile->left_out,
                                    .left_out_seconds = profile->left_out_seconds,
                                    .available = available(profile),
                                    .peaks = {.fp32_flops = peaks->flops[TARN__F32],
                                              .bf16_flops = peaks->flops[TARN__BF16],
                                              .bytes = peaks->bytes,
                                              .cached_bytes = peaks->cached[0]}};
  return TARN_STATUS_OK;
}
