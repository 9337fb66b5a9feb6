#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "tasks/hotpotqa/answer_text.h"
#include "tasks/hotpotqa/span_search.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/task/official_json.h"

namespace etc {
namespace {

// [G]: whether a global token is predicted to be a supporting fact.
std::vector<bool> PredictedFacts(const HotpotqaExample& example,
                                 LogitRow supporting_facts, double threshold) {
  std::vector<bool> predicted;
  for (size_t g = 0; g < example.global_token_ids.size(); ++g) {
    const float probability = 1.0F / (1.0F + std::exp(-supporting_facts[g]));
    predicted.push_back(probability >= static_cast<float>(threshold));
  }
  return predicted;
}

// The official program takes the sentence id -1 of [CLS] for the last slot of a
// full global input, which is usually padding.
bool IsClsAllowed(const HotpotqaExample& example,
                  const std::vector<bool>& predicted,
                  const HotpotqaOptions& options) {
  return options.official_compatibility &&
         example.global_length() == options.input.max_global_length &&
         predicted.back();
}

std::optional<PieceSpan> BestSpanIn(const HotpotqaExample& example,
                                    LogitRow answer, const SpanFilter& filter,
                                    const HotpotqaOptions& options) {
  if (options.answer_encoding == HotpotqaAnswerEncoding::kBio) {
    // Officially the classes of padding count, and behind a batch that is not
    // full there would be some more of it, which closes the span.
    const auto length = static_cast<int64_t>(answer.size() / 3);
    return options.official_compatibility
               ? BestBioSpan(answer, length, filter,
                             length >= options.input.max_long_length
                                 ? OpenSpan::kIsLost
                                 : OpenSpan::kCloses)
               : BestBioSpan(answer, example.long_length(), filter,
                             OpenSpan::kCloses);
  }
  const size_t length = answer.size() / 2;
  const LogitRow begin = answer.subspan(0, length);
  const LogitRow end = answer.subspan(length);
  return options.official_compatibility ? BestSpanOfTop50(begin, end, filter)
                                        : BestSpan(begin, end, filter);
}

std::string SpanAnswer(const HotpotqaExample& example, LogitRow answer,
                       const std::vector<bool>& predicted,
                       const HotpotqaOptions& options,
                       const Tokenizer& tokenizer) {
  const SpanFilter supporting(&example, predicted,
                              IsClsAllowed(example, predicted, options),
                              options.max_answer_length);
  std::optional<PieceSpan> best =
      BestSpanIn(example, answer, supporting, options);
  if (!best.has_value() && !options.official_compatibility) {
    const SpanFilter anywhere(&example,
                              std::vector<bool>(predicted.size(), true),
                              /*cls_allowed=*/false, options.max_answer_length);
    best = BestSpanIn(example, answer, anywhere, options);
  }
  if (!best.has_value() ||
      example.pattern.sentence[static_cast<size_t>(best->first)] < 0) {
    return "";
  }
  return options.official_compatibility
             ? OfficialAnswerText(example, *best, options.input.tokenizer_kind,
                                  tokenizer)
             : OriginalAnswerText(example, *best);
}

// The answer of one question, and its facts, in a prediction file: `value` is
// what stands at `where`.
absl::Status TakeAnswer(const nlohmann::json& value, const std::string& where,
                        HotpotqaPrediction* prediction) {
  if (!value.is_string()) {
    return InvalidArgument(where, " should be a string, but is ",
                           value.type_name());
  }
  prediction->answer = value.get<std::string>();
  return absl::OkStatus();
}

absl::Status TakeFacts(const nlohmann::json& value, const std::string& where,
                       HotpotqaPrediction* prediction) {
  ETC_ASSIGN_OR_RETURN(prediction->facts, HotpotqaFactsFromJson(value, where));
  return absl::OkStatus();
}

// [["title", 0], ...]
nlohmann::json FactsToJson(const HotpotqaPrediction& prediction) {
  nlohmann::json list = nlohmann::json::array();
  if (prediction.facts.has_value()) {
    for (const HotpotqaFact& fact : *prediction.facts) {
      list.push_back(nlohmann::json::array({fact.title, fact.sentence}));
    }
  }
  return list;
}

}  // namespace

HotpotqaPrediction Hotpotqa::Decode(Outputs outputs) const {
  const Output& output = outputs.front();
  Prediction prediction = DecodeAt(options().supporting_fact_threshold, output);
  if (options().search_threshold) {
    for (const double threshold : kHotpotqaThresholds) {
      prediction.by_threshold.push_back(DecodeAt(threshold, output));
    }
  }
  return prediction;
}

HotpotqaPrediction Hotpotqa::DecodeAt(double threshold,
                                      const Output& output) const {
  const Example& example = *output.example;
  const Logits<LogitRow>& logits = output.logits;
  const std::vector<bool> predicted =
      PredictedFacts(example, logits.supporting_facts, threshold);
  std::vector<HotpotqaFact> facts;
  for (size_t g = 0; g < predicted.size(); ++g) {
    const int32_t paragraph = example.global_paragraph_ids[g];
    const int32_t sentence = example.global_sentence_ids[g];
    if (predicted[g] && paragraph >= 0 && sentence >= 0) {
      facts.push_back(
          {.title =
               example.record->context[static_cast<size_t>(paragraph)].title,
           .sentence = sentence});
    }
  }
  const auto type = static_cast<HotpotqaAnswerType>(
      std::max_element(logits.answer_type.begin(), logits.answer_type.end()) -
      logits.answer_type.begin());
  return {.answer = type == HotpotqaAnswerType::kYes ? "yes"
                    : type == HotpotqaAnswerType::kNo
                        ? "no"
                        : SpanAnswer(example, logits.answer, predicted,
                                     options(), tokenizer()),
          .facts = std::move(facts)};
}

std::string Hotpotqa::PredictionJson(const std::string& id,
                                     const Prediction& prediction) const {
  return JsonAsciiText(
      nlohmann::ordered_json{{"id", id},
                             {"answer", prediction.answer.value_or("")},
                             {"sp", FactsToJson(prediction)}});
}

std::string Hotpotqa::FileContents(const Answers& answers) const {
  nlohmann::json texts = nlohmann::json::object();
  nlohmann::json facts = nlohmann::json::object();
  for (const auto& [id, prediction] :
       WithBestHotpotqaThreshold(answers.gold, answers.predictions)) {
    texts[id] = prediction.answer.value_or("");
    facts[id] = FactsToJson(prediction);
  }
  return AsciiLine(
      nlohmann::json{{"answer", std::move(texts)}, {"sp", std::move(facts)}});
}

Hotpotqa::PredictionsOr Hotpotqa::ReadPredictions(
    const std::string& path) const {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json,
                       ReadPredictionJson(path, [](const std::string& id,
                                                   const nlohmann::json& line,
                                                   nlohmann::json* file) {
                         for (const char* part : {"answer", "sp"}) {
                           (*file)[part][id] =
                               line.value(part, nlohmann::json());
                         }
                       }));
  const char* const expected =
      R"( should be {"answer": {"<id>": "text", ...}, "sp": {"<id>": [["title", 0], ...], ...}})";
  if (!json.is_object()) {
    return InvalidArgument(path, expected);
  }
  std::map<std::string, HotpotqaPrediction> predictions;
  for (const char* part : {"answer", "sp"}) {
    const auto found = json.find(part);
    if (found == json.end() || !found->is_object()) {
      return InvalidArgument(path, expected, ", but ",
                             found == json.end() ? "has no " : "has another ",
                             "\"", part, "\"");
    }
    const auto take = part == std::string("sp") ? TakeFacts : TakeAnswer;
    for (const auto& [id, value] : found->items()) {
      ETC_RETURN_IF_ERROR(take(value, absl::StrCat(path, ": ", part, ".", id),
                               &predictions[id]));
    }
  }
  return ById<HotpotqaPrediction>(predictions.begin(), predictions.end());
}

}  // namespace etc
