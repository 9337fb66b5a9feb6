// The module realetc_sentencepiece.so: the only place that links
// libsentencepiece. No Abseil here: sentencepiece_processor.h declares an
// absl::string_view of its own.
#include "tasks/text/sentencepiece_module.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace etc {
namespace {

class Model final : public SentencePieceModel {
 public:
  // Returns the error in `bytes`, or "".
  std::string Load(std::string_view bytes) {
    const sentencepiece::util::Status status =
        processor_.LoadFromSerializedProto(bytes);
    return status.ok() ? "" : status.ToString();
  }

  void Destroy() override { delete this; }

  int32_t size() const override { return processor_.GetPieceSize(); }

  const char* Piece(int32_t id, size_t* text_size) const override {
    const std::string& piece = processor_.IdToPiece(id);
    *text_size = piece.size();
    return piece.data();
  }

  float Score(int32_t id) const override { return processor_.GetScore(id); }

  int32_t Id(const char* piece, size_t piece_size) const override {
    return processor_.PieceToId(std::string_view(piece, piece_size));
  }

  bool Encode(const char* text, size_t text_size, void* context,
              Visit visit) const override {
    try {
      const sentencepiece::ImmutableSentencePieceText encoded =
          processor_.EncodeAsImmutableProto(std::string_view(text, text_size));
      const size_t pieces = encoded.pieces_size();
      for (size_t i = 0; i < pieces; ++i) {
        const auto piece = encoded.pieces(static_cast<int>(i));
        visit(context, {.text = piece.piece().data(),
                        .text_size = piece.piece().size(),
                        .id = static_cast<int32_t>(piece.id()),
                        .begin = piece.begin(),
                        .end = piece.end()});
      }
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  bool Decode(const int32_t* ids, size_t count, void* context,
              Receive receive) const override {
    try {
      std::string text;
      const std::vector<int> pieces(ids, ids + count);
      if (!processor_.Decode(pieces, &text).ok()) {
        return false;
      }
      receive(context, text.data(), text.size());
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

 private:
  sentencepiece::SentencePieceProcessor processor_;
};

SentencePieceModel* Load(const char* bytes, size_t size, void* context,
                         void (*report)(void* context, const char* message)) {
  try {
    auto model = std::make_unique<Model>();
    const std::string mistake = model->Load(std::string_view(bytes, size));
    if (mistake.empty()) {
      return model.release();
    }
    report(context, mistake.c_str());
  } catch (const std::exception& exception) {
    report(context, exception.what());
  }
  return nullptr;
}

// The sentences that `next` gives.
class Sentences final : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(const SentencePieceTrainingCalls& calls) : calls_(calls) {
    Next();
  }

  bool done() const override { return done_; }
  void Next() override {
    const char* text = nullptr;
    size_t size = 0;
    done_ = !calls_.next(calls_.context, &text, &size);
    sentence_ = done_ ? std::string() : std::string(text, size);
  }
  const std::string& value() const override { return sentence_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const SentencePieceTrainingCalls& calls_;
  bool done_ = false;
  std::string sentence_;
};

// The pairs in "name=value name=value".
std::unordered_map<std::string, std::string> OptionsIn(const char* options) {
  std::unordered_map<std::string, std::string> result;
  std::istringstream words(options);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    result[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return result;
}

bool Train(const char* options, const SentencePieceTrainingCalls& calls) {
  try {
    std::string model;
    Sentences sentences(calls);
    auto all = OptionsIn(options);
    // Nothing but fatal errors is logged: the library logs to std::cerr, and
    // its std::cerr is not the program's where the module is opened with its
    // own symbols first, but one that is never initialised.
    all["minloglevel"] = std::string(1, '3');
    const sentencepiece::util::Status status =
        sentencepiece::SentencePieceTrainer::Train(all, &sentences, &model);
    if (status.ok()) {
      calls.receive(calls.context, model.data(), model.size());
      return true;
    }
    calls.report(calls.context, status.ToString().c_str());
  } catch (const std::exception& exception) {
    calls.report(calls.context, exception.what());
  }
  return false;
}

constexpr SentencePieceModule kModule = {
    .version = kSentencePieceModuleVersion,
    .load = Load,
    .train = Train,
};

}  // namespace
}  // namespace etc

extern "C" [[gnu::visibility("default")]] const void*
RealEtcSentencePieceModule() {
  return &etc::kModule;
}
