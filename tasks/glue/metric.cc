#include "tasks/glue/metric.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tasks/task/scoring.h"

namespace etc {
namespace {

int64_t CountEqual(GlueLabels gold, GlueLabels predicted) {
  int64_t equal = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    equal += gold[i] == predicted[i] ? 1 : 0;
  }
  return equal;
}

}  // namespace

double LabelAccuracy(GlueLabels gold, GlueLabels predicted) {
  return Share(static_cast<double>(CountEqual(gold, predicted)),
               static_cast<int64_t>(gold.size()));
}

double LabelF1(GlueLabels gold, GlueLabels predicted,
               const std::string& positive) {
  int64_t right = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    right += gold[i] == positive && predicted[i] == positive ? 1 : 0;
  }
  return Share(2 * static_cast<double>(right),
               std::count(gold.begin(), gold.end(), positive) +
                   std::count(predicted.begin(), predicted.end(), positive));
}

}  // namespace etc
