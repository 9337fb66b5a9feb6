#include "tasks/nq/task.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/nq/description.h"
#include "tasks/nq/example_cast.h"
#include "tasks/nq/predictions.h"
#include "tasks/nq/raw.h"

namespace etc {
namespace {

// Of the long input besides question and document: [CLS] and two [SEP].
constexpr int64_t kNumSpecial = 3;
// Of a rate that is not given.
constexpr double kUnanswerableFactor = 4;

class NqTask : public Task {
 public:
  NqTask(NqOptions options, EtcConfig config,
         std::shared_ptr<const Tokenizer> tokenizer)
      : options_(std::move(options)),
        config_(std::move(config)),
        tokenizer_(std::move(tokenizer)) {}

  absl::StatusOr<std::vector<std::shared_ptr<const Example>>> MakeExamples(
      const std::string& record, const std::string& where) const override {
    ETC_ASSIGN_OR_RETURN(NqRecord parsed, ParseNqRecord(record, where));
    const auto windows =
        MakeNqExamples(std::move(parsed), *tokenizer_, options_.example);
    return std::vector<std::shared_ptr<const Example>>(windows.begin(),
                                                       windows.end());
  }

  std::shared_ptr<TaskHead> MakeHead() const override {
    return std::make_shared<NqHead>(config_, options_.head);
  }

  std::unique_ptr<TaskPredictions> MakePredictions() const override {
    return std::make_unique<NqPredictions>(options_.decoding);
  }

  std::string main_metric() const override { return kNqMainMetric; }

  std::string Describe(const Example& example) const override {
    return DescribeNqExample(AsNq(example), *tokenizer_,
                             options_.example.tokens);
  }

 private:
  NqOptions options_;
  EtcConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

void ReadExampleOptions(JsonObjectReader& reader, NqExampleOptions* options) {
  bool fixed_blocks = false;
  int64_t fixed_block_size = 27;
  reader.Optional("stride", &options->stride);
  reader.Optional("question_len", &options->max_question_length);
  reader.Optional("predict_la_when_no_sa", &options->predict_long_as_short);
  reader.Optional("include_unknown_rate", &options->include_unknown_rate);
  options->include_unknown_rate_for_unanswerable =
      kUnanswerableFactor * options->include_unknown_rate;
  reader.Optional("include_unknown_rate_for_unanswerable",
                  &options->include_unknown_rate_for_unanswerable);
  reader.Optional("include_unknown_seed", &options->unknown_seed);
  reader.Optional("fixed_blocks", &fixed_blocks);
  reader.Optional("fixed_block_size", &fixed_block_size);
  options->fixed_block_length = fixed_blocks ? fixed_block_size : 0;
  const auto check = [&reader](const char* field, auto value, auto least) {
    if (!(value >= least)) {
      reader.Fail(field, absl::StrCat("should be at least ", least, ", but is ",
                                      value));
    }
  };
  check("stride", options->stride, 1);
  check("question_len", options->max_question_length, 0);
  check("include_unknown_rate", options->include_unknown_rate, 0);
  check("include_unknown_rate_for_unanswerable",
        options->include_unknown_rate_for_unanswerable, 0);
  check("fixed_block_size", fixed_block_size, 1);
}

void ReadDecodingOptions(JsonObjectReader& reader, NqDecodingOptions* options) {
  std::string method = "joint";
  reader.Optional("span_selection_method", &method);
  reader.Optional("consider_answer_type", &options->consider_answer_type);
  reader.Optional("max_short_answer_len", &options->max_short_answer_length);
  if (method == "disjoint") {
    options->span_selection = NqSpanSelection::kDisjoint;
  } else if (method == "joint_exhaustive") {
    options->span_selection = NqSpanSelection::kJointExhaustive;
  } else if (method != "joint") {
    reader.Fail("span_selection_method",
                absl::StrCat("should be \"joint\", \"disjoint\" or "
                             "\"joint_exhaustive\", but is \"",
                             method, "\""));
  }
  if (options->max_short_answer_length < 1) {
    reader.Fail("max_short_answer_len",
                absl::StrCat("should be at least 1, but is ",
                             options->max_short_answer_length));
  }
}

// `pieces`: of the vocabulary; 0 where there is none yet.
absl::Status CheckSetup(const NqSetup& setup, const NqExampleOptions& options,
                        int64_t pieces, const std::string& source) {
  const auto check = [&source](const char* field, int64_t value, int64_t least,
                               const char* what_for) {
    return value >= least ? absl::OkStatus()
                          : absl::InvalidArgumentError(absl::StrCat(
                                source, ": ", field, " should be at least ",
                                least, ", for ", what_for, ", but is ", value));
  };
  ETC_RETURN_IF_ERROR(
      check("data.max_long_length", setup.max_long_length,
            options.max_question_length + kNumSpecial + options.stride,
            "the question, [CLS], two [SEP] and a stride"));
  ETC_RETURN_IF_ERROR(check("data.max_global_length", setup.max_global_length,
                            options.max_question_length + 2,
                            "[CLS], the question and its [SEP]"));
  ETC_RETURN_IF_ERROR(
      check("model.vocab_size", setup.model.vocab_size,
            std::max<int64_t>(pieces, kNqGlobalQuestionToken + 1),
            "the vocabulary and the global tokens of Natural Questions"));
  return check("model.segment_vocab_size", setup.model.segment_vocab_size,
               kNqLongType + 1, "the types of tokens");
}

}  // namespace

absl::StatusOr<NqOptions> NqOptionsFromJson(const nlohmann::json& json,
                                            const std::string& source) {
  NqOptions options;
  JsonObjectReader reader(json, source);
  bool official_compatibility = false;
  reader.Optional("official_compatibility", &official_compatibility);
  options.head.mask_long_output = !official_compatibility;
  reader.Optional("mask_long_output", &options.head.mask_long_output);
  ReadExampleOptions(reader, &options.example);
  ReadDecodingOptions(reader, &options.decoding);
  ETC_RETURN_IF_ERROR(reader.Finish());
  options.example.official_compatibility = official_compatibility;
  options.decoding.official_compatibility = official_compatibility;
  return options;
}

absl::StatusOr<std::unique_ptr<Task>> MakeNqTask(
    const nlohmann::json& options, const std::string& source,
    const NqSetup& setup, std::shared_ptr<const Tokenizer> tokenizer) {
  ETC_ASSIGN_OR_RETURN(NqOptions parsed, NqOptionsFromJson(options, source));
  ETC_RETURN_IF_ERROR(
      CheckSetup(setup, parsed.example, tokenizer->vocab_size(), source));
  const auto tokens = NqTokensOf(setup.tokenizer_kind, *tokenizer);
  if (!tokens.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": ", tokens.status().message()));
  }
  parsed.example.tokens = *tokens;
  parsed.example.max_long_length = setup.max_long_length;
  parsed.example.max_global_length = setup.max_global_length;
  parsed.example.pattern = {
      .local_radius = setup.model.local_radius,
      .relative_pos_max_distance = setup.model.relative_pos_max_distance,
      .hard_g2l = setup.model.use_hard_g2l_mask,
      .hard_l2g = setup.model.use_hard_l2g_mask};
  return std::make_unique<NqTask>(std::move(parsed), setup.model,
                                  std::move(tokenizer));
}

absl::StatusOr<std::shared_ptr<TaskHead>> MakeNqHead(
    const nlohmann::json& options, const std::string& source,
    const NqSetup& setup) {
  ETC_ASSIGN_OR_RETURN(const NqOptions parsed,
                       NqOptionsFromJson(options, source));
  ETC_RETURN_IF_ERROR(CheckSetup(setup, parsed.example, /*pieces=*/0, source));
  return std::make_shared<NqHead>(setup.model, parsed.head);
}

}  // namespace etc
