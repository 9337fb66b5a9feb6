#include "etc/weights/roberta_vocabulary.h"

#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_replace.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

constexpr char kMark[] = "\u2581";

// In one or two bytes: all code points used here are below U+0800.
std::string Utf8(uint32_t code_point) {
  if (code_point < 0x80) {
    return std::string(1, static_cast<char>(code_point));
  }
  return {static_cast<char>(0xC0 | (code_point >> 6)),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

// The character for each byte.
std::array<std::string, 256> ByteCharacters() {
  std::array<std::string, 256> result;
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool is_printable = (33 <= byte && byte <= 126) ||
                              (161 <= byte && byte <= 172) ||
                              (174 <= byte && byte <= 255);
    result[byte] = Utf8(is_printable ? byte : next++);
  }
  return result;
}

}  // namespace

std::string RobertaSpelling(absl::string_view piece) {
  std::string spelling;
  for (const char byte : absl::StrReplaceAll(piece, {{kMark, " "}})) {
    spelling += ByteCharacter(static_cast<uint8_t>(byte));
  }
  return spelling;
}

const std::string& ByteCharacter(uint8_t byte) {
  static const std::array<std::string, 256>& characters =
      *new std::array<std::string, 256>(ByteCharacters());
  return characters[byte];
}

absl::StatusOr<std::vector<int64_t>> RobertaRows(
    const nlohmann::json& tokenizer, const std::string& source,
    const std::vector<std::string>& pieces) {
  JsonObjectReader reader(tokenizer, source);
  const nlohmann::json* model = reader.Raw("model", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.status());
  JsonObjectReader model_reader(*model, reader.Where("model"));
  const nlohmann::json* vocabulary =
      model_reader.Raw("vocab", /*required=*/true);
  ETC_RETURN_IF_ERROR(model_reader.status());
  const std::string where = model_reader.Where("vocab");
  if (!vocabulary->is_object()) {
    return InvalidArgument(where, " should be an object of pieces, but is ",
                           vocabulary->type_name());
  }
  std::map<std::string, int64_t> row_of;
  for (const auto& [piece, row] : vocabulary->items()) {
    ETC_RETURN_IF_ERROR(CheckTokenId(row, piece, where));
    row_of.emplace(piece, row.get<int64_t>());
  }
  if (const nlohmann::json* added = reader.Given("added_tokens")) {
    for (const nlohmann::json& token : *added) {
      AddedToken read;
      const std::string token_where = reader.Where("added_tokens");
      ETC_RETURN_IF_ERROR(ReadAddedToken(token, token_where, &read));
      const nlohmann::json row = token.value("id", nlohmann::json());
      ETC_RETURN_IF_ERROR(CheckTokenId(row, read.content, token_where));
      row_of.emplace(RobertaSpelling(read.content), row.get<int64_t>());
    }
  }
  std::vector<int64_t> rows;
  for (const std::string& piece : pieces) {
    const auto found = row_of.find(RobertaSpelling(piece));
    rows.push_back(found == row_of.end() ? -1 : found->second);
  }
  return rows;
}

}  // namespace etc
