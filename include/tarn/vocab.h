// Vocabularies: they turn a line of text into token ids and back.
//
// There are several kinds of files. A SentencePiece model (Kudo and Richardson, EMNLP 2018; byte-pair encoding or
// unigram language model) takes raw text and decodes to plain text. A whitespace vocabulary is a list of words for text
// that is already tokenized. GPT-2's vocabulary (Radford et al. 2019) is byte-pair encoding on bytes: no text is
// unknown, and decoding restores the same bytes. Byte and character vocabularies are for character-level models. Files
// trained by tarn have the ids 0 = unknown word, 1 = begin of sentence, 2 = end of sentence; for other files, query the
// ids.
//
// Bits per character and per byte: the length of a sentence in bytes and in characters is that of its line or, if only
// its tokens are known, that of the text from tarn_vocab_decode() (`length` bytes, tarn_vocab_characters() characters).
// Bytes are exact for GPT-2's and byte vocabularies; a character vocabulary gives one character per token, unknown ones
// included. A sentence of n tokens is n + 1 predictions. The last one, the end of sentence, stands for the end of the
// line, which is part of neither length.
//
// An open vocabulary is immutable: several threads may encode and decode at once.
#ifndef TARN_VOCAB_H
#define TARN_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_vocab_type {
  TARN_VOCAB_TYPE_BPE,
  TARN_VOCAB_TYPE_UNIGRAM,
  TARN_VOCAB_TYPE_WHITESPACE,
  TARN_VOCAB_TYPE_BYTE,  // 256 bytes after the special tokens: byte b is token 3 + b, as in ByT5 (Xue et al. 2022)
  TARN_VOCAB_TYPE_CHAR   // the Unicode code points of the text
} tarn_vocab_type;

// How SentencePiece vocabularies normalise a text before splitting it into pieces, in training and in use. All but
// `identity` apply Unicode's compatibility composition (NFKC); those with `cf` also fold case. Those with `nmt` also
// remove control characters and turn white space of all kinds, U+200B, U+200C, U+200E, U+200F, U+FEFF and U+FFFD into
// spaces (some versions of SentencePiece also U+200D); with `joiners` they keep U+200C and U+200D, which spell words in
// Persian, Sinhala, Hindi and other languages. All of them collapse runs of spaces, strip spaces at both ends, and turn
// U+2581, SentencePiece's symbol for a space, into a space; without `nmt` a tab is unknown.
typedef enum tarn_vocab_normalization {
  TARN_VOCAB_NORMALIZATION_AUTO,  // nmt_nfkc, or nmt_nfkc_joiners if the text spells words with joiners: in at least
                                  // one of 10,000 lines, between joining letters
  TARN_VOCAB_NORMALIZATION_NMT_NFKC,
  TARN_VOCAB_NORMALIZATION_NMT_NFKC_JOINERS,
  TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF,
  TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF_JOINERS,
  TARN_VOCAB_NORMALIZATION_NFKC,
  TARN_VOCAB_NORMALIZATION_NFKC_CF,
  TARN_VOCAB_NORMALIZATION_IDENTITY
} tarn_vocab_normalization;
enum { TARN_VOCAB_NORMALIZATION_COUNT = TARN_VOCAB_NORMALIZATION_IDENTITY + 1 };
// "auto", "nmt_nfkc", "nmt_nfkc_joiners", ...; "" for another value.
TARN_API const char *tarn_vocab_normalization_name(tarn_vocab_normalization normalization);

// Statistics of the text that a vocabulary was trained on.
typedef struct tarn_vocab_report {
  int64_t lines;            // of all files
  int64_t bytes;            // of their text, without line ends and lines of white space
  int64_t used_bytes;       // of these, passed to the trainer (SentencePiece may sample `sentences` of its lines)
  int64_t given;            // lines passed to the trainer, each part of a long one counted
  int64_t drawn;            // of those, lines sampled to keep within `memory`; 0: all
  int64_t long_lines;       // of more than 65536 bytes, split at white space; SentencePiece only, like all fields below
  int64_t split_words;      // splits within a word, for words longer than 16384 bytes
  int64_t reserved;         // characters U+2585, reserved by SentencePiece; replaced by a space
  int64_t invisible_bytes;  // in lines without a visible character, which were skipped
  int64_t replaced;         // lines with invalid UTF-8 replaced by U+FFFD; every type
  int64_t replaced_bytes;   // invalid bytes in them
  int64_t joined;           // lines with a joiner between joining letters; SentencePiece only
  int64_t characters;       // tokens that are one character each, of those that text gives; SentencePiece only
  tarn_vocab_normalization normalization;  // the one used; AUTO: the type has none
} tarn_vocab_report;

#define TARN_VOCAB_MOST_LOST 0.01         // share of the bytes of a text that may be lost without `allow_loss`
#define TARN_VOCAB_MEMORY 1000000000LL    // bytes; see tarn_vocab_options
#define TARN_VOCAB_LEAST_MEMORY 64000000  // bytes
#define TARN_VOCAB_UNKNOWN_WARNED 0.01    // commands warn above this share of unknown tokens

// Options that do not apply to a type must keep their defaults.
typedef struct tarn_vocab_options {
  tarn_vocab_type type;  // default: byte-pair encoding
  // Size with the special tokens, 4 .. 1000000 (with `mask_symbols` from 7); default 8000. SentencePiece gives exactly
  // this size or fails; a whitespace or character vocabulary has at most this size; a byte vocabulary has 259 or 262
  // tokens and ignores it.
  int64_t size;
  // Share of the text that the characters with tokens of their own make up, 0.98 .. 1; the rarest get none. In a text
  // of many scripts thousands are rarer than one in 10,000, and leave few tokens for words. Default 0: 1, and with
  // `byte_fallback` 0.9995, SentencePiece's own. SentencePiece only.
  double character_coverage;
  // 256 tokens for bytes, which spell the characters that have no token, so none is unknown and decoding gives them
  // back (Kudo and Richardson 2018; as in Llama's vocabularies). They count in `size`. Default false. SentencePiece
  // only.
  bool byte_fallback;
  // Fold the case of all text, in training and in encoding; default false. SentencePiece then uses nmt_nfkc_cf instead
  // of nmt_nfkc, so it requires `normalization` AUTO. Not allowed for a byte vocabulary.
  bool lowercase;
  // Rarer words or characters are left out, at least 1; default 1. Whitespace and characters only.
  int64_t minimum_count;
  // Train on at most this many lines, more than 100, sampled from all files with a fixed seed; default 0: all.
  // SentencePiece only.
  int64_t sentences;
  // Threads of the training, 1 .. 1024; default 2. SentencePiece only. Unigram probabilities are summed per thread, so
  // the result depends on this number. The default is a constant, so equal text gives equal bytes on every machine.
  int threads;
  // Approximate memory limit of the training in bytes; at least TARN_VOCAB_LEAST_MEMORY. Default 0: TARN_VOCAB_MEMORY,
  // a constant, so equal text gives equal bytes on every machine: 97 MB of text for byte-pair encoding, 36 MB for
  // unigram. SentencePiece keeps its text in memory; if that would exceed the limit, it gets a sample of the lines,
  // drawn uniformly from the whole text with a fixed seed; more text changes a vocabulary little, and takes longer.
  // With `sentences` it keeps only that many lines, and this has no effect. SentencePiece only.
  int64_t memory;
  // Add <cls>, <sep> and <mask> as control symbols, which text never produces: masked language models need <mask>, and
  // classification with head.pool: cls needs <cls>. Default false. They count in `size`.
  bool mask_symbols;
  bool allow_loss;  // default false: the training fails if more than 1 % of the text cannot be used
  // Default AUTO, which scans the whole text first. With `sentences`, which keeps no text in memory, files are read
  // twice, and a pipe that would need a `joiners` is refused. SentencePiece only.
  tarn_vocab_normalization normalization;
  // Filled in, even if the training fails; default NULL: no report, but a warning if words were split.
  tarn_vocab_report *report;
} tarn_vocab_options;

TARN_API void tarn_vocab_default(tarn_vocab_options *options);

// Trains a vocabulary on the lines of all `files` together and writes it to `output`, atomically, creating its folder.
// For SentencePiece, lines of more than 65536 bytes are split at white space, and so are words of more than 16384
// bytes, which would make its trainers abort the process. Invalid UTF-8 is replaced by U+FFFD and counts as lost. A
// byte vocabulary takes no file, the others need at least one. Fails with USAGE (options, files), IO, or DATA: a file
// is not text, the text has too few distinct pieces or too many characters for the size (the message gives a size that
// works), or more than TARN_VOCAB_MOST_LOST of its bytes cannot be used.
TARN_API tarn_status tarn_vocab_train(const char *output, const char *const *files, size_t count,
                                      const tarn_vocab_options *options) TARN_CHECKED;

// Writes GPT-2's vocabulary as one tarn file, atomically, creating its folder. `path` is a folder with vocab.json and
// merges.txt, Hugging Face's names, or else encoder.json and vocab.bpe, OpenAI's; or one of the four files, with the
// other one of its pair in the same folder. The ids must be 0 .. size-1 without gaps, the tokens must include all 256
// bytes and <|endoftext|>, and each merge must combine two tokens into a third. With the tokens <s>, </s> and <mask> it
// is RoBERTa's: <|endoftext|> may be missing and is an ordinary token. Fails with USAGE (another name), IO, or DATA,
// naming the file and the token, or the line and the merge.
TARN_API tarn_status tarn_vocab_import_gpt2(const char *output, const char *path) TARN_CHECKED;

// Writes the vocabulary of a tokenizer.json of Hugging Face's tokenizers as one tarn file, atomically, creating its
// folder. `path` is such a file, or a folder with it; tokenizer_config.json beside it names the tokens that begin and
// end a text. It is byte-pair encoding on bytes, cut as by GPT-2, Llama 3, Qwen2 or SmolLM, or on characters in the
// form of SentencePiece (Metaspace, Prepend) with bytes for characters without a token. Added tokens that are not
// special are found in texts. Fails with USAGE (another name), IO, or DATA, naming the file and a part, key or token
// that tarn does not have.
TARN_API tarn_status tarn_vocab_import_tokenizer(const char *output, const char *path) TARN_CHECKED;

// Whether a WordPiece vocabulary lower-cases text and removes accents.
typedef enum tarn_wordpiece_case {
  TARN_WORDPIECE_CASE_AS_SAID,  // as in tokenizer_config.json; uncased without that file, as in transformers
  TARN_WORDPIECE_CASED,
  TARN_WORDPIECE_UNCASED
} tarn_wordpiece_case;

// Writes BERT's vocabulary as one tarn file, atomically, creating its folder. `path` is a folder with vocab.txt and
// without vocab.json and encoder.json, or a file named vocab.txt: one token per line, without trailing white space, in
// the order of the ids; if a line occurs twice, encoding uses the last one. tokenizer_config.json in the same folder
// may set do_lower_case, strip_accents and tokenize_chinese_chars. [UNK], [CLS] and [SEP] are required. Fails with
// USAGE (another name), IO, or DATA, naming the file and the line or the key.
TARN_API tarn_status tarn_vocab_import_wordpiece(const char *output, const char *path,
                                                 tarn_wordpiece_case casing) TARN_CHECKED;

typedef struct tarn_vocab tarn_vocab;

// Writes the vocabulary of one side of a Marian model of Hugging Face's transformers (the OPUS-MT family) as one tarn
// file, atomically, creating its folder. `folder` has vocab.json, source.spm, target.spm, and optionally
// tokenizer_config.json; if that sets "separate_vocabs", the target side has target_vocab.json. Or it has Marian's own
// files (tarn/lab/foreign.h), to whose tokens <pad> is added, or <start> if they have <pad>. A language code such as
// ">>deu<<" at the beginning of a text is one token; pieces missing from vocab.json are <unk>. Decoding drops special
// tokens, <unk>, and white space at both ends. Fails with IO, or DATA, naming the file and the token or the key.
TARN_API tarn_status tarn_vocab_import_marian(const char *output, const char *folder, bool target) TARN_CHECKED;

// Opens a file, or a copy of its bytes. The kind is detected by the first bytes. A path for tarn_vocab_import_gpt2() or
// tarn_vocab_import_wordpiece() opens the vocabulary that the import would write (with AS_SAID), with the same bytes
// and hash. A file called dict.LANGUAGE.txt is a dictionary of fairseq, one called tokens.NAME.txt a list of tokens as
// torchtext has it, a token a line (docs/vocabularies.md). A damaged file fails with DATA.
TARN_API tarn_status tarn_vocab_open(tarn_vocab **vocab, const char *path) TARN_CHECKED;
TARN_API tarn_status tarn_vocab_open_memory(tarn_vocab **vocab, const void *bytes, size_t size) TARN_CHECKED;
TARN_API void tarn_vocab_close(tarn_vocab **vocab);

// Writes a vocabulary as one tarn file, atomically, creating its folder: for training with that of a checkpoint
// (tarn_checkpoint_vocabs()). Fails with IO.
TARN_API tarn_status tarn_vocab_save(const tarn_vocab *vocab, const char *output) TARN_CHECKED;

// Number of tokens; ids are 0 .. size-1.
TARN_API int32_t tarn_vocab_size(const tarn_vocab *vocab);
// Special ids. Every vocabulary has an end of sentence. A SentencePiece model made elsewhere may lack the begin of
// sentence, which is then -1. GPT-2's has no unknown token (-1), and <|endoftext|> is both begin and end; RoBERTa's may
// have <unk>, which text never produces. WordPiece has [CLS], [SEP] and [UNK]. Padding is -1, except in SentencePiece
// models made elsewhere, RoBERTa's and WordPiece, if they have it.
TARN_API int32_t tarn_vocab_unk(const tarn_vocab *vocab);
TARN_API int32_t tarn_vocab_bos(const tarn_vocab *vocab);
TARN_API int32_t tarn_vocab_eos(const tarn_vocab *vocab);
TARN_API int32_t tarn_vocab_pad(const tarn_vocab *vocab);

// The tokens that begin a row, end its segments, and replace a masked token.
typedef enum tarn_special { TARN_SPECIAL_CLS, TARN_SPECIAL_SEP, TARN_SPECIAL_MASK } tarn_special;
enum { TARN_SPECIAL_COUNT = TARN_SPECIAL_MASK + 1 };
// The id of a special token, or -1 if the vocabulary has none: <cls>, <sep> and <mask> of a vocabulary trained with
// `mask_symbols`; control symbols of these names or [CLS], [SEP] and [MASK] of a SentencePiece model made elsewhere;
// [CLS], [SEP] and [MASK] of WordPiece; <s>, </s> and <mask> of RoBERTa's. Without a separator, the end of sentence
// ends a segment. Text never produces any of them.
TARN_API int32_t tarn_vocab_special(const tarn_vocab *vocab, tarn_special special);
// Whether a word begins with this token: SentencePiece's "▁Haus"; WordPiece's tokens without "##"; tokens of GPT-2 and
// RoBERTa that begin with white space, such as "ĠHaus"; white space itself among bytes and characters; every word of a
// whitespace vocabulary; and every special token, the unknown one included. The first token of a text always begins a
// word.
TARN_API bool tarn_vocab_begins_word(const tarn_vocab *vocab, int32_t id);

// The text of one token ("▁Haus"; GPT-2: "ĠHaus", as in its own files; invisible bytes and characters: "<0x0A>",
// "<U+0020>"), valid until close; "" for an id outside the vocabulary.
TARN_API const char *tarn_vocab_piece(const tarn_vocab *vocab, int32_t id);

// The kind of the vocabulary ("SentencePiece bpe", "GPT-2", "RoBERTa", "WordPiece", "Marian", "words", "bytes",
// "characters"), and its normalisation: the name of SentencePiece's rule; "identity": none; "lower case"; "BERT",
// "BERT, lower case" and "BERT, lower case, no accents" of WordPiece. Valid until close.
TARN_API const char *tarn_vocab_kind(const tarn_vocab *vocab);
TARN_API const char *tarn_vocab_normalization_of(const tarn_vocab *vocab);
// Whether U+200C and U+200D are kept: false if the normalisation replaces or removes one of them.
TARN_API bool tarn_vocab_keeps_joiners(const tarn_vocab *vocab);
// Whether tarn_vocab_open() accepts a file as a vocabulary, judged by its first bytes.
TARN_API bool tarn_vocab_is(const char *path);

// The XXH3-128 hash of the file's bytes as 32 hexadecimal digits, and the bytes themselves; valid until close.
TARN_API const char *tarn_vocab_hash(const tarn_vocab *vocab);
TARN_API const void *tarn_vocab_bytes(const tarn_vocab *vocab, size_t *size);

// Growing buffers for results. Zero-initialise, reuse as often as needed, close at the end.
typedef struct tarn_vocab_ids {
  int32_t *data;
  size_t count, capacity;
  size_t parts;   // parts in which the text was encoded: 1, except for a long one
  size_t broken;  // of these, parts that end within a word
} tarn_vocab_ids;
typedef struct tarn_vocab_text {
  char *data;  // `length` bytes and a zero byte; NULL before the first use
  size_t length, capacity;
} tarn_vocab_text;
TARN_API void tarn_vocab_ids_close(tarn_vocab_ids *ids);
TARN_API void tarn_vocab_text_close(tarn_vocab_text *text);

// Replaces the contents of `ids` by the tokens of `length` bytes of text, without begin and end of sentence. Text never
// produces a special token except the unknown one: "<|endoftext|>" in a text is seven tokens of GPT-2's. SentencePiece
// needs 220 bytes of memory per byte of text, so a text of more than 65536 bytes is split, at spaces, or else at other
// white space, or else within a word. Splits at spaces do not change the tokens of models that split at white space and
// prefix each text with a space, such as those trained by tarn; `ids` counts parts and those that end within a word.
// Invalid UTF-8: GPT-2's vocabulary splits the text as if each maximal invalid subpart were U+FFFD, and encodes the
// bytes unchanged; a byte vocabulary encodes all bytes unchanged; the others replace it by U+FFFD.
TARN_API tarn_status tarn_vocab_encode(const tarn_vocab *vocab, tarn_vocab_ids *ids, const char *text,
                                       size_t length) TARN_CHECKED;

// Receives the tokens of a line; any status but TARN_STATUS_OK stops the work and is returned.
typedef tarn_status (*tarn_vocab_sink)(void *user, const tarn_vocab_ids *ids);

// Encodes the lines of a text file, pipe or device ("-": standard input) and passes each to `sink`, in order. Invalid
// UTF-8 is replaced by U+FFFD, and *replaced counts these lines; `strict` refuses it with DATA. Fails with IO, and with
// DATA if the file is not text (UTF-16, a zero byte, a shard).
TARN_API tarn_status tarn_vocab_encode_file(const tarn_vocab *vocab, int64_t *replaced, const char *path, bool strict,
                                            tarn_vocab_sink sink, void *user) TARN_CHECKED;

// Replaces the contents of `text` by the text of `count` tokens. Special tokens produce no text, except unknown tokens:
// " ⁇ " (SentencePiece), "<unk>" (whitespace), U+FFFD (characters), nothing (bytes, Marian). GPT-2's and byte
// vocabularies produce bytes, which are UTF-8 if the tokens are those of a whole text. An id outside the vocabulary
// fails with DATA.
TARN_API tarn_status tarn_vocab_decode(const tarn_vocab *vocab, tarn_vocab_text *text, const int32_t *ids,
                                       size_t count) TARN_CHECKED;

// Number of characters (Unicode code points) of a UTF-8 text; each maximal invalid subpart counts as one.
TARN_API size_t tarn_vocab_characters(const char *text, size_t length);

#ifdef __cplusplus
}
#endif
#endif
