#include "tasks/train/optimizer.h"

#include <c10/util/Exception.h>
#include <fnmatch.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/shape_text.h"
#include "base/status_macros.h"
#include "etc/weights/encoder_parameters.h"

namespace etc {
namespace {

// The r of radam after `updates` (optimizer.h); 0: no step but the decay.
double Rectification(double beta2, double updates) {
  constexpr double kFirstTractable = 5;
  const double longest = 2 / (1 - beta2) - 1;
  const double power = std::pow(beta2, updates);
  const double length = longest - 2 * updates * power / (1 - power);
  return length < kFirstTractable
             ? 0.0
             : std::sqrt((length - 4) * (length - 2) * longest /
                         ((longest - 4) * (longest - 2) * length));
}

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config, NamedTensors parameters,
                     std::map<std::string, double> learning_rate_factors)
    : config_(config),
      parameters_(std::move(parameters)),
      learning_rate_factors_(std::move(learning_rate_factors)) {
  TORCH_CHECK(
      config_.type == "bert_adamw" || config_.type == "lamb" || CountsUpdates(),
      "optimizer.type is \"", config_.type, "\"");
}

AdamUpdate Optimizer::UpdateOf(bool decayed, int64_t updates) const {
  AdamUpdate update = {
      .beta1 = config_.beta1,
      .beta2 = config_.beta2,
      .epsilon = config_.epsilon,
      .weight_decay = decayed || IsOfFairseq() ? config_.weight_decay : 0.0,
      .by_norms = config_.type == "lamb" && decayed};
  if (CountsUpdates()) {
    const auto count = static_cast<double>(updates);
    update.mean_correction = 1 - std::pow(config_.beta1, count);
    update.square_correction = 1 - std::pow(config_.beta2, count);
    if (IsOfFairseq()) {
      // Epsilon is added to the root of v, not of v / c2.
      update.epsilon /= std::sqrt(update.square_correction);
    }
    if (config_.type == "radam") {
      const double rectification = Rectification(config_.beta2, count);
      update.step_factor = rectification;
    }
  }
  return update;
}

double Optimizer::Step(double learning_rate, double gradient_factor) {
  std::vector<AdamUpdate> updates;
  for (const auto& [name, parameter] : parameters_) {
    const torch::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) {
      continue;
    }
    Slots& slots = slots_[name];
    if (!slots.mean.defined()) {
      const torch::NoGradGuard no_grad;
      slots.mean = torch::zeros_like(parameter);
      slots.mean_square = torch::zeros_like(parameter);
    }
    AdamUpdate update = UpdateOf(IsDecayed(name), ++slots.updates);
    update.parameter = parameter;
    update.gradient = gradient;
    update.mean = slots.mean;
    update.mean_square = slots.mean_square;
    update.gradient_factor = gradient_factor;
    const auto factor = learning_rate_factors_.find(name);
    update.learning_rate =
        learning_rate *
        (factor == learning_rate_factors_.end() ? 1.0 : factor->second);
    updates.push_back(std::move(update));
  }
  return std::sqrt(UpdateAll_(updates));
}

NamedTensors Optimizer::State() const {
  NamedTensors state;
  for (const auto& [name, slots] : slots_) {
    state["m." + name] = slots.mean;
    state["v." + name] = slots.mean_square;
    if (CountsUpdates()) {
      state["updates." + name] = torch::tensor(slots.updates, torch::kLong);
    }
  }
  return state;
}

absl::StatusOr<std::map<std::string, Optimizer::Slots>> Optimizer::ParseState(
    const NamedTensors& state) const {
  std::map<std::string, Slots> result;
  for (const auto& [key, tensor] : state) {
    const size_t dot = key.find('.');
    const std::string kind = key.substr(0, dot);
    const std::string name =
        dot == std::string::npos ? "" : key.substr(dot + 1);
    const auto parameter = parameters_.find(name);
    const bool known =
        kind == "m" || kind == "v" || (kind == "updates" && CountsUpdates());
    if (!known || parameter == parameters_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "optimizer state: \"", key, "\" belongs to no parameter of a ",
          config_.type, " optimizer"));
    }
    const torch::IntArrayRef shape =
        kind == "updates" ? torch::IntArrayRef() : parameter->second.sizes();
    if (tensor.sizes() != shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          "optimizer state: \"", key, "\" should have shape ", ShapeText(shape),
          ", but has ", ShapeText(tensor.sizes())));
    }
    Slots& slots = result[name];
    if (kind == "updates") {
      slots.updates = tensor.item<int64_t>();
    } else {
      (kind == "m" ? slots.mean : slots.mean_square) =
          tensor.to(parameter->second.options(), /*non_blocking=*/false,
                    /*copy=*/true);
    }
  }
  return result;
}

absl::Status Optimizer::LoadState(const NamedTensors& state) {
  const torch::NoGradGuard no_grad;
  ETC_ASSIGN_OR_RETURN(auto slots, ParseState(state));
  for (const auto& [name, slot] : slots) {
    if (!slot.mean.defined() || !slot.mean_square.defined() ||
        (CountsUpdates() && slot.updates < 1)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "optimizer state: that of parameter \"", name, "\" is incomplete"));
    }
  }
  slots_ = std::move(slots);
  return absl::OkStatus();
}

bool MatchesParameter(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

namespace {

// The names of the parameters that `pattern`, of `field`, names.
absl::StatusOr<std::vector<std::string>> NamesMatching(
    const std::string& field, const std::string& pattern,
    const NamedTensors& parameters) {
  std::vector<std::string> names;
  std::vector<std::string> matching;
  for (const auto& [name, parameter] : parameters) {
    names.push_back(name);
    if (MatchesParameter(pattern, name)) {
      matching.push_back(name);
    }
  }
  if (!matching.empty()) {
    return matching;
  }
  const std::string nearest = NearestName(pattern, names);
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": \"", pattern, "\" should name parameters of the model, but ",
      "names none",
      !nearest.empty()
          ? absl::StrCat("; did you mean \"", nearest, "\"?")
          : absl::StrCat("; \"", names.empty() ? "" : names.front(),
                         "\" is one")));
}

}  // namespace

absl::Status FreezeParameters(const std::vector<std::string>& patterns,
                              const NamedTensors& parameters) {
  for (const std::string& pattern : patterns) {
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                         NamesMatching("train.frozen", pattern, parameters));
    for (const std::string& name : names) {
      torch::Tensor(parameters.at(name)).set_requires_grad(false);
    }
  }
  if (!patterns.empty() && TrainedParameters(parameters).empty()) {
    return absl::InvalidArgumentError(
        "train.frozen should leave a parameter to train, but names all");
  }
  return absl::OkStatus();
}

NamedTensors TrainedParameters(const NamedTensors& parameters) {
  NamedTensors trained = parameters;
  std::erase_if(
      trained, [](const auto& entry) { return !entry.second.requires_grad(); });
  return trained;
}

absl::StatusOr<std::map<std::string, double>> ParameterFactors(
    double gate_factor, const std::vector<LearningRateFactor>& factors,
    const NamedTensors& parameters) {
  std::map<std::string, double> by_name;
  for (const auto& [name, parameter] : parameters) {
    if (IsGate(name)) {
      by_name[name] = gate_factor;
    }
  }
  for (const LearningRateFactor& factor : factors) {
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                         NamesMatching("train.learning_rate_factors",
                                       factor.parameters, parameters));
    for (const std::string& name : names) {
      by_name[name] = factor.factor;
    }
  }
  std::erase_if(by_name, [](const auto& entry) { return entry.second == 1.0; });
  return by_name;
}

bool IsDecayed(absl::string_view parameter_name) {
  return !absl::StrContains(parameter_name, "norm") &&
         !absl::StrContains(parameter_name, "bias") &&
         !IsGate(parameter_name) && !absl::EndsWith(parameter_name, "alpha") &&
         !absl::EndsWith(parameter_name, "omega");
}

double GradientNorm(const NamedTensors& parameters) {
  std::vector<torch::Tensor> gradients;
  for (const auto& [name, parameter] : parameters) {
    if (parameter.grad().defined()) {
      gradients.push_back(parameter.grad());
    }
  }
  return std::sqrt(TotalSquaredNorm(gradients));
}

double ParameterNorm(const NamedTensors& parameters) {
  std::vector<torch::Tensor> tensors;
  for (const auto& [name, parameter] : parameters) {
    tensors.push_back(parameter);
  }
  return std::sqrt(TotalSquaredNorm(tensors));
}

double ClipFactor(double norm, double max_norm) {
  return max_norm == 0 || norm <= max_norm ? 1.0 : max_norm / norm;
}

}  // namespace etc
