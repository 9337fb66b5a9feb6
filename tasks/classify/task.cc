#include "tasks/classify/task.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/data/pattern_text.h"
#include "tasks/description.h"
#include "tasks/prediction_json.h"
#include "tasks/text/answer_normalization.h"

namespace etc {

void Classify::ReadOptions(JsonObjectReader& reader, Options* options) {
  std::vector<std::string>& labels = options->example.labels;
  reader.Required("labels", &labels);
  const std::set<std::string> different(labels.begin(), labels.end());
  if (different.size() < 2 || different.size() < labels.size()) {
    reader.Fail("labels", "should name at least two labels, each once");
  }
}

absl::Status Classify::CheckLengths(const Options& options,
                                    const std::string& source) {
  constexpr int64_t kLeast = 3;
  return options.example.max_long_length >= kLeast
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat(
                   source, ": data.max_long_length should be at least ", kLeast,
                   ", for [CLS] and two [SEP], but is ",
                   options.example.max_long_length));
}

absl::Status Classify::UseVocabulary(const Tokenizer& tokenizer,
                                     const TaskSettings& /*settings*/,
                                     Options* options) {
  for (const auto& [cls, separator] :
       {std::pair("[CLS]", "[SEP]"), std::pair("<unused_63>", "<unused_2>")}) {
    options->example.cls = tokenizer.Id(cls);
    options->example.separator = tokenizer.Id(separator);
    if (options->example.cls >= 0 && options->example.separator >= 0) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      "the vocabulary should have the pieces \"[CLS]\" and \"[SEP]\", or "
      "\"<unused_63>\" and \"<unused_2>\", but has neither pair");
}

std::string Classify::Describe(const Example& example,
                               const Tokenizer& tokenizer,
                               const Options& /*options*/) {
  const std::string truncation =
      example.dropped_pieces == 0
          ? "nothing truncated"
          : absl::StrCat(example.dropped_pieces, " tokens truncated");
  return absl::StrCat(
      "record ", example.record_id,
      "\nlabel: ", example.has_answer ? example.label_name : "not given", "\n",
      DescribeLengths(example), "; ", truncation, "\n",
      DescribeMasks(example.pattern), "\n",
      DescribeGlobalTokens(example, {.token = [&](size_t i) {
                             return tokenizer.Piece(example.long_token_ids[i]);
                           }}));
}

std::string Classify::Decode(const Example& /*example*/,
                             const Logits<LogitRow>& logits,
                             const Options& options,
                             const Tokenizer& /*tokenizer*/) {
  const auto begin = logits.labels.begin();
  const auto best = std::max_element(begin, logits.labels.end());
  return options.example.labels.at(static_cast<size_t>(best - begin));
}

absl::StatusOr<std::pair<std::string, std::string>> Classify::ParseGold(
    const std::string& text, const std::string& where, ScoringRules /*rules*/) {
  ETC_ASSIGN_OR_RETURN(Record record, ParseClassifyRecord(text, where));
  if (!record.label.has_value()) {
    return AnswerIsMissing(where, "label");
  }
  return std::pair(std::move(record.id), *std::move(record.label));
}

absl::StatusOr<ById<std::string>> Classify::ReadPredictions(
    const std::string& path) {
  ById<std::string> predictions;
  ETC_RETURN_IF_ERROR(ForEachRecord(
      path,
      [&](const std::string& text, const std::string& where) -> absl::Status {
        ETC_ASSIGN_OR_RETURN(const nlohmann::json line, ParseJson(text, where));
        JsonObjectReader fields(line, where);
        auto& [id, label] = predictions.emplace_back();
        fields.Required("id", &id);
        fields.Required("label", &label);
        return fields.Finish();
      }));
  return predictions;
}

std::string Classify::FileContents(const ById<Prediction>& predictions,
                                   const ById<Gold>& /*gold*/) {
  std::string lines;
  for (const auto& [id, label] : predictions) {
    lines += AsciiLine(nlohmann::ordered_json{{"id", id}, {"label", label}});
  }
  return lines;
}

absl::Status Classify::CheckFiles(const ById<Gold>& gold,
                                  const ById<Prediction>& predictions,
                                  const ScoredFiles& files) {
  return CheckSameRecords(gold, predictions, files, "line");
}

Scores Classify::Score(const ById<Gold>& gold,
                       const ById<Prediction>& predictions,
                       ScoringRules /*rules*/) {
  struct Counts {
    double right = 0;
    int64_t gold = 0;
    int64_t predicted = 0;
  };
  const auto by_id = LastOfEachId(predictions);
  std::map<std::string, Counts> labels;
  double right = 0;
  for (const auto& [id, label] : gold) {
    ++labels[label].gold;
    if (const std::string* predicted = FindById(by_id, id)) {
      const double is_right = *predicted == label ? 1 : 0;
      ++labels[*predicted].predicted;
      labels[label].right += is_right;
      right += is_right;
    }
  }
  double f1 = 0;
  for (const auto& [label, counts] : labels) {
    f1 += PrecisionRecall{.precision = Share(counts.right, counts.predicted),
                          .recall = Share(counts.right, counts.gold)}
              .f1();
  }
  return {.metrics = {
              {"accuracy", Share(right, static_cast<int64_t>(gold.size()))},
              {"macro_f1", Share(f1, static_cast<int64_t>(labels.size()))}}};
}

}  // namespace etc
