#ifndef ETC_TASKS_TASK_NOTICES_H_
#define ETC_TASKS_TASK_NOTICES_H_

#include <string>
#include <vector>

namespace etc {

// Lines for people about data or weights: facts, and warnings of what is likely
// not meant. Lines do not say which of the two they are.
struct Notices {
  std::vector<std::string> messages = {};
  std::vector<std::string> warnings = {};
};

}  // namespace etc

#endif  // ETC_TASKS_TASK_NOTICES_H_
