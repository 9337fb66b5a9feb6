#ifndef ETC_BASE_SHAPE_TEXT_H_
#define ETC_BASE_SHAPE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace etc {

// The shape of a tensor, for messages: "[2, 3]".
inline std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace etc

#endif  // ETC_BASE_SHAPE_TEXT_H_
