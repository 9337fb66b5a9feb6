#ifndef ETC_ATTENTION_RESIDUAL_ATTENTION_H_
#define ETC_ATTENTION_RESIDUAL_ATTENTION_H_

#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

namespace etc {

// Modes in which the attention scores of the layers below enter a layer's
// softmax (RealFormer, He et al. 2021; doc/model.md 10). With s_n the scaled
// score of layer n = 0, 1, ... and S_n the running sum carried to layer n + 1,
// one form serves all:
//
//   logits_n = a s_n + b S_{n-1}        S_n = S_{n-1} + c s_n
//
//            a            b         c
//   kOff     1            0                            nothing is carried
//   kSum     1            1         1
//   kMean    1 / (n + 1)  as a      1                  logits S_n / (n + 1)
//   kDecay   1 - beta     beta^n    (1 - beta) beta^-n logits S_n beta^n
//   kGate    1            g         1                  g learned
//
// kDecay's logits are the exponential moving average (1 - beta) s_n + beta
// logits_{n-1}, that of Evolving Attention (Wang et al. 2021) without its
// convolution. kGate has one number g per layer but the first, block and head:
// at 0 it computes what kOff does, at 1 what kSum does, to the bit. Nothing
// learned multiplies what is carried, so that the backward pass can take one
// layer after the other out of one buffer in every mode.
//
// The other modes have no parameters, so a checkpoint trained with one loads
// with another.
enum class ResidualAttention { kOff, kSum, kMean, kDecay, kGate };

// The modes by name, in the order of the enum: in configurations, options and
// files of weights.
inline constexpr const char* kResidualAttentionNames[] = {"off", "sum", "mean",
                                                          "decay", "gate"};

// The name of a mode.
constexpr const char* ResidualAttentionName(ResidualAttention mode) {
  return kResidualAttentionNames[static_cast<size_t>(mode)];
}

// Nothing for any other name; ResidualAttentionFromName (residual_scores.h)
// throws.
constexpr std::optional<ResidualAttention> ResidualAttentionNamed(
    std::string_view name) {
  for (size_t i = 0; i < std::size(kResidualAttentionNames); ++i) {
    if (name == kResidualAttentionNames[i]) {
      return static_cast<ResidualAttention>(i);
    }
  }
  return std::nullopt;
}

// beta unless another one is asked for.
inline constexpr double kDefaultResidualDecay = 0.9;
// kDecay carries scores times (1 - beta) beta^-n: beta^-n must be below this.
inline constexpr double kLargestDecayFactor = 1e4;

}  // namespace etc

#endif  // ETC_ATTENTION_RESIDUAL_ATTENTION_H_
