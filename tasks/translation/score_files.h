#ifndef ETC_TASKS_TRANSLATION_SCORE_FILES_H_
#define ETC_TASKS_TRANSLATION_SCORE_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "tasks/metrics.h"
#include "tasks/translation/bleu.h"

namespace etc {

// BLEU of a file of translations, a line each, against a file of as many
// references. The empty line is a translation without words; a file that ends
// without a line feed has its last line all the same.
//   kNotFound         there is no such file
//   kInvalidArgument  the files have different numbers of lines, or none; a
//                     line that is not UTF-8, with its number
// and errors of TextFile.
absl::StatusOr<BleuScore> ScoreTranslationFiles(const std::string& hypotheses,
                                                const std::string& references,
                                                const BleuOptions& options);

// "bleu" in [0, 100], the main one, "precision_1" to "precision_4" in [0, 1],
// "brevity_penalty", and the words "hypothesis_length" and "reference_length".
Metrics BleuMetrics(const BleuScore& score);

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_SCORE_FILES_H_
