#include "tasks/hotpotqa/raw.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "tasks/prediction_json.h"

namespace etc {
namespace {

absl::Status Error(const std::string& where, absl::string_view expected,
                   const nlohmann::json& found) {
  constexpr size_t kShown = 60;
  std::string text = AsciiLine(found);
  text.pop_back();  // the line end
  return absl::InvalidArgumentError(
      absl::StrCat(where, " should be ", expected, ", but is ",
                   text.substr(0, kShown), text.size() > kShown ? "..." : ""));
}

absl::StatusOr<HotpotqaParagraph> ParagraphFromJson(const nlohmann::json& json,
                                                    const std::string& where) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_string() ||
      !json[1].is_array()) {
    return Error(where, R"(["title", ["sentence", ...]])", json);
  }
  HotpotqaParagraph paragraph{.title = json[0].get<std::string>()};
  for (const nlohmann::json& sentence : json[1]) {
    if (!sentence.is_string()) {
      return Error(absl::StrCat(where, "[1][", paragraph.sentences.size(), "]"),
                   "a string", sentence);
    }
    paragraph.sentences.push_back(sentence.get<std::string>());
  }
  return paragraph;
}

absl::StatusOr<std::vector<HotpotqaParagraph>> ContextFromJson(
    const nlohmann::json& json, const std::string& where) {
  if (!json.is_array()) {
    return Error(where, "a list of paragraphs", json);
  }
  std::vector<HotpotqaParagraph> context;
  for (const nlohmann::json& paragraph : json) {
    ETC_ASSIGN_OR_RETURN(
        context.emplace_back(),
        ParagraphFromJson(paragraph,
                          absl::StrCat(where, "[", context.size(), "]")));
  }
  return context;
}

}  // namespace

absl::StatusOr<std::vector<HotpotqaFact>> HotpotqaFactsFromJson(
    const nlohmann::json& json, const std::string& where) {
  if (!json.is_array()) {
    return Error(where, "a list of supporting facts", json);
  }
  std::vector<HotpotqaFact> facts;
  for (const nlohmann::json& fact : json) {
    if (!fact.is_array() || fact.size() != 2 || !fact[0].is_string() ||
        !fact[1].is_number_integer()) {
      return Error(absl::StrCat(where, "[", facts.size(), "]"),
                   R"(["title", sentence number])", fact);
    }
    facts.push_back({.title = fact[0].get<std::string>(),
                     .sentence = fact[1].get<int64_t>()});
  }
  return facts;
}

absl::StatusOr<HotpotqaRecord> ParseHotpotqaRecord(absl::string_view json,
                                                   const std::string& where) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json object, ParseJson(json, where));
  JsonObjectReader reader(object, where);
  HotpotqaRecord record;
  reader.Required("_id", &record.id);
  reader.Required("question", &record.question);
  reader.Optional("type", &record.type);
  reader.Optional("level", &record.level);
  if (reader.Has("answer")) {
    reader.Required("answer", &record.answer.emplace());
  }
  const nlohmann::json* context = reader.Raw("context", /*required=*/true);
  const nlohmann::json* facts =
      reader.Raw("supporting_facts", /*required=*/false);
  ETC_RETURN_IF_ERROR(reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
  ETC_ASSIGN_OR_RETURN(record.context,
                       ContextFromJson(*context, reader.Where("context")));
  if (facts != nullptr) {
    ETC_ASSIGN_OR_RETURN(
        record.supporting_facts,
        HotpotqaFactsFromJson(*facts, reader.Where("supporting_facts")));
  }
  return record;
}

}  // namespace etc
