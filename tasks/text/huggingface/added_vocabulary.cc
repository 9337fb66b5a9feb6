#include "tasks/text/huggingface/added_vocabulary.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"
#include "tasks/text/huggingface/mapped_text.h"

namespace etc::huggingface {

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
    ETC_RETURN_IF_ERROR(CheckPieceSize(token.content, token_where));
    JsonObjectReader reader(list[i], token_where);
    reader.Required("id", &token.id);
    ETC_RETURN_IF_ERROR(reader.status());
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
