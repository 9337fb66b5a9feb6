#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"
#include "tasks/text/huggingface/characters.h"
#include "tasks/text/huggingface/model.h"
#include "tasks/text/piece_trie.h"
#include "tasks/text/unicode.h"

namespace etc::huggingface {
namespace {

using nlohmann::json;

struct Merge {
  uint32_t rank = 0;
  int32_t id = 0;
};

struct BpeOptions {
  int32_t unknown_id = -1;
  std::string prefix;  // of characters inside a word
  std::string suffix;  // of a word's last character
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
  bool is_byte_level = false;
};

// Merges neighbours, of all the pair with the lowest rank first, and of equals
// the first, until no pair is left that has a rank.
class BpeModel : public Model {
 public:
  using Merges = absl::flat_hash_map<uint64_t, Merge>;

  BpeModel(const Vocabulary& vocabulary, Merges merges, BpeOptions options)
      : merges_(std::move(merges)), options_(std::move(options)) {
    std::string bytes;
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      const std::string& piece = vocabulary.Piece(id);
      if (piece.empty()) {
        continue;
      }
      if (!options_.is_byte_level) {
        ids_.emplace(piece, id);
      } else if (BytesOfPiece(piece, &bytes)) {
        ids_.emplace(bytes, id);
      }
    }
    for (int byte = 0; byte < 256; ++byte) {
      const auto value = static_cast<uint8_t>(byte);
      byte_ids_[value] = options_.is_byte_level
                             ? IdOf(std::string(1, static_cast<char>(value)))
                         : options_.byte_fallback
                             ? IdOf(absl::StrFormat("<0x%02X>", byte))
                             : -1;
    }
    FindWholeWords();
  }

  std::string continuation() const override { return options_.prefix; }

  static uint64_t KeyOf(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
           static_cast<uint32_t>(right);
  }

  void Encode(absl::string_view word,
              std::vector<WordPart>* parts) const override {
    const auto known = whole_words_.find(word);
    if (known != whole_words_.end()) {
      parts->push_back({known->second, 0, static_cast<int64_t>(word.size())});
      return;
    }
    const size_t first = parts->size();
    if (options_.is_byte_level) {
      AppendBytes(word, parts);
    } else {
      AppendCharacters(word, parts);
    }
    MergeParts(first, parts);
  }

 private:
  static constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();
  // Parts of a word above which a heap is faster than to look at all pairs each
  // time.
  static constexpr size_t kShort = 40;

  int32_t IdOf(absl::string_view piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? -1 : found->second;
  }

  // Words that are one piece in the end: most of them, so that their merges
  // are left out.
  void FindWholeWords() {
    if (options_.ignore_merges) {
      whole_words_ = ids_;
    }
    if (!options_.prefix.empty() || !options_.suffix.empty()) {
      return;
    }
    absl::flat_hash_map<std::string, int32_t> found;
    std::vector<WordPart> parts;
    for (const auto& [text, id] : ids_) {
      parts.clear();
      Encode(text, &parts);
      if (parts.size() == 1 && parts[0].id == id) {
        found.emplace(text, id);
      }
    }
    whole_words_ = std::move(found);
  }

  // Appends a character without a piece: `unknown` is what was not appended
  // yet.
  void AddUnknown(WordPart character, std::optional<WordPart>* unknown,
                  std::vector<WordPart>* parts) const {
    if (options_.unknown_id < 0) {
      return;
    }
    if (unknown->has_value() && options_.fuse_unknown) {
      (*unknown)->end = character.end;
      return;
    }
    if (unknown->has_value()) {
      parts->push_back(**unknown);
    }
    *unknown = character;
    (*unknown)->id = options_.unknown_id;
  }

  void AppendBytes(absl::string_view word, std::vector<WordPart>* parts) const {
    std::optional<WordPart> unknown;
    for (size_t i = 0; i < word.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const WordPart part = {byte_ids_[static_cast<uint8_t>(word[i])], at,
                             at + 1};
      if (part.id < 0) {
        AddUnknown(part, &unknown, parts);
        continue;
      }
      if (unknown.has_value()) {
        parts->push_back(*unknown);
        unknown.reset();
      }
      parts->push_back(part);
    }
    if (unknown.has_value()) {
      parts->push_back(*unknown);
    }
  }

  void AppendCharacters(absl::string_view word,
                        std::vector<WordPart>* parts) const {
    std::optional<WordPart> unknown;
    const auto size = static_cast<int64_t>(word.size());
    for (int64_t at = 0; at < size;) {
      const int64_t begin = at;
      NextCodePoint(word, &at);
      const absl::string_view character = word.substr(
          static_cast<size_t>(begin), static_cast<size_t>(at - begin));
      WordPart part = {-1, begin, at};
      std::string spelt;
      if (options_.prefix.empty() && options_.suffix.empty()) {
        part.id = IdOf(character);
      } else {
        spelt = absl::StrCat(begin > 0 ? options_.prefix : "", character,
                             at == size ? options_.suffix : "");
        part.id = IdOf(spelt);
      }
      if (part.id >= 0) {
        if (unknown.has_value()) {
          parts->push_back(*unknown);
          unknown.reset();
        }
        parts->push_back(part);
      } else if (!AppendFallback(spelt.empty() ? character : spelt, part,
                                 parts)) {
        AddUnknown(part, &unknown, parts);
      }
    }
    if (unknown.has_value()) {
      parts->push_back(*unknown);
    }
  }

  // Appends the pieces for the bytes of a character. False if there are none.
  bool AppendFallback(absl::string_view spelt, const WordPart& character,
                      std::vector<WordPart>* parts) const {
    const auto id_of = [this](char byte) {
      return byte_ids_[static_cast<uint8_t>(byte)];
    };
    if (!options_.byte_fallback ||
        std::any_of(spelt.begin(), spelt.end(),
                    [&](char byte) { return id_of(byte) < 0; })) {
      return false;
    }
    for (size_t i = 0; i < spelt.size(); ++i) {
      const int64_t at = std::min(character.begin + static_cast<int64_t>(i),
                                  character.end - 1);
      parts->push_back({id_of(spelt[i]), at, at + 1});
    }
    return true;
  }

  Merge MergeOf(int32_t left, int32_t right) const {
    const auto found = merges_.find(KeyOf(left, right));
    return found == merges_.end() ? Merge{.rank = kNoRank} : found->second;
  }

  void MergeParts(size_t first, std::vector<WordPart>* parts) const {
    if (parts->size() - first <= kShort) {
      MergeFew(first, parts);
    } else {
      MergeMany(first, parts);
    }
  }

  void MergeFew(size_t first, std::vector<WordPart>* parts) const {
    std::array<Merge, kShort> pairs;
    WordPart* const begin = parts->data() + first;
    size_t size = parts->size() - first;
    for (size_t i = 0; i + 1 < size; ++i) {
      pairs[i] = MergeOf(begin[i].id, begin[i + 1].id);
    }
    while (size > 1) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < size; ++i) {
        best = pairs[i].rank < pairs[best].rank ? i : best;
      }
      if (pairs[best].rank == kNoRank) {
        break;
      }
      begin[best].id = pairs[best].id;
      begin[best].end = begin[best + 1].end;
      std::copy(begin + best + 2, begin + size, begin + best + 1);
      std::copy(pairs.begin() + static_cast<std::ptrdiff_t>(best) + 1,
                pairs.begin() + static_cast<std::ptrdiff_t>(size) - 1,
                pairs.begin() + static_cast<std::ptrdiff_t>(best));
      --size;
      if (best > 0) {
        pairs[best - 1] = MergeOf(begin[best - 1].id, begin[best].id);
      }
      if (best + 1 < size) {
        pairs[best] = MergeOf(begin[best].id, begin[best + 1].id);
      }
    }
    parts->resize(first + size);
  }

  // A pair that can be merged, unless one of the two was merged already.
  struct Candidate {
    uint32_t rank;
    size_t left;
    size_t right;
    int32_t left_id;
    int32_t right_id;
    int32_t id;

    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  void MergeMany(size_t first, std::vector<WordPart>* parts) const {
    std::vector<WordPart> all(
        parts->begin() + static_cast<std::ptrdiff_t>(first), parts->end());
    parts->resize(first);
    const size_t size = all.size();
    std::vector<size_t> next(size);
    std::vector<size_t> previous(size);
    std::vector<bool> is_gone(size);
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>
        queue;
    const auto offer = [&](size_t left, size_t right) {
      const Merge merge = MergeOf(all[left].id, all[right].id);
      if (merge.rank != kNoRank) {
        queue.push(
            {merge.rank, left, right, all[left].id, all[right].id, merge.id});
      }
    };
    for (size_t i = 0; i < size; ++i) {
      next[i] = i + 1;
      previous[i] = i - 1;
      if (i + 1 < size) {
        offer(i, i + 1);
      }
    }
    while (!queue.empty()) {
      const Candidate top = queue.top();
      queue.pop();
      if (is_gone[top.left] || is_gone[top.right] ||
          next[top.left] != top.right || all[top.left].id != top.left_id ||
          all[top.right].id != top.right_id) {
        continue;
      }
      all[top.left].id = top.id;
      all[top.left].end = all[top.right].end;
      is_gone[top.right] = true;
      next[top.left] = next[top.right];
      if (next[top.left] < size) {
        previous[next[top.left]] = top.left;
        offer(top.left, next[top.left]);
      }
      if (top.left > 0) {
        offer(previous[top.left], top.left);
      }
    }
    for (size_t i = 0; i < size; i = next[i]) {
      parts->push_back(all[i]);
    }
  }

  const Merges merges_;
  const BpeOptions options_;
  // Pieces by their texts; by their bytes if is_byte_level.
  absl::flat_hash_map<std::string, int32_t> ids_;
  absl::flat_hash_map<std::string, int32_t> whole_words_;
  std::array<int32_t, 256> byte_ids_ = {};
};

// The two halves of a merge: "a b", or a list of both.
absl::StatusOr<std::pair<std::string, std::string>> ReadHalves(
    const json& merge, const std::string& where) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
      merge[1].is_string()) {
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  if (merge.is_string()) {
    const auto text = merge.get<std::string>();
    const std::vector<std::string> halves = absl::StrSplit(text, ' ');
    if (halves.size() == 2) {
      return std::pair(halves[0], halves[1]);
    }
  }
  return InvalidArgument(where, " should be two pieces, but is ",
                         QuotedName(JsonText(merge)));
}

absl::StatusOr<BpeModel::Merges> ReadMerges(const json& list,
                                            const std::string& where,
                                            const Vocabulary& vocabulary,
                                            const std::string& prefix) {
  if (!list.is_array()) {
    return InvalidArgument(where, " should be a list, but is ",
                           list.type_name());
  }
  BpeModel::Merges merges;
  merges.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string merge_where = absl::StrCat(where, "[", i, "]");
    ETC_ASSIGN_OR_RETURN(const auto halves, ReadHalves(list[i], merge_where));
    const auto& [left, right] = halves;
    const std::string whole = absl::StrCat(
        left, right.size() < prefix.size()
                  ? absl::string_view()
                  : absl::string_view(right).substr(prefix.size()));
    for (const std::string& piece : {left, right, whole}) {
      if (vocabulary.Id(piece) < 0) {
        return InvalidArgument(merge_where, " merges ", QuotedName(left),
                               " and ", QuotedName(right), ", but ",
                               QuotedName(piece), " is no piece of vocab");
      }
    }
    merges.insert_or_assign(
        BpeModel::KeyOf(vocabulary.Id(left), vocabulary.Id(right)),
        Merge{.rank = static_cast<uint32_t>(i), .id = vocabulary.Id(whole)});
  }
  return merges;
}

// Options that are not supported together, or not at all.
absl::Status CheckBpe(JsonObjectReader* reader, const BpeOptions& options) {
  const json* dropout = reader->Given("dropout");
  if (dropout != nullptr && *dropout != 0.0) {
    return UnsupportedTokenizer(reader->Where("dropout"), JsonText(*dropout),
                                "null");
  }
  if (options.is_byte_level &&
      (!options.prefix.empty() || !options.suffix.empty())) {
    return UnsupportedTokenizer(
        reader->Where(options.prefix.empty() ? "end_of_word_suffix"
                                             : "continuing_subword_prefix"),
        QuotedName(absl::StrCat(options.prefix, options.suffix)),
        "none behind ByteLevel");
  }
  // Both are spelled anew for each character of a word.
  ETC_RETURN_IF_ERROR(CheckPieceSize(
      options.prefix, reader->Where("continuing_subword_prefix")));
  ETC_RETURN_IF_ERROR(
      CheckPieceSize(options.suffix, reader->Where("end_of_word_suffix")));
  if (options.is_byte_level && options.byte_fallback) {
    return UnsupportedTokenizer(reader->Where("byte_fallback"), "true",
                                "false behind ByteLevel");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReadModelResult> ReadBpe(const json& object,
                                        const std::string& where,
                                        bool is_byte_level) {
  JsonObjectReader reader(object, where);
  BpeOptions options;
  options.is_byte_level = is_byte_level;
  std::string ignored;
  std::optional<std::string> prefix;
  std::optional<std::string> suffix;
  std::optional<std::string> unknown;
  reader.Optional("type", &ignored);
  reader.Optional("continuing_subword_prefix", &prefix);
  reader.Optional("end_of_word_suffix", &suffix);
  reader.Optional("unk_token", &unknown);
  reader.Optional("fuse_unk", &options.fuse_unknown);
  reader.Optional("byte_fallback", &options.byte_fallback);
  reader.Optional("ignore_merges", &options.ignore_merges);
  options.prefix = prefix.value_or("");
  options.suffix = suffix.value_or("");
  reader.Raw("dropout", /*required=*/false);
  const json* vocabulary = reader.Raw("vocab", /*required=*/true);
  const json* merges = reader.Raw("merges", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.Finish());
  ETC_RETURN_IF_ERROR(CheckBpe(&reader, options));
  ReadModelResult result;
  ETC_ASSIGN_OR_RETURN(
      result.vocabulary,
      ReadVocabularyObject(*vocabulary, reader.Where("vocab")));
  if (unknown.has_value()) {
    options.unknown_id = result.vocabulary.Id(*unknown);
    if (options.unknown_id < 0) {
      return InvalidArgument(reader.Where("unk_token"), " is ",
                             QuotedName(*unknown),
                             ", which vocab should have, but has not");
    }
  }
  ETC_ASSIGN_OR_RETURN(BpeModel::Merges read,
                       ReadMerges(*merges, reader.Where("merges"),
                                  result.vocabulary, options.prefix));
  result.model = std::make_unique<BpeModel>(result.vocabulary, std::move(read),
                                            std::move(options));
  return result;
}

}  // namespace etc::huggingface
