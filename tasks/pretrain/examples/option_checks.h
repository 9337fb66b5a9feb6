#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_OPTION_CHECKS_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_OPTION_CHECKS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tasks/pretrain/corpus/token_store.h"
#include "tasks/pretrain/examples/masking.h"

namespace etc {

// Options of sources of pre-training that a configuration sets. Messages name
// the field.

// kInvalidArgument unless `value` is in [0, 1].
absl::Status CheckShare(absl::string_view field, double value);

// kInvalidArgument unless rates are in range, and all ids that masking may
// write are in a vocabulary that has at least the store's.
absl::Status CheckMaskedLm(const MaskedLmOptions& options,
                           const TokenStore& store);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_OPTION_CHECKS_H_
