#ifndef ETC_TASKS_TEXT_HUGGINGFACE_PATTERN_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_PATTERN_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/text/byte_range.h"

namespace etc::huggingface {

// A pattern to search for.
class Pattern {
 public:
  virtual ~Pattern() = default;

  // Calls `visit` for each match in `text`, from left to right; matches do not
  // overlap, and may be empty, but for directly behind another one. May be
  // called from several threads. Throws LimitReached (base/out_of_memory.h) if
  // an expression takes far more steps or memory than those of published
  // files.
  virtual void FindAll(
      absl::string_view text,
      absl::FunctionRef<void(ByteRange match)> visit) const = 0;
};

// Reads {"String": TEXT} or {"Regex": EXPRESSION}; `where` names it in
// messages. An expression is Oniguruma's, as far as ICU understands it alike:
// classes, at most 64 in one another, \p{...}, \s, \w, \d, groups,
// look-around, quantifiers.
//   kUnimplemented    an expression with anything else
//   kInvalidArgument  neither, or a mistake in the expression
absl::StatusOr<std::shared_ptr<const Pattern>> ReadPattern(
    const nlohmann::json& json, const std::string& where);

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_PATTERN_H_
