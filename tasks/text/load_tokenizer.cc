#include "tasks/text/load_tokenizer.h"

#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "etc/weights/tokenizer_files.h"
#include "tasks/text/huggingface/huggingface_tokenizer.h"
#include "tasks/text/sentencepiece_tokenizer.h"
#include "tasks/text/wordpiece_tokenizer.h"

namespace etc {
namespace {

// The id of the first of `pieces` that the vocabulary has, or -1.
int32_t FirstKnownId(const Tokenizer& tokenizer,
                     std::initializer_list<absl::string_view> pieces) {
  for (const absl::string_view piece : pieces) {
    const int32_t id = tokenizer.Id(piece);
    if (id >= 0) {
      return id;
    }
  }
  return -1;
}

// The piece of an id; empty where the vocabulary has none.
std::string PieceOrEmpty(const Tokenizer& tokenizer, int32_t id) {
  try {
    return tokenizer.Piece(id);
  } catch (const std::out_of_range&) {
    return "";
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> MakeTokenizer(
    const TokenizerFiles& files) {
  if (files.type == "sentencepiece") {
    return LoadSentencePieceTokenizer(
        files.vocabulary, {.split_punctuation = files.split_punctuation});
  }
  if (files.type == "huggingface") {
    return LoadHuggingFaceTokenizer(files.vocabulary);
  }
  ETC_ASSIGN_OR_RETURN(const std::string vocabulary,
                       ReadVocabulary(files.type, files.vocabulary));
  return ParseWordPieceTokenizer(vocabulary, files.vocabulary, files.wordpiece);
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadTokenizer(
    const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const TokenizerFiles files, DescribeTokenizerAt(path));
  return MakeTokenizer(files);
}

void WarnOfOtherPieces(const Tokenizer& tokenizer,
                       const std::string& vocabulary,
                       const std::string& weights,
                       std::vector<std::string>* warnings) {
  const absl::StatusOr<TokenizerFiles> files = FindTokenizer(weights);
  if (!files.ok() || files->type.empty() || files->vocabulary == vocabulary) {
    return;
  }
  const absl::StatusOr<std::shared_ptr<const Tokenizer>> trained =
      MakeTokenizer(*files);
  if (!trained.ok()) {
    return;
  }
  const int64_t ids = tokenizer.vocab_size();
  int64_t others = 0;
  for (int32_t id = 0; id < ids; ++id) {
    if (PieceOrEmpty(tokenizer, id) != PieceOrEmpty(**trained, id)) {
      ++others;
    }
  }
  if (others > 0) {
    warnings->push_back(
        absl::StrCat(others, " of ", Counted(ids, "id"), " of ", vocabulary,
                     " are of other pieces than in ", files->vocabulary,
                     ", for which the weights were trained"));
  }
}

SpecialIds FindSpecialIds(const Tokenizer& tokenizer) {
  SpecialIds ids;
  const TextMarkIds marks = tokenizer.marks();
  if (marks.first >= 0 && marks.last >= 0) {
    ids.cls = marks.first;
    ids.separator = marks.last;
    ids.between = marks.between;
  }
  for (const auto& [cls, separator] :
       {std::pair("[CLS]", "[SEP]"), std::pair("<unused_63>", "<unused_2>"),
        // Comes last: models with another pair may have these two as well.
        std::pair("<s>", "</s>")}) {
    if (ids.cls < 0 && tokenizer.Id(cls) >= 0 && tokenizer.Id(separator) >= 0) {
      ids.cls = tokenizer.Id(cls);
      ids.separator = tokenizer.Id(separator);
      break;
    }
  }
  ids.padding = FirstKnownId(tokenizer, {"[PAD]", "<pad>"});
  ids.unknown = FirstKnownId(tokenizer, {"[UNK]", "<unk>"});
  ids.mask = FirstKnownId(tokenizer, {"[MASK]", "<mask>"});
  return ids;
}

}  // namespace etc
