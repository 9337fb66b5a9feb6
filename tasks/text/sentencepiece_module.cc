// The module realetc_sentencepiece.so: the only place that links
// libsentencepiece. No Abseil here: sentencepiece_processor.h declares an
// absl::string_view of its own.
#include "tasks/text/sentencepiece_module.h"

#include <sentencepiece_processor.h>

#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

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

  bool FindBest(const char* text, size_t text_size,
                BestSegmentations* found) const override {
    try {
      const sentencepiece::ImmutableNBestSentencePieceText two =
          processor_.NBestEncodeAsImmutableProto(
              std::string_view(text, text_size), /*nbest_size=*/2);
      if (two.nbests_size() == 0) {
        return false;
      }
      const sentencepiece::ImmutableSentencePieceText best = two.nbests(0);
      *found = {.best = best.score(),
                .second = two.nbests_size() > 1
                              ? two.nbests(1).score()
                              : -std::numeric_limits<float>::infinity(),
                .text_size = 0};
      const size_t pieces = best.pieces_size();
      for (size_t i = 0; i < pieces; ++i) {
        found->text_size += best.pieces(static_cast<int>(i)).piece().size();
      }
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

constexpr SentencePieceModule kModule = {
    .version = kSentencePieceModuleVersion,
    .load = Load,
};

}  // namespace
}  // namespace etc

extern "C" [[gnu::visibility("default")]] const void*
RealEtcSentencePieceModule() {
  return &etc::kModule;
}
