#ifndef ETC_ATTENTION_OUTPUT_ROWS_H_
#define ETC_ATTENTION_OUTPUT_ROWS_H_

#include <torch/types.h>

#include <cstdint>

namespace etc {

// The tokens whose outputs are wanted of a layer, as rows b * length + t of its
// streams [B, length, hidden]; undefined: all tokens. A head that reads a few
// tokens thus saves the last layer's computation for the others: their queries,
// and with the kernels their attention, output projections and feed-forward
// blocks; for a stream without a row also its keys. The residual scores that
// the layer gives for other tokens are unspecified.
struct OutputRows {
  torch::Tensor longs = {};    // [R] int64 or int32, R >= 0
  torch::Tensor globals = {};  // [S] int64 or int32, S >= 0
};

// Rows of `stream`, [B, length, ...]: [R, ...], or with undefined `rows` the
// stream itself. Differentiable. Throws c10::Error if `rows` is not [R] of
// integers, and, on the CPU, for a row that is not there.
torch::Tensor RowsOf(const torch::Tensor& stream, const torch::Tensor& rows);

// `rows` as int64, ascending and each once, on the CPU, of a stream of `count`
// rows in all; undefined if all are asked for, or if rows are on another
// device, where finding them would wait for it. Throws as RowsOf does.
torch::Tensor DistinctRows(const torch::Tensor& rows, int64_t count);

// Returns true if `rows` asks for no token.
bool AsksForNone(const torch::Tensor& rows);

}  // namespace etc

#endif  // ETC_ATTENTION_OUTPUT_ROWS_H_
