#ifndef ETC_TASKS_NQ_RAW_H_
#define ETC_TASKS_NQ_RAW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/nq/record.h"

namespace etc {

// Formats common to data and predictions (doc/nq.md 1.2, 6.5, 7.1).

// The field "example_id": a whole number, or a string of its digits.
void ReadNqExampleId(JsonObjectReader& reader, int64_t* example_id);

// The fields "long_answer", "short_answers" and "yes_no_answer" of an object;
// each must be there if `required`, and else is no answer where it is absent.
// Null spans are left out of the short answers. "yes_no_answer" is YES, NO or
// NONE in any case.
absl::StatusOr<NqAnnotation> NqAnnotationFromJson(const nlohmann::json& json,
                                                  bool required,
                                                  const std::string& where);

}  // namespace etc

#endif  // ETC_TASKS_NQ_RAW_H_
