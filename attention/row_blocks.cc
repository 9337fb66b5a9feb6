#include "attention/row_blocks.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>

#include "base/check_tensor.h"
#include "base/to_device.h"

namespace etc {
namespace {

// Rows over their keys that are held at once, and pairs of a query and a key of
// all heads: a tensor of them takes 8 MB in float32. One row may have more.
constexpr int64_t kRowsAtOnce = 64;
constexpr int64_t kPairsAtOnce = 2 * 1024 * 1024;

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
  const torch::Tensor here = rows.to(torch::kCPU);
  CheckRows(here, count, "rows to look at");
  return here.to(torch::kInt64);
}

}  // namespace

RowBlocks::RowBlocks(const AttentionProblem& problem,
                     const std::vector<int64_t>& heads,
                     const torch::Tensor& rows)
    : problem_(problem),
      sizes_(problem),
      device_(problem.operands.query.device()),
      dtype_(ScoreType(problem.operands.query)),
      heads_(ToDevice(CheckedHeads(heads, sizes_.heads), device_)),
      rows_(CheckedRows(rows, sizes_.batch * sizes_.queries)) {
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
}

void RowBlocks::ForEach(const std::function<void(const RowBlock&)>& function) {
  for (const Part& part : Parts()) {
    function(Block(part));
  }
}

std::vector<RowBlocks::Part> RowBlocks::Parts() const {
  const auto [sorted, order] = rows_.sort();
  const auto row = sorted.accessor<int64_t, 1>();
  const int64_t length = sizes_.queries;
  // Rows [begin, end), of one example, over the keys from the first that one of
  // them may see to the last.
  const auto fits = [&](int64_t begin, int64_t end) {
    const KeyRun own = OwnKeys(row[begin] % length, row[end - 1] % length);
    return (end - begin) * num_heads() *
               (own.end - own.begin + sizes_.other_keys) <=
           kPairsAtOnce;
  };
  std::vector<Part> parts;
  for (int64_t begin = 0; begin < row.size(0);) {
    const int64_t example = row[begin] / length;
    int64_t end = begin + 1;
    while (end < row.size(0) && end - begin < kRowsAtOnce &&
           row[end] / length == example && fits(begin, end + 1)) {
      ++end;
    }
    parts.push_back(
        {.example = example,
         .queries = sorted.narrow(0, begin, end - begin) - example * length,
         .places = order.narrow(0, begin, end - begin)});
    begin = end;
  }
  return parts;
}

torch::Tensor RowBlocks::OfHeads(const torch::Tensor& tensor,
                                 int64_t axis) const {
  return (heads_.defined() ? tensor.index_select(axis, heads_) : tensor)
      .to(dtype_);
}

void RowBlocks::TakeKeys(int64_t example) {
  if (example_ != example) {
    example_ = example;
    own_key_ = OfHeads(problem_.operands.own_key[example], 0);
    other_key_ = OfHeads(problem_.operands.other_key[example], 0);
  }
}

KeyRun RowBlocks::OwnKeys(int64_t first, int64_t last) const {
  const KeyWindow& window = problem_.pattern.window;
  int64_t begin = 0;
  int64_t end = sizes_.own_keys;
  if (window.is_restricted()) {
    begin = std::max(begin, first - window.before);
    end = std::min(end, last + window.after + 1);
  }
  return {.begin = static_cast<int32_t>(begin),
          .end = static_cast<int32_t>(end)};
}

RowVisibility RowBlocks::Visibility(const Part& part, const RowsOverKeys& over,
                                    const OwnColumns& columns,
                                    const torch::Tensor& queries) const {
  if (problem_.pattern.runs != nullptr) {
    const auto example = static_cast<size_t>(part.example);
    const RowVisibility pairs =
        VisibilityOfRows((*problem_.pattern.runs)[example], over);
    return {.mask = ToDevice(pairs.mask, device_),
            .ids = ToDevice(pairs.ids, device_)};
  }
  const auto join = [&](const torch::Tensor& own, const torch::Tensor& other) {
    return own.defined()
               ? torch::cat({columns.ToDense(
                                 own[part.example].index_select(0, queries)),
                             other[part.example].index_select(0, queries)},
                            -1)
               : torch::Tensor();
  };
  return {.mask = join(masks_.own_mask, masks_.other_mask),
          .ids = join(masks_.own_ids, masks_.other_ids)};
}

RowBlock RowBlocks::Block(const Part& part) {
  TakeKeys(part.example);
  const RowsOverKeys over = {
      .queries = part.queries,
      .own_keys = OwnKeys(part.queries[0].item<int64_t>(),
                          part.queries[-1].item<int64_t>()),
      .other_keys = sizes_.other_keys,
      .window = problem_.pattern.window};
  const int64_t own_begin = over.own_keys.begin;
  const int64_t own_count = over.own_keys.end - own_begin;
  const torch::Tensor queries = ToDevice(part.queries, device_);
  const OwnColumns columns(queries, own_begin, own_count, over.window);
  const RowVisibility visible = Visibility(part, over, columns, queries);
  // [1, H, n, ...]
  const auto rows_of = [&](const torch::Tensor& tensor) {
    return OfHeads(tensor[part.example].index_select(1, queries), 0)
        .unsqueeze(0);
  };
  const DenseAttentionInput input = {
      .query = rows_of(problem_.operands.query),
      .key =
          torch::cat({own_key_.narrow(1, own_begin, own_count), other_key_}, 1)
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
                   ? torch::cat(
                         {gates_.narrow(1, own_begin, own_count),
                          gates_.narrow(1, sizes_.own_keys, sizes_.other_keys)},
                         1)
                   : torch::Tensor()};
  return {.input = input,
          .own_keys = own_count,
          .columns = columns,
          .places = ToDevice(part.places, device_)};
}

}  // namespace etc
