#include "base/json_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

// Describes a value in a message.
std::string Describe(const json& value) {
  if (value.is_object()) {
    return "an object";
  }
  if (value.is_array()) {
    return "an array";
  }
  constexpr size_t kLongest = 60;
  std::string text = JsonAsciiText(value);
  if (text.size() > kLongest) {
    text.replace(kLongest, std::string::npos, "...");
  }
  return text;
}

// Each sets `*result` and returns an empty string, or returns the error in
// `value` ("should be a number, but is true").
std::string Take(const json& value, bool* result) {
  if (!value.is_boolean()) {
    return absl::StrCat("should be true or false, but is ", Describe(value));
  }
  *result = value.get<bool>();
  return "";
}

std::string Take(const json& value, int64_t* result) {
  if (!value.is_number_integer()) {
    return absl::StrCat("should be an integer, but is ", Describe(value));
  }
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    return absl::StrCat("should be an integer below 2^63, but is ",
                        Describe(value));
  }
  *result = value.get<int64_t>();
  return "";
}

std::string Take(const json& value, double* result) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    return absl::StrCat("should be a number, but is ", Describe(value));
  }
  *result = value.get<double>();
  return "";
}

std::string Take(const json& value, std::string* result) {
  if (!value.is_string()) {
    return absl::StrCat("should be a string, but is ", Describe(value));
  }
  *result = value.get_ref<const std::string&>();
  return "";
}

template <typename T>
std::string Take(const json& value, std::optional<T>* result) {
  if (value.is_null()) {
    result->reset();
    return "";
  }
  T present;
  std::string mistake = Take(value, &present);
  if (mistake.empty()) {
    *result = std::move(present);
  }
  return mistake;
}

// Number of insertions, deletions, replacements and swaps of neighbours that
// turn `a` into `b` (optimal string alignment).
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before_last;
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = last;
    last = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1,
                         last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string Folded(absl::string_view name) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"-", "_"}});
}

}  // namespace

std::string PlaceOfField(absl::string_view where, absl::string_view field) {
  return absl::StrCat(where, absl::StrContains(where, ": ") ? "." : ": ",
                      field);
}

std::string FieldMistakes::Where(absl::string_view field) const {
  return PlaceOfField(where_, field);
}

void FieldMistakes::Fail(absl::string_view field, absl::string_view message) {
  if (status_.ok()) {
    status_ = InvalidArgument(Where(field), " ", message);
  }
}

void FieldMistakes::Check(bool good, absl::string_view field,
                          absl::string_view expected,
                          const absl::AlphaNum& found) {
  if (!good) {
    Fail(field, absl::StrCat("should be ", expected, ", but is ", found));
  }
}

JsonObjectReader::JsonObjectReader(const json& json, std::string where)
    : FieldMistakes(std::move(where)), json_(json) {
  if (!json_.is_object()) {
    Note(InvalidArgument(this->where(), " should be an object, but is ",
                         Describe(json_)));
  }
}

template <typename T>
void JsonObjectReader::TakeField(const std::string& field, T* value) {
  if (const json* found = Find(field)) {
    const std::string mistake = Take(*found, value);
    if (!mistake.empty()) {
      Fail(field, mistake);
    }
  }
}

template <typename T>
void JsonObjectReader::TakeArray(const std::string& field,
                                 std::vector<T>* value) {
  const json* found = Find(field);
  if (found == nullptr) {
    return;
  }
  if (!found->is_array()) {
    Fail(field, absl::StrCat("should be an array, but is ", Describe(*found)));
    return;
  }
  std::vector<T> elements(found->size());
  for (size_t i = 0; i < elements.size(); ++i) {
    const std::string mistake = Take((*found)[i], &elements[i]);
    if (!mistake.empty()) {
      Fail(absl::StrCat(field, "[", i, "]"), mistake);
      return;
    }
  }
  *value = std::move(elements);
}

template <typename T>
void JsonObjectReader::TakeOneOrMore(const std::string& field,
                                     std::vector<T>* value) {
  const json* found = Find(field);
  if (found == nullptr || found->is_array()) {
    TakeArray(field, value);
    return;
  }
  T single;
  const std::string mistake = Take(*found, &single);
  if (!mistake.empty()) {
    // "should be a string, but is 3" -> "should be a string or an array of
    // such, but is 3"
    Fail(field, absl::StrReplaceAll(
                    mistake, {{", but is ", " or an array of such, but is "}}));
    return;
  }
  *value = {std::move(single)};
}

void JsonObjectReader::Optional(const std::string& field, bool* value) {
  TakeField(field, value);
}
void JsonObjectReader::Optional(const std::string& field, int64_t* value) {
  TakeField(field, value);
}
void JsonObjectReader::Optional(const std::string& field, double* value) {
  TakeField(field, value);
}
void JsonObjectReader::Optional(const std::string& field, std::string* value) {
  TakeField(field, value);
}
void JsonObjectReader::Optional(const std::string& field,
                                std::vector<std::string>* value) {
  TakeArray(field, value);
}
void JsonObjectReader::Optional(const std::string& field,
                                std::vector<int64_t>* value) {
  TakeArray(field, value);
}
void JsonObjectReader::Optional(const std::string& field,
                                std::vector<double>* value) {
  TakeArray(field, value);
}
void JsonObjectReader::Optional(const std::string& field,
                                std::optional<int64_t>* value) {
  TakeField(field, value);
}
void JsonObjectReader::Optional(const std::string& field,
                                std::optional<std::string>* value) {
  TakeField(field, value);
}

void JsonObjectReader::OneOrMore(const std::string& field,
                                 std::vector<std::string>* value) {
  TakeOneOrMore(field, value);
}
void JsonObjectReader::OneOrMore(const std::string& field,
                                 std::vector<int64_t>* value) {
  TakeOneOrMore(field, value);
}

void JsonObjectReader::NameOrNumber(const std::string& field,
                                    std::string* value) {
  const json* found = Find(field);
  if (found == nullptr) {
    return;
  }
  if (found->is_string()) {
    *value = found->get<std::string>();
  } else if (found->is_number_integer()) {
    *value = JsonText(*found);
  } else {
    Fail(field, "should be a string or a whole number");
  }
}

void JsonObjectReader::Scalar(const std::string& field, std::string* value) {
  const json* found = Find(field);
  if (found == nullptr) {
    return;
  }
  if (std::optional<std::string> text = ScalarText(*found)) {
    *value = *std::move(text);
  } else {
    Fail(field, absl::StrCat("should be a string or a number",
                             found->is_number() ? kRoundedNumberHint : ""));
  }
}

bool JsonObjectReader::Has(const std::string& field) const {
  return json_.is_object() && json_.contains(field);
}

const json* JsonObjectReader::Raw(const std::string& field, bool required) {
  if (required && !Require(field)) {
    return nullptr;
  }
  return Find(field);
}

const json* JsonObjectReader::Given(const std::string& field) {
  const json* value = Find(field);
  return value == nullptr || value->is_null() ? nullptr : value;
}

absl::Status JsonObjectReader::Finish() {
  // A field that seems missing is often there, but misspelt.
  if (ok() || is_missing_) {
    const std::vector<std::string> unread = UnreadFields();
    if (!unread.empty()) {
      const std::vector<std::string> names(asked_.begin(), asked_.end());
      const std::string nearest = NearestName(unread.front(), names);
      return absl::InvalidArgumentError(absl::StrCat(
          where(), " has no field ", Describe(unread.front()), "; ",
          nearest.empty()
              ? absl::StrCat("its fields are ", absl::StrJoin(names, ", "))
              : absl::StrCat("did you mean \"", nearest, "\"?")));
    }
  }
  return status();
}

std::vector<std::string> JsonObjectReader::UnreadFields() const {
  std::vector<std::string> unread;
  if (json_.is_object()) {
    for (const auto& [field, value] : json_.items()) {
      if (!asked_.contains(field)) {
        unread.push_back(field);
      }
    }
  }
  return unread;
}

bool JsonObjectReader::Require(const std::string& field) {
  asked_.insert(field);
  if (json_.is_object() && !json_.contains(field)) {
    is_missing_ = is_missing_ || ok();
    Fail(field, "is missing");
    return false;
  }
  return json_.is_object();
}

const json* JsonObjectReader::Find(const std::string& field) {
  asked_.insert(field);
  if (!json_.is_object()) {
    return nullptr;
  }
  const auto found = json_.find(field);
  return found == json_.end() ? nullptr : &*found;
}

absl::Status ParseFields(absl::string_view text, const std::string& where,
                         absl::FunctionRef<void(JsonObjectReader&)> read) {
  ETC_ASSIGN_OR_RETURN(const json parsed, ParseJson(text, where));
  JsonObjectReader reader(parsed, where);
  read(reader);
  return reader.status();
}

std::string NearestName(absl::string_view word,
                        const std::vector<std::string>& candidates) {
  const std::string folded = Folded(word);
  std::string nearest;
  size_t least = std::numeric_limits<size_t>::max();
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(folded, Folded(candidate));
    // More than a third of the letters wrong is another word.
    if (distance < least &&
        3 * distance <= std::max(word.size(), candidate.size())) {
      nearest = candidate;
      least = distance;
    }
  }
  return nearest;
}

}  // namespace etc
