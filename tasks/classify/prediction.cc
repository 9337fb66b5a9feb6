#include "tasks/classify/prediction.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "tasks/classify/task.h"
#include "tasks/task/label_table.h"
#include "tasks/task/official_json.h"
#include "tasks/task/softmax.h"

namespace etc {
namespace {

double WithSixDecimals(double probability) {
  return std::round(probability * 1e6) / 1e6;
}

// Rounds to as many digits as a float has.
double WithSevenDigits(double number) {
  return std::strtod(absl::StrFormat("%.7g", number).c_str(), nullptr);
}

ClassifyPrediction DecodeOne(absl::Span<const float> outputs,
                             const ClassifyOptions& options) {
  const auto best = std::max_element(outputs.begin(), outputs.end());
  ClassifyPrediction prediction = {
      .answer = {.type = ClassifyType::kOne,
                 .labels = {options.labels.at(
                     static_cast<size_t>(best - outputs.begin()))}}};
  const std::vector<double> probabilities = Softmax<double>(outputs);
  for (size_t i = 0; i < options.labels.size(); ++i) {
    prediction.probabilities.emplace_back(options.labels[i],
                                          WithSixDecimals(probabilities.at(i)));
  }
  return prediction;
}

ClassifyPrediction DecodeSeveral(absl::Span<const float> outputs,
                                 const ClassifyOptions& options) {
  ClassifyPrediction prediction = {.answer = {.type = ClassifyType::kSeveral}};
  for (size_t i = 0; i < options.labels.size(); ++i) {
    const double probability = 1 / (1 + std::exp(-double{outputs.at(i)}));
    if (probability >= options.threshold) {
      prediction.answer.labels.push_back(options.labels[i]);
    }
    prediction.probabilities.emplace_back(options.labels[i],
                                          WithSixDecimals(probability));
  }
  std::sort(prediction.answer.labels.begin(), prediction.answer.labels.end());
  return prediction;
}

using Line = std::pair<std::string, ClassifyPrediction>;

absl::StatusOr<Line> ParseLine(const std::string& text,
                               const std::string& where) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, where));
  JsonObjectReader fields(json, where);
  Line line;
  ClassifyAnswer& answer = line.second.answer;
  fields.Required("id", &line.first);
  fields.Raw("probabilities", /*required=*/false);
  fields.Raw("truncated", /*required=*/false);  // of RecordPrediction::json
  if (fields.Has("labels")) {
    answer.type = ClassifyType::kSeveral;
    fields.Required("labels", &answer.labels);
    std::sort(answer.labels.begin(), answer.labels.end());
    answer.labels.erase(std::unique(answer.labels.begin(), answer.labels.end()),
                        answer.labels.end());
  } else if (fields.Has("value")) {
    answer.type = ClassifyType::kNumber;
    fields.Required("value", &answer.number);
  } else {
    fields.Required("label", &answer.labels.emplace_back());
  }
  ETC_RETURN_IF_ERROR(fields.Finish());
  return line;
}

std::string NumberText(double number) {
  const std::string text = absl::StrFormat("%.7g", number);
  return text + (text.find_first_of(".e") == std::string::npos ? ".0" : "");
}

std::string LineOf(const std::string& id,
                   const ClassifyPrediction& prediction) {
  const ClassifyAnswer& answer = prediction.answer;
  std::string line =
      absl::StrCat("{\"id\":", JsonAsciiText(nlohmann::json(id)));
  switch (answer.type) {
    case ClassifyType::kOne:
      absl::StrAppend(&line, ",\"label\":",
                      JsonAsciiText(nlohmann::json(answer.labels.at(0))));
      break;
    case ClassifyType::kSeveral:
      absl::StrAppend(
          &line, ",\"labels\":", JsonAsciiText(nlohmann::json(answer.labels)));
      break;
    case ClassifyType::kNumber:
      return absl::StrCat(line, ",\"value\":", NumberText(answer.number), "}");
  }
  absl::StrAppend(&line, ",\"probabilities\":{");
  const char* separator = "";
  for (const auto& [label, probability] : prediction.probabilities) {
    absl::StrAppend(&line, separator, JsonAsciiText(nlohmann::json(label)), ":",
                    SixDecimals(probability));
    separator = ",";
  }
  return line + "}}";
}

}  // namespace

ClassifyPrediction DecodeClassify(absl::Span<const float> outputs,
                                  const ClassifyOptions& options) {
  switch (options.type) {
    case ClassifyType::kOne:
      return DecodeOne(outputs, options);
    case ClassifyType::kSeveral:
      return DecodeSeveral(outputs, options);
    case ClassifyType::kNumber:
      break;
  }
  return {.answer = {.type = ClassifyType::kNumber,
                     .number = WithSevenDigits(std::clamp(
                         options.mean.value_or(0) +
                             options.deviation.value_or(1) * outputs.at(0),
                         std::numeric_limits<double>::lowest(),
                         std::numeric_limits<double>::max()))}};
}

Classify::PredictionsOr Classify::ReadPredictions(
    const std::string& path) const {
  return ReadById<Prediction>(path, ParseLine);
}

std::string Classify::PredictionJson(const std::string& id,
                                     const Prediction& prediction) const {
  return LineOf(id, prediction);
}

std::string Classify::FileContents(const Answers& answers) const {
  std::string lines;
  for (const auto& [id, prediction] : answers.predictions) {
    absl::StrAppend(&lines, LineOf(id, prediction), "\n");
  }
  return lines;
}

}  // namespace etc
