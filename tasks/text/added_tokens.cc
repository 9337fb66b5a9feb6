#include "tasks/text/added_tokens.h"

#include <algorithm>

#include "tasks/text/unicode.h"

namespace etc {
namespace {

bool HasWhiteSpace(absl::string_view text) {
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    if (IsWhiteSpace(NextCodePoint(text, &at))) {
      return true;
    }
  }
  return false;
}

}  // namespace

void AddedTokens::Searched::Add(absl::string_view content, int32_t id) {
  if (!content.empty()) {
    trie.Add(content, id);
    starts[static_cast<uint8_t>(content.front())] = true;
    empty = false;
  }
}

PieceTrie::Match AddedTokens::Searched::At(absl::string_view text,
                                           int64_t at) const {
  return starts[static_cast<uint8_t>(text[at])]
             ? trie.Longest(PieceTrie::kRoot, text.substr(at))
             : PieceTrie::Match();
}

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens,
                         const BasicTokenizerOptions& options)
    : options_(options) {
  for (const AddedToken& token : tokens) {
    const auto id = static_cast<int32_t>(token.id);
    if (token.normalized) {
      normalized_.Add(NormalizeText(token.content, options).text, id);
    } else {
      raw_.Add(token.content, id);
    }
    if (token.single_word) {
      single_words_.insert(id);
    }
    have_blanks_ = have_blanks_ || HasWhiteSpace(token.content);
  }
}

bool AddedTokens::MayStand(int32_t id, absl::string_view text,
                           ByteRange place) const {
  if (single_words_.count(id) == 0) {
    return true;
  }
  int64_t before = place.begin;
  int64_t after = place.end;
  return (before == 0 || !IsWordCharacter(PreviousCodePoint(text, &before))) &&
         (after == static_cast<int64_t>(text.size()) ||
          !IsWordCharacter(NextCodePoint(text, &after)));
}

void AddedTokens::Split(absl::string_view text, VisitText visit_text,
                        VisitToken visit_token) const {
  const auto size = static_cast<int64_t>(text.size());
  int64_t done = 0;
  for (int64_t at = 0; !raw_.empty && at < size;) {
    const PieceTrie::Match match = raw_.At(text, at);
    if (match.id < 0) {
      ++at;
      continue;
    }
    const ByteRange place = {at, at + match.length};
    if (MayStand(match.id, text, place)) {
      SplitNormalized(text, {done, at}, visit_text, visit_token);
      visit_token(match.id, place);
      done = place.end;
    }
    at = place.end;
  }
  SplitNormalized(text, {done, size}, visit_text, visit_token);
}

void AddedTokens::SplitNormalized(absl::string_view text, ByteRange part,
                                  VisitText visit_text,
                                  VisitToken visit_token) const {
  int64_t done = part.begin;
  if (!normalized_.empty && part.begin < part.end) {
    const NormalizedText folded =
        NormalizeText(text.substr(part.begin, part.end - part.begin), options_);
    const auto size = static_cast<int64_t>(folded.text.size());
    for (int64_t at = 0; at < size;) {
      const PieceTrie::Match match = normalized_.At(folded.text, at);
      if (match.id < 0) {
        ++at;
        continue;
      }
      const ByteRange place = {at, at + match.length};
      at = place.end;
      if (!MayStand(match.id, folded.text, place)) {
        continue;
      }
      ByteRange source = folded.sources[place.begin];
      for (int64_t i = place.begin; i < place.end; ++i) {
        source.begin = std::min(source.begin, folded.sources[i].begin);
        source.end = std::max(source.end, folded.sources[i].end);
      }
      source = {source.begin + part.begin, source.end + part.begin};
      // Two tokens of one character: the first has it.
      if (source.begin < done) {
        continue;
      }
      if (done < source.begin) {
        visit_text({done, source.begin});
      }
      visit_token(match.id, source);
      done = source.end;
    }
  }
  if (done < part.end) {
    visit_text({done, part.end});
  }
}

}  // namespace etc
