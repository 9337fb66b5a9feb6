#ifndef ETC_TASKS_DATA_OPEN_DATA_H_
#define ETC_TASKS_DATA_OPEN_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/data/data_group.h"
#include "tasks/data/record_gate.h"
#include "tasks/data/record_source.h"

namespace etc {

// A data set that a task is to open.
struct DataRequest {
  // Names of files, or patterns (tasks/data/data_files.h).
  std::vector<std::string> patterns;
  // Training needs answers: a record without one is a bad record there.
  RecordUse use = RecordUse::kEvaluation;
  // May be null.
  RecordSource::Listener listener = nullptr;
  // Longest record of a file of records: data.max_record_megabytes, in bytes.
  uint64_t max_record_bytes = 64'000'000;
  // The processes that open it, all at the same time.
  DataGroup group = {};
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_OPEN_DATA_H_
