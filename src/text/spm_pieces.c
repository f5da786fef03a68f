#include "text/spm_pieces.h"

#include <string.h>

#include "base/memory.h"
#include "text/spm_wire.h"
#include "text/vocab_kind.h"

// Numbers of fields in sentencepiece_model.proto, besides those of spm_wire.h.
enum { PIECES = 1 };                                       // of the model
enum { TEXT = 1, SCORE, TYPE };                            // of a piece
enum { BOS_PIECE = 46, EOS_PIECE = 47, PAD_PIECE = 48 };   // of the trainer's options
enum { BYTE_FALLBACK = 35 };                               // of these too
enum { PREFIXES = 3, SQUEEZES = 4 };                       // of the normaliser
enum { UNIGRAM = 1, BPE = 2 };                             // types of models
enum { WIRE_NUMBER = 0, WIRE_BYTES = 2, WIRE_FLOAT = 5 };  // how a field is written

void tarn__spm_list_close(tarn__spm_list *list) {
  tarn__free(list->entries);
  *list = (tarn__spm_list){0};
}

static uint64_t number_in(tarn__wire body) {
  uint64_t value = 0;
  (void)tarn__wire_varint(&body, &value);
  return value;
}

static tarn_status read_piece(tarn__spm_list *list, tarn__wire piece) {
  tarn__spm_entry entry = {.text = "", .type = TARN__SPM_NORMAL};
  uint64_t number, type = TARN__SPM_NORMAL;
  bool has_body;
  for (tarn__wire body; piece.at < piece.end && tarn__wire_field(&piece, &number, &has_body, &body);) {
    if (number == TEXT && has_body) {
      entry.text = (const char *)body.at;
      entry.length = (size_t)(body.end - body.at);
    }
    if (number == SCORE && !has_body && body.end - body.at == sizeof entry.score)
      memcpy(&entry.score, body.at, sizeof entry.score);
    if (number == TYPE && !has_body) type = number_in(body);
  }
  TARN_REQUIRE(type >= TARN__SPM_NORMAL && type <= TARN__SPM_BYTE, DATA, "piece %zu is of the unknown type %llu",
               list->count, (unsigned long long)type);
  entry.type = (tarn__spm_type)type;
  TARN_TRY(tarn__grow(&list->entries, &list->capacity, list->count + 1, sizeof entry));
  list->entries[list->count++] = entry;
  return TARN_STATUS_OK;
}

static void read_trainer(tarn__spm_list *list, tarn__wire trainer) {
  uint64_t number;
  bool has_body;
  for (tarn__wire body; trainer.at < trainer.end && tarn__wire_field(&trainer, &number, &has_body, &body);)
    if (number == TARN__WIRE_MODEL_TYPE && !has_body) list->bpe = number_in(body) == BPE;
}

static void read_normaliser(tarn__spm_list *list, tarn__wire normaliser) {
  uint64_t number;
  bool has_body;
  for (tarn__wire body; normaliser.at < normaliser.end && tarn__wire_field(&normaliser, &number, &has_body, &body);) {
    if (number == PREFIXES && !has_body) list->prefixes = number_in(body) != 0;
    if (number == SQUEEZES && !has_body) list->squeezes = number_in(body) != 0;
    if (number == TARN__WIRE_TABLE && has_body) list->normalises = body.at < body.end;
  }
}

tarn_status tarn__spm_list_read(tarn__spm_list *list, const void *bytes, size_t size) {
  tarn__wire model = {bytes, (const uint8_t *)bytes + size};
  uint64_t number;
  bool has_body;
  list->prefixes = list->squeezes = true;  // SentencePiece's defaults
  for (tarn__wire part; model.at < model.end && tarn__wire_field(&model, &number, &has_body, &part);) {
    if (!has_body) continue;
    if (number == PIECES) TARN_TRY(read_piece(list, part));
    if (number == TARN__WIRE_TRAINER) read_trainer(list, part);
    if (number == TARN__WIRE_NORMALISER) read_normaliser(list, part);
  }
  return TARN_STATUS_OK;
}

static tarn_status put_varint(tarn_vocab_text *out, uint64_t value) {
  char bytes[10];
  size_t count = 0;
  for (; value >= 0x80; value >>= 7) bytes[count++] = (char)(value | 0x80);
  bytes[count++] = (char)value;
  return tarn__vocab_append(out, bytes, count);
}

static tarn_status put_number(tarn_vocab_text *out, uint64_t field, uint64_t value) {
  TARN_TRY(put_varint(out, field << 3 | WIRE_NUMBER));
  return put_varint(out, value);
}

static tarn_status put_bytes(tarn_vocab_text *out, uint64_t field, const char *bytes, size_t length) {
  TARN_TRY(put_varint(out, field << 3 | WIRE_BYTES));
  TARN_TRY(put_varint(out, length));
  return tarn__vocab_append(out, bytes, length);
}

static tarn_status fill_piece(tarn_vocab_text *part, const tarn__spm_entry *entry) {
  part->length = 0;
  TARN_TRY(put_bytes(part, TEXT, entry->text, entry->length));
  TARN_TRY(put_varint(part, SCORE << 3 | WIRE_FLOAT));
  TARN_TRY(tarn__vocab_append(part, (const char *)&entry->score, sizeof entry->score));
  return put_number(part, TYPE, entry->type);
}

static tarn_status fill_trainer(tarn_vocab_text *part, const tarn__spm_list *list, const tarn__spm_named *named) {
  const struct {
    uint64_t field;
    int64_t id;
  } pieces[] = {{BOS_PIECE, named->bos}, {EOS_PIECE, named->eos}, {PAD_PIECE, named->pad}};
  bool bytes = false;
  for (size_t i = 0; i < list->count; i++) bytes |= list->entries[i].type == TARN__SPM_BYTE;
  part->length = 0;
  TARN_TRY(put_number(part, TARN__WIRE_MODEL_TYPE, list->bpe ? BPE : UNIGRAM));
  TARN_TRY(put_number(part, BYTE_FALLBACK, bytes));
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    const int64_t id = pieces[i].id;
    if (id >= 0 && (size_t)id < list->count)
      TARN_TRY(put_bytes(part, pieces[i].field, list->entries[id].text, list->entries[id].length));
  }
  return TARN_STATUS_OK;
}

static tarn_status fill_normaliser(tarn_vocab_text *part, const tarn__spm_list *list) {
  part->length = 0;
  TARN_TRY(put_bytes(part, TARN__WIRE_NAME, "identity", strlen("identity")));
  TARN_TRY(put_number(part, PREFIXES, list->prefixes));
  return put_number(part, SQUEEZES, list->squeezes);
}

static tarn_status write_parts(tarn_vocab_text *out, tarn_vocab_text *part, const tarn__spm_list *list,
                               const tarn__spm_named *named) {
  for (size_t i = 0; i < list->count; i++) {
    TARN_TRY(fill_piece(part, &list->entries[i]));
    TARN_TRY(put_bytes(out, PIECES, part->data, part->length));
  }
  TARN_TRY(fill_trainer(part, list, named));
  TARN_TRY(put_bytes(out, TARN__WIRE_TRAINER, part->data, part->length));
  TARN_TRY(fill_normaliser(part, list));
  return put_bytes(out, TARN__WIRE_NORMALISER, part->data, part->length);
}

tarn_status tarn__spm_list_write(tarn_vocab_text *out, const tarn__spm_list *list, const tarn__spm_named *named) {
  tarn_vocab_text part = {0};
  const tarn_status status = write_parts(out, &part, list, named);
  tarn_vocab_text_close(&part);
  return status;
}
