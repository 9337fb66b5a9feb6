#include "tasks/commands/model_options.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "etc/residual_choice.h"

namespace etc {

CLI::Validator AtLeastOne() {
  return CLI::Validator(
      [](const std::string& text) {
        int64_t number = 0;
        // Numbers that are too large are CheckWholeNumbers' (program.cc).
        const bool is_too_large =
            !text.empty() && absl::c_all_of(text, absl::ascii_isdigit);
        return (absl::SimpleAtoi(text, &number) ? number >= 1 : is_too_large)
                   ? std::string()
                   : absl::StrCat(
                         "should be a whole number of at least 1, but is ",
                         text.empty() ? "\"\"" : text);
      },
      "POSITIVE");
}

CLI::Validator AtLeastZero() {
  return CLI::Validator(
      [](const std::string& text) {
        double number = 0;
        return absl::SimpleAtod(text, &number) && std::isfinite(number) &&
                       number >= 0
                   ? std::string()
                   : absl::StrCat("should be a number of at least 0, but is ",
                                  text.empty() ? "\"\"" : text);
      },
      "NONNEGATIVE");
}

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
