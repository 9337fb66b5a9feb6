#ifndef ETC_TESTS_TASKS_TRAIN_TOY_RUN_FIXTURE_H_
#define ETC_TESTS_TASKS_TRAIN_TOY_RUN_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/output/program_version.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/train_runs.h"
#include "tests/tasks/train/toy_run.h"
#include "tests/tasks/train/toy_task.h"

namespace etc {

// Runs of the toy task in a temporary directory.
class ToyRunTest : public testing::Test {
 protected:
  ToyRunTest() {
    train_ = temporary_.Write("train.jsonl", ToyRecords(37, 1));
    dev_ = temporary_.Write("dev.jsonl", ToyRecords(11, 2));
    json_ = ToyConfigJson(train_, dev_, "");
  }

  std::string Output(const std::string& name) const {
    return temporary_.File(name);
  }

  // A run of the configuration `json_` into the directory `name`.
  absl::StatusOr<TrainResult> Run(const std::string& name,
                                  FakeReporter* reporter, bool resume = false) {
    json_["output"] = Output(name);
    auto config = RunConfigFromJson(json_, "toy");
    if (!config.ok()) {
      return config.status();
    }
    ToyTask task(config->model);
    task.nan_record = nan_record_;
    task.nan_logits_record = nan_logits_record_;
    task.repeats_in_evaluation = repeats_in_evaluation_;
    return TrainRuns(
        *config, task,
        {.earlier = overwrite_ ? EarlierRun::kOverwrite
                    : resume   ? EarlierRun::kResume
                               : EarlierRun::kRefuse,
         .allow_changes = allow_changes_,
         .context = {.reporter = reporter, .stop = &reporter->stop},
         .program = program_});
  }

  // The losses of each update in the metrics of the run `name`.
  std::vector<double> WrittenLosses(const std::string& name) const {
    std::vector<double> losses;
    for (const nlohmann::json& line : MetricsLines(Output(name) + "/seed-1")) {
      if (line.contains("loss")) {
        losses.push_back(line["loss"].get<double>());
      }
    }
    return losses;
  }

  // Makes `record` of the training data one that cannot be read.
  void SpoilRecord(int64_t record) {
    std::string lines = ToyRecords(37, 1);
    const size_t begin = lines.find(absl::StrCat("{\"id\":\"", record, "\""));
    lines.replace(lines.find("tokens", begin), 6, "nought");
    temporary_.Write("train.jsonl", lines);
  }

  TemporaryDirectory temporary_;
  std::string train_;
  std::string dev_;
  std::string nan_record_;
  std::string nan_logits_record_;
  bool repeats_in_evaluation_ = false;
  std::vector<std::string> allow_changes_;
  bool overwrite_ = false;
  ProgramVersion program_;
  nlohmann::json json_;
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_TRAIN_TOY_RUN_FIXTURE_H_
