#include "tasks/pretrain/corpus/corpus_tokenizer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/tokenizer_files.h"
#include "etc/weights/wordpiece_options.h"
#include "tasks/text/load_tokenizer.h"

namespace etc {
namespace {

// Digest of the pieces, so that a tokenizer.json and the vocab.txt that is
// equivalent are the same vocabulary.
std::string WordPieceDigest(const Tokenizer& tokenizer) {
  Sha256 digest;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    digest.Update(absl::StrCat(tokenizer.Piece(id), "\n"));
  }
  return digest.HexDigest();
}

// Digest of the whole vocabulary, which also has scores of pieces, merges and
// the normalizer: of a vocab.json that of the tokenizer.json which a checkpoint
// has in its place.
absl::StatusOr<std::string> ContentsDigest(const TokenizerConfig& config) {
  ETC_ASSIGN_OR_RETURN(const std::string contents,
                       ReadVocabulary(config.type, config.vocabulary));
  Sha256 digest;
  digest.Update(contents);
  return digest.HexDigest();
}

// The options of a tokenizer that are not the defaults, but for lower_case.
std::string WordPieceText(const Tokenizer& tokenizer) {
  if (tokenizer.wordpiece_options() == nullptr) {
    return "";
  }
  WordPieceOptions options = *tokenizer.wordpiece_options();
  if (options.strip_accents == options.lower_case) {
    options.strip_accents.reset();
  }
  const std::string json = WordPieceOptionsToJson(options);
  return json == "{}" ? "" : json;
}

// The pieces that stand within words, by their ids.
std::vector<uint8_t> Continuations(const Tokenizer& tokenizer) {
  const auto size = static_cast<size_t>(tokenizer.vocab_size());
  std::vector<uint8_t> result(size);
  for (size_t id = 0; id < size; ++id) {
    result[id] = tokenizer.ContinuesWord(static_cast<int32_t>(id)) ? 1 : 0;
  }
  return result;
}

}  // namespace

absl::StatusOr<CorpusTokenizer> MakeCorpusTokenizer(
    const TokenizerConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
    const std::string& mask_piece) {
  const bool is_wordpiece = config.type == "wordpiece";
  CorpusTokenizer made;
  TokenStoreSettings& settings = made.settings;
  const bool is_huggingface = config.type == "huggingface";
  settings.tokenizer_kind = is_wordpiece     ? TokenizerKind::kWordPiece
                            : is_huggingface ? TokenizerKind::kHuggingFace
                                             : TokenizerKind::kSentencePiece;
  settings.vocab_size = tokenizer->vocab_size();
  settings.lower_case = tokenizer->lower_cases();
  settings.wordpiece_options = WordPieceText(*tokenizer);
  settings.split_punctuation =
      !is_wordpiece && !is_huggingface && config.split_punctuation;
  if (is_wordpiece) {
    settings.vocabulary_sha256 = WordPieceDigest(*tokenizer);
  } else {
    ETC_ASSIGN_OR_RETURN(settings.vocabulary_sha256, ContentsDigest(config));
  }
  const SpecialIds ids = FindSpecialIds(*tokenizer);
  settings.mask_id = mask_piece.empty() ? ids.mask : tokenizer->Id(mask_piece);
  if (settings.mask_id < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.vocabulary, ": the vocabulary (", settings.vocab_size,
        " pieces) should have ",
        mask_piece.empty() ? "\"[MASK]\" or \"<mask>\""
                           : QuotedName(mask_piece),
        ", which stands for masked tokens in pre-training, but has not; "
        "--mask-piece names another, and `realetc vocabulary --mask` makes a "
        "vocabulary with <mask>"));
  }
  settings.unknown_id = ids.unknown;
  settings.cls_id = tokenizer->Id("[CLS]");
  settings.sep_id = tokenizer->Id("[SEP]");
  if (is_huggingface) {
    settings.cls_id = tokenizer->marks().first;
    settings.sep_id = tokenizer->marks().last;
  }
  made.is_continuation = Continuations(*tokenizer);
  made.tokenizer = std::move(tokenizer);
  return made;
}

}  // namespace etc
