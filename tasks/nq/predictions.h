#ifndef ETC_TASKS_NQ_PREDICTIONS_H_
#define ETC_TASKS_NQ_PREDICTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tasks/nq/metric.h"
#include "tasks/nq/prediction.h"
#include "tasks/task.h"

namespace etc {

// Gathers the windows of each document, whichever batches they are in, and
// decodes it when all are there; so it holds the logits of the documents that
// are not complete, and of no others. A document that comes twice is replaced.
class NqPredictions : public TaskPredictions {
 public:
  explicit NqPredictions(const NqDecodingOptions& options)
      : options_(options),
        scorer_({.official_compatibility = options.official_compatibility}) {}

  void Add(const Batch& batch,
           const std::vector<torch::Tensor>& logits) override;
  // NqScorer::Scores of the documents that are complete.
  Metrics Score() const override { return scorer_.Scores(); }
  // They are in the order in which they were completed.
  std::string FileContents() const override;

 private:
  void AddDocument(const std::vector<NqWindow>& windows);

  const NqDecodingOptions options_;
  NqScorer scorer_;
  // By example id: windows seen so far.
  std::map<int64_t, std::vector<NqWindow>> incomplete_;
  std::vector<NqPrediction> predictions_;
  std::map<int64_t, size_t> index_;  // of predictions_, by example id
};

}  // namespace etc

#endif  // ETC_TASKS_NQ_PREDICTIONS_H_
