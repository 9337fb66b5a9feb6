#ifndef ETC_TASKS_TASK_PREDICTION_H_
#define ETC_TASKS_TASK_PREDICTION_H_

#include <any>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace etc {

// Text of a record that the model did not read, because its input was full.
struct TruncatedPart {
  // "pieces" (of the tokenizer), "question_pieces", "words", "sentences" or
  // "texts".
  std::string unit = {};
  // At least 1.
  int64_t count = 0;
  // The code point of the record's text at which the first of them begins, of
  // tasks that say so.
  std::optional<int64_t> from = std::nullopt;

  bool operator==(const TruncatedPart&) const = default;
};

// Returns the parts of which there are any.
inline std::vector<TruncatedPart> PartsOf(std::vector<TruncatedPart> parts) {
  std::erase_if(parts,
                [](const TruncatedPart& part) { return part.count < 1; });
  return parts;
}

// A model's prediction for one record.
struct RecordPrediction {
  // The id of the record; its number where it has none.
  std::string id = {};
  // The prediction as a JSON object on one line, in ASCII, without a newline.
  // The fields are those of the official prediction file where that has an
  // object for each record, with "truncated": {"pieces": 37} at the end where
  // text was left out. tasks/inference/predictor.h lists them.
  std::string json = {};
  // Empty: the model read all of the record.
  std::vector<TruncatedPart> truncated = {};
  // The prediction as the struct of its task.
  std::any value = {};

  // Returns the struct if it is a T (ClassifyPrediction, SquadPrediction, ...),
  // else null.
  template <typename T>
  const T* As() const {
    return std::any_cast<T>(&value);
  }
};

// A file that a task writes beside its prediction file: the n-best answers
// beside the answers.
struct PredictionFile {
  // Prefix of its name, before that of the prediction file.
  std::string prefix = {};
  std::string contents = {};

  // Its path beside the prediction file at `path`: "out/nbest_dev.json" beside
  // "out/dev.json".
  std::string PathBeside(absl::string_view path) const {
    const size_t name = path.rfind('/') + 1;  // 0 if there is no folder
    return absl::StrCat(path.substr(0, name), prefix, path.substr(name));
  }
};

}  // namespace etc

#endif  // ETC_TASKS_TASK_PREDICTION_H_
