#ifndef ETC_TASKS_TASK_RECORD_TEXTS_H_
#define ETC_TASKS_TASK_RECORD_TEXTS_H_

#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>

#include "base/utf8.h"

namespace etc {

// Returns true if all texts in `value` are UTF-8: a string, a list or an
// optional of texts, or a struct, whose texts are the members that its tuple
// kTexts names. Without kTexts a struct has none.
template <typename T>
bool HasUtf8Texts([[maybe_unused]] const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return IsUtf8(value);
  } else if constexpr (requires { T::kTexts; }) {
    return std::apply(
        [&value](auto... members) {
          return (HasUtf8Texts(value.*members) && ...);
        },
        T::kTexts);
  } else if constexpr (requires { value.has_value(); }) {
    return !value.has_value() || HasUtf8Texts(*value);
  } else if constexpr (requires { value.begin(); }) {
    return std::all_of(value.begin(), value.end(), [](const auto& element) {
      return HasUtf8Texts(element);
    });
  } else {
    return true;
  }
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_RECORD_TEXTS_H_
