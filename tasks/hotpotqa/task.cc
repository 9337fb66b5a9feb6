#include "tasks/hotpotqa/task.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/hotpotqa/description.h"
#include "tasks/hotpotqa/metric.h"
#include "tasks/hotpotqa/predictions.h"
#include "tasks/hotpotqa/raw.h"

namespace etc {
namespace {

// Thresholds that the official program tries: 0.0, 0.1, ..., 1.0.
std::vector<double> ThresholdsToTry() {
  std::vector<double> thresholds;
  for (int tenths = 0; tenths <= 10; ++tenths) {
    thresholds.push_back(tenths / 10.0);
  }
  return thresholds;
}

class HotpotqaTask : public Task {
 public:
  HotpotqaTask(HotpotqaOptions options, EtcConfig config,
               std::shared_ptr<const Tokenizer> tokenizer)
      : options_(std::move(options)),
        config_(std::move(config)),
        tokenizer_(std::move(tokenizer)) {}

  absl::StatusOr<std::vector<std::shared_ptr<const Example>>> MakeExamples(
      const std::string& record, const std::string& where) const override {
    ETC_ASSIGN_OR_RETURN(HotpotqaRecord parsed,
                         ParseHotpotqaRecord(record, where));
    return std::vector<std::shared_ptr<const Example>>{
        MakeHotpotqaExample(std::move(parsed), *tokenizer_, options_.example)};
  }

  std::shared_ptr<TaskHead> MakeHead() const override {
    return std::make_shared<HotpotqaHead>(config_, options_.head);
  }

  std::unique_ptr<TaskPredictions> MakePredictions() const override {
    return std::make_unique<HotpotqaPredictions>(
        options_.decoding,
        options_.search_threshold ? ThresholdsToTry() : std::vector<double>(),
        tokenizer_);
  }

  std::string main_metric() const override { return kHotpotqaMainMetric; }

  std::string Describe(const Example& example) const override {
    const auto* hotpotqa = dynamic_cast<const HotpotqaExample*>(&example);
    TORCH_CHECK(hotpotqa != nullptr, "example ", example.record_id,
                " is not one of HotpotQA");
    return DescribeHotpotqaExample(*hotpotqa, *tokenizer_);
  }

 private:
  HotpotqaOptions options_;
  EtcConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

absl::Status CheckTypes(const EtcConfig& model, const std::string& source) {
  if (model.segment_vocab_size <= kHotpotqaQuestionType) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": model.segment_vocab_size should be at least ",
        kHotpotqaQuestionType + 1, ", but is ", model.segment_vocab_size));
  }
  return absl::OkStatus();
}

absl::Status CheckTables(const HotpotqaSetup& setup, const Tokenizer& tokenizer,
                         const std::string& source) {
  const HotpotqaTokens tokens =
      HotpotqaTokensOf(setup.tokenizer_kind, tokenizer);
  const int64_t needed =
      std::max<int64_t>(tokenizer.vocab_size(),
                        1 + std::max({tokens.cls, tokens.sentence,
                                      tokens.question, tokens.paragraph}));
  if (setup.model.vocab_size < needed) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": model.vocab_size should be at least ", needed,
                     ", for the vocabulary and the tokens of HotpotQA, but is ",
                     setup.model.vocab_size));
  }
  return CheckTypes(setup.model, source);
}

}  // namespace

absl::StatusOr<HotpotqaOptions> HotpotqaOptionsFromJson(
    const nlohmann::json& json, const std::string& source) {
  HotpotqaOptions options;
  JsonObjectReader reader(json, source);
  std::string encoding = "span";
  bool official_compatibility = false;
  HotpotqaDecodingOptions& decoding = options.decoding;
  reader.Optional("answer_encoding", &encoding);
  reader.Optional("supporting_fact_threshold",
                  &decoding.supporting_fact_threshold);
  reader.Optional("search_threshold", &options.search_threshold);
  reader.Optional("max_answer_length", &decoding.max_answer_length);
  reader.Optional("flat_sequence", &options.example.flat_sequence);
  reader.Optional("official_compatibility", &official_compatibility);
  if (encoding == "bio") {
    options.head.answer_encoding = HotpotqaAnswerEncoding::kBio;
  } else if (encoding != "span") {
    reader.Fail("answer_encoding",
                absl::StrCat("should be \"span\" or \"bio\", but is \"",
                             encoding, "\""));
  }
  if (decoding.supporting_fact_threshold < 0 ||
      decoding.supporting_fact_threshold > 1) {
    reader.Fail("supporting_fact_threshold",
                absl::StrCat("should be in [0, 1], but is ",
                             decoding.supporting_fact_threshold));
  }
  if (decoding.max_answer_length < 1) {
    reader.Fail("max_answer_length",
                absl::StrCat("should be at least 1, but is ",
                             decoding.max_answer_length));
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
  options.head.official_compatibility = official_compatibility;
  options.example.official_compatibility = official_compatibility;
  decoding.official_compatibility = official_compatibility;
  return options;
}

absl::StatusOr<std::unique_ptr<Task>> MakeHotpotqaTask(
    const nlohmann::json& options, const std::string& source,
    const HotpotqaSetup& setup, std::shared_ptr<const Tokenizer> tokenizer) {
  ETC_ASSIGN_OR_RETURN(HotpotqaOptions parsed,
                       HotpotqaOptionsFromJson(options, source));
  ETC_RETURN_IF_ERROR(CheckTables(setup, *tokenizer, source));
  parsed.example.max_long_length = setup.max_long_length;
  parsed.example.max_global_length = setup.max_global_length;
  parsed.example.tokenizer_kind = setup.tokenizer_kind;
  parsed.example.pattern = {
      .local_radius = setup.model.local_radius,
      .relative_pos_max_distance = setup.model.relative_pos_max_distance,
      .hard_g2l = setup.model.use_hard_g2l_mask,
      .hard_l2g = setup.model.use_hard_l2g_mask};
  parsed.decoding.max_long_length = setup.max_long_length;
  parsed.decoding.max_global_length = setup.max_global_length;
  parsed.decoding.tokenizer_kind = setup.tokenizer_kind;
  return std::make_unique<HotpotqaTask>(std::move(parsed), setup.model,
                                        std::move(tokenizer));
}

absl::StatusOr<std::shared_ptr<TaskHead>> MakeHotpotqaHead(
    const nlohmann::json& options, const std::string& source,
    const HotpotqaSetup& setup) {
  ETC_ASSIGN_OR_RETURN(const HotpotqaOptions parsed,
                       HotpotqaOptionsFromJson(options, source));
  ETC_RETURN_IF_ERROR(CheckTypes(setup.model, source));
  return std::make_shared<HotpotqaHead>(setup.model, parsed.head);
}

absl::StatusOr<Metrics> ScoreHotpotqa(const std::string& gold_path,
                                      const std::string& predictions_path) {
  ETC_ASSIGN_OR_RETURN(const HotpotqaScore score,
                       ScoreHotpotqaFiles(gold_path, predictions_path));
  Metrics metrics = score.Means();
  for (const auto& diagnostic : score.Diagnostics()) {
    metrics.push_back(diagnostic);
  }
  return metrics;
}

}  // namespace etc
