#include "tasks/nq/task.h"

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace etc {
namespace {

// Factor for a rate that is not given.
constexpr double kUnanswerableFactor = 4;

void ReadExampleOptions(JsonObjectReader& reader, NqOptions* options) {
  bool fixed_blocks = false;
  int64_t fixed_block_size = 27;
  ReadCount(reader, "stride", 1, &options->stride);
  ReadCount(reader, "question_len", 0, &options->max_question_length);
  reader.Optional("predict_la_when_no_sa", &options->predict_long_as_short);
  reader.Optional("include_unknown_rate", &options->include_unknown_rate);
  options->include_unknown_rate_for_unanswerable =
      kUnanswerableFactor * options->include_unknown_rate;
  reader.Optional("include_unknown_rate_for_unanswerable",
                  &options->include_unknown_rate_for_unanswerable);
  reader.Optional("include_unknown_seed", &options->unknown_seed);
  reader.Optional("fixed_blocks", &fixed_blocks);
  ReadCount(reader, "fixed_block_size", 1, &fixed_block_size);
  options->fixed_block_length = fixed_blocks ? fixed_block_size : 0;
  CheckAtLeast(reader, "include_unknown_rate", options->include_unknown_rate,
               0);
  CheckAtLeast(reader, "include_unknown_rate_for_unanswerable",
               options->include_unknown_rate_for_unanswerable, 0);
}

void ReadDecodingOptions(JsonObjectReader& reader, NqOptions* options) {
  ReadChoice(reader, "span_selection_method",
             {{"joint", NqSpanSelection::kJoint},
              {"disjoint", NqSpanSelection::kDisjoint},
              {"joint_exhaustive", NqSpanSelection::kJointExhaustive}},
             &options->span_selection);
  reader.Optional("consider_answer_type", &options->consider_answer_type);
  ReadCount(reader, "max_short_answer_len", 1,
            &options->max_short_answer_length);
}

}  // namespace

absl::Span<const OptionField> Nq::OptionFields() const {
  static constexpr OptionField kFields[] = {
      {"stride", "whole number", "`2048`", "at least 1, at most 2147483647",
       "pieces from window to window"},
      {"question_len", "whole number", "`32`", "at least 0, at most 2147483647",
       "pieces of the question that are read"},
      {"include_unknown_rate", "number", "`1`", "at least 0",
       "share of the windows without answer that training keeps, of pages with "
       "an answer"},
      {"include_unknown_rate_for_unanswerable", "number",
       "4 times `include_unknown_rate`", "at least 0",
       "the same of pages without answer"},
      {"include_unknown_seed", "whole number", "`0`", "",
       "seed of the choice of windows without answer"},
      {"predict_la_when_no_sa", "true or false", "`false`", "",
       "train to say the long answer as the short one where there is none"},
      {"fixed_blocks", "true or false", "`false`", "",
       "ablation: a global token for every `fixed_block_size` long ones in "
       "place of question and candidates"},
      {"fixed_block_size", "whole number", "`27`",
       "at least 1, at most 2147483647", "long tokens of such a block"},
      {"mask_long_output", "true or false", "`true`; officially `false`", "",
       "softmax over `[CLS]` and the document only"},
      {"span_selection_method", "text", "`\"joint\"`",
       "\"joint\", \"disjoint\" or \"joint_exhaustive\"",
       "`\"joint\"`, `\"disjoint\"` or `\"joint_exhaustive\"`: how the best "
       "answer is found"},
      {"consider_answer_type", "true or false", "`true`", "",
       "whether yes, no and \"long alone\" replace the short answer"},
      {"max_short_answer_len", "whole number", "`32`",
       "at least 1, at most 2147483647", "tokens of the longest short answer"},
      {"official_compatibility", "true or false", "`false`", "",
       "reproduce the official program, its mistakes included (the task's page "
       "lists them)"}};
  return kFields;
}

void Nq::ReadOptions(JsonObjectReader& reader, Options* options) const {
  reader.Optional("official_compatibility", &options->official_compatibility);
  options->mask_long_output = !options->official_compatibility;
  reader.Optional("mask_long_output", &options->mask_long_output);
  ReadExampleOptions(reader, options);
  ReadDecodingOptions(reader, options);
}

NeededLengths Nq::Lengths(const Options& options) const {
  const int64_t question = options.max_question_length;
  return {.long_tokens = question + kNqNumSpecialTokens + options.stride,
          .long_use = "the question, [CLS], two [SEP] and a stride",
          .global_tokens = question + 2,
          .global_use = "[CLS], the question and its [SEP]"};
}

absl::Status Nq::UseVocabulary(const Tokenizer& tokenizer,
                               Options* options) const {
  ETC_ASSIGN_OR_RETURN(options->tokens,
                       NqTokensOf(options->input.tokenizer_kind, tokenizer));
  return absl::OkStatus();
}

std::optional<Nq::Gold> Nq::GoldOf(const Record& record) const {
  return record.annotations.empty() ? std::nullopt
                                    : std::optional<Gold>(record.annotations);
}

Nq::PredictionsOr Nq::ReadPredictions(const std::string& path) const {
  ETC_ASSIGN_OR_RETURN(const std::string text, etc::ReadFile(path));
  ETC_ASSIGN_OR_RETURN(std::vector<NqPrediction> predictions,
                       NqPredictionsFromJson(text, path));
  ById<NqPrediction> by_id;
  for (NqPrediction& prediction : predictions) {
    by_id.emplace_back(absl::StrCat(prediction.example_id),
                       std::move(prediction));
  }
  return by_id;
}

std::string Nq::PredictionJson(const std::string& /*id*/,
                               const Prediction& prediction) const {
  return NqPredictionToJson(prediction);
}

std::string Nq::FileContents(const Answers& answers) const {
  std::vector<NqPrediction> all;
  for (const auto& [id, prediction] : answers.predictions) {
    all.push_back(prediction);
  }
  return NqPredictionsToJson(all);
}

}  // namespace etc
