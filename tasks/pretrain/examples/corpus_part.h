#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_CORPUS_PART_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_CORPUS_PART_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/pretrain/corpus/token_store.h"
#include "tasks/pretrain/examples/document_set.h"

namespace etc {

// Selects the documents of a token store that are read (doc/pretraining.md 10,
// step 7).
struct CorpusPartOptions {
  // The development part, or the rest.
  bool development = false;
  // About one document in `development_one_in` is held out for development:
  // those whose hash is a multiple. 0: none is.
  int64_t development_one_in = 1000;
  // Documents whose hash is this or smaller are held out as well
  // (HoldOutSmallest).
  uint64_t held_out_up_to = 0;
  // Documents with fewer sentences are left out.
  int64_t min_sentences = 1;
  // Longer documents are divided into equal ones of at most this many
  // sentences, each of which is held out, or drawn as a random next text, by
  // itself: for corpora of a few books. 0: none is divided.
  int64_t max_sentences = 0;
};

using TokenStores = std::vector<std::shared_ptr<const TokenStore>>;

// Sentences [begin, end) of a store: a document, or a part of a divided one.
struct SentenceRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const SentenceRange&) const = default;
};

// Counts of a part's documents, read and left out, for people to read.
struct CorpusCounts {
  // After dividing.
  int64_t documents = 0;
  // Left out: fewer sentences than `min_sentences`.
  int64_t short_documents = 0;
  // Totals of the documents that are read.
  int64_t sentences = 0;
  int64_t tokens = 0;
  // Sentences longer than an input takes; the excess is cut off (BERT) or
  // becomes a sentence of its own (ETC).
  int64_t cut_sentences = 0;
  // ETC: parts of documents, and the sequences that they are packed into.
  int64_t windows = 0;
  int64_t sequences = 0;
};

// "1,234 documents (5 left out: fewer than 7 sentences), ..." without the line
// end.
std::string DescribeCounts(const CorpusCounts& counts,
                           const CorpusPartOptions& options);

// The documents of a part, in the order of the store; fills the numbers of
// documents, sentences and tokens of `counts`. Reads the index only.
//   kFailedPrecondition  there is none; the message says why (the store is
//                        empty, or which option of CorpusPartOptions left none)
absl::StatusOr<std::vector<SentenceRange>> SelectDocuments(
    const TokenStore& store, const CorpusPartOptions& options,
    CorpusCounts* counts);

// For corpora of few documents: returns `part` as it is if one of `stores` has
// at least `needed` documents whose hash is a multiple, or if it holds out
// none. Else sets `held_out_up_to` to the smallest hash up to which a store has
// `needed` documents held out, since examples are made of documents of one
// store; not if no store would have as many others. Documents that are too
// short do not count; of those whose hash is no multiple equal ones count as
// one. Reads the index only.
CorpusPartOptions HoldOutSmallest(const TokenStores& stores,
                                  CorpusPartOptions part, int64_t needed);

// The number of documents of `one` that `other` has too, those that are too
// short left out on both sides. Reads the index only.
int64_t CountShared(const TokenStores& one, const TokenStores& other,
                    const CorpusPartOptions& part);

// Puts tokens [begin, end) of `store`, which is unchanged, behind `pieces`.
//   kDataLoss  the store is damaged there
absl::Status AppendTokens(const TokenStore& store, int64_t begin, int64_t end,
                          Pieces* pieces);

// Some documents of a token store, which must outlive it.
class StoreDocuments : public DocumentSet {
 public:
  StoreDocuments(const TokenStore* store, std::vector<SentenceRange> documents)
      : store_(store), documents_(std::move(documents)) {}

  int64_t size() const override {
    return static_cast<int64_t>(documents_.size());
  }
  int64_t num_sentences(int64_t document) const override {
    return Range(document).size();
  }
  absl::Status AppendSentence(int64_t document, int64_t sentence,
                              Pieces* pieces) const override;

  // Returns the place of document `document` of this set in the store.
  const SentenceRange& Range(int64_t document) const {
    return documents_[static_cast<size_t>(document)];
  }

 private:
  const TokenStore* const store_;
  const std::vector<SentenceRange> documents_;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_CORPUS_PART_H_
