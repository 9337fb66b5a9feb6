#include "tasks/nq/raw.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/nq/task.h"
#include "tasks/task/official_json.h"

namespace etc {
namespace {

// Returns true if a token of the simplified format is a tag (doc/nq.md 1.3).
bool LooksLikeHtml(absl::string_view token) {
  return token.size() > 2 && token.front() == '<' && token.back() == '>';
}

// A document without tokens has no text either.
void SplitDocument(absl::string_view text, NqRecord* record) {
  if (text.empty()) {
    return;
  }
  for (const absl::string_view token : absl::StrSplit(text, ' ')) {
    record->tokens.push_back(
        {.text = std::string(token), .is_html = LooksLikeHtml(token)});
  }
}

void ReadToken(JsonObjectReader& reader, NqToken* token) {
  reader.Required("token", &token->text);
  reader.Required("html_token", &token->is_html);
}

// Checks [start, end) by doc/nq.md 7.1 and makes an unknown one -1.
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

// {"start_token": 3, "end_token": 12, "start_byte": 25, "end_byte": 60}. The
// bytes may be absent, as in the simplified format.
//   kInvalidArgument  not that; only one end of a pair is negative; a range
//                     that is empty or backwards
absl::StatusOr<NqSpan> SpanFromJson(const nlohmann::json& json,
                                    const std::string& where) {
  const auto read = [](JsonObjectReader& reader, NqSpan* span) {
    reader.Required("start_token", &span->start_token);
    reader.Required("end_token", &span->end_token);
    reader.Optional("start_byte", &span->start_byte);
    reader.Optional("end_byte", &span->end_byte);
    CheckRange(reader, "token", &span->start_token, &span->end_token);
    CheckRange(reader, "byte", &span->start_byte, &span->end_byte);
  };
  return ReadObject<NqSpan>(json, where, read);
}

absl::Status CheckWithin(const NqSpan& span, const NqRecord& record,
                         const std::string& where) {
  const auto num_tokens = static_cast<int64_t>(record.tokens.size());
  if (span.end_token <= num_tokens) {
    return absl::OkStatus();
  }
  return InvalidArgument(where, ".end_token should be at most ", num_tokens,
                         ", the number of tokens of the document, but is ",
                         span.end_token);
}

absl::StatusOr<NqCandidate> ReadCandidate(const nlohmann::json& json,
                                          const NqRecord& record,
                                          const std::string& where) {
  const auto read = [](JsonObjectReader& reader, NqCandidate* candidate) {
    reader.Required("top_level", &candidate->top_level);
  };
  ETC_ASSIGN_OR_RETURN(NqCandidate candidate,
                       ReadObject<NqCandidate>(json, where, read));
  ETC_ASSIGN_OR_RETURN(candidate.span, SpanFromJson(json, where));
  if (candidate.span.start_token < 0) {
    return InvalidArgument(where, ".start_token should not be negative");
  }
  ETC_RETURN_IF_ERROR(CheckWithin(candidate.span, record, where));
  return candidate;
}

absl::StatusOr<NqAnnotation> ReadAnnotation(const nlohmann::json& json,
                                            const NqRecord& record,
                                            const std::string& where) {
  ETC_ASSIGN_OR_RETURN(NqAnnotation annotation,
                       NqAnnotationFromJson(json, /*required=*/true, where));
  ETC_RETURN_IF_ERROR(CheckWithin(annotation.long_answer, record,
                                  absl::StrCat(where, ".long_answer")));
  for (size_t i = 0; i < annotation.short_answers.size(); ++i) {
    ETC_RETURN_IF_ERROR(
        CheckWithin(annotation.short_answers[i], record,
                    absl::StrCat(where, ".short_answers[", i, "]")));
  }
  return annotation;
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

// The tokens of a page, empty where they are tags; none if it has not got them.
// They live as long as `record`.
std::vector<absl::string_view> PageWords(const nlohmann::json& record) {
  std::vector<absl::string_view> words;
  const auto text = record.find("document_text");
  const auto tokens = record.find("document_tokens");
  if (text != record.end() && text->is_string()) {
    for (const absl::string_view token :
         absl::StrSplit(text->get_ref<const std::string&>(), ' ')) {
      words.push_back(LooksLikeHtml(token) ? "" : token);
    }
  } else if (tokens != record.end()) {
    for (const nlohmann::json& token : *tokens) {
      const bool is_word = token.is_object() && token.contains("token") &&
                           token["token"].is_string() &&
                           token.contains("html_token") &&
                           token["html_token"] == false;
      words.push_back(is_word ? token["token"].get_ref<const std::string&>()
                              : absl::string_view());
    }
  }
  return words;
}

// Nq::ShowAnswers for all spans in `answers`.
void ShowSpans(const std::vector<absl::string_view>& words,
               nlohmann::json* answers) {
  constexpr size_t kMostWords = 30;
  if (!answers->is_object() || !answers->contains("start_token")) {
    if (answers->is_structured()) {
      for (nlohmann::json& answer : *answers) {
        ShowSpans(words, &answer);
      }
    }
    return;
  }
  const absl::StatusOr<NqSpan> span = SpanFromJson(*answers, "span");
  if (!span.ok() || span->end_token > std::ssize(words)) {
    return;
  }
  if (span->start_token < 0) {
    *answers = nullptr;
    return;
  }
  std::vector<absl::string_view> within(words.begin() + span->start_token,
                                        words.begin() + span->end_token);
  std::erase(within, "");
  const bool is_cut = within.size() > kMostWords;
  within.resize(std::min(within.size(), kMostWords));
  *answers = absl::StrCat(absl::StrJoin(within, " "), is_cut ? " ..." : "");
}

}  // namespace

void Nq::ShowAnswers(const nlohmann::json& record,
                     nlohmann::json* answers) const {
  ShowSpans(PageWords(record), answers);
}

void Nq::ReadRecord(JsonObjectReader& reader, Record* record) const {
  ReadNqExampleId(reader, &record->example_id);
  record->id = absl::StrCat(record->example_id);
  reader.Required("question_text", &record->question);
  std::string text;
  const nlohmann::json* tokens = nullptr;
  if (reader.Has("document_text")) {
    reader.Required("document_text", &text);
  } else {
    tokens = reader.Raw("document_tokens", /*required=*/true);
  }
  const auto* candidates =
      reader.Raw("long_answer_candidates", /*required=*/true);
  const auto* annotations = reader.Raw("annotations", /*required=*/false);
  SplitDocument(text, record);
  const auto take = [&reader](const nlohmann::json* list, const char* field,
                              const auto& read, auto* values) {
    if (list != nullptr && reader.ok()) {
      using T = typename std::decay_t<decltype(*values)>::value_type;
      reader.Assign(ReadList<T>(*list, reader.Where(field), "objects", read),
                    values);
    }
  };
  take(
      tokens, "document_tokens",
      [](const auto& element, const auto& place) {
        return ReadObject<NqToken>(element, place, ReadToken);
      },
      &record->tokens);
  take(
      candidates, "long_answer_candidates",
      [record](const auto& element, const auto& place) {
        return ReadCandidate(element, *record, place);
      },
      &record->candidates);
  take(
      annotations, "annotations",
      [record](const auto& element, const auto& place) {
        return ReadAnnotation(element, *record, place);
      },
      &record->annotations);
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
  const auto read = [&](JsonObjectReader& reader, NqAnnotation* annotation) {
    const nlohmann::json* long_answer = reader.Raw("long_answer", required);
    const nlohmann::json* short_answers = reader.Raw("short_answers", required);
    ReadYesNo(reader, required, &annotation->yes_no);
    if (short_answers != nullptr && !short_answers->is_array()) {
      reader.Fail("short_answers", "should be a list of spans");
    }
    if (!reader.ok()) {
      return;
    }
    if (long_answer != nullptr) {
      reader.Assign(SpanFromJson(*long_answer, reader.Where("long_answer")),
                    &annotation->long_answer);
    }
    if (short_answers != nullptr) {
      reader.Assign(
          ReadList<NqSpan>(*short_answers, reader.Where("short_answers"),
                           "spans", SpanFromJson),
          &annotation->short_answers);
      std::erase_if(annotation->short_answers,
                    [](const NqSpan& span) { return span.is_null(); });
    }
  };
  return ReadObject<NqAnnotation>(json, where, read);
}

}  // namespace etc
