#ifndef ETC_ETC_NN_KERNELS_SMOOTHED_LOSS_H_
#define ETC_ETC_NN_KERNELS_SMOOTHED_LOSS_H_

#include <cstdint>

namespace etc::kernels {

// Cross entropy with label smoothing, row by row. With z a row of logits, y its
// target and p = softmax(z):
//
//   nll  = log(sum of exp(z)) - z[y]
//   loss = nll + smoothing (z[y] - mean of z)
//   gradient of the loss in z = p - smoothing / columns - (1 - smoothing) [y]
//
// which is (1 - smoothing) nll + smoothing times the mean of -log p.
//
// Plain pointers, no allocation, no threads; nothing is checked. Rows are
// contiguous, `columns` (at least 1) apart; rows [begin, end) are computed.
// Buffers must not overlap.
struct SmoothedLossRows {
  int64_t columns = 0;
  double smoothing = 0.0;            // in [0, 1)
  const int64_t* targets = nullptr;  // [rows], in [0, columns)
  // [rows][columns], finite; overwritten by the gradient.
  float* logits = nullptr;
  double* loss = nullptr;  // [rows]
  double* nll = nullptr;   // [rows]
};

void SmoothedLoss(const SmoothedLossRows& rows, int64_t begin, int64_t end);

}  // namespace etc::kernels

#endif  // ETC_ETC_NN_KERNELS_SMOOTHED_LOSS_H_
