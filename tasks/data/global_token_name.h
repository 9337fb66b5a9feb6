#ifndef ETC_TASKS_DATA_GLOBAL_TOKEN_NAME_H_
#define ETC_TASKS_DATA_GLOBAL_TOKEN_NAME_H_

#include <cstdint>
#include <string>

namespace etc {

// The kind of the global tokens that have an id, for people ("candidate").
struct GlobalTokenName {
  std::string name;
  int32_t id = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_GLOBAL_TOKEN_NAME_H_
