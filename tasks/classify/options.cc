#include "tasks/classify/options.h"

#include <cmath>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/json_reader.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/classify/table.h"
#include "tasks/classify/task.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

// Notes a mistake if a field is there that has a use under `condition` alone.
void CheckHasUse(JsonObjectReader& reader, const std::string& field,
                 bool has_use, absl::string_view condition) {
  if (reader.Has(field) && !has_use) {
    reader.Fail(field, absl::StrCat("should be absent unless ", condition));
  }
}

// `field`, or the default one unless another option names that.
std::optional<std::string> FieldOrDefault(
    const ClassifyOptions& options, const std::optional<std::string>& field,
    const char* default_field) {
  const bool is_taken = absl::c_linear_search(options.text, default_field) ||
                        options.text_b == default_field ||
                        options.id == default_field ||
                        options.label == default_field;
  return field.has_value() || is_taken ? field : default_field;
}

// Notes a mistake if two of the options name the same field.
void CheckFieldsDiffer(JsonObjectReader& reader,
                       const ClassifyOptions& options) {
  std::map<std::string, std::string> named_by = {{options.label, "label"}};
  const auto add = [&](const std::string& option, const std::string& field) {
    const auto [earlier, is_new] = named_by.try_emplace(field, option);
    if (!is_new) {
      reader.Fail(
          option,
          absl::StrCat("should name another field than classify.",
                       earlier->second, ", but both name ", QuotedName(field)));
    }
  };
  for (const std::string& field : options.text) {
    add("text", field);
  }
  if (options.needs_text_b()) {
    add("text_b", *options.text_b);
  }
  if (options.id.has_value()) {
    add("id", *options.id);
  }
}

}  // namespace

std::optional<std::string> ClassifyOptions::text_b_or_default() const {
  return FieldOrDefault(*this, needs_text_b() ? text_b : std::nullopt,
                        "text_b");
}

std::optional<std::string> ClassifyOptions::id_or_default() const {
  return FieldOrDefault(*this, id, "id");
}

void ConfigTable<ClassifyOptions>::ReadDelimiter(JsonObjectReader& reader,
                                                 ClassifyOptions* options) {
  std::string delimiter;
  reader.Optional("delimiter", &delimiter);
  CheckHasUse(reader, "delimiter",
              options->format == ClassifyFormat::kByName ||
                  options->format == ClassifyFormat::kCsv,
              "format is \"csv\" or absent");
  if (!reader.Has("delimiter")) {
    return;
  }
  if (delimiter.size() != 1 || !IsDelimiter(delimiter[0])) {
    reader.Fail("delimiter",
                absl::StrCat("should be one character such as \",\", \";\" or "
                             "\"\\t\", but is ",
                             QuotedName(delimiter)));
    return;
  }
  options->delimiter = delimiter[0];
}

void ConfigTable<ClassifyOptions>::ReadLabels(JsonObjectReader& reader,
                                              ClassifyOptions* options) {
  std::vector<std::string>& labels = options->labels;
  reader.OneOrMore("labels", &labels);
  if (!reader.Has("labels")) {
    return;
  }
  const size_t least = options->type == ClassifyType::kOne ? 2 : 1;
  const std::set<std::string> different(labels.begin(), labels.end());
  if (options->type == ClassifyType::kNumber) {
    reader.Fail("labels", "should be absent where type is \"number\"");
  } else if (different.size() < least || different.size() < labels.size() ||
             absl::c_any_of(labels, IsBlank)) {
    reader.Fail("labels", absl::StrCat("should name at least ",
                                       least == 2 ? "two labels" : "one label",
                                       ", each once, and none empty"));
  }
}

void ConfigTable<ClassifyOptions>::ReadClassWeights(JsonObjectReader& reader,
                                                    ClassifyOptions* options) {
  const nlohmann::json* weights =
      reader.Raw("class_weights", /*required=*/false);
  if (weights == nullptr) {
    return;
  }
  CheckHasUse(reader, "class_weights", options->type == ClassifyType::kOne,
              "type is \"one\"");
  if (*weights == "balanced") {
    options->balances_classes = true;
    return;
  }
  if (!weights->is_object()) {
    reader.Fail("class_weights",
                "should be \"balanced\", or an object with a number for each "
                "label");
    return;
  }
  const std::set<std::string> labels(options->labels.begin(),
                                     options->labels.end());
  for (const auto& [label, weight] : weights->items()) {
    const std::string field = absl::StrCat("class_weights.", label);
    if (!labels.empty() && !labels.contains(label)) {
      reader.Fail(field, "is the weight of no label");
    } else if (!weight.is_number() || !(weight.get<double>() >= 0) ||
               !std::isfinite(weight.get<double>())) {
      reader.Fail(field, "should be a number that is not negative");
    } else {
      options->class_weights[label] = weight.get<double>();
    }
  }
}

void Classify::CheckOptions(JsonObjectReader& reader, Options* options) const {
  const std::set<std::string> different(options->text.begin(),
                                        options->text.end());
  if (different.empty() || different.size() < options->text.size()) {
    reader.Fail("text", "should name at least one field, each once");
  }
  CheckFieldsDiffer(reader, *options);
  for (const char* field : {"label_separator", "threshold"}) {
    CheckHasUse(reader, field, options->type == ClassifyType::kSeveral,
                "type is \"several\"");
  }
  if (options->label_separator.empty()) {
    reader.Fail("label_separator", "should not be empty");
  }
  for (const char* field : {"mean", "deviation"}) {
    CheckHasUse(reader, field, options->type == ClassifyType::kNumber,
                "type is \"number\"");
  }
}

}  // namespace etc
