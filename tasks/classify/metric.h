#ifndef ETC_TASKS_CLASSIFY_METRIC_H_
#define ETC_TASKS_CLASSIFY_METRIC_H_

#include <string>

#include "tasks/classify/prediction.h"
#include "tasks/task/benchmark.h"

namespace etc {

// The scores of predictions of one type.
//
//   one      accuracy, macro_f1, micro_f1, mcc (doc/glue.md 7)
//   several  micro_f1, macro_f1, exact_match: the share of documents with all
//            labels right and no other; where all predictions have
//            probabilities also best_micro_f1, the largest micro_f1 that a
//            threshold gives, and best_micro_f1_thresh, that threshold: halfway
//            between two probabilities
//   number   pearson, spearman (doc/glue.md 7), mse, mae; an error beyond the
//            largest double is that
//
// F1 = 2 TP / (2 TP + FP + FN), 0 if that is 0 / 0: micro_f1 is that of the
// sums over labels, macro_f1 the mean over those that occur in gold or
// predictions.
//
// The diagnostics are precision[a], recall[a], f1[a] and support[a], the number
// of gold documents, of each of those labels; and of one label a document
// confusion[a,b], how many were a and predicted b, where there are any. A label
// with a comma, a bracket, a quotation mark, a backslash or a control character
// is written as a JSON string there: confusion["a,b",c].
Scores ScoreClassify(const ById<ClassifyAnswer>& gold,
                     const ById<ClassifyPrediction>& predictions,
                     ClassifyType type);

// Says that a model gives the same answer for all of several documents although
// the gold does not: "all 80 predictions are the same"; of several labels,
// where none reaches the threshold, "no label of any prediction reaches the
// threshold; best_micro_f1 0.4200 at 0.31", if they have probabilities. Else
// empty.
std::string ClassifyRemark(const ById<ClassifyAnswer>& gold,
                           const ById<ClassifyPrediction>& predictions,
                           ClassifyType type);

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_METRIC_H_
