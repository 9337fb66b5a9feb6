#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/text/huggingface/model.h"
#include "tasks/text/piece_trie.h"
#include "tasks/text/unicode.h"

namespace etc::huggingface {
namespace {

using nlohmann::json;

// The segmentation of a word with the largest sum of scores.
class UnigramModel : public Model {
 public:
  struct Options {
    int32_t unknown_id = -1;
    bool byte_fallback = false;
  };

  UnigramModel(const Vocabulary& vocabulary, std::vector<double> scores,
               const Options& options)
      : scores_(std::move(scores)), options_(options) {
    constexpr double kUnknownPenalty = 10;
    unknown_score_ = std::numeric_limits<double>::infinity();
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      unknown_score_ =
          std::min(unknown_score_, scores_[static_cast<size_t>(id)]);
      const std::string& piece = vocabulary.Piece(id);
      if (!piece.empty() && vocabulary.Id(piece) == id) {
        trie_.Add(piece, id);
      }
    }
    unknown_score_ -= kUnknownPenalty;
    for (int byte = 0; options.byte_fallback && byte < 256; ++byte) {
      byte_ids_.push_back(vocabulary.Id(absl::StrFormat("<0x%02X>", byte)));
    }
  }

  void Encode(absl::string_view word,
              std::vector<WordPart>* parts) const override {
    const std::vector<Node> best = FindBest(word);
    const size_t first = parts->size();
    for (auto end = static_cast<int64_t>(word.size()); end > 0;) {
      const Node& node = best[static_cast<size_t>(end)];
      // Neighbours that are unknown are one piece.
      if (node.id == options_.unknown_id && parts->size() > first &&
          parts->back().id == options_.unknown_id) {
        parts->back().begin = node.begin;
      } else {
        parts->push_back({node.id, node.begin, end});
      }
      end = node.begin;
    }
    std::reverse(parts->begin() + static_cast<std::ptrdiff_t>(first),
                 parts->end());
    FindUnknown(word, first, parts);
  }

 private:
  // The best segmentation up to a byte.
  struct Node {
    int32_t id = -1;
    int64_t begin = -1;  // of its last piece
    double score = 0;
  };

  std::vector<Node> FindBest(absl::string_view word) const {
    const auto size = static_cast<int64_t>(word.size());
    std::vector<Node> best(word.size() + 1);
    const auto offer = [&best](int32_t id, int64_t begin, int64_t end,
                               double score) {
      Node& node = best[static_cast<size_t>(end)];
      if (node.begin < 0 || score > node.score) {
        node = {.id = id, .begin = begin, .score = score};
      }
    };
    for (int64_t at = 0; at < size;) {
      int64_t next = at;
      NextCodePoint(word, &next);
      const double before = best[static_cast<size_t>(at)].score;
      bool has_character = false;
      trie_.VisitPrefixes(
          word.substr(static_cast<size_t>(at)), [&](PieceTrie::Match match) {
            offer(match.id, at, at + match.length,
                  scores_[static_cast<size_t>(match.id)] + before);
            has_character = has_character || at + match.length == next;
          });
      if (!has_character) {
        offer(options_.unknown_id, at, next, unknown_score_ + before);
      }
      at = next;
    }
    return best;
  }

  // Replaces unknown runs by the piece of that text, or by byte pieces.
  void FindUnknown(absl::string_view word, size_t first,
                   std::vector<WordPart>* parts) const {
    if (std::none_of(parts->begin() + static_cast<std::ptrdiff_t>(first),
                     parts->end(), [this](const WordPart& part) {
                       return part.id == options_.unknown_id;
                     })) {
      return;
    }
    const std::vector<WordPart> found(
        parts->begin() + static_cast<std::ptrdiff_t>(first), parts->end());
    parts->resize(first);
    for (const WordPart& part : found) {
      const absl::string_view text =
          word.substr(static_cast<size_t>(part.begin),
                      static_cast<size_t>(part.end - part.begin));
      const bool is_known = part.id != options_.unknown_id;
      const int32_t id = is_known ? part.id : trie_.Id(text);
      if (id >= 0) {
        parts->push_back({id, part.begin, part.end});
      } else if (!AppendBytes(text, part.begin, parts)) {
        parts->push_back(part);
      }
    }
  }

  // False if there are not pieces for all bytes.
  bool AppendBytes(absl::string_view text, int64_t begin,
                   std::vector<WordPart>* parts) const {
    const auto id_of = [this](char byte) {
      return byte_ids_[static_cast<uint8_t>(byte)];
    };
    if (byte_ids_.empty() ||
        std::any_of(text.begin(), text.end(),
                    [&](char byte) { return id_of(byte) < 0; })) {
      return false;
    }
    for (const char byte : text) {
      parts->push_back({id_of(byte), begin, begin + 1});
      ++begin;
    }
    return true;
  }

  const std::vector<double> scores_;
  const Options options_;
  PieceTrie trie_;
  double unknown_score_ = 0;
  std::vector<int32_t> byte_ids_;  // empty without byte_fallback
};

absl::Status ReadScoredPieces(const json& list, const std::string& where,
                              Vocabulary* vocabulary,
                              std::vector<double>* scores) {
  if (!list.is_array()) {
    return InvalidArgument(where,
                           " should be a list of pieces with scores, but is ",
                           list.type_name());
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const json& entry = list[i];
    const std::string entry_where = absl::StrCat(where, "[", i, "]");
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
        !entry[1].is_number()) {
      return InvalidArgument(entry_where, " should be a piece and its score");
    }
    ETC_RETURN_IF_ERROR(vocabulary->AddAgain(
        entry_where, entry[0].get<std::string>(), static_cast<int64_t>(i)));
    scores->push_back(entry[1].get<double>());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReadModelResult> ReadUnigram(const json& object,
                                            const std::string& where) {
  JsonObjectReader reader(object, where);
  std::string ignored;
  std::optional<int64_t> unknown;
  UnigramModel::Options options;
  reader.Optional("type", &ignored);
  reader.Optional("unk_id", &unknown);
  reader.Optional("byte_fallback", &options.byte_fallback);
  const json* list = reader.Raw("vocab", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.Finish());
  ReadModelResult result;
  std::vector<double> scores;
  ETC_RETURN_IF_ERROR(ReadScoredPieces(*list, reader.Where("vocab"),
                                       &result.vocabulary, &scores));
  ETC_RETURN_IF_ERROR(
      CheckPieceSizes(result.vocabulary, reader.Where("vocab")));
  if (!unknown.has_value() || !result.vocabulary.Has(*unknown)) {
    return InvalidArgument(
        reader.Where("unk_id"), " should be the id of one of the ",
        scores.size(), " pieces, but is ",
        unknown.has_value() ? absl::StrCat(*unknown) : "null");
  }
  options.unknown_id = static_cast<int32_t>(*unknown);
  result.model = std::make_unique<UnigramModel>(result.vocabulary,
                                                std::move(scores), options);
  return result;
}

}  // namespace etc::huggingface
