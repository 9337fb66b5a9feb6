#ifndef ETC_TASKS_TRANSLATION_INITIAL_WEIGHTS_H_
#define ETC_TASKS_TRANSLATION_INITIAL_WEIGHTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/translation/model.h"
#include "tasks/translation/vocabulary.h"

namespace etc {

// Replaces the weights by those that `config.init` names, as
// LoadTranslationWeights does, and returns a line about them. The configuration
// beside them, or among the options of fairseq, must be of the same function as
// the model but for residual attention and dropout, and a vocabulary beside
// them (FindTranslationTokenizer) must have the same pieces as
// `vocabulary`.
//   kInvalidArgument  num_attention_heads, hidden_act, encoder_sublayer,
//                     decoder_sublayer or layer_norm_epsilon differ; a piece
//                     differs; errors of DictionaryBeside and FairseqConfig
//   kDataLoss         CheckCheckpointFiles
// and the errors of LoadTranslationWeights.
absl::StatusOr<std::string> LoadInitialTranslationWeights(
    const RunConfig& config, const TranslationVocabulary& vocabulary,
    const TranslationModel& model);

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_INITIAL_WEIGHTS_H_
