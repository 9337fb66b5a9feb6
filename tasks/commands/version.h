#ifndef ETC_TASKS_COMMANDS_VERSION_H_
#define ETC_TASKS_COMMANDS_VERSION_H_

#include <string>

namespace etc {

// What a report of a problem should have: this program's version, and a line
// for each fact of DescribeMachine (base/machine_description.h).
std::string VersionText();

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_VERSION_H_
