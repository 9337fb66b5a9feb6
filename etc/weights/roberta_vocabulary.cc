#include "etc/weights/roberta_vocabulary.h"

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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
    const std::string& vocab_json, const std::vector<std::string>& pieces) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonFile(vocab_json));
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(vocab_json, ": expected an object of pieces"));
  }
  for (const auto& [piece, row] : json.items()) {
    ETC_RETURN_IF_ERROR(CheckTokenId(row, piece, vocab_json));
  }
  std::vector<int64_t> rows;
  for (const std::string& piece : pieces) {
    const auto found = json.find(RobertaSpelling(piece));
    rows.push_back(found == json.end() ? -1 : found->get<int64_t>());
  }
  return rows;
}

}  // namespace etc
