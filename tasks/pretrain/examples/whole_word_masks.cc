#include "tasks/pretrain/examples/whole_word_masks.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tasks/pretrain/pretrain_example.h"

namespace etc {
namespace {

struct MaskCounts {
  int64_t found = 0;
  int64_t wanted = 0;
};

// Counts the masks of some records, as an evaluation makes them.
absl::StatusOr<MaskCounts> CountMasks(const ExampleSource& train) {
  constexpr int64_t kRecords = 100;
  constexpr int64_t kMasks = 100'000;
  MaskCounts counts;
  const int64_t interval = std::max<int64_t>(train.size() / kRecords, 1);
  for (int64_t record = 0; record < train.size() && counts.wanted < kMasks;
       record += interval) {
    ETC_ASSIGN_OR_RETURN(const Examples examples,
                         train.Make(RequestForEvaluation(record)));
    for (const auto& any : examples) {
      const auto& example = dynamic_cast<const PretrainExample&>(*any);
      counts.found += static_cast<int64_t>(example.masked_labels.size());
      counts.wanted += example.masks_wanted;
    }
  }
  return counts;
}

}  // namespace

absl::StatusOr<std::string> CheckWholeWordMasks(const ExampleSource& train) {
  ETC_ASSIGN_OR_RETURN(const MaskCounts counts, CountMasks(train));
  if (2 * counts.found >= counts.wanted) {
    return "";
  }
  constexpr char kReason[] =
      ", because words have more pieces than may be masked, as in text without "
      "blanks";
  if (counts.found == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "pretrain.whole_words should be false for these data: no token is "
        "masked",
        kReason));
  }
  return absl::StrFormat(
      "whole words: %.0f %% of the tokens that pretrain.mask_rate "
      "asks for are masked%s; with pretrain.whole_words false all are",
      100 * static_cast<double>(counts.found) /
          static_cast<double>(counts.wanted),
      kReason);
}

}  // namespace etc
