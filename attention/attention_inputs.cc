#include "attention/attention_inputs.h"

#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "attention/causal_runs.h"
#include "attention/mask_runs.h"
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

torch::Tensor MaskOrOnes(const torch::Tensor& mask, const char* name,
                         int64_t batch, int64_t queries, int64_t keys) {
  return mask.defined()
             ? ExpandMask(mask, name, batch, queries, keys)
             : torch::ones({1}, torch::kBool).expand({batch, queries, keys});
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
  out.l2l_mask =
      MaskOrOnes(given.l2l_mask, "l2l_mask", batch, long_length, window);
  out.l2l_mask = out.l2l_mask.logical_and(
      InsideSequence(long_length, radius).to(out.l2l_mask.device()));
  out.l2g_mask =
      MaskOrOnes(given.l2g_mask, "l2g_mask", batch, long_length, global_length);
  out.g2g_mask = MaskOrOnes(given.g2g_mask, "g2g_mask", batch, global_length,
                            global_length);
  out.g2l_mask =
      MaskOrOnes(given.g2l_mask, "g2l_mask", batch, global_length, long_length);
  return out;
}

// AttentionInputs::Causal for complete masks.
ExplicitInputs PastOnly(ExplicitInputs all) {
  const int64_t longs = all.l2l_mask.size(1);
  const int64_t radius = all.l2l_mask.size(2) / 2;
  const torch::TensorOptions options = all.g2l_mask.options();
  const torch::Tensor position =
      torch::arange(longs, options.dtype(torch::kInt64));
  const torch::Tensor horizon =  // [B, G]
      longs == 0
          ? torch::full({all.g2l_mask.size(0), all.g2l_mask.size(1)}, -1,
                        options.dtype(torch::kInt64))
          : torch::where(all.g2l_mask, position, torch::full_like(position, -1))
                .amax(-1);
  const torch::Tensor column =
      torch::arange(2 * radius + 1, options.dtype(torch::kInt64));
  all.l2l_mask = all.l2l_mask.logical_and(column.le(radius));
  all.l2g_mask =
      all.l2g_mask.logical_and(horizon.unsqueeze(1).le(position.unsqueeze(1)));
  all.g2g_mask =
      all.g2g_mask.logical_and(horizon.unsqueeze(1).le(horizon.unsqueeze(2)));
  return all;
}

void CheckFit(const std::vector<AttentionPattern>& patterns, int64_t batch,
              int64_t local_radius) {
  TORCH_CHECK(static_cast<int64_t>(patterns.size()) == batch, "a batch of ",
              batch, " should have as many patterns, but has ",
              patterns.size());
  for (const AttentionPattern& pattern : patterns) {
    // Without long tokens the radius means nothing.
    TORCH_CHECK(
        pattern.local_radius == local_radius || pattern.long_length() == 0,
        "patterns should have the layer's local_radius, ", local_radius,
        ", but have ", pattern.local_radius);
  }
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

// Copies of `given`, with masks of bool and ids of int64: what the caller
// changes later reaches no layer.
ExplicitInputs Checked(ExplicitInputs given) {
  // A later backward pass cannot use tensors of inference mode.
  const c10::InferenceMode normal_mode(false);
  const auto check = [&](torch::Tensor& mask, torch::Tensor& ids,
                         const std::string& name) {
    if (mask.defined()) {
      mask = AsBoolMask(mask, name + "_mask").clone();
    }
    if (ids.defined()) {
      CheckIntegers(ids, name + "_ids");
      ids = ids.to(torch::kInt64).clone();
    }
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

bool HasIds(const ExplicitInputs& inputs) {
  return inputs.l2l_ids.defined() || inputs.l2g_ids.defined() ||
         inputs.g2g_ids.defined() || inputs.g2l_ids.defined();
}

bool IsOnCpu(const ExplicitInputs& inputs) {
  bool is_on_cpu = true;
  ForEachTensor(inputs, [&](const torch::Tensor& tensor) {
    is_on_cpu = is_on_cpu && (!tensor.defined() || tensor.is_cpu());
  });
  return is_on_cpu;
}

// The ids of UnrestrictedPattern beside the masks of `given`, for each example,
// without a copy.
ExplicitInputs WithIdsOfEverything(ExplicitInputs given, int64_t batch,
                                   const AttentionPattern& everything) {
  const ExplicitInputs one = Materialize({everything}, everything.long_length(),
                                         everything.global_length());
  const auto expand = [&](const torch::Tensor& ids) {
    return ids.defined() ? ids.expand({batch, -1, -1}) : ids;
  };
  given.l2l_ids = expand(one.l2l_ids);
  given.l2g_ids = expand(one.l2g_ids);
  given.g2g_ids = expand(one.g2g_ids);
  given.g2l_ids = expand(one.g2l_ids);
  return given;
}

// The runs of masks without ids, with the relative ids of `everything`, for
// each example; empty if the kernels do not take them.
std::vector<PatternRuns> RunsOfTensors(const ExplicitInputs& given,
                                       int64_t batch,
                                       const AttentionPattern& everything) {
  if (HasIds(given) || !IsOnCpu(given)) {
    return {};
  }
  const int64_t longs = everything.long_length();
  const int64_t globals = everything.global_length();
  const int64_t radius = everything.local_radius;
  std::vector<PatternRuns> examples(
      static_cast<size_t>(batch), MakePatternRuns(everything, longs, globals));
  const auto restrict = [&](const torch::Tensor& mask, const char* name,
                            int64_t queries, int64_t keys,
                            const KeyWindow& window, auto&& table_of) {
    if (!mask.defined()) {
      return;
    }
    std::optional<std::vector<RunSetTable>> tables =
        RunsOfMask(ExpandMask(mask, name, batch, queries, keys), window);
    if (!tables.has_value()) {
      examples.clear();
    }
    for (size_t b = 0; b < examples.size(); ++b) {
      table_of(examples[b]) = std::move((*tables)[b]);
    }
  };
  restrict(given.l2l_mask, "l2l_mask", longs, 2 * radius + 1,
           {.before = radius, .after = radius},
           [](PatternRuns& runs) -> RunSetTable& {
             return runs.long_side.own.visible;
           });
  restrict(given.l2g_mask, "l2g_mask", longs, globals, kNoWindow,
           [](PatternRuns& runs) -> RunSetTable& {
             return runs.long_side.other.visible;
           });
  restrict(given.g2g_mask, "g2g_mask", globals, globals, kNoWindow,
           [](PatternRuns& runs) -> RunSetTable& {
             return runs.global_side.own.visible;
           });
  restrict(given.g2l_mask, "g2l_mask", globals, longs, kNoWindow,
           [](PatternRuns& runs) -> RunSetTable& {
             return runs.global_side.other.visible;
           });
  return examples;
}

// Documents of tokens [B, length], as int32 of their own on the CPU, -1 for
// padding. Undefined stays so.
torch::Tensor Documents(const torch::Tensor& ids, const std::string& name) {
  if (!ids.defined()) {
    return ids;
  }
  TORCH_CHECK(ids.dim() == 2, name, " should be [batch, length], but is ",
              ids.sizes());
  const torch::Tensor documents = DocumentIds(ids, name);
  return documents.masked_fill(documents.eq(0), -1);
}

// The documents of one row of a batch; of all tokens if none are given.
std::vector<int32_t> RowOfDocuments(const torch::Tensor& documents, int64_t row,
                                    int64_t length) {
  if (!documents.defined()) {
    return std::vector<int32_t>(static_cast<size_t>(length), 1);
  }
  const auto* begin = documents.data_ptr<int32_t>() + row * length;
  return {begin, begin + length};
}

// Checks the sizes and the radius of a layer's attention.
void CheckSizes(int64_t batch, int64_t long_length, int64_t global_length,
                int64_t local_radius) {
  TORCH_CHECK(batch >= 0 && long_length >= 0 && global_length >= 0,
              "batch and lengths should be at least 0, but are ", batch, ", ",
              long_length, " and ", global_length);
  CheckLocalRadius(local_radius);
}

void CheckDocuments(const torch::Tensor& documents, const char* stream,
                    int64_t batch, int64_t length) {
  TORCH_CHECK(!documents.defined() ||
                  documents.sizes() == at::IntArrayRef({batch, length}),
              "the mask or the ids of ", stream, " tokens should be ",
              at::IntArrayRef({batch, length}),
              ", [batch, length] of the layer's input, but are ",
              documents.sizes());
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
  // Documents of Padded and Packed, [B, L] and [B, G] int32; negative: padding.
  torch::Tensor long_documents, global_documents;
  bool has_documents() const {
    return long_documents.defined() || global_documents.defined();
  }
  // No value for patterns, and where it is left open.
  std::optional<int64_t> max_distance;
  bool is_causal = false;

  std::mutex mutex;
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, std::string>;
  std::optional<Key> key;
  ExplicitInputs tensors;

  using RunsKey = std::tuple<int64_t, int64_t, int64_t, int64_t>;
  std::optional<RunsKey> runs_key;
  std::shared_ptr<const BatchRuns> runs;

  std::shared_ptr<const AttentionInputs> causal;
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

AttentionInputs::AttentionInputs(ExplicitInputs tensors, int64_t max_distance)
    : cache_(std::make_shared<Cache>()) {
  CheckMaxDistance(max_distance, "max_distance");
  TORCH_CHECK(max_distance == 0 || !HasIds(tensors),
              "relative ids should be given as tensors or by max_distance, but "
              "are given as both");
  cache_->given = Checked(std::move(tensors));
  cache_->max_distance = max_distance;
}

AttentionInputs AttentionInputs::Everything(int64_t max_distance) {
  CheckMaxDistance(max_distance, "max_distance");
  AttentionInputs inputs;
  inputs.cache_->max_distance = max_distance;
  return inputs;
}

AttentionInputs AttentionInputs::Padded(const torch::Tensor& long_mask,
                                        const torch::Tensor& global_mask,
                                        std::optional<int64_t> max_distance) {
  const auto as_bool = [](const torch::Tensor& mask, const char* name) {
    return mask.defined() ? AsBoolMask(mask, name) : mask;
  };
  AttentionInputs inputs =
      max_distance.has_value() ? Everything(*max_distance) : AttentionInputs();
  inputs.cache_->long_documents =
      Documents(as_bool(long_mask, "long_mask"), "long_mask");
  inputs.cache_->global_documents =
      Documents(as_bool(global_mask, "global_mask"), "global_mask");
  return inputs;
}

AttentionInputs AttentionInputs::Packed(const torch::Tensor& long_ids,
                                        const torch::Tensor& global_ids,
                                        std::optional<int64_t> max_distance) {
  CheckIntegers(long_ids, "long_ids");
  CheckIntegers(global_ids, "global_ids");
  AttentionInputs inputs =
      max_distance.has_value() ? Everything(*max_distance) : AttentionInputs();
  inputs.cache_->long_documents = Documents(long_ids, "long_ids");
  inputs.cache_->global_documents = Documents(global_ids, "global_ids");
  return inputs;
}

AttentionInputs AttentionInputs::WithoutCaches() const {
  AttentionInputs copy;
  copy.patterns_ = patterns_;
  copy.cache_->given = cache_->given;
  copy.cache_->long_documents = cache_->long_documents;
  copy.cache_->global_documents = cache_->global_documents;
  copy.cache_->max_distance = cache_->max_distance;
  copy.cache_->is_causal = cache_->is_causal;
  return copy;
}

AttentionInputs AttentionInputs::Causal() const {
  if (cache_->is_causal) {
    return *this;
  }
  const std::lock_guard<std::mutex> lock(cache_->mutex);
  if (cache_->causal == nullptr) {
    AttentionInputs causal = WithoutCaches();
    causal.cache_->is_causal = true;
    cache_->causal = std::make_shared<const AttentionInputs>(std::move(causal));
  }
  return *cache_->causal;
}

AttentionInputs AttentionInputs::WithDistance(int64_t max_distance) const {
  CheckMaxDistance(max_distance, "max_distance");
  if (patterns_ != nullptr || cache_->max_distance.has_value()) {
    return *this;
  }
  AttentionInputs copy = WithoutCaches();
  copy.cache_->max_distance = max_distance;
  return copy;
}

std::optional<int64_t> AttentionInputs::max_distance() const {
  if (patterns_ == nullptr) {
    return cache_->max_distance;
  }
  return patterns_->empty()
             ? std::nullopt
             : std::optional(patterns_->front().relative_pos_max_distance);
}

bool AttentionInputs::has_tensors() const {
  bool any = false;
  ForEachTensor(cache_->given, [&](const torch::Tensor& tensor) {
    any = any || tensor.defined();
  });
  return any;
}

std::vector<AttentionPattern> AttentionInputs::PatternsOf(
    int64_t batch, int64_t long_length, int64_t global_length,
    int64_t local_radius) const {
  if (patterns_ != nullptr) {
    CheckFit(*patterns_, batch, local_radius);
    std::vector<AttentionPattern> patterns = *patterns_;
    for (AttentionPattern& pattern : patterns) {
      pattern.local_radius = local_radius;  // see CheckFit
    }
    return patterns;
  }
  CheckDocuments(cache_->long_documents, "long", batch, long_length);
  CheckDocuments(cache_->global_documents, "global", batch, global_length);
  std::vector<AttentionPattern> patterns(
      static_cast<size_t>(batch),
      UnrestrictedPattern(long_length, global_length, local_radius,
                          cache_->max_distance.value_or(0)));
  for (int64_t b = 0; b < batch; ++b) {
    AttentionPattern& pattern = patterns[static_cast<size_t>(b)];
    pattern.long_segment = pattern.long_example =
        RowOfDocuments(cache_->long_documents, b, long_length);
    pattern.global_example =
        RowOfDocuments(cache_->global_documents, b, global_length);
  }
  return patterns;
}

std::shared_ptr<const AttentionInputs::BatchRuns> AttentionInputs::Runs(
    int64_t batch, int64_t long_length, int64_t global_length,
    int64_t local_radius) const {
  const std::lock_guard<std::mutex> lock(cache_->mutex);
  const Cache::RunsKey key = {batch, long_length, global_length, local_radius};
  if (cache_->runs_key == key) {
    return cache_->runs;
  }
  std::vector<PatternRuns> examples;
  if (has_tensors()) {
    examples = RunsOfTensors(
        cache_->given, batch,
        UnrestrictedPattern(long_length, global_length, local_radius,
                            cache_->max_distance.value_or(0)));
  } else if (patterns_ != nullptr || cache_->has_documents()) {
    const std::vector<AttentionPattern> patterns =
        PatternsOf(batch, long_length, global_length, local_radius);
    CheckPatterns(patterns, long_length, global_length);
    for (const AttentionPattern& pattern : patterns) {
      examples.push_back(MakePatternRuns(pattern, long_length, global_length));
    }
  } else {
    examples.assign(
        static_cast<size_t>(batch),
        MakePatternRuns(
            UnrestrictedPattern(long_length, global_length, local_radius,
                                cache_->max_distance.value_or(0)),
            long_length, global_length));
  }
  std::shared_ptr<const BatchRuns> made;
  if (!has_tensors() || static_cast<int64_t>(examples.size()) == batch) {
    BatchRuns runs;
    for (PatternRuns& example : examples) {
      if (cache_->is_causal) {
        RestrictToPast(&example);
      }
      runs.Add(std::move(example));
    }
    made = std::make_shared<const BatchRuns>(std::move(runs));
  }
  // Together, and only now: an exception above leaves those of other sizes.
  cache_->runs = std::move(made);
  cache_->runs_key = key;
  return cache_->runs;
}

SoftmaxPattern AttentionInputs::Softmax(QuerySide side, int64_t batch,
                                        int64_t long_length,
                                        int64_t global_length,
                                        int64_t local_radius) const {
  CheckSizes(batch, long_length, global_length, local_radius);
  const bool is_long = side == QuerySide::kLong;
  SoftmaxPattern pattern;
  pattern.batch = batch;
  pattern.queries = pattern.own_keys = is_long ? long_length : global_length;
  pattern.other_keys = is_long ? global_length : long_length;
  if (is_long) {
    pattern.window = {.before = local_radius,
                      .after = cache_->is_causal ? 0 : local_radius};
  }
  const std::shared_ptr<const BatchRuns> runs =
      Runs(batch, long_length, global_length, local_radius);
  if (runs != nullptr) {
    // Shares the ownership of both sides.
    pattern.runs = {runs, is_long ? &runs->long_side : &runs->global_side};
  }
  const int64_t columns = pattern.own_columns();
  pattern.masks = [=, inputs = *this](const torch::Device& device) {
    const ExplicitInputs all =
        inputs.Tensors(batch, long_length, global_length, local_radius, device);
    if (!is_long) {
      return SoftmaxMasks{all.g2g_mask, all.g2g_ids, all.g2l_mask, all.g2l_ids};
    }
    const auto in_window = [&](const torch::Tensor& of_radius) {
      return of_radius.defined() ? of_radius.narrow(-1, 0, columns) : of_radius;
    };
    return SoftmaxMasks{in_window(all.l2l_mask), in_window(all.l2l_ids),
                        all.l2g_mask, all.l2g_ids};
  };
  pattern.mask_source = cache_;
  return pattern;
}

ExplicitInputs AttentionInputs::Tensors(int64_t batch, int64_t long_length,
                                        int64_t global_length,
                                        int64_t local_radius,
                                        const torch::Device& device) const {
  CheckSizes(batch, long_length, global_length, local_radius);
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
  const int64_t distance = cache_->max_distance.value_or(0);
  if (patterns_ != nullptr || cache_->has_documents()) {
    const std::vector<AttentionPattern> patterns =
        PatternsOf(batch, long_length, global_length, local_radius);
    if (batch > 0) {
      given = Materialize(patterns, long_length, global_length);
    }
  } else if (distance > 0) {
    given = WithIdsOfEverything(given, batch,
                                UnrestrictedPattern(long_length, global_length,
                                                    local_radius, distance));
  }
  ExplicitInputs all = MoveTo(
      Complete(given, batch, long_length, global_length, local_radius), device);
  cache_->tensors =
      cache_->is_causal ? PastOnly(std::move(all)) : std::move(all);
  cache_->key = key;
  return cache_->tensors;
}

}  // namespace etc
