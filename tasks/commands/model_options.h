#ifndef ETC_TASKS_COMMANDS_RESIDUAL_OPTION_H_
#define ETC_TASKS_COMMANDS_RESIDUAL_OPTION_H_

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace etc {

// Adds --residual, which takes a mode of etc/residual_choice.h; anything else
// is a mistake in usage. `help` is a sentence without the forms.
void AddResidualOption(CLI::App* command, const std::string& help,
                       std::string* choice);

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_RESIDUAL_OPTION_H_
