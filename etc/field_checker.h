#ifndef ETC_ETC_FIELD_CHECKER_H_
#define ETC_ETC_FIELD_CHECKER_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "attention/residual_attention.h"

namespace etc {

// Names of values in both configurations, EtcConfig and EncoderDecoderConfig;
// of the first two in the order of the enums ResidualAttention and Sublayer.
inline constexpr const char* kResidualModes[] = {"off", "sum", "mean", "decay",
                                                 "gate"};
inline constexpr const char* kSublayers[] = {"post_norm", "pre_norm", "rezero",
                                             "admin"};
inline constexpr const char* kActivations[] = {"relu", "gelu", "gelu_erf",
                                               "tanh", "linear"};

// Checks of the fields of a configuration, of which the first that fails is
// kept. Messages name the source, the field, what was expected and what was
// found:
//
//   etc_config.json: hidden_size should be from 1 to 1048576, but is 0
class FieldChecker {
 public:
  // `source` begins each message and must outlive the checker.
  explicit FieldChecker(const std::string& source) : source_(source) {}

  // Any rule: "<field> should be <expected>, but is <found>" unless `good`.
  template <typename T>
  void Check(bool good, absl::string_view field, absl::string_view expected,
             const T& found) {
    if (!good && status_.ok()) {
      status_ = absl::InvalidArgumentError(absl::StrCat(
          source_, ": ", field, " should be ", expected, ", but is ", found));
    }
  }
  // least <= size <= most.
  void Size(absl::string_view field, int64_t size, int64_t least,
            int64_t most) {
    Check(least <= size && size <= most, field,
          absl::StrCat("from ", least, " to ", most), size);
  }
  // The same from 1 on, where there is a size.
  void OptionalSize(absl::string_view field, std::optional<int64_t> size,
                    int64_t most) {
    if (size.has_value()) {
      Size(field, *size, 1, most);
    }
  }
  // In [0, 1).
  void Probability(absl::string_view field, double value) {
    Check(0 <= value && value < 1, field, "at least 0 and below 1", value);
  }
  template <size_t kCount>
  void OneOf(absl::string_view field, const char* const (&names)[kCount],
             const std::string& value) {
    bool found = false;
    for (const absl::string_view name : names) {
      found = found || name == value;
    }
    Check(found, field, absl::StrCat("one of ", absl::StrJoin(names, ", ")),
          absl::StrCat("\"", value, "\""));
  }

  // Residual attention on one path of `layers` layers: the mode, and that
  // `decay`, in (0, 1), is large enough for the deepest layer.
  void ResidualPath(absl::string_view field, const std::string& mode,
                    int64_t layers, double decay) {
    OneOf(field, kResidualModes, mode);
    if (mode != "decay" || layers < 2) {
      return;
    }
    const double least =
        std::pow(kLargestDecayFactor, -1.0 / static_cast<double>(layers - 1));
    Check(decay > least, "residual_decay",
          absl::StrCat("above ", least, " for ", layers,
                       " layers, so that its powers stay exact"),
          decay);
  }

  // kInvalidArgument for the first failure.
  const absl::Status& status() const { return status_; }

 private:
  const std::string& source_;
  absl::Status status_;
};

}  // namespace etc

#endif  // ETC_ETC_FIELD_CHECKER_H_
