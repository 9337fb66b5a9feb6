#ifndef ETC_TASKS_TASK_NOTICES_H_
#define ETC_TASKS_TASK_NOTICES_H_

#include <string>
#include <vector>

namespace etc {

// Lines for people about data or weights: facts, and warnings of what is likely
// not meant. No line says which of the two it is.
struct Notices {
  std::vector<std::string> messages = {};
  std::vector<std::string> warnings = {};
};

}  // namespace etc

#endif  // ETC_TASKS_TASK_NOTICES_H_
