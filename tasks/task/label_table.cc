#include "tasks/task/label_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tasks/task/official_json.h"
#include "tasks/task/scoring.h"

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
  if (is_plain) {
    return label;
  }
  std::string name = AsciiLine(nlohmann::json(label));
  name.pop_back();  // the line end
  return name;
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

}  // namespace etc
