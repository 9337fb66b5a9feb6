#include "attention/attention_inputs.h"

#include <c10/util/Exception.h>

#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check_shape.h"

namespace etc {
namespace {

// [length, 2 radius + 1], true where key i + w - radius exists.
torch::Tensor InsideSequence(int64_t length, int64_t radius) {
  const torch::Tensor keys = torch::arange(length).unsqueeze(1) +
                             torch::arange(-radius, radius + 1).unsqueeze(0);
  return keys.ge(0).logical_and(keys.lt(length));
}

torch::Tensor MaskOrOnes(const torch::Tensor& mask, int64_t batch,
                         int64_t queries, int64_t keys) {
  if (!mask.defined()) {
    return torch::ones({1}, torch::kBool).expand({batch, queries, keys});
  }
  ETC_CHECK_SHAPE(mask, {batch, queries, keys});
  return mask.to(torch::kBool);
}

void CheckIds(const torch::Tensor& ids, int64_t batch, int64_t queries,
              int64_t keys) {
  if (ids.defined()) {
    ETC_CHECK_SHAPE(ids, {batch, queries, keys});
    TORCH_CHECK(ids.scalar_type() == torch::kInt64,
                "relative ids should be int64, but are ", ids.scalar_type());
  }
}

// `given` with every mask defined, and the l2l mask 0 beyond the sequence.
ExplicitInputs Complete(const ExplicitInputs& given, int64_t batch,
                        int64_t long_length, int64_t global_length,
                        int64_t radius) {
  const int64_t window = 2 * radius + 1;
  CheckIds(given.l2l_ids, batch, long_length, window);
  CheckIds(given.l2g_ids, batch, long_length, global_length);
  CheckIds(given.g2g_ids, batch, global_length, global_length);
  CheckIds(given.g2l_ids, batch, global_length, long_length);
  TORCH_CHECK(given.l2l_ids.defined() == given.l2g_ids.defined(),
              "l2l_ids and l2g_ids should both be defined, or neither");
  TORCH_CHECK(given.g2g_ids.defined() == given.g2l_ids.defined(),
              "g2g_ids and g2l_ids should both be defined, or neither");

  ExplicitInputs out = given;
  out.l2l_mask = MaskOrOnes(given.l2l_mask, batch, long_length, window);
  out.l2l_mask = out.l2l_mask.logical_and(
      InsideSequence(long_length, radius).to(out.l2l_mask.device()));
  out.l2g_mask = MaskOrOnes(given.l2g_mask, batch, long_length, global_length);
  out.g2g_mask =
      MaskOrOnes(given.g2g_mask, batch, global_length, global_length);
  out.g2l_mask = MaskOrOnes(given.g2l_mask, batch, global_length, long_length);
  return out;
}

void CheckFit(const std::vector<AttentionPattern>& patterns, int64_t batch,
              int64_t local_radius) {
  TORCH_CHECK(static_cast<int64_t>(patterns.size()) == batch, "a batch of ",
              batch, " should have as many patterns, but has ",
              patterns.size());
  TORCH_CHECK(patterns.empty() || patterns[0].local_radius == local_radius,
              "patterns should have the layer's local_radius, ", local_radius,
              ", but have ", patterns[0].local_radius);
}

ExplicitInputs MoveTo(ExplicitInputs inputs, const torch::Device& device) {
  for (torch::Tensor* tensor :
       {&inputs.l2l_mask, &inputs.l2l_ids, &inputs.l2g_mask, &inputs.l2g_ids,
        &inputs.g2g_mask, &inputs.g2g_ids, &inputs.g2l_mask, &inputs.g2l_ids}) {
    if (tensor->defined()) {
      *tensor = tensor->to(device);
    }
  }
  return inputs;
}

}  // namespace

// What was given, and its completed form for the sizes of the last call.
struct AttentionInputs::Cache {
  ExplicitInputs given;

  std::mutex mutex;
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, std::string>;
  std::optional<Key> key;
  ExplicitInputs tensors;

  using RunsKey = std::tuple<int64_t, int64_t, int64_t, int64_t>;
  std::optional<RunsKey> runs_key;
  std::shared_ptr<const std::vector<PatternRuns>> runs;
};

AttentionInputs::AttentionInputs() : cache_(std::make_shared<Cache>()) {}

AttentionInputs::AttentionInputs(std::vector<AttentionPattern> patterns)
    : patterns_(std::make_shared<const std::vector<AttentionPattern>>(
          std::move(patterns))),
      cache_(std::make_shared<Cache>()) {
  for (const AttentionPattern& pattern : *patterns_) {
    CheckPattern(pattern);
  }
}

AttentionInputs::AttentionInputs(ExplicitInputs tensors)
    : cache_(std::make_shared<Cache>()) {
  cache_->given = std::move(tensors);
}

bool AttentionInputs::has_tensors() const {
  const ExplicitInputs& given = cache_->given;
  return given.l2l_mask.defined() || given.l2l_ids.defined() ||
         given.l2g_mask.defined() || given.l2g_ids.defined() ||
         given.g2g_mask.defined() || given.g2g_ids.defined() ||
         given.g2l_mask.defined() || given.g2l_ids.defined();
}

std::shared_ptr<const std::vector<PatternRuns>> AttentionInputs::Runs(
    int64_t batch, int64_t long_length, int64_t global_length,
    int64_t local_radius) const {
  if (has_tensors()) {
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(cache_->mutex);
  const Cache::RunsKey key = {batch, long_length, global_length, local_radius};
  if (cache_->runs_key == key) {
    return cache_->runs;
  }
  std::vector<PatternRuns> runs;
  if (patterns_ != nullptr) {
    CheckFit(*patterns_, batch, local_radius);
    CheckPatterns(*patterns_, long_length, global_length);
    for (const AttentionPattern& pattern : *patterns_) {
      runs.push_back(MakePatternRuns(pattern, long_length, global_length));
    }
  } else {
    const AttentionPattern everything =
        UnrestrictedPattern(long_length, global_length, local_radius,
                            /*relative_pos_max_distance=*/0);
    runs.assign(batch, MakePatternRuns(everything, long_length, global_length));
  }
  cache_->runs =
      std::make_shared<const std::vector<PatternRuns>>(std::move(runs));
  cache_->runs_key = key;
  return cache_->runs;
}

ExplicitInputs AttentionInputs::Tensors(int64_t batch, int64_t long_length,
                                        int64_t global_length,
                                        int64_t local_radius,
                                        const torch::Device& device) const {
  const std::lock_guard<std::mutex> lock(cache_->mutex);
  const Cache::Key key = {batch, long_length, global_length, local_radius,
                          device.str()};
  if (cache_->key == key) {
    return cache_->tensors;
  }
  ExplicitInputs given = cache_->given;
  if (patterns_ != nullptr) {
    CheckFit(*patterns_, batch, local_radius);
    given = Materialize(*patterns_, long_length, global_length);
  }
  cache_->tensors = MoveTo(
      Complete(given, batch, long_length, global_length, local_radius), device);
  cache_->key = key;
  return cache_->tensors;
}

}  // namespace etc
