#include "tasks/text/wordpiece_tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "etc/weights/tokenizer_files.h"
#include "tasks/text/basic_tokenizer.h"
#include "tasks/text/piece_trie.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

// The limit of doc/formats.md 0.2.
constexpr size_t kMaxLines = 10'000'000;

constexpr absl::string_view kContinuation = "##";
constexpr absl::string_view kUnknown = "[UNK]";

bool HasWhiteSpace(absl::string_view text) {
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    if (IsWhiteSpace(NextCodePoint(text, &at))) {
      return true;
    }
  }
  return false;
}

class WordPieceTokenizer : public Tokenizer {
 public:
  // `trie` has the pieces that words are cut into, `outside` the others.
  WordPieceTokenizer(std::vector<std::string> pieces, PieceTrie trie,
                     PieceTrie outside, const WordPieceOptions& options)
      : pieces_(std::move(pieces)),
        trie_(std::move(trie)),
        outside_(std::move(outside)),
        options_(options),
        basic_options_(
            {.lower_case = options.lower_case,
             .strip_accents = options.strip_accents,
             .tokenize_chinese_chars = options.tokenize_chinese_chars,
             .clean_text = options.clean_text}),
        continuation_(trie_.Walk(PieceTrie::kRoot, kContinuation)),
        unknown_id_(trie_.Id(kUnknown)) {
    for (AddedToken token : options.added_tokens) {
      token.lstrip = token.rstrip = false;  // white space has no pieces
      if (token.normalized) {
        normalized_.Add(token,
                        NormalizeText(token.content, basic_options_).text);
      } else {
        raw_.Add(token, token.content);
      }
      has_blanks_ = has_blanks_ || HasWhiteSpace(token.content);
    }
  }

  // Its words are VisitBasicWords'. A token with a blank would be cut.
  const CuttingPlaces& cutting_places() const override {
    return has_blanks_ ? Tokenizer::cutting_places()
                       : CuttingPlacesOfBasicWords();
  }

  std::vector<Token> Encode(absl::string_view text) const override {
    std::vector<Token> pieces;
    raw_.Split(
        text, [&](ByteRange part) { AppendPart(text, part, &pieces); },
        [&](int32_t id, ByteRange source) {
          pieces.push_back({id, source.begin, source.end});
        });
    return pieces;
  }

  int64_t vocab_size() const override {
    return static_cast<int64_t>(pieces_.size());
  }
  std::string Piece(int32_t id) const override { return pieces_.at(id); }
  int32_t Id(absl::string_view piece) const override {
    const int32_t id = trie_.Id(piece);
    return id >= 0 ? id : outside_.Id(piece);
  }
  bool lower_cases() const override { return options_.lower_case; }
  bool ContinuesWord(int32_t id) const override {
    return absl::StartsWith(pieces_.at(id), kContinuation);
  }
  const WordPieceOptions* wordpiece_options() const override {
    return &options_;
  }

 private:
  // Appends the pieces of a part of `text` without tokens of raw_.
  void AppendPart(absl::string_view text, ByteRange part,
                  std::vector<Token>* pieces) const {
    int64_t done = part.begin;
    if (!normalized_.empty()) {
      const NormalizedText folded = NormalizeText(
          text.substr(part.begin, part.end - part.begin), basic_options_);
      const auto append_token = [&](int32_t id, ByteRange place) {
        ByteRange source = folded.sources[place.begin];
        for (int64_t i = place.begin; i < place.end; ++i) {
          source.begin = std::min(source.begin, folded.sources[i].begin);
          source.end = std::max(source.end, folded.sources[i].end);
        }
        source = {source.begin + part.begin, source.end + part.begin};
        // Two tokens of one character: the first has it.
        if (source.begin >= done) {
          AppendWords(text, {done, source.begin}, pieces);
          pieces->push_back({id, source.begin, source.end});
          done = source.end;
        }
      };
      normalized_.Split(
          folded.text, [](ByteRange /*part*/) {}, append_token);
    }
    AppendWords(text, {done, part.end}, pieces);
  }

  // Appends the pieces of a part of `text` without added tokens.
  void AppendWords(absl::string_view text, ByteRange part,
                   std::vector<Token>* pieces) const {
    const size_t first = pieces->size();
    VisitBasicWords(
        text.substr(part.begin, part.end - part.begin), basic_options_,
        [this, pieces](const BasicWord& word) { Append(word, pieces); });
    for (size_t i = first; part.begin > 0 && i < pieces->size(); ++i) {
      (*pieces)[i].begin += part.begin;
      (*pieces)[i].end += part.begin;
    }
  }

  void Append(const BasicWord& word, std::vector<Token>* pieces) const {
    const size_t first = pieces->size();
    const absl::string_view text = word.text();
    const auto size = static_cast<int64_t>(text.size());
    bool known = size <= options_.max_word_code_points ||
                 CountCodePoints(text) <= options_.max_word_code_points;
    // Pieces and words are valid UTF-8, so that a match never ends within a
    // code point.
    for (int64_t at = 0; known && at < size;) {
      const PieceTrie::Match match = trie_.Longest(
          at == 0 ? PieceTrie::kRoot : continuation_, text.substr(at));
      known = match.id >= 0;
      if (known) {
        const ByteRange source = word.Source(at, at + match.length);
        pieces->push_back({match.id, source.begin, source.end});
        at += match.length;
      }
    }
    if (!known) {
      const ByteRange source = word.Source();
      pieces->resize(first);
      pieces->push_back({unknown_id_, source.begin, source.end});
    }
  }

  const std::vector<std::string> pieces_;
  const PieceTrie trie_;
  const PieceTrie outside_;
  const WordPieceOptions options_;
  const BasicTokenizerOptions basic_options_;
  AddedTokenSearch raw_;
  AddedTokenSearch normalized_;
  // An added token has white space in it.
  bool has_blanks_ = false;
  const PieceTrie::Node continuation_;
  const int32_t unknown_id_;
};

// A line, or the beginning of a long one, for messages.
std::string Quoted(absl::string_view line) {
  constexpr size_t kShown = 60;
  return absl::StrCat("\"", Printable(line.substr(0, kShown)),
                      line.size() > kShown ? "..." : "", "\"");
}

absl::Status CheckLine(absl::string_view line, const std::string& where) {
  if (line.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": a piece should be here, but the line is empty"));
  }
  ETC_RETURN_IF_ERROR(CheckPieceSize(line, where));
  if (CountIllFormedUtf8(line) > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": a piece should be UTF-8, but ", Quoted(line), " is not"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> ParseWordPieceTokenizer(
    absl::string_view vocabulary, const std::string& source,
    const WordPieceOptions& options) {
  const std::vector<absl::string_view> lines = VocabularyLines(vocabulary);
  if (lines.size() > kMaxLines) {
    return absl::ResourceExhaustedError(
        absl::StrCat(source, ": a vocabulary may have ", kMaxLines,
                     " pieces, but this one has ", lines.size()));
  }
  std::vector<std::string> pieces;
  PieceTrie trie;
  PieceTrie outside;
  std::set<int64_t> outside_ids;
  for (const AddedToken& token : options.added_tokens) {
    if (token.outside) {
      outside_ids.insert(token.id);
    }
  }
  for (const absl::string_view line : lines) {
    const auto id = static_cast<int32_t>(pieces.size());
    const std::string where = absl::StrCat(source, ":", id + 1);
    ETC_RETURN_IF_ERROR(CheckLine(line, where));
    PieceTrie& place = outside_ids.count(id) > 0 ? outside : trie;
    int32_t earlier = place.Add(line, id);
    if (earlier < 0 && !outside_ids.empty()) {
      earlier = (&place == &trie ? outside : trie).Id(line);
    }
    if (earlier >= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": ", Quoted(line), " is in line ", earlier + 1, " already"));
    }
    pieces.emplace_back(line);
  }
  for (const absl::string_view required :
       {absl::string_view("[PAD]"), kUnknown, absl::string_view("[CLS]"),
        absl::string_view("[SEP]")}) {
    if (trie.Id(required) < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": the vocabulary (", pieces.size(),
                       " pieces) should have ", required, ", but has not"));
    }
  }
  for (const AddedToken& token : options.added_tokens) {
    const int32_t id = (token.outside ? outside : trie).Id(token.content);
    if (id != token.id) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": the added token ", Quoted(token.content),
                       " has the id ", token.id, ", but the vocabulary has ",
                       id < 0 ? "no such piece" : absl::StrCat(id)));
    }
  }
  return absl::make_unique<WordPieceTokenizer>(
      std::move(pieces), std::move(trie), std::move(outside), options);
}

}  // namespace etc
