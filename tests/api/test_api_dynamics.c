// Models as dynamical systems, and the page about them: tarn/lab/dynamics.h, tarn/lab/dynamics.h.
#include <math.h>

#include "api_models.h"
#include "tarn/lab/dynamics.h"

static const char *const lines[] = {"w3 w7 w9 w4", "w5 w8 w3"};
static const size_t lengths[] = {11, 8};

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  api_translation("run");
  works(tiny_train("model.yaml", "kept", (const char *const[]){"train.save_every=1", "train.keep_last=2"}, 2, NULL,
                   NULL, NULL));
  api_no_models("run");
  api_texts();
  api_write("esn.yaml",
            "model: { d_model: 16, dropout: 0, positions: none }\ndecoder: { layers: E }\n"
            "kinds: { E: { mixer: esn, frozen: yes } }\ndata: { vocab: vocab }\n");
  return 0;
}

static tarn_dynamics_options few(void) {
  tarn_dynamics_options options;
  tarn_dynamics_default(&options);
  options.threads = 1, options.iterations = 4, options.exponents = 2, options.starts = 2;
  return options;
}

static tarn_dynamics *opened_with(tarn_dynamics_options options) {
  tarn_dynamics *dynamics;
  works(tarn_dynamics_open(&dynamics, "run", &options));
  return dynamics;
}

static tarn_dynamics *opened(void) {
  tarn_dynamics *dynamics = opened_with(few());
  works(tarn_dynamics_encode(dynamics, lines, lengths, 2));
  return dynamics;
}

static tarn_esn_options small(void) {
  tarn_esn_options options;
  tarn_esn_default(&options);
  options.units = 20, options.rc_connectivity = 0.5;
  return options;
}

static tarn_dynamics *opened_reservoir(void) {
  tarn_dynamics *dynamics;
  const tarn_esn_options reservoir = small();
  tarn_dynamics_options options = few();
  options.drive = TARN_DYNAMICS_DRIVE_FREE, options.iterations = 20;
  works(tarn_dynamics_open_reservoir(&dynamics, &reservoir, &options));
  return dynamics;
}

static tarn_dynamics_result *result_of(tarn_dynamics *dynamics) {
  tarn_dynamics_result *result;
  works(tarn_dynamics_run(dynamics, &result));
  return result;
}

static void use_tarn_dynamics_precision_name(void) {
  assert_string_equal(tarn_dynamics_precision_name(TARN_DYNAMICS_PRECISION_DOUBLE), "double");
  assert_null(tarn_dynamics_precision_name(TARN_DYNAMICS_PRECISION_COUNT));
}

static void use_tarn_dynamics_map_name(void) {
  assert_string_equal(tarn_dynamics_map_name(TARN_DYNAMICS_MAP_RECURRENCE), "recurrence");
  assert_null(tarn_dynamics_map_name((tarn_dynamics_map)-1));
}

static void use_tarn_dynamics_drive_name(void) {
  assert_string_equal(tarn_dynamics_drive_name(TARN_DYNAMICS_DRIVE_NOISE), "noise");
  assert_null(tarn_dynamics_drive_name(TARN_DYNAMICS_DRIVE_COUNT));
}

static void use_tarn_dynamics_settling_name(void) {
  assert_string_equal(tarn_dynamics_settling_name(TARN_DYNAMICS_SETTLING_FIXED_POINT), "fixed point");
  assert_null(tarn_dynamics_settling_name(TARN_DYNAMICS_SETTLING_COUNT));
}

static void use_tarn_dynamics_verdict_name(void) {
  assert_string_equal(tarn_dynamics_verdict_name(TARN_DYNAMICS_VERDICT_DRIFTING), "drifting");
  assert_null(tarn_dynamics_verdict_name((tarn_dynamics_verdict)-1));
}

static void use_tarn_dynamics_default(void) {
  tarn_dynamics_options options;
  tarn_dynamics_default(&options);
  assert_int_equal(options.precision, TARN_DYNAMICS_PRECISION_DOUBLE);
  assert_int_equal(options.exponents, 8);
  assert_int_equal(options.every, 1);
  assert_int_equal(options.discard, -1);
  assert_int_equal(options.kept, 64);
  assert_true(options.apart == 0.1 && options.max_memory == 1000000000);
}

// Changes one option for the worse; returns the words of its refusal, NULL when there are no more.
static const char *worsen(tarn_dynamics_options *o, int which) {
  static const char *const words[] = {"unknown precision, map or drive",
                                      "unknown precision, map or drive",
                                      "unknown precision, map or drive",
                                      "unknown kind of products",
                                      "in fp32 only",
                                      "iterations: -1",
                                      "exponents: 4097",
                                      "starts: 0",
                                      "QR factorisations: 0",
                                      "leave out: -2",
                                      "tolerance: -1",
                                      "longest period: 0",
                                      "second start: -1",
                                      "are kept: -1",
                                      "threads must be from 0 to 4096"};
  if (which >= (int)(sizeof words / sizeof *words)) return NULL;
  if (which == 0) o->precision = TARN_DYNAMICS_PRECISION_COUNT;
  if (which == 1) o->map = (tarn_dynamics_map)-1;
  if (which == 2) o->drive = TARN_DYNAMICS_DRIVE_COUNT;
  if (which == 3) o->products = TARN_FP32_COUNT;
  if (which == 4) o->products = (tarn_fp32)(TARN_FP32_COUNT - 1);
  if (which == 5) o->iterations = -1;
  if (which == 6) o->exponents = 4097;
  if (which == 7) o->starts = 0;
  if (which == 8) o->every = 0;
  if (which == 9) o->discard = -2;
  if (which == 10) o->tolerance = -1;
  if (which == 11) o->longest_period = 0;
  if (which == 12) o->apart = -1;
  if (which == 13) o->kept = -1;
  if (which == 14) o->threads = 4097;
  return words[which];
}

static void refuses_options(const char *path, tarn_dynamics_options options, const char *words) {
  tarn_dynamics *dynamics;
  refuses(tarn_dynamics_open(&dynamics, path, &options), TARN_STATUS_USAGE, words);
  assert_null(dynamics);
}

static void use_tarn_dynamics_open(void) {
  tarn_dynamics *dynamics = opened();
  tarn_dynamics_options options = few();
  tarn_dynamics_close(&dynamics);
  works(tarn_dynamics_open(&dynamics, "esn.yaml", &options));
  assert_false(tarn_dynamics_describe(dynamics)->trained);
  tarn_dynamics_close(&dynamics);
  refuses(tarn_dynamics_open(&dynamics, "missing", &options), TARN_STATUS_IO, "missing: ");
  assert_null(dynamics);
  refuses(tarn_dynamics_open(&dynamics, "missing.yaml", &options), TARN_STATUS_IO, "missing.yaml: ");
  refuses(tarn_dynamics_open(&dynamics, "garbage", &options), TARN_STATUS_DATA, "garbage: ");
  refuses(tarn_dynamics_open(&dynamics, "torn", &options), TARN_STATUS_DATA, "torn: ");
  refuses(tarn_dynamics_open(&dynamics, "folder", &options), TARN_STATUS_DATA, "folder: ");
  api_write("bad.yaml", "model: { d_mode: 16 }\n");
  refuses_options("bad.yaml", options, "d_mode");
  const char *words;
  for (int i = 0; options = few(), (words = worsen(&options, i)); i++) refuses_options("run", options, words);
  options = few();
  options.map = TARN_DYNAMICS_MAP_RECURRENCE;
  refuses_options("run", options, "there is no recurrence");
  options = few();
  options.first_layer = 1, options.last_layer = 9;
  refuses_options("run", options, "layers 1 to 9 cannot be iterated");
  options = few();
  options.map = TARN_DYNAMICS_MAP_PERIOD;
  refuses_options("esn.yaml", options, "repeats no layers");
  options = few();
  options.drive = TARN_DYNAMICS_DRIVE_FREE;
  refuses_options("run", options, "only a recurrence may be free");
  options.drive = TARN_DYNAMICS_DRIVE_NOISE;
  refuses_options("esn.yaml", options, "noise drives a reservoir");
}

static void use_tarn_dynamics_open_reservoir(void) {
  tarn_dynamics *dynamics = opened_reservoir();
  tarn_esn_options reservoir = small();
  tarn_dynamics_options options = few();
  tarn_dynamics_close(&dynamics);
  refuses(tarn_dynamics_open_reservoir(&dynamics, &reservoir, &options), TARN_STATUS_USAGE, "reads no text");
  assert_null(dynamics);
  options.drive = TARN_DYNAMICS_DRIVE_NOISE, options.map = TARN_DYNAMICS_MAP_LAYERS;
  refuses(tarn_dynamics_open_reservoir(&dynamics, &reservoir, &options), TARN_STATUS_USAGE, "its map is recurrence");
  options.map = TARN_DYNAMICS_MAP_AUTO, options.exponents = -1;
  refuses(tarn_dynamics_open_reservoir(&dynamics, &reservoir, &options), TARN_STATUS_USAGE, "exponents: -1");
  options.exponents = 2, reservoir.units = 0;
  refuses(tarn_dynamics_open_reservoir(&dynamics, &reservoir, &options), TARN_STATUS_USAGE, "units 0");
  reservoir.units = 20, reservoir.matrices = "missing";
  refuses(tarn_dynamics_open_reservoir(&dynamics, &reservoir, &options), TARN_STATUS_IO, "missing: ");
  assert_null(dynamics);
}

static void use_tarn_dynamics_close(void) {
  tarn_dynamics *dynamics = opened();
  tarn_dynamics_close(&dynamics);
  assert_null(dynamics);
  tarn_dynamics_close(&dynamics);
}

static void use_tarn_dynamics_describe(void) {
  tarn_dynamics *dynamics = opened();
  const tarn_dynamics_info *info = tarn_dynamics_describe(dynamics);
  assert_int_equal(info->map, TARN_DYNAMICS_MAP_PERIOD);
  assert_int_equal(info->layers, 2);
  assert_int_equal(info->width, 16);
  assert_true(info->trained && info->update == 2 && isnan(info->leak_rate));
  tarn_dynamics_close(&dynamics);
  dynamics = opened_reservoir();
  info = tarn_dynamics_describe(dynamics);
  assert_string_equal(info->path, "");
  assert_true(fabs(info->spectral_radius - 0.9) < 1e-6 && info->leak_rate == 1);
  tarn_dynamics_close(&dynamics);
}

static void use_tarn_dynamics_encode(void) {
  tarn_dynamics_options options = few();
  options.strict = true;
  tarn_dynamics *dynamics = opened_with(options), *alone = opened_reservoir();
  const char *const invalid = "w3 \xFF", *const overlong =
                                             "w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3";
  works(tarn_dynamics_encode(dynamics, lines, lengths, 2));
  refuses(tarn_dynamics_encode(dynamics, &invalid, (const size_t[]){4}, 1), TARN_STATUS_DATA, "line 1: invalid UTF-8");
  refuses(tarn_dynamics_encode(dynamics, &overlong, (const size_t[]){strlen(overlong)}, 1), TARN_STATUS_DATA,
          "line 1: 21 tokens, and the model takes 20");
  refuses(tarn_dynamics_encode(alone, lines, lengths, 2), TARN_STATUS_USAGE, "reads no text");
  tarn_dynamics_close(&dynamics);
  tarn_dynamics_close(&alone);
}

static void use_tarn_dynamics_encode_file(void) {
  tarn_dynamics *dynamics = opened(), *alone = opened_reservoir();
  works(tarn_dynamics_encode_file(dynamics, "full"));
  refuses(tarn_dynamics_encode_file(dynamics, "missing"), TARN_STATUS_IO, "missing: ");
  refuses(tarn_dynamics_encode_file(dynamics, "zero"), TARN_STATUS_DATA, "zero:2: ");
  refuses(tarn_dynamics_encode_file(dynamics, "long"), TARN_STATUS_DATA, "long:1: 25 tokens");
  refuses(tarn_dynamics_encode_file(alone, "full"), TARN_STATUS_USAGE, "reads no text");
  tarn_dynamics_close(&dynamics);
  tarn_dynamics_close(&alone);
}

static tarn_status stop_at_once(void *user, int64_t done, int64_t total) {
  (void)user;
  assert_true(done >= 1 && done <= total);
  return TARN_STATUS_INTERRUPTED;
}

static void use_tarn_dynamics_run(void) {
  tarn_dynamics *dynamics = opened();
  tarn_dynamics_result *result = result_of(dynamics);
  assert_int_equal(result->count, 2);
  assert_int_equal(result->sentences[0].tokens, 5);
  assert_int_equal(result->sentences[1].iterations, 4);
  assert_true(result->sentences[0].exponents[0] >= result->sentences[0].exponents[1]);
  tarn_dynamics_result_close(&result);
  works(tarn_dynamics_encode(dynamics, NULL, NULL, 0));
  refuses(tarn_dynamics_run(dynamics, &result), TARN_STATUS_USAGE, "there are no sentences");
  assert_null(result);
  tarn_dynamics_close(&dynamics);
  for (int i = 0; i < 5; i++) {
    static const char *const words[] = {"beyond its 2 layers", "90 exponents are asked for", "leave out 4 iterations",
                                        "MB are allowed", ""};
    tarn_dynamics_options options = few();
    if (i == 0) options.map = TARN_DYNAMICS_MAP_LAYERS;
    if (i == 1) options.exponents = 90;
    if (i == 2) options.discard = 4;
    if (i == 3) options.max_memory = 10;
    if (i == 4) options.progress = stop_at_once;
    dynamics = opened_with(options);
    works(tarn_dynamics_encode(dynamics, lines, lengths, 2));
    const tarn_status status = tarn_dynamics_run(dynamics, &result);
    if (i < 4) refuses(status, i == 3 ? TARN_STATUS_MEMORY : TARN_STATUS_USAGE, words[i]);
    if (i == 4) assert_int_equal(status, TARN_STATUS_INTERRUPTED);
    assert_null(result);
    tarn_dynamics_close(&dynamics);
  }
}

static void use_tarn_dynamics_result_close(void) {
  tarn_dynamics *dynamics = opened_reservoir();
  tarn_dynamics_result *result = result_of(dynamics);
  tarn_dynamics_close(&dynamics);
  assert_int_equal(result->count, 2);  // it owns all that it points to
  assert_true(isfinite(result->sentences[1].exponents[0]));
  tarn_dynamics_result_close(&result);
  assert_null(result);
  tarn_dynamics_result_close(&result);
}

static void use_tarn_dynamics_checkpoints_find(void) {
  tarn_dynamics_checkpoints found;
  works(tarn_dynamics_checkpoints_find(&found, "kept"));
  assert_true(found.count >= 1 && found.updates[0] == 1);
  tarn_dynamics_checkpoints_close(&found);
  refuses(tarn_dynamics_checkpoints_find(&found, "garbage"), TARN_STATUS_USAGE, "garbage");
  assert_true(found.count == 0 && !found.paths && !found.updates);
  refuses(tarn_dynamics_checkpoints_find(&found, "missing"), TARN_STATUS_IO, "missing: cannot read");
  refuses(tarn_dynamics_checkpoints_find(&found, "folder"), TARN_STATUS_DATA, "no numbered checkpoints");
  assert_null(found.paths);
}

static void use_tarn_dynamics_checkpoints_close(void) {
  tarn_dynamics_checkpoints found = {0};
  tarn_dynamics_checkpoints_close(&found);
  works(tarn_dynamics_checkpoints_find(&found, "kept"));
  tarn_dynamics_checkpoints_close(&found);
  assert_true(found.count == 0 && !found.paths && !found.updates);
  tarn_dynamics_checkpoints_close(&found);
}

static void use_tarn_dynamics_scan_default(void) {
  tarn_dynamics_scan_options options;
  tarn_dynamics_scan_default(&options);
  assert_true(!options.spectral_radii && !options.leak_rates);
  assert_int_equal(options.delays, 0);
  assert_int_equal(options.samples, 2000);
  assert_true(options.ridge == 1e-8 && options.input_scaling == 0.1);
}

static const double radii[] = {0.5, 1.2}, too_large[] = {0.5, 1001}, zero[] = {0};

static void quick(tarn_dynamics_scan_options *options) {
  tarn_dynamics_scan_default(options);
  options->spectral_radii = radii, options->radius_count = 2;
  options->delays = 3, options->samples = 100;
}

static void use_tarn_dynamics_scan_run(void) {
  tarn_dynamics *dynamics = opened_reservoir();
  tarn_dynamics_scan *scan;
  tarn_dynamics_scan_options options;
  quick(&options);
  works(tarn_dynamics_scan_run(dynamics, &scan, &options));
  assert_int_equal(scan->count, 2);
  assert_true(scan->points[1].spectral_radius == 1.2 && scan->points[0].memory_capacity > 0.5);
  tarn_dynamics_scan_close(&scan);
  for (int i = 0; i < 8; i++) {
    static const char *const words[] = {"there are none", "1001 is not at least 0", "0 is not above 0",
                                        "largest delay",  "largest delay",          "samples are 100",
                                        "ridge is",       "input_scaling is"};
    quick(&options);
    if (i == 0) options.radius_count = 0;
    if (i == 1) options.spectral_radii = too_large;
    if (i == 2) options.leak_rates = zero, options.leak_count = 1;
    if (i == 3) options.delays = -2;
    if (i == 4) options.delays = 10001;
    if (i == 5) options.samples = 99;
    if (i == 6) options.ridge = NAN;
    if (i == 7) options.input_scaling = 0;
    refuses(tarn_dynamics_scan_run(dynamics, &scan, &options), TARN_STATUS_USAGE, words[i]);
    assert_null(scan);
  }
  tarn_dynamics_close(&dynamics);
  dynamics = opened();
  quick(&options);
  refuses(tarn_dynamics_scan_run(dynamics, &scan, &options), TARN_STATUS_USAGE, "only an echo state network");
  tarn_dynamics_close(&dynamics);
  tarn_esn_options still = small();
  tarn_dynamics_options free_of_input = few();
  still.sr = 0, free_of_input.drive = TARN_DYNAMICS_DRIVE_FREE;
  works(tarn_dynamics_open_reservoir(&dynamics, &still, &free_of_input));
  refuses(tarn_dynamics_scan_run(dynamics, &scan, &options), TARN_STATUS_NUMERIC, "cannot be scaled");
  assert_null(scan);
  tarn_dynamics_close(&dynamics);
}

static void use_tarn_dynamics_scan_close(void) {
  tarn_dynamics *dynamics = opened_reservoir();
  tarn_dynamics_scan *scan;
  tarn_dynamics_scan_options options;
  quick(&options);
  options.delays = -1;
  works(tarn_dynamics_scan_run(dynamics, &scan, &options));
  assert_null(scan->capacities);
  tarn_dynamics_scan_close(&scan);
  assert_null(scan);
  tarn_dynamics_scan_close(&scan);
  tarn_dynamics_close(&dynamics);
}

static void use_tarn_dynamics_summarise(void) {
  tarn_dynamics *dynamics = opened();
  tarn_dynamics_result *result = result_of(dynamics);
  tarn_dynamics_summary summary;
  works(tarn_dynamics_summarise(&summary, result));
  assert_int_equal(summary.sentences, 2);
  assert_int_equal(summary.exponent.count + summary.vanished, 2);
  assert_true(summary.participation.mean >= 1);
  tarn_dynamics_result_close(&result);
  tarn_dynamics_close(&dynamics);
  const tarn_dynamics_result none = {.count = 0}, endless = {.count = (int64_t)1 << 58};
  works(tarn_dynamics_summarise(&summary, &none));
  assert_true(summary.exponent.count == 0 && isnan(summary.exponent.mean));
  refuses(tarn_dynamics_summarise(&summary, &endless), TARN_STATUS_MEMORY, "out of memory");
}

static void use_tarn_dynamics_follow(void) {
  tarn_train_options options;
  tarn_train_default(&options);
  assert_null(options.dynamics);
  tarn_dynamics_follow(&options);
  assert_true(options.dynamics && options.dynamics->open && options.dynamics->compute && options.dynamics->close);
}

static void use_tarn_dynamics_check(void) {
  const char *overrides[] = {"dynamics={input: lines, iterations: 4}", "dynamics.map=auto"};
  tarn_config *config;
  works(tarn_config_read(&config, "tiny.yaml", NULL, 0));
  works(tarn_dynamics_check(config));  // asks for nothing
  tarn_config_close(&config);
  sandbox_write("lines", "w3 w4\n", 6);
  works(tarn_config_read(&config, "tiny.yaml", overrides, 2));
  works(tarn_dynamics_check(config));
  tarn_config_close(&config);
  overrides[1] = "dynamics.map=recurrence";
  works(tarn_config_read(&config, "tiny.yaml", overrides, 2));
  refuses(tarn_dynamics_check(config), TARN_STATUS_USAGE, "dynamics: tiny.yaml: no layer");
  tarn_config_close(&config);
}

static void use_tarn_dynamics_report_default(void) {
  tarn_dynamics_report_options options;
  tarn_dynamics_report_default(&options);
  assert_true(!options.output && !options.title && !options.models && options.model_count == 0 && !options.scan);
}

static void use_tarn_dynamics_report_write(void) {
  tarn_dynamics *dynamics = opened();
  tarn_dynamics_result *result = result_of(dynamics);
  const tarn_dynamics_model model = {"trained", tarn_dynamics_describe(dynamics), result};
  tarn_dynamics_report_options options;
  tarn_dynamics_report_default(&options);
  options.output = "report/of/it", options.models = &model, options.model_count = 1;
  works(tarn_dynamics_report_write(&options));
  struct stat info;
  assert_int_equal(stat("report/of/it/dynamics.html", &info), 0);
  assert_int_equal(stat("report/of/it/training.csv", &info), -1);
  options.output = NULL;
  refuses(tarn_dynamics_report_write(&options), TARN_STATUS_USAGE, "the folder of the report is missing");
  options.output = "";
  refuses(tarn_dynamics_report_write(&options), TARN_STATUS_USAGE, "the folder of the report is missing");
  options.output = "garbage";
  refuses(tarn_dynamics_report_write(&options), TARN_STATUS_IO, "garbage");
  options.output = "report", options.model_count = 0;
  refuses(tarn_dynamics_report_write(&options), TARN_STATUS_USAGE, "no model to report");
  tarn_dynamics_result_close(&result);
  tarn_dynamics_close(&dynamics);
}

int main(void) {
  static const char *const headers[] = {"lab/dynamics.h", NULL};
  static const api_use uses[] = {USE(tarn_dynamics_precision_name),
                                 USE(tarn_dynamics_map_name),
                                 USE(tarn_dynamics_drive_name),
                                 USE(tarn_dynamics_settling_name),
                                 USE(tarn_dynamics_verdict_name),
                                 USE(tarn_dynamics_default),
                                 USE(tarn_dynamics_open),
                                 USE(tarn_dynamics_open_reservoir),
                                 USE(tarn_dynamics_close),
                                 USE(tarn_dynamics_describe),
                                 USE(tarn_dynamics_encode),
                                 USE(tarn_dynamics_encode_file),
                                 USE(tarn_dynamics_run),
                                 USE(tarn_dynamics_result_close),
                                 USE(tarn_dynamics_checkpoints_find),
                                 USE(tarn_dynamics_checkpoints_close),
                                 USE(tarn_dynamics_scan_default),
                                 USE(tarn_dynamics_scan_run),
                                 USE(tarn_dynamics_scan_close),
                                 USE(tarn_dynamics_summarise),
                                 USE(tarn_dynamics_follow),
                                 USE(tarn_dynamics_check),
                                 USE(tarn_dynamics_report_default),
                                 USE(tarn_dynamics_report_write)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
