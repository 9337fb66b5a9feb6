#ifndef ETC_TASKS_LOSS_TOTALS_H_
#define ETC_TASKS_LOSS_TOTALS_H_

#include <cstddef>
#include <vector>

namespace etc {

// Numbers by which the loss of an update is divided, added up over all of its
// examples, whatever micro-batch they are in: how many there are, how many of
// their tokens are masked. Which they are, and in which order, the model says;
// they are whole numbers, so that their sums do not depend on the order of
// adding.
using LossTotals = std::vector<double>;

// Adds `part` to `totals`, which are empty or as many.
inline void AddTotals(const LossTotals& part, LossTotals* totals) {
  totals->resize(part.size(), 0);
  for (size_t i = 0; i < part.size(); ++i) {
    (*totals)[i] += part[i];
  }
}

}  // namespace etc

#endif  // ETC_TASKS_LOSS_TOTALS_H_
