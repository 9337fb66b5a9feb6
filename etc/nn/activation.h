#ifndef ETC_ETC_NN_ACTIVATION_H_
#define ETC_ETC_NN_ACTIVATION_H_

#include <torch/types.h>

#include <string>

namespace etc {

// The functions of `hidden_act`, names in any case (doc/model.md 0). "gelu" is
// the tanh form, "gelu_erf" the exact one; "linear" and "" leave their input as
// it is.
enum class Activation { kLinear, kRelu, kGelu, kGeluErf, kTanh };

// Throws c10::Error for other names.
Activation ActivationFromName(const std::string& name);

torch::Tensor Activate(Activation activation, const torch::Tensor& input);

}  // namespace etc

#endif  // ETC_ETC_NN_ACTIVATION_H_
