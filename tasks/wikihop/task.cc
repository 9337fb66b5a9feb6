#include "tasks/wikihop/task.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/wikihop/description.h"
#include "tasks/wikihop/metric.h"
#include "tasks/wikihop/prediction.h"
#include "tasks/wikihop/raw.h"

namespace etc {
namespace {

const WikihopExample& AsWikihop(const Example& example) {
  const auto* wikihop = dynamic_cast<const WikihopExample*>(&example);
  TORCH_CHECK(wikihop != nullptr, "example ", example.record_id,
              " is not one of WikiHop");
  return *wikihop;
}

class WikihopPredictions : public TaskPredictions {
 public:
  void Add(const Batch& batch,
           const std::vector<torch::Tensor>& logits) override {
    TORCH_CHECK(logits.size() == 1 && logits[0].dim() == 2 &&
                    logits[0].size(0) == batch.size(),
                "expected logits [batch, global]");
    const torch::Tensor scores =
        logits[0].to(torch::kFloat32).contiguous();  // [B, G]
    for (int64_t b = 0; b < batch.size(); ++b) {
      const WikihopExample& example =
          AsWikihop(*batch.examples[static_cast<size_t>(b)]);
      TORCH_CHECK(example.num_candidates() <= scores.size(1), "question ",
                  example.record_id, " has more candidates than logits");
      const int64_t best = BestCandidate(example, scores[b].data_ptr<float>());
      const std::string& answer = example.candidates[static_cast<size_t>(best)];
      predictions_.emplace_back(example.record_id, answer);
      if (example.label.has_value()) {
        ++score_.questions;
        score_.correct +=
            answer == example.candidates[static_cast<size_t>(*example.label)]
                ? 1
                : 0;
      }
    }
  }

  Metrics Score() const override {
    if (score_.questions == 0) {
      return {};
    }
    return {{"accuracy", score_.accuracy()}};
  }

  std::string FileContents() const override {
    return WikihopPredictionsToJson(predictions_);
  }

 private:
  std::vector<WikihopPrediction> predictions_;
  WikihopScore score_;
};

class WikihopTask : public Task {
 public:
  WikihopTask(WikihopOptions options, WikihopSetup setup,
              std::shared_ptr<const Tokenizer> tokenizer)
      : options_(std::move(options)),
        setup_(std::move(setup)),
        tokenizer_(std::move(tokenizer)) {}

  absl::StatusOr<std::vector<std::shared_ptr<const Example>>> MakeExamples(
      const std::string& record, const std::string& where) const override {
    ETC_ASSIGN_OR_RETURN(const WikihopRecord parsed,
                         ParseWikihopRecord(record, where));
    ETC_ASSIGN_OR_RETURN(
        const std::shared_ptr<const WikihopExample> example,
        MakeWikihopExample(parsed, *tokenizer_, setup_.split_sentences,
                           options_.example, where));
    return std::vector<std::shared_ptr<const Example>>{example};
  }

  std::shared_ptr<TaskHead> MakeHead() const override {
    return std::make_shared<WikihopHead>(setup_.model, options_.head);
  }

  std::unique_ptr<TaskPredictions> MakePredictions() const override {
    return std::make_unique<WikihopPredictions>();
  }

  std::string main_metric() const override { return kWikihopMainMetric; }

  std::string Describe(const Example& example) const override {
    return DescribeWikihopExample(AsWikihop(example), *tokenizer_);
  }

 private:
  WikihopOptions options_;
  WikihopSetup setup_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

// `pieces`: of the vocabulary; 0 where there is none yet.
absl::Status CheckTables(const EtcConfig& config, int64_t pieces,
                         const std::string& source) {
  const int64_t needed = std::max<int64_t>(pieces, kWikihopDocumentToken + 1);
  if (config.vocab_size < needed) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": model.vocab_size should be at least ", needed,
        ", for the vocabulary and the global tokens 1 to 5, but is ",
        config.vocab_size));
  }
  if (config.segment_vocab_size <= kWikihopDocumentGlobalType) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": model.segment_vocab_size should be at least ",
                     kWikihopDocumentGlobalType + 1, ", but is ",
                     config.segment_vocab_size));
  }
  return absl::OkStatus();
}

absl::Status CheckVocabulary(const EtcConfig& config,
                             const Tokenizer& tokenizer,
                             MentionAlignment alignment,
                             const std::string& source) {
  ETC_RETURN_IF_ERROR(CheckTables(config, tokenizer.vocab_size(), source));
  // Candidates are in lower case: with such a vocabulary, names would never be
  // found (wikihop spec 3.4). [UNK] is the mark of WordPiece.
  if (alignment == MentionAlignment::kPieces && !tokenizer.lower_cases() &&
      tokenizer.Id("[UNK]") >= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(source,
                     ": tokenizer.lower_case should be true with WordPiece and "
                     "wikihop.mention_alignment \"pieces\""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WikihopOptions> WikihopOptionsFromJson(
    const nlohmann::json& json, const std::string& source) {
  WikihopOptions options;
  JsonObjectReader reader(json, source);
  reader.Optional("add_final_layer", &options.head.add_final_layer);
  reader.Optional("label_smoothing", &options.head.label_smoothing);
  reader.Optional("max_num_sentences", &options.example.max_num_sentences);
  reader.Optional("candidate_ignore_hard_g2l",
                  &options.example.candidate_ignore_hard_g2l);
  reader.Optional("query_ignore_hard_g2l",
                  &options.example.query_ignore_hard_g2l);
  reader.Optional("enable_l2g_linking", &options.example.enable_l2g_linking);
  std::string alignment = "pieces";
  reader.Optional("mention_alignment", &alignment);
  if (alignment == "characters") {
    options.example.mention_alignment = MentionAlignment::kCharacters;
  } else if (alignment != "pieces") {
    reader.Fail("mention_alignment",
                absl::StrCat("should be \"pieces\" or \"characters\", but is ",
                             "\"", alignment, "\""));
  }
  if (options.head.label_smoothing < 0 || options.head.label_smoothing >= 1) {
    reader.Fail("label_smoothing", absl::StrCat("should be in [0, 1), but is ",
                                                options.head.label_smoothing));
  }
  if (options.example.max_num_sentences < 0) {
    reader.Fail("max_num_sentences",
                absl::StrCat("should not be negative, but is ",
                             options.example.max_num_sentences));
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
  return options;
}

absl::StatusOr<std::unique_ptr<Task>> MakeWikihopTask(
    const nlohmann::json& options, const std::string& source,
    WikihopSetup setup, std::shared_ptr<const Tokenizer> tokenizer) {
  const EtcConfig& config = setup.model;
  ETC_ASSIGN_OR_RETURN(WikihopOptions parsed,
                       WikihopOptionsFromJson(options, source));
  ETC_RETURN_IF_ERROR(CheckVocabulary(
      config, *tokenizer, parsed.example.mention_alignment, source));
  parsed.example.max_long_length = setup.max_long_length;
  parsed.example.max_global_length = setup.max_global_length;
  parsed.example.pattern = {
      .local_radius = config.local_radius,
      .relative_pos_max_distance = config.relative_pos_max_distance,
      .hard_g2l = config.use_hard_g2l_mask,
      .hard_l2g = config.use_hard_l2g_mask};
  return std::make_unique<WikihopTask>(std::move(parsed), std::move(setup),
                                       std::move(tokenizer));
}

absl::StatusOr<std::shared_ptr<TaskHead>> MakeWikihopHead(
    const nlohmann::json& options, const std::string& source,
    const EtcConfig& config) {
  ETC_ASSIGN_OR_RETURN(const WikihopOptions parsed,
                       WikihopOptionsFromJson(options, source));
  ETC_RETURN_IF_ERROR(CheckTables(config, /*pieces=*/0, source));
  return std::make_shared<WikihopHead>(config, parsed.head);
}

absl::StatusOr<Metrics> ScoreWikihop(const std::string& gold_path,
                                     const std::string& predictions_path) {
  ETC_ASSIGN_OR_RETURN(const WikihopScore score,
                       ScoreWikihopFiles(gold_path, predictions_path));
  return Metrics{{"accuracy", score.accuracy()},
                 {"answered", score.Share(score.answered)}};
}

}  // namespace etc
