#include "tasks/pretrain/pretrain_options.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config_fields.h"

namespace etc {
namespace {

static_assert(HasAllFields<PretrainOptions>());

// Fields that only some objectives or inputs have.
const std::vector<std::string>& PairFields() {
  static const auto* const fields = new std::vector<std::string>{
      "short_sequence_rate", "static_versions", "mixed_documents"};
  return *fields;
}
const std::vector<std::string>& PackingFields() {
  static const auto* const fields = new std::vector<std::string>{
      "max_sentence_share", "packing_full", "packing_open"};
  return *fields;
}
const std::vector<std::string>& CpcFields() {
  static const auto* const fields =
      new std::vector<std::string>{"cpc_rate", "cpc_global_id", "cpc_score",
                                   "cpc_temperature", "cpc_weight"};
  return *fields;
}

// A field that decides nothing is a mistake, not a detail.
void RefuseFields(const std::vector<std::string>& fields,
                  const std::string& reason, JsonObjectReader* reader) {
  for (const std::string& field : fields) {
    if (reader->Has(field)) {
      reader->Fail(field, absl::StrCat("decides nothing ", reason));
    }
  }
}

// Refuses fields of other objects of the configuration that decide nothing.
absl::Status CheckOtherObjects(const FinetuneConfig& config) {
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
  const nlohmann::json data =
      config.json.value("data", nlohmann::json::object());
  JsonObjectReader reader(data, absl::StrCat(config.source, ": data"));
  if (ReadsPairs(config)) {
    RefuseFields({"max_long_length"},
                 "where model.has_long_tokens is false; max_global_length is "
                 "the length of a pair",
                 &reader);
  }
  return reader.Finish(JsonObjectReader::UnknownFields::kIgnore);
}

void SetDefaultsOf(const std::string& objective, PretrainOptions* options) {
  if (objective == "mlm_cpc") {
    options->whole_words = true;
    options->min_sentences = 7;
    options->mlm_weight = 0.8;
  }
}

}  // namespace

absl::StatusOr<PretrainOptions> ReadPretrainOptions(
    const FinetuneConfig& config) {
  PretrainOptions options;
  JsonObjectReader reader(config.task_options,
                          absl::StrCat(config.source, ": pretrain"));
  reader.Optional("objective", &options.objective);
  SetDefaultsOf(options.objective, &options);
  ReadFields(&reader, &options);
  const bool pairs = ReadsPairs(config);
  if (options.objective == "mlm_nsp" && !pairs) {
    reader.Fail("objective",
                "mlm_nsp reads pairs as BERT does, all of whose tokens are "
                "global: model.has_long_tokens should be false");
  }
  if (options.objective == "mlm_cpc" && pairs) {
    reader.Fail("objective",
                "mlm_cpc hides the long tokens of sentences: "
                "model.has_long_tokens should be true");
  }
  const std::string with = absl::StrCat("with objective ", options.objective);
  if (options.objective != "mlm_cpc") {
    RefuseFields(CpcFields(), with, &reader);
  }
  if (options.objective != "mlm_nsp") {
    RefuseFields({"nsp_weight"}, with, &reader);
  }
  const char* const where = pairs ? "where model.has_long_tokens is false"
                                  : "where model.has_long_tokens is true";
  RefuseFields(pairs ? PackingFields() : PairFields(), where, &reader);
  if (options.max_sentences > 0 &&
      options.max_sentences < options.min_sentences) {
    reader.Fail("max_sentences",
                absl::StrCat("should be at least min_sentences, ",
                             options.min_sentences, ", or 0, but is ",
                             options.max_sentences));
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
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
