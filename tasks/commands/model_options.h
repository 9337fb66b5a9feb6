#ifndef ETC_TASKS_COMMANDS_MODEL_OPTIONS_H_
#define ETC_TASKS_COMMANDS_MODEL_OPTIONS_H_

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace etc {

// Adds --residual, which takes a mode of etc/residual_choice.h; anything else
// is a mistake in usage. `help` is a sentence without the forms.
void AddResidualOption(CLI::App* command, const std::string& help,
                       std::string* choice);

// Adds --device: a device of tasks/config/device_choice.h, "auto" by default.
void AddDeviceOption(CLI::App* command, std::string* device);

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_MODEL_OPTIONS_H_
