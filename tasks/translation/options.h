#ifndef ETC_TASKS_TRANSLATION_OPTIONS_H_
#define ETC_TASKS_TRANSLATION_OPTIONS_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "base/fields.h"
#include "tasks/config/config.h"

namespace etc {

// The object "translation" of a configuration, whose field "task" is
// kTranslationTask.
struct TranslationOptions {
  // Tokens of a batch with its padding: sentences times the longest of either
  // side (doc/translation.md 4.1). 0: no limit of sentences.
  int64_t max_tokens = 4096;
  int64_t max_sentences = 0;
  // epsilon of the loss (doc/translation.md 4.2).
  double label_smoothing = 0.1;
  // "closed_form" or "first_batch": the omegas with which a model with sublayer
  // "admin" begins (etc/encoder_decoder/admin_omegas.h), or the file of
  // omegas that ADMIN's code writes.
  std::string admin_omegas = "closed_form";
  // Decoding (doc/translation.md 7), for `realetc translate` where it is not
  // told otherwise.
  int64_t beam_size = 5;
  double length_penalty = 1.0;
  int64_t max_length = 200;

  bool operator==(const TranslationOptions&) const = default;
};

template <>
struct ConfigTable<TranslationOptions> {
  using O = TranslationOptions;
  static constexpr auto kFields = std::make_tuple(
      Field("max_tokens", &O::max_tokens,
            "tokens of a batch, padding included: sentences times the longest "
            "of either side",
            {.least = 1, .most = 1e9}),
      Field("max_sentences", &O::max_sentences,
            "most sentences of a batch; 0: no limit",
            {.least = 0, .most = 1e9}),
      Field("label_smoothing", &O::label_smoothing,
            "share of the target that is spread over the whole vocabulary",
            {.least = 0, .below = 1}),
      Field("admin_omegas", &O::admin_omegas,
            "the omegas with which `\"admin\"` begins: `\"closed_form\"`, "
            "`\"first_batch\"` (profiled on the run's first batch) or a file "
            "`profile.ratio.init`",
            {.is_path = true}),
      Field("beam_size", &O::beam_size,
            "hypotheses of the beam search of `realetc translate`",
            {.least = 1, .most = 1e6}),
      Field("length_penalty", &O::length_penalty,
            "power of the length by which log-probabilities are divided",
            {.least = 0, .most = 100}),
      Field("max_length", &O::max_length, "most tokens of a translation",
            {.least = 1, .most = 1e6}));
};

// Values of admin_omegas that are no files.
inline constexpr char kClosedForm[] = "closed_form";
inline constexpr char kFirstBatch[] = "first_batch";

// The options in `config.task_options`.
//   kInvalidArgument  a field that does not exist, a wrong type or value;
//                     train.micro_batch_size is not 1; a field of "tokenizer"
//                     or "data" that decides nothing
absl::StatusOr<TranslationOptions> ReadTranslationOptions(
    const RunConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_OPTIONS_H_
