#include "tasks/classify/prediction.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/classify/task.h"
#include "tasks/task/label_table.h"
#include "tasks/task/official_json.h"
#include "tasks/task/softmax.h"

namespace etc {
namespace {

double WithSixDecimals(double probability) {
  return std::round(probability * 1e6) / 1e6;
}

std::string WithDigits(double number, int digits) {
  return absl::StrFormat("%.*g", digits, number);
}

// Digits of a float, and those after which a double reads back the same.
constexpr int kFloatDigits = 7;
constexpr int kDoubleDigits = 17;

// Rounds `number`, mean + deviation * output, to the digits that it has from
// the output, a float in units of the deviation: 7, and one more for each digit
// by which the mean is longer than the deviation.
double Rounded(double number, double mean, double deviation) {
  const auto exponent = [](double value) {  // -infinity for 0
    return std::floor(std::log10(std::abs(value)));
  };
  const double digits =
      std::clamp<double>(kFloatDigits + exponent(mean) - exponent(deviation),
                         kFloatDigits, kDoubleDigits);
  return std::strtod(WithDigits(number, static_cast<int>(digits)).c_str(),
                     nullptr);
}

// The threshold where options name none.
constexpr double kThreshold = 0.5;

// Chooses the labels whose probabilities, as they are written, are large
// enough.
void ChooseLabels(double threshold, ClassifyPrediction* prediction) {
  std::vector<std::string>& labels = prediction->answer.labels;
  labels.clear();
  for (const auto& [label, probability] : prediction->probabilities) {
    if (probability >= threshold) {
      labels.push_back(label);
    }
  }
  std::sort(labels.begin(), labels.end());
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
    prediction.probabilities.emplace_back(options.labels[i],
                                          WithSixDecimals(probability));
  }
  ChooseLabels(options.threshold.value_or(kThreshold), &prediction);
  return prediction;
}

ClassifyPrediction DecodeNumber(float output, const ClassifyOptions& options) {
  const double mean = options.mean.value_or(0);
  const double deviation = options.deviation.value_or(1);
  // Rounded first: the largest double of fewer digits is infinity.
  const double number = Rounded(mean + deviation * output, mean, deviation);
  return {.answer = {.type = ClassifyType::kNumber,
                     .number = std::clamp(number,
                                          std::numeric_limits<double>::lowest(),
                                          std::numeric_limits<double>::max())}};
}

using Line = std::pair<std::string, ClassifyPrediction>;

// Reads the probabilities: first of the labels in `order`, then of others.
void ReadProbabilities(JsonObjectReader& fields,
                       const std::vector<std::string>& order,
                       ClassifyPrediction* prediction) {
  const nlohmann::json* given = fields.Given("probabilities");
  if (given == nullptr) {
    return;
  }
  if (!given->is_object()) {
    fields.Fail("probabilities", "should be an object of numbers");
    return;
  }
  auto& probabilities = prediction->probabilities;
  for (const auto& [label, value] : given->items()) {
    if (!value.is_number()) {
      fields.Fail("probabilities",
                  absl::StrCat("should have a number for ", QuotedName(label)));
      return;
    }
    probabilities.emplace_back(label, value.get<double>());
  }
  const auto place = [&order](const auto& probability) {
    return absl::c_find(order, probability.first) - order.begin();
  };
  std::stable_sort(
      probabilities.begin(), probabilities.end(),
      [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

absl::StatusOr<Line> ParseLine(const std::string& text,
                               const std::string& where,
                               const std::vector<std::string>& labels) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, where));
  JsonObjectReader fields(json, where);
  Line line;
  ClassifyAnswer& answer = line.second.answer;
  fields.Required("id", &line.first);
  ReadProbabilities(fields, labels, &line.second);
  fields.Raw("truncated", /*required=*/false);
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

// The shortest text from which `number` reads back the same.
std::string NumberText(double number) {
  std::string text;
  for (int digits = kFloatDigits; digits <= kDoubleDigits; ++digits) {
    text = WithDigits(number, digits);
    if (std::strtod(text.c_str(), nullptr) == number) {
      break;
    }
  }
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
  return DecodeNumber(outputs.at(0), options);
}

Classify::PredictionsOr Classify::ReadPredictions(
    const std::string& path) const {
  return ReadById<Prediction>(
      path,
      [this](const std::string& text,
             const std::string& where) -> absl::StatusOr<Line> {
        ETC_ASSIGN_OR_RETURN(Line line,
                             ParseLine(text, where, options().labels));
        Prediction& prediction = line.second;
        if (options().threshold.has_value() &&
            prediction.answer.type == ClassifyType::kSeveral &&
            !prediction.probabilities.empty()) {
          ChooseLabels(*options().threshold, &prediction);
        }
        return line;
      });
}

std::string Classify::PredictionJson(const std::string& id,
                                     const Prediction& prediction) const {
  return LineOf(id, prediction);
}

std::string Classify::FileContents(const Answers& answers) const {
  return PredictionLines(answers, LineOf);
}

}  // namespace etc
