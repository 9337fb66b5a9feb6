#include "attention/softmax_pattern.h"

#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "attention/mask_runs.h"
#include "attention/pattern.h"
#include "attention/pattern_runs.h"
#include "base/check_tensor.h"
#include "base/to_device.h"

namespace etc {
namespace {

void CheckOptions(const KeyPatternOptions& options) {
  TORCH_CHECK(options.queries >= 0 && options.keys >= 0,
              "queries and keys should be at least 0, but are ",
              options.queries, " and ", options.keys);
  CheckMaxDistance(options.max_distance, "max_distance");
  if (options.batch.has_value()) {
    TORCH_CHECK(*options.batch >= 0, "batch should be at least 0, but is ",
                *options.batch);
    TORCH_CHECK(
        options.lengths.empty() ||
            *options.batch == static_cast<int64_t>(options.lengths.size()),
        "there should be a length for each of ", *options.batch,
        " examples, but there are ", options.lengths.size());
  }
  for (const SequenceLengths& length : options.lengths) {
    TORCH_CHECK(length.queries >= 0 && length.queries <= options.queries &&
                    length.keys >= 0 && length.keys <= options.keys,
                "an example of ", length.queries, " queries and ", length.keys,
                " keys does not fit ", options.queries, " and ", options.keys);
  }
}

int64_t BatchOf(const KeyPatternOptions& options) {
  TORCH_CHECK(options.batch.has_value() || !options.lengths.empty(),
              "batch should be the number of examples, but is unset, and there "
              "are no lengths");
  return options.batch.value_or(static_cast<int64_t>(options.lengths.size()));
}

// The lengths of all examples.
std::vector<SequenceLengths> LengthsOf(const KeyPatternOptions& options) {
  return options.lengths.empty()
             ? std::vector<SequenceLengths>(
                   static_cast<size_t>(BatchOf(options)),
                   {.queries = options.queries, .keys = options.keys})
             : options.lengths;
}

void CheckRuns(const RunSetTable& table, const KeyPatternOptions& options) {
  const int32_t runs = RunCount(table);
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

// [T, S] bool, or with a window [T, columns].
torch::Tensor MaskOf(const RunSetTable& visible, int64_t keys,
                     const KeyWindow& window = kNoWindow) {
  const auto queries = static_cast<int64_t>(visible.first.size());
  const bool has_window = window.is_restricted();
  const int64_t columns = has_window ? window.columns() : keys;
  torch::Tensor mask = torch::zeros({queries, columns}, torch::kBool);
  auto rows = mask.accessor<bool, 2>();
  for (int64_t i = 0; i < queries; ++i) {
    const auto query = static_cast<size_t>(i);
    const int64_t first = has_window ? i - window.before : 0;  // of the columns
    for (int32_t r = visible.first[query]; r < visible.last[query]; ++r) {
      const KeyRun run = visible.runs[static_cast<size_t>(r)];
      const int64_t end = std::min<int64_t>(run.end, first + columns);
      for (int64_t j = std::max<int64_t>(run.begin, first); j < end; ++j) {
        rows[i][j - first] = true;
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

// [columns] int64: the same for the keys of a window, equal in all rows.
torch::Tensor DistanceIds(const KeyWindow& window, int64_t max_distance) {
  std::vector<int64_t> ids;
  for (int64_t delta = -window.before; delta <= window.after; ++delta) {
    ids.push_back(RelativeId(delta, max_distance));
  }
  return torch::tensor(ids, torch::kInt64);
}

// Keys of one block: with a window own ones, else others.
SoftmaxMasks MasksOf(const std::vector<SoftmaxRuns>& runs,
                     const KeyPatternOptions& options,
                     const KeyWindow& window) {
  const bool is_own = window.is_restricted();
  const auto batch = static_cast<int64_t>(runs.size());
  const int64_t queries = options.queries;
  const auto numbers = [&](int64_t columns, torch::ScalarType type) {
    return torch::zeros({batch, queries, columns}, type);
  };
  const int64_t own = is_own ? window.columns() : 0;
  const int64_t other = is_own ? 0 : options.keys;
  SoftmaxMasks masks;
  masks.own_mask = numbers(own, torch::kBool);
  masks.other_mask = numbers(other, torch::kBool);
  for (int64_t b = 0; b < batch; ++b) {
    const SoftmaxRuns& example = runs[static_cast<size_t>(b)];
    if (is_own) {
      masks.own_mask[b].copy_(
          MaskOf(example.own.visible, options.keys, window));
    } else {
      masks.other_mask[b].copy_(MaskOf(example.other.visible, options.keys));
    }
  }
  if (options.max_distance > 0) {
    const auto expand = [&](const torch::Tensor& ids, int64_t columns) {
      return ids.expand({batch, queries, columns});
    };
    masks.own_ids = is_own
                        ? expand(DistanceIds(window, options.max_distance), own)
                        : numbers(0, torch::kInt64);
    masks.other_ids = is_own ? numbers(0, torch::kInt64)
                             : expand(DistanceIds(options), other);
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

void CheckOneBlock(const SoftmaxPattern& pattern) {
  TORCH_CHECK(pattern.has_one_block(),
              "the pattern should have one block of keys, but has ",
              pattern.own_keys, " own keys beside ", pattern.other_keys,
              " others");
}

// The sets of keys of the only block.
RunSetTable& SetsOf(const SoftmaxPattern& pattern, SoftmaxRuns* runs) {
  return pattern.window.is_restricted() ? runs->own.visible
                                        : runs->other.visible;
}

// Numbers of keys, [B, S], for each pair: [B, 1, S], or with a window [B, T,
// columns], 0 beyond the keys.
torch::Tensor OfPairs(const SoftmaxPattern& pattern,
                      const torch::Tensor& of_keys) {
  const KeyWindow& window = pattern.window;
  if (!window.is_restricted()) {
    return of_keys.unsqueeze(1);
  }
  if (pattern.queries == 0) {
    return of_keys.new_zeros({pattern.batch, 0, window.columns()});
  }
  return torch::constant_pad_nd(of_keys, {window.before, window.after})
      .unfold(1, window.columns(), 1);
}

// DocumentIds of `ids`, which should be [B, length].
torch::Tensor DocumentsOf(const torch::Tensor& ids, const char* name,
                          int64_t batch, int64_t length) {
  CheckIntegers(ids, name);
  TORCH_CHECK(ids.sizes() == at::IntArrayRef({batch, length}), name,
              " should be [batch, length] = ", at::IntArrayRef({batch, length}),
              ", but is ", ids.sizes());
  return DocumentIds(ids, name);
}

// The runs of the keys of each document of one row.
using RunsOfDocuments = std::unordered_map<int32_t, std::vector<KeyRun>>;

RunsOfDocuments FindDocuments(const int32_t* ids, int64_t keys) {
  RunsOfDocuments runs;
  for (int64_t j = 0; j < keys; ++j) {
    if (ids[j] == 0) {
      continue;
    }
    std::vector<KeyRun>& of_document = runs[ids[j]];
    const auto key = static_cast<int32_t>(j);
    if (!of_document.empty() && of_document.back().end == key) {
      ++of_document.back().end;
    } else {
      of_document.push_back({key, key + 1});
    }
  }
  return runs;
}

// Appends the keys that are in both of two sets of runs.
void AppendCommon(const KeyRun* run, const KeyRun* end,
                  const std::vector<KeyRun>& others,
                  std::vector<KeyRun>* common) {
  const int32_t begin = run == end ? 0 : run->begin;
  auto other = std::upper_bound(
      others.begin(), others.end(), begin,
      [](int32_t key, const KeyRun& of) { return key < of.end; });
  while (run != end && other != others.end()) {
    const KeyRun both = {std::max(run->begin, other->begin),
                         std::min(run->end, other->end)};
    if (both.begin < both.end) {
      common->push_back(both);
    }
    if (run->end < other->end) {
      ++run;
    } else {
      ++other;
    }
  }
}

// Query i keeps the keys of documents[ids[i]] alone. Queries that shared a set
// and are of one document share their runs.
RunSetTable CommonRuns(const RunSetTable& visible, const int32_t* ids,
                       const RunsOfDocuments& documents) {
  RunSetTable common = EmptySets(static_cast<int64_t>(visible.first.size()));
  // The first query of each set and document.
  std::map<std::tuple<int32_t, int32_t, int32_t>, size_t> first_queries;
  for (size_t i = 0; i < visible.first.size(); ++i) {
    const auto [known, is_new] = first_queries.try_emplace(
        {visible.first[i], visible.last[i], ids[i]}, i);
    if (!is_new) {
      common.first[i] = common.first[known->second];
      common.last[i] = common.last[known->second];
      continue;
    }
    common.first[i] = RunCount(common);
    const auto document = documents.find(ids[i]);
    if (document != documents.end()) {
      AppendCommon(visible.runs.data() + visible.first[i],
                   visible.runs.data() + visible.last[i], document->second,
                   &common.runs);
    }
    common.last[i] = RunCount(common);
  }
  return common;
}

// The same pattern with other runs, where it has any, and with masks that
// `allowed()`, [B, T or 1, columns], restricts.
SoftmaxPattern WithMask(const SoftmaxPattern& pattern,
                        const std::function<torch::Tensor()>& allowed,
                        std::vector<SoftmaxRuns> runs) {
  SoftmaxPattern some = pattern;
  if (pattern.runs != nullptr) {
    some.runs =
        std::make_shared<const std::vector<SoftmaxRuns>>(std::move(runs));
  }
  const bool is_own = pattern.window.is_restricted();
  some.masks = [masks = pattern.masks, allowed,
                is_own](const torch::Device& device) {
    SoftmaxMasks both = masks(device);
    torch::Tensor& mask = is_own ? both.own_mask : both.other_mask;
    mask = mask.logical_and(ToDevice(allowed(), device));
    return both;
  };
  some.mask_source =
      std::make_shared<const std::function<torch::Tensor()>>(allowed);
  return some;
}

// A pattern of the sets `visible`: with a window of own keys, else of others.
SoftmaxPattern PatternOfBlock(std::vector<RunSetTable> visible,
                              const KeyPatternOptions& options,
                              const KeyWindow& window) {
  const bool is_own = window.is_restricted();
  std::vector<SoftmaxRuns> examples;
  for (RunSetTable& table : visible) {
    CheckRuns(table, options);
    SoftmaxRuns runs;
    BlockRuns& block = is_own ? runs.own : runs.other;
    BlockRuns& none = is_own ? runs.other : runs.own;
    none.visible = EmptySets(options.queries);
    block.visible = std::move(table);
    block.rule = options.max_distance > 0 ? RelativeRule::kDistance
                                          : RelativeRule::kNone;
    runs.max_distance = options.max_distance;
    examples.push_back(std::move(runs));
  }
  SoftmaxPattern pattern;
  pattern.batch = static_cast<int64_t>(examples.size());
  pattern.queries = options.queries;
  (is_own ? pattern.own_keys : pattern.other_keys) = options.keys;
  pattern.window = window;
  pattern.max_distance = options.max_distance;
  pattern.runs =
      std::make_shared<const std::vector<SoftmaxRuns>>(std::move(examples));
  pattern.masks =
      [runs = pattern.runs, options, window,
       lazy = std::make_shared<LazyMasks>()](const torch::Device& device) {
        std::call_once(lazy->once, [&] {
          // A later backward pass cannot use tensors of inference mode.
          const c10::InferenceMode normal_mode(false);
          lazy->masks = MasksOf(*runs, options, window);
        });
        const SoftmaxMasks& masks = lazy->masks;
        return SoftmaxMasks{.own_mask = ToDevice(masks.own_mask, device),
                            .own_ids = ToDevice(masks.own_ids, device),
                            .other_mask = ToDevice(masks.other_mask, device),
                            .other_ids = ToDevice(masks.other_ids, device)};
      };
  return pattern;
}

// Sets of all keys of an example, for those of its queries that count.
std::vector<RunSetTable> AllKeys(const KeyPatternOptions& options) {
  std::vector<RunSetTable> visible;
  for (const SequenceLengths& length : LengthsOf(options)) {
    RunSetTable table = EmptySets(options.queries);
    if (length.keys > 0) {
      table.runs = {{0, static_cast<int32_t>(length.keys)}};
      std::fill_n(table.last.begin(), length.queries, 1);
    }
    visible.push_back(std::move(table));
  }
  return visible;
}

std::vector<SoftmaxRuns> RunsOf(const SoftmaxPattern& pattern) {
  return pattern.runs == nullptr ? std::vector<SoftmaxRuns>() : *pattern.runs;
}

}  // namespace

SoftmaxPattern PatternFromRuns(std::vector<RunSetTable> visible,
                               const KeyPatternOptions& options) {
  CheckOptions(options);
  return PatternOfBlock(std::move(visible), options, kNoWindow);
}

SoftmaxPattern AllKeysPattern(const KeyPatternOptions& options) {
  CheckOptions(options);
  return PatternOfBlock(AllKeys(options), options, kNoWindow);
}

SoftmaxPattern CausalPattern(const KeyPatternOptions& options) {
  CheckOptions(options);
  std::vector<RunSetTable> visible;
  for (const SequenceLengths& length : LengthsOf(options)) {
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

SoftmaxPattern WindowPattern(const KeyPatternOptions& options,
                             const KeyWindow& window) {
  CheckOptions(options);
  TORCH_CHECK(window.before >= 0 && window.after >= 0,
              "a window should be at least 0 to each side, but is ",
              window.before, " and ", window.after);
  // Longer sides see no more; and sums of them stay small.
  const KeyWindow within = {.before = std::min(window.before, options.queries),
                            .after = std::min(window.after, options.queries)};
  if (options.queries == options.keys && within.columns() < options.keys) {
    return PatternOfBlock(AllKeys(options), options, within);
  }
  std::vector<RunSetTable> visible;
  for (const SequenceLengths& length : LengthsOf(options)) {
    RunSetTable table = EmptySets(options.queries);
    for (int64_t i = 0; i < length.queries; ++i) {
      const auto query = static_cast<size_t>(i);
      const int64_t begin = i - std::min(i, window.before);
      const int64_t end =
          i < length.keys ? i + std::min(length.keys - i - 1, window.after) + 1
                          : length.keys;
      table.first[query] = RunCount(table);
      if (begin < end) {
        table.runs.push_back(
            {static_cast<int32_t>(begin), static_cast<int32_t>(end)});
      }
      table.last[query] = RunCount(table);
    }
    visible.push_back(std::move(table));
  }
  return PatternFromRuns(std::move(visible), options);
}

SoftmaxPattern PatternFromMask(const torch::Tensor& mask,
                               const KeyPatternOptions& options) {
  CheckOptions(options);
  std::optional<std::vector<RunSetTable>> tables = RunsOfMask(
      ExpandMask(mask, "mask", BatchOf(options), options.queries, options.keys)
          .to(torch::kCPU));
  return tables.has_value() ? PatternFromRuns(*std::move(tables), options)
                            : DensePattern(mask, options);
}

SoftmaxPattern DensePattern(const torch::Tensor& mask,
                            const KeyPatternOptions& options) {
  CheckOptions(options);
  const int64_t batch = BatchOf(options);
  SoftmaxPattern pattern;
  pattern.batch = batch;
  pattern.queries = options.queries;
  pattern.other_keys = options.keys;
  pattern.max_distance = options.max_distance;
  const c10::InferenceMode normal_mode(false);  // as in PatternOfBlock
  const auto all = std::make_shared<SoftmaxMasks>();
  all->own_mask = torch::zeros({batch, options.queries, 0}, torch::kBool);
  all->other_mask = ExpandMask(mask.defined() ? mask.clone() : mask, "mask",
                               batch, options.queries, options.keys);
  if (options.max_distance > 0) {
    all->own_ids = torch::zeros({batch, options.queries, 0}, torch::kInt64);
    all->other_ids =
        DistanceIds(options).expand({batch, options.queries, options.keys});
  }
  pattern.masks = [all](const torch::Device& device) {
    return SoftmaxMasks{.own_mask = ToDevice(all->own_mask, device),
                        .own_ids = ToDevice(all->own_ids, device),
                        .other_mask = ToDevice(all->other_mask, device),
                        .other_ids = ToDevice(all->other_ids, device)};
  };
  pattern.mask_source = all;
  return pattern;
}

SoftmaxPattern OnlyKeys(const SoftmaxPattern& pattern,
                        const torch::Tensor& mask) {
  CheckOneBlock(pattern);
  TORCH_CHECK(mask.defined(), "mask is undefined");
  const torch::Tensor keys =  // a copy
      AsBoolMask(mask, "mask").to(torch::kCPU).clone().contiguous();
  TORCH_CHECK(keys.sizes() == at::IntArrayRef({pattern.batch, pattern.keys()}),
              "mask should be [batch, keys] = ",
              at::IntArrayRef({pattern.batch, pattern.keys()}), ", but is ",
              mask.sizes());
  const int64_t length = pattern.keys();
  std::vector<SoftmaxRuns> examples = RunsOf(pattern);
  const torch::Tensor ids = keys.to(torch::kInt32);
  const std::vector<int32_t> ones(static_cast<size_t>(pattern.queries), 1);
  for (size_t b = 0; b < examples.size(); ++b) {
    RunSetTable& visible = SetsOf(pattern, &examples[b]);
    visible = CommonRuns(visible, ones.data(),
                         FindDocuments(ids.data_ptr<int32_t>() +
                                           static_cast<int64_t>(b) * length,
                                       length));
  }
  return WithMask(
      pattern, [allowed = OfPairs(pattern, keys)] { return allowed; },
      std::move(examples));
}

SoftmaxPattern OnlyDocuments(const SoftmaxPattern& pattern,
                             const torch::Tensor& query_ids,
                             const torch::Tensor& key_ids) {
  CheckOneBlock(pattern);
  const torch::Tensor of_queries =
      DocumentsOf(query_ids, "query_ids", pattern.batch, pattern.queries);
  const torch::Tensor of_keys =
      DocumentsOf(key_ids, "key_ids", pattern.batch, pattern.keys());
  std::vector<SoftmaxRuns> examples = RunsOf(pattern);
  for (size_t b = 0; b < examples.size(); ++b) {
    const auto row = static_cast<int64_t>(b);
    RunSetTable& visible = SetsOf(pattern, &examples[b]);
    visible = CommonRuns(
        visible, of_queries.data_ptr<int32_t>() + row * pattern.queries,
        FindDocuments(of_keys.data_ptr<int32_t>() + row * pattern.keys(),
                      pattern.keys()));
  }
  const auto allowed = [of_queries, key = OfPairs(pattern, of_keys)] {
    return of_queries.unsqueeze(2).eq(key).logical_and(key.ne(0));
  };
  return WithMask(pattern, allowed, std::move(examples));
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
  only.mask_source = std::make_shared<const torch::Tensor>(asked);
  return only;
}

}  // namespace etc
