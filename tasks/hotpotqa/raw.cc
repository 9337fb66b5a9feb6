#include "tasks/hotpotqa/raw.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/task/official_json.h"

namespace etc {
namespace {

absl::Status Error(const std::string& where, absl::string_view expected,
                   const nlohmann::json& found) {
  constexpr size_t kShown = 60;
  const std::string text = JsonAsciiText(found);
  return InvalidArgument(where, " should be ", expected, ", but is ",
                         text.substr(0, kShown),
                         text.size() > kShown ? "..." : "");
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

absl::StatusOr<HotpotqaFact> FactFromJson(const nlohmann::json& json,
                                          const std::string& where) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_string() ||
      !json[1].is_number_integer()) {
    return Error(where, R"(["title", sentence number])", json);
  }
  return HotpotqaFact{.title = json[0].get<std::string>(),
                      .sentence = json[1].get<int64_t>()};
}

// The elements of a list, each by `read(element, where)`.
template <typename T, typename Read>
absl::StatusOr<std::vector<T>> ListFromJson(const nlohmann::json& json,
                                            const std::string& where,
                                            absl::string_view expected,
                                            Read read) {
  if (!json.is_array()) {
    return Error(where, expected, json);
  }
  return ReadList<T>(json, where, "", read);
}

}  // namespace

absl::StatusOr<std::vector<HotpotqaFact>> HotpotqaFactsFromJson(
    const nlohmann::json& json, const std::string& where) {
  return ListFromJson<HotpotqaFact>(json, where, "a list of supporting facts",
                                    FactFromJson);
}

void Hotpotqa::ReadRecord(JsonObjectReader& reader, Record* record) const {
  reader.Required("_id", &record->id);
  reader.Required("question", &record->question);
  reader.Optional("type", &record->type);
  reader.Optional("level", &record->level);
  // A null is a mistake.
  const bool has_answer = reader.Has("answer");
  if (has_answer) {
    reader.Required("answer", &record->answer.emplace());
  }
  if (const auto* context = reader.Raw("context", /*required=*/true)) {
    reader.Assign(ListFromJson<HotpotqaParagraph>(
                      *context, reader.Where("context"), "a list of paragraphs",
                      ParagraphFromJson),
                  &record->context);
  }
  if (const auto* facts = reader.Raw("supporting_facts", /*required=*/false)) {
    reader.Assign(
        HotpotqaFactsFromJson(*facts, reader.Where("supporting_facts")),
        &record->supporting_facts);
  } else if (has_answer) {
    // Scores would count any prediction of facts as wrong, and none as right.
    reader.Fail("supporting_facts",
                "is missing, but training and scores need it beside an answer");
  }
}

}  // namespace etc
