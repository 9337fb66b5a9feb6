#include "tasks/hotpotqa/prediction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "nlohmann/json.hpp"
#include "tasks/hotpotqa/answer_text.h"
#include "tasks/hotpotqa/span_search.h"

namespace etc {
namespace {

// [G]: whether a global token is predicted to be a supporting fact.
std::vector<bool> PredictedFacts(const HotpotqaExample& example,
                                 const HotpotqaLogits& logits,
                                 double threshold) {
  std::vector<bool> predicted;
  for (size_t g = 0; g < example.global_token_ids.size(); ++g) {
    const float probability =
        1.0F / (1.0F + std::exp(-logits.supporting_facts[g]));
    predicted.push_back(probability >= static_cast<float>(threshold));
  }
  return predicted;
}

// The official program takes the sentence id -1 of [CLS] for the last slot of a
// full global input, which is usually padding.
bool IsClsAllowed(const HotpotqaExample& example,
                  const std::vector<bool>& predicted,
                  const HotpotqaDecodingOptions& options) {
  return options.official_compatibility &&
         example.global_length() == options.max_global_length &&
         predicted.back();
}

std::optional<PieceSpan> BestSpanIn(const HotpotqaExample& example,
                                    const HotpotqaLogits& logits,
                                    const SpanFilter& filter,
                                    const HotpotqaDecodingOptions& options) {
  if (!logits.bio.empty()) {
    // Officially the classes of padding count, and behind a batch that is not
    // full there would be some more of it, which closes the span.
    const auto full = static_cast<size_t>(3 * options.max_long_length);
    const auto own = static_cast<size_t>(3 * example.long_length());
    return options.official_compatibility
               ? BestBioSpan(logits.bio, filter,
                             logits.bio.size() >= full ? OpenSpan::kIsLost
                                                       : OpenSpan::kCloses)
               : BestBioSpan(logits.bio.subspan(0, own), filter,
                             OpenSpan::kCloses);
  }
  return options.official_compatibility
             ? BestSpanOfTop50(logits.begin, logits.end, filter)
             : BestSpan(logits.begin, logits.end, filter);
}

std::string SpanAnswer(const HotpotqaExample& example,
                       const HotpotqaLogits& logits,
                       const std::vector<bool>& predicted,
                       const HotpotqaDecodingOptions& options,
                       const Tokenizer& tokenizer) {
  const SpanFilter supporting(&example, predicted,
                              IsClsAllowed(example, predicted, options),
                              options.max_answer_length);
  std::optional<PieceSpan> best =
      BestSpanIn(example, logits, supporting, options);
  if (!best.has_value() && !options.official_compatibility) {
    const SpanFilter anywhere(&example,
                              std::vector<bool>(predicted.size(), true),
                              /*cls_allowed=*/false, options.max_answer_length);
    best = BestSpanIn(example, logits, anywhere, options);
  }
  if (!best.has_value() ||
      example.pattern.sentence[static_cast<size_t>(best->first)] < 0) {
    return "";
  }
  return options.official_compatibility
             ? OfficialAnswerText(example, *best, options.tokenizer_kind,
                                  tokenizer)
             : OriginalAnswerText(example, *best);
}

}  // namespace

HotpotqaPrediction DecodeHotpotqa(const HotpotqaExample& example,
                                  const HotpotqaLogits& logits,
                                  const HotpotqaDecodingOptions& options,
                                  const Tokenizer& tokenizer) {
  const std::vector<bool> predicted =
      PredictedFacts(example, logits, options.supporting_fact_threshold);
  HotpotqaPrediction prediction;
  for (size_t g = 0; g < predicted.size(); ++g) {
    const int32_t paragraph = example.global_paragraph_ids[g];
    const int32_t sentence = example.global_sentence_ids[g];
    if (predicted[g] && paragraph >= 0 && sentence >= 0) {
      prediction.facts.push_back(
          {.title =
               example.record->context[static_cast<size_t>(paragraph)].title,
           .sentence = sentence});
    }
  }
  const auto type = static_cast<HotpotqaAnswerType>(
      std::max_element(logits.answer_type.begin(), logits.answer_type.end()) -
      logits.answer_type.begin());
  prediction.answer =
      type == HotpotqaAnswerType::kYes ? "yes"
      : type == HotpotqaAnswerType::kNo
          ? "no"
          : SpanAnswer(example, logits, predicted, options, tokenizer);
  return prediction;
}

std::string HotpotqaPredictionsToJson(
    const std::vector<std::pair<std::string, HotpotqaPrediction>>&
        predictions) {
  nlohmann::json answers = nlohmann::json::object();
  nlohmann::json facts = nlohmann::json::object();
  for (const auto& [id, prediction] : predictions) {
    answers[id] = prediction.answer;
    nlohmann::json& list = facts[id] = nlohmann::json::array();
    for (const HotpotqaFact& fact : prediction.facts) {
      list.push_back({fact.title, fact.sentence});
    }
  }
  const nlohmann::json json = {{"answer", std::move(answers)},
                               {"sp", std::move(facts)}};
  return json.dump(/*indent=*/-1, /*indent_char=*/' ', /*ensure_ascii=*/true,
                   nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace etc
