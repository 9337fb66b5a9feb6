// The backward pass over the kernels. A head is worked on in parts, several at
// a time: parts of the long queries on the long side, parts of the long keys on
// the global side. What a part adds to rows that are not its own it keeps to
// itself; afterwards, one head at a time, these are added in the order of the
// parts. How a head is divided depends on sizes only, so that the number of
// threads changes no bit of the result.

#include <torch/types.h>

#include <algorithm>
#include <vector>

#include "attention/backends/cpu/kernel_head.h"
#include "attention/backends/cpu/kernel_passes.h"
#include "base/parallel_tasks.h"

namespace etc {
namespace {

// All heads together are divided into this many parts or more, if they are
// long enough: a few for each core, so that unequal parts even out.
constexpr int64_t kParts = 64;
// A part has no fewer long tokens, so that borders stay a small share.
constexpr int64_t kShortestPart = 384;

// Rows [begin, end) of `columns` floats in the private memory of a part.
struct PrivateRows {
  int64_t offset = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t columns = 0;

  kernels::GradientRows In(float* memory) const {
    return {
        .rows = memory + offset, .stride = columns, .begin = begin, .end = end};
  }
};

// Which rows of which gradients a part keeps to itself.
struct PartLayout {
  // Long tokens [begin, end) are the part's own.
  int64_t begin = 0;
  int64_t end = 0;
  // Long side: own keys and values before and behind, all others.
  PrivateRows key_before, key_behind, value_before, value_behind;
  PrivateRows other_key, other_value;
  // Global side: all queries.
  PrivateRows query;
  PrivateRows relative;
  int64_t floats = 0;

  void Place(int64_t first, int64_t last, int64_t columns, PrivateRows* rows) {
    *rows = {.offset = floats, .begin = first, .end = last, .columns = columns};
    floats += (last - first) * columns;
  }
};

class KernelBackward {
 public:
  KernelBackward(const KernelProblem& problem, const KernelForward& forward,
                 const torch::Tensor& context_gradient,
                 const KernelScoreGradients& scores)
      : problem_(problem),
        forward_(forward),
        context_gradient_(context_gradient),
        scores_(scores),
        sizes_(problem),
        longs_(problem.side == QuerySide::kLong ? sizes_.queries
                                                : sizes_.others),
        globals_(problem.side == QuerySide::kLong ? sizes_.others
                                                  : sizes_.queries) {
    Allocate();
    Divide();
  }

  KernelGradients Run() {
    const int64_t heads = sizes_.batch * sizes_.heads;
    if (heads == 0) {
      return gradients_;
    }
    const int64_t parts = static_cast<int64_t>(layouts_.size());
    ForEachTask(heads * parts,
                kernels::BackwardWorkspaceSize(HeadOf(problem_, 0, 0)),
                [&](int64_t task, float* workspace) {
                  RunPart(task / parts / sizes_.heads,
                          task / parts % sizes_.heads, task % parts, workspace);
                });
    ForEachTask(sizes_.heads, 0, [&](int64_t head, float*) { Combine(head); });
    return gradients_;
  }

 private:
  void Allocate() {
    // Zeros of the same layout.
    const auto zeros = [](const torch::Tensor& like) {
      return like.defined() ? torch::zeros_like(like) : torch::Tensor();
    };
    gradients_.query = zeros(problem_.query);
    gradients_.own_key = zeros(problem_.own_key);
    gradients_.own_value = zeros(problem_.own_value);
    gradients_.other_key = zeros(problem_.other_key);
    gradients_.other_value = zeros(problem_.other_value);
    gradients_.relative = {.embedding = zeros(problem_.relative.embedding),
                           .bias = zeros(problem_.relative.bias)};
  }

  void Divide() {
    const int64_t heads = std::max<int64_t>(1, sizes_.batch * sizes_.heads);
    const int64_t wanted = (kParts + heads - 1) / heads;
    const int64_t most = (longs_ + kShortestPart - 1) / kShortestPart;
    const int64_t parts = std::max<int64_t>(1, std::min(wanted, most));
    const int64_t tile = TileLength(longs_, heads);
    const int64_t even = (longs_ + parts - 1) / parts;
    const int64_t length = std::max(tile, (even + tile - 1) / tile * tile);
    int64_t begin = 0;
    do {
      layouts_.push_back(Layout(begin, std::min(begin + length, longs_)));
      begin += length;
    } while (begin < longs_);
    floats_ = 0;
    for (const PartLayout& layout : layouts_) {
      offsets_.push_back(floats_);
      floats_ += layout.floats;
    }
    memory_ = torch::zeros({sizes_.batch * sizes_.heads, floats_},
                           problem_.query.options());
  }

  PartLayout Layout(int64_t begin, int64_t end) const {
    PartLayout layout = {.begin = begin, .end = end};
    if (problem_.side == QuerySide::kLong) {
      const int64_t before =
          std::max<int64_t>(0, begin - problem_.local_radius);
      const int64_t behind = std::min(longs_, end + problem_.local_radius);
      layout.Place(before, begin, sizes_.head_dim, &layout.key_before);
      layout.Place(end, behind, sizes_.head_dim, &layout.key_behind);
      layout.Place(before, begin, sizes_.value_dim, &layout.value_before);
      layout.Place(end, behind, sizes_.value_dim, &layout.value_behind);
      layout.Place(0, globals_, sizes_.head_dim, &layout.other_key);
      layout.Place(0, globals_, sizes_.value_dim, &layout.other_value);
    } else {
      layout.Place(0, globals_, sizes_.head_dim, &layout.query);
    }
    if (problem_.relative.embedding.defined() && sizes_.batch > 0) {
      layout.Place(0, 2 * (*problem_.runs)[0].max_distance + 4,
                   kernels::RelativeGradientStride(HeadOf(problem_, 0, 0)),
                   &layout.relative);
    }
    return layout;
  }

  float* Memory(int64_t batch, int64_t head, int64_t part) const {
    return memory_.data_ptr<float>() + (batch * sizes_.heads + head) * floats_ +
           offsets_[static_cast<size_t>(part)];
  }

  // Rows [begin, end) of a gradient itself.
  static kernels::GradientRows Rows(const torch::Tensor& gradient,
                                    int64_t batch, int64_t head, int64_t begin,
                                    int64_t end) {
    return {
        .rows = HeadRows(gradient, batch, head) + begin * gradient.stride(2),
        .stride = gradient.stride(2),
        .begin = begin,
        .end = end};
  }

  void RunPart(int64_t batch, int64_t head, int64_t part, float* workspace) {
    const PartLayout& layout = layouts_[static_cast<size_t>(part)];
    const kernels::AttentionHead attention = HeadOf(problem_, batch, head);
    const bool is_long = problem_.side == QuerySide::kLong;
    const kernels::BackwardInputs inputs =
        is_long
            ? Inputs(batch, head, {0, sizes_.queries}, {0, sizes_.others})
            : Inputs(batch, head, {0, part == 0 ? sizes_.queries : int64_t{0}},
                     {layout.begin, layout.end});
    const kernels::BackwardResults results =
        is_long ? LongResults(batch, head, part)
                : GlobalResults(batch, head, part);
    const int64_t first = is_long ? layout.begin : 0;
    const int64_t last = is_long ? layout.end : sizes_.queries;
    const int64_t tile =
        TileLength(sizes_.queries, sizes_.batch * sizes_.heads);
    for (int64_t begin = first; begin < last; begin += tile) {
      kernels::BackwardTile(attention, begin, std::min(begin + tile, last),
                            inputs, results, workspace);
    }
  }

  struct Keys {
    int64_t begin;
    int64_t end;
    kernels::Run AsRun() const {
      return {static_cast<int32_t>(begin), static_cast<int32_t>(end)};
    }
  };

  kernels::BackwardInputs Inputs(int64_t batch, int64_t head, Keys own,
                                 Keys other) const {
    const int64_t row = (batch * sizes_.heads + head) * sizes_.queries;
    const auto scores = [&](const torch::Tensor& tensor, int64_t columns) {
      return kernels::ScoreRows<const float>{HeadRows(tensor, batch, head),
                                             columns};
    };
    return {
        .context = HeadRows(forward_.context, batch, head),
        .context_stride = forward_.context.stride(2),
        .row_max = forward_.row_max.data_ptr<float>() + row,
        .row_inverse_sum = forward_.row_inverse_sum.data_ptr<float>() + row,
        .carried = {scores(problem_.own_carried, sizes_.own_columns),
                    scores(problem_.other_carried, sizes_.others)},
        .context_gradient = HeadRows(context_gradient_, batch, head),
        .context_gradient_stride = context_gradient_.stride(2),
        .carried_gradient = {scores(scores_.own_carried, sizes_.own_columns),
                             scores(scores_.other_carried, sizes_.others)},
        .keys = {own.AsRun(), other.AsRun()}};
  }

  kernels::BackwardResults SharedResults(int64_t batch, int64_t head,
                                         int64_t part) const {
    kernels::BackwardResults results;
    results.relative = Memory(batch, head, part) +
                       layouts_[static_cast<size_t>(part)].relative.offset;
    results.previous[0] = {HeadRows(scores_.own_previous, batch, head),
                           sizes_.own_columns};
    results.previous[1] = {HeadRows(scores_.other_previous, batch, head),
                           sizes_.others};
    if (scores_.undo) {
      results.undone[0] = {HeadRows(problem_.own_carried, batch, head),
                           sizes_.own_columns};
      results.undone[1] = {HeadRows(problem_.other_carried, batch, head),
                           sizes_.others};
    }
    return results;
  }

  kernels::BackwardResults LongResults(int64_t batch, int64_t head,
                                       int64_t part) const {
    const PartLayout& layout = layouts_[static_cast<size_t>(part)];
    float* const memory = Memory(batch, head, part);
    const auto own = [&](const torch::Tensor& gradient) {
      return Rows(gradient, batch, head, layout.begin, layout.end);
    };
    kernels::BackwardResults results = SharedResults(batch, head, part);
    results.query = {{own(gradients_.query)}};
    results.key[0] = {{layout.key_before.In(memory), own(gradients_.own_key),
                       layout.key_behind.In(memory)}};
    results.value[0] = {{layout.value_before.In(memory),
                         own(gradients_.own_value),
                         layout.value_behind.In(memory)}};
    results.key[1] = {{layout.other_key.In(memory)}};
    results.value[1] = {{layout.other_value.In(memory)}};
    return results;
  }

  kernels::BackwardResults GlobalResults(int64_t batch, int64_t head,
                                         int64_t part) const {
    const PartLayout& layout = layouts_[static_cast<size_t>(part)];
    kernels::BackwardResults results = SharedResults(batch, head, part);
    results.query = {{layout.query.In(Memory(batch, head, part))}};
    results.key[0] = {
        {Rows(gradients_.own_key, batch, head, 0, sizes_.queries)}};
    results.value[0] = {
        {Rows(gradients_.own_value, batch, head, 0, sizes_.queries)}};
    results.key[1] = {
        {Rows(gradients_.other_key, batch, head, layout.begin, layout.end)}};
    results.value[1] = {
        {Rows(gradients_.other_value, batch, head, layout.begin, layout.end)}};
    return results;
  }

  // Adds what the parts of a head, of all batch entries, kept to themselves.
  void Combine(int64_t head) {
    for (int64_t batch = 0; batch < sizes_.batch; ++batch) {
      for (size_t part = 0; part < layouts_.size(); ++part) {
        const PartLayout& layout = layouts_[part];
        const float* const memory =
            Memory(batch, head, static_cast<int64_t>(part));
        const auto add = [&](const PrivateRows& rows,
                             const torch::Tensor& gradient) {
          AddRows(rows, memory, HeadRows(gradient, batch, head),
                  gradient.stride(2));
        };
        if (problem_.side == QuerySide::kLong) {
          add(layout.key_before, gradients_.own_key);
          add(layout.key_behind, gradients_.own_key);
          add(layout.value_before, gradients_.own_value);
          add(layout.value_behind, gradients_.own_value);
          add(layout.other_key, gradients_.other_key);
          add(layout.other_value, gradients_.other_value);
        } else {
          add(layout.query, gradients_.query);
        }
        AddRelative(layout.relative, memory, head);
      }
    }
  }

  static void AddRows(const PrivateRows& from, const float* memory, float* to,
                      int64_t stride) {
    for (int64_t r = from.begin; r < from.end; ++r) {
      const float* const row =
          memory + from.offset + (r - from.begin) * from.columns;
      for (int64_t c = 0; c < from.columns; ++c) {
        to[r * stride + c] += row[c];
      }
    }
  }

  void AddRelative(const PrivateRows& from, const float* memory, int64_t head) {
    for (int64_t c = from.begin; c < from.end; ++c) {
      const float* const row = memory + from.offset + c * from.columns;
      const int64_t id =
          kernels::RelativeIdOfColumn(c, (*problem_.runs)[0].max_distance);
      const RelativeTable& table = gradients_.relative;
      float* const embedding = table.embedding.data_ptr<float>() +
                               id * table.embedding.stride(0) +
                               head * table.embedding.stride(1);
      for (int64_t k = 0; k < sizes_.head_dim; ++k) {
        embedding[k] += row[k];
      }
      table.bias.data_ptr<float>()[id * table.bias.stride(0) + head] +=
          row[sizes_.head_dim];
    }
  }

  const KernelProblem& problem_;
  const KernelForward& forward_;
  const torch::Tensor& context_gradient_;
  const KernelScoreGradients& scores_;
  const KernelSizes sizes_;
  const int64_t longs_, globals_;

  KernelGradients gradients_;
  std::vector<PartLayout> layouts_;
  std::vector<int64_t> offsets_;  // of the parts, in the memory of a head
  int64_t floats_ = 0;            // of a head
  torch::Tensor memory_;          // [B * N, floats_]
};

}  // namespace

KernelGradients RunKernelBackward(const KernelProblem& problem,
                                  const KernelForward& forward,
                                  const torch::Tensor& context_gradient,
                                  const KernelScoreGradients& scores) {
  const torch::Tensor complete = context_gradient.defined()
                                     ? context_gradient
                                     : torch::zeros_like(forward.context);
  return KernelBackward(problem, forward, complete, scores).Run();
}

}  // namespace etc
