#include "tasks/analysis/document_attention.h"

#include <c10/util/Exception.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace etc {
namespace {

// Appends the runs of a query, clipped to [begin, end) and moved by `offset`.
void AppendRuns(const RunSetTable& table, int64_t query, int64_t begin,
                int64_t end, int64_t offset, std::vector<KeyRun>* runs) {
  const RunSets sets = table.View();
  if (sets.first == nullptr) {
    return;
  }
  for (int32_t at = sets.first[query]; at < sets.last[query]; ++at) {
    const int64_t from = std::max<int64_t>(sets.runs[at].begin, begin);
    const int64_t to = std::min<int64_t>(sets.runs[at].end, end);
    if (from < to) {
      runs->push_back({.begin = static_cast<int32_t>(from + offset),
                       .end = static_cast<int32_t>(to + offset)});
    }
  }
}

uint16_t Units(double probability) {
  return static_cast<uint16_t>(
      std::lround(std::clamp(probability, 0.0, 1.0) *
                  static_cast<double>(kProbabilityUnits)));
}

struct KeyWeight {
  float weight = 0;
  uint32_t key = 0;
};

// Writes row `token`; reorders `row`, the keys of weight above 0.
void WriteRow(int64_t token, int64_t globals, int64_t most,
              std::vector<KeyWeight>* row, LargestProbabilities* largest) {
  const auto kept = std::min<size_t>(row->size(), static_cast<size_t>(most));
  const auto middle = row->begin() + static_cast<std::ptrdiff_t>(kept);
  std::partial_sort(row->begin(), middle, row->end(),
                    [](const KeyWeight& a, const KeyWeight& b) {
                      return a.weight != b.weight ? a.weight > b.weight
                                                  : a.key < b.key;
                    });
  double sum = 0;
  double to_globals = 0;
  for (const KeyWeight& entry : *row) {
    sum += entry.weight;
    to_globals += entry.key < globals ? entry.weight : 0;
  }
  double shown = 0;
  const auto begin = static_cast<size_t>(token * most);
  for (size_t k = 0; k < kept; ++k) {
    const uint16_t units = Units((*row)[k].weight);
    if (units == 0) {
      break;  // the keys behind it are smaller still
    }
    largest->keys[begin + k] = (*row)[k].key;
    largest->probabilities[begin + k] = units;
    shown += (*row)[k].weight;
  }
  largest->rest[static_cast<size_t>(token)] = Units(sum - shown);
  largest->to_globals[static_cast<size_t>(token)] = Units(to_globals);
}

// One head of a block of the first example: [queries, columns], or nothing
// where the block has no queries.
torch::Tensor HeadOf(const torch::Tensor& block, int64_t head) {
  return block.defined() && block.numel() > 0
             ? block.select(0, 0).select(0, head).to(torch::kCPU).contiguous()
             : torch::empty({0, 0});
}

// Appends the keys of one row of a block with a weight above 0; column c is key
// first_key + c.
void AppendWeights(const torch::TensorAccessor<float, 2>& block, int64_t query,
                   int64_t first_key, std::vector<KeyWeight>* row) {
  if (query >= block.size(0)) {
    return;
  }
  const torch::TensorAccessor<float, 1> weights = block[query];
  for (int64_t column = 0; column < weights.size(0); ++column) {
    if (weights[column] > 0) {
      row->push_back({.weight = weights[column],
                      .key = static_cast<uint32_t>(first_key + column)});
    }
  }
}

template <typename Number>
void AppendNumber(Number number, int64_t bytes, std::string* packed) {
  for (int64_t byte = 0; byte < bytes; ++byte) {
    packed->push_back(static_cast<char>((number >> (8 * byte)) & 0xff));
  }
}

}  // namespace

std::vector<std::vector<KeyRun>> VisibleKeys(const AttentionInputs& attention,
                                             const DocumentSize& size) {
  const auto softmax = [&](QuerySide side) {
    const SoftmaxPattern pattern = attention.Softmax(
        side, /*batch=*/1, size.longs, size.globals, size.local_radius);
    TORCH_CHECK(pattern.runs != nullptr && !pattern.runs->empty(),
                "the keys of a document should be known as runs");
    return pattern.runs;
  };
  const auto globals = softmax(QuerySide::kGlobal);
  const auto longs = softmax(QuerySide::kLong);
  std::vector<std::vector<KeyRun>> rows(static_cast<size_t>(size.tokens()));
  for (int64_t g = 0; g < size.globals; ++g) {
    std::vector<KeyRun>& row = rows[static_cast<size_t>(g)];
    const SoftmaxRuns& runs = globals->front();
    AppendRuns(runs.own.visible, g, 0, size.globals, /*offset=*/0, &row);
    AppendRuns(runs.other.visible, g, 0, size.longs, size.globals, &row);
  }
  for (int64_t i = 0; i < size.longs; ++i) {
    std::vector<KeyRun>& row = rows[static_cast<size_t>(size.globals + i)];
    const SoftmaxRuns& runs = longs->front();
    AppendRuns(runs.other.visible, i, 0, size.globals, /*offset=*/0, &row);
    AppendRuns(runs.own.visible, i, std::max<int64_t>(0, i - size.local_radius),
               std::min(size.longs, i + size.local_radius + 1), size.globals,
               &row);
  }
  return rows;
}

LargestProbabilities FindLargest(const FourBlocks& probabilities, int64_t head,
                                 const DocumentSize& size, int64_t most) {
  const auto tokens = static_cast<size_t>(size.tokens());
  const size_t entries = tokens * static_cast<size_t>(most);
  LargestProbabilities largest = {
      .keys = std::vector<uint32_t>(entries, 0),
      .probabilities = std::vector<uint16_t>(entries, 0),
      .rest = std::vector<uint16_t>(tokens, 0),
      .to_globals = std::vector<uint16_t>(tokens, 0)};
  const torch::Tensor g2g = HeadOf(probabilities.g2g, head);
  const torch::Tensor g2l = HeadOf(probabilities.g2l, head);
  const torch::Tensor l2g = HeadOf(probabilities.l2g, head);
  const torch::Tensor l2l = HeadOf(probabilities.l2l, head);
  std::vector<KeyWeight> row;
  for (int64_t g = 0; g < size.globals; ++g) {
    row.clear();
    AppendWeights(g2g.accessor<float, 2>(), g, 0, &row);
    AppendWeights(g2l.accessor<float, 2>(), g, size.globals, &row);
    WriteRow(g, size.globals, most, &row, &largest);
  }
  for (int64_t i = 0; i < size.longs; ++i) {
    row.clear();
    AppendWeights(l2g.accessor<float, 2>(), i, 0, &row);
    AppendWeights(l2l.accessor<float, 2>(), i,
                  size.globals + i - size.local_radius, &row);
    WriteRow(size.globals + i, size.globals, most, &row, &largest);
  }
  return largest;
}

int64_t KeyBytes(const DocumentSize& size) {
  constexpr int64_t kShortKeys = 65536;
  return size.tokens() <= kShortKeys ? 2 : 4;
}

int64_t PackedBytes(const DocumentSize& size, int64_t most) {
  return size.tokens() * (most * (KeyBytes(size) + 2) + 4);
}

std::string Pack(const LargestProbabilities& largest,
                 const DocumentSize& size) {
  std::string packed;
  for (const uint32_t key : largest.keys) {
    AppendNumber(key, KeyBytes(size), &packed);
  }
  for (const auto* numbers :
       {&largest.probabilities, &largest.rest, &largest.to_globals}) {
    for (const uint16_t number : *numbers) {
      AppendNumber(number, 2, &packed);
    }
  }
  return packed;
}

}  // namespace etc
