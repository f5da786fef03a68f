// What is decided, in words that say no more than the verdicts.
#include <math.h>
#include <string.h>

#include "advice/advice_memory.h"
#include "run/run_file.h"

enum { MOST_LINES = 8, LONGER = 2 };  // lines; times as long as another training

typedef struct writing {
  struct tarn__advice_memory *m;
  const char **lines;
  size_t count;
} writing;

static tarn_status open_lines(writing *w, struct tarn__advice_memory *m) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, MOST_LINES, sizeof(char *)));
  *w = (writing){.m = m, .lines = memory};
  return TARN_STATUS_OK;
}

// Takes the text of the buffer, which is closed, as a line, unless it is empty.
static tarn_status add_line(writing *w, tarn__buffer *text) {
  TARN_TRY(tarn__advice_keep(&w->lines[w->count], w->m, text));
  w->count += w->lines[w->count] != NULL;
  return TARN_STATUS_OK;
}

static tarn_status distant_depth(writing *w, int32_t layers, int32_t other, const char *name) {
  tarn__buffer text = {0};
  if (layers != other)
    tarn__buffer_format(&text, "%s of %d layer%s, not %d", name, layers, layers == 1 ? "" : "s", other);
  return add_line(w, &text);
}

// Verdicts of short trainings favour what learns fast. A limit in minutes is that of a machine.
static tarn_status distant_length(writing *w, const tarn_config_train *train, const tarn_advice_record *record) {
  const bool epochs = train->max_epochs > 0;
  const double own = (double)(epochs ? train->max_epochs : train->max_updates);
  const double other = epochs ? record->epochs : record->updates;
  tarn__buffer text = {0};
  if (own > 0 && other > 0 && (own > LONGER * other || other > LONGER * own))
    tarn__buffer_format(&text, "trained for up to %.0f %s, not %.*f", own, epochs ? "epochs" : "updates", epochs,
                        other);
  return add_line(w, &text);
}

tarn_status tarn__advice_distance(tarn_advice_record *record, struct tarn__advice_memory *m, const char *data_hash) {
  const tarn_advice_model *own = &m->public.model, *other = &record->model;
  writing w;
  tarn__buffer text = {0};
  TARN_TRY(open_lines(&w, m));
  if (own->d_model != other->d_model)
    tarn__buffer_format(&text, "d_model %lld, not %lld", (long long)own->d_model, (long long)other->d_model);
  TARN_TRY(add_line(&w, &text));
  TARN_TRY(distant_depth(&w, own->encoder_layers, other->encoder_layers, "encoder"));
  TARN_TRY(distant_depth(&w, own->decoder_layers, other->decoder_layers, "decoder"));
  if (strcmp(own->norm, other->norm) != 0) tarn__buffer_format(&text, "norm %s, not %s", own->norm, other->norm);
  TARN_TRY(add_line(&w, &text));
  if (!*m->data || !data_hash)
    tarn__buffer_format(&text, "text not compared, because %s",
                        *m->data ? "the record does not identify its own" : "yours was not read");
  else if (!tarn__hash_same(m->data, data_hash))
    tarn__buffer_add(&text, "another text");
  TARN_TRY(add_line(&w, &text));
  TARN_TRY(distant_length(&w, &m->config->train, record));
  record->distant = w.lines;
  record->distant_count = w.count;
  return TARN_STATUS_OK;
}

// --- the recommendation

static bool is_good(const tarn_advice_form *f) {
  return f->decision == TARN_ADVICE_BETTER || f->decision == TARN_ADVICE_EQUIVALENT;
}

// Good forms that freeze and change nothing else; good forms that leave layers out, whatever else they change: against
// freezing even these count.
static bool is_choice(const tarn_advice_form *f, bool freezes) {
  return f->freezes == freezes && is_good(f) && (!freezes || !f->also);
}

// Whether nothing but what is frozen or left out differs from the baseline.
static bool is_pure(const tarn_advice_form *f) { return !f->also && !f->equalized; }

static void choose(tarn_advice_record *record) {
  record->fewest = record->fastest = record->shallower = record->form_count;
  for (size_t i = 0; i < record->form_count && !record->baseline_freezes; i++) {
    const tarn_advice_form *f = &record->forms[i];
    if (is_choice(f, true) && !isnan(f->trained_share) &&
        (record->fewest == record->form_count || f->trained_share < record->forms[record->fewest].trained_share))
      record->fewest = i;
    if (is_choice(f, true) && !isnan(f->update_share) &&
        (record->fastest == record->form_count || f->update_share < record->forms[record->fastest].update_share))
      record->fastest = i;
    const tarn_advice_form *best = &record->forms[record->shallower];  // read only if there is one
    if (is_choice(f, false) && (record->shallower == record->form_count || (is_pure(f) && !is_pure(best)) ||
                                (is_pure(f) == is_pure(best) && f->trained_parameters < best->trained_parameters)))
      record->shallower = i;
  }
}

static void add_shares(tarn__buffer *out, const tarn_advice_form *f) {
  if (!isnan(f->trained_share)) tarn__buffer_format(out, ", %.2f of the trained parameters", f->trained_share);
  if (!isnan(f->update_share)) tarn__buffer_format(out, ", %.2f of the time of an update", f->update_share);
}

static tarn_status say_left_out(writing *w, const tarn_advice_record *record) {
  tarn__buffer text = {0};
  if (record->shallower < record->form_count) {
    const tarn_advice_form *f = &record->forms[record->shallower];
    tarn__buffer_format(&text, "%s: %s (%s), %s",
                        is_pure(f) ? "leaving layers out is decided as good, and it is simpler than freezing"
                                   : "a shallower model that differs in more than that is decided as good, without "
                                     "freezing anything",
                        f->variant, f->what, f->words);
    add_shares(&text, f);
    if (f->also) tarn__buffer_format(&text, "; it also changes %s", f->also);
    if (f->equalized) tarn__buffer_format(&text, "; to be equal in size: %s", f->equalized);
  }
  return add_line(w, &text);
}

// The words before the form with the fewest trained parameters (i 0) or the fastest update (1).
static void begin_frozen(tarn__buffer *text, const tarn_advice_record *record, int i) {
  static const char *const why[] = {"with the fewest trained parameters", "with the fastest update"};
  const bool both = record->fewest == record->fastest;
  size_t choices = 0;
  for (size_t k = 0; k < record->form_count; k++) choices += is_choice(&record->forms[k], true);
  if (choices == 1)
    tarn__buffer_add(text, "one form of freezing is decided as good: ");
  else
    tarn__buffer_format(text, "of the forms of freezing decided as good, the one %s%s%s: ", why[i], both ? " and " : "",
                        both ? why[1] : "");
}

static tarn_status say_frozen(writing *w, const tarn_advice_record *record) {
  const size_t none = record->form_count;
  const size_t indices[] = {record->fewest, record->fastest};
  for (int i = 0; i < 2; i++) {
    tarn__buffer text = {0};
    if (indices[i] < none && !(i == 1 && record->fewest == record->fastest)) {
      const tarn_advice_form *f = &record->forms[indices[i]];
      begin_frozen(&text, record, i);
      tarn__buffer_format(&text, "%s (%s), %s", f->variant, f->what, f->words);
      add_shares(&text, f);
      if (record->shallower < none)
        tarn__buffer_format(&text, "; it was compared with %s only, not with %s", record->baseline,
                            record->forms[record->shallower].variant);
      if (f->equalized) tarn__buffer_format(&text, "; to be equal in size: %s", f->equalized);
    }
    TARN_TRY(add_line(w, &text));
  }
  return TARN_STATUS_OK;
}

// "WORDS: NAME, NAME", of the forms that `wanted` takes.
static tarn_status say_names(writing *w, const tarn_advice_record *record, const char *words,
                             bool (*wanted)(const tarn_advice_form *)) {
  tarn__buffer text = {0};
  for (size_t i = 0; i < record->form_count; i++)
    if (wanted(&record->forms[i]))
      tarn__buffer_format(&text, "%s%s", text.used ? ", " : words, record->forms[i].variant);
  return add_line(w, &text);
}

static bool is_mixed(const tarn_advice_form *f) { return is_good(f) && f->freezes && f->also; }
static bool is_worse(const tarn_advice_form *f) { return f->decision == TARN_ADVICE_WORSE; }
static bool is_undecided(const tarn_advice_form *f) { return f->decision == TARN_ADVICE_UNDECIDED; }

static tarn_status say_nothing(writing *w, const tarn_advice_record *record) {
  tarn__buffer text = {0};
  bool decided = false;
  for (size_t i = 0; i < record->form_count; i++) decided |= !is_undecided(&record->forms[i]);
  if (record->form_count == 0)
    tarn__buffer_add(&text, "nothing is recommended: no finished variant freezes anything or leaves layers out");
  else if (!decided)
    tarn__buffer_add(&text, "nothing is recommended: nothing is decided yet");
  else
    tarn__buffer_add(&text,
                     "nothing is recommended: no form that freezes, and nothing else, is decided as good, and "
                     "none that leaves layers out");
  return add_line(w, &text);
}

tarn_status tarn__advice_recommend(tarn_advice_record *record, struct tarn__advice_memory *m) {
  writing w;
  TARN_TRY(open_lines(&w, m));
  choose(record);
  if (record->baseline_freezes) {
    tarn__buffer text = {0};
    tarn__buffer_format(&text,
                        "nothing is recommended: the baseline %s freezes something itself, so verdicts say how "
                        "to freeze, not whether to",
                        record->baseline);
    TARN_TRY(add_line(&w, &text));
    TARN_TRY(say_names(&w, record, "decided as good against it: ", is_good));
  } else {
    TARN_TRY(say_left_out(&w, record));
    TARN_TRY(say_frozen(&w, record));
    if (w.count == 0) TARN_TRY(say_nothing(&w, record));
    TARN_TRY(
        say_names(&w, record, "decided as good, but not of freezing alone, because other keys differ: ", is_mixed));
  }
  TARN_TRY(say_names(&w, record, "worse: ", is_worse));
  TARN_TRY(say_names(&w, record,
                     record->margin > 0 ? "undecided, so not recommended: "
                                        : "undecided, so not recommended (without a margin of equivalence "
                                          "only a better form can be decided as good): ",
                     is_undecided));
  record->lines = w.lines;
  record->line_count = w.count;
  return TARN_STATUS_OK;
}
