#ifndef ETC_TASKS_GLUE_OFFICIAL_FILES_H_
#define ETC_TASKS_GLUE_OFFICIAL_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/data/record_source.h"
#include "tasks/glue/benchmark.h"

namespace etc {

// The rows of one of GLUE's files as it was downloaded (doc/glue.md 2), plain
// or packed by gzip, each as a record
//
//   {"task": "mrpc", "id": "0", "text": "...", "text_b": "...", "label": "1",
//    "set": "matched"}
//
// without text_b, label and set where there are none. `id` is the column
// "index" (of QQP's test file "id"), or else the number of the row, from 0;
// `set` is MNLI's, by the name of the file.
//
// Columns are separated by tabs, and a quotation mark is a character like any
// other. Columns are found by their names in the header, or else by their
// places. CoLA's train and dev files have no header. A row of QQP with another
// number of columns than the header is broken in the official files, and
// FileRecord::broken says so.
//   kInvalidArgument  a header or a number of columns that is not the task's,
//                     text that is not UTF-8, or has NUL; the first QNLI, whose
//                     rows are others; lines that end with CR alone; the
//                     message has file and line
absl::StatusOr<std::vector<FileRecord>> ReadGlueFile(
    const std::string& path, const GlueTask& task,
    const RecordLimits& limits = {});

}  // namespace etc

#endif  // ETC_TASKS_GLUE_OFFICIAL_FILES_H_
