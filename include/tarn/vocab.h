// Vocabularies: what turns a line of text into token ids and back.
//
// One object covers several kinds of file. A SentencePiece model (Kudo and Richardson, EMNLP 2018; byte-pair
// encoding or unigram language model) works on raw text and its decoding gives plain text back. A whitespace vocabulary
// is a list of words for text that is split already. GPT-2's vocabulary (Radford et al. 2019) is byte-pair encoding on
// bytes: no text is unknown, and decoding gives the same bytes back. Byte and character vocabularies are for models of
// characters. Files trained by tarn have the ids 0 = unknown word, 1 = begin of sentence, 2 = end of sentence; for
// others, ask for the ids.
//
// Bits per character and per byte: the length of a sentence's text in bytes and in characters are those of its line,
// or, where only its tokens are at hand, of what tarn_vocab_decode() gives (`length` bytes, tarn_vocab_characters()
// characters). Bytes are exact for GPT-2's and byte vocabularies; a character vocabulary gives one character for each
// token, unknown ones included. A sentence of n tokens is n + 1 predictions, of which the last one, the end of
// sentence, stands for the end of the line, which is no part of either length.
//
// An open vocabulary does not change: encode and decode may be called from several threads at once.
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

// How SentencePiece's vocabularies change a text before they cut it into pieces, in training and in every use. All but
// `identity` apply Unicode's compatibility composition (NFKC); those with `cf` fold the case too. Those with `nmt` also
// remove control characters and turn white space of all kinds, U+200B, U+200C, U+200E, U+200F, U+FEFF and U+FFFD into
// blanks (some versions of SentencePiece U+200D as well); with `joiners` they leave U+200C and U+200D, which spell
// words in Persian, Sinhala, Hindi and others, as they are. Of all of them runs of blanks become one, blanks at both
// ends go, and U+2581, which SentencePiece writes for a blank, becomes one; without `nmt` a tab is unknown.
typedef enum tarn_vocab_normalization {
  TARN_VOCAB_NORMALIZATION_AUTO,  // nmt_nfkc, or nmt_nfkc_joiners where the text spells words with joiners: in one of
                                  // 10,000 lines or more, between letters that join
  TARN_VOCAB_NORMALIZATION_NMT_NFKC,
  TARN_VOCAB_NORMALIZATION_NMT_NFKC_JOINERS,
  TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF,
  TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF_JOINERS,
  TARN_VOCAB_NORMALIZATION_NFKC,
  TARN_VOCAB_NORMALIZATION_NFKC_CF,
  TARN_VOCAB_NORMALIZATION_IDENTITY
} tarn_vocab_normalization;
enum { TARN_VOCAB_NORMALIZATION_COUNT = TARN_VOCAB_NORMALIZATION_IDENTITY + 1 };
// "auto", "nmt_nfkc", "nmt_nfkc_joiners", ...; "" for no value of the above.
TARN_API const char *tarn_vocab_normalization_name(tarn_vocab_normalization normalization);

// What became of the text that a vocabulary was trained on.
typedef struct tarn_vocab_report {
  int64_t lines;        // of all files
  int64_t bytes;        // of their text, without ends of lines and lines of white space
  int64_t used_bytes;   // of these, given to the training (SentencePiece may draw `sentences` of its lines)
  int64_t given;        // lines given to the training, each part of a long one counted
  int64_t drawn;        // of those, the lines of the sample that was drawn to keep within `memory`; 0: all
  int64_t long_lines;   // of more than 65536 bytes, which were split at white space; SentencePiece only, as all below
  int64_t split_words;  // times that a word was split, being longer than 16384 bytes itself
  int64_t reserved;     // characters U+2585, which SentencePiece keeps for itself; a blank took their place
  int64_t invisible_bytes;  // in lines without a visible character, which were left out
  int64_t replaced;         // lines in which invalid UTF-8 was replaced by U+FFFD; every type
  int64_t replaced_bytes;   // that were invalid in them
  int64_t joined;           // lines in which a joiner stands between letters that join; SentencePiece only
  tarn_vocab_normalization normalization;  // that was taken; AUTO: the type has none
} tarn_vocab_report;

#define TARN_VOCAB_MOST_LOST 0.01         // of the bytes of a text may be lost without `allow_loss`
#define TARN_VOCAB_MEMORY 8000000000LL    // bytes; see tarn_vocab_options
#define TARN_VOCAB_LEAST_MEMORY 64000000  // bytes
#define TARN_VOCAB_UNKNOWN_WARNED 0.01    // commands warn above this share of unknown tokens

// What a type does not take must stand at its default.
typedef struct tarn_vocab_options {
  tarn_vocab_type type;  // default: byte-pair encoding
  // Tokens of the vocabulary with the special ones, 4 .. 1000000 (with `mask_symbols` 7 ..); default 8000.
  // SentencePiece gives exactly this many or fails; a whitespace or character vocabulary has at most this many; a byte
  // vocabulary has 259 or 262 and takes none.
  int64_t size;
  // Share of the text's characters that get tokens of their own, 0.9 .. 1; default 1. SentencePiece only.
  double character_coverage;
  // Fold the case of all text, in training and in encoding; default false. SentencePiece normalises by nmt_nfkc_cf
  // instead of nmt_nfkc, so it goes with `normalization` AUTO only. A byte vocabulary refuses it.
  bool lowercase;
  // Words or characters that are rarer are left out, at least 1; default 1. Whitespace and characters only.
  int64_t minimum_count;
  // Train on at most this many lines, more than 100, sampled from all files with a fixed seed; default 0: all.
  // SentencePiece only.
  int64_t sentences;
  // Threads of the training, 1 .. 1024; default 2. SentencePiece only. Unigram probabilities are summed thread by
  // thread, so this number is part of the result; it is a constant by default, so that equal text gives equal bytes on
  // every machine.
  int threads;
  // Bytes of memory that the training takes, approximately; TARN_VOCAB_LEAST_MEMORY or more. Default 0:
  // TARN_VOCAB_MEMORY, a constant, so that equal text gives equal bytes on every machine. SentencePiece keeps its text
  // in memory; where that would take more, it is given a sample of the lines, drawn from the whole text with a fixed
  // seed, each line with the same probability. With `sentences` it keeps that many lines only, and this has no effect.
  // SentencePiece only.
  int64_t memory;
  // Add <cls>, <sep> and <mask> as control symbols, which never result from text: masked language models need <mask>,
  // and classification with head.pool: cls needs <cls>. Default false. They count in `size`.
  bool mask_symbols;
  bool allow_loss;  // default false: the training fails where more than 1 % of the text cannot be used
  // Default AUTO, for which the whole text is looked at first; with `sentences`, which leaves no text in memory, files
  // are read twice, and a pipe in which it would be a `joiners` is refused. SentencePiece only.
  tarn_vocab_normalization normalization;
  // Filled in, also where the training fails; default NULL: no report, but a warning where words were split.
  tarn_vocab_report *report;
} tarn_vocab_options;

TARN_API void tarn_vocab_default(tarn_vocab_options *options);

// Trains a vocabulary on the lines of all `files` together and writes it to `output`, atomically. The
// folder of `output` is made if it does not exist. SentencePiece is given lines of more than 65536 bytes in parts, cut
// at white space, and words of more than 16384 bytes too, on which its trainers would end the process. Invalid UTF-8 is
// replaced by U+FFFD, and counts as lost. A byte vocabulary takes no file, the others need one. Fails with USAGE
// (options, files), IO, or DATA: a file is no text, the text has too few distinct pieces or too many characters for the
// size (the message says which size works), or more than TARN_VOCAB_MOST_LOST of its bytes cannot be used.
TARN_API tarn_status tarn_vocab_train(const char *output, const char *const *files, size_t count,
                                      const tarn_vocab_options *options) TARN_CHECKED;

// Writes GPT-2's vocabulary as one file of ours, atomically, making its folder. `path` is a folder that holds
// vocab.json and merges.txt, as Hugging Face names them, or else encoder.json and vocab.bpe, as OpenAI did; or one of
// the four files, with the other one of its pair beside it. The ids must be 0 .. size-1 without gaps, with all
// 256 bytes and <|endoftext|> among the tokens, and each merge must be of two tokens and make a third one. With <s>,
// </s> and <mask> among the tokens it is RoBERTa's: <|endoftext|> may be missing and is a token like others. Fails with
// USAGE (another name), IO, or DATA, naming the file and the token, or the line and the merge.
TARN_API tarn_status tarn_vocab_import_gpt2(const char *output, const char *path) TARN_CHECKED;

// Whether a WordPiece vocabulary lower-cases text and removes accents.
typedef enum tarn_wordpiece_case {
  TARN_WORDPIECE_CASE_AS_SAID,  // by tokenizer_config.json; uncased without that file, as in the package transformers
  TARN_WORDPIECE_CASED,
  TARN_WORDPIECE_UNCASED
} tarn_wordpiece_case;

// Writes BERT's vocabulary as one file of ours, atomically, making its folder. `path` is a folder that holds vocab.txt
// and neither vocab.json nor encoder.json, or a file named vocab.txt: a token a line, without the white space at its
// end, in the order of the ids; if a line occurs twice, text is encoded with the last. tokenizer_config.json beside it
// may set do_lower_case, strip_accents and tokenize_chinese_chars. [UNK], [CLS] and [SEP] must be there. Fails with
// USAGE (another name), IO, or DATA, naming the file and the line or the key.
TARN_API tarn_status tarn_vocab_import_wordpiece(const char *output, const char *path,
                                                 tarn_wordpiece_case casing) TARN_CHECKED;

typedef struct tarn_vocab tarn_vocab;

// Writes the vocabulary of one side of a Marian model of Hugging Face's package transformers (the OPUS-MT family) as
// one file of ours, atomically, making its folder. `folder` holds vocab.json, source.spm and target.spm, and may hold
// tokenizer_config.json; with "separate_vocabs" there the target side has target_vocab.json. A language code such as
// ">>deu<<" at the beginning of a text is one token; pieces that vocab.json does not have are <unk>. Decoding leaves
// out special tokens and <unk>, and white space at both ends. Fails with IO, or DATA, naming the file and the token or
// the key.
TARN_API tarn_status tarn_vocab_import_marian(const char *output, const char *folder, bool target) TARN_CHECKED;

// Opens a file, or a copy of the bytes of one. The kinds are told apart by their first bytes. A path that
// tarn_vocab_import_gpt2() or tarn_vocab_import_wordpiece() takes opens the vocabulary as that makes it (with the case
// as said), with the same bytes and hash. A damaged file fails with DATA.
TARN_API tarn_status tarn_vocab_open(tarn_vocab **vocab, const char *path) TARN_CHECKED;
TARN_API tarn_status tarn_vocab_open_memory(tarn_vocab **vocab, const void *bytes, size_t size) TARN_CHECKED;
TARN_API void tarn_vocab_close(tarn_vocab **vocab);

// Number of tokens; ids are 0 .. size-1.
TARN_API int32_t tarn_vocab_size(const tarn_vocab *vocab);
// Special ids. Every vocabulary has an end of sentence. A SentencePiece model made elsewhere may lack the begin of
// sentence, which then is -1. GPT-2's has no unknown token (-1), and <|endoftext|> is both begin and end; RoBERTa's may
// have <unk>, which no text gives. WordPiece has [CLS], [SEP] and [UNK]. Padding is -1 but for SentencePiece models
// made elsewhere, RoBERTa's and WordPiece where they have it.
TARN_API int32_t tarn_vocab_unk(const tarn_vocab *vocab);
TARN_API int32_t tarn_vocab_bos(const tarn_vocab *vocab);
TARN_API int32_t tarn_vocab_eos(const tarn_vocab *vocab);
TARN_API int32_t tarn_vocab_pad(const tarn_vocab *vocab);

// The tokens that begin a row, end its segments, and replace a masked token.
typedef enum tarn_special { TARN_SPECIAL_CLS, TARN_SPECIAL_SEP, TARN_SPECIAL_MASK } tarn_special;
enum { TARN_SPECIAL_COUNT = TARN_SPECIAL_MASK + 1 };
// Its id, or -1 where the vocabulary has none. <cls>, <sep> and <mask> of a vocabulary that was trained with
// `mask_symbols`; control symbols named so or [CLS], [SEP] and [MASK] of a SentencePiece model made elsewhere; [CLS],
// [SEP] and [MASK] of WordPiece; <s>, </s> and <mask> of RoBERTa's. The end of sentence stands for the end of a segment
// where there is no other. Text never gives any of them.
TARN_API int32_t tarn_vocab_special(const tarn_vocab *vocab, tarn_special special);
// Whether a word begins with this token: SentencePiece's "▁Haus"; WordPiece's tokens without "##"; "ĠHaus" and other
// tokens of GPT-2 and RoBERTa that begin with white space; white space itself among bytes and characters; every word of
// a whitespace vocabulary; and every special token, the unknown one included. The first token of a text begins a word
// whatever it is.
TARN_API bool tarn_vocab_begins_word(const tarn_vocab *vocab, int32_t id);

// The text of one token ("▁Haus"; GPT-2: "ĠHaus", as in its own files; bytes and characters that cannot be seen:
// "<0x0A>", "<U+0020>"), valid until close; "" for an id outside the vocabulary.
TARN_API const char *tarn_vocab_piece(const tarn_vocab *vocab, int32_t id);

// Its kind in words ("SentencePiece bpe", "GPT-2", "RoBERTa", "WordPiece", "Marian", "words", "bytes", "characters"),
// and how it changes a text before it cuts it: the name of SentencePiece's rule; "identity": not at all; "lower case";
// "BERT", "BERT, lower case" and "BERT, lower case, no accents" of WordPiece. Valid until close.
TARN_API const char *tarn_vocab_kind(const tarn_vocab *vocab);
TARN_API const char *tarn_vocab_normalization_of(const tarn_vocab *vocab);
// Whether U+200C and U+200D stay in a text: false where the normalization replaces or removes one of them.
TARN_API bool tarn_vocab_keeps_joiners(const tarn_vocab *vocab);
// Whether a file is a vocabulary that tarn_vocab_open() takes, by its first bytes.
TARN_API bool tarn_vocab_is(const char *path);

// The XXH3-128 hash of the file's bytes as 32 hexadecimal digits, and the bytes themselves; valid until close.
TARN_API const char *tarn_vocab_hash(const tarn_vocab *vocab);
TARN_API const void *tarn_vocab_bytes(const tarn_vocab *vocab, size_t *size);

// Growing buffers for results. Zero-initialise, use again as often as you like, close at the end.
typedef struct tarn_vocab_ids {
  int32_t *data;
  size_t count, capacity;
  size_t parts;   // in which the text was encoded: 1, but for a long one
  size_t broken;  // of these that end within a word
} tarn_vocab_ids;
typedef struct tarn_vocab_text {
  char *data;  // `length` bytes and a zero byte; NULL before the first use
  size_t length, capacity;
} tarn_vocab_text;
TARN_API void tarn_vocab_ids_close(tarn_vocab_ids *ids);
TARN_API void tarn_vocab_text_close(tarn_vocab_text *text);

// Replaces the contents of `ids` by the tokens of `length` bytes of text, without begin and end of sentence. Text never
// gives a special token other than the unknown one: "<|endoftext|>" in a text is seven tokens of GPT-2's.
// SentencePiece, which takes 220 bytes of memory for each byte of a text, is given more than 65536 bytes in parts, cut
// at blanks, or else at other white space, or else within a word. At blanks the tokens are those of the whole text with
// models that split at white space and begin each text with a blank, as those that tarn trains do; parts, and those
// that end within a word, are counted in `ids`. Invalid UTF-8: GPT-2's vocabulary cuts the text into pieces as if each
// maximal invalid subpart were U+FFFD, and encodes the bytes as they are; a byte vocabulary knows nothing else; the
// others see U+FFFD.
TARN_API tarn_status tarn_vocab_encode(const tarn_vocab *vocab, tarn_vocab_ids *ids, const char *text,
                                       size_t length) TARN_CHECKED;

// Receives the tokens of a line; anything but TARN_STATUS_OK stops the work and is returned to the caller.
typedef tarn_status (*tarn_vocab_sink)(void *user, const tarn_vocab_ids *ids);

// Encodes the lines of a text file, or of a pipe or device ("-": standard input), and gives each to `sink`, in order.
// Invalid UTF-8 is replaced by U+FFFD, and *replaced counts the lines where it was; `strict` refuses it with DATA.
// Fails with IO as well, and with DATA where the file is not text (UTF-16, a zero byte, a shard).
TARN_API tarn_status tarn_vocab_encode_file(const tarn_vocab *vocab, int64_t *replaced, const char *path, bool strict,
                                            tarn_vocab_sink sink, void *user) TARN_CHECKED;

// Replaces the contents of `text` by the text of `count` tokens. Special tokens give nothing; but unknown tokens
// give " ⁇ " (SentencePiece), "<unk>" (whitespace), U+FFFD (characters) or nothing (bytes, Marian). GPT-2's and byte
// vocabularies give bytes, which are UTF-8 if the tokens are of a whole text. An id outside the vocabulary fails with
// DATA.
TARN_API tarn_status tarn_vocab_decode(const tarn_vocab *vocab, tarn_vocab_text *text, const int32_t *ids,
                                       size_t count) TARN_CHECKED;

// Characters (Unicode code points) of a text in UTF-8; each maximal invalid subpart counts as one.
TARN_API size_t tarn_vocab_characters(const char *text, size_t length);

#ifdef __cplusplus
}
#endif
#endif
