#ifndef ETC_TASKS_TRAIN_OPTIMIZER_H_
#define ETC_TASKS_TRAIN_OPTIMIZER_H_

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/checkpoint.h"
#include "tasks/config/config.h"
#include "tasks/train/adam_update.h"

namespace etc {

// Changes parameters along their gradients. With g the gradient, p the
// parameter, and per parameter two running means that start at 0,
//
//   m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g^2
//
// the types of OptimizerConfig are (doc/model.md 8.3, 8.4)
//
//   bert_adamw  u = m / (sqrt(v) + epsilon) + weight_decay p
//               p = p - rate u
//   lamb        the same u; p = p - rate |p| / |u| u, where the ratio of the
//               two norms is 1 if either is 0
//   adamw       LibTorch's: bias-corrected m and v; p is first multiplied by
//               1 - rate weight_decay
//   fairseq_adam, radam   as in fairseq (doc/translation.md 4.4), with t the
//               updates of the parameter and c1 = 1 - beta1^t, c2 = 1 -
//               beta2^t: u = r sqrt(c2) / c1 m / (sqrt(v) + epsilon) +
//               weight_decay p; r is 1 for fairseq_adam. For radam (Liu et al.
//               2020) it is 0 while rho < 5, and then sqrt((rho - 4) (rho - 2)
//               rho_max /
//               ((rho_max - 4) (rho_max - 2) rho)), where rho_max =
//               2 / (1 - beta2) - 1 and rho = rho_max - 2 t beta2^t / c2
//
// Parameters that IsDecayed excludes have no decay, and ratio 1 under lamb;
// fairseq_adam and radam decay all. The
// rate of a parameter is multiplied by its factor, where it has one.
// Parameters without a gradient are left alone entirely, and have no state.
class Optimizer {
 public:
  // Updates `parameters`, which share memory with the model's. Throws
  // c10::Error if `config.type` is none of the above.
  Optimizer(const OptimizerConfig& config, NamedTensors parameters,
            std::map<std::string, double> learning_rate_factors = {});

  // One update of all parameters that have a gradient, which counts
  // `gradient_factor` times (see ClipFactor) and stays as it is. Returns the
  // 2-norm of all changes taken as one vector. The same at any number of
  // threads.
  double Step(double learning_rate, double gradient_factor = 1.0);

  // The state that the next update depends on besides the parameters:
  // "m.<parameter>", "v.<parameter>", and for the types that correct the means
  // "updates.<parameter>", how often it was updated. The tensors are those in
  // use, not copies.
  NamedTensors State() const;

  // Replaces the state by a copy of `state`.
  //   kInvalidArgument  a name or a shape that does not fit the parameters; the
  //                     state stays as it was
  absl::Status LoadState(const NamedTensors& state);

 private:
  // The running means of one parameter.
  struct Slots {
    torch::Tensor mean;         // m, of the parameter's shape
    torch::Tensor mean_square;  // v
    int64_t updates = 0;
  };

  // Returns true if the next update depends on the number of updates so far.
  bool CountsUpdates() const {
    return config_.type == "adamw" || IsOfFairseq();
  }
  bool IsOfFairseq() const {
    return config_.type == "fairseq_adam" || config_.type == "radam";
  }
  // Returns the update of the means and of the parameter.
  AdamUpdate UpdateOf(bool decayed, int64_t updates) const;
  absl::StatusOr<std::map<std::string, Slots>> ParseState(
      const NamedTensors& state) const;

  const OptimizerConfig config_;
  const NamedTensors parameters_;
  const std::map<std::string, double> learning_rate_factors_;
  // State of the parameters that have had a gradient.
  std::map<std::string, Slots> slots_;
};

// Returns true if `pattern` names the parameter: in it `*` is any characters,
// `?` is one, `[ab]` one of those ("encoder.embedding.*").
bool MatchesParameter(const std::string& pattern, const std::string& name);

// Switches off the gradients of the parameters that one of the patterns names:
// they are not changed, and have no gradient and no state of an optimizer.
//   kInvalidArgument  a pattern names no parameter, with the nearest name; or
//                     all are named
absl::Status FreezeParameters(const std::vector<std::string>& patterns,
                              const NamedTensors& parameters);

// The parameters that have gradients.
NamedTensors TrainedParameters(const NamedTensors& parameters);

// The factors of the learning rates of `parameters` that are not 1, by their
// names: gates (IsGate) have `gate_factor`, and those that an entry of
// `factors` names its factor; the last entry that names a parameter decides.
//   kInvalidArgument  an entry names no parameter, with the nearest name
absl::StatusOr<std::map<std::string, double>> ParameterFactors(
    double gate_factor, const std::vector<LearningRateFactor>& factors,
    const NamedTensors& parameters);

// Returns true if weight decay applies to a parameter of this name: not if it
// contains "norm" or "bias", which is the official rule (doc/model.md 8.3) in
// our names, nor if it IsGate (etc/weights/encoder_parameters.h), nor to the
// alphas and omegas of residual connections, which decay would draw away from
// what they stand for.
bool IsDecayed(absl::string_view parameter_name);

// The 2-norm of all gradients taken as one vector: squares of float32 on the
// CPU are summed in float32 in rows of 1,024 (etc/nn/kernels/adam.h), rows and
// all else in double. The same at any number of threads.
double GradientNorm(const NamedTensors& parameters);
// Likewise of the parameters.
double ParameterNorm(const NamedTensors& parameters);

// Factor by which gradients are multiplied so that their norm, GradientNorm,
// becomes at most `max_norm`: max_norm / max(norm, max_norm), and 1 if
// `max_norm` is 0.
double ClipFactor(double norm, double max_norm);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_OPTIMIZER_H_
