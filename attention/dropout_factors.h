#ifndef ETC_ATTENTION_DROPOUT_FACTORS_H_
#define ETC_ATTENTION_DROPOUT_FACTORS_H_

#include "attention/attention_operands.h"
#include "attention/attention_problem.h"

namespace etc {

// Factors of the attention weights of some heads of a problem: 0 if dropped,
// else 1 / (1 - dropout); [B, heads, T, ...] as ScorePair, in ScoreType of the
// queries and on their device. Undefined without dropout: 1. base/random.h
// defines which weights are dropped, so that the fused kernels and tensor
// operations on any device drop the same ones for the same seed.
ScorePair DropoutFactors(const AttentionProblem& problem,
                         const HeadRange& heads);

}  // namespace etc

#endif  // ETC_ATTENTION_DROPOUT_FACTORS_H_
