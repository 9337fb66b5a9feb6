#ifndef ETC_TASKS_COMMANDS_ALL_FIELDS_H_
#define ETC_TASKS_COMMANDS_ALL_FIELDS_H_

#include <vector>

#include "tasks/config/field_list.h"

namespace etc {

// The fields of configurations: those of all, then those of each task, of
// pre-training last.
std::vector<FieldDescription> AllFields();

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_ALL_FIELDS_H_
