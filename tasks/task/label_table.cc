#include "tasks/task/label_table.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "tasks/metrics.h"

namespace etc {

double LabelCounts::precision() const {
  return Share(static_cast<double>(right), predicted);
}

double LabelCounts::recall() const {
  return Share(static_cast<double>(right), gold);
}

double LabelCounts::f1() const {
  return Share(2 * static_cast<double>(right), gold + predicted);
}

std::string LabelInName(const std::string& label) {
  const bool is_plain =
      label.find_first_of(",[]\"\\") == std::string::npos &&
      std::none_of(label.begin(), label.end(), absl::ascii_iscntrl);
  return is_plain ? label : JsonAsciiText(nlohmann::json(label));
}

Metrics LabelTable(const std::map<std::string, LabelCounts>& labels) {
  Metrics table;
  for (const auto& [label, counts] : labels) {
    const auto add = [&table, name = LabelInName(label)](const char* metric,
                                                         double value) {
      table.emplace_back(absl::StrCat(metric, "[", name, "]"), value);
    };
    add("precision", counts.precision());
    add("recall", counts.recall());
    add("f1", counts.f1());
    add("support", static_cast<double>(counts.gold));
  }
  return table;
}

std::string FrequencyText(const std::map<std::string, int64_t>& frequencies) {
  constexpr size_t kMostShown = 20;
  std::vector<std::pair<std::string, int64_t>> labels(frequencies.begin(),
                                                      frequencies.end());
  std::stable_sort(
      labels.begin(), labels.end(),
      [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(labels.size(), kMostShown); ++i) {
    parts.push_back(
        absl::StrCat(QuotedName(labels[i].first), " ", labels[i].second));
  }
  return absl::StrCat(
      absl::StrJoin(parts, ", "),
      labels.size() > kMostShown
          ? absl::StrCat(" and ", labels.size() - kMostShown, " others")
          : "");
}

std::string SixDecimals(double probability) {
  std::string text = absl::StrFormat("%.6f", probability);
  text.resize(text.find_last_not_of('0') + 1);
  return text + (text.ends_with('.') ? "0" : "");
}

}  // namespace etc
