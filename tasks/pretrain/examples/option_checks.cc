#include "tasks/pretrain/examples/option_checks.h"

#include "base/status_macros.h"

namespace etc {

absl::Status CheckShare(absl::string_view field, double value) {
  // Not a number is in no range.
  if (!(value >= 0 && value <= 1)) {
    return InvalidArgument(field, " should be from 0 to 1, but is ", value);
  }
  return absl::OkStatus();
}

absl::Status CheckMaskedLm(const MaskedLmOptions& options,
                           const TokenStore& store) {
  ETC_RETURN_IF_ERROR(CheckShare("mask_rate", options.rate));
  if (options.max_predictions < 0) {
    return InvalidArgument("max_predictions should not be negative, but is ",
                           options.max_predictions);
  }
  const int64_t vocab_size = store.settings().vocab_size;
  if (options.vocab_size < vocab_size) {
    return InvalidArgument("the vocabulary should have the ", vocab_size,
                           " pieces of ", store.path(), ", but has ",
                           options.vocab_size);
  }
  if (options.mask_id < 0 || options.mask_id >= options.vocab_size) {
    return InvalidArgument("the token that masks should be below ",
                           options.vocab_size, ", but is ", options.mask_id);
  }
  if (options.random_min_id < 0 ||
      options.random_min_id >= options.vocab_size) {
    return InvalidArgument(
        "random_min_id should be below the ", options.vocab_size,
        " pieces of the vocabulary, but is ", options.random_min_id);
  }
  return absl::OkStatus();
}

}  // namespace etc
