#include "tasks/openkp/task.h"

#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "tasks/openkp/plain_document.h"

namespace etc {
namespace {

// The gold of a record; nothing without key phrases.
std::optional<OpenkpGold> GoldByRules(const OpenkpRecord& record,
                                      ScoringRules rules, bool is_plain) {
  if (!record.key_phrases.has_value()) {
    return std::nullopt;
  }
  return OpenkpGold{ReferencesOf(record, rules), is_plain};
}

// The phrases with their words as a plain document has them: "c++" is "c + +".
std::vector<std::string> SplitPhrases(const std::vector<std::string>& phrases) {
  std::vector<std::vector<std::string>> split;
  split.reserve(phrases.size());
  for (const std::string& phrase : phrases) {
    split.push_back(PlainOpenkpWords(phrase));
  }
  return EvaluatorPhrases(split);
}

}  // namespace

void Openkp::CheckOptions(JsonObjectReader& reader, Options* options) const {
  std::set<std::string> crossed;
  for (const std::string& name : options->visual.features.crossed_indicators) {
    if (!crossed.insert(name).second) {
      reader.Fail(
          "indicators_to_cross",
          absl::StrCat("should name each once, but has ", name, " twice"));
    }
  }
  if (options->fixed_block_length > 0 && options->has_visual_features()) {
    reader.Fail("fixed_block_length",
                "leaves no elements of the page: use_visual_features_in_long "
                "and use_visual_features_in_global should be false");
  }
}

std::optional<OpenkpGold> Openkp::GoldOf(const Record& record) const {
  return GoldByRules(record, rules(), /*is_plain=*/false);
}

absl::StatusOr<std::pair<std::string, std::optional<OpenkpGold>>>
Openkp::ParseGold(const std::string& text, const std::string& where,
                  ScoringRules rules) const {
  using ByUrl = std::pair<std::string, std::optional<Gold>>;
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, where));
  const bool is_plain =
      json.is_object() && !json.contains("VDOM") && json.contains("text");
  if (json.is_object() && !json.contains("VDOM") && !is_plain) {
    if (!json.contains("KeyPhrases")) {
      JsonObjectReader reader(json, where);
      std::string url;
      reader.Required("url", &url);
      ETC_RETURN_IF_ERROR(reader.status());
      return ByUrl(std::move(url), std::nullopt);
    }
    ETC_ASSIGN_OR_RETURN(OpenkpPhraseLists lists,
                         ParseOpenkpPhraseLists(text, where));
    return ByUrl(std::move(lists.url),
                 Gold{{.evaluator = EvaluatorPhrases(lists.phrases),
                       .has_text = false}});
  }
  const auto read = [&](JsonObjectReader& reader, Record* record) {
    if (is_plain) {
      ReadPlainOpenkpRecord(reader, options().input.split_sentences, record);
    } else {
      ReadRecord(reader, record);
    }
  };
  ETC_ASSIGN_OR_RETURN(Record record, ReadObject<Record>(json, where, read));
  std::optional<Gold> gold = GoldByRules(record, rules, is_plain);
  return ByUrl(std::move(record.id), std::move(gold));
}

Scores Openkp::Score(const Answers& answers) const {
  ById<OpenkpReferences> gold;
  std::set<absl::string_view> plain;
  for (const auto& [url, references] : answers.gold) {
    gold.emplace_back(url, references);
    if (references.is_plain) {
      plain.insert(url);
    }
  }
  if (plain.empty()) {
    return {.metrics = ScoreOpenkp(gold, answers.predictions)};
  }
  ById<Prediction> predictions = answers.predictions;
  for (auto& [url, phrases] : predictions) {
    if (plain.contains(url)) {
      phrases = SplitPhrases(phrases);
    }
  }
  return {.metrics = ScoreOpenkp(gold, predictions)};
}

}  // namespace etc
