#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_WHOLE_WORD_MASKS_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_WHOLE_WORD_MASKS_H_

#include <string>

#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"

namespace etc {

// Checks that masking whole words finds the tokens that it is asked for: a word
// of more pieces than an example may have masks is never masked (MaskTokens),
// as in text without blanks, whose words are whole sentences. Looks at about
// 100 records of `train`, which gives PretrainExamples. Returns a warning if
// fewer than half of the tokens are masked, else nothing.
//   kFailedPrecondition  none is
// and the errors of the source.
absl::StatusOr<std::string> CheckWholeWordMasks(const ExampleSource& train);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_WHOLE_WORD_MASKS_H_
