#ifndef ETC_TASKS_TASK_LABEL_TABLE_H_
#define ETC_TASKS_TASK_LABEL_TABLE_H_

#include <cstdint>
#include <map>
#include <string>

#include "tasks/metrics.h"

namespace etc {

// Counts of a label in a metric. Ratios are 0 where they are 0 / 0.
struct LabelCounts {
  int64_t right = 0;
  int64_t gold = 0;
  int64_t predicted = 0;

  double precision() const;
  double recall() const;
  // 2 right / (gold + predicted)
  double f1() const;
};

// A label in the name of a score: as it is, or as a JSON string where it has a
// comma, a bracket, a quotation mark, a backslash or a control character.
std::string LabelInName(const std::string& label);

// precision[a], recall[a], f1[a] and support[a], the number in the gold, of
// each label.
Metrics LabelTable(const std::map<std::string, LabelCounts>& labels);

// Frequencies of labels for people, the most frequent first, at most 20 of
// them: "\"food\" 400, \"music\" 320 and 3 others".
std::string FrequencyText(const std::map<std::string, int64_t>& frequencies);

// A probability in a prediction file: rounded to 6 decimals, without zeros
// behind the first of them ("0.93", "1.0"). nlohmann writes some of these
// numbers with 17 digits.
std::string SixDecimals(double probability);

}  // namespace etc

#endif  // ETC_TASKS_TASK_LABEL_TABLE_H_
