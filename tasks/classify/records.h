#ifndef ETC_TASKS_CLASSIFY_RECORDS_H_
#define ETC_TASKS_CLASSIFY_RECORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "tasks/classify/example.h"
#include "tasks/data/record_source.h"

namespace etc {

// Requirements on a file besides texts.
enum class ClassifyFileUse { kAny, kTraining };

// The records of a file: JSON objects as they are, rows of a table as objects
// with the columns that `options` name. Any of it may be packed by gzip.
//   kInvalidArgument  a name that does not say what the file is; a mistake in
//                     it; a table without a column that is needed, which for
//                     training is that of the answers as well
absl::StatusOr<std::vector<FileRecord>> ReadClassifyFile(
    const std::string& path, const ClassifyOptions& options,
    ClassifyFileUse use, const RecordLimits& limits);

// Notes in `reader` that a record has no text, or a second one where
// ClassifyOptions::has_single_texts.
void CheckClassifyTexts(JsonObjectReader& reader,
                        const ClassifyOptions& options,
                        const ClassifyRecord& record);

// The indices of an answer's labels among those of the options.
//   kInvalidArgument  "<where>: label should be one of a, b, but is "c""
absl::StatusOr<std::vector<int64_t>> IndicesOfLabels(
    const ClassifyAnswer& answer, const ClassifyOptions& options,
    const std::string& where);

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_RECORDS_H_
