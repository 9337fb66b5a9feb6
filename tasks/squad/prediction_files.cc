#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "tasks/squad/prediction.h"
#include "tasks/squad/task.h"
#include "tasks/task/official_json.h"

namespace etc {
namespace {

// Formats like Python's json.dumps(..., indent=4).
std::string Dump(const nlohmann::ordered_json& json) {
  constexpr int kIndent = 4;
  return JsonAsciiText(json, kIndent) + "\n";
}

nlohmann::ordered_json CandidatesToJson(const SquadPrediction& prediction) {
  auto list = nlohmann::ordered_json::array();
  for (const SquadCandidate& candidate : prediction.candidates) {
    list.push_back({{"text", candidate.text},
                    {"probability", candidate.probability},
                    {"start_logit", candidate.start_logit},
                    {"end_logit", candidate.end_logit}});
  }
  return list;
}

absl::StatusOr<SquadCandidate> ReadNBestAnswer(const nlohmann::json& json,
                                               const std::string& where) {
  return ReadObject<SquadCandidate>(
      json, where, [](JsonObjectReader& reader, SquadCandidate* candidate) {
        reader.Required("text", &candidate->text);
        reader.Optional("probability", &candidate->probability);
        reader.Required("start_logit", &candidate->start_logit);
        reader.Required("end_logit", &candidate->end_logit);
      });
}

absl::StatusOr<std::vector<SquadCandidate>> ReadNBestAnswers(
    const nlohmann::json& json, const std::string& where) {
  return ReadList<SquadCandidate>(json, where, "n-best answers",
                                  ReadNBestAnswer);
}

// Reads a value of either file, or a line of PredictionJson.
absl::StatusOr<SquadPrediction> ReadPrediction(const nlohmann::json& json,
                                               const std::string& where,
                                               const SquadOptions& options) {
  SquadPrediction prediction;
  if (json.is_string()) {
    prediction.text = json.get<std::string>();
  } else if (json.is_array() && !json.empty()) {
    ETC_ASSIGN_OR_RETURN(prediction.candidates, ReadNBestAnswers(json, where));
  } else if (json.is_object() && json.contains("answer")) {
    JsonObjectReader reader(json, where);
    reader.Required("answer", &prediction.text);
    if (const auto* nbest = reader.Raw("nbest", /*required=*/false)) {
      reader.Assign(ReadNBestAnswers(*nbest, reader.Where("nbest")),
                    &prediction.candidates);
    }
    ETC_RETURN_IF_ERROR(reader.status());
  } else {
    return InvalidArgument(where,
                           " should be the text of an answer, or a list of "
                           "n-best answers");
  }
  if (!prediction.candidates.empty() &&
      (json.is_array() || options.null_score_diff_threshold.has_value())) {
    ChooseSquadText(options, &prediction);
  }
  return prediction;
}

}  // namespace

std::string SquadCandidatesToJson(const ById<SquadPrediction>& predictions) {
  ById<nlohmann::ordered_json> fields;
  for (const auto& [id, prediction] : predictions) {
    fields.emplace_back(id, CandidatesToJson(prediction));
  }
  return Dump(JsonObjectOf(std::move(fields)));
}

std::string SquadNullOddsToJson(const ById<SquadPrediction>& predictions) {
  ById<nlohmann::ordered_json> fields;
  for (const auto& [id, prediction] : predictions) {
    const SquadVerdict verdict = JudgeSquad(prediction);
    if (verdict.null_odds.has_value()) {
      fields.emplace_back(id, *verdict.null_odds);
    }
  }
  return Dump(JsonObjectOf(std::move(fields)));
}

std::string Squad::PredictionJson(const std::string& id,
                                  const Prediction& prediction) const {
  nlohmann::ordered_json json = {{"id", id},
                                 {"answer", prediction.text},
                                 {"nbest", CandidatesToJson(prediction)}};
  const SquadVerdict verdict = JudgeSquad(prediction);
  if (options().version == SquadVersion::k2 && verdict.null_odds.has_value()) {
    json["null_odds"] = *verdict.null_odds;
  }
  return JsonAsciiText(json);
}

std::string Squad::FileContents(const Answers& answers) const {
  ById<nlohmann::ordered_json> fields;
  for (const auto& [id, prediction] : answers.predictions) {
    fields.emplace_back(id, prediction.text);
  }
  return Dump(JsonObjectOf(std::move(fields)));
}

Squad::PredictionsOr Squad::ReadPredictions(const std::string& path) const {
  ETC_ASSIGN_OR_RETURN(
      const nlohmann::json json,
      ReadPredictionJson(path,
                         [](const std::string& id, const nlohmann::json& line,
                            nlohmann::json* object) { (*object)[id] = line; }));
  if (!json.is_object()) {
    return InvalidArgument(path,
                           " should be a JSON object with an answer for each "
                           "id of a question");
  }
  ById<SquadPrediction> predictions;
  predictions.reserve(json.size());
  for (const auto& [id, value] : json.items()) {
    ETC_ASSIGN_OR_RETURN(
        SquadPrediction prediction,
        ReadPrediction(value, absl::StrCat(path, ": ", id), options()));
    predictions.emplace_back(id, std::move(prediction));
  }
  return predictions;
}

std::vector<PredictionFile> Squad::MoreFiles(const Answers& answers) const {
  std::vector<PredictionFile> files = {
      {.prefix = "nbest_",
       .contents = SquadCandidatesToJson(answers.predictions)}};
  if (options().version == SquadVersion::k2) {
    files.push_back({.prefix = "null_odds_",
                     .contents = SquadNullOddsToJson(answers.predictions)});
  }
  return files;
}

}  // namespace etc
