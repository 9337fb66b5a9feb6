#ifndef ETC_TASKS_OPENKP_METRIC_H_
#define ETC_TASKS_OPENKP_METRIC_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tasks/metrics.h"
#include "tasks/openkp/phrases.h"
#include "tasks/task/benchmark.h"

namespace etc {

// The k of P@k, R@k and F1@k.
inline constexpr std::array<int64_t, 3> kOpenkpDepths = {1, 3, 5};
using DepthScores = std::array<F1Scores, kOpenkpDepths.size()>;

// The score of one document (doc/openkp.md 8.1). With t the number of the first
// k predictions that are references,
//
//   P@k = t / k    R@k = t / |references|    F1@k = 2 P R / (P + R)
//
// The divisor is k even if there are fewer predictions. Both lists have no
// phrase twice. Without references all is 0.
DepthScores ScoreKeyPhrases(const std::vector<std::string>& predicted,
                            const std::vector<std::string>& references);

// The scores of a data set by both protocols (doc/openkp.md 8.2, 8.3), each a
// mean over documents: "p@1", "r@1", "f1@1", "p@3", ..., "etc_p@1", ...
//
//   evaluator  the official script: all references, predictions without white
//              space at the end and repetitions (EvaluatorForms); of several
//              records or predictions of one url, the last
//   etc        as ETC reports it: ETC's references; of several records the one
//              with most key phrases in its text; documents that ETC cannot
//              make an example of count as 0. Only if all references have text.
//
// A document without prediction counts as one without phrases; predictions for
// others are ignored. Empty without gold.
Metrics ScoreOpenkp(const ById<OpenkpReferences>& gold,
                    const ById<std::vector<std::string>>& predictions);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_METRIC_H_
