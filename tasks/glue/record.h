#ifndef ETC_TASKS_GLUE_RECORD_H_
#define ETC_TASKS_GLUE_RECORD_H_

#include <optional>
#include <string>
#include <tuple>

namespace etc {

// A record and a prediction, as programs give and get them
// (tasks/inference/predictor.h).

struct GlueTask;  // tasks/glue/benchmark.h

// The gold label of a row, with the context that scoring needs.
struct GlueGold {
  // Null: that of the options.
  const GlueTask* task = nullptr;
  // Label as in the file; for STS-B `score` is the number.
  std::string label = {};
  double score = 0;
  // MNLI: "matched" or "mismatched"; empty: not known, or another task.
  std::string set = {};
};

// A row of one of GLUE's files (tasks/glue/official_files.h).
struct GlueRecord {
  // The row's number, as the prediction file has it.
  std::string id = {};
  std::string text = {};
  // Given by tasks that are about two texts, and by no other; may be empty.
  std::optional<std::string> text_b = std::nullopt;
  // True if `gold` has a label; it has the task and the set in any case.
  bool has_label = false;
  GlueGold gold = {};

  // Texts, which should be UTF-8.
  static constexpr auto kTexts =
      std::make_tuple(&GlueRecord::id, &GlueRecord::text, &GlueRecord::text_b);
};

// A prediction for a row, by the model or from a file.
struct GluePrediction {
  // From a file: the text, whatever the task.
  std::string label = {};
  // STS-B: as the model says, without bounds. NaN: the file has no number.
  double score = 0;

  bool operator==(const GluePrediction&) const = default;
};

}  // namespace etc

#endif  // ETC_TASKS_GLUE_RECORD_H_
