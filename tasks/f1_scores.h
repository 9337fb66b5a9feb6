#ifndef ETC_TASKS_F1_SCORES_H_
#define ETC_TASKS_F1_SCORES_H_

namespace etc {

// Shares in [0, 1] of one record or of a data set, or sums of them.
struct F1Scores {
  double f1 = 0;
  double precision = 0;
  double recall = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_F1_SCORES_H_
