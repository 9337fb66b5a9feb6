#include "attention/backends/cpu/kernel_head.h"

#include <algorithm>

#include "base/random.h"

namespace etc {
namespace {

constexpr int64_t kQueriesMultiple = 48;

// All heads together have this many tiles or more, so that there is work for
// each core, but for tiles shorter than that: the longer a tile, the fewer
// times keys and values are brought together.
constexpr int64_t kTiles = 64;
constexpr int64_t kShortTile = 288;

kernels::KeyBlock BlockOf(const torch::Tensor& key, const torch::Tensor& value,
                          int64_t batch, int64_t head) {
  return {.key = HeadRows(key, batch, head),
          .key_stride = key.stride(2),
          .value = HeadRows(value, batch, head),
          .value_stride = value.stride(2),
          .keys = key.size(2)};
}

void SetLongRuns(const KernelProblem& problem, const PatternRuns& runs,
                 kernels::AttentionHead* head) {
  kernels::KeyBlock& own = head->blocks[0];
  own.visible = runs.l2l.View();
  own.radius = problem.local_radius;
  kernels::KeyBlock& other = head->blocks[1];
  other.visible = runs.l2g.View();
  if (runs.max_distance > 0) {
    own.rule = kernels::RelativeRule::kDistance;
    other.rule = kernels::RelativeRule::kLink;
    other.special = runs.l2g_links.View();
  }
}

void SetGlobalRuns(const PatternRuns& runs, kernels::AttentionHead* head) {
  kernels::KeyBlock& own = head->blocks[0];
  own.visible = runs.g2g.View();
  kernels::KeyBlock& other = head->blocks[1];
  other.visible = runs.g2l.View();
  if (runs.max_distance > 0) {
    own.rule = kernels::RelativeRule::kDistance;
    own.special = runs.g2g_segments.View();
    other.rule = kernels::RelativeRule::kLink;
    other.special = runs.g2l_links.View();
  }
}

}  // namespace

torch::Tensor WithAdjacentElements(const torch::Tensor& tensor) {
  return tensor.size(3) == 1 || tensor.stride(3) == 1 ? tensor
                                                      : tensor.contiguous();
}

torch::Tensor ContiguousOrUndefined(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.contiguous() : tensor;
}

KernelSizes::KernelSizes(const KernelProblem& problem)
    : batch(problem.query.size(0)),
      heads(problem.query.size(1)),
      queries(problem.query.size(2)),
      others(problem.other_key.size(2)),
      head_dim(problem.query.size(3)),
      value_dim(problem.own_value.size(3)),
      own_columns(problem.side == QuerySide::kLong
                      ? 2 * problem.local_radius + 1
                      : queries) {}

float* HeadRows(const torch::Tensor& tensor, int64_t batch, int64_t head) {
  if (!tensor.defined() || tensor.numel() == 0) {
    return nullptr;
  }
  return tensor.data_ptr<float>() + batch * tensor.stride(0) +
         head * tensor.stride(1);
}

kernels::AttentionHead HeadOf(const KernelProblem& problem, int64_t batch,
                              int64_t head) {
  kernels::AttentionHead out = {
      .head_dim = problem.query.size(3),
      .value_dim = problem.own_value.size(3),
      .query = HeadRows(problem.query, batch, head),
      .query_stride = problem.query.stride(2),
      .blocks = {BlockOf(problem.own_key, problem.own_value, batch, head),
                 BlockOf(problem.other_key, problem.other_value, batch, head)},
      .divisor = static_cast<float>(problem.divisor),
      .dropout = static_cast<float>(problem.dropout),
      .dropout_seed =
          kernels::DropoutHeadSeed(problem.dropout_seed, batch, head)};
  const PatternRuns& runs = (*problem.runs)[static_cast<size_t>(batch)];
  if (problem.side == QuerySide::kLong) {
    SetLongRuns(problem, runs, &out);
  } else {
    SetGlobalRuns(runs, &out);
  }
  if (problem.relative.embedding.defined()) {
    const torch::Tensor& embedding = problem.relative.embedding;
    out.max_distance = runs.max_distance;
    out.relative = embedding.data_ptr<float>() + head * embedding.stride(1);
    out.relative_stride = embedding.stride(0);
    out.relative_bias = problem.relative.bias.data_ptr<float>() + head;
    out.relative_bias_stride = problem.relative.bias.stride(0);
  }
  return out;
}

int64_t TileLength(int64_t queries, int64_t heads) {
  const int64_t most =
      std::clamp(queries * heads / kTiles, kShortTile, kernels::kTileQueries);
  const int64_t tiles = std::max<int64_t>(1, (queries + most - 1) / most);
  const int64_t even = (queries + tiles - 1) / tiles;
  return std::max<int64_t>(1,
                           (even + kQueriesMultiple - 1) / kQueriesMultiple) *
         kQueriesMultiple;
}

}  // namespace etc
