#include "tasks/nq/predictions_file.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "etc/formats/json_reader.h"
#include "etc/formats/status_macros.h"
#include "tasks/nq/answers_json.h"

namespace etc {
namespace {

absl::StatusOr<NqPrediction> PredictionFromJson(const nlohmann::json& json,
                                                const std::string& where) {
  NqPrediction prediction;
  JsonObjectReader reader(json, where);
  ReadNqExampleId(reader, &prediction.example_id);
  reader.Required("long_answer_score", &prediction.long_answer_score);
  reader.Required("short_answers_score", &prediction.short_answers_score);
  ETC_RETURN_IF_ERROR(reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
  ETC_ASSIGN_OR_RETURN(NqAnnotation answers,
                       NqAnnotationFromJson(json, /*required=*/false, where));
  if (answers.yes_no != NqYesNo::kNone && !answers.short_answers.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where,
                     ".yes_no_answer should be \"NONE\" where there are short "
                     "answers"));
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

absl::StatusOr<std::vector<NqPrediction>> NqPredictionsFromJson(
    absl::string_view json, const std::string& source) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json object, ParseJson(json, source));
  JsonObjectReader reader(object, source);
  const auto* list = reader.Raw("predictions", /*required=*/true);
  if (list != nullptr && !list->is_array()) {
    reader.Fail("predictions", "should be a list of objects");
  }
  ETC_RETURN_IF_ERROR(reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
  std::vector<NqPrediction> predictions;
  std::set<int64_t> ids;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string where =
        absl::StrCat(reader.Where("predictions"), "[", i, "]");
    ETC_ASSIGN_OR_RETURN(NqPrediction prediction,
                         PredictionFromJson((*list)[i], where));
    if (!ids.insert(prediction.example_id).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ".example_id should be another than those before, but ",
          prediction.example_id, " is there twice"));
    }
    predictions.push_back(std::move(prediction));
  }
  return predictions;
}

std::string NqPredictionsToJson(const std::vector<NqPrediction>& predictions) {
  std::string text = "{\"predictions\":[";
  for (size_t i = 0; i < predictions.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? ",\n" : "\n",
                    PredictionToJson(predictions[i]).dump());
  }
  return absl::StrCat(text, "\n]}\n");
}

}  // namespace etc
