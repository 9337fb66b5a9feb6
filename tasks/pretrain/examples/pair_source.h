#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_PAIR_SOURCE_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_PAIR_SOURCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/pattern_builders.h"
#include "tasks/data/example_source.h"
#include "tasks/pretrain/corpus/token_store.h"
#include "tasks/pretrain/examples/corpus_part.h"
#include "tasks/pretrain/examples/sentence_pairs.h"

namespace etc {

// Options of reading a token store for BERT (doc/pretraining.md 1 to 4).
struct PairSourceOptions {
  CorpusPartOptions corpus = {};
  SentencePairOptions pairs = {.max_length = 512};
  // 0: each epoch draws other examples. Otherwise static records as BERT's
  // generator writes them: this many versions of each document (dupe_factor),
  // which are the same in every epoch. The development part has one.
  int64_t static_versions = 0;
  // Documents whose pairs are mixed: pairs of one document, one after the
  // other, would share a batch. The development part mixes none.
  int64_t mixed_documents = 1;
  // Seed of mixing and of static records; not for the development part, which
  // is the same in all runs.
  uint64_t seed = 1;
  // BERT has no local window, and as a rule no relative positions.
  PatternOptions pattern = {.relative_pos_max_distance = 0};
};

// Pairs of texts, or single texts: one record is `mixed_documents` documents
// (or static versions of them), and gives a PretrainExample for each of their
// pairs, one a document at least, in random order. The choice of the documents
// follows from the seed. All other random choices follow from the request's key
// and the document, or for static records from the seed and the document's
// version; the number of a document's pairs does as well. Mixing costs 4 bytes
// a document.
class PairSource : public ExampleSource {
 public:
  //   kFailedPrecondition  no document is left (SelectDocuments), or with
  //                        next_sentence only one, so that no other can be
  //                        drawn
  static absl::StatusOr<std::unique_ptr<PairSource>> Open(
      std::shared_ptr<const TokenStore> store,
      const PairSourceOptions& options);

  int64_t size() const override;
  // Estimated by the pairs that some documents give.
  int64_t expected_examples() const override { return expected_examples_; }
  //   kDataLoss  the store is damaged where the record is
  absl::StatusOr<Examples> Make(RecordRequest request) const override;
  bool depends_on_key() const override { return num_versions_ == 0; }

  const CorpusCounts& counts() const { return counts_; }

 private:
  PairSource(std::shared_ptr<const TokenStore> store,
             const PairSourceOptions& options,
             std::vector<SentenceRange> documents, CorpusCounts counts);

  int64_t num_versions() const;
  // Sets order_.
  absl::Status MixDocuments();
  // Sets expected_examples_.
  absl::Status ExpectPairs();
  // Puts the pairs of a version of a document behind `examples`.
  absl::Status AddPairs(int64_t version, uint64_t key,
                        Examples* examples) const;

  const std::shared_ptr<const TokenStore> store_;
  const PairSourceOptions options_;
  const uint64_t seed_;
  const int64_t num_versions_;
  const int64_t mixed_documents_;
  const StoreDocuments documents_;
  const CorpusCounts counts_;
  // Versions of documents in the order in which they are mixed; empty if they
  // are not.
  std::vector<int32_t> order_;
  int64_t expected_examples_ = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_PAIR_SOURCE_H_
