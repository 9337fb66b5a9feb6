#ifndef ETC_ATTENTION_DROPOUT_FACTORS_H_
#define ETC_ATTENTION_DROPOUT_FACTORS_H_

#include <torch/types.h>

#include <cstdint>

#include "attention/attention_operands.h"
#include "attention/softmax_pattern.h"

namespace etc {

struct DotProductAttentionInput;
struct SparseAttentionInput;

// Factors of the attention weights of heads: 0 if dropped, else 1 / (1 -
// probability); [B, heads, T, ...] as ScorePair, in the dtype and on the device
// of `options`. base/random.h defines which weights are dropped, so that the
// fused kernels and tensor operations on any device drop the same ones for the
// same seed. `probability` is in [0, 1).
ScorePair DropoutFactors(const SoftmaxPattern& pattern, const HeadRange& heads,
                         uint64_t seed, double probability,
                         const torch::TensorOptions& options);

// Gives an input the dropout factors that fused backends use after drawing
// `seed` (DrawDropoutSeed, base/dropout_seeds.h), for the reference.
void MaterializeDropout(uint64_t seed, SparseAttentionInput* input);
void MaterializeDropout(uint64_t seed, DotProductAttentionInput* input);

}  // namespace etc

#endif  // ETC_ATTENTION_DROPOUT_FACTORS_H_
