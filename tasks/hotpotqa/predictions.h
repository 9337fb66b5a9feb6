#ifndef ETC_TASKS_HOTPOTQA_PREDICTIONS_H_
#define ETC_TASKS_HOTPOTQA_PREDICTIONS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tasks/hotpotqa/metric.h"
#include "tasks/hotpotqa/prediction.h"
#include "tasks/task.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Decodes batches with one or several thresholds of supporting facts.
class HotpotqaPredictions : public TaskPredictions {
 public:
  // With several `thresholds` the one with the best joint F1, the first of
  // equals, decides; without answers `options.supporting_fact_threshold` does.
  HotpotqaPredictions(HotpotqaDecodingOptions options,
                      const std::vector<double>& thresholds,
                      std::shared_ptr<const Tokenizer> tokenizer);

  void Add(const Batch& batch,
           const std::vector<torch::Tensor>& logits) override;
  // HotpotqaScore::Means, and "threshold" if there was a choice.
  Metrics Score() const override;
  std::string FileContents() const override;

 private:
  struct Variant {
    HotpotqaDecodingOptions options;
    HotpotqaScore score;
    std::vector<std::pair<std::string, HotpotqaPrediction>> predictions;
  };

  // The one that decides.
  const Variant& Best() const;

  const std::shared_ptr<const Tokenizer> tokenizer_;
  // That of the options first.
  std::vector<Variant> variants_;
};

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_PREDICTIONS_H_
