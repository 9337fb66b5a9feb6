#ifndef ETC_TASKS_CLASSIFY_RECORD_H_
#define ETC_TASKS_CLASSIFY_RECORD_H_

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace etc {

// A record and a prediction, as programs give and get them
// (tasks/inference/predictor.h).

// Kind of answer: one of several labels, any of them, or a number.
enum class ClassifyType { kOne, kSeveral, kNumber };

// The answer for a document, by people or by a model.
struct ClassifyAnswer {
  ClassifyType type = ClassifyType::kOne;
  // One; or all that apply, sorted, each once; or none of a number.
  std::vector<std::string> labels = {};
  double number = 0;

  bool operator==(const ClassifyAnswer&) const = default;
};

// One row of a table, or one JSON object.
struct ClassifyRecord {
  // Absent in the file: the number of the record in it, from 0 on.
  std::string id = {};
  bool has_id = false;
  // Texts, at least one; a sentence ends with its text.
  std::vector<std::string> texts = {};
  std::optional<std::string> text_b = std::nullopt;
  // Absent in data to predict for.
  std::optional<ClassifyAnswer> answer = std::nullopt;

  // Texts, which should be UTF-8.
  static constexpr auto kTexts = std::make_tuple(
      &ClassifyRecord::id, &ClassifyRecord::texts, &ClassifyRecord::text_b);
};

// A model's prediction for a document.
struct ClassifyPrediction {
  ClassifyAnswer answer = {};
  // Probability of each label, in the order of the options; empty for a number.
  std::vector<std::pair<std::string, double>> probabilities = {};
};

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_RECORD_H_
