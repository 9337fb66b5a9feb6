#include "tasks/commands/model_options.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "etc/residual_choice.h"

namespace etc {

void AddResidualOption(CLI::App* command, const std::string& help,
                       std::string* choice) {
  command->add_option("--residual", *choice, help)
      ->check(CLI::Validator(
          [](const std::string& text) {
            return std::string(ParseResidualChoice(text).status().message());
          },
          "off|sum|mean|decay[=BETA]|gate[=INITIAL]"));
}

void AddDeviceOption(CLI::App* command, std::string* device) {
  command->add_option("--device", *device,
                      "auto (CUDA where there is a device, else the CPU), cpu, "
                      "cuda or cuda:1 (default: auto)");
}

absl::Status CheckVocabularyOption(const std::string& option,
                                   const std::string& type,
                                   const TokenizerFiles& vocabulary) {
  if (vocabulary.type == type) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(option, " is for a vocabulary of ", type, ", but ",
                   vocabulary.vocabulary.empty()
                       ? std::string("there is none")
                       : absl::StrCat(vocabulary.vocabulary, " is one of ",
                                      vocabulary.type)));
}

}  // namespace etc
