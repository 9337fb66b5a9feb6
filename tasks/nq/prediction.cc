#include "tasks/nq/prediction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/non_finite_json.h"
#include "base/status_macros.h"
#include "tasks/data/id_places.h"
#include "tasks/nq/official_spans.h"
#include "tasks/task/official_json.h"

namespace etc {
namespace {

NqSpan ToSpan(const NqScoredSpan& span) {
  return {.start_token = span.first, .end_token = span.last + 1};
}

// Lets the answer type of a window change the short answer.
void ApplyAnswerType(const NqWindow& window, bool official_compatibility,
                     NqPrediction* prediction) {
  const LogitRow logits = window.logits.answer_type;
  const auto best = std::max_element(logits.begin(), logits.end());
  const auto type = static_cast<NqAnswerType>(best - logits.begin());
  if (type == NqAnswerType::kLong && !official_compatibility) {
    prediction->short_answers.clear();
  }
  if (type != NqAnswerType::kYes && type != NqAnswerType::kNo) {
    return;
  }
  prediction->short_answers.clear();
  prediction->yes_no =
      type == NqAnswerType::kYes ? NqYesNo::kYes : NqYesNo::kNo;
  const double score =
      2 * (static_cast<double>(*best) - static_cast<double>(logits[0]));
  if (std::isfinite(score) && !official_compatibility) {
    prediction->short_answers_score = score;
  }
}

// Quotes a number that is not finite, so that its field is known.
std::string Quoted(absl::string_view number) {
  return absl::StrCat("\"", number, "\"");
}

// Reads a score of the document `id`.
void ReadScore(const std::string& field, int64_t id, JsonObjectReader* reader,
               double* score) {
  const nlohmann::json* json = reader->Raw(field, /*required=*/true);
  if (json != nullptr && json->is_string() &&
      IsNonFinite(json->get_ref<const std::string&>())) {
    reader->Fail(field, absl::StrCat("should be a finite number, but is ",
                                     json->get_ref<const std::string&>(),
                                     " (document ", id, ")"));
  } else if (json != nullptr) {
    reader->Required(field, score);
  }
}

absl::StatusOr<NqPrediction> PredictionFromJson(const nlohmann::json& json,
                                                const std::string& where) {
  const auto read = [](JsonObjectReader& reader, NqPrediction* prediction) {
    ReadNqExampleId(reader, &prediction->example_id);
    ReadScore("long_answer_score", prediction->example_id, &reader,
              &prediction->long_answer_score);
    ReadScore("short_answers_score", prediction->example_id, &reader,
              &prediction->short_answers_score);
  };
  ETC_ASSIGN_OR_RETURN(NqPrediction prediction,
                       ReadObject<NqPrediction>(json, where, read));
  ETC_ASSIGN_OR_RETURN(NqAnnotation answers,
                       NqAnnotationFromJson(json, /*required=*/false, where));
  if (answers.yes_no != NqYesNo::kNone && !answers.short_answers.empty()) {
    return InvalidArgument(
        where,
        ".yes_no_answer should be \"NONE\" where there are short "
        "answers");
  }
  prediction.long_answer = answers.long_answer;
  prediction.short_answers = std::move(answers.short_answers);
  prediction.yes_no = answers.yes_no;
  return prediction;
}

nlohmann::ordered_json SpanToJson(const NqSpan& span) {
  return {{"start_token", span.start_token},
          {"end_token", span.end_token},
          {"start_byte", span.start_byte},
          {"end_byte", span.end_byte}};
}

std::string YesNoToText(NqYesNo yes_no) {
  return yes_no == NqYesNo::kYes  ? "YES"
         : yes_no == NqYesNo::kNo ? "NO"
                                  : "NONE";
}

nlohmann::ordered_json PredictionToJson(const NqPrediction& prediction) {
  auto short_answers = nlohmann::ordered_json::array();
  for (const NqSpan& span : prediction.short_answers) {
    short_answers.push_back(SpanToJson(span));
  }
  return {{"example_id", prediction.example_id},
          {"long_answer", SpanToJson(prediction.long_answer)},
          {"long_answer_score", prediction.long_answer_score},
          {"short_answers", std::move(short_answers)},
          {"short_answers_score", prediction.short_answers_score},
          {"yes_no_answer", YesNoToText(prediction.yes_no)}};
}

}  // namespace

NqPrediction DecodeNqDocument(absl::Span<const NqWindow> windows,
                              const NqOptions& options) {
  const bool official = options.official_compatibility;
  const NqSelection selection =
      official ? SelectNqSpansOfficially(windows, options.span_selection,
                                         options.max_short_answer_length)
               : SelectNqSpans(windows, options.span_selection,
                               options.max_short_answer_length);
  NqPrediction prediction = {.example_id =
                                 windows.front().example->document->example_id};
  if (selection.long_answer.has_value()) {
    prediction.long_answer = ToSpan(*selection.long_answer);
    prediction.long_answer_score = selection.long_answer->score;
  }
  if (selection.short_answer.has_value()) {
    prediction.short_answers = {ToSpan(*selection.short_answer)};
    prediction.short_answers_score = selection.short_answer->score;
  }
  if (!options.consider_answer_type) {
    return prediction;
  }
  if (official) {
    ApplyAnswerType(windows.back(), official, &prediction);
  } else if (selection.long_answer.has_value()) {
    ApplyAnswerType(windows[selection.long_answer->window], official,
                    &prediction);
  }
  return prediction;
}

absl::StatusOr<std::vector<NqPrediction>> NqPredictionsFromJson(
    absl::string_view json, const std::string& source) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json object,
                       ParseJsonWithNonFinite(json, source, Quoted));
  using Predictions = std::vector<NqPrediction>;
  const auto read = [](JsonObjectReader& reader, Predictions* predictions) {
    if (const auto* list = reader.Raw("predictions", /*required=*/true)) {
      reader.Assign(ReadList<NqPrediction>(*list, reader.Where("predictions"),
                                           "objects", PredictionFromJson),
                    predictions);
    }
  };
  ETC_ASSIGN_OR_RETURN(Predictions predictions,
                       ReadObject<Predictions>(object, source, read));
  IdPlaces ids;
  for (size_t i = 0; i < predictions.size(); ++i) {
    ETC_RETURN_IF_ERROR(
        ids.Add(absl::StrCat(predictions[i].example_id),
                absl::StrCat(source, ": predictions[", i, "]")));
  }
  return predictions;
}

std::string NqPredictionToJson(const NqPrediction& prediction) {
  return JsonText(PredictionToJson(prediction));
}

std::string NqPredictionsToJson(const std::vector<NqPrediction>& predictions) {
  std::vector<std::string> lines;
  lines.reserve(predictions.size());
  for (const NqPrediction& prediction : predictions) {
    lines.push_back(NqPredictionToJson(prediction));
  }
  return absl::StrCat("{\"predictions\":[", lines.empty() ? "" : "\n",
                      absl::StrJoin(lines, ",\n"), "\n]}\n");
}

}  // namespace etc
