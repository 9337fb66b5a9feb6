#ifndef ETC_TASKS_REGISTRY_H_
#define ETC_TASKS_REGISTRY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/config/field_list.h"
#include "tasks/task/task_entry.h"

namespace etc {

// The benchmarks, in the order in which they are shown.
const std::vector<TaskEntry>& Tasks();

// One of these, or pre-training. kNotFound, with the nearest name, if there is
// no such task. The result lives as long as the program.
absl::StatusOr<const TaskEntry*> FindTask(const std::string& name);

// The fields of configurations: those of all, then those of each task, of
// pre-training and translation last. The field `task` may have any task's name.
std::vector<FieldDescription> AllFields();

// Their types, which ReadRunConfig reads overrides by.
FieldTypes TypesOfFields();

}  // namespace etc

#endif  // ETC_TASKS_REGISTRY_H_
