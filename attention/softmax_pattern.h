#ifndef ETC_ATTENTION_SOFTMAX_PATTERN_H_
#define ETC_ATTENTION_SOFTMAX_PATTERN_H_

#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "attention/key_runs.h"

namespace etc {

// Masks and relative ids of one softmax as tensors, in O(queries x keys)
// memory: for backends of tensor operations. Masks are bool, true where
// attention is allowed; ids are int64, and undefined without relative
// positions. Columns are those of ScorePair.
struct SoftmaxMasks {
  torch::Tensor own_mask = {}, own_ids = {};      // [B, T, own columns]
  torch::Tensor other_mask = {}, other_ids = {};  // [B, T, other keys]
};

// Visibility and relative ids of one softmax of a batch. Built once for all
// layers by AttentionInputs::Softmax (ETC's two softmaxes) or by one of the
// functions below. A copy is cheap and shares.
struct SoftmaxPattern {
  int64_t batch = 0;
  int64_t queries = 0;  // T
  int64_t own_keys = 0;
  int64_t other_keys = 0;
  // The own keys that a query sees at most. With a window there are as many own
  // keys as queries.
  KeyWindow window = kNoWindow;
  // One for each example; null if only `masks` knows the pattern.
  std::shared_ptr<const std::vector<SoftmaxRuns>> runs = {};
  // m of the relative ids (KeyPatternOptions); unset where masks have ids of
  // another kind.
  std::optional<int64_t> max_distance = std::nullopt;
  // Makes the masks on the given device. Thread-safe. Throws c10::Error if the
  // source of the pattern has other sizes.
  std::function<SoftmaxMasks(const torch::Device&)> masks = {};
  // Owner of what the masks are made of: with one owner, patterns of the same
  // sizes and window have the same masks. Null: not known.
  std::shared_ptr<const void> mask_source = {};

  // Columns of own scores.
  int64_t own_columns() const {
    return window.is_restricted() ? window.columns() : own_keys;
  }
  // Returns true if all keys are other keys, or all are own keys with a window:
  // the patterns of DotProductAttention.
  bool has_one_block() const {
    return window.is_restricted() ? other_keys == 0 : own_keys == 0;
  }
  int64_t keys() const { return own_keys + other_keys; }
  // Returns true if it is known that no pair has a relative id.
  bool has_no_ids() const {
    return runs != nullptr && (runs->empty() || (*runs)[0].max_distance == 0);
  }
};

// Tokens of one example that count; those behind them are padding. Padding
// queries see nothing and get context 0, padding keys are not seen.
struct SequenceLengths {
  int64_t queries = 0;
  int64_t keys = 0;
};

// Patterns of T queries over one block of S keys, which need not be the same
// tokens: keys are "other" keys, own keys are empty (DotProductAttention); but
// for WindowPattern.
struct KeyPatternOptions {
  int64_t queries = 0;  // T
  int64_t keys = 0;     // S
  // Batch size. May stay unset if `lengths` has an entry for each example.
  std::optional<int64_t> batch = std::nullopt;
  // One for each example; empty: all have T queries and S keys.
  std::vector<SequenceLengths> lengths = {};
  // m: the relative id of query i and key j is RelativeId(j - i, m)
  // (attention/pattern.h), m at most kMostRelativeDistance; 0: no relative ids.
  int64_t max_distance = 0;
};

// Every query sees every key: a dense encoder, or cross attention. This and the
// next ones throw c10::Error on lengths that do not fit T and S, on negative
// sizes, on distances out of range, and where neither the batch size nor
// lengths are given.
SoftmaxPattern AllKeysPattern(const KeyPatternOptions& options);

// Query i sees the keys [0, i]: a decoder.
SoftmaxPattern CausalPattern(const KeyPatternOptions& options);

// Query i sees the keys [i - before, i + after], of those there are: local
// attention; with `after` = 0, windowed causal attention. Where T = S and the
// window has fewer columns than that, keys are "own" keys with a window, other
// keys are empty, and scores are [B, N, T, before + 1 + after] (ScorePair).
SoftmaxPattern WindowPattern(const KeyPatternOptions& options,
                             const KeyWindow& window);

// Runs that one query may have where a mask becomes runs, for the kernels: one
// for each 8 keys, and 64 in any case. With so many the kernels take 0.5 to 0.6
// of the blocked backend's time at 1024 keys
// (bench/restricted_attention_bench.cc, most_runs); with more the products of
// keys that are not seen outweigh the rest.
constexpr int64_t MostRuns(int64_t keys) {
  return std::max<int64_t>(64, keys / 8);
}

// Query i sees the keys where `mask` is true: bool, or integers 0 and 1, [T, S]
// or [B, T, S] for the batch, T and S of `options`, whose lengths are not used.
// A size of 1 stands for all: [1, T, S] for each example, [B, 1, S] for each
// query. The mask is read on the CPU and not kept; but if a query has more than
// MostRuns(S) runs of keys, it is DensePattern's. Throws c10::Error on other
// masks.
SoftmaxPattern PatternFromMask(const torch::Tensor& mask,
                               const KeyPatternOptions& options);

// The same with a copy of the mask as a tensor: for AttentionImplementation
// kBlocked and kReference, not for the fused kernels.
SoftmaxPattern DensePattern(const torch::Tensor& mask,
                            const KeyPatternOptions& options);

// Any sets of keys, one table of T sets for each example; batch size and
// lengths of `options` are not used. Throws c10::Error also for runs that
// touch, descend or reach beyond the keys.
SoftmaxPattern PatternFromRuns(std::vector<RunSetTable> visible,
                               const KeyPatternOptions& options);

// The same pattern, of one block of keys, without the keys at which `mask`, [B,
// S], is false: padding on any side, holes. Bool, or integers 0 and 1; read on
// the CPU. Takes memory for each run of the mask once for each set of keys that
// queries share: of a CausalPattern, with holes, O(T x runs). Throws c10::Error
// on masks of other shapes and dtypes.
SoftmaxPattern OnlyKeys(const SoftmaxPattern& pattern,
                        const torch::Tensor& mask);

// The same pattern, of one block of keys, but that queries see only keys of
// their own document: packed rows, block-diagonal attention. Ids [B, T] and [B,
// S], int64 or int32 from 0 to 2^31 - 1, equal within a document; 0 is padding,
// which sees nothing and is not seen. Documents lie one behind the other or
// mixed. Read on the CPU. Memory as of OnlyKeys, for each run of a document.
// Throws c10::Error for others.
SoftmaxPattern OnlyDocuments(const SoftmaxPattern& pattern,
                             const torch::Tensor& query_ids,
                             const torch::Tensor& key_ids);

// The same pattern, but that no query sees anything except the rows b * T + i
// of `queries`, [R] int64 on the CPU. O(B T) memory. Throws c10::Error for
// others.
SoftmaxPattern OnlyQueries(const SoftmaxPattern& pattern,
                           const torch::Tensor& queries);

}  // namespace etc

#endif  // ETC_ATTENTION_SOFTMAX_PATTERN_H_
