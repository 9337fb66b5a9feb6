#ifndef ETC_TASKS_TRANSLATION_TRANSLATOR_H_
#define ETC_TASKS_TRANSLATION_TRANSLATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "etc/encoder_decoder/beam_search.h"
#include "tasks/data/record_source.h"
#include "tasks/task/task.h"
#include "tasks/train/run_context.h"
#include "tasks/translation/bleu.h"
#include "tasks/translation/model.h"
#include "tasks/translation/vocabulary.h"

namespace etc {

// Settings of a Translator; absent ones are those of the checkpoint's
// configuration (TranslationOptions).
struct TranslatorOptions {
  std::optional<int64_t> beam_size;
  std::optional<double> length_penalty;
  std::optional<int64_t> max_length;
  double unknown_penalty = 0;
  // Translations of each line.
  int64_t num_best = 1;
  // Sentences that are searched at once.
  int64_t batch_size = 128;
  // The same as in CheckpointRunOptions.
  std::string residual_attention;
  std::string device = "auto";
  std::optional<int64_t> threads;
};

// A translation of a line.
struct Translation {
  std::string text;
  // Log-probability / length^length_penalty.
  double score = 0;
};

// A trained encoder-decoder that translates lines of text.
class Translator {
 public:
  // Loads a checkpoint: its directory, or that of a grid, run or seed, whose
  // best one is taken. Sets LibTorch's threads. Messages and warnings, of
  // another mode than in training and of more threads than cores, go to
  // `context`.
  //   kNotFound         there is none
  //   kInvalidArgument  it is of another task, whose model has no decoder;
  //                     options out of range, such as a beam of more than V -
  //                     1, by their names in `realetc translate`; errors of
  //                     ApplyResidualChoice
  // and the errors of loading.
  static absl::StatusOr<Translator> Open(const std::string& checkpoint,
                                         const TranslatorOptions& options,
                                         const RunContext& context);

  // A line's ids, each with the end; nothing of a line without tokens.
  //   kInvalidArgument  the line is not UTF-8, has more tokens than the model's
  //                     positions, or none that the vocabulary knows; `where`
  //                     starts the message
  absl::StatusOr<std::vector<int32_t>> Encode(const std::string& line,
                                              const std::string& where) const;

  // Translates encoded lines in batches of about equal lengths, and calls
  // write(line, translations, best first) for each in their order, as soon as
  // those before are known. A line without tokens has one empty translation.
  // where(line) is its name in messages; progress(lines) is called after each
  // batch with the number of lines that are translated, unless it is null.
  //   kAborted    a line without a translation, since its logits are not
  //               finite; those before it are written
  //   kCancelled  `context` was stopped
  // and the errors of `write`.
  using Write = std::function<absl::Status(
      size_t line, const std::vector<Translation>& translations)>;
  absl::Status Translate(
      absl::Span<const std::vector<int32_t>> lines, const RunContext& context,
      const Write& write, const std::function<std::string(size_t line)>& where,
      const std::function<void(int64_t lines)>& progress = nullptr);

  int64_t batch_size() const { return options_.batch_size; }
  const TranslationVocabulary& vocabulary() const { return *vocabulary_; }

 private:
  Translator(TranslationModel model, torch::Device device,
             std::shared_ptr<const TranslationVocabulary> vocabulary,
             TranslatorOptions options);

  // The translations of the lines of those numbers.
  //   kCancelled  `context` was stopped, at the next layer
  absl::StatusOr<std::vector<std::vector<Translation>>> TranslateBatch(
      absl::Span<const std::vector<int32_t>> lines,
      absl::Span<const size_t> numbers, const RunContext& context);

  TranslationModel model_;
  torch::Device device_;
  std::shared_ptr<const TranslationVocabulary> vocabulary_;
  TranslatorOptions options_;
};

// BLEU of a checkpoint, and the variant that it is of.
struct CheckpointBleu {
  BleuScore score = {};
  BleuOptions options = {};
};

// BLEU of a checkpoint's translations of parallel text: the sources of the
// pairs that `task`, a TranslationTask, reads for its loss are translated as
// `realetc translate` does, those of unknown tokens alone too, which it
// refuses, and compared with the texts of the targets in their files
// (TranslationVocabulary::TextOf). Of SentencePiece, whose texts are raw, it is
// sacrebleu's default; of a dictionary TokenizedBleu. The reporter of `context`
// hears of each batch (RunReporter::Translating).
//   kCancelled        `context` was stopped
//   kInvalidArgument  errors of CorpusBleu
//   kAborted          a pair whose source has no translation, by its file and
//                     line (Translator::Translate)
// and the errors of TranslationTask::Open.
absl::StatusOr<CheckpointBleu> TranslateAndScore(const Task& task,
                                                 const DataRequest& data,
                                                 const RunContext& context,
                                                 Translator* translator);

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_TRANSLATOR_H_
