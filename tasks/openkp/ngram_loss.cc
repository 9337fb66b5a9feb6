#include "tasks/openkp/ngram_loss.h"

#include <algorithm>
#include <limits>

#include "base/check_shape.h"

namespace etc {

torch::Tensor NgramTargets(const torch::Tensor& counts,
                           const torch::Tensor& classes, double mass) {
  constexpr double kMinimum = 1e-6;
  ETC_CHECK_SHAPE(classes, counts.sizes().vec());
  const std::vector<int64_t> places = {1, 2};
  const torch::Tensor sum = counts.sum(places, /*keepdim=*/true);
  const torch::Tensor num_classes = classes.sum(places, /*keepdim=*/true);
  const torch::Tensor smoothed =
      counts / (sum + kMinimum) +
      classes * std::max(mass, kMinimum) / num_classes;
  return smoothed / smoothed.sum(places, /*keepdim=*/true);
}

torch::Tensor NgramLosses(const torch::Tensor& logits,
                          const torch::Tensor& targets,
                          const torch::Tensor& classes) {
  ETC_CHECK_SHAPE(targets, logits.sizes().vec());
  ETC_CHECK_SHAPE(classes, logits.sizes().vec());
  const torch::Tensor others = classes.logical_not().flatten(1);
  const torch::Tensor log_probabilities =  // [B, K W]
      logits.flatten(1)
          .masked_fill(others, -std::numeric_limits<double>::infinity())
          .log_softmax(-1)
          .masked_fill(others, 0);
  return -(targets.flatten(1) * log_probabilities).sum(-1);
}

}  // namespace etc
