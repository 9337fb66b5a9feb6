#ifndef ETC_ATTENTION_BACKENDS_BLOCKED_WINDOWS_H_
#define ETC_ATTENTION_BACKENDS_BLOCKED_WINDOWS_H_

#include <torch/types.h>

#include <cstdint>

#include "attention/key_runs.h"

namespace etc {

// Moves between a row's window of keys and the span of keys that its whole
// block of rows sees: with b rows of W columns each, row a of the block begins
// at column a of a span of C = b + W - 1 columns (doc/model.md 5.1). Plain
// tensor operations, differentiable. All throw c10::Error on sizes that cannot
// be.

// [..., b, W] -> [..., b, C]: out[a, a + w] = in[a, w], 0 elsewhere.
torch::Tensor SkewElementsRight(const torch::Tensor& windows);

// [..., b, C] -> [..., b, W]: out[a, w] = in[a, a + w], W = C - b + 1.
torch::Tensor UnskewElementsRight(const torch::Tensor& spans);

// [B, N, L, d] -> [B, N, ceil(L / b), b, d], zeros behind the end.
torch::Tensor SplitIntoBlocks(const torch::Tensor& input, int64_t block_length);

// The inverse: [B, N, blocks, b, d] -> [B, N, L, d].
torch::Tensor JoinBlocks(const torch::Tensor& blocks, int64_t length);

// [B, N, L, d] -> [B, N, ceil(L / b), before + b + after, d]: each block with
// the rows of the windows of its first and last row, zeros beyond the ends.
torch::Tensor BlocksWithMargin(const torch::Tensor& input, int64_t block_length,
                               const KeyWindow& window);

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_BLOCKED_WINDOWS_H_
