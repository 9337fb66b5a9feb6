#ifndef ETC_TESTS_SUPPORT_RESIDUAL_DROPOUT_FACTORS_H_
#define ETC_TESTS_SUPPORT_RESIDUAL_DROPOUT_FACTORS_H_

#include <torch/types.h>

#include <cstdint>

#include "base/random.h"

namespace etc {

// The dropout factors of the fast path of ResidualSum and ResidualNorm
// (etc/nn/residual_norm.h) for a shape [..., H], float32, if `seed` is what
// DrawDropoutSeed (base/dropout_seeds.h) gave it.
inline torch::Tensor ResidualDropoutFactors(uint64_t seed,
                                            at::IntArrayRef shape,
                                            double dropout) {
  torch::Tensor factors = torch::empty(shape, torch::kFloat32);
  const int64_t columns = factors.size(-1);
  float* const data = factors.data_ptr<float>();
  for (int64_t i = 0; i < factors.numel(); ++i) {
    data[i] =
        kernels::DropoutFactor(kernels::MakeDropoutRow(seed, i / columns, 0),
                               static_cast<uint32_t>(i % columns), dropout);
  }
  return factors;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_RESIDUAL_DROPOUT_FACTORS_H_
