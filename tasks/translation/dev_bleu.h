#ifndef ETC_TASKS_TRANSLATION_DEV_BLEU_H_
#define ETC_TASKS_TRANSLATION_DEV_BLEU_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/train/run_context.h"
#include "tasks/translation/bleu.h"
#include "tasks/translation/translator.h"

namespace etc {

// BLEU of a checkpoint's translations of parallel text: sources are translated
// as `realetc translate` does, and compared with the lines of the targets as
// they stand in their files. `files` are as of ParallelText::Open; `context`
// may stop it (kCancelled).
//   kInvalidArgument  errors of Translator and CorpusBleu
// and the errors of reading a file.
absl::StatusOr<BleuScore> TranslateAndScore(
    const std::vector<std::string>& files, const BleuOptions& options,
    const RunContext& context, Translator* translator);

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_DEV_BLEU_H_
