#include "tasks/commands/residual_option.h"

#include <CLI/CLI.hpp>

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

}  // namespace etc
