// `realetc fields`: the fields of configurations.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "tasks/commands/commands.h"
#include "tasks/config/field_list.h"
#include "tasks/registry.h"

namespace etc {
namespace {

struct FieldsArguments {
  std::string pattern;
  std::string format = "text";
};

absl::Status PrintFields(const FieldsArguments& arguments) {
  std::vector<FieldDescription> fields = AllFields();
  if (!arguments.pattern.empty()) {
    ETC_ASSIGN_OR_RETURN(fields, SelectFields(fields, arguments.pattern));
  }
  std::cout << (arguments.format == "markdown" ? FieldsAsMarkdown(fields)
                : arguments.format == "json"   ? FieldsAsJson(fields)
                                               : FieldsAsText(fields));
  return absl::OkStatus();
}

}  // namespace

void AddFieldsCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<FieldsArguments>();
  CLI::App* command = program->add_subcommand(
      "fields", "List the fields of configurations, with defaults and bounds");
  command->footer(
      "Examples:\n"
      "  realetc fields train.epochs\n"
      "  realetc fields schedule\n"
      "  realetc fields 'train.*rate*'\n"
      "Each may be given as --set FIELD=VALUE. doc/configuration.md says "
      "more.");
  command->add_option("PATTERN", arguments->pattern,
                      "Field, object (train), pattern as in a shell, or part "
                      "of a name; default: all fields");
  command
      ->add_option("--format", arguments->format,
                   "text, markdown (rows of a table) or json")
      ->check(CLI::IsMember({"text", "markdown", "json"}));
  command->callback(
      [=] { *action = [arguments] { return PrintFields(*arguments); }; });
}

}  // namespace etc
