#include "tasks/openkp/task.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "tasks/openkp/plain_document.h"
#include "tasks/task/official_json.h"

namespace etc {
namespace {

void ReadRange(JsonObjectReader& reader, const std::string& field,
               ValueRange* range) {
  std::vector<double> ends = {range->min, range->max};
  reader.Optional(field, &ends);
  if (ends.size() != 2 || ends[0] >= ends[1]) {
    reader.Fail(field, absl::StrCat("should be [minimum, maximum], but is [",
                                    absl::StrJoin(ends, ", "), "]"));
    return;
  }
  *range = {ends[0], ends[1]};
}

void ReadVisualOptions(JsonObjectReader& reader,
                       OpenkpVisualEmbeddingOptions* options) {
  OpenkpVisualOptions& features = options->features;
  reader.Optional("extra_dense_feature_layers", &options->extra_dense_layers);
  ReadRange(reader, "x_range", &features.x);
  ReadRange(reader, "y_range", &features.y);
  ReadRange(reader, "width_range", &features.width);
  ReadRange(reader, "height_range", &features.height);
  reader.OneOrMore("indicators_to_cross", &features.crossed_indicators);
  if (options->extra_dense_layers < 0 || options->extra_dense_layers > 1) {
    reader.Fail(
        "extra_dense_feature_layers",
        absl::StrCat("should be 0 or 1, but is ", options->extra_dense_layers));
  }
  const std::vector<std::string>& names = OpenkpIndicatorNames();
  std::vector<std::string>& crossed = features.crossed_indicators;
  for (size_t i = 0; i < crossed.size(); ++i) {
    const auto begin = crossed.begin();
    const auto end = begin + static_cast<int64_t>(i);
    if (std::find(names.begin(), names.end(), crossed[i]) == names.end() ||
        std::find(begin, end, crossed[i]) != end) {
      reader.Fail("indicators_to_cross",
                  absl::StrCat("should name each of some of ",
                               absl::StrJoin(names, ", "), " once, but has ",
                               crossed[i]));
    }
  }
}

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

absl::Span<const OptionField> Openkp::OptionFields() const {
  static constexpr OptionField kFields[] = {
      {"additive_smoothing_mass", "number", "`1e-4`", "at least 0",
       "share of the target spread over all n-grams"},
      {"use_visual_features_in_long", "true or false", "`true`", "",
       "long tokens have the features of their elements"},
      {"use_visual_features_in_global", "true or false", "`true`", "",
       "global tokens have the features of their elements"},
      {"extra_dense_feature_layers", "whole number", "`1`", "0 or 1",
       "layers between features and embedding"},
      {"x_range", "list of numbers", "`[-50, 1500]`", "[minimum, maximum]",
       "left edges that are scaled to [-1, 1]"},
      {"y_range", "list of numbers", "`[-50, 6000]`", "[minimum, maximum]",
       "upper edges that are scaled to [-1, 1]"},
      {"width_range", "list of numbers", "`[0, 1500]`", "[minimum, maximum]",
       "widths that are scaled to [-1, 1]"},
      {"height_range", "list of numbers", "`[0, 18000]`", "[minimum, maximum]",
       "heights that are scaled to [-1, 1]"},
      {"indicators_to_cross", "list of texts", "block, heading, bold",
       "some of block, inline, heading, leaf, bold, parent_heading, "
       "parent_leaf, parent_bold, each once",
       "features whose combinations are features, too"},
      {"max_kp_predictions", "whole number", "`5`",
       "at least 1, at most 2147483647", "phrases a page"},
      {"max_position_predictions", "whole number", "`100`",
       "at least 1, at most 2147483647",
       "places of n-grams that are looked at for phrases"},
      {"fixed_block_length", "whole number", "`0`",
       "at least 0, at most 2147483647",
       "tokens for each global instead of elements; without visual features"},
      {"official_compatibility", "true or false", "`false`", "",
       "reproduce the official program, its mistakes included (the task's page "
       "lists them)"}};
  return kFields;
}

void Openkp::ReadOptions(JsonObjectReader& reader, Options* options) const {
  reader.Optional("official_compatibility", &options->official_compatibility);
  int64_t& fixed_block_length = options->fixed_block_length;
  reader.Optional("additive_smoothing_mass", &options->additive_smoothing_mass);
  reader.Optional("use_visual_features_in_long",
                  &options->use_visual_features_in_long);
  reader.Optional("use_visual_features_in_global",
                  &options->use_visual_features_in_global);
  ReadVisualOptions(reader, &options->visual);
  ReadCount(reader, "max_kp_predictions", 1, &options->max_phrases);
  ReadCount(reader, "max_position_predictions", 1, &options->max_positions);
  ReadCount(reader, "fixed_block_length", 0, &fixed_block_length);
  if (options->additive_smoothing_mass < 0) {
    reader.Fail("additive_smoothing_mass",
                absl::StrCat("should not be negative, but is ",
                             options->additive_smoothing_mass));
  }
  if (fixed_block_length > 0 && options->has_visual_features()) {
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
      ETC_RETURN_IF_ERROR(
          reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
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
