#include "text/spm.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <new>
#include <streambuf>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

extern "C" {
#include "base/memory.h"
#include "base/status.h"
#include "text/cut.h"
}

// Up to SentencePiece 0.2.0 in the library, but not in its installed headers; later versions declare
// sentencepiece::SetMinLogLevel(), which is found before what a using-directive brings.
namespace sentencepiece {
namespace logging {
void SetMinLogLevel(int level);
}
using namespace logging;
}  // namespace sentencepiece

struct tarn__spm {
  sentencepiece::SentencePieceProcessor processor;
};

namespace {

// sentencepiece::util::Status, or absl::Status after 0.2.0.
using Status = decltype(std::declval<const sentencepiece::SentenceIterator &>().status());

void be_quiet() {
  static std::once_flag once;
  std::call_once(once, [] { sentencepiece::SetMinLogLevel(4); });  // above every level but fatal
}

// Runs C++ code so that every exception becomes a status.
template <class Body>
tarn_status guard(const Body &body) {
  try {
    be_quiet();
    return body();
  } catch (const std::bad_alloc &) {
    return tarn__fail(TARN_STATUS_MEMORY, "out of memory in SentencePiece");
  } catch (const std::exception &error) {
    return tarn__fail(TARN_STATUS_DATA, "SentencePiece: %s", error.what());
  } catch (...) {
    return tarn__fail(TARN_STATUS_DATA, "SentencePiece failed without saying why");
  }
}

// Status messages look like "src/trainer_interface.cc(582) [(a) == (b)] Vocabulary size too high (…)."; a person wants
// the end of it.
tarn_status forward(const Status &status) {
  if (status.ok()) return TARN_STATUS_OK;
  std::string text = status.ToString();
  const size_t cut = text.rfind("] ");
  if (cut != std::string::npos && cut + 2 < text.size()) text = text.substr(cut + 2);
  int asked = 0, least = 0;
  const char *size = std::strstr(text.c_str(), "Vocabulary size ");
  if (size && std::sscanf(size, "Vocabulary size too high (%d). Please set it to a value <= %d.", &asked, &least) == 2)
    return tarn__fail(TARN_STATUS_DATA,
                      "--size %d is too high: the text has no more than %d different pieces, so the largest that works "
                      "is --size %d",
                      asked, least, least);
  if (size && std::sscanf(size, "Vocabulary size is smaller than required_chars. %d vs %d.", &asked, &least) == 2)
    return tarn__fail(TARN_STATUS_DATA,
                      "--size %d is too low: the characters of the text and the special tokens need --size %d, or a "
                      "lower --character-coverage",
                      asked, least);
  const std::string theirs = "--character_coverage";  // an option that is written in our way
  const size_t option = text.find(theirs);
  if (option != std::string::npos) text.replace(option, theirs.size(), "--character-coverage");
  for (char &c : text)
    if (c == '\n' || c == '\r') c = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return tarn__fail(TARN_STATUS_DATA, "SentencePiece: %s", text.c_str());
}

tarn_status put_text(tarn_vocab_text *text, const std::string &result) {
  TARN_TRY(tarn__grow(&text->data, &text->capacity, result.size() + 1, 1));
  std::memcpy(text->data, result.c_str(), result.size() + 1);
  text->length = result.size();
  return TARN_STATUS_OK;
}

// The caller's lines cannot be had: nothing is to be trained on those before.
struct Stopped {};

// Hands the lines of the caller to the trainer, and keeps the caller's failure.
class Lines : public sentencepiece::SentenceIterator {
 public:
  Lines(tarn__text_next next, void *user) : next_(next), user_(user) {}
  void begin() { advance(); }
  bool done() const override { return done_; }
  void Next() override { advance(); }
  const std::string &value() const override { return value_; }
  Status status() const override { return Status(); }
  tarn_status failure() const { return failure_; }
  bool any() const { return given_; }

 private:
  void advance() {
    const char *text = nullptr;
    size_t length = 0;
    failure_ = next_(user_, &text, &length);
    if (failure_ != TARN_STATUS_OK) throw Stopped();
    done_ = text == nullptr;
    if (!done_) value_.assign(text, length);
    given_ |= !done_;
  }

  tarn__text_next next_;
  void *user_;
  tarn_status failure_ = TARN_STATUS_OK;
  bool done_ = false, given_ = false;
  std::string value_;
};

// SentencePiece says how far it is in messages on std::cerr alone: of bpe "Added: freq=8 size=120 ...", and of unigram,
// which begins with many pieces and drops a quarter at a time until a tenth more than wanted are left, "EM sub_iter=0
// size=9000 ...". They are read where somebody is to be told, and never printed. There is one std::cerr: of trainings
// at the same time one is told, and what others write meanwhile is passed over.
class Messages : public std::streambuf {
 public:
  Messages(tarn__spm_tell tell, void *user, const tarn_vocab_options *options)
      : tell_(tell), user_(user), wanted_(static_cast<double>(options->size)), told_(one_, std::defer_lock) {
    if (tell_ && told_.try_lock()) before_ = std::cerr.rdbuf(this);
  }
  ~Messages() override {
    if (!told_.owns_lock()) return;
    std::cerr.rdbuf(before_);
    sentencepiece::SetMinLogLevel(4);
  }
  bool told() const { return told_.owns_lock(); }
  Messages(const Messages &) = delete;
  Messages &operator=(const Messages &) = delete;

 protected:
  int overflow(int c) override {
    if (std::this_thread::get_id() != thread_) return traits_type::not_eof(c);
    if (c == '\n') {
      read();
      line_.clear();
    } else if (c != traits_type::eof() && line_.size() < 1000) {
      line_ += static_cast<char>(c);
    }
    return traits_type::not_eof(c);
  }

 private:
  void read() {
    const char *added = std::strstr(line_.c_str(), "Added: "), *em = std::strstr(line_.c_str(), "EM sub_iter=");
    const char *size = added || em ? std::strstr(line_.c_str(), " size=") : nullptr;
    double pieces = 0;
    if (!size || std::sscanf(size, " size=%lf", &pieces) != 1 || pieces < 1) return;
    if (added) return tell_(user_, pieces, std::fmin(pieces / wanted_, 1.0));
    if (first_ < pieces) first_ = pieces;
    const double all = std::log(first_ / (1.1 * wanted_)), done = std::log(first_ / pieces);
    tell_(user_, pieces, all > 0 ? std::fmin(done / all, 1.0) : 1.0);
  }

  tarn__spm_tell tell_;
  void *user_;
  double wanted_, first_ = 0;
  static std::mutex one_;
  std::unique_lock<std::mutex> told_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::streambuf *before_ = nullptr;
  std::string line_;
};
std::mutex Messages::one_;

// One line, for a model of nothing that a normalisation is taken from.
class OneLine : public sentencepiece::SentenceIterator {
 public:
  bool done() const override { return done_; }
  void Next() override { done_ = true; }
  const std::string &value() const override { return value_; }
  Status status() const override { return Status(); }

 private:
  bool done_ = false;
  const std::string value_ = "a";
};

using Arguments = std::unordered_map<std::string, std::string>;

// Names the rule of a normalisation. One that keeps the joiners is SentencePiece's own without them: its table comes
// from a small model, which is the one way to it that SentencePiece gives.
tarn_status set_normalization(Arguments *arguments, tarn_vocab_normalization normalization) {
  const std::string name = tarn_vocab_normalization_name(normalization);
  (*arguments)["normalization_rule_name"] = name;
  const tarn_vocab_normalization base = tarn__spm_base(normalization);
  if (base == normalization) return TARN_STATUS_OK;
  OneLine line;
  std::string model;
  const Arguments small = {{"model_type", "char"},
                           {"vocab_size", "8"},
                           {"hard_vocab_limit", "false"},
                           {"num_threads", "1"},
                           {"normalization_rule_name", tarn_vocab_normalization_name(base)}};
  TARN_TRY(forward(sentencepiece::SentencePieceTrainer::Train(small, &line, &model)));
  const void *at;
  size_t size;
  TARN_TRY(tarn__spm_check(model.data(), model.size()));
  if (!tarn__spm_table(&at, &size, model.data(), model.size()))
    return tarn__fail(TARN_STATUS_UNSUPPORTED, "this SentencePiece has no table of the normalization %s",
                      tarn_vocab_normalization_name(base));
  std::string table(static_cast<const char *>(at), size);
  tarn__spm_keep_joiners(&table[0], table.size());
  (*arguments)["precompiled_charsmap"] = table;
  return TARN_STATUS_OK;
}

}  // namespace

tarn_status tarn__spm_open(tarn__spm **spm, const void *bytes, size_t size) {
  *spm = nullptr;
  return guard([&] {
    std::unique_ptr<tarn__spm> fresh(new tarn__spm);
    const tarn_status status =
        forward(fresh->processor.LoadFromSerializedProto(absl::string_view(static_cast<const char *>(bytes), size)));
    if (status == TARN_STATUS_OK) *spm = fresh.release();
    return status;
  });
}

void tarn__spm_close(tarn__spm **spm) {
  delete *spm;
  *spm = nullptr;
}

int32_t tarn__spm_size(const tarn__spm *spm) { return spm->processor.GetPieceSize(); }
int32_t tarn__spm_unk(const tarn__spm *spm) { return spm->processor.unk_id(); }
int32_t tarn__spm_bos(const tarn__spm *spm) { return spm->processor.bos_id(); }
int32_t tarn__spm_eos(const tarn__spm *spm) { return spm->processor.eos_id(); }
int32_t tarn__spm_pad(const tarn__spm *spm) { return spm->processor.pad_id(); }
const char *tarn__spm_piece(const tarn__spm *spm, int32_t id) { return spm->processor.IdToPiece(id).c_str(); }

int32_t tarn__spm_control(const tarn__spm *spm, const char *name) {
  const int id = spm->processor.PieceToId(name);
  return id >= 0 && id < spm->processor.GetPieceSize() && spm->processor.IsControl(id) &&
                 spm->processor.IdToPiece(id) == name
             ? id
             : -1;
}

bool tarn__spm_begins_word(const tarn__spm *spm, int32_t id) {
  const std::string &piece = spm->processor.IdToPiece(id);
  return spm->processor.IsControl(id) || piece.compare(0, 3, "\xE2\x96\x81") == 0;
}

tarn_status tarn__spm_encode(const tarn__spm *spm, tarn_vocab_ids *ids, const char *text, size_t length) {
  return guard([&] {
    std::vector<int> found;
    TARN_TRY(forward(spm->processor.Encode(absl::string_view(text, length), &found)));
    TARN_TRY(tarn__grow(&ids->data, &ids->capacity, ids->count + found.size(), sizeof(int32_t)));
    for (const int id : found) ids->data[ids->count++] = id;
    return TARN_STATUS_OK;
  });
}

tarn_status tarn__spm_decode(const tarn__spm *spm, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  return guard([&] {
    std::string result;
    const std::vector<int> list(ids, ids + count);
// Deprecated after 0.2.0, whose own form (a span) versions before do not have.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    const Status status = spm->processor.Decode(list, &result);
#pragma GCC diagnostic pop
    TARN_TRY(forward(status));
    return put_text(text, result);
  });
}

tarn_status tarn__spm_encode_pieces(const tarn__spm *spm, tarn__spm_take take, void *user, const char *text,
                                    size_t length) {
  return guard([&] {
    std::vector<std::string> found;
    TARN_TRY(forward(spm->processor.Encode(absl::string_view(text, length), &found)));
    for (const std::string &piece : found) TARN_TRY(take(user, piece.data(), piece.size()));
    return TARN_STATUS_OK;
  });
}

tarn_status tarn__spm_decode_pieces(const tarn__spm *spm, tarn_vocab_text *text, const char *const *pieces,
                                    size_t count) {
  return guard([&] {
    std::string result;
    const std::vector<std::string> list(pieces, pieces + count);
    TARN_TRY(forward(spm->processor.Decode(list, &result)));
    return put_text(text, result);
  });
}

tarn_status tarn__spm_train(char **bytes, size_t *size, tarn__text_next next, tarn__spm_tell tell, void *user,
                            const tarn_vocab_options *options) {
  *bytes = nullptr;
  *size = 0;
  return guard([&] {
    const double usual = options->byte_fallback ? 0.9995 : 1;
    const double coverage = options->character_coverage > 0 ? options->character_coverage : usual;
    Arguments arguments = {
        {"model_type", options->type == TARN_VOCAB_TYPE_UNIGRAM ? "unigram" : "bpe"},
        {"vocab_size", std::to_string(options->size)},
        {"character_coverage", std::to_string(coverage)},
        {"input_sentence_size", std::to_string(options->sentences)},
        {"max_sentence_length", std::to_string(static_cast<int>(TARN__CUT_LONGEST))},
        {"num_threads", std::to_string(options->threads)},
        {"unk_id", "0"},
        {"bos_id", "1"},
        {"eos_id", "2"},
        {"pad_id", "-1"},
    };
    if (options->byte_fallback) arguments["byte_fallback"] = "true";
    if (options->mask_symbols) arguments["control_symbols"] = "<cls>,<sep>,<mask>";
    TARN_TRY(set_normalization(&arguments, options->normalization));
    Lines lines(next, user);
    std::string model;
    Status status;
    try {
      const Messages messages(tell, user, options);
      if (messages.told()) arguments["minloglevel"] = "0";  // others leave it, as it is that of all trainings
      lines.begin();
      if (lines.any()) status = sentencepiece::SentencePieceTrainer::Train(arguments, &lines, &model);
    } catch (const Stopped &) {
      return lines.failure();  // its message is recorded
    }
    if (!lines.any()) return tarn__fail(TARN_STATUS_DATA, "there is no text to train a vocabulary on");
    TARN_TRY(forward(status));
    void *copy;
    TARN_TRY(tarn__alloc(&copy, TARN__MEMORY_OTHER, model.size(), 1));
    std::memcpy(copy, model.data(), model.size());
    *bytes = static_cast<char *>(copy);
    *size = model.size();
    return TARN_STATUS_OK;
  });
}
