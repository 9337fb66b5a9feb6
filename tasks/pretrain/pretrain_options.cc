#include "tasks/pretrain/pretrain_options.h"

#include "absl/strings/str_cat.h"
#include "base/fields.h"
#include "base/json_reader.h"
#include "base/status_macros.h"

namespace etc {
namespace {

static_assert(HasAllFields<PretrainOptions>());

// Refuses fields of the task's object that decide nothing with its objective or
// input: that is a mistake, not a detail.
absl::Status RefuseUnusedFields(const RunConfig& config,
                                const std::string& objective) {
  constexpr char kObject[] = "pretrain";
  const std::string with = absl::StrCat("with objective ", objective);
  if (objective != "mlm_cpc") {
    ETC_RETURN_IF_ERROR(RefuseFields(config, kObject,
                                     {"cpc_rate", "cpc_global_id", "cpc_score",
                                      "cpc_temperature", "cpc_weight"},
                                     with));
  }
  if (objective != "mlm_nsp") {
    ETC_RETURN_IF_ERROR(RefuseFields(config, kObject, {"nsp_weight"}, with));
  }
  return ReadsPairs(config)
             ? RefuseFields(
                   config, kObject,
                   {"max_sentence_share", "packing_full", "packing_open"},
                   "where model.has_long_tokens is false")
             : RefuseFields(config, kObject,
                            {"short_sequence_rate", "static_versions",
                             "mixed_documents"},
                            "where model.has_long_tokens is true");
}

// Refuses fields of other objects of the configuration that decide nothing.
absl::Status CheckOtherObjects(const RunConfig& config) {
  if (config.tokenizer.split_punctuation &&
      config.tokenizer.type != "sentencepiece") {
    return absl::InvalidArgumentError(absl::StrCat(
        config.source,
        ": tokenizer.split_punctuation should be false with tokenizer.type \"",
        config.tokenizer.type, "\": it is for \"sentencepiece\""));
  }
  if (config.data.on_bad_record != DataConfig().on_bad_record) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.source, ": data.on_bad_record should be \"",
        DataConfig().on_bad_record, "\" for pre-training, but is \"",
        config.data.on_bad_record, "\": token stores have no bad records"));
  }
  return ReadsPairs(config)
             ? RefuseFields(config, "data", {"max_long_length"},
                            "where model.has_long_tokens is false; "
                            "max_global_length is the length of an example")
             : absl::OkStatus();
}

void SetDefaultsOf(const std::string& objective, PretrainOptions* options) {
  if (objective == "mlm_cpc") {
    options->whole_words = true;
    options->min_sentences = 7;
    options->mlm_weight = 0.8;
  }
}

}  // namespace

absl::StatusOr<PretrainOptions> ReadPretrainOptions(const RunConfig& config) {
  PretrainOptions options;
  JsonObjectReader reader(config.task_options,
                          absl::StrCat(config.source, ": pretrain"));
  reader.Optional("objective", &options.objective);
  SetDefaultsOf(options.objective, &options);
  ReadFields(&reader, &options);
  const bool pairs = ReadsPairs(config);
  if (options.next_sentence() && !pairs) {
    reader.Fail("objective",
                "mlm_nsp reads pairs as BERT does, all of whose tokens are "
                "global: model.has_long_tokens should be false");
  }
  if (options.objective == "mlm_cpc" && pairs) {
    reader.Fail("objective",
                "mlm_cpc hides the long tokens of sentences: "
                "model.has_long_tokens should be true");
  }
  if (options.max_sentences > 0 &&
      options.max_sentences < options.min_sentences) {
    reader.Fail("max_sentences",
                absl::StrCat("should be at least min_sentences, ",
                             options.min_sentences, ", or 0, but is ",
                             options.max_sentences));
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
  ETC_RETURN_IF_ERROR(RefuseUnusedFields(config, options.objective));
  ETC_RETURN_IF_ERROR(CheckOtherObjects(config));
  if (!config.train.steps.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.source,
        ": train.steps should say how many updates pre-training makes: the "
        "number of examples of an epoch is not known before they are drawn"));
  }
  return options;
}

}  // namespace etc
