#ifndef ETC_TESTS_SUPPORT_DEMO_PREDICTOR_H_
#define ETC_TESTS_SUPPORT_DEMO_PREDICTOR_H_

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tasks/data/record_file.h"
#include "tasks/data/record_source.h"
#include "tasks/inference/predictor.h"
#include "tasks/runs/checkpoint_run.h"
#include "tasks/runs/task_setup.h"
#include "tasks/train/model_files.h"
#include "tests/support/shipped_config.h"

namespace etc {

// The files of a task's sample.
struct DemoFiles {
  std::string train;
  std::string dev;
};

inline DemoFiles DemoFilesOf(const std::string& task) {
  DemoFiles files;
  for (const auto& entry : std::filesystem::directory_iterator(
           SourcePath(absl::StrCat("tasks/", task, "/sample")))) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("train.")) {
      files.train = name;
    } else if (name.starts_with("dev.")) {
      files.dev = entry.path().string();
    }
  }
  return files;
}

// Trains the demo of a task by one update, which leaves it nearly random, and
// returns the directory of its checkpoint in `directory`.
inline std::string DemoCheckpoint(const std::string& task,
                                  const std::string& directory,
                                  std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(), {"train.steps=1", "train.batch_size=2",
                                       "train.micro_batch_size=2"});
  RunDemo(task, DemoFilesOf(task).train, overrides, directory);
  return absl::StrCat(directory, "/seed-1/checkpoints/last");
}

// The JSON texts of the records in a file of a task, as the task of a
// checkpoint reads them.
inline std::vector<std::string> RecordsOf(const std::string& checkpoint,
                                          const std::string& path) {
  std::vector<std::string> texts;
  const auto config = ReadTaskModelConfig(checkpoint);
  EXPECT_TRUE(config.ok()) << config.status();
  const auto setup = SetUpTask(*config);
  EXPECT_TRUE(setup.ok()) << setup.status();
  const auto source = setup->task->Open({.patterns = {path}});
  EXPECT_TRUE(source.ok()) << source.status();
  if (const auto* own = dynamic_cast<const FileRecordSource*>(source->get())) {
    for (const FileRecord& record : own->records()) {
      texts.push_back(record.Text());
    }
    return texts;
  }
  const auto file = RecordFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  for (int64_t i = 0; i < file->size(); ++i) {
    texts.push_back(file->Read(i).value_or(""));
  }
  return texts;
}

inline Predictor OpenOrFail(const std::string& checkpoint,
                            const PredictorOptions& options) {
  auto predictor = Predictor::Open(checkpoint, options);
  EXPECT_TRUE(predictor.ok()) << predictor.status();
  return *std::move(predictor);
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_DEMO_PREDICTOR_H_
