#include "tasks/train/optimizer.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "etc/formats/status_macros.h"

namespace etc {
namespace {

// Sum of squares: a scalar of kDouble. Rows of a fixed length are summed first,
// so that the order of additions does not follow from the number of threads.
torch::Tensor SquaredNorm(const torch::Tensor& tensor) {
  constexpr int64_t kRow = 1024;
  const torch::Tensor flat = tensor.reshape({-1});
  const int64_t whole = flat.numel() / kRow * kRow;
  return flat.narrow(0, 0, whole)
             .view({-1, kRow})
             .square()
             .sum(/*dim=*/1, /*keepdim=*/false, torch::kDouble)
             .sum() +
         flat.narrow(0, whole, flat.numel() - whole)
             .square()
             .sum(torch::kDouble);
}

// The running means of one parameter.
struct Slots {
  torch::Tensor mean;         // m, of the parameter's shape
  torch::Tensor mean_square;  // v
  int64_t updates = 0;
};

// What the three types share: the running means and their names. A type adds
// how a parameter follows from them.
class AdamOptimizer : public Optimizer {
 public:
  AdamOptimizer(const OptimizerConfig& config, NamedTensors parameters)
      : config_(config), parameters_(std::move(parameters)) {}

  void Step(double learning_rate) override;
  NamedTensors State() const override;
  absl::Status LoadState(const NamedTensors& state) override;

 protected:
  struct Update {
    torch::Tensor parameter;
    const Slots& slots;
    bool decayed;
    double learning_rate;
  };
  virtual void Apply(Update update) const = 0;
  // Whether the next update depends on the number of updates so far.
  virtual bool CountsUpdates() const { return false; }

  // u of bert_adamw and lamb.
  torch::Tensor Direction(const Update& update) const;

  const OptimizerConfig config_;

 private:
  absl::StatusOr<std::map<std::string, Slots>> ParseState(
      const NamedTensors& state) const;

  const NamedTensors parameters_;
  // Of the parameters that have had a gradient.
  std::map<std::string, Slots> slots_;
};

void AdamOptimizer::Step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  for (const auto& [name, parameter] : parameters_) {
    const torch::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) {
      continue;
    }
    Slots& slots = slots_[name];
    if (!slots.mean.defined()) {
      slots.mean = torch::zeros_like(parameter);
      slots.mean_square = torch::zeros_like(parameter);
    }
    slots.mean.mul_(config_.beta1).add_(gradient, 1 - config_.beta1);
    slots.mean_square.mul_(config_.beta2)
        .addcmul_(gradient, gradient, 1 - config_.beta2);
    ++slots.updates;
    Apply({.parameter = parameter,
           .slots = slots,
           .decayed = IsDecayed(name),
           .learning_rate = learning_rate});
  }
}

torch::Tensor AdamOptimizer::Direction(const Update& update) const {
  torch::Tensor direction =
      update.slots.mean / update.slots.mean_square.sqrt().add_(config_.epsilon);
  if (update.decayed && config_.weight_decay != 0) {
    direction.add_(update.parameter, config_.weight_decay);
  }
  return direction;
}

NamedTensors AdamOptimizer::State() const {
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

absl::StatusOr<std::map<std::string, Slots>> AdamOptimizer::ParseState(
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
      return absl::InvalidArgumentError(
          absl::StrCat("optimizer state: \"", key, "\" should have shape [",
                       absl::StrJoin(shape, ", "), "], but has [",
                       absl::StrJoin(tensor.sizes(), ", "), "]"));
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

absl::Status AdamOptimizer::LoadState(const NamedTensors& state) {
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

class BertAdamW : public AdamOptimizer {
 public:
  using AdamOptimizer::AdamOptimizer;

 private:
  void Apply(Update update) const override {
    update.parameter.sub_(Direction(update), update.learning_rate);
  }
};

class Lamb : public AdamOptimizer {
 public:
  using AdamOptimizer::AdamOptimizer;

 private:
  void Apply(Update update) const override {
    const torch::Tensor direction = Direction(update);
    double ratio = 1;
    if (update.decayed) {
      const torch::Tensor norms =
          torch::stack({SquaredNorm(update.parameter), SquaredNorm(direction)})
              .sqrt()
              .cpu();
      const double parameter_norm = norms[0].item<double>();
      const double direction_norm = norms[1].item<double>();
      if (parameter_norm > 0 && direction_norm > 0) {
        ratio = parameter_norm / direction_norm;
      }
    }
    update.parameter.sub_(direction, update.learning_rate * ratio);
  }
};

class AdamW : public AdamOptimizer {
 public:
  using AdamOptimizer::AdamOptimizer;

 private:
  bool CountsUpdates() const override { return true; }

  void Apply(Update update) const override {
    const auto updates = static_cast<double>(update.slots.updates);
    const double mean_correction = 1 - std::pow(config_.beta1, updates);
    const double square_correction = 1 - std::pow(config_.beta2, updates);
    if (update.decayed) {
      update.parameter.mul_(1 - update.learning_rate * config_.weight_decay);
    }
    const torch::Tensor denominator = update.slots.mean_square.sqrt()
                                          .div_(std::sqrt(square_correction))
                                          .add_(config_.epsilon);
    update.parameter.addcdiv_(update.slots.mean, denominator,
                              -update.learning_rate / mean_correction);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(
    const OptimizerConfig& config, NamedTensors parameters) {
  if (config.type == "bert_adamw") {
    return std::make_unique<BertAdamW>(config, std::move(parameters));
  }
  if (config.type == "lamb") {
    return std::make_unique<Lamb>(config, std::move(parameters));
  }
  if (config.type == "adamw") {
    return std::make_unique<AdamW>(config, std::move(parameters));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer.type should be \"bert_adamw\", \"lamb\" or "
                   "\"adamw\", but is \"",
                   config.type, "\""));
}

bool IsDecayed(absl::string_view parameter_name) {
  return !absl::StrContains(parameter_name, "norm") &&
         !absl::StrContains(parameter_name, "bias");
}

double GradientNorm(const NamedTensors& parameters) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> squares;
  for (const auto& [name, parameter] : parameters) {
    if (parameter.grad().defined()) {
      squares.push_back(SquaredNorm(parameter.grad()));
    }
  }
  if (squares.empty()) {
    return 0;
  }
  return std::sqrt(torch::stack(squares).sum().item<double>());
}

void ClipGradients_(const NamedTensors& parameters, double norm,
                    double max_norm) {
  const torch::NoGradGuard no_grad;
  if (max_norm == 0 || norm <= max_norm) {
    return;
  }
  for (const auto& [name, parameter] : parameters) {
    if (parameter.grad().defined()) {
      parameter.grad().mul_(max_norm / norm);
    }
  }
}

}  // namespace etc
