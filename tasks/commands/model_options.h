#ifndef ETC_TASKS_COMMANDS_MODEL_OPTIONS_H_
#define ETC_TASKS_COMMANDS_MODEL_OPTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "etc/weights/tokenizer_files.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace etc {

// Validators of options: whole numbers of at least 1, shown as POSITIVE, and
// numbers of at least 0, shown as NONNEGATIVE. Their message says what should
// be; that of CLI11 names the largest double with its 309 digits.
CLI::Validator AtLeastOne();
CLI::Validator AtLeastZero();

// Adds --residual, which takes a mode of etc/residual_choice.h; anything else
// is a mistake in usage. `help` is a sentence without the forms.
void AddResidualOption(CLI::App* command, const std::string& help,
                       std::string* choice);

// Adds --device: a device of tasks/config/device_choice.h, "auto" by default.
void AddDeviceOption(CLI::App* command, std::string* device);

// Checks that an option which is given is for a vocabulary of this type:
// "wordpiece", "sentencepiece".
//   kInvalidArgument  the vocabulary is of another
absl::Status CheckVocabularyOption(const std::string& option,
                                   const std::string& type,
                                   const TokenizerFiles& vocabulary);

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_MODEL_OPTIONS_H_
