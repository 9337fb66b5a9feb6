#include "tasks/text/huggingface/added_vocabulary.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"
#include "tasks/text/huggingface/characters.h"
#include "tasks/text/unicode.h"

namespace etc::huggingface {

void AddedVocabulary::Searched::Add(const AddedToken& token,
                                    absl::string_view content) {
  if (content.empty()) {
    return;
  }
  const auto id = static_cast<int32_t>(token.id);
  trie_.Add(content, id);
  starts_[static_cast<uint8_t>(content.front())] = true;
  tokens_.insert_or_assign(id, token);
}

ByteRange AddedVocabulary::Searched::PlaceOf(int32_t id, absl::string_view text,
                                             ByteRange found,
                                             int64_t done) const {
  const AddedToken& token = tokens_.at(id);
  const auto size = static_cast<int64_t>(text.size());
  ByteRange place = found;
  int64_t before = place.begin;
  int64_t after = place.end;
  if (token.single_word &&
      ((before > 0 && IsWordCharacter(PreviousCodePoint(text, &before))) ||
       (after < size && IsWordCharacter(NextCodePoint(text, &after))))) {
    return {};
  }
  for (before = place.begin; token.lstrip && before > done;) {
    if (!IsWhiteSpace(PreviousCodePoint(text, &before))) {
      break;
    }
    place.begin = std::max(before, done);
  }
  for (after = place.end; token.rstrip && after < size;) {
    if (!IsWhiteSpace(NextCodePoint(text, &after))) {
      break;
    }
    place.end = after;
  }
  return place;
}

void AddedVocabulary::Searched::Split(absl::string_view text,
                                      VisitText visit_text,
                                      VisitToken visit_token) const {
  const auto size = static_cast<int64_t>(text.size());
  int64_t done = 0;
  for (int64_t at = 0; !tokens_.empty() && at < size;) {
    const auto index = static_cast<size_t>(at);
    const PieceTrie::Match match =
        starts_[static_cast<uint8_t>(text[index])]
            ? trie_.Longest(PieceTrie::kRoot, text.substr(index))
            : PieceTrie::Match();
    if (match.id < 0) {
      ++at;
      continue;
    }
    const ByteRange place =
        PlaceOf(match.id, text, {.begin = at, .end = at + match.length}, done);
    at += match.length;
    if (place.begin == place.end) {
      continue;
    }
    if (done < place.begin) {
      visit_text({.begin = done, .end = place.begin});
    }
    visit_token(match.id, place);
    done = place.end;
  }
  if (done < size) {
    visit_text({.begin = done, .end = size});
  }
}

AddedVocabulary::AddedVocabulary(const std::vector<AddedToken>& tokens,
                                 const Normalizers& normalizers) {
  for (const AddedToken& token : tokens) {
    if (!token.normalized) {
      raw_.Add(token, token.content);
      continue;
    }
    MappedText content(token.content, /*begin=*/0);
    normalizers.Apply(&content);
    normalized_.Add(token, content.text());
  }
}

absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(
    const nlohmann::json& list, const std::string& where,
    Vocabulary* vocabulary) {
  if (!list.is_array()) {
    return InvalidArgument(where, " should be a list, but is ",
                           list.type_name());
  }
  std::vector<AddedToken> tokens;
  // As HuggingFace counts, whatever the file says.
  int64_t next = vocabulary->num_pieces();
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string token_where = absl::StrCat(where, "[", i, "]");
    AddedToken token;
    ETC_RETURN_IF_ERROR(ReadAddedToken(list[i], token_where, &token));
    JsonObjectReader reader(list[i], token_where);
    reader.Required("id", &token.id);
    ETC_RETURN_IF_ERROR(
        reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
    const int32_t known = vocabulary->Id(token.content);
    const int64_t expected = known >= 0 ? known : next;
    if (token.id != expected) {
      return InvalidArgument(reader.Where("id"), " of ",
                             QuotedName(token.content), " should be ", expected,
                             known >= 0 ? ", as in model.vocab"
                                        : ", the next one behind the model's",
                             ", but is ", token.id);
    }
    if (known < 0) {
      ETC_RETURN_IF_ERROR(
          vocabulary->Add(token_where, token.content, token.id));
      token.outside = true;
      ++next;
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace etc::huggingface
