#ifndef ETC_TESTS_TASKS_TRAIN_TOY_RUN_H_
#define ETC_TESTS_TASKS_TRAIN_TOY_RUN_H_

#include <gtest/gtest.h>
#include <torch/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "etc/weights/checkpoint.h"
#include "nlohmann/json.hpp"
#include "tasks/train/progress.h"
#include "tasks/train/training_state.h"
#include "tests/support/train_runs.h"
#include "tests/tasks/train/toy_task.h"

namespace etc {

// Remembers messages and warnings; sets `stop` after the update `stop_after`,
// before the second batch of the evaluation after it, or at a message.
class FakeReporter : public RunReporter {
 public:
  void Message(absl::string_view text) override {
    messages.emplace_back(text);
    if (text == stop_at_message) {
      stop = true;
    }
  }
  void Warn(absl::string_view text) override { warnings.emplace_back(text); }
  void Update(const Progress& progress) override {
    updates.push_back(progress);
    if (progress.step == stop_after) {
      stop = true;
    }
  }
  void Evaluating(const EvaluationProgress&) override {
    ++evaluation_batches;
    if (evaluation_batches == stop_after_evaluation_batch) {
      stop = true;
    }
  }

  int64_t stop_after = -1;
  int64_t stop_after_evaluation_batch = -1;
  std::string stop_at_message;
  int64_t evaluation_batches = 0;
  std::atomic<bool> stop = false;
  std::vector<std::string> messages;
  std::vector<std::string> warnings;
  std::vector<Progress> updates;
};

// The lines of a metrics file without what the clock decides.
inline std::vector<nlohmann::json> MetricsLines(const std::string& directory) {
  const auto text = ReadFile(directory + "/metrics.jsonl");
  EXPECT_TRUE(text.ok()) << text.status();
  std::vector<nlohmann::json> lines;
  for (const absl::string_view line :
       absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    lines.push_back(nlohmann::json::parse(line));
    for (const char* timing :
         {"examples_per_second", "tokens_per_second", "seconds_waited",
          "seconds_communicating", "seconds", "page_faults"}) {
      lines.back().erase(timing);
    }
  }
  return lines;
}

inline NamedTensors ReadAll(const std::string& path) {
  auto reader = TensorReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  NamedTensors tensors;
  for (const std::string& name : reader->Names()) {
    tensors[name] = *reader->Read(name);
  }
  return tensors;
}

inline void ExpectSameTensors(const std::string& path,
                              const std::string& expected) {
  const NamedTensors left = ReadAll(path);
  const NamedTensors right = ReadAll(expected);
  ASSERT_EQ(left.size(), right.size());
  EXPECT_GT(left.size(), 20);
  for (const auto& [name, tensor] : left) {
    EXPECT_TRUE(torch::equal(tensor, right.at(name))) << name;
  }
}

// All but the times, which differ in length as text.
inline void ExpectSameRun(const std::string& directory,
                          const std::string& expected) {
  for (const std::string link : {"/checkpoints/last", "/checkpoints/best"}) {
    for (const std::string file :
         {"/model.safetensors", "/training_state.safetensors"}) {
      ExpectSameTensors(directory + link + file, expected + link + file);
    }
    EXPECT_EQ(*ReadFile(directory + link + "/predictions.json"),
              *ReadFile(expected + link + "/predictions.json"));
    auto state =
        ReadTrainingState(directory + link + "/training_state.safetensors");
    auto other =
        ReadTrainingState(expected + link + "/training_state.safetensors");
    state->state.metrics_bytes = other->state.metrics_bytes;
    EXPECT_TRUE(state->state == other->state) << link;
    auto evaluated =
        ReadStateAfterEvaluation(directory + link + "/evaluation.json");
    auto expected_evaluated =
        ReadStateAfterEvaluation(expected + link + "/evaluation.json");
    ASSERT_TRUE(evaluated.ok() && evaluated->has_value()) << link;
    ASSERT_TRUE(expected_evaluated.ok() && expected_evaluated->has_value());
    (*evaluated)->state.metrics_bytes =
        (*expected_evaluated)->state.metrics_bytes;
    EXPECT_TRUE((*evaluated)->state == (*expected_evaluated)->state) << link;
  }
  EXPECT_EQ(MetricsLines(directory), MetricsLines(expected));
}

// A run of the configuration `json` (ToyConfigJson).
inline absl::StatusOr<TrainResult> RunToy(const nlohmann::json& json,
                                          FakeReporter* reporter, bool resume) {
  const auto config = RunConfigFromJson(json, "toy");
  if (!config.ok()) {
    return config.status();
  }
  const ToyTask task(config->model);
  return TrainRuns(
      *config, task,
      {.earlier = resume ? EarlierRun::kResume : EarlierRun::kRefuse,
       .context = {.reporter = reporter, .stop = &reporter->stop}});
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_TRAIN_TOY_RUN_H_
