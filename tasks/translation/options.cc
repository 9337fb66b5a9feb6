#include "tasks/translation/options.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace etc {

static_assert(HasAllFields<TranslationOptions>());

namespace {

// Refuses fields of the object `name` of the configuration that are for the
// inputs of encoders.
absl::Status RefuseEncoderFields(const FinetuneConfig& config,
                                 const std::string& name,
                                 const std::vector<std::string>& fields) {
  const nlohmann::json object =
      config.json.value(name, nlohmann::json::object());
  JsonObjectReader reader(object, absl::StrCat(config.source, ": ", name));
  for (const std::string& field : fields) {
    if (reader.Has(field)) {
      reader.Fail(field, "decides nothing for translation");
    }
  }
  return reader.Finish(JsonObjectReader::UnknownFields::kIgnore);
}

}  // namespace

absl::StatusOr<TranslationOptions> ReadTranslationOptions(
    const FinetuneConfig& config) {
  TranslationOptions options;
  JsonObjectReader reader(config.task_options,
                          absl::StrCat(config.source, ": translation"));
  ReadFields(&reader, &options);
  ETC_RETURN_IF_ERROR(reader.Finish());
  if (config.train.micro_batch_size != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.source,
        ": train.micro_batch_size should be 1 for translation, "
        "whose batches have translation.max_tokens tokens, but is ",
        config.train.micro_batch_size));
  }
  ETC_RETURN_IF_ERROR(RefuseEncoderFields(config, "tokenizer",
                                          {"lower_case", "split_punctuation"}));
  ETC_RETURN_IF_ERROR(RefuseEncoderFields(
      config, "data", {"max_long_length", "max_global_length"}));
  return options;
}

}  // namespace etc
