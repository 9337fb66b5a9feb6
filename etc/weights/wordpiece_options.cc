#include "etc/weights/wordpiece_options.h"

#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "nlohmann/json.hpp"

namespace etc {

std::string WordPieceOptionsToJson(const WordPieceOptions& options) {
  const WordPieceOptions defaults;
  nlohmann::json json = nlohmann::json::object();
  if (options.strip_accents.has_value()) {
    json["strip_accents"] = *options.strip_accents;
  }
  if (options.tokenize_chinese_chars != defaults.tokenize_chinese_chars) {
    json["tokenize_chinese_chars"] = options.tokenize_chinese_chars;
  }
  if (options.clean_text != defaults.clean_text) {
    json["clean_text"] = options.clean_text;
  }
  if (options.max_word_code_points != defaults.max_word_code_points) {
    json["max_input_chars_per_word"] = options.max_word_code_points;
  }
  for (const AddedToken& token : options.added_tokens) {
    json["added_tokens_decoder"][absl::StrCat(token.id)] = {
        {"content", token.content},       {"single_word", token.single_word},
        {"normalized", token.normalized}, {"lstrip", token.lstrip},
        {"rstrip", token.rstrip},         {"special", token.special}};
  }
  return JsonText(json);
}

}  // namespace etc
