#include "etc/nn/residual_connection.h"

#include <c10/util/Exception.h>

#include <cmath>

#include "base/parallel_tasks.h"
#include "etc/nn/column_scale.h"

namespace etc {
namespace {

bool IsEmpty(const torch::Tensor& stream) { return stream.numel() == 0; }

// dropout(change + bias).
torch::Tensor DroppedChange(const ResidualInput& input) {
  if (!input.bias.defined() && !input.dropout_factors.defined() &&
      input.dropout == 0.0) {
    return input.change;
  }
  ResidualInput change = input;
  change.residual = torch::Tensor();
  return ResidualSum(change);
}

// Variance of all elements of the tokens of `stream`, [B, length, H], without
// Bessel's correction. On one thread, so that it does not depend on their
// number.
double VarianceOf(const torch::Tensor& stream, const torch::Tensor& rows) {
  double variance = 0;
  OnOneThread([&] {
    const torch::Tensor all = stream.flatten(0, -2).to(torch::kFloat64);
    variance = (rows.defined() ? all.index_select(0, rows) : all)
                   .var(/*unbiased=*/false)
                   .item<double>();
  });
  return variance;
}

}  // namespace

ResidualConnection::ResidualConnection(const ResidualConnectionOptions& options,
                                       torch::nn::Module* owner)
    : sublayer_(options.sublayer) {
  if (sublayer_ == Sublayer::kReZero) {
    alpha_ = owner->register_parameter(options.prefix + "alpha",
                                       torch::zeros({1}, torch::kFloat32));
    return;
  }
  norm_ = owner->register_module(
      options.prefix + "norm",
      MakeLayerNorm(options.hidden_size, options.layer_norm_epsilon));
  if (sublayer_ == Sublayer::kAdmin) {
    omega_ = owner->register_parameter(
        options.prefix + "omega",
        torch::ones({options.hidden_size}, torch::kFloat32));
  }
}

torch::Tensor ResidualConnection::Begin(const torch::Tensor& stream) const {
  return sublayer_ == Sublayer::kPreNorm && !IsEmpty(stream)
             ? ApplyLayerNorm(stream, norm())
             : stream;
}

torch::Tensor ResidualConnection::End(const ResidualInput& input,
                                      ProfiledStream* profile) const {
  if (IsEmpty(input.residual)) {
    return input.residual;
  }
  if (profile != nullptr) {
    return EndProfiled(input, profile);
  }
  switch (sublayer_) {
    case Sublayer::kPostNorm:
      return ResidualNorm(input, norm());
    case Sublayer::kPreNorm:
      return ResidualSum(input);
    case Sublayer::kReZero:
      return ScaleColumns(DroppedChange(input),
                          alpha_.expand({input.change.size(-1)}),
                          input.residual);
    case Sublayer::kAdmin: {
      ResidualInput scaled = input;
      scaled.residual = ScaleColumns(input.residual, omega_);
      return ResidualNorm(scaled, norm());
    }
  }
  TORCH_CHECK(false, "no such sublayer");
}

torch::Tensor ResidualConnection::EndProfiled(const ResidualInput& input,
                                              ProfiledStream* profile) const {
  TORCH_CHECK(sublayer_ == Sublayer::kAdmin,
              "sublayer should be admin, but is ", SublayerName(sublayer_));
  TORCH_CHECK(!torch::GradMode::is_enabled(),
              "omegas should be set without gradients");
  const torch::Tensor change = DroppedChange(input);
  if (profile->tokens > 0) {
    torch::Tensor(omega_).fill_(std::sqrt(profile->variance));
  }
  const torch::Tensor residual = ScaleColumns(input.residual, omega_);
  if (profile->tokens > 0) {
    profile->variance =
        VarianceOf(residual, profile->rows) + VarianceOf(change, profile->rows);
  }
  return ResidualNorm({.change = change, .residual = residual}, norm());
}

}  // namespace etc
