#include "tasks/config/field_list.h"

#include <fnmatch.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "etc/config.h"
#include "etc/config_fields.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config_fields.h"

namespace etc {
namespace {

using Json = nlohmann::json;

// The text of a number as people write it: 5e-5, 1, 0.1, 1048576.
std::string NumberText(double number) {
  std::array<char, 32> digits;  // enough for the shortest text of any double
  const std::to_chars_result written =
      std::to_chars(digits.data(), digits.data() + digits.size(), number);
  const std::string text(digits.data(), written.ptr);
  return absl::StrReplaceAll(text, {{"e-0", "e-"}, {"e+0", "e"}, {"e+", "e"}});
}

std::string DefaultValueText(const Json& value) {
  if (value.is_array()) {
    return absl::StrCat(
        "[",
        absl::StrJoin(value, ", ",
                      [](std::string* text, const Json& element) {
                        absl::StrAppend(text, DefaultValueText(element));
                      }),
        "]");
  }
  return value.is_number_float() ? NumberText(value.get<double>())
                                 : JsonText(value);
}

std::string BoundsText(const FieldRule& rule) {
  std::vector<std::string> parts;
  const auto add = [&](absl::string_view words,
                       const std::optional<double>& bound) {
    if (bound.has_value()) {
      parts.push_back(absl::StrCat(words, " ", NumberText(*bound)));
    }
  };
  add("at least", rule.least);
  add("more than", rule.above);
  add("at most", rule.most);
  add("less than", rule.below);
  if (!rule.one_of.empty()) {
    parts.push_back(
        absl::StrCat("\"", absl::StrJoin(rule.one_of, "\" or \""), "\""));
  }
  if (!rule.more_bounds.empty()) {
    parts.emplace_back(rule.more_bounds);
  }
  return absl::StrJoin(parts, ", ");
}

// The text of a link in doc/configuration.md and the file that it leads to, as
// a path from the root: "formulas (doc/model.md)". A text that the path begins
// with is left out.
std::string LinkText(absl::string_view text, absl::string_view target) {
  const std::string file(target.substr(0, target.find('#')));
  const std::string path = (std::filesystem::path("doc") /
                            (file.empty() ? "configuration.md" : file))
                               .lexically_normal()
                               .string();
  return absl::StartsWith(path, text) ? path
                                      : absl::StrCat(text, " (", path, ")");
}

// Markdown as a terminal shows it: without marks of code, links as LinkText.
std::string WithoutMarkdown(absl::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const size_t open = text.find('[');
    const size_t middle = text.find("](", open);
    const size_t close = text.find(')', middle);
    const bool is_link = close != absl::string_view::npos &&
                         text.substr(open + 1, middle - open - 1).find('[') ==
                             absl::string_view::npos;
    if (!is_link) {
      // The first mark of those that are none.
      const size_t end =
          open == absl::string_view::npos ? text.size() : open + 1;
      absl::StrAppend(&plain, text.substr(0, end));
      text.remove_prefix(end);
      continue;
    }
    absl::StrAppend(&plain, text.substr(0, open),
                    LinkText(text.substr(open + 1, middle - open - 1),
                             text.substr(middle + 2, close - middle - 2)));
    text.remove_prefix(close + 1);
  }
  return absl::StrReplaceAll(plain, {{"`", ""}});
}

// Appends `text` in lines of at most 80 columns, each behind 4 spaces.
void AppendParagraph(absl::string_view text, std::string* lines) {
  constexpr size_t kColumns = 80;
  std::string line = "   ";
  for (const absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (line.size() > 4 && line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(lines, line, "\n");
      line = "   ";
    }
    absl::StrAppend(&line, " ", word);
  }
  absl::StrAppend(lines, line, "\n");
}

}  // namespace

std::string DefaultText(const nlohmann::json& value) {
  return absl::StrCat("`", DefaultValueText(value), "`");
}

FieldDescription DescribeByRule(const std::string& name,
                                absl::string_view meaning,
                                const FieldRule& rule, absl::string_view type,
                                const std::string& default_value) {
  return {.name = name,
          .type = std::string(rule.type_text.empty() ? type : rule.type_text),
          .default_value = rule.default_text.empty()
                               ? default_value
                               : std::string(rule.default_text),
          .bounds = BoundsText(rule),
          .meaning = std::string(meaning),
          .words = {rule.one_of.begin(), rule.one_of.end()}};
}

std::vector<FieldDescription> ConfigFields() {
  std::vector<FieldDescription> fields;
  const RunConfig defaults;
  ForEachConfigField(defaults, [&](const std::string& name, const auto& field,
                                   const auto& value) {
    fields.push_back(DescribeField(name, field.meaning, field.rule, value));
    if (name == "task") {
      fields.back().default_value = "required";
    }
  });
  fields.push_back({.name = "grid",
                    .type = "object of lists",
                    .default_value = "`{}`",
                    .bounds = "",
                    .meaning = "several values for some of these fields: [a "
                               "run for each "
                               "combination](#a-grid-of-settings)"});
  absl::c_move(DescribeTable<ModelOrigin>("model"), std::back_inserter(fields));
  absl::c_move(DescribeTable<EtcConfig>("model"), std::back_inserter(fields));
  return fields;
}

absl::StatusOr<std::vector<FieldDescription>> SelectFields(
    const std::vector<FieldDescription>& fields, const std::string& pattern) {
  const auto select = [&](auto is_meant) {
    std::vector<FieldDescription> selected;
    for (const FieldDescription& field : fields) {
      if (is_meant(field.name)) {
        selected.push_back(field);
      }
    }
    return selected;
  };
  std::vector<FieldDescription> selected = select([&](const std::string& name) {
    return name == pattern || absl::StartsWith(name, pattern + ".") ||
           fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
  if (selected.empty()) {
    selected = select([&](const std::string& name) {
      return absl::StrContains(name, pattern);
    });
  }
  if (!selected.empty()) {
    return selected;
  }
  // A field may be meant by its last name, too.
  std::vector<std::string> names;
  std::vector<std::string> last_names;
  for (const FieldDescription& field : fields) {
    names.push_back(field.name);
    last_names.push_back(field.name.substr(field.name.rfind('.') + 1));
  }
  std::string nearest = NearestName(pattern, names);
  if (nearest.empty()) {
    nearest = NearestName(pattern, last_names);
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no field \"", pattern, "\"",
      nearest.empty() ? "; `realetc fields` lists all"
                      : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

std::string FieldsAsText(const std::vector<FieldDescription>& fields) {
  std::string text;
  for (const FieldDescription& field : fields) {
    absl::StrAppend(
        &text, field.name, field.task.empty() ? "" : " of " + field.task, "  (",
        field.type, "; ", field.default_value == "required" ? "" : "default ",
        WithoutMarkdown(field.default_value), field.bounds.empty() ? "" : "; ",
        WithoutMarkdown(field.bounds), ")\n");
    AppendParagraph(WithoutMarkdown(field.meaning), &text);
  }
  return text;
}

std::string FieldsAsMarkdown(const std::vector<FieldDescription>& fields,
                             absl::string_view without) {
  std::string rows;
  for (const FieldDescription& field : fields) {
    absl::StrAppend(&rows, "| `", absl::StripPrefix(field.name, without), "`",
                    field.task.empty() ? "" : " of `" + field.task + "`", " | ",
                    field.default_value, " | ", field.meaning, " |\n");
  }
  return rows;
}

std::string FieldsAsJson(const std::vector<FieldDescription>& fields) {
  auto json = nlohmann::ordered_json::array();
  for (const FieldDescription& field : fields) {
    json.push_back({{"name", field.name},
                    {"type", field.type},
                    {"default", WithoutMarkdown(field.default_value)},
                    {"bounds", WithoutMarkdown(field.bounds)},
                    {"meaning", WithoutMarkdown(field.meaning)}});
    if (!field.task.empty()) {
      json.back()["task"] = field.task;
    }
  }
  return JsonText(json, /*indent=*/2) + "\n";
}

}  // namespace etc
