#ifndef ETC_ATTENTION_ROW_BLOCKS_H_
#define ETC_ATTENTION_ROW_BLOCKS_H_

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "attention/attention_problem.h"
#include "attention/backends/reference/dense_attention.h"
#include "attention/backends/reference/own_columns.h"
#include "attention/key_runs.h"
#include "attention/row_visibility.h"

namespace etc {

// A few queries of one example, n <= 64, for the definition of attention.
struct RowBlock {
  // A batch of one example: [1, H, n, ...], over the own keys that some of
  // these queries may see, then all other keys. Has no values.
  DenseAttentionInput input;
  // Own keys among the keys of `input`, and their columns in ScorePair.
  int64_t own_keys = 0;
  OwnColumns columns;
  torch::Tensor places;  // [n] int64: their indices in the chosen rows
};

// Chosen rows and heads of one softmax, a block of rows at a time, so that
// memory is that of 64 rows over all keys, and at most 8 MB a tensor or one
// row, whichever is more. N heads, H of them chosen, R rows.
class RowBlocks {
 public:
  // `heads` are indices in [0, N), empty: all in order. `rows` are [R] int64 or
  // int32 in [0, batch * queries) on any device, undefined: all. Throws
  // c10::Error for others. `problem` must outlive this.
  RowBlocks(const AttentionProblem& problem, const std::vector<int64_t>& heads,
            const torch::Tensor& rows);

  const AttentionSizes& sizes() const { return sizes_; }
  int64_t num_rows() const { return rows_.size(0); }
  int64_t num_heads() const {
    return heads_.defined() ? heads_.size(0) : sizes_.heads;
  }
  // ScoreType of the queries.
  torch::ScalarType dtype() const { return dtype_; }

  // Calls `function` for each block, by ascending rows.
  void ForEach(const std::function<void(const RowBlock&)>& function);

 private:
  // Queries of one example, ascending, and their places in the rows.
  struct Part {
    int64_t example = 0;
    torch::Tensor queries;  // [n] int64 on the CPU, from 0 to T
    torch::Tensor places;   // idem, from 0 to R
  };

  std::vector<Part> Parts() const;
  RowBlock Block(const Part& part);
  // The chosen heads of a tensor, in which they are axis `axis`.
  torch::Tensor OfHeads(const torch::Tensor& tensor, int64_t axis) const;
  // Keys of one example, [H, keys, d]; kept until the next example.
  void TakeKeys(int64_t example);
  // Own keys that the queries from `first` to `last` see at most.
  KeyRun OwnKeys(int64_t first, int64_t last) const;
  // The mask and ids of a part over the keys of `over`.
  RowVisibility Visibility(const Part& part, const RowsOverKeys& over,
                           const OwnColumns& columns,
                           const torch::Tensor& queries) const;

  const AttentionProblem& problem_;
  const AttentionSizes sizes_;
  const torch::Device device_;
  const torch::ScalarType dtype_;
  const torch::Tensor heads_;  // [H] int64; undefined: all
  const torch::Tensor rows_;   // [R] int64 on the CPU
  RelativeTable relative_;
  torch::Tensor gates_;  // [H, own + other keys]; undefined without gates
  SoftmaxMasks masks_;   // where there are no runs
  int64_t example_ = -1;
  torch::Tensor own_key_, other_key_;
};

}  // namespace etc

#endif  // ETC_ATTENTION_ROW_BLOCKS_H_
