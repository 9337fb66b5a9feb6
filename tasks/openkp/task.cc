#include "tasks/openkp/task.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/openkp/description.h"
#include "tasks/openkp/example_cast.h"
#include "tasks/openkp/metric.h"
#include "tasks/openkp/raw.h"

namespace etc {
namespace {

class OpenkpPredictions : public TaskPredictions {
 public:
  explicit OpenkpPredictions(OpenkpDecodingOptions options)
      : options_(options) {}

  void Add(const Batch& batch,
           const std::vector<torch::Tensor>& logits) override {
    TORCH_CHECK(logits.size() == 1 && logits[0].dim() == 3 &&
                    logits[0].size(0) == batch.size() &&
                    logits[0].size(1) == kOpenkpMaxPhraseLength,
                "expected logits [batch, ", kOpenkpMaxPhraseLength, ", words]");
    const torch::Tensor scores =
        logits[0].to(torch::kFloat32).contiguous();  // [B, K, W]
    for (int64_t b = 0; b < batch.size(); ++b) {
      const OpenkpExample& example =
          AsOpenkp(*batch.examples[static_cast<size_t>(b)]);
      TORCH_CHECK(example.num_words <= scores.size(2), "document ",
                  example.record_id, " has more words than logits");
      std::vector<std::string> phrases = DecodeKeyPhrases(
          example,
          {.values = scores[b].data_ptr<float>(), .num_words = scores.size(2)},
          options_);
      contents_ += OpenkpPredictionLine(example.record_id, phrases);
      scorer_.AddPrediction(example.record_id, std::move(phrases));
      if (example.references.has_value()) {
        scorer_.AddGold(example.record_id, *example.references);
      }
    }
  }

  Metrics Score() const override { return scorer_.Scores(); }

  std::string FileContents() const override { return contents_; }

 private:
  const OpenkpDecodingOptions options_;
  OpenkpScorer scorer_;
  std::string contents_;
};

class OpenkpTask : public Task {
 public:
  OpenkpTask(OpenkpOptions options, EtcConfig config,
             std::shared_ptr<const Tokenizer> tokenizer)
      : options_(std::move(options)),
        config_(std::move(config)),
        tokenizer_(std::move(tokenizer)) {}

  absl::StatusOr<std::vector<std::shared_ptr<const Example>>> MakeExamples(
      const std::string& record, const std::string& where) const override {
    ETC_ASSIGN_OR_RETURN(const OpenkpRecord parsed,
                         ParseOpenkpRecord(record, where));
    ETC_ASSIGN_OR_RETURN(
        const std::shared_ptr<const OpenkpExample> example,
        MakeOpenkpExample(parsed, *tokenizer_, options_.example, where));
    return std::vector<std::shared_ptr<const Example>>{example};
  }

  std::shared_ptr<TaskHead> MakeHead() const override {
    return std::make_shared<OpenkpHead>(config_, options_.head);
  }

  std::unique_ptr<TaskPredictions> MakePredictions() const override {
    return std::make_unique<OpenkpPredictions>(options_.decoding);
  }

  std::string main_metric() const override { return kOpenkpMainMetric; }

  std::string Describe(const Example& example) const override {
    return DescribeOpenkpExample(AsOpenkp(example), *tokenizer_);
  }

 private:
  OpenkpOptions options_;
  EtcConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

void ReadRange(JsonObjectReader& reader, const std::string& field,
               ValueRange* range) {
  std::vector<int64_t> ends = {static_cast<int64_t>(range->min),
                               static_cast<int64_t>(range->max)};
  reader.Optional(field, &ends);
  if (ends.size() != 2 || ends[0] >= ends[1]) {
    reader.Fail(field, absl::StrCat("should be [minimum, maximum], but is [",
                                    absl::StrJoin(ends, ", "), "]"));
    return;
  }
  *range = {static_cast<double>(ends[0]), static_cast<double>(ends[1])};
}

void ReadVisualOptions(JsonObjectReader& reader,
                       OpenkpVisualEmbeddingOptions* options) {
  OpenkpVisualOptions& features = options->features;
  reader.Optional("extra_dense_feature_layers", &options->extra_dense_layers);
  ReadRange(reader, "x_range", &features.x);
  ReadRange(reader, "y_range", &features.y);
  ReadRange(reader, "width_range", &features.width);
  ReadRange(reader, "height_range", &features.height);
  reader.Optional("indicators_to_cross", &features.crossed_indicators);
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

void CheckAtLeast(JsonObjectReader& reader, const std::string& field,
                  int64_t minimum, int64_t value) {
  if (value < minimum) {
    reader.Fail(field, absl::StrCat("should be at least ", minimum, ", but is ",
                                    value));
  }
}

// `pieces`: of the vocabulary; 0 where there is none yet.
absl::Status CheckTables(const EtcConfig& config, int64_t pieces,
                         const std::string& source) {
  const int64_t tokens = std::max<int64_t>(pieces, kOpenkpGlobalToken + 1);
  if (config.vocab_size < tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": model.vocab_size should be at least ", tokens,
                     ", for the vocabulary and the global token 1, but is ",
                     config.vocab_size));
  }
  if (config.segment_vocab_size <= kOpenkpLongType) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": model.segment_vocab_size should be at least ",
        kOpenkpLongType + 1, ", but is ", config.segment_vocab_size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OpenkpOptions> OpenkpOptionsFromJson(const nlohmann::json& json,
                                                    const std::string& source) {
  OpenkpOptions options;
  JsonObjectReader reader(json, source);
  OpenkpHeadOptions& head = options.head;
  OpenkpDecodingOptions& decoding = options.decoding;
  int64_t& fixed_block_length = options.example.fixed_block_length;
  bool official = false;
  reader.Optional("additive_smoothing_mass", &head.additive_smoothing_mass);
  reader.Optional("use_visual_features_in_long",
                  &head.use_visual_features_in_long);
  reader.Optional("use_visual_features_in_global",
                  &head.use_visual_features_in_global);
  ReadVisualOptions(reader, &head.visual);
  reader.Optional("max_kp_predictions", &decoding.max_phrases);
  reader.Optional("max_position_predictions", &decoding.max_positions);
  reader.Optional("fixed_block_length", &fixed_block_length);
  reader.Optional("official_compatibility", &official);
  if (head.additive_smoothing_mass < 0) {
    reader.Fail("additive_smoothing_mass",
                absl::StrCat("should not be negative, but is ",
                             head.additive_smoothing_mass));
  }
  CheckAtLeast(reader, "max_kp_predictions", 1, decoding.max_phrases);
  CheckAtLeast(reader, "max_position_predictions", 1, decoding.max_positions);
  CheckAtLeast(reader, "fixed_block_length", 0, fixed_block_length);
  if (fixed_block_length > 0 && (head.use_visual_features_in_long ||
                                 head.use_visual_features_in_global)) {
    reader.Fail("fixed_block_length",
                "leaves no elements of the page: use_visual_features_in_long "
                "and use_visual_features_in_global should be false");
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
  options.example.official_compatibility = official;
  head.official_compatibility = official;
  decoding.official_compatibility = official;
  return options;
}

absl::StatusOr<std::unique_ptr<Task>> MakeOpenkpTask(
    const nlohmann::json& options, const std::string& source,
    const OpenkpSetup& setup, std::shared_ptr<const Tokenizer> tokenizer) {
  ETC_ASSIGN_OR_RETURN(OpenkpOptions parsed,
                       OpenkpOptionsFromJson(options, source));
  ETC_RETURN_IF_ERROR(
      CheckTables(setup.model, tokenizer->vocab_size(), source));
  parsed.head.max_long_length = setup.max_long_length;
  parsed.example.max_long_length = setup.max_long_length;
  parsed.example.max_global_length = setup.max_global_length;
  parsed.example.pattern = {
      .local_radius = setup.model.local_radius,
      .relative_pos_max_distance = setup.model.relative_pos_max_distance,
      .hard_g2l = setup.model.use_hard_g2l_mask,
      .hard_l2g = setup.model.use_hard_l2g_mask};
  return std::make_unique<OpenkpTask>(std::move(parsed), setup.model,
                                      std::move(tokenizer));
}

absl::StatusOr<std::shared_ptr<TaskHead>> MakeOpenkpHead(
    const nlohmann::json& options, const std::string& source,
    const OpenkpSetup& setup) {
  ETC_ASSIGN_OR_RETURN(OpenkpOptions parsed,
                       OpenkpOptionsFromJson(options, source));
  ETC_RETURN_IF_ERROR(CheckTables(setup.model, /*pieces=*/0, source));
  parsed.head.max_long_length = setup.max_long_length;
  return std::make_shared<OpenkpHead>(setup.model, parsed.head);
}

}  // namespace etc
