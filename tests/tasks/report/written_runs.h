#ifndef ETC_TESTS_TASKS_REPORT_WRITTEN_RUNS_H_
#define ETC_TESTS_TASKS_REPORT_WRITTEN_RUNS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/temporary_directory.h"

namespace etc {

// Directories of runs as training leaves them, for tests of reports.
class WrittenRuns {
 public:
  const TemporaryDirectory& directory() const { return directory_; }
  std::string Path(const std::string& name) const {
    return directory_.File(name);
  }

  // A file below the directory, whose folders are made.
  std::string Write(const std::string& name, const std::string& contents) {
    std::filesystem::create_directories(
        std::filesystem::path(directory_.File(name)).parent_path());
    return directory_.Write(name, contents);
  }

  // The run of a seed in `run` that has ended: two updates before each of the
  // evaluations, whose accuracies are `scores`.
  void WriteSeed(const std::string& run, int64_t seed,
                 const std::vector<double>& scores,
                 const nlohmann::json& settings) {
    std::string lines;
    int64_t step = 0;
    for (const double score : scores) {
      for (int i = 0; i < 2; ++i) {
        ++step;
        lines += nlohmann::json({{"step", step},
                                 {"loss", 1.0 / static_cast<double>(step)},
                                 {"learning_rate", 1e-3},
                                 {"gradient_norm", 0.5},
                                 {"tokens_per_second", 1000},
                                 {"seconds_waited", 0.25}})
                     .dump() +
                 "\n";
      }
      lines += nlohmann::json(
                   {{"step", step}, {"evaluation", {{"accuracy", score}}}})
                   .dump() +
               "\n";
    }
    const std::string folder = absl::StrCat(run, "/seed-", seed);
    Write(folder + "/metrics.jsonl", lines);
    nlohmann::json own = settings;
    own["train"]["seed"] = seed;
    Write(folder + "/result.json",
          nlohmann::json({{"seed", seed}, {"settings", own}}).dump());
  }

  // Settings of wikihop with a mode of residual scores.
  static nlohmann::json Settings(const std::string& mode) {
    return {{"task", "wikihop"},
            {"residual_attention", mode},
            {"train", {{"learning_rate", 1e-3}}}};
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_REPORT_WRITTEN_RUNS_H_
