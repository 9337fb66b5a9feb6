#ifndef ETC_TASKS_TRANSLATION_TOKEN_BATCHES_H_
#define ETC_TASKS_TRANSLATION_TOKEN_BATCHES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"
#include "tasks/data/loader.h"
#include "tasks/translation/parallel_text.h"

namespace etc {

// Limits of a batch.
struct TokenBatchOptions {
  // Sentences times the longest of them, padding counted.
  int64_t max_tokens = 4096;
  int64_t max_sentences = 0;  // 0: no limit
  // A batch that has as many sentences is cut to a multiple of this number.
  int64_t multiple = 8;
};

// Cuts sentences, in their order, into batches as fairseq does
// (doc/translation.md 4.1): sentence i is added unless (count + 1) *
// max(longest so far, tokens[i]) > max_tokens, or the batch is full; a batch
// that is closed so keeps max(multiple * (count / multiple), count % multiple)
// sentences, and the rest begins the next one. Returns the sizes.
std::vector<int64_t> CutByTokens(const std::vector<int64_t>& tokens,
                                 const TokenBatchOptions& options);

// The batches of all pairs, by their numbers: a random order that follows from
// the seed, sorted by source length, and then by target length, and cut.
std::vector<std::vector<int64_t>> MakeTokenBatches(
    const std::vector<PairLengths>& pairs, const TokenBatchOptions& options,
    uint64_t seed);

// Training batches of which each is `options.batch_size` batches of
// MakeTokenBatches, the last of an epoch the rest of them: micro-batches, of
// which micro-batch i is that of rank i % ranks. The same batches come in each
// epoch, in another order. All of it follows from seed and position.
class TokenBatchLoader final : public BatchLoader {
 public:
  // `source` gives TranslationExamples, one of each record; it must outlive the
  // loader.
  TokenBatchLoader(const ExampleSource* source,
                   const TokenBatchOptions& batches,
                   const TrainingLoaderOptions& options, LoaderPosition start);

  //   kCancelled           `options.stop` is true
  //   kFailedPrecondition  there are no pairs; the position is none of them
  absl::StatusOr<TrainingBatch> Next() override;
  double seconds_waited() const override { return 0; }
  const SkippedRecords& skipped() const override { return skipped_; }

 private:
  // The batches, once: their cutting reads all lengths.
  absl::Status Prepare();

  const ExampleSource* const source_;
  const TokenBatchOptions batch_options_;
  const TrainingLoaderOptions options_;
  LoaderPosition next_;
  std::vector<std::vector<int64_t>> batches_;
  std::vector<int64_t> order_;  // of the epoch; empty: not drawn
  SkippedRecords skipped_;
};

// The lengths of the pairs of a source, or its error.
absl::StatusOr<std::vector<PairLengths>> LengthsOf(const ExampleSource& source);

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_TOKEN_BATCHES_H_
