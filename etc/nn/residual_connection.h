#ifndef ETC_ETC_NN_RESIDUAL_CONNECTION_H_
#define ETC_ETC_NN_RESIDUAL_CONNECTION_H_

#include <torch/nn/module.h>
#include <torch/nn/modules/normalization.h>
#include <torch/types.h>

#include <cstdint>
#include <string>

#include "etc/config.h"
#include "etc/nn/residual_norm.h"

namespace etc {

// One stream in the pass that sets omegas (EtcModelImpl::ProfileNextPass).
struct ProfiledStream {
  // Rows b * length + t of the tokens that are not padding, int64 [R];
  // undefined: all.
  torch::Tensor rows;
  // Number of those tokens.
  int64_t tokens = 0;
  // r^2, the variance accumulated by the blocks so far.
  double variance = 1.0;
};

struct ResidualConnectionOptions {
  Sublayer sublayer = Sublayer::kPostNorm;
  int64_t hidden_size = 768;
  double layer_norm_epsilon = 1e-12;
  // Beginning of the names of parameters: "long_attention_".
  std::string prefix;
};

// The two ends of a residual block around some f, as `sublayer` says
// (doc/model.md 4.1), with H the hidden size and D dropout:
//
//   y = End(D(f(Begin(x))), x)
//
// and the parameters that this takes, by their names in the owner, which begin
// with the prefix:
//
//   norm.weight, norm.bias  [H], ones and zeros; kReZero has none
//   alpha                   [1], zero; kReZero only
//   omega                   [H], ones; kAdmin only
//
// Streams without tokens pass both ends as they are, because computing them
// would give parameters gradients of zeros, as large as they are.
class ResidualConnection {
 public:
  // Without parameters, for streams without tokens.
  ResidualConnection() = default;
  // Registers the parameters in `owner`.
  ResidualConnection(const ResidualConnectionOptions& options,
                     torch::nn::Module* owner);

  // The input of f, [..., H].
  torch::Tensor Begin(const torch::Tensor& stream) const;

  // The stream behind the block, [..., H], from `input.change` = f, its bias,
  // dropout and the stream before. With a `profile` first sets omega to r, and
  // then r^2 to Var(omega x) + Var(D(f)) over the tokens of the profile; for
  // kAdmin without gradients only, and all tokens of the stream.
  torch::Tensor End(const ResidualInput& input,
                    ProfiledStream* profile = nullptr) const;

 private:
  torch::Tensor EndProfiled(const ResidualInput& input,
                            ProfiledStream* profile) const;
  NormParameters norm() const {
    return {.weight = norm_->weight,
            .bias = norm_->bias,
            .epsilon = norm_->options.eps()};
  }

  Sublayer sublayer_ = Sublayer::kPostNorm;
  torch::nn::LayerNorm norm_ = nullptr;
  torch::Tensor alpha_;
  torch::Tensor omega_;
};

}  // namespace etc

#endif  // ETC_ETC_NN_RESIDUAL_CONNECTION_H_
