#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/counted.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/data/id_places.h"
#include "tasks/data/text_file.h"
#include "tasks/glue/task.h"

namespace etc {
namespace {

constexpr char kHeader[] = "index\tprediction";

// The line of a prediction, below the header.
std::string LineOf(const ScoredFiles& files, size_t prediction) {
  return absl::StrCat(files.predictions, ":", prediction + 2);
}

// A prediction as the server's files have it.
std::string TextOf(const GluePrediction& prediction, const GlueTask& task) {
  return task.is_regression()
             ? absl::StrFormat("%.3f", std::clamp(prediction.score,
                                                  kMinGlueScore, kMaxGlueScore))
             : prediction.label;
}

bool IsPredictionOf(const GlueTask& task, const GluePrediction& prediction) {
  return task.is_regression() ? std::isfinite(prediction.score)
                              : IsGlueLabel(task, prediction.label);
}

}  // namespace

Glue::PredictionsOr Glue::ReadPredictions(const std::string& path) const {
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<TextFile> file,
                       TextFile::Open(path));
  // Ids may come again: those of several dev files do, which a run evaluates at
  // once. CheckFiles refuses them in the files of `score`.
  ById<GluePrediction> predictions;
  absl::string_view line;
  while (true) {
    ETC_ASSIGN_OR_RETURN(const bool is_line, file->NextLine(&line));
    if (!is_line) {
      break;
    }
    const std::string where = absl::StrCat(path, ":", file->line_number());
    if (file->line_number() == 1) {
      if (line != kHeader) {
        return InvalidArgument(where,
                               " should be \"index<tab>prediction\", but is ",
                               QuotedName(line));
      }
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> cells =
        absl::StrSplit(line, absl::MaxSplits('\t', 1));
    if (cells.first.empty() || cells.second.empty() ||
        absl::StrContains(cells.second, '\t')) {
      return InvalidArgument(
          where,
          " should be the number of a row, a tab and a prediction, but "
          "is ",
          QuotedName(line));
    }
    GluePrediction prediction = {.label = std::string(cells.second)};
    if (!absl::SimpleAtod(prediction.label, &prediction.score)) {
      prediction.score = std::numeric_limits<double>::quiet_NaN();
    }
    predictions.emplace_back(std::string(cells.first), std::move(prediction));
  }
  if (file->line_number() == 0) {
    return InvalidArgument(path,
                           " should begin with \"index<tab>prediction\", but "
                           "is empty");
  }
  return predictions;
}

std::string Glue::PredictionJson(const std::string& id,
                                 const Prediction& prediction) const {
  const std::string text = TextOf(prediction, *options().task);
  const std::string quoted_id = JsonAsciiText(nlohmann::json(id));
  return options().task->is_regression()
             ? absl::StrCat("{\"id\":", quoted_id, ",\"score\":", text, "}")
             : absl::StrCat("{\"id\":", quoted_id,
                            ",\"label\":", JsonAsciiText(nlohmann::json(text)),
                            "}");
}

std::string Glue::FileContents(const Answers& answers) const {
  std::string contents = absl::StrCat(kHeader, "\n");
  for (const auto& [id, prediction] : answers.predictions) {
    absl::StrAppend(&contents, id, "\t", TextOf(prediction, *options().task),
                    "\n");
  }
  return contents;
}

absl::Status Glue::CheckFiles(const Answers& answers,
                              const ScoredFiles& files) const {
  IdPlaces ids;
  for (size_t i = 0; i < answers.predictions.size(); ++i) {
    ETC_RETURN_IF_ERROR(
        ids.Add(answers.predictions[i].first, LineOf(files, i)));
  }
  if (answers.gold.empty()) {
    return absl::OkStatus();
  }
  const GlueTask& task = *answers.gold.front().second.task;
  for (size_t i = 0; i < answers.predictions.size(); ++i) {
    const GluePrediction& prediction = answers.predictions[i].second;
    if (!IsPredictionOf(task, prediction)) {
      return InvalidArgument(
          LineOf(files, i), " should be ",
          task.is_regression() ? "a number" : task.ExpectedLabels(), ", for ",
          task.title, ", but is ", QuotedName(prediction.label));
    }
  }
  return absl::OkStatus();
}

}  // namespace etc
