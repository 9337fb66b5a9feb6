#include "tasks/report/metrics_csv.h"

#include <cstdint>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/directory.h"
#include "base/json_text.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

std::string CsvField(const std::string& text) {
  const bool needs_quotes = text.find_first_of(",\"\r\n") != std::string::npos;
  return needs_quotes
             ? absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}),
                            "\"")
             : text;
}

// The column of a score of evaluations.
std::string EvaluationColumn(const std::string& metric) {
  return absl::StrCat("evaluation.", metric);
}

// The values of a run by update and column.
using Rows = std::map<int64_t, std::map<std::string, double>>;

Rows RowsOf(const MetricsFile& log) {
  Rows rows;
  for (const auto& [field, curve] : log.curves) {
    for (const auto& [step, value] : curve) {
      rows[step][field] = value;
    }
  }
  for (const LoggedEvaluation& evaluation : log.evaluations) {
    for (const auto& [metric, value] : evaluation.metrics) {
      rows[evaluation.step][EvaluationColumn(metric)] = value;
    }
  }
  return rows;
}

}  // namespace

std::string MetricsAsCsv(const std::vector<RunGroup>& groups) {
  // Fields of updates before scores.
  std::set<std::string> fields;
  std::set<std::string> scores;
  for (const RunGroup& group : groups) {
    for (const LoggedRun& run : group.runs) {
      for (const auto& [field, curve] : run.log.curves) {
        fields.insert(field);
      }
      for (const LoggedEvaluation& evaluation : run.log.evaluations) {
        for (const auto& [metric, value] : evaluation.metrics) {
          scores.insert(EvaluationColumn(metric));
        }
      }
    }
  }
  std::vector<std::string> columns(fields.begin(), fields.end());
  columns.insert(columns.end(), scores.begin(), scores.end());

  std::string csv = "run,seed,step";
  for (const std::string& column : columns) {
    absl::StrAppend(&csv, ",", CsvField(column));
  }
  csv += "\n";
  for (const RunGroup& group : groups) {
    for (const LoggedRun& run : group.runs) {
      // A group may have runs of several directories.
      const std::string directory = CsvField(FolderOf(run.directory));
      for (const auto& [step, values] : RowsOf(run.log)) {
        absl::StrAppend(&csv, directory, ",", run.seed, ",", step);
        for (const std::string& column : columns) {
          const auto value = values.find(column);
          absl::StrAppend(&csv, ",",
                          value == values.end()
                              ? std::string()
                              : JsonText(nlohmann::json(value->second)));
        }
        csv += "\n";
      }
    }
  }
  return csv;
}

}  // namespace etc
