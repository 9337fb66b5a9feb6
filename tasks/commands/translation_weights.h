#ifndef ETC_TASKS_COMMANDS_TRANSLATION_WEIGHTS_H_
#define ETC_TASKS_COMMANDS_TRANSLATION_WEIGHTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace etc {

// Returns true if there are weights of fairseq's encoder-decoder at `path`.
bool IsFairseqFile(const std::string& path);

// Returns true if the directory has an encoder-decoder of ours.
bool IsEncoderDecoder(const std::string& directory);

// Prints the sizes, the residual attention and the configuration of the
// encoder-decoder of ours in a directory.
//   kInvalidArgument  a mistake in its configuration
absl::Status PrintEncoderDecoder(const std::string& directory);

struct TranslationImport {
  std::string source;
  // Empty with `dry_run`.
  std::string directory;
  // dict.txt or a SentencePiece model; empty: that beside the source, if there
  // is one: tokenizer.model, or what DictionaryBeside finds.
  std::string vocabulary;
  // For files that do not say it; 0: the file says it.
  int64_t heads = 0;
  bool dry_run = false;
};

// Makes a checkpoint of ours of one of fairseq (WriteTranslationModel), which
// `realetc translate` takes as it is; the settings of its search are our
// defaults, which are fairseq's. Without a vocabulary it has the model alone,
// to begin from. Prints the sizes of the model. All is checked before anything
// is written, also in a dry run, but for the directory, which should have
// passed CheckNoWeightsIn (etc/weights/output_directory.h).
//   kInvalidArgument  LoadFairseqCheckpoint; a weight that is infinite or not a
//                     number; a vocabulary that is none
//                     (LoadTranslationVocabulary), a dictionary whose ids are
//                     not as many as the rows of the model, a SentencePiece
//                     model with more, or several files that disagree
absl::Status ImportTranslation(const TranslationImport& arguments);

struct TranslationExport {
  // A directory of ours, or what ImportTranslation takes.
  std::string source;
  std::string directory;
  // Writes plain Post-LN in the place of "admin" (FoldAdminOmegas).
  bool fold_omegas = false;
};

// Writes model.pt, a checkpoint of fairseq, and dict.txt, if the source has a
// vocabulary, with a made-up word for each row without a piece; of a
// SentencePiece model its pieces, with counts of 1, and tokenizer.model itself.
// All is checked before anything is written, but for the directory, as above.
//   kInvalidArgument  CheckFairseqExpressible, FoldAdminOmegas,
//                     LoadFairseqCheckpoint; several vocabularies that disagree
absl::Status ExportTranslation(const TranslationExport& arguments);

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_TRANSLATION_WEIGHTS_H_
