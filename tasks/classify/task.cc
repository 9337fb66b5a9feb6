#include "tasks/classify/task.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/description.h"
#include "tasks/invalid_argument.h"
#include "tasks/prediction_json.h"
#include "tasks/record_json.h"
#include "tasks/text/answer_normalization.h"

namespace etc {

void Classify::ReadOptions(JsonObjectReader& reader, Options* options) {
  std::vector<std::string>& labels = options->labels;
  reader.Required("labels", &labels);
  const std::set<std::string> different(labels.begin(), labels.end());
  if (different.size() < 2 || different.size() < labels.size()) {
    reader.Fail("labels", "should name at least two labels, each once");
  }
}

absl::Status Classify::UseVocabulary(const Tokenizer& tokenizer,
                                     Options* options) {
  for (const auto& [cls, separator] :
       {std::pair("[CLS]", "[SEP]"), std::pair("<unused_63>", "<unused_2>")}) {
    options->cls = tokenizer.Id(cls);
    options->separator = tokenizer.Id(separator);
    if (options->cls >= 0 && options->separator >= 0) {
      return absl::OkStatus();
    }
  }
  return InvalidArgument(
      "the vocabulary should have the pieces \"[CLS]\" and \"[SEP]\", or "
      "\"<unused_63>\" and \"<unused_2>\", but has neither pair");
}

std::string Classify::Describe(const Example& example, const Context& context) {
  return DescribeExample(
      example,
      {.title = absl::StrCat("record ", example.record_id),
       .answer_name = "label",
       .answer = example.label_name,
       .size = absl::StrCat(DescribeLengths(example), "; ",
                            DescribeTruncation(example.dropped_pieces,
                                               [](int64_t dropped) {
                                                 return absl::StrCat(
                                                     dropped,
                                                     " tokens truncated");
                                               }))},
      {.token = [&](size_t i) {
        return context.tokenizer.Piece(example.long_token_ids[i]);
      }});
}

std::string Classify::Decode(const Output& output, const Context& context) {
  const LogitRow logits = output.logits.labels;
  const auto best = std::max_element(logits.begin(), logits.end());
  return context.options.labels.at(static_cast<size_t>(best - logits.begin()));
}

Classify::PredictionsOr Classify::ReadPredictions(const std::string& path) {
  using Line = std::pair<std::string, std::string>;
  return ReadById<Prediction>(
      path,
      [](const std::string& text,
         const std::string& where) -> absl::StatusOr<Line> {
        ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, where));
        JsonObjectReader fields(json, where);
        Line line;
        fields.Required("id", &line.first);
        fields.Required("label", &line.second);
        ETC_RETURN_IF_ERROR(fields.Finish());
        return line;
      });
}

std::string Classify::FileContents(const Answers& answers) {
  return AsciiLines(answers.predictions, [](const auto& id, const auto& label) {
    return nlohmann::ordered_json{{"id", id}, {"label", label}};
  });
}

Scores Classify::Score(const Answers& answers) {
  struct Counts {
    double right = 0;
    int64_t gold = 0;
    int64_t predicted = 0;
  };
  const auto by_id = LastOfEachId(answers.predictions);
  std::map<std::string, Counts> labels;
  double right = 0;
  for (const auto& [id, label] : answers.gold) {
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
  return {
      .metrics = {
          {"accuracy", Share(right, static_cast<int64_t>(answers.gold.size()))},
          {"macro_f1", Share(f1, static_cast<int64_t>(labels.size()))}}};
}

}  // namespace etc
