#ifndef ETC_TASKS_DATA_HOLD_OUT_H_
#define ETC_TASKS_DATA_HOLD_OUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tasks/data/record_source.h"

namespace etc {

// Records of the training data that are held out for evaluations.
struct HoldOutOptions {
  // Names of files, or patterns: data.train.
  std::vector<std::string> patterns;
  // Share of the records, in [0, 1); 0: none are.
  double fraction = 0;
  int64_t seed = 1;
  // The result of DescribeHeldOut when the run began; empty: it has not begun.
  std::string expected;
};

// Chooses the records that are held out: element i of the result is true if
// record i is. `strata` has the stratum (the label) of each record. Each
// stratum gives the same share, up to one record, but keeps at least one
// record; where that allows it, the total is round(fraction * size). The draws
// depend on the seed and on the order of the records alone.
std::vector<bool> ChooseHeldOut(const std::vector<std::string>& strata,
                                const HoldOutOptions& options);

// Describes the held out records by their number and their SHA-256: "90 of 900
// records, sha256:9f86d0...". Other records give another text.
std::string DescribeHeldOut(const std::vector<FileRecord>& records,
                            const std::vector<bool>& is_held_out);

// ChooseHeldOut of records, with the stratum that `stratum(json, where)` gives
// each.
//   kFailedPrecondition  they are not those that the run began with: the files
//                        have changed
//   kInvalidArgument     none is held out
absl::StatusOr<std::vector<bool>> FindHeldOut(
    const std::vector<FileRecord>& records,
    absl::FunctionRef<std::string(const std::string& json,
                                  const std::string& where)>
        stratum,
    const HoldOutOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_DATA_HOLD_OUT_H_
