#ifndef ETC_TASKS_TRANSLATION_DEV_BLEU_H_
#define ETC_TASKS_TRANSLATION_DEV_BLEU_H_

#include "absl/status/statusor.h"
#include "tasks/data/record_source.h"
#include "tasks/task/task.h"
#include "tasks/train/run_context.h"
#include "tasks/translation/bleu.h"
#include "tasks/translation/translator.h"

namespace etc {

// BLEU of a checkpoint's translations of parallel text: the sources of the
// pairs that `task`, a TranslationTask, reads for its loss are translated as
// `realetc translate` does, and compared with the lines of the targets as they
// stand in their files. Messages to `context`, which may stop it (kCancelled),
// say how many pairs there are, and how many are left out.
//   kInvalidArgument  errors of CorpusBleu
// and the errors of TranslationTask::Open.
absl::StatusOr<BleuScore> TranslateAndScore(const Task& task,
                                            const DataRequest& data,
                                            const BleuOptions& options,
                                            const RunContext& context,
                                            Translator* translator);

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_DEV_BLEU_H_
