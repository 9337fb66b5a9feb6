#include "tasks/nq/raw.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "tasks/nq/answers_json.h"

namespace etc {
namespace {

constexpr auto kIgnoreOthers = JsonObjectReader::UnknownFields::kIgnore;

// Whether a token of the simplified format is a tag (nq spec 1.3).
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

// The elements of a list, each read by `read(element, where)`.
template <typename T, typename Read>
absl::Status ReadList(const nlohmann::json& list, const std::string& where,
                      const Read& read, std::vector<T>* elements) {
  if (!list.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " should be a list of objects"));
  }
  elements->reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(elements->emplace_back(),
                         read(list[i], absl::StrCat(where, "[", i, "]")));
  }
  return absl::OkStatus();
}

absl::StatusOr<NqToken> ReadToken(const nlohmann::json& json,
                                  const std::string& where) {
  NqToken token;
  JsonObjectReader reader(json, where);
  reader.Required("token", &token.text);
  reader.Required("html_token", &token.is_html);
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  return token;
}

absl::Status CheckWithin(const NqSpan& span, const NqRecord& record,
                         const std::string& where) {
  const auto num_tokens = static_cast<int64_t>(record.tokens.size());
  if (span.end_token <= num_tokens) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      where, ".end_token should be at most ", num_tokens,
      ", the number of tokens of the document, but is ", span.end_token));
}

absl::StatusOr<NqCandidate> ReadCandidate(const nlohmann::json& json,
                                          const NqRecord& record,
                                          const std::string& where) {
  NqCandidate candidate;
  JsonObjectReader reader(json, where);
  reader.Required("top_level", &candidate.top_level);
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  ETC_ASSIGN_OR_RETURN(candidate.span, NqSpanFromJson(json, where));
  if (candidate.span.start_token < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ".start_token should not be negative"));
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

}  // namespace

absl::StatusOr<NqRecord> ParseNqRecord(absl::string_view json,
                                       const std::string& where) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json object, ParseJson(json, where));
  JsonObjectReader reader(object, where);
  NqRecord record;
  ReadNqExampleId(reader, &record.example_id);
  reader.Required("question_text", &record.question);
  const bool is_simplified = reader.Has("document_text");
  std::string text;
  const nlohmann::json* tokens = nullptr;
  if (is_simplified) {
    reader.Required("document_text", &text);
  } else {
    tokens = reader.Raw("document_tokens", /*required=*/true);
  }
  const auto* candidates =
      reader.Raw("long_answer_candidates", /*required=*/true);
  const auto* annotations = reader.Raw("annotations", /*required=*/false);
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));

  if (is_simplified) {
    SplitDocument(text, &record);
  } else {
    ETC_RETURN_IF_ERROR(ReadList(*tokens, reader.Where("document_tokens"),
                                 ReadToken, &record.tokens));
  }
  const auto read_candidate = [&](const auto& element, const auto& place) {
    return ReadCandidate(element, record, place);
  };
  ETC_RETURN_IF_ERROR(ReadList(*candidates,
                               reader.Where("long_answer_candidates"),
                               read_candidate, &record.candidates));
  if (annotations != nullptr) {
    const auto read_annotation = [&](const auto& element, const auto& place) {
      return ReadAnnotation(element, record, place);
    };
    ETC_RETURN_IF_ERROR(ReadList(*annotations, reader.Where("annotations"),
                                 read_annotation, &record.annotations));
  }
  return record;
}

}  // namespace etc
