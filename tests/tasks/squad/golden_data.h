#ifndef ETC_TESTS_TASKS_SQUAD_GOLDEN_DATA_H_
#define ETC_TESTS_TASKS_SQUAD_GOLDEN_DATA_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "nlohmann/json.hpp"
#include "tasks/squad/task.h"

namespace etc {

inline nlohmann::json ReadJsonOrFail(const std::string& path) {
  const auto json = ReadJsonFile(path);
  EXPECT_TRUE(json.ok()) << json.status();
  return json.ok() ? *json : nlohmann::json();
}

// The records of a file; fails the test for one that cannot be read.
inline std::vector<SquadRecord> ReadSquadRecords(const std::string& path) {
  const Squad squad;
  const auto files = squad.ReadFile(path, {});
  EXPECT_TRUE(files.ok()) << files.status();
  std::vector<SquadRecord> records;
  for (const FileRecord& file : files.value_or(std::vector<FileRecord>())) {
    const auto record = squad.ParseRecord(file.Text(), file.where);
    EXPECT_TRUE(record.ok()) << record.status();
    records.push_back(record.value_or(SquadRecord()));
  }
  return records;
}

using SquadExamples = std::vector<std::shared_ptr<SquadExample>>;

inline SquadExamples SquadExamplesOf(const SquadRecord& record,
                                     const SquadOptions& options,
                                     const Tokenizer& tokenizer) {
  const auto examples = Squad(options, &tokenizer).MakeExamples(record, "here");
  EXPECT_TRUE(examples.ok()) << examples.status();
  return examples.value_or(SquadExamples());
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_SQUAD_GOLDEN_DATA_H_
