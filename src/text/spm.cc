#include "text/spm.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <unicode/uchar.h>

#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

extern "C" {
#include "base/memory.h"
#include "base/status.h"
#include "text/utf8.h"
}

// In the library, but not in its installed headers.
namespace sentencepiece {
namespace logging {
void SetMinLogLevel(int level);
}
}  // namespace sentencepiece

struct tarn__spm {
  sentencepiece::SentencePieceProcessor processor;
};

namespace {

void be_quiet() {
  static std::once_flag once;
  std::call_once(once, [] { sentencepiece::logging::SetMinLogLevel(4); });  // above every level but fatal
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
tarn_status forward(const sentencepiece::util::Status &status) {
  if (status.ok()) return TARN_STATUS_OK;
  std::string text = status.ToString();
  const size_t cut = text.rfind("] ");
  if (cut != std::string::npos && cut + 2 < text.size()) text = text.substr(cut + 2);
  const std::string theirs = "--character_coverage";  // an option that is written in our way
  const size_t option = text.find(theirs);
  if (option != std::string::npos) text.replace(option, theirs.size(), "--character-coverage");
  for (char &c : text)
    if (c == '\n' || c == '\r') c = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return tarn__fail(TARN_STATUS_DATA, "SentencePiece: %s", text.c_str());
}

// Whether anything of a line is left behind SentencePiece's normalisation. Its trainers end the process where no line
// has such a character, so they never see the others.
bool is_visible(const char *text, size_t length) {
  for (size_t at = 0; at < length;) {
    int32_t code;
    at += tarn__utf8_decode(&code, text + at, length - at);
    if (code == 0x2581 || code < 0) continue;  // its mark of a space
    if (u_isgraph(code) && !u_hasBinaryProperty(code, UCHAR_DEFAULT_IGNORABLE_CODE_POINT)) return true;
  }
  return false;
}

// Hands the lines of the caller to the trainer, and keeps the caller's failure.
class Lines : public sentencepiece::SentenceIterator {
 public:
  Lines(tarn__text_next next, void *user) : next_(next), user_(user) { advance(); }
  bool done() const override { return done_; }
  void Next() override { advance(); }
  const std::string &value() const override { return value_; }
  sentencepiece::util::Status status() const override { return sentencepiece::util::Status(); }
  tarn_status failure() const { return failure_; }
  bool any() const { return given_; }

 private:
  void advance() {
    const char *text = nullptr;
    size_t length = 0;
    if (failure_ == TARN_STATUS_OK) failure_ = next_(user_, &text, &length);
    while (failure_ == TARN_STATUS_OK && text && !is_visible(text, length)) failure_ = next_(user_, &text, &length);
    done_ = failure_ != TARN_STATUS_OK || text == nullptr;
    if (!done_) value_.assign(text, length);
    given_ |= !done_;
  }

  tarn__text_next next_;
  void *user_;
  tarn_status failure_ = TARN_STATUS_OK;
  bool done_ = false, given_ = false;
  std::string value_;
};

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

tarn_status tarn__spm_encode(const tarn__spm *spm, tarn_vocab_ids *ids, const char *text, size_t length) {
  return guard([&] {
    std::vector<int> found;
    ids->count = 0;
    TARN_TRY(forward(spm->processor.Encode(absl::string_view(text, length), &found)));
    TARN_TRY(tarn__grow(&ids->data, &ids->capacity, found.size(), sizeof(int32_t)));
    for (const int id : found) ids->data[ids->count++] = id;
    return TARN_STATUS_OK;
  });
}

tarn_status tarn__spm_decode(const tarn__spm *spm, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  return guard([&] {
    std::string result;
    TARN_TRY(forward(spm->processor.Decode(std::vector<int>(ids, ids + count), &result)));
    TARN_TRY(tarn__grow(&text->data, &text->capacity, result.size() + 1, 1));
    std::memcpy(text->data, result.c_str(), result.size() + 1);
    text->length = result.size();
    return TARN_STATUS_OK;
  });
}

tarn_status tarn__spm_train(char **bytes, size_t *size, tarn__text_next next, void *user,
                            const tarn_vocab_options *options) {
  *bytes = nullptr;
  *size = 0;
  return guard([&] {
    const std::unordered_map<std::string, std::string> arguments = {
        {"model_type", options->type == TARN_VOCAB_TYPE_UNIGRAM ? "unigram" : "bpe"},
        {"vocab_size", std::to_string(options->size)},
        {"character_coverage", std::to_string(options->character_coverage)},
        {"normalization_rule_name", options->lowercase ? "nmt_nfkc_cf" : "nmt_nfkc"},
        {"input_sentence_size", std::to_string(options->sentences)},
        {"max_sentence_length", "65536"},
        {"num_threads", std::to_string(options->threads)},
        {"unk_id", "0"},
        {"bos_id", "1"},
        {"eos_id", "2"},
        {"pad_id", "-1"},
        {"minloglevel", "4"},
    };
    Lines lines(next, user);
    std::string model;
    sentencepiece::util::Status status;
    if (lines.any()) status = sentencepiece::SentencePieceTrainer::Train(arguments, &lines, &model);
    if (lines.failure() != TARN_STATUS_OK) return lines.failure();  // its message must not be overwritten
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
