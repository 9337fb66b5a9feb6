#ifndef ETC_TASKS_PRETRAIN_MLM_SLICES_H_
#define ETC_TASKS_PRETRAIN_MLM_SLICES_H_

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace etc {

// Slices of the [M, V] logits of masked tokens, and what is known of the rows
// as one slice after the other comes.

// A slice of the logits: rows and columns, ends exclusive.
struct LogitSlice {
  int64_t first_row, rows;
  int64_t first_column, columns;

  torch::Tensor Rows(const torch::Tensor& tensor) const {
    return tensor.narrow(0, first_row, rows);
  }
  torch::Tensor Columns(const torch::Tensor& tensor) const {
    return tensor.narrow(0, first_column, columns);
  }
};

// Slices by columns, and each of them by rows: what belongs to a column then
// comes together, and no sum over all rows waits for its end. Of at most
// `elements`, but at least of one column of at most 4096 rows.
std::vector<LogitSlice> SlicesOf(int64_t rows, int64_t columns,
                                 int64_t elements);

// Whether it is float32 on the CPU.
bool IsDoneByParts(const torch::Tensor& tensor);

// Calls function(begin, size) for parts of the indices of dimension `dim` of a
// slice. Float32 on the CPU goes in parts on several threads: what LibTorch
// itself divides among them differs in the last bits from one number of threads
// to another (etc/nn/activation.cc).
void ForEachSlicePart(const torch::Tensor& slice, int64_t dim,
                      const std::function<void(int64_t, int64_t)>& function);

// What the losses need of the columns so far, each [rows].
struct RunningLosses {
  torch::Tensor maximum;
  torch::Tensor sum;          // of exp(logit - maximum)
  torch::Tensor best;         // first column of the maximum
  torch::Tensor label_logit;  // 0 until its column has come

  static RunningLosses Of(int64_t rows, const torch::TensorOptions& floating,
                          const torch::TensorOptions& integer);

  RunningLosses Rows(int64_t begin, int64_t size) const;

  // Adds columns from `first_column` on, of all rows. Labels count from that
  // column. The logits become exp(logit - maximum), with the new maximum.
  void Add(const torch::Tensor& logits, const torch::Tensor& labels,
           int64_t first_column) const;
};

// Logarithms of the sums of exponentials of all rows' logits, and the losses.
struct LogSums {
  torch::Tensor log_sums;
  torch::Tensor losses;
};
LogSums Finish(const RunningLosses& running);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_MLM_SLICES_H_
