#include "etc/weights/hugging_face_fields.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

constexpr char kKey[] = "hugging_face";

// The beginning of the names of classes by model_type.
constexpr std::pair<const char*, const char*> kModelTypes[] = {
    {"bert", "Bert"},
    {"roberta", "Roberta"},
    {"xlm-roberta", "XLMRoberta"},
    {"camembert", "Camembert"},
};

// True if all labels are HuggingFace's placeholders, LABEL_0, LABEL_1, ...
bool ArePlaceholders(const std::vector<std::string>& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != PlaceholderLabel(i)) {
      return false;
    }
  }
  return true;
}

// Labels by their indices.
class LabelTable {
 public:
  explicit LabelTable(std::string field) : field_(std::move(field)) {}

  void Add(const std::string& label, const std::string& index) {
    int64_t number = -1;
    if (!absl::SimpleAtoi(index, &number) || number < 0) {
      return Fail(absl::StrCat("the index of ", QuotedName(label),
                               " should be a whole number from 0, but is ",
                               QuotedName(index)));
    }
    if (!by_index_.emplace(number, label).second) {
      return Fail(absl::StrCat("index ", number, " is there twice"));
    }
    if (!names_.insert(label).second) {
      return Fail(absl::StrCat("label ", QuotedName(label), " is there twice"));
    }
  }
  void Fail(const std::string& message) {
    if (mistake_.empty()) {
      mistake_ = absl::StrCat(field_, ": ", message);
    }
  }

  std::vector<std::string> labels() {
    std::vector<std::string> labels;
    for (const auto& [index, label] : by_index_) {
      if (index != static_cast<int64_t>(labels.size())) {
        Fail(absl::StrCat("there is no label ", labels.size(), ", but a label ",
                          index));
        return {};
      }
      labels.push_back(label);
    }
    return labels;
  }
  const std::string& mistake() const { return mistake_; }

 private:
  const std::string field_;
  std::map<int64_t, std::string> by_index_;
  std::set<std::string> names_;
  std::string mistake_;
};

std::string TextOf(const json& value) {
  return value.is_string() ? value.get<std::string>() : JsonText(value);
}

// The labels in the object `field`, by keys if `by_index`, else by values.
std::vector<std::string> ReadLabels(const json& fields,
                                    const std::string& field, bool by_index,
                                    std::string* mistake) {
  const auto found = fields.find(field);
  if (found == fields.end() || found->is_null()) {
    return {};
  }
  LabelTable table(field);
  if (found->is_object()) {
    for (const auto& [key, value] : found->items()) {
      table.Add(by_index ? TextOf(value) : key, by_index ? key : TextOf(value));
    }
  } else {
    table.Fail(
        absl::StrCat("should be an object, but is ", found->type_name()));
  }
  std::vector<std::string> labels = table.labels();
  if (mistake->empty()) {
    *mistake = table.mistake();
  }
  return ArePlaceholders(labels) ? std::vector<std::string>() : labels;
}

// Sets the labels, of which id2label and label2id may say the same twice.
void ReadBothLabels(const json& object, HuggingFaceFields* fields) {
  std::string& mistake = fields->labels_mistake;
  const std::vector<std::string> labels =
      ReadLabels(object, "id2label", /*by_index=*/true, &mistake);
  const std::vector<std::string> inverse =
      ReadLabels(object, "label2id", /*by_index=*/false, &mistake);
  if (mistake.empty() && !labels.empty() && !inverse.empty() &&
      labels != inverse) {
    size_t i = 0;
    while (i < std::min(labels.size(), inverse.size()) &&
           labels[i] == inverse[i]) {
      ++i;
    }
    const auto name = [i](const std::vector<std::string>& names) {
      return i < names.size() ? QuotedName(names[i]) : "missing";
    };
    mistake = absl::StrCat(
        "id2label and label2id contradict each other: "
        "output ",
        i, " is ", name(labels), " and ", name(inverse));
  }
  if (mistake.empty()) {
    fields->labels = labels.empty() ? inverse : labels;
  }
}

// A number or null.
void ReadNumber(JsonObjectReader* reader, const std::string& field,
                std::optional<double>* value) {
  if (reader->Given(field) != nullptr) {
    double number = 0;
    reader->Optional(field, &number);
    *value = number;
  }
}

}  // namespace

std::string ClassPrefix(const std::string& model_type) {
  for (const auto& [type, prefix] : kModelTypes) {
    if (type == model_type) {
      return prefix;
    }
  }
  return "";
}

std::string PlaceholderLabel(size_t index) {
  return absl::StrCat("LABEL_", index);
}

bool HuggingFaceFields::classifies_tokens() const {
  return absl::EndsWith(architecture, "ForTokenClassification");
}

bool HuggingFaceFields::chooses() const {
  return absl::EndsWith(architecture, "ForMultipleChoice");
}

absl::StatusOr<HuggingFaceFields> HuggingFaceFieldsFromJson(
    const json& object, const std::string& source) {
  HuggingFaceFields fields;
  JsonObjectReader reader(object, source);
  if (reader.Given("architectures") != nullptr) {
    std::vector<std::string> architectures;
    reader.OneOrMore("architectures", &architectures);
    fields.architecture = architectures.empty() ? "" : architectures.front();
  }
  for (const auto& [type, prefix] : kModelTypes) {
    if (absl::StartsWith(fields.architecture, prefix)) {
      fields.model_type = type;
    }
  }
  reader.Optional("model_type", &fields.model_type);
  if (ClassPrefix(fields.model_type).empty()) {
    reader.Fail("model_type",
                absl::StrCat("should be \"bert\", \"roberta\", \"xlm-roberta\" "
                             "or \"camembert\", but is ",
                             QuotedName(fields.model_type)));
  }
  reader.Optional("pad_token_id", &fields.pad_token_id);
  constexpr int64_t kMostPadding = 1'000'000'000;
  const int64_t padding = fields.pad_token_id.value_or(0);
  if (fields.is_roberta() && (padding < 0 || padding > kMostPadding)) {
    reader.Fail("pad_token_id", absl::StrCat("should be in [0, ", kMostPadding,
                                             "], but is ", padding));
  }
  ReadNumber(&reader, "classifier_dropout", &fields.classifier_dropout);
  std::optional<std::string> problem;
  reader.Optional("problem_type", &problem);
  fields.problem_type = problem.value_or("");
  ETC_RETURN_IF_ERROR(reader.status());
  ReadBothLabels(object, &fields);
  return fields;
}

json HuggingFaceFieldsToJson(const HuggingFaceFields& fields,
                             int64_t num_outputs) {
  json result = {{"model_type", fields.model_type}};
  if (!fields.architecture.empty()) {
    result["architectures"] = {fields.architecture};
  }
  if (fields.pad_token_id.has_value()) {
    result["pad_token_id"] = *fields.pad_token_id;
  }
  if (fields.classifier_dropout.has_value()) {
    result["classifier_dropout"] = *fields.classifier_dropout;
  }
  if (!fields.problem_type.empty()) {
    result["problem_type"] = fields.problem_type;
  }
  for (int64_t i = 0; i < num_outputs; ++i) {
    const auto index = static_cast<size_t>(i);
    const std::string name = index < fields.labels.size()
                                 ? fields.labels[index]
                                 : PlaceholderLabel(index);
    result["id2label"][absl::StrCat(i)] = name;
    result["label2id"][name] = i;
  }
  return result;
}

std::map<std::string, std::string> MetadataOf(const HuggingFaceFields& fields) {
  if (fields == HuggingFaceFields()) {
    return {};
  }
  json object = HuggingFaceFieldsToJson(
      fields, static_cast<int64_t>(fields.labels.size()));
  if (fields.mean != 0 || fields.deviation != 1) {
    object["mean"] = fields.mean;
    object["deviation"] = fields.deviation;
  }
  return {{kKey, JsonText(object)}};
}

absl::StatusOr<HuggingFaceFields> HuggingFaceFieldsFromMetadata(
    const std::map<std::string, std::string>& metadata,
    const std::string& source) {
  const auto found = metadata.find(kKey);
  if (found == metadata.end()) {
    return HuggingFaceFields();
  }
  const std::string where = absl::StrCat(source, ": metadata ", kKey);
  ETC_ASSIGN_OR_RETURN(const json object, ParseJson(found->second, where));
  ETC_ASSIGN_OR_RETURN(HuggingFaceFields fields,
                       HuggingFaceFieldsFromJson(object, where));
  JsonObjectReader reader(object, where);
  reader.Optional("mean", &fields.mean);
  reader.Optional("deviation", &fields.deviation);
  if (!std::isfinite(fields.mean) || !std::isfinite(fields.deviation) ||
      fields.deviation <= 0) {
    reader.Fail("deviation",
                "and mean should be finite, and deviation above 0");
  }
  ETC_RETURN_IF_ERROR(reader.status());
  return fields;
}

}  // namespace etc
