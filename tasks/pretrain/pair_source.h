#ifndef ETC_TASKS_PRETRAIN_PAIR_SOURCE_H_
#define ETC_TASKS_PRETRAIN_PAIR_SOURCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/pattern_builders.h"
#include "tasks/data/example_source.h"
#include "tasks/pretrain/corpus_part.h"
#include "tasks/pretrain/sentence_pairs.h"
#include "tasks/pretrain/token_store.h"

namespace etc {

// What BERT reads of a token store (doc/pretraining.md 1 to 4).
struct PairSourceOptions {
  CorpusPartOptions corpus = {};
  SentencePairOptions pairs = {.max_length = 512};
  // Whether the model is asked if B follows A. Pairs are the same without.
  bool next_sentence = true;
  // 0: each epoch draws other examples. Otherwise static records as BERT's
  // generator writes them: so many versions of each document (dupe_factor),
  // which are the same in every epoch. The development part has one.
  int64_t static_versions = 0;
  // Of static records; not for the development part, which is the same in all
  // runs.
  uint64_t seed = 1;
  // BERT has no local window, and as a rule no relative positions.
  PatternOptions pattern = {.relative_pos_max_distance = 0};
};

// Pairs of texts: one record is one document (or one static version of one),
// and gives a PretrainExample for each of its pairs, one at least. All that is
// random follows from the request's key and the document, or for static records
// from the seed and the record. How many pairs a document gives depends on it
// too.
class PairSource : public ExampleSource {
 public:
  //   kInvalidArgument     an option is out of range
  //   kFailedPrecondition  no document is left (SelectDocuments), or with
  //                        `next_sentence` only one, so that no other can be
  //                        drawn
  static absl::StatusOr<std::unique_ptr<PairSource>> Open(
      std::shared_ptr<const TokenStore> store,
      const PairSourceOptions& options);

  int64_t size() const override;
  //   kDataLoss  the store is damaged where the record is
  absl::StatusOr<Examples> Make(RecordRequest request) const override;
  bool depends_on_key() const override { return num_versions_ == 0; }

  const CorpusCounts& counts() const { return counts_; }

 private:
  PairSource(std::shared_ptr<const TokenStore> store,
             const PairSourceOptions& options,
             std::vector<SentenceRange> documents, CorpusCounts counts);

  const std::shared_ptr<const TokenStore> store_;
  const PairSourceOptions options_;
  const uint64_t seed_;
  const int64_t num_versions_;
  const StoreDocuments documents_;
  const CorpusCounts counts_;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_PAIR_SOURCE_H_
