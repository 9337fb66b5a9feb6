#include "tasks/translation/options.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"

namespace etc {

static_assert(HasAllFields<TranslationOptions>());

absl::StatusOr<TranslationOptions> ReadTranslationOptions(
    const RunConfig& config) {
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
  constexpr char kReason[] = "for translation";
  ETC_RETURN_IF_ERROR(RefuseFields(
      config, "tokenizer", {"lower_case", "split_punctuation"}, kReason));
  ETC_RETURN_IF_ERROR(RefuseFields(
      config, "data",
      {"max_long_length", "max_global_length", "bucket_batches"}, kReason));
  return options;
}

}  // namespace etc
