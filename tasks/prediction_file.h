#ifndef ETC_TASKS_PREDICTION_FILE_H_
#define ETC_TASKS_PREDICTION_FILE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace etc {

// A file that a task writes beside its prediction file: the n-best answers
// beside the answers.
struct PredictionFile {
  // What its name has before that of the prediction file.
  std::string prefix;
  std::string contents;

  // Its path beside the prediction file at `path`: "out/nbest_dev.json" beside
  // "out/dev.json".
  std::string PathBeside(absl::string_view path) const {
    const size_t name = path.rfind('/') + 1;  // 0 if there is no folder
    return absl::StrCat(path.substr(0, name), prefix, path.substr(name));
  }
};

}  // namespace etc

#endif  // ETC_TASKS_PREDICTION_FILE_H_
