#ifndef ETC_TASKS_TASK_NAMING_PLACE_H_
#define ETC_TASKS_TASK_NAMING_PLACE_H_

#include <exception>
#include <string>
#include <type_traits>

namespace etc {

// Throws `error`, which is being handled, as c10::Error with "<place>: " before
// its message. Running out of memory, a LimitReached, a stop and an error of a
// TensorFile are thrown as they are.
[[noreturn]] void RethrowWithPlace(const std::exception& error,
                                   const std::string& place);

// Runs `action`, code of a benchmark's author, and throws its exceptions by
// RethrowWithPlace: "vector::_M_range_check" alone leads nobody to a mistake.
// `place` returns a string, and is called only then.
template <typename Place, typename Action>
std::invoke_result_t<Action> NamingPlace(const Place& place,
                                         const Action& action) {
  try {
    return action();
  } catch (const std::exception& error) {
    RethrowWithPlace(error, place());
  }
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_NAMING_PLACE_H_
