// The contexts and choices are those of lm-evaluation-harness 0.4: tasks/arc, tasks/hellaswag, tasks/piqa,
// tasks/lambada.
#include "score/question.h"

#include <jansson.h>
#include <string.h>
#include <unicode/uchar.h>

#include "base/json_io.h"
#include "tarn/text.h"
#include "text/utf8.h"

static const char *const format_names[] = {"auto", "choices", "arc", "hellaswag", "piqa", "lambada"};

tarn_status tarn_choices_format_parse(tarn_choices_format *out, const char *word) {
  for (int i = 0; i < TARN_CHOICES_FORMAT_COUNT; i++) {
    if (strcmp(word, format_names[i]) != 0) continue;
    *out = (tarn_choices_format)i;
    return TARN_STATUS_OK;
  }
  const char *nearest = tarn_text_nearest(word, format_names, TARN_CHOICES_FORMAT_COUNT);
  if (nearest)
    return tarn__fail(TARN_STATUS_USAGE, "unknown format of questions \"%s\"; did you mean \"%s\"?", word, nearest);
  return tarn__fail(TARN_STATUS_USAGE, "unknown format of questions \"%s\"; there are %s, %s, %s, %s, %s and %s", word,
                    format_names[0], format_names[1], format_names[2], format_names[3], format_names[4],
                    format_names[5]);
}

const char *tarn_choices_format_name(tarn_choices_format format) {
  return (unsigned)format < TARN_CHOICES_FORMAT_COUNT ? format_names[format] : "?";
}

void tarn__question_reader_close(tarn__question_reader *reader) {
  tarn__buffer_close(&reader->buffer);
  tarn__codepoints_close(&reader->points);
}

static tarn_status text_of(const char **text, const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  TARN_REQUIRE(json_is_string(value), DATA, "expected a text \"%s\"", key);
  *text = json_string_value(value);  // without a zero character, which jansson refuses
  return TARN_STATUS_OK;
}

// Keeps what is in the buffer, which is emptied.
static tarn_status keep(tarn__question_reader *r, const char **out) {
  char *copy;
  TARN_TRY(r->buffer.status);
  TARN_TRY(tarn__arena_strdup(r->arena, &copy, r->buffer.data ? r->buffer.data : ""));
  tarn__buffer_reset(&r->buffer);
  *out = copy;
  return TARN_STATUS_OK;
}

static tarn_status begin_choices(tarn__question_reader *r, tarn__question *q, size_t count) {
  void *memory;
  TARN_REQUIRE(count >= 2 && count <= TARN__MOST_CHOICES, DATA, "there are 2 to %d choices, not %zu",
               TARN__MOST_CHOICES, count);
  TARN_TRY(tarn__arena_alloc(r->arena, &memory, count, sizeof *q->choices));
  q->choices = memory;
  return TARN_STATUS_OK;
}

static tarn_status add_choice(tarn__question_reader *r, tarn__question *q, const char *text) {
  TARN_REQUIRE(text[0], DATA, "choice %d is empty", q->count + 1);
  tarn__buffer_add(&r->buffer, " ");
  tarn__buffer_add(&r->buffer, text);
  return keep(r, &q->choices[q->count++]);
}

// A list of texts as the choices.
static tarn_status add_list(tarn__question_reader *r, tarn__question *q, const json_t *list, const char *key) {
  TARN_REQUIRE(json_is_array(list), DATA, "expected a list \"%s\"", key);
  TARN_TRY(begin_choices(r, q, json_array_size(list)));
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *text = json_array_get(list, i);
    TARN_REQUIRE(json_is_string(text), DATA, "expected texts in \"%s\"", key);
    TARN_TRY(add_choice(r, q, json_string_value(text)));
  }
  return TARN_STATUS_OK;
}

// The index of the right choice, a number or the digits of one. Parts whose answers are kept secret have -1.
static tarn_status set_index(tarn__question *q, const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (!value || (json_is_string(value) && !json_string_length(value))) return TARN_STATUS_OK;
  if (json_is_integer(value) && json_integer_value(value) == -1) return TARN_STATUS_OK;
  json_int_t index = json_is_integer(value) ? json_integer_value(value) : -1;
  const char *digits = json_string_value(value);
  if (digits && strspn(digits, "0123456789") == strlen(digits) && strlen(digits) < 5) {
    index = 0;
    for (; *digits; digits++) index = 10 * index + (*digits - '0');
  }
  TARN_REQUIRE(index >= 0 && index < q->count, DATA, "\"%s\" must be the index of a choice, from 0 to %d", key,
               q->count - 1);
  q->answer = (int)index;
  return TARN_STATUS_OK;
}

static tarn_status question_and_answer(tarn__question_reader *r, tarn__question *q, const char *text) {
  tarn__buffer_add(&r->buffer, "Question: ");
  tarn__buffer_add(&r->buffer, text);
  tarn__buffer_add(&r->buffer, "\nAnswer:");
  return keep(r, &q->context);
}

// --- the formats

static tarn_status read_choices(tarn__question_reader *r, tarn__question *q, const json_t *object) {
  const char *context = NULL;
  TARN_TRY(text_of(&context, object, "context"));
  tarn__buffer_add(&r->buffer, context);
  TARN_TRY(keep(r, &q->context));
  TARN_TRY(add_list(r, q, json_object_get(object, "choices"), "choices"));
  return set_index(q, object, "answer");
}

// The choice that has this label, of AI2's list of objects or Hugging Face's list of labels.
static tarn_status set_key(tarn__question *q, const json_t *object, const json_t *objects, const json_t *labels) {
  const char *key = NULL;
  if (!json_object_get(object, "answerKey")) return TARN_STATUS_OK;
  TARN_TRY(text_of(&key, object, "answerKey"));
  for (int i = 0; i < q->count; i++) {
    const json_t *label =
        objects ? json_object_get(json_array_get(objects, (size_t)i), "label") : json_array_get(labels, (size_t)i);
    if (json_is_string(label) && strcmp(json_string_value(label), key) == 0) q->answer = i;
  }
  TARN_REQUIRE(q->answer >= 0, DATA, "no choice has the label \"%.20s\", the \"answerKey\"", key);
  return TARN_STATUS_OK;
}

static tarn_status read_arc(tarn__question_reader *r, tarn__question *q, const json_t *object) {
  const json_t *question = json_object_get(object, "question"), *choices;
  const char *text = NULL;
  const bool ai2 = json_is_object(question);
  TARN_TRY(text_of(&text, ai2 ? question : object, ai2 ? "stem" : "question"));
  TARN_TRY(question_and_answer(r, q, text));
  choices = json_object_get(ai2 ? question : object, "choices");
  if (!ai2) {
    TARN_REQUIRE(json_is_object(choices), DATA,
                 "expected \"choices\" of ARC with lists \"text\" and \"label\"; a list of choices belongs to a "
                 "\"context\"");
    TARN_TRY(add_list(r, q, json_object_get(choices, "text"), "text"));
    return set_key(q, object, NULL, json_object_get(choices, "label"));
  }
  TARN_REQUIRE(json_is_array(choices), DATA, "expected a list \"choices\"");
  TARN_TRY(begin_choices(r, q, json_array_size(choices)));
  for (size_t i = 0; i < json_array_size(choices); i++) {
    TARN_TRY(text_of(&text, json_array_get(choices, i), "text"));
    TARN_TRY(add_choice(r, q, text));
  }
  return set_key(q, object, choices, NULL);
}

// Appends text.replace(from, by).
static void replace(tarn__buffer *to, const char *text, const char *from, const char *by) {
  const size_t length = strlen(from);
  for (const char *at; (at = strstr(text, from)); text = at + length) {
    tarn__buffer_put(to, text, (size_t)(at - text));
    tarn__buffer_add(to, by);
  }
  tarn__buffer_add(to, text);
}

// Without what is in brackets on one line, as re.sub("\\[.*?\\]", "", text).
static void without_brackets(tarn__buffer *to, const char *text) {
  for (const char *open; (open = strchr(text, '['));) {
    const size_t inside = strcspn(open, "]\n");
    const bool closed = open[inside] == ']';
    tarn__buffer_put(to, text, (size_t)(open - text) + !closed);
    text = open + (closed ? inside + 1 : 1);
  }
  tarn__buffer_add(to, text);
}

// HellaSwag's texts as the harness cleans them: WikiHow's marks are no text. `out` is empty.
static tarn_status clean(tarn__buffer *out, const char *text) {
  tarn__buffer stripped = {0}, titles = {0}, brackets = {0};
  for (int32_t c; *text;) {
    const size_t size = tarn__utf8_decode(&c, text, strlen(text));
    if (c < 0 || !tarn__is_space(c)) break;
    text += size;
  }
  tarn__buffer_put(&stripped, text, tarn__rstrip(text, strlen(text)));
  tarn_status status = stripped.status;
  if (status == TARN_STATUS_OK) replace(&titles, stripped.data, " [title]", ". "), status = titles.status;
  if (status == TARN_STATUS_OK) without_brackets(&brackets, titles.data), status = brackets.status;
  if (status == TARN_STATUS_OK) replace(out, brackets.data, "  ", " "), status = out->status;
  tarn__buffer_close(&stripped);
  tarn__buffer_close(&titles);
  tarn__buffer_close(&brackets);
  return status;
}

// str.capitalize(), but with the simple mapping of the first character.
static tarn_status put_capitalized(tarn__question_reader *r, tarn__buffer *to, const char *text) {
  int64_t invalid = 0;
  int32_t first = 0;
  TARN_TRY(tarn__codepoints_decode(&r->points, text, &invalid));
  if (r->points.count > 0) first = u_totitle(r->points.data[0]);
  TARN_TRY(tarn__codepoints_lower(&r->points));
  for (size_t i = 0; i < r->points.count; i++) {
    char bytes[4];
    tarn__buffer_put(to, bytes, tarn__utf8_encode(bytes, i == 0 ? first : r->points.data[i]));
  }
  return to->status;
}

static tarn_status put_hellaswag(tarn__question_reader *r, tarn__question *q, const json_t *object, tarn__buffer *raw) {
  const char *activity = NULL, *a = NULL, *b = NULL;
  TARN_TRY(text_of(&activity, object, "activity_label"));
  TARN_TRY(text_of(&a, object, "ctx_a"));
  TARN_TRY(text_of(&b, object, "ctx_b"));
  tarn__buffer_add(raw, activity);
  tarn__buffer_add(raw, ": ");
  tarn__buffer_add(raw, a);
  tarn__buffer_add(raw, " ");
  TARN_TRY(put_capitalized(r, raw, b));
  TARN_TRY(clean(&r->buffer, raw->data));
  TARN_TRY(keep(r, &q->context));
  const json_t *endings = json_object_get(object, "endings");
  TARN_REQUIRE(json_is_array(endings), DATA, "expected a list \"endings\"");
  TARN_TRY(begin_choices(r, q, json_array_size(endings)));
  for (size_t i = 0; i < json_array_size(endings); i++) {
    const json_t *ending = json_array_get(endings, i);
    TARN_REQUIRE(json_is_string(ending), DATA, "expected texts in \"endings\"");
    tarn__buffer_reset(raw);
    TARN_TRY(clean(raw, json_string_value(ending)));
    TARN_TRY(add_choice(r, q, raw->data));
  }
  return set_index(q, object, "label");
}

static tarn_status read_hellaswag(tarn__question_reader *r, tarn__question *q, const json_t *object) {
  tarn__buffer raw = {0};
  tarn_status status = put_hellaswag(r, q, object, &raw);
  tarn__buffer_close(&raw);
  return status;
}

static tarn_status read_piqa(tarn__question_reader *r, tarn__question *q, const json_t *object) {
  static const char *const keys[] = {"sol1", "sol2"};
  const char *text = NULL;
  TARN_TRY(text_of(&text, object, "goal"));
  TARN_TRY(question_and_answer(r, q, text));
  TARN_TRY(begin_choices(r, q, 2));
  for (int i = 0; i < 2; i++) {
    TARN_TRY(text_of(&text, object, keys[i]));
    TARN_TRY(add_choice(r, q, text));
  }
  return set_index(q, object, "label");
}

static tarn_status read_lambada(tarn__question_reader *r, tarn__question *q, const json_t *object) {
  const char *text = NULL;
  void *memory;
  TARN_TRY(text_of(&text, object, "text"));
  const char *space = strrchr(text, ' ');
  tarn__buffer_put(&r->buffer, text, space ? (size_t)(space - text) : 0);
  TARN_TRY(keep(r, &q->context));
  TARN_TRY(tarn__arena_alloc(r->arena, &memory, 1, sizeof *q->choices));
  q->choices = memory;
  q->answer = 0;
  const char *word = space ? space + 1 : text;
  TARN_REQUIRE(word[0], DATA, "the text \"text\" has no last word");
  return add_choice(r, q, word);
}

static tarn_choices_format format_of(const json_t *object) {
  static const struct {
    const char *key;
    tarn_choices_format format;
  } signs[] = {{"endings", TARN_CHOICES_FORMAT_HELLASWAG},
               {"goal", TARN_CHOICES_FORMAT_PIQA},
               {"question", TARN_CHOICES_FORMAT_ARC},
               {"choices", TARN_CHOICES_FORMAT_CHOICES},
               {"text", TARN_CHOICES_FORMAT_LAMBADA}};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (json_object_get(object, signs[i].key)) return signs[i].format;
  return TARN_CHOICES_FORMAT_AUTO;
}

static tarn_status read_object(tarn__question_reader *r, tarn__question *q, const json_t *object) {
  if (r->format == TARN_CHOICES_FORMAT_AUTO) r->format = format_of(object);
  switch (r->format) {
    case TARN_CHOICES_FORMAT_CHOICES:
      return read_choices(r, q, object);
    case TARN_CHOICES_FORMAT_ARC:
      return read_arc(r, q, object);
    case TARN_CHOICES_FORMAT_HELLASWAG:
      return read_hellaswag(r, q, object);
    case TARN_CHOICES_FORMAT_PIQA:
      return read_piqa(r, q, object);
    case TARN_CHOICES_FORMAT_LAMBADA:
      return read_lambada(r, q, object);
    case TARN_CHOICES_FORMAT_AUTO:
    case TARN_CHOICES_FORMAT_COUNT:
      break;
  }
  return tarn__fail(
      TARN_STATUS_DATA,
      "expected a question: \"choices\" with \"context\", or the keys of ARC, HellaSwag, PIQA or LAMBADA");
}

tarn_status tarn__question_read(tarn__question_reader *reader, tarn__question *question, const char *line,
                                size_t length) {
  json_error_t error;
  json_t *object;
  *question = (tarn__question){.answer = -1};
  tarn__buffer_reset(&reader->buffer);
  TARN_TRY(tarn__json_parse(&object, line, length, JSON_REJECT_DUPLICATES, &error));
  tarn_status status = TARN_STATUS_OK;
  if (!json_is_object(object))
    status = tarn__fail(TARN_STATUS_DATA, "expected a JSON object%s%s", object ? "" : ": ", object ? "" : error.text);
  if (status == TARN_STATUS_OK) status = read_object(reader, question, object);
  json_decref(object);
  return status;
}
