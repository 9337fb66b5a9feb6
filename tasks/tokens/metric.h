#ifndef ETC_TASKS_TOKENS_METRIC_H_
#define ETC_TASKS_TOKENS_METRIC_H_

#include <vector>

#include "tasks/task/scoring.h"
#include "tasks/tokens/record.h"

namespace etc {

// The scores of seqeval, which are those of CoNLL's conlleval; tags are read to
// spans before, which is where seqeval's modes differ (TagReading). A
// predicted span is right if the gold has the same one with the same label,
//
//   precision = right / predicted    recall = right / gold
//   f1 = 2 right / (gold + predicted)
//
// over all documents; 0 where that is 0 / 0. The diagnostics are the same of
// each label, and support[a], the number of its gold spans.
Scores ScoreTokens(const ById<std::vector<TokensSpan>>& gold,
                   const ById<TokensPrediction>& predictions);

}  // namespace etc

#endif  // ETC_TASKS_TOKENS_METRIC_H_
