// tarn vocab: trains a vocabulary.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "limit_options.h"
#include "progress_show.h"
#include "tarn/checkpoint.h"
#include "tarn/config.h"
#include "tarn/text.h"
#include "tarn/vocab.h"

static const cli_command COMMAND = {
    "vocab", "[FILE...]", "Train a vocabulary on text files, or import GPT-2's, Llama's, BERT's or Marian's.",
    "The lines of all files are taken together: give source and target for a joint vocabulary. bpe and unigram are\n"
    "SentencePiece models for raw text; whitespace is a list of words for text that is split already; char has the\n"
    "characters of the text; byte has the 256 bytes and needs no text. --import-gpt2 makes one file of GPT-2's two,\n"
    "--import-tokenizer one of a tokenizer.json as Llama's, Mistral's and Qwen2's,\n"
    "--import-wordpiece one of BERT's vocab.txt and what tokenizer_config.json beside it says of case and accents,\n"
    "--import-marian one of source.spm, or with --target of target.spm, and the tokens in vocab.json, or in the lists\n"
    "that decoder.yml names. --import-checkpoint takes that of a model, for training that goes on.\n"
    "It prints how much of the text was used, and fails where more than 1 % of it cannot be used (invalid UTF-8, for\n"
    "example). bpe and unigram are given lines of more than 65536 bytes in parts, cut at white space."};

static const char *const TYPES[] = {"bpe", "unigram", "whitespace", "byte", "char"};
enum { TYPE_COUNT = sizeof TYPES / sizeof *TYPES };

// Returns -1 to continue, like cli_parse().
static int parse_type(tarn_vocab_type *type, const char *word) {
  int place;
  int code = cli_word(&COMMAND, &place, "--type", word, TYPES, TYPE_COUNT);
  *type = (tarn_vocab_type)place;
  return code;
}

// Options that only some types take.
typedef struct given {
  int64_t size, minimum_count, sentences, threads;
  double character_coverage;
  const char *memory, *normalization;  // NULL: not given
} given;

static int take_normalization(tarn_vocab_options *options, const char *word) {
  const char *names[TARN_VOCAB_NORMALIZATION_COUNT];
  int place;
  for (int i = 0; i < TARN_VOCAB_NORMALIZATION_COUNT; i++)
    names[i] = tarn_vocab_normalization_name((tarn_vocab_normalization)i);
  const int code = cli_word(&COMMAND, &place, "--normalization", word, names, TARN_VOCAB_NORMALIZATION_COUNT);
  options->normalization = (tarn_vocab_normalization)place;
  return code;
}

static int take_over(tarn_vocab_options *options, const given *g) {
  if (g->normalization) {
    const int code = take_normalization(options, g->normalization);
    if (code >= 0) return code;
  }
  if (g->size != CLI_NO_INT) options->size = g->size;
  if (!isnan(g->character_coverage)) options->character_coverage = g->character_coverage;
  if (g->minimum_count != CLI_NO_INT) options->minimum_count = g->minimum_count;
  if (g->sentences != CLI_NO_INT) options->sentences = g->sentences;
  if (g->threads != CLI_NO_INT) options->threads = (int)g->threads;
  return g->memory ? bytes_option_read(&COMMAND, &options->memory, "memory", g->memory, TARN_VOCAB_LEAST_MEMORY) : -1;
}

// The exit code for an option without effect on this type, or -1 after applying the others. `type` NULL: nothing is
// trained, `import` is done.
static int settle_options(tarn_vocab_options *options, const given *g, const char *type, const char *import) {
  enum { PIECES = 1 << TARN_VOCAB_TYPE_BPE | 1 << TARN_VOCAB_TYPE_UNIGRAM };
  enum { COUNTED = 1 << TARN_VOCAB_TYPE_WHITESPACE | 1 << TARN_VOCAB_TYPE_CHAR };
  const struct {
    const char *name;
    bool is_given;
    unsigned types;
  } table[] = {{"size", g->size != CLI_NO_INT, PIECES | COUNTED},
               {"character-coverage", !isnan(g->character_coverage), PIECES},
               {"byte-fallback", options->byte_fallback, PIECES},
               {"lowercase", options->lowercase, PIECES | COUNTED},
               {"minimum-count", g->minimum_count != CLI_NO_INT, COUNTED},
               {"sentences", g->sentences != CLI_NO_INT, PIECES},
               {"threads", g->threads != CLI_NO_INT, PIECES},
               {"memory", g->memory != NULL, PIECES},
               {"normalization", g->normalization != NULL, PIECES},
               {"mask-symbols", options->mask_symbols, PIECES | COUNTED | 1 << TARN_VOCAB_TYPE_BYTE},
               {"allow-loss", options->allow_loss, PIECES | COUNTED}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (!table[i].is_given || (type && table[i].types >> options->type & 1)) continue;
    if (!type) return cli_usage(&COMMAND, "%s takes a vocabulary as it is, without --%s", import, table[i].name);
    return cli_usage(&COMMAND, "--type %s takes no --%s", type, table[i].name);
  }
  if (options->lowercase && g->normalization)
    return cli_usage(&COMMAND, "--lowercase is --normalization nmt_nfkc_cf: give one of the two");
  if (g->memory && g->sentences != CLI_NO_INT) return cli_usage(&COMMAND, "give either --memory or --sentences");
  return take_over(options, g);
}

// Imports a vocabulary of another program.
typedef struct imported {
  const char *gpt2, *wordpiece, *marian, *tokenizer, *checkpoint;
  bool cased, target;
} imported;

// What is imported, and the option that says so; NULL: nothing.
static const char *imported_path(const imported *from, const char **option) {
  const struct {
    const char *path, *option;
  } all[] = {{from->gpt2, "--import-gpt2"},
             {from->tokenizer, "--import-tokenizer"},
             {from->marian, "--import-marian"},
             {from->checkpoint, "--import-checkpoint"},
             {from->wordpiece, "--import-wordpiece"}};
  size_t i = 0;
  while (!all[i].path && i + 1 < sizeof all / sizeof *all) i++;
  *option = all[i].option;
  return all[i].path;
}

static tarn_status import_checkpoint(const char *output, const char *path, bool target) {
  tarn_vocab *source = NULL, *other = NULL;
  tarn_status status = tarn_checkpoint_vocabs(&source, &other, path);
  if (status == TARN_STATUS_OK) status = tarn_vocab_save(target && other ? other : source, output);
  tarn_vocab_close(&source);
  tarn_vocab_close(&other);
  return status;
}

// Whether a checkpoint's model translates: another one has no target.
static tarn_status find_target(bool *found, const char *path) {
  tarn_checkpoint_info *info;
  tarn_config *config = NULL;
  *found = false;
  tarn_status status = tarn_checkpoint_info_open(&info, path);
  if (status != TARN_STATUS_OK) return status;
  status = tarn_config_parse(&config, info->path, info->config, strlen(info->config), NULL, 0);
  if (status == TARN_STATUS_OK) *found = tarn_config_has_use(config, "translate");
  tarn_config_close(&config);
  tarn_checkpoint_info_close(&info);
  return status;
}

static int import(const char *output, const imported *from, bool lowercase, bool json) {
  const tarn_wordpiece_case casing = from->cased ? TARN_WORDPIECE_CASED
                                     : lowercase ? TARN_WORDPIECE_UNCASED
                                                 : TARN_WORDPIECE_CASE_AS_SAID;
  bool translates = true;
  if (from->checkpoint && from->target) {
    const tarn_status found = find_target(&translates, from->checkpoint);
    if (found != TARN_STATUS_OK) return cli_report(&COMMAND, found);
  }
  if (!translates)
    return cli_usage(&COMMAND, "%s: this model has one vocabulary, not another one for a target", from->checkpoint);
  tarn_status status = from->gpt2         ? tarn_vocab_import_gpt2(output, from->gpt2)
                       : from->tokenizer  ? tarn_vocab_import_tokenizer(output, from->tokenizer)
                       : from->marian     ? tarn_vocab_import_marian(output, from->marian, from->target)
                       : from->checkpoint ? import_checkpoint(output, from->checkpoint, from->target)
                                          : tarn_vocab_import_wordpiece(output, from->wordpiece, casing);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  const char *option, *path = imported_path(from, &option);
  return json ? json_output_made(&COMMAND, output, "from", path) : CLI_OK;
}

// The exit code if options do not fit an import, or -1.
static int check_import(tarn_vocab_options *options, const given *g, const imported *from, bool others) {
  const char *name, *path = imported_path(from, &name);
  const bool lowercase = options->lowercase;
  if (!!from->gpt2 + !!from->wordpiece + !!from->marian + !!from->tokenizer + !!from->checkpoint > 1)
    return cli_usage(&COMMAND,
                     "--import-gpt2, --import-tokenizer, --import-wordpiece, --import-marian and --import-checkpoint "
                     "exclude each other");
  if (from->target && !from->marian && !from->checkpoint)
    return cli_usage(&COMMAND, "--target goes with --import-marian and --import-checkpoint only");
  if (from->cased && !from->wordpiece) return cli_usage(&COMMAND, "--cased goes with --import-wordpiece only");
  if (!path) return -1;
  if (others) return cli_usage(&COMMAND, "%s takes neither --type nor text files", name);
  if (from->cased && lowercase) return cli_usage(&COMMAND, "--cased and --lowercase exclude each other");
  if (from->wordpiece) options->lowercase = false;
  const int code = settle_options(options, g, NULL, name);
  options->lowercase = lowercase;
  return code;
}

// 1 for a text of only white space, of which nothing can be lost.
static double share_used(const tarn_vocab_report *r) {
  return r->bytes ? (double)r->used_bytes / (double)r->bytes : 1.0;
}

// NULL: the type has none.
static const char *normalization_of(const tarn_vocab_report *r) {
  return r->normalization == TARN_VOCAB_NORMALIZATION_AUTO ? NULL : tarn_vocab_normalization_name(r->normalization);
}

static int print_json(const char *output, const tarn_vocab_report *r) {
  json_t *object = json_pack(
      "{s:o, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s?}", "output",
      json_output_text(output), "lines", (json_int_t)r->lines, "bytes", (json_int_t)r->bytes, "used_bytes",
      (json_int_t)r->used_bytes, "used", share_used(r), "given", (json_int_t)r->given, "drawn", (json_int_t)r->drawn,
      "long_lines", (json_int_t)r->long_lines, "split_words", (json_int_t)r->split_words, "replaced",
      (json_int_t)r->replaced, "replaced_bytes", (json_int_t)r->replaced_bytes, "invisible_bytes",
      (json_int_t)r->invisible_bytes, "reserved", (json_int_t)r->reserved, "characters", (json_int_t)r->characters,
      "joined", (json_int_t)r->joined, "normalization", normalization_of(r));
  return json_output_print(&COMMAND, stdout, object, JSON_COMPACT | JSON_REAL_PRECISION(6));
}

static void print_text(const tarn_vocab_report *r, const tarn_vocab_options *options) {
  const int64_t sentences = options->sentences;
  printf("lines  %12" PRId64 "\ntext   %12" PRId64 " bytes, %.2f %% used\n", r->lines, r->bytes, 100.0 * share_used(r));
  if (sentences > 0 && sentences < r->given)
    printf("drawn  %12" PRId64 " of %" PRId64 " lines (--sentences)\n", sentences, r->given);
  if (r->drawn) printf("drawn  %12" PRId64 " of %" PRId64 " lines (--memory)\n", r->drawn, r->given);
  if (r->long_lines)
    printf("longer than 65536 bytes and split at white space: %s; lines and parts that are not empty: %" PRId64 "\n",
           CLI_COUNT(r->long_lines, "line"), r->given);
  if (r->split_words) printf("split within a word that is longer: %s\n", CLI_COUNT(r->split_words, "time"));
  if (r->replaced)
    printf("invalid UTF-8 replaced in: %s, %s\n", CLI_COUNT(r->replaced, "line"), CLI_COUNT(r->replaced_bytes, "byte"));
  if (r->invisible_bytes) printf("left out without a visible character: %s\n", CLI_COUNT(r->invisible_bytes, "byte"));
  if (r->joined)
    printf("letters joined by U+200C or U+200D in: %s, normalization %s\n", CLI_COUNT(r->joined, "line"),
           normalization_of(r));
  const bool many = r->characters >= 1000 && 4 * r->characters > options->size;  // a small vocabulary is mostly of them
  if (options->character_coverage == 0 && !options->byte_fallback && many)
    printf("tokens of one character: %" PRId64 " of %" PRId64
           "; --character-coverage 0.9995 or --byte-fallback leaves out the rarest\n",
           r->characters, options->size);
  if (r->reserved)
    printf("blanks in place of U+2585, which SentencePiece keeps for itself: %" PRId64 "\n", r->reserved);
}

static int train(const char *output, const cli_list *files, tarn_vocab_options *options, const given *g,
                 const char *type, bool json) {
  tarn_vocab_report report = {0};
  options->report = &report;
  int code = parse_type(&options->type, type);
  if (code < 0) code = settle_options(options, g, type, NULL);
  if (code >= 0) return code;
  if (files->count == 0 && options->type != TARN_VOCAB_TYPE_BYTE)
    return cli_usage(&COMMAND, "an argument is missing: tarn vocab [options] FILE...");
  tarn_status status = tarn_vocab_train(output, files->items, files->count, options);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  if (json) return print_json(output, &report);
  if (files->count > 0) print_text(&report, options);
  return CLI_OK;
}

int cmd_vocab(int argc, char **argv) {
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  const char *type = NULL;
  const char *output = NULL;
  imported from = {0};
  bool json = false;
  cli_list files = {0};
  given g = {CLI_NO_INT, CLI_NO_INT, CLI_NO_INT, CLI_NO_INT, NAN, NULL, NULL};
  const cli_option table[] = {
      {"output", CLI_TEXT, &output, "FILE", "where to write the vocabulary; needed", 0, 0},
      {"type", CLI_TEXT, &type, "TYPE", "bpe (the default), unigram, whitespace, byte or char", 0, 0},
      {"import-gpt2", CLI_TEXT, &from.gpt2, "PATH",
       "a folder with vocab.json and merges.txt, or encoder.json and vocab.bpe, or one of these files", 0, 0},
      {"import-tokenizer", CLI_TEXT, &from.tokenizer, "PATH",
       "a tokenizer.json of byte-pair encoding, or a folder with it, as Llama's, Mistral's and Qwen2's", 0, 0},
      {"import-wordpiece", CLI_TEXT, &from.wordpiece, "PATH",
       "a folder with vocab.txt, or the file; uncased unless tokenizer_config.json or --cased says otherwise", 0, 0},
      {"import-marian", CLI_TEXT, &from.marian, "FOLDER",
       "a folder with vocab.json or decoder.yml, source.spm and target.spm: the vocabulary of the source", 0, 0},
      {"import-checkpoint", CLI_TEXT, &from.checkpoint, "MODEL",
       "a checkpoint, or a run: the vocabulary of its source, or of its texts", 0, 0},
      {"target", CLI_FLAG, &from.target, NULL,
       "the vocabulary of the target instead (with --import-marian, --import-checkpoint)", 0, 0},
      {"cased", CLI_FLAG, &from.cased, NULL, "keep case and accents (with --import-wordpiece)", 0, 0},
      {"size", CLI_INT, &g.size, "N",
       "tokens, special ones included; for whitespace and char at most (default 8000; not byte)", 4, 1000000},
      {"character-coverage", CLI_REAL, &g.character_coverage, "SHARE",
       "share of the text whose characters get tokens; the rarest get none (bpe, unigram; default 1, with "
       "--byte-fallback 0.9995)",
       0.98, 1.0},
      {"byte-fallback", CLI_FLAG, &options.byte_fallback, NULL,
       "256 tokens for bytes, which spell characters that have no token (bpe, unigram)", 0, 0},
      {"lowercase", CLI_FLAG, &options.lowercase, NULL, "fold the case of all text (not byte, not --import-gpt2)", 0,
       0},
      {"normalization", CLI_TEXT, &g.normalization, "NAME",
       "nmt_nfkc, nfkc, either with _cf to fold the case, or identity; nmt_nfkc_joiners and nmt_nfkc_cf_joiners keep "
       "U+200C and U+200D; auto (the default): nmt_nfkc, with _joiners where letters join by them (bpe, unigram)",
       0, 0},
      {"minimum-count", CLI_INT, &g.minimum_count, "N",
       "leave out rarer words or characters (whitespace, char; default 1)", 1, 1e15},
      {"sentences", CLI_INT, &g.sentences, "N",
       "train on a sample of this many lines, 0 for all (bpe, unigram; default 0)", 0, 1e15},
      {"threads", CLI_INT, &g.threads, "N",
       "threads of the training (bpe, unigram; default 2); for unigram part of the result", 1, 1024},
      {"memory", CLI_TEXT, &g.memory, "BYTES",
       "memory of the training, as 2G; of a text that takes more, a sample is drawn (bpe, unigram; default 1G)", 0, 0},
      {"mask-symbols", CLI_FLAG, &options.mask_symbols, NULL,
       "add <cls>, <sep> and <mask>, which masked language models and classification need", 0, 0},
      {"allow-loss", CLI_FLAG, &options.allow_loss, NULL,
       "go on where more than 1 % of the text cannot be used (not byte)", 0, 0},
      {"json", CLI_FLAG, &json, NULL, "print the summary as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 0, SIZE_MAX);
  const char *option;
  if (code < 0 && !output) code = cli_usage(&COMMAND, "--output is missing");
  if (code < 0) code = check_import(&options, &g, &from, type || files.count);
  if (code < 0)
    code = imported_path(&from, &option) ? import(output, &from, options.lowercase, json)
                                         : train(output, &files, &options, &g, type ? type : "bpe", json);
  cli_list_free(&files);
  return code;
}
