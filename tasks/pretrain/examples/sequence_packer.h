#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_SEQUENCE_PACKER_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_SEQUENCE_PACKER_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace etc {

struct PackingOptions {
  // Tokens of a sequence at most; both at least 1.
  int64_t max_long = 4096;
  int64_t max_global = 230;
  // A sequence is full with this share of either maximum (rounded up).
  double min_fraction = 0.95;
  // Sequences that are open at a time.
  int64_t max_cache = 32;
};

// Examples that share a sequence, in the order in which they lie in it.
struct PackedSequence {
  std::vector<int64_t> members;
  int64_t num_long = 0;
  int64_t num_global = 0;
};

// Puts short examples together into sequences, in the order in which they come
// and from their lengths alone, as in the data library of ReadTwice
// (doc/pretraining.md 8, "Packing"): each goes into the fullest open sequence
// with room for it, or opens another.
class SequencePacker {
 public:
  explicit SequencePacker(const PackingOptions& options);

  // Adds an example. Returns the sequence that it filled, or that was closed
  // because too many were open, if any. Throws c10::Error if the example is
  // longer than a sequence, which leaves the packer as it was.
  std::optional<PackedSequence> Add(int64_t member, int64_t num_long,
                                    int64_t num_global);

  // Returns the sequences still open, the fullest first; the packer is empty
  // then.
  std::vector<PackedSequence> Flush();

 private:
  bool IsFull(const PackedSequence& sequence) const;
  // Opens a sequence; the oldest of those with equally many long tokens stays
  // first.
  void Open(PackedSequence sequence);

  const PackingOptions options_;
  const int64_t full_long_;
  const int64_t full_global_;
  // Open sequences by long tokens, descending, then by age.
  std::vector<PackedSequence> open_;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_SEQUENCE_PACKER_H_
