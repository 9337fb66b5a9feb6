#ifndef ETC_TESTS_TASKS_TRANSLATION_TRAINING_FIXTURE_H_
#define ETC_TESTS_TASKS_TRANSLATION_TRAINING_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/distributed/process_group.h"
#include "tasks/runs/grid_run.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/train/toy_run.h"
#include "tests/tasks/translation/toy_language.h"

namespace etc {

inline RunConfig ConfigOf(const nlohmann::json& json) {
  absl::StatusOr<RunConfig> config = RunConfigFromJson(json, "run.json");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

class TranslationTrainingTest : public testing::Test {
 protected:
  // Trains into the directory `name`; stops after `stop_after` updates.
  GridResult Train(const std::string& name, int64_t stop_after = -1,
                   bool resume = false, ProcessGroup* group = nullptr) {
    nlohmann::json json = json_;
    json["output"] = directory_.File(name);
    FakeReporter reporter;
    reporter.stop_after = stop_after;
    const absl::StatusOr<GridResult> result = TrainGrid(
        ConfigOf(json),
        {.earlier = resume ? EarlierRun::kResume : EarlierRun::kRefuse,
         .context = {
             .reporter = &reporter, .stop = &reporter.stop, .group = group}});
    EXPECT_TRUE(result.ok()) << result.status();
    messages_ = reporter.messages;
    return result.ok() ? *result : GridResult();
  }
  std::string Seed(const std::string& name) const {
    return directory_.File(name) + "/seed-1";
  }
  std::string Weights(const std::string& name) const {
    const auto bytes =
        ReadFile(Seed(name) + "/checkpoints/last/model.safetensors");
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return *bytes;
  }

  TemporaryDirectory directory_;
  ToyLanguage language_{&directory_};
  nlohmann::json json_ = language_.Config();
  std::vector<std::string> messages_;
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_TRANSLATION_TRAINING_FIXTURE_H_
