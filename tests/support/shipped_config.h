#ifndef ETC_TESTS_SUPPORT_SHIPPED_CONFIG_H_
#define ETC_TESTS_SUPPORT_SHIPPED_CONFIG_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/registry.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/train/progress.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/train_runs.h"

namespace etc {

// The configurations and samples that the repository ships, tasks/TASK/.

inline std::string SourcePath(const std::string& path) {
  return absl::StrCat(ETC_SOURCE_DIR, "/", path);
}

// File names of a task's configurations, in no order.
inline std::vector<std::string> ShippedConfigs(const std::string& task) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(
           SourcePath(absl::StrCat("tasks/", task, "/configs")))) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

// One of them; fails the test if it cannot be read.
inline RunConfig ReadShipped(const std::string& task, const std::string& name,
                             const std::vector<std::string>& overrides) {
  const auto config = ReadRunConfig(
      SourcePath(absl::StrCat("tasks/", task, "/configs/", name)), overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : RunConfig();
}

// Trains the demo of a task on file `train` of its sample, into `directory`:
// ten updates on one thread, unless an override says otherwise.
inline void RunDemo(const std::string& task, const std::string& train,
                    const std::vector<std::string>& more_overrides,
                    const std::string& directory) {
  const std::string sample =
      SourcePath(absl::StrCat("tasks/", task, "/sample/"));
  std::vector<std::string> overrides = {
      "train.steps=10",
      "train.evaluate_every=0",
      "train.threads=1",
      "train.seeds=[1]",
      absl::StrCat("output=", directory),
      absl::StrCat("data.train=[\"", sample, train, "\"]"),
      "data.dev=[]",
      absl::StrCat("tokenizer.vocabulary=", sample, "vocab.txt")};
  overrides.insert(overrides.end(), more_overrides.begin(),
                   more_overrides.end());
  RunConfig config = ReadShipped(task, "demo.json", overrides);
  auto tokenizer = LoadTokenizer(config.tokenizer.vocabulary);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto entry = FindTask(task);
  EXPECT_TRUE(entry.ok()) << entry.status();
  if ((*entry)->complete != nullptr) {
    const absl::Status completed = (*entry)->complete(&config);
    EXPECT_TRUE(completed.ok()) << completed;
  }
  const auto made = (*entry)->make(config, *std::move(tokenizer));
  EXPECT_TRUE(made.ok()) << made.status();
  std::ostringstream progress;
  StreamReporter reporter(&progress, StreamReporter::Style::kLines);
  const auto result =
      TrainRuns(config, **made, {.context = {.reporter = &reporter}});
  EXPECT_TRUE(result.ok()) << result.status();
}

// Losses of the first ten updates of a demo.
inline std::vector<double> DemoLosses(
    const std::string& task, const std::string& train,
    const std::string& residual_attention,
    std::vector<std::string> more_overrides = {}) {
  const TemporaryDirectory directory;
  more_overrides.push_back(
      absl::StrCat("residual_attention=", residual_attention));
  RunDemo(task, train, more_overrides, directory.path());
  std::vector<double> losses;
  std::ifstream metrics(directory.File("seed-1/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    const auto json = ParseJson(line, "metrics.jsonl");
    EXPECT_TRUE(json.ok()) << json.status();
    if (json->contains("loss")) {
      losses.push_back(json->at("loss").get<double>());
    }
  }
  return losses;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_SHIPPED_CONFIG_H_
