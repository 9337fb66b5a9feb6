#ifndef ETC_TASKS_CLASSIFY_DATA_SUMMARY_H_
#define ETC_TASKS_CLASSIFY_DATA_SUMMARY_H_

#include <string>
#include <vector>

#include "tasks/classify/options.h"
#include "tasks/data/record_source.h"

namespace etc {

// Lines for people about the data of a run: of each set the number of
// documents, and its labels with theirs, or the range of its numbers. Then
// warnings: labels of the training data that differ by case or white space
// only, labels without training documents, and documents of `dev` whose text is
// that of a training document. Records with mistakes are left out.
std::vector<std::string> DescribeClassifyData(
    const std::vector<FileRecord>& train, const std::vector<FileRecord>& dev,
    const ClassifyOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_DATA_SUMMARY_H_
