#include "tasks/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_text.h"
#include "nlohmann/json.hpp"

namespace etc {

bool IsLowerBetter(const std::string& name) {
  for (const absl::string_view ending :
       {"loss", "perplexity", "error", "error_rate", "mse", "rmse", "mae",
        "wer", "cer"}) {
    // "loss" and "sentence_loss", but not "gloss".
    if (name == ending || absl::EndsWith(name, absl::StrCat("_", ending))) {
      return true;
    }
  }
  return false;
}

namespace {

// Returns a score for a table: a threshold with all its digits, since a setting
// with fewer may be on the other side of the answers that it was found by.
std::string FormatNamedScore(const std::string& name, double score) {
  const bool is_threshold =
      absl::EndsWith(name, "_thresh") || absl::EndsWith(name, "threshold");
  return is_threshold && std::isfinite(score) ? JsonText(nlohmann::json(score))
                                              : FormatScore(score);
}

}  // namespace

std::string FormatScore(double score) {
  constexpr double kLeast = 1e-3;
  constexpr double kMost = 1e9;
  const double size = std::abs(score);
  return size == 0 || (size >= kLeast && size < kMost)
             ? absl::StrFormat("%.4f", score)
             : absl::StrFormat("%.4g", score);
}

std::string FormatMainScore(const Metrics& scores, const std::string& main) {
  for (const auto& [name, value] : scores) {
    if (name == main) {
      return absl::StrCat(name, " ", FormatScore(value));
    }
  }
  return absl::StrCat("no ", main);
}

namespace {

// The same scores, the main one first.
Metrics WithMainFirst(Metrics scores, const std::string& main) {
  std::stable_partition(
      scores.begin(), scores.end(),
      [&main](const auto& score) { return score.first == main; });
  return scores;
}

}  // namespace

std::string FormatScoreTable(const Metrics& scores, const std::string& main) {
  size_t width = 0;
  for (const auto& [name, value] : scores) {
    width = std::max(width, name.size());
  }
  std::string table;
  for (const auto& [name, value] : WithMainFirst(scores, main)) {
    absl::StrAppendFormat(
        &table, "%-*s  %s%s\n", static_cast<int>(width), name,
        FormatNamedScore(name, value),
        name == main && scores.size() > 1 ? "  (main metric)" : "");
  }
  return table;
}

std::string ScoresToJson(const Metrics& scores) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, value] : scores) {
    if (std::isfinite(value)) {
      json[name] = value;
    } else {
      json[name] = absl::StrCat(value);
    }
  }
  return JsonText(json);
}

}  // namespace etc
