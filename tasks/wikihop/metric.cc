#include "tasks/wikihop/metric.h"

#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/data/record_file.h"
#include "tasks/text/text_folding.h"
#include "tasks/wikihop/raw.h"

namespace etc {
namespace {

// Equal when stripped and in lower case (wikihop spec 9).
bool SameAnswer(absl::string_view a, absl::string_view b) {
  return LowerCase(StripWhiteSpace(a)) == LowerCase(StripWhiteSpace(b));
}

// By question.
using Answers = std::map<std::string, std::string>;

absl::StatusOr<Answers> ReadGold(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const RecordFile file, RecordFile::Open(path));
  Answers answers;
  for (int64_t i = 0; i < file.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(const std::string text, file.Read(i));
    ETC_ASSIGN_OR_RETURN(const WikihopRecord record,
                         ParseWikihopRecord(text, file.Where(i)));
    if (!record.label.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.Where(i), ".answer is missing"));
    }
    const std::string& answer =
        record.candidates[static_cast<size_t>(*record.label)];
    if (!answers.emplace(record.id, answer).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.Where(i), ".id should occur once, but \"",
                       record.id, "\" is that of an earlier record too"));
    }
  }
  return answers;
}

}  // namespace

absl::StatusOr<WikihopScore> ScoreWikihopFiles(
    const std::string& gold_path, const std::string& predictions_path) {
  ETC_ASSIGN_OR_RETURN(const Answers gold, ReadGold(gold_path));
  ETC_ASSIGN_OR_RETURN(const nlohmann::json predictions,
                       ReadJsonFile(predictions_path));
  if (!predictions.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        predictions_path,
        R"( should be an object, {"<question id>": "<answer>", ...})"));
  }
  WikihopScore score;
  score.questions = static_cast<int64_t>(gold.size());
  JsonObjectReader reader(predictions, predictions_path);
  for (const auto& [id, answer] : gold) {
    std::string predicted;
    reader.Optional(id, &predicted);
    if (reader.Has(id)) {
      ++score.answered;
      score.correct += SameAnswer(predicted, answer) ? 1 : 0;
    }
  }
  const std::vector<std::string> unknown = reader.UnreadFields();
  if (!unknown.empty()) {
    reader.Fail(unknown.front(),
                absl::StrCat("is the answer to a question that ", gold_path,
                             " does not have"));
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
  return score;
}

}  // namespace etc
