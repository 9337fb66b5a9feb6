#include "tasks/train/grid_result.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tasks/train/grid.h"
#include "tasks/train/score_table.h"

namespace etc {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Null: there is none.
const ScoreSummary* MainScore(const GridResult& grid,
                              const SettingResult& setting) {
  for (const ScoreSummary& score : setting.result.scores) {
    if (score.name == grid.main_metric) {
      return &score;
    }
  }
  return nullptr;
}

bool HasDeviations(const GridResult& grid) {
  return std::any_of(grid.settings.begin(), grid.settings.end(),
                     [&](const SettingResult& setting) {
                       const ScoreSummary* score = MainScore(grid, setting);
                       return score != nullptr &&
                              score->standard_deviation.has_value();
                     });
}

std::string ScoreText(const SettingResult& setting, const ScoreSummary* score) {
  if (score != nullptr) {
    return FormatScore(score->median);
  }
  if (!setting.diverged.empty()) {
    return "diverged";
  }
  return setting.result.finished ? "no score" : "not finished";
}

}  // namespace

std::optional<size_t> BestSetting(const GridResult& result) {
  std::optional<size_t> best;
  double best_median = 0;
  for (size_t i = 0; i < result.settings.size(); ++i) {
    const ScoreSummary* score = MainScore(result, result.settings[i]);
    if (score != nullptr && !std::isnan(score->median) &&
        (!best.has_value() || score->median > best_median)) {
      best = i;
      best_median = score->median;
    }
  }
  return best;
}

OrderedJson GridToJson(const GridResult& result, const std::string& task) {
  OrderedJson settings = OrderedJson::array();
  for (const SettingResult& setting : result.settings) {
    settings.push_back(
        {{"values", setting.values},
         {"directory", setting.name},
         {"scores", setting.result.finished
                        ? ScoreSummariesToJson(setting.result.scores)
                        : OrderedJson()}});
    if (!setting.diverged.empty()) {
      settings.back()["diverged"] = setting.diverged;
    }
  }
  const std::optional<size_t> best = BestSetting(result);
  return {{"task", task},
          {"main_metric", result.main_metric},
          {"finished", result.finished},
          {"best", best.has_value() ? OrderedJson(result.settings[*best].name)
                                    : OrderedJson()},
          {"settings", settings}};
}

std::string FormatGridTable(const GridResult& result) {
  const bool has_deviations = HasDeviations(result);
  const std::optional<size_t> best = BestSetting(result);
  std::vector<std::vector<std::string>> rows(1);
  for (const auto& [field, value] : result.settings.front().values.items()) {
    rows[0].push_back(field);
  }
  rows[0].push_back(result.main_metric);
  if (has_deviations) {
    rows[0].emplace_back("deviation");
  }
  for (const SettingResult& setting : result.settings) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const auto& [field, value] : setting.values.items()) {
      row.push_back(GridValueText(value));
    }
    const ScoreSummary* score = MainScore(result, setting);
    row.push_back(ScoreText(setting, score));
    if (has_deviations) {
      row.push_back(score != nullptr && score->standard_deviation.has_value()
                        ? FormatScore(*score->standard_deviation)
                        : "");
    }
  }
  std::string table;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t column = 0; column < rows[i].size(); ++column) {
      size_t width = 0;
      for (const std::vector<std::string>& row : rows) {
        width = std::max(width, row[column].size());
      }
      absl::StrAppendFormat(&table, "%s%*s", column == 0 ? "" : "  ",
                            static_cast<int>(width), rows[i][column]);
    }
    const bool is_best = best.has_value() && i == *best + 1;
    absl::StrAppend(&table, is_best ? "  best\n" : "\n");
  }
  return table;
}

}  // namespace etc
