#ifndef ETC_TASKS_ANALYSIS_DOCUMENT_ATTENTION_H_
#define ETC_TASKS_ANALYSIS_DOCUMENT_ATTENTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/inspection.h"
#include "attention/key_runs.h"

namespace etc {

// Attention of one example in a single numbering of its G global and L long
// tokens: global token g is g, long token i is G + i.

struct DocumentSize {
  int64_t globals = 0;       // G
  int64_t longs = 0;         // L
  int64_t local_radius = 0;  // r
  int64_t tokens() const { return globals + longs; }
};

// The keys that each token sees, as ascending runs: [G + L]. They are read from
// the runs that the kernels compute by, with the window over long keys applied.
// Throws c10::Error if the inputs have no runs or do not fit the sizes; of a
// batch, the first example counts.
std::vector<std::vector<KeyRun>> VisibleKeys(const AttentionInputs& attention,
                                             const DocumentSize& size);

// Probabilities are rounded to multiples of 1 / kProbabilityUnits.
inline constexpr int64_t kProbabilityUnits = 65535;

// The largest probabilities of each token in one head, with T = G + L and K
// keys of each at most. Units are 1 / kProbabilityUnits.
struct LargestProbabilities {
  // Descending by probability, then ascending by key; entries of probability 0
  // stand at the end and mean nothing.
  std::vector<uint32_t> keys;           // [T, K]
  std::vector<uint16_t> probabilities;  // [T, K]
  // Sum of the probabilities of all other keys: [T].
  std::vector<uint16_t> rest;
  // Sum of the probabilities of all global keys: [T].
  std::vector<uint16_t> to_globals;
};

// Takes them from the first example of `probabilities`, float32 on any device,
// of which `head` is an index into the chosen heads. Ties go to the lower key.
LargestProbabilities FindLargest(const FourBlocks& probabilities, int64_t head,
                                 const DocumentSize& size, int64_t most);

// Bytes of a key in Pack: 2 where all keys fit, else 4.
int64_t KeyBytes(const DocumentSize& size);

// The four vectors, one behind the other, little-endian, keys of KeyBytes.
std::string Pack(const LargestProbabilities& largest, const DocumentSize& size);

// Bytes of Pack for a head.
int64_t PackedBytes(const DocumentSize& size, int64_t most);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_DOCUMENT_ATTENTION_H_
