#include "attention/attention_inputs.h"

#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "attention/pattern_runs.h"
#include "base/check_shape.h"
#include "base/check_tensor.h"
#include "base/to_device.h"

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
  return mask;
}

void CheckIds(const torch::Tensor& ids, int64_t batch, int64_t queries,
              int64_t keys) {
  if (ids.defined()) {
    ETC_CHECK_SHAPE(ids, {batch, queries, keys});
    // Elsewhere the check would stop the stream; the device has its own.
    if (ids.is_cpu() && ids.numel() > 0) {
      const auto lowest = ids.min().item<int64_t>();
      TORCH_CHECK(lowest >= 0, "relative ids should be at least 0, but one is ",
                  lowest);
    }
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
  // All patterns have the same radius (CheckPatterns); without long tokens it
  // means nothing.
  TORCH_CHECK(patterns.empty() || patterns[0].local_radius == local_radius ||
                  std::all_of(patterns.begin(), patterns.end(),
                              [](const AttentionPattern& pattern) {
                                return pattern.long_length() == 0;
                              }),
              "patterns should have the layer's local_radius, ", local_radius,
              ", but have ", patterns[0].local_radius);
}

// Calls function(tensor) for each of the masks and ids.
template <typename Inputs, typename Function>
void ForEachTensor(Inputs& inputs, const Function& function) {
  for (auto* tensor :
       {&inputs.l2l_mask, &inputs.l2l_ids, &inputs.l2g_mask, &inputs.l2g_ids,
        &inputs.g2g_mask, &inputs.g2g_ids, &inputs.g2l_mask, &inputs.g2l_ids}) {
    function(*tensor);
  }
}

// `given` with masks of bool.
ExplicitInputs Checked(ExplicitInputs given) {
  const auto check = [&](torch::Tensor& mask, const torch::Tensor& ids,
                         const std::string& name) {
    if (mask.defined()) {
      mask = AsBoolMask(mask, name + "_mask");
    }
    TORCH_CHECK(!ids.defined() || ids.scalar_type() == torch::kInt64, name,
                "_ids should be int64, but are ", ids.scalar_type());
  };
  check(given.l2l_mask, given.l2l_ids, "l2l");
  check(given.l2g_mask, given.l2g_ids, "l2g");
  check(given.g2g_mask, given.g2g_ids, "g2g");
  check(given.g2l_mask, given.g2l_ids, "g2l");
  return given;
}

ExplicitInputs MoveTo(ExplicitInputs inputs, const torch::Device& device) {
  ForEachTensor(inputs, [&](torch::Tensor& tensor) {
    tensor = ToDevice(tensor, device);
  });
  return inputs;
}

// Expands the tensors of one example, [1, _, _], to [batch, _, _] without a
// copy.
ExplicitInputs OfEachExample(ExplicitInputs inputs, int64_t batch) {
  ForEachTensor(inputs, [&](torch::Tensor& tensor) {
    if (tensor.defined()) {
      tensor = tensor.expand({batch, -1, -1});
    }
  });
  return inputs;
}

}  // namespace

// One for each example.
struct AttentionInputs::BatchRuns {
  std::vector<SoftmaxRuns> long_side, global_side;

  void Add(PatternRuns runs) {
    long_side.push_back(std::move(runs.long_side));
    global_side.push_back(std::move(runs.global_side));
  }
};

// The inputs as given, and their completed form for the sizes of the last call.
struct AttentionInputs::Cache {
  ExplicitInputs given;
  // The argument of Everything(), or 0 for explicit tensors; no value for
  // patterns and for AttentionInputs().
  std::optional<int64_t> max_distance;

  std::mutex mutex;
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, std::string>;
  std::optional<Key> key;
  ExplicitInputs tensors;

  using RunsKey = std::tuple<int64_t, int64_t, int64_t, int64_t>;
  std::optional<RunsKey> runs_key;
  std::shared_ptr<const BatchRuns> runs;
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
  cache_->given = Checked(std::move(tensors));
  cache_->max_distance = 0;
}

AttentionInputs AttentionInputs::Everything(int64_t max_distance) {
  TORCH_CHECK(max_distance >= 0, "max_distance should be at least 0, but is ",
              max_distance);
  AttentionInputs inputs;
  inputs.cache_->max_distance = max_distance;
  return inputs;
}

bool AttentionInputs::is_default() const {
  return patterns_ == nullptr && !has_tensors() &&
         !cache_->max_distance.has_value();
}

bool AttentionInputs::has_tensors() const {
  bool any = false;
  ForEachTensor(cache_->given, [&](const torch::Tensor& tensor) {
    any = any || tensor.defined();
  });
  return any;
}

std::shared_ptr<const AttentionInputs::BatchRuns> AttentionInputs::Runs(
    int64_t batch, int64_t long_length, int64_t global_length,
    int64_t local_radius) const {
  const std::lock_guard<std::mutex> lock(cache_->mutex);
  const Cache::RunsKey key = {batch, long_length, global_length, local_radius};
  if (cache_->runs_key == key) {
    return cache_->runs;
  }
  BatchRuns runs;
  if (patterns_ != nullptr) {
    CheckFit(*patterns_, batch, local_radius);
    CheckPatterns(*patterns_, long_length, global_length);
    for (const AttentionPattern& pattern : *patterns_) {
      runs.Add(MakePatternRuns(pattern, long_length, global_length));
    }
  } else {
    const PatternRuns everything = MakePatternRuns(
        UnrestrictedPattern(long_length, global_length, local_radius,
                            cache_->max_distance.value_or(0)),
        long_length, global_length);
    for (int64_t b = 0; b < batch; ++b) {
      runs.Add(everything);
    }
  }
  cache_->runs = std::make_shared<const BatchRuns>(std::move(runs));
  cache_->runs_key = key;
  return cache_->runs;
}

SoftmaxPattern AttentionInputs::Softmax(QuerySide side, int64_t batch,
                                        int64_t long_length,
                                        int64_t global_length,
                                        int64_t local_radius) const {
  TORCH_CHECK(local_radius >= 1, "local_radius should be at least 1, but is ",
              local_radius);
  const bool is_long = side == QuerySide::kLong;
  SoftmaxPattern pattern;
  pattern.batch = batch;
  pattern.queries = pattern.own_keys = is_long ? long_length : global_length;
  pattern.other_keys = is_long ? global_length : long_length;
  pattern.radius = is_long ? local_radius : -1;
  if (!has_tensors()) {
    const std::shared_ptr<const BatchRuns> runs =
        Runs(batch, long_length, global_length, local_radius);
    // Shares the ownership of both sides.
    pattern.runs = {runs, is_long ? &runs->long_side : &runs->global_side};
  }
  pattern.masks = [=, inputs = *this](const torch::Device& device) {
    const ExplicitInputs all =
        inputs.Tensors(batch, long_length, global_length, local_radius, device);
    return is_long ? SoftmaxMasks{all.l2l_mask, all.l2l_ids, all.l2g_mask,
                                  all.l2g_ids}
                   : SoftmaxMasks{all.g2g_mask, all.g2g_ids, all.g2l_mask,
                                  all.g2l_ids};
  };
  return pattern;
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
  // A backward pass may need the cached tensors later, and cannot use inference
  // tensors.
  const c10::InferenceMode normal_mode(false);
  ExplicitInputs given = cache_->given;
  if (patterns_ != nullptr) {
    CheckFit(*patterns_, batch, local_radius);
    std::vector<AttentionPattern> patterns = *patterns_;
    for (AttentionPattern& pattern : patterns) {
      pattern.local_radius = local_radius;  // see CheckFit
    }
    given = Materialize(patterns, long_length, global_length);
  } else if (cache_->max_distance.value_or(0) > 0) {
    given = OfEachExample(
        Materialize({UnrestrictedPattern(long_length, global_length,
                                         local_radius, *cache_->max_distance)},
                    long_length, global_length),
        batch);
  }
  cache_->tensors = MoveTo(
      Complete(given, batch, long_length, global_length, local_radius), device);
  cache_->key = key;
  return cache_->tensors;
}

}  // namespace etc
