// The definition of attention on chosen rows and heads, a few rows at a time.

#include "attention/inspection.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>

#include "attention/attention_problem.h"
#include "attention/backends/reference/dense_attention.h"
#include "attention/backends/reference/own_columns.h"
#include "attention/backends/reference/reference_backend.h"
#include "attention/row_visibility.h"
#include "base/to_device.h"

namespace etc {
namespace {

// Rows over all keys that are held at once.
constexpr int64_t kRowsAtOnce = 64;

// [H] int64, or undefined for all heads.
torch::Tensor CheckedHeads(const std::vector<int64_t>& heads, int64_t count) {
  for (const int64_t head : heads) {
    TORCH_CHECK(head >= 0 && head < count, "heads to look at should be in [0, ",
                count, "), but one is ", head);
  }
  return heads.empty() ? torch::Tensor() : torch::tensor(heads, torch::kInt64);
}

// [R] int64 on the CPU.
torch::Tensor CheckedRows(const torch::Tensor& rows, int64_t count) {
  if (!rows.defined()) {
    return torch::arange(count, torch::kInt64);
  }
  TORCH_CHECK(rows.dim() == 1 && (rows.scalar_type() == torch::kInt64 ||
                                  rows.scalar_type() == torch::kInt32),
              "rows to look at should be [R] int64 or int32, but are ",
              rows.sizes(), " ", rows.scalar_type());
  const torch::Tensor here = rows.to(torch::kCPU, torch::kInt64);
  if (here.numel() > 0) {
    const auto first = here.min().item<int64_t>();
    const auto last = here.max().item<int64_t>();
    TORCH_CHECK(first >= 0 && last < count, "rows to look at should be in [0, ",
                count, "), but are from ", first, " to ", last);
  }
  return here;
}

// Some queries of one example, ascending, and their places in the result.
struct RowBlock {
  int64_t example = 0;
  torch::Tensor queries;  // [n] int64 on the CPU, from 0 to T
  torch::Tensor places;   // idem, from 0 to R
};

std::vector<RowBlock> BlocksOf(const torch::Tensor& rows, int64_t length) {
  const auto [sorted, order] = rows.sort();
  const auto row = sorted.accessor<int64_t, 1>();
  std::vector<RowBlock> blocks;
  for (int64_t begin = 0; begin < row.size(0);) {
    const int64_t example = row[begin] / length;
    int64_t end = begin + 1;
    while (end < row.size(0) && end - begin < kRowsAtOnce &&
           row[end] / length == example) {
      ++end;
    }
    blocks.push_back(
        {.example = example,
         .queries = sorted.narrow(0, begin, end - begin) - example * length,
         .places = order.narrow(0, begin, end - begin)});
    begin = end;
  }
  return blocks;
}

class Inspector {
 public:
  Inspector(const AttentionProblem& problem, const SoftmaxSelection& which)
      : problem_(problem),
        sizes_(problem),
        device_(problem.operands.query.device()),
        dtype_(problem.operands.query.scalar_type() == torch::kFloat64
                   ? torch::kFloat64
                   : torch::kFloat32),
        heads_(ToDevice(CheckedHeads(which.heads, sizes_.heads), device_)),
        has_rows_(which.rows.defined()),
        rows_(CheckedRows(which.rows, sizes_.batch * sizes_.queries)) {
    const RelativeTable& table = problem.operands.relative;
    if (table.embedding.defined()) {
      relative_ = {.embedding = OfHeads(table.embedding, 1),
                   .bias = OfHeads(table.bias, 1)};
    }
    if (problem.gates.defined()) {
      gates_ = OfHeads(GatesOfKeys(problem), 0);
    }
    if (problem.pattern.runs == nullptr) {
      masks_ = problem.pattern.masks(device_);
    }
    if (which.probabilities) {
      view_.probabilities = New();
    }
    if (which.scores) {
      view_.new_scores = New();
      view_.carried_scores = problem.previous.defined() ? New() : ScorePair();
    }
  }

  SoftmaxView Run() {
    for (const RowBlock& block : BlocksOf(rows_, sizes_.queries)) {
      Add(block);
    }
    for (ScorePair* pair :
         {&view_.probabilities, &view_.new_scores, &view_.carried_scores}) {
      pair->ForEachTensor([&](torch::Tensor& tensor) {
        if (tensor.defined() && !has_rows_) {
          tensor = tensor
                       .reshape({sizes_.batch, sizes_.queries, tensor.size(1),
                                 tensor.size(2)})
                       .transpose(1, 2);
        }
      });
    }
    return view_;
  }

 private:
  // Uninitialised, [R, H, columns].
  ScorePair New() const {
    const int64_t heads = heads_.defined() ? heads_.size(0) : sizes_.heads;
    const auto columns = [&](int64_t count) {
      return torch::empty({rows_.size(0), heads, count},
                          problem_.operands.query.options().dtype(dtype_));
    };
    return {.own = columns(sizes_.own_columns),
            .other = columns(sizes_.other_keys)};
  }

  // The chosen heads of a tensor, in which they are axis `axis`.
  torch::Tensor OfHeads(const torch::Tensor& tensor, int64_t axis) const {
    return (heads_.defined() ? tensor.index_select(axis, heads_) : tensor)
        .to(dtype_);
  }

  // Keys of one example, [H, keys, d]; kept until the next example.
  void TakeKeys(int64_t example) {
    if (example_ != example) {
      example_ = example;
      own_key_ = OfHeads(problem_.operands.own_key[example], 0);
      other_key_ = OfHeads(problem_.operands.other_key[example], 0);
    }
  }

  // The mask and ids of the block over the keys of `over`.
  RowVisibility Visibility(const RowBlock& block, const RowsOverKeys& over,
                           const OwnColumns& columns,
                           const torch::Tensor& queries) const {
    if (problem_.pattern.runs != nullptr) {
      const auto example = static_cast<size_t>(block.example);
      const RowVisibility pairs =
          VisibilityOfRows((*problem_.pattern.runs)[example], over);
      return {.mask = ToDevice(pairs.mask, device_),
              .ids = ToDevice(pairs.ids, device_)};
    }
    const auto join = [&](const torch::Tensor& own,
                          const torch::Tensor& other) {
      return own.defined()
                 ? torch::cat({columns.ToDense(
                                   own[block.example].index_select(0, queries)),
                               other[block.example].index_select(0, queries)},
                              -1)
                 : torch::Tensor();
    };
    return {.mask = join(masks_.own_mask, masks_.other_mask),
            .ids = join(masks_.own_ids, masks_.other_ids)};
  }

  // Own keys that a block sees at most.
  KeyRun OwnKeys(const RowBlock& block) const {
    const int64_t radius = problem_.pattern.radius;
    int64_t begin = 0;
    int64_t end = sizes_.own_keys;
    if (radius >= 0) {
      begin = std::max(begin, block.queries[0].item<int64_t>() - radius);
      end = std::min(end, block.queries[-1].item<int64_t>() + radius + 1);
    }
    return {.begin = static_cast<int32_t>(begin),
            .end = static_cast<int32_t>(end)};
  }

  void Add(const RowBlock& block) {
    TakeKeys(block.example);
    const RowsOverKeys over = {.queries = block.queries,
                               .own_keys = OwnKeys(block),
                               .other_keys = sizes_.other_keys,
                               .radius = problem_.pattern.radius};
    const int64_t own_begin = over.own_keys.begin;
    const int64_t own_count = over.own_keys.end - own_begin;
    const torch::Tensor queries = ToDevice(block.queries, device_);
    const OwnColumns columns(queries, own_begin, own_count, over.radius);
    const RowVisibility visible = Visibility(block, over, columns, queries);
    // [1, H, n, ...]
    const auto rows_of = [&](const torch::Tensor& tensor) {
      return OfHeads(tensor[block.example].index_select(1, queries), 0)
          .unsqueeze(0);
    };
    const DenseAttentionInput input = {
        .query = rows_of(problem_.operands.query),
        .key = torch::cat(
                   {own_key_.narrow(1, own_begin, own_count), other_key_}, 1)
                   .unsqueeze(0),
        .mask = visible.mask.unsqueeze(0),
        .relative_ids =
            visible.ids.defined() ? visible.ids.unsqueeze(0) : torch::Tensor(),
        .relative = relative_,
        .previous =
            problem_.previous.defined()
                ? torch::cat({columns.ToDense(rows_of(problem_.previous.own)),
                              rows_of(problem_.previous.other)},
                             -1)
                : torch::Tensor(),
        .score_factor = problem_.score_factor,
        .divisor = problem_.divisor,
        .gates = gates_.defined()
                     ? torch::cat({gates_.narrow(1, own_begin, own_count),
                                   gates_.narrow(1, sizes_.own_keys,
                                                 sizes_.other_keys)},
                                  1)
                     : torch::Tensor()};
    const torch::Tensor hidden = input.mask.logical_not().unsqueeze(1);
    const torch::Tensor places = ToDevice(block.places, device_);
    // `numbers` is [1, H, n, own + other keys].
    const auto put = [&](const torch::Tensor& numbers, const ScorePair& into) {
      if (into.defined()) {
        const torch::Tensor rows = numbers.masked_fill(hidden, 0.0)[0];
        torch::Tensor(into.own).index_copy_(
            0, places,
            columns.FromDense(rows.narrow(-1, 0, own_count)).transpose(0, 1));
        torch::Tensor(into.other)
            .index_copy_(
                0, places,
                rows.narrow(-1, own_count, sizes_.other_keys).transpose(0, 1));
      }
    };
    const torch::Tensor own_scores = DenseScores(input);
    put(own_scores, view_.new_scores);
    if (input.previous.defined()) {
      put(input.previous, view_.carried_scores);
    }
    put(DenseProbabilities(input, DenseLogitsOf(input, own_scores).logits),
        view_.probabilities);
  }

  const AttentionProblem& problem_;
  const AttentionSizes sizes_;
  const torch::Device device_;
  const torch::ScalarType dtype_;
  const torch::Tensor heads_;
  const bool has_rows_;
  const torch::Tensor rows_;
  RelativeTable relative_;
  torch::Tensor gates_;  // [H, own + other keys]; undefined without gates
  SoftmaxMasks masks_;   // where there are no runs
  int64_t example_ = -1;
  torch::Tensor own_key_, other_key_;
  SoftmaxView view_;
};

}  // namespace

SoftmaxView InspectAttention(const SparseAttentionInput& input,
                             const SoftmaxSelection& which) {
  const torch::NoGradGuard no_grad;
  const AttentionProblem problem = MakeAttentionProblem(input);
  if (problem.pattern.runs != nullptr) {
    CheckRelativeTable(problem);
  }
  return Inspector(problem, which).Run();
}

}  // namespace etc
