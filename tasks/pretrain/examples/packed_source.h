#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_PACKED_SOURCE_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_PACKED_SOURCE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"
#include "tasks/pretrain/corpus/token_store.h"
#include "tasks/pretrain/examples/corpus_part.h"
#include "tasks/pretrain/examples/packed_example.h"
#include "tasks/pretrain/examples/sequence_packer.h"
#include "tasks/pretrain/examples/windows.h"

namespace etc {

// Options of reading a token store for ETC (doc/pretraining.md 8 to 10).
struct PackedSourceOptions {
  CorpusPartOptions corpus = {.min_sentences = 7};
  // Lengths of an input, and how windows share one.
  PackingOptions packing = {};
  // Longest sentence, as a share of `packing.max_long`. Longer ones are cut,
  // not within a word unless a piece would have less than half of that.
  double max_sentence_share = 0.25;
  // Masks; a `cpc_rate` of 0 for masked words alone.
  PackedExampleOptions example = {};
  // Decides which windows share a sequence; not for the development part, which
  // is the same in all runs.
  uint64_t seed = 1;
};

// Packed sequences of windows of documents: one record is one sequence, and
// gives one PretrainExample.
//
// Windows are packed into sequences once for a run, when the source is opened:
// windows are put in a random order that follows from the seed, and packed in
// it, from their lengths alone. Epochs differ in the order of the sequences,
// which the loader draws, and in the masks: they follow from the request's key
// and the window, not from its place in a sequence. So a record is the same
// whenever it is asked for, no state needs to be kept, and a source costs 16
// bytes a window and 8 a sequence, 40 a window while it is opened; tokens are
// read when an example is made.
class PackedSource : public ExampleSource {
 public:
  //   kFailedPrecondition  no document is left (SelectDocuments)
  static absl::StatusOr<std::unique_ptr<PackedSource>> Open(
      std::shared_ptr<const TokenStore> store,
      const PackedSourceOptions& options);

  int64_t size() const override {
    return static_cast<int64_t>(sequence_ends_.size());
  }
  //   kDataLoss  the store is damaged where the record is
  absl::StatusOr<Examples> Make(RecordRequest request) const override;
  bool depends_on_key() const override { return true; }

  const CorpusCounts& counts() const { return counts_; }
  // Numbers of windows[begin] to windows[end - 1] that record `sequence` holds.
  std::pair<int64_t, int64_t> WindowsOf(int64_t sequence) const;
  const std::vector<Window>& windows() const { return windows_; }

 private:
  PackedSource(std::shared_ptr<const TokenStore> store,
               const PackedSourceOptions& options, WindowOptions windows);

  // Puts the windows in the order of their sequences.
  void Pack(const std::vector<Window>& windows);

  const std::shared_ptr<const TokenStore> store_;
  const PackedSourceOptions options_;
  const WindowOptions window_options_;
  CorpusCounts counts_;
  std::vector<Window> windows_;
  std::vector<int64_t> sequence_ends_;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_PACKED_SOURCE_H_
