// `realetc completion`: scripts by which shells complete its command lines,
// made of the commands and fields themselves.

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "attention/residual_attention.h"
#include "tasks/commands/commands.h"
#include "tasks/registry.h"

namespace etc {
namespace {

// The command whose words behind its options are those of another command.
constexpr absl::string_view kLaunch = "launch";

// Kind of a value of the command line, as the scripts name it.
enum class ValueKind { kNone, kFile, kField, kSetting, kWords };

// An option, or an argument without one.
struct Value {
  std::string name;     // "--set", or "" of an argument
  std::string summary;  // for zsh
  ValueKind kind = ValueKind::kFile;
  std::vector<std::string> words;  // of kWords
  bool takes_several = false;
};

struct Command {
  std::string name;
  std::string summary;
  std::vector<Value> options;
  std::vector<Value> arguments;
};

// The words that a field may be, and those of a switch.
std::vector<std::string> WordsOf(const FieldDescription& field) {
  return field.type == "true or false"
             ? std::vector<std::string>{"true", "false"}
             : field.words;
}

std::vector<std::string> TaskNames() {
  std::vector<std::string> names;
  for (const TaskEntry& task : Tasks()) {
    names.push_back(task.name);
  }
  return names;
}

// The words that CLI::IsMember allows an option, whose type is then
// "TEXT:{bash,zsh}"; none: it has no such check.
std::vector<std::string> MembersOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find(":{");
  const size_t end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) {
    return {};
  }
  return absl::StrSplit(type.substr(begin + 2, end - begin - 2), ',');
}

// The value of an option or argument of a command, which is called `name`.
Value ValueOf(const std::string& command, const std::string& name,
              const CLI::Option& option) {
  Value value = {.name = name, .summary = option.get_description()};
  value.takes_several = option.get_items_expected_max() > 1 && name != "--set";
  const auto words = [&](std::vector<std::string> all) {
    value.kind = ValueKind::kWords;
    value.words = std::move(all);
  };
  if (std::vector<std::string> members = MembersOf(option); !members.empty()) {
    words(std::move(members));
  } else if (option.get_items_expected_max() == 0) {
    value.kind = ValueKind::kNone;
  } else if (name == "--set") {
    value.kind = ValueKind::kSetting;
  } else if (name == "--allow-changes" ||
             (command == "fields" && name == "PATTERN")) {
    value.kind = ValueKind::kField;
  } else if (name == "TASK") {
    words(TaskNames());
  } else if (name == "--device") {
    words({"auto", "cpu", "cuda"});
  } else if (name == "--residual") {
    words({std::begin(kResidualAttentionNames),
           std::end(kResidualAttentionNames)});
  }
  return value;
}

std::vector<Command> CommandsOf(const CLI::App& program) {
  std::vector<Command> commands;
  for (const CLI::App* app :
       program.get_subcommands([](const CLI::App*) { return true; })) {
    Command command = {.name = app->get_name(),
                       .summary = app->get_description()};
    for (const CLI::Option* option :
         app->get_options([](const CLI::Option*) { return true; })) {
      const bool is_argument = option->get_positional();
      if (!is_argument && option->get_lnames().empty()) {
        continue;
      }
      (is_argument ? command.arguments : command.options)
          .push_back(ValueOf(command.name,
                             is_argument
                                 ? option->get_name(/*positional=*/true)
                                 : absl::StrCat("--", option->get_lnames()[0]),
                             *option));
    }
    // COMMAND is no positional of CLI11.
    if (command.name == kLaunch) {
      command.arguments.push_back(
          {.kind = ValueKind::kWords,
           .words = std::vector<std::string>(kLaunchedCommands.begin(),
                                             kLaunchedCommands.end())});
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

std::string Join(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ");
}

std::string FieldNames() {
  std::vector<std::string> names;
  for (const FieldDescription& field : AllFields()) {
    names.push_back(field.name);
  }
  return Join(names);
}

// The cases "train.precision) echo 'fp32 bf16' ;;" of a shell.
std::string FieldValueCases() {
  std::string cases;
  for (const FieldDescription& field : AllFields()) {
    const std::vector<std::string> words = WordsOf(field);
    if (!words.empty()) {
      absl::StrAppend(&cases, "    ", field.name, ") echo '", Join(words),
                      "' ;;\n");
    }
  }
  return cases;
}

// --- bash --------------------------------------------------------------------

std::string KindName(const Value& value) {
  switch (value.kind) {
    case ValueKind::kNone:
      return "none";
    case ValueKind::kFile:
      return "file";
    case ValueKind::kField:
      return "field";
    case ValueKind::kSetting:
      return "setting";
    case ValueKind::kWords:
      return absl::StrCat("words ", Join(value.words));
  }
  return "";
}

// The functions that do not depend on commands. A "=" ends a word of bash, so
// that a setting is three of them, unless COMP_WORDBREAKS has none.
constexpr char kBashFunctions[] = R"sh(
_realetc_reply() {
  mapfile -t COMPREPLY < <(compgen "$@")
}

_realetc_value() {
  local field=$1 word=$2 before=$3
  local values
  values=$(_realetc_field_values "$field")
  if [[ -n $values ]]; then
    _realetc_reply -P "$before" -W "$values" -- "$word"
  elif [[ -z $before ]]; then
    compopt -o filenames 2>/dev/null
    _realetc_reply -f -- "$word"
  fi
}

_realetc_setting() {
  local word=$1
  if [[ $word == *=* ]]; then
    _realetc_value "${word%%=*}" "${word#*=}" "${word%%=*}="
  else
    compopt -o nospace 2>/dev/null
    _realetc_reply -S = -W "$_realetc_fields" -- "$word"
  fi
}

_realetc_complete() {
  local kind=$1 word=$2
  case $kind in
    file)
      compopt -o filenames 2>/dev/null
      _realetc_reply -f -- "$word" ;;
    field) _realetc_reply -W "$_realetc_fields" -- "$word" ;;
    setting) _realetc_setting "$word" ;;
    words\ *) _realetc_reply -W "${kind#words }" -- "$word" ;;
  esac
}

# Leaves only the command that `launch` runs, once it is there.
_realetc_skip_launch() {
  local at kind=none
  for ((at = 2; at < COMP_CWORD; ++at)); do
    if [[ ${COMP_WORDS[at]} == -* ]]; then
      kind=$(_realetc_kind launch "${COMP_WORDS[at]}")
    elif [[ $kind == none ]]; then
      COMP_WORDS=(realetc "${COMP_WORDS[@]:at}")
      ((COMP_CWORD -= at - 1))
      return
    elif [[ ${COMP_WORDS[at]} != = ]]; then
      kind=none
    fi
  done
}

_realetc() {
  if [[ ${COMP_WORDS[1]} == launch ]]; then
    _realetc_skip_launch
  fi
  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _realetc_reply -W "$_realetc_commands --help --version" -- "$word"
    return
  fi
  if [[ $word == = ]]; then
    _realetc_value "${COMP_WORDS[COMP_CWORD - 1]}" '' ''
    return
  fi
  if [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
    _realetc_value "${COMP_WORDS[COMP_CWORD - 2]}" "$word" ''
    return
  fi
  if [[ $word == -* ]]; then
    _realetc_reply -W "$(_realetc_options "$command")" -- "$word"
    return
  fi
  local at option='' kind=none arguments=0
  for ((at = 2; at < COMP_CWORD; ++at)); do
    if [[ ${COMP_WORDS[at]} == -* ]]; then
      option=${COMP_WORDS[at]}
      kind=$(_realetc_kind "$command" "$option")
    elif [[ $kind == several\ * ]]; then
      :
    elif [[ $kind != none ]]; then
      kind=none
      # The rest of FIELD=VALUE.
      if [[ ${COMP_WORDS[at + 1]} == = ]]; then
        ((at += 2))
      fi
    else
      ((++arguments))
    fi
  done
  kind=${kind#several }
  if [[ $kind == none ]]; then
    kind=$(_realetc_argument "$command" "$arguments")
  fi
  _realetc_complete "$kind" "$word"
}

complete -F _realetc realetc
)sh";

std::string BashScript(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  std::string options;
  std::string kinds;
  std::string arguments;
  for (const Command& command : commands) {
    names.push_back(command.name);
    std::vector<std::string> option_names;
    for (const Value& option : command.options) {
      option_names.push_back(option.name);
      if (option.kind != ValueKind::kNone) {
        absl::StrAppend(&kinds, "    '", command.name, " ", option.name,
                        "') echo '", option.takes_several ? "several " : "",
                        KindName(option), "' ;;\n");
      }
    }
    absl::StrAppend(&options, "    ", command.name, ") echo '",
                    Join(option_names), "' ;;\n");
    for (size_t i = 0; i < command.arguments.size(); ++i) {
      const Value& argument = command.arguments[i];
      absl::StrAppend(&arguments, "    '", command.name, " ",
                      argument.takes_several ? "'*" : absl::StrCat(i, "'"),
                      ") echo '", KindName(argument), "' ;;\n");
    }
  }
  return absl::StrCat(
      "# Completion of realetc for bash: source <(realetc completion bash)\n\n",
      "_realetc_commands='", Join(names), "'\n_realetc_fields='", FieldNames(),
      "'\n\n_realetc_field_values() {\n  case $1 in\n", FieldValueCases(),
      "  esac\n}\n\n_realetc_options() {\n  case $1 in\n", options,
      "  esac\n}\n\n_realetc_kind() {\n  case \"$1 $2\" in\n", kinds,
      "    *) echo none ;;\n  esac\n}\n\n_realetc_argument() {\n"
      "  case \"$1 $2\" in\n",
      arguments, "    *) echo none ;;\n  esac\n}\n", kBashFunctions);
}

// --- zsh ---------------------------------------------------------------------

// A text within the quotes and brackets of an argument of _arguments.
std::string ZshText(const std::string& text) {
  return absl::StrReplaceAll(
      text,
      {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"\n", " "}});
}

std::string ZshAction(const Value& value) {
  switch (value.kind) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kFile:
      return ":file:_files";
    case ValueKind::kField:
      return ":field:_realetc_field";
    case ValueKind::kSetting:
      return ":setting:_realetc_setting";
    case ValueKind::kWords:
      return absl::StrCat(":value:(", Join(value.words), ")");
  }
  return "";
}

constexpr char kZshFunctions[] = R"sh(
_realetc_field() {
  compadd -a _realetc_fields
}

_realetc_setting() {
  if compset -P 1 '*='; then
    local field=${IPREFIX%=}
    local -a values
    values=(${=$(_realetc_field_values ${field##* })})
    if (( $#values )); then
      compadd -a values
    else
      _files
    fi
  else
    compadd -q -S = -a _realetc_fields
  fi
}
)sh";

std::string ZshScript(const std::vector<Command>& commands) {
  std::string described;
  std::string cases;
  for (const Command& command : commands) {
    absl::StrAppend(&described, "    '", command.name, ":",
                    ZshText(command.summary), "'\n");
    absl::StrAppend(&cases, "    ", command.name, ")\n      _arguments");
    for (const Value& option : command.options) {
      const bool may_repeat = option.name == "--set";
      absl::StrAppend(&cases, " \\\n        '", may_repeat ? "*" : "",
                      option.name, "[", ZshText(option.summary), "]",
                      ZshAction(option), "'");
    }
    const bool is_launch = command.name == kLaunch;
    for (size_t i = 0; i < command.arguments.size(); ++i) {
      const Value& argument = command.arguments[i];
      absl::StrAppend(&cases, " \\\n        '", is_launch ? "(-)" : "",
                      argument.takes_several ? "*" : absl::StrCat(i + 1),
                      ZshAction(argument), "'");
    }
    if (is_launch) {
      absl::StrAppend(&cases, " \\\n        '(-)*::word:_realetc_command'");
    }
    absl::StrAppend(&cases, " ;;\n");
  }
  return absl::StrCat(
      "#compdef realetc\n"
      "# Completion of realetc for zsh: source <(realetc completion zsh)\n\n"
      "typeset -ga _realetc_fields\n_realetc_fields=(",
      FieldNames(), ")\n\n_realetc_field_values() {\n  case $1 in\n",
      FieldValueCases(), "  esac\n}\n", kZshFunctions,
      "\n_realetc_command() {\n  case $words[1] in\n", cases,
      "  esac\n}\n\n_realetc() {\n  local -a commands\n  commands=(\n",
      described,
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n"
      "    return\n  fi\n  shift words\n  (( CURRENT-- ))\n"
      "  _realetc_command\n}\n\n"
      "if (( $+functions[compdef] )); then\n  compdef _realetc realetc\nfi\n");
}

}  // namespace

void AddCompletionCommand(CLI::App* program, Action* action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = program->add_subcommand(
      "completion", "Print the script by which a shell completes commands");
  command->footer(
      "Now, and in ~/.bashrc or ~/.zshrc for all later shells:\n"
      "  source <(realetc completion bash)\n"
      "Installed packages have it in place.");
  command->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([=] {
    *action = [=] {
      const std::vector<Command> commands = CommandsOf(*program);
      std::cout << (*shell == "bash" ? BashScript(commands)
                                     : ZshScript(commands));
      return absl::OkStatus();
    };
  });
}

}  // namespace etc
