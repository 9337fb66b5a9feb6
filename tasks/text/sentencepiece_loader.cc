#include "tasks/text/sentencepiece_loader.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/module_loader.h"
#include "base/status_macros.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"
#include "tasks/text/huggingface/precompiled_map.h"
#include "tasks/text/piece_trie.h"

namespace etc {
namespace {

constexpr ModuleFile kModule = {
    .user = "SentencePiece",
    .name = "realetc_sentencepiece.so",
    .function = kSentencePieceModuleFunction,
    .version = kSentencePieceModuleVersion,
    .clashing_symbol = "_ZN6google8protobuf8internal13VerifyVersionEiiPKc",
    .library = "libsentencepiece.so",
};

// Checks the rules in a NormalizerSpec.
absl::Status CheckNormalizer(absl::string_view message) {
  constexpr uint32_t kPrecompiledCharsmap = 2;
  return VisitProtoFields(message, [](const ProtoField& field) {
    if (field.number != kPrecompiledCharsmap || field.bytes.empty()) {
      return absl::OkStatus();
    }
    return huggingface::PrecompiledMap::Parse(
               field.bytes, "normalizer_spec.precompiled_charsmap")
        .status();
  });
}

// Checks a piece, and adds it to `defined` if users defined it.
absl::Status CheckPiece(absl::string_view message,
                        std::vector<absl::string_view>* defined) {
  constexpr uint32_t kPiece = 1;
  constexpr uint32_t kType = 3;
  constexpr uint32_t kUserDefined = 4;
  absl::string_view piece;
  bool is_defined = false;
  ETC_RETURN_IF_ERROR(VisitProtoFields(message, [&](const ProtoField& field) {
    if (field.number == kPiece && field.type == WireType::kBytes) {
      piece = field.bytes;
      return CheckPieceSize(piece, "pieces");
    }
    is_defined =
        is_defined || (field.number == kType &&
                       static_cast<uint32_t>(field.value) == kUserDefined);
    return absl::OkStatus();
  }));
  if (is_defined && !piece.empty()) {
    defined->push_back(piece);
  }
  return absl::OkStatus();
}

// SentencePiece keeps the pieces that users defined and a text begins with in
// an array of 64.
absl::Status CheckDefinedPieces(std::vector<absl::string_view> defined) {
  constexpr size_t kMost = 64;
  std::sort(defined.begin(), defined.end());
  std::vector<absl::string_view> chain;  // each begins with those before
  for (const absl::string_view piece : defined) {
    while (!chain.empty() && !absl::StartsWith(piece, chain.back())) {
      chain.pop_back();
    }
    chain.push_back(piece);
    if (chain.size() > kMost) {
      return InvalidArgument("at most ", kMost,
                             " pieces that users defined should begin with one "
                             "another, but ",
                             chain.size(), " do");
    }
  }
  return absl::OkStatus();
}

// Checks what the library follows unchecked, out of its memory.
absl::Status CheckModel(absl::string_view model) {
  constexpr uint32_t kPieces = 1;
  constexpr uint32_t kNormalizerSpec = 3;
  constexpr uint32_t kDenormalizerSpec = 5;
  std::vector<absl::string_view> defined;
  ETC_RETURN_IF_ERROR(VisitProtoFields(model, [&](const ProtoField& field) {
    if (field.type != WireType::kBytes) {
      return absl::OkStatus();
    }
    switch (field.number) {
      case kPieces:
        return CheckPiece(field.bytes, &defined);
      case kNormalizerSpec:
      case kDenormalizerSpec:
        return CheckNormalizer(field.bytes);
      default:
        return absl::OkStatus();
    }
  }));
  return CheckDefinedPieces(std::move(defined));
}

}  // namespace

absl::StatusOr<const SentencePieceModule*> OpenSentencePieceModule(
    const std::string& module_path) {
  return OpenModule<SentencePieceModule>(kModule, module_path);
}

std::string SentencePieceReason(absl::string_view error) {
  // The library begins with a place in its source and what it asserts there,
  // and mostly has nothing to add.
  const size_t place_end = error.rfind(']');
  return std::string(absl::StripAsciiWhitespace(
      place_end == absl::string_view::npos ? error
                                           : error.substr(place_end + 1)));
}

absl::StatusOr<SentencePieceModelPtr> LoadSentencePieceModel(
    absl::string_view model, const std::string& source,
    const std::string& module_path) {
  ETC_ASSIGN_OR_RETURN(const auto* const module,
                       OpenSentencePieceModule(module_path));
  if (const absl::Status sound = CheckModel(model); !sound.ok()) {
    return absl::Status(
        sound.code(),
        absl::StrCat(source,
                     absl::IsResourceExhausted(sound)
                         ? ": "
                         : ": should be a SentencePiece model, but is none: ",
                     sound.message()));
  }
  std::string mistake;
  SentencePieceModelPtr loaded(
      module->load(model.data(), model.size(), &mistake,
                   [](void* context, const char* message) {
                     *static_cast<std::string*>(context) = message;
                   }));
  if (loaded == nullptr) {
    const std::string reason = SentencePieceReason(mistake);
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": should be a SentencePiece model, but is none",
                     reason.empty() ? "" : ": ", reason));
  }
  return loaded;
}

absl::StatusOr<std::string> DecodePieces(const SentencePieceModel& model,
                                         const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= model.size()) {
      return InvalidArgument("piece ", id, " should be in [0, ", model.size(),
                             "), the vocabulary");
    }
  }
  std::string text;
  const bool decoded =
      model.Decode(ids.data(), ids.size(), &text,
                   [](void* context, const char* bytes, size_t size) {
                     static_cast<std::string*>(context)->assign(bytes, size);
                   });
  return decoded ? absl::StatusOr<std::string>(std::move(text))
                 : absl::ResourceExhaustedError(
                       "out of memory while decoding pieces");
}

}  // namespace etc
