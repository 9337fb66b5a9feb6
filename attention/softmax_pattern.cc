#include "attention/softmax_pattern.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "attention/pattern.h"
#include "base/to_device.h"

namespace etc {
namespace {

void CheckOptions(const KeyPatternOptions& options) {
  TORCH_CHECK(options.queries >= 0 && options.keys >= 0,
              "queries and keys should be at least 0, but are ",
              options.queries, " and ", options.keys);
  TORCH_CHECK(options.max_distance >= 0,
              "max_distance should be at least 0, but is ",
              options.max_distance);
  for (const SequenceLengths& length : options.lengths) {
    TORCH_CHECK(length.queries >= 0 && length.queries <= options.queries &&
                    length.keys >= 0 && length.keys <= options.keys,
                "an example of ", length.queries, " queries and ", length.keys,
                " keys does not fit ", options.queries, " and ", options.keys);
  }
}

void CheckRuns(const RunSetTable& table, const KeyPatternOptions& options) {
  const auto runs = static_cast<int32_t>(table.runs.size());
  TORCH_CHECK(static_cast<int64_t>(table.first.size()) == options.queries &&
                  static_cast<int64_t>(table.last.size()) == options.queries,
              "there should be a set of keys for each of ", options.queries,
              " queries, but there are ", table.first.size(), " and ",
              table.last.size());
  for (size_t i = 0; i < table.first.size(); ++i) {
    const int32_t first = table.first[i];
    const int32_t last = table.last[i];
    TORCH_CHECK(first >= 0 && first <= last && last <= runs,
                "the runs of query ", i, " should lie in [0, ", runs,
                "], but are [", first, ", ", last, ")");
    int32_t least = 0;
    for (int32_t r = first; r < last; ++r) {
      const KeyRun run = table.runs[static_cast<size_t>(r)];
      TORCH_CHECK(
          run.begin >= least && run.begin < run.end && run.end <= options.keys,
          "the runs of query ", i,
          " should ascend without touching, below key ", options.keys,
          ", but one is [", run.begin, ", ", run.end, ")");
      least = run.end + 1;
    }
  }
}

// [T, S] bool
torch::Tensor MaskOf(const RunSetTable& visible, int64_t keys) {
  const auto queries = static_cast<int64_t>(visible.first.size());
  torch::Tensor mask = torch::zeros({queries, keys}, torch::kBool);
  auto rows = mask.accessor<bool, 2>();
  for (int64_t i = 0; i < queries; ++i) {
    const auto query = static_cast<size_t>(i);
    for (int32_t r = visible.first[query]; r < visible.last[query]; ++r) {
      const KeyRun run = visible.runs[static_cast<size_t>(r)];
      for (int64_t j = run.begin; j < run.end; ++j) {
        rows[i][j] = true;
      }
    }
  }
  return mask;
}

// [T, S] int64: RelativeId(j - i, m).
torch::Tensor DistanceIds(const KeyPatternOptions& options) {
  torch::Tensor ids =
      torch::empty({options.queries, options.keys}, torch::kInt64);
  auto rows = ids.accessor<int64_t, 2>();
  for (int64_t i = 0; i < options.queries; ++i) {
    for (int64_t j = 0; j < options.keys; ++j) {
      rows[i][j] = RelativeId(j - i, options.max_distance);
    }
  }
  return ids;
}

SoftmaxMasks MasksOf(const std::vector<SoftmaxRuns>& runs,
                     const KeyPatternOptions& options) {
  const auto batch = static_cast<int64_t>(runs.size());
  SoftmaxMasks masks;
  masks.own_mask = torch::zeros({batch, options.queries, 0}, torch::kBool);
  masks.other_mask =
      torch::zeros({batch, options.queries, options.keys}, torch::kBool);
  for (int64_t b = 0; b < batch; ++b) {
    masks.other_mask[b].copy_(
        MaskOf(runs[static_cast<size_t>(b)].other.visible, options.keys));
  }
  if (options.max_distance > 0) {
    masks.own_ids = torch::zeros({batch, options.queries, 0}, torch::kInt64);
    masks.other_ids =
        DistanceIds(options).expand({batch, options.queries, options.keys});
  }
  return masks;
}

// The masks of a pattern, made when they are first asked for.
struct LazyMasks {
  std::once_flag once;
  SoftmaxMasks masks;
};

// `asked` has T flags.
void ClearOthers(const torch::TensorAccessor<bool, 1>& asked,
                 RunSetTable* visible) {
  for (size_t i = 0; i < visible->first.size(); ++i) {
    if (!asked[static_cast<int64_t>(i)]) {
      visible->last[i] = visible->first[i];
    }
  }
}

}  // namespace

SoftmaxPattern PatternFromRuns(std::vector<RunSetTable> visible,
                               const KeyPatternOptions& options) {
  CheckOptions(options);
  std::vector<SoftmaxRuns> examples;
  for (RunSetTable& table : visible) {
    CheckRuns(table, options);
    SoftmaxRuns runs;
    runs.own.visible = EmptySets(options.queries);
    runs.other.visible = std::move(table);
    runs.other.rule = options.max_distance > 0 ? RelativeRule::kDistance
                                               : RelativeRule::kNone;
    runs.max_distance = options.max_distance;
    examples.push_back(std::move(runs));
  }
  SoftmaxPattern pattern;
  pattern.batch = static_cast<int64_t>(examples.size());
  pattern.queries = options.queries;
  pattern.other_keys = options.keys;
  pattern.runs =
      std::make_shared<const std::vector<SoftmaxRuns>>(std::move(examples));
  pattern.masks = [runs = pattern.runs, options,
                   lazy = std::make_shared<LazyMasks>()](
                      const torch::Device& device) {
    std::call_once(lazy->once, [&] { lazy->masks = MasksOf(*runs, options); });
    const SoftmaxMasks& masks = lazy->masks;
    return SoftmaxMasks{.own_mask = ToDevice(masks.own_mask, device),
                        .own_ids = ToDevice(masks.own_ids, device),
                        .other_mask = ToDevice(masks.other_mask, device),
                        .other_ids = ToDevice(masks.other_ids, device)};
  };
  return pattern;
}

SoftmaxPattern AllKeysPattern(const KeyPatternOptions& options) {
  CheckOptions(options);
  std::vector<RunSetTable> visible;
  for (const SequenceLengths& length : options.lengths) {
    RunSetTable table = EmptySets(options.queries);
    if (length.keys > 0) {
      table.runs = {{0, static_cast<int32_t>(length.keys)}};
      std::fill_n(table.last.begin(), length.queries, 1);
    }
    visible.push_back(std::move(table));
  }
  return PatternFromRuns(std::move(visible), options);
}

SoftmaxPattern CausalPattern(const KeyPatternOptions& options) {
  CheckOptions(options);
  std::vector<RunSetTable> visible;
  for (const SequenceLengths& length : options.lengths) {
    RunSetTable table = EmptySets(options.queries);
    for (int64_t n = 1; n <= std::min(length.queries, length.keys); ++n) {
      table.runs.push_back({0, static_cast<int32_t>(n)});
    }
    // Queries behind the last key see all keys, as the last of them does.
    const auto runs = static_cast<int64_t>(table.runs.size());
    for (int64_t i = 0; runs > 0 && i < length.queries; ++i) {
      const auto query = static_cast<size_t>(i);
      table.first[query] = static_cast<int32_t>(std::min(i, runs - 1));
      table.last[query] = table.first[query] + 1;
    }
    visible.push_back(std::move(table));
  }
  return PatternFromRuns(std::move(visible), options);
}

SoftmaxPattern OnlyQueries(const SoftmaxPattern& pattern,
                           const torch::Tensor& queries) {
  const int64_t count = pattern.batch * pattern.queries;
  TORCH_CHECK(queries.dim() == 1 && queries.scalar_type() == torch::kInt64 &&
                  queries.is_cpu(),
              "queries should be [R] int64 on the CPU, but are ",
              queries.sizes(), " ", queries.scalar_type(), " on ",
              queries.device());
  TORCH_CHECK(queries.numel() == 0 || (queries.min().item<int64_t>() >= 0 &&
                                       queries.max().item<int64_t>() < count),
              "queries should be in [0, ", count, ")");
  const torch::Tensor asked = torch::zeros({count}, torch::kBool)
                                  .index_fill_(0, queries, true)
                                  .reshape({pattern.batch, pattern.queries});
  SoftmaxPattern only = pattern;
  if (pattern.runs != nullptr) {
    const auto flags = asked.accessor<bool, 2>();
    std::vector<SoftmaxRuns> examples = *pattern.runs;
    for (size_t b = 0; b < examples.size(); ++b) {
      for (BlockRuns* block : {&examples[b].own, &examples[b].other}) {
        ClearOthers(flags[static_cast<int64_t>(b)], &block->visible);
      }
    }
    only.runs =
        std::make_shared<const std::vector<SoftmaxRuns>>(std::move(examples));
  }
  only.masks = [masks = pattern.masks, asked](const torch::Device& device) {
    const torch::Tensor rows = ToDevice(asked, device).unsqueeze(-1);
    SoftmaxMasks some = masks(device);
    some.own_mask = some.own_mask.logical_and(rows);
    some.other_mask = some.other_mask.logical_and(rows);
    return some;
  };
  return only;
}

}  // namespace etc
