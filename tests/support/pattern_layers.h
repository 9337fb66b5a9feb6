#ifndef ETC_TESTS_SUPPORT_PATTERN_LAYERS_H_
#define ETC_TESTS_SUPPORT_PATTERN_LAYERS_H_

// Layers over any pattern, and patterns in which not everything is visible: of
// packed documents, of odd runs.

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention/softmax_pattern.h"
#include "attention/sparse_attention.h"
#include "tests/support/attention_stack.h"

namespace etc {

struct PatternLayerOptions {
  ResidualAttention residual = ResidualAttention::kSum;
  double dropout = 0.0;
  int64_t distance = 0;
  int64_t heads = 1;
  int64_t head_dim = 8;
};

// Two layers over a pattern.
inline AttentionStack LayersOver(const SoftmaxPattern& pattern,
                                 const PatternLayerOptions& options) {
  const AttentionCase any = {.longs = 1, .globals = 0, .layers = 2};
  AttentionStack stack(any, QuerySide::kLong, MakeAttention(any));
  torch::manual_seed(11);
  const auto rows = [&](int64_t length) {
    return torch::randn(
               {pattern.batch, length, options.heads, options.head_dim})
        .transpose(1, 2);
  };
  for (size_t layer = 0; layer < stack.layers.size(); ++layer) {
    SparseAttentionInput input;
    input.operands = {.query = rows(pattern.queries),
                      .own_key = rows(pattern.own_keys),
                      .own_value = rows(pattern.own_keys),
                      .other_key = rows(pattern.other_keys),
                      .other_value = rows(pattern.other_keys)};
    if (options.distance > 0) {
      const int64_t ids = 2 * options.distance + 4;
      input.operands.relative = {
          .embedding =
              torch::randn({ids, options.heads, options.head_dim}) * 0.5,
          .bias = torch::randn({ids, options.heads})};
    }
    input.pattern = pattern;
    input.residual.mode = options.residual;
    input.dropout = options.dropout;
    if (options.residual == ResidualAttention::kGate && layer > 0) {
      input.gates = {.own = torch::randn({options.heads}),
                     .other = torch::randn({options.heads})};
    }
    stack.layers[layer] = input;
  }
  return stack;
}

struct PackedDocument {
  int64_t id = 0;  // 0: padding
  int64_t queries = 0;
  int64_t keys = 0;
};

// One row of documents, and another that begins with its last one.
inline SoftmaxPattern PackedPattern(
    const std::vector<PackedDocument>& documents, bool causal,
    int64_t distance) {
  std::vector<torch::Tensor> query_ids, key_ids;
  for (const PackedDocument& document : documents) {
    query_ids.push_back(torch::full({document.queries}, document.id));
    key_ids.push_back(torch::full({document.keys}, document.id));
  }
  const auto rows = [](const std::vector<torch::Tensor>& ids, int64_t last) {
    const torch::Tensor row = torch::cat(ids).to(torch::kInt64);
    return torch::stack({row, row.roll(last)});
  };
  const torch::Tensor of_queries = rows(query_ids, documents.back().queries);
  const torch::Tensor of_keys = rows(key_ids, documents.back().keys);
  const KeyPatternOptions options = {.queries = of_queries.size(1),
                                     .keys = of_keys.size(1),
                                     .batch = 2,
                                     .max_distance = distance};
  return OnlyDocuments(
      causal ? CausalPattern(options) : AllKeysPattern(options), of_queries,
      of_keys);
}

// [2, queries, keys]: runs of 1 to `width` keys, and gaps of 1 to `width`,
// different in each row. The first row, rows 5 to 17 and the last one see
// nothing, and no row sees the keys of the middle third.
inline torch::Tensor MaskOfOddRuns(int64_t queries, int64_t keys,
                                   int64_t width) {
  torch::manual_seed(4);
  torch::Tensor mask = torch::zeros({2, queries, keys}, torch::kBool);
  const auto draw = [&] {
    return torch::randint(1, width + 1, {1}).item<int64_t>();
  };
  for (int64_t row = 0; row < 2 * queries; ++row) {
    torch::Tensor of_row = mask[row / queries][row % queries];
    for (int64_t j = draw() - 1; j < keys; j += draw()) {
      const int64_t end = std::min(keys, j + draw());
      of_row.narrow(0, j, end - j).fill_(true);
      j = end;
    }
  }
  mask.narrow(2, keys / 3, keys / 3).fill_(false);
  for (const int64_t row : {int64_t{0}, queries - 1}) {
    mask.select(1, row).fill_(false);
  }
  if (queries > 17) {
    mask.narrow(1, 5, 13).fill_(false);
  }
  return mask;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_PATTERN_LAYERS_H_
