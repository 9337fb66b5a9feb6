#include "tasks/nq/answers_json.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace etc {
namespace {

constexpr auto kIgnoreOthers = JsonObjectReader::UnknownFields::kIgnore;

// Checks [start, end) by nq spec 7.1 and makes an unknown one -1.
void CheckRange(JsonObjectReader& reader, const std::string& unit,
                int64_t* start, int64_t* end) {
  if (*start < 0 && *end < 0) {
    *start = *end = -1;
    return;
  }
  const std::string field = absl::StrCat("end_", unit);
  if (*start < 0 || *end < 0) {
    reader.Fail(field,
                absl::StrCat("should be negative exactly if start_", unit,
                             " is, but they are ", *end, " and ", *start));
  } else if (*end <= *start) {
    reader.Fail(field, absl::StrCat("should be more than start_", unit, ", ",
                                    *start, ", but is ", *end));
  }
}

void ReadYesNo(JsonObjectReader& reader, bool required, NqYesNo* yes_no) {
  std::string text = "NONE";
  if (required) {
    reader.Required("yes_no_answer", &text);
  } else {
    reader.Optional("yes_no_answer", &text);
  }
  if (absl::EqualsIgnoreCase(text, "YES")) {
    *yes_no = NqYesNo::kYes;
  } else if (absl::EqualsIgnoreCase(text, "NO")) {
    *yes_no = NqYesNo::kNo;
  } else if (!absl::EqualsIgnoreCase(text, "NONE")) {
    reader.Fail("yes_no_answer",
                absl::StrCat("should be \"YES\", \"NO\" or \"NONE\", but is ",
                             QuotedName(text)));
  }
}

}  // namespace

absl::StatusOr<NqSpan> NqSpanFromJson(const nlohmann::json& json,
                                      const std::string& where) {
  NqSpan span;
  JsonObjectReader reader(json, where);
  reader.Required("start_token", &span.start_token);
  reader.Required("end_token", &span.end_token);
  reader.Optional("start_byte", &span.start_byte);
  reader.Optional("end_byte", &span.end_byte);
  CheckRange(reader, "token", &span.start_token, &span.end_token);
  CheckRange(reader, "byte", &span.start_byte, &span.end_byte);
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  return span;
}

void ReadNqExampleId(JsonObjectReader& reader, int64_t* example_id) {
  const nlohmann::json* json = reader.Raw("example_id", /*required=*/true);
  if (json == nullptr || !json->is_string()) {
    reader.Optional("example_id", example_id);
    return;
  }
  const std::string& text = json->get_ref<const std::string&>();
  // SimpleAtoi alone takes blanks and a plus sign too.
  const size_t sign = absl::StartsWith(text, "-") ? 1 : 0;
  if (text.size() == sign || !absl::ascii_isdigit(text[sign]) ||
      !absl::ascii_isdigit(text.back()) ||
      !absl::SimpleAtoi(text, example_id)) {
    reader.Fail("example_id", absl::StrCat("should be a whole number of 64 "
                                           "bits, but is ",
                                           QuotedName(text)));
  }
}

absl::StatusOr<NqAnnotation> NqAnnotationFromJson(const nlohmann::json& json,
                                                  bool required,
                                                  const std::string& where) {
  NqAnnotation annotation;
  JsonObjectReader reader(json, where);
  const nlohmann::json* long_answer = reader.Raw("long_answer", required);
  const nlohmann::json* short_answers = reader.Raw("short_answers", required);
  ReadYesNo(reader, required, &annotation.yes_no);
  if (short_answers != nullptr && !short_answers->is_array()) {
    reader.Fail("short_answers", "should be a list of spans");
  }
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  if (long_answer != nullptr) {
    ETC_ASSIGN_OR_RETURN(
        annotation.long_answer,
        NqSpanFromJson(*long_answer, reader.Where("long_answer")));
  }
  const size_t num_spans = short_answers == nullptr ? 0 : short_answers->size();
  for (size_t i = 0; i < num_spans; ++i) {
    ETC_ASSIGN_OR_RETURN(
        const NqSpan span,
        NqSpanFromJson(
            (*short_answers)[i],
            absl::StrCat(reader.Where("short_answers"), "[", i, "]")));
    if (!span.is_null()) {
      annotation.short_answers.push_back(span);
    }
  }
  return annotation;
}

}  // namespace etc
