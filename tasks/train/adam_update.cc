#include "tasks/train/adam_update.h"

#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/parallel_tasks.h"
#include "etc/nn/kernels/adam.h"

namespace etc {
namespace {

bool IsPlainFloat(const torch::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.scalar_type() == torch::kFloat32 &&
         tensor.is_contiguous();
}

bool KernelsApply(const AdamUpdate& update) {
  return IsPlainFloat(update.parameter) && IsPlainFloat(update.gradient) &&
         IsPlainFloat(update.mean) && IsPlainFloat(update.mean_square);
}

// Elements [begin, end) of one of many tensors.
struct Chunk {
  size_t tensor;
  int64_t begin;
  int64_t end;
};

constexpr int64_t kChunkSize = int64_t{1} << 16;

// All elements of tensors of these sizes, in parts that follow from the sizes
// alone: small enough to share out evenly, large enough not to be many.
std::vector<Chunk> Chunks(const std::vector<int64_t>& sizes) {
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (int64_t begin = 0; begin < sizes[i]; begin += kChunkSize) {
      chunks.push_back({i, begin, std::min(begin + kChunkSize, sizes[i])});
    }
  }
  return chunks;
}

// The operands and constants of the kernels for one parameter.
struct Work {
  kernels::AdamStep step;
  kernels::AdamElements elements;
  bool by_norms;

  kernels::AdamElements Part(const Chunk& chunk) const {
    return {.count = chunk.end - chunk.begin,
            .gradient = elements.gradient + chunk.begin,
            .mean = elements.mean + chunk.begin,
            .mean_square = elements.mean_square + chunk.begin,
            .parameter = elements.parameter + chunk.begin};
  }
};

Work WorkOf(const AdamUpdate& update) {
  // u is m / (sqrt(v) sqrt(c1^2 / c2) + c1 epsilon) + weight_decay p.
  // Without a step the root is multiplied by 0 and epsilon infinite.
  const double s = update.step_factor;
  const double c1 = s == 0 ? 0 : update.mean_correction / s;
  return {.step = {.gradient_factor = update.gradient_factor,
                   .beta1 = update.beta1,
                   .beta2 = update.beta2,
                   .root_factor = c1 / std::sqrt(update.square_correction),
                   .epsilon = s == 0 ? std::numeric_limits<double>::infinity()
                                     : c1 * update.epsilon,
                   .decay = update.weight_decay,
                   .rate = update.learning_rate},
          .elements = {.count = update.parameter.numel(),
                       .gradient = update.gradient.data_ptr<float>(),
                       .mean = update.mean.data_ptr<float>(),
                       .mean_square = update.mean_square.data_ptr<float>(),
                       .parameter = update.parameter.data_ptr<float>()},
          .by_norms = update.by_norms};
}

double NormRatio(double parameter_norm, double direction_norm) {
  return parameter_norm > 0 && direction_norm > 0
             ? parameter_norm / direction_norm
             : 1.0;
}

// Updates the parameter and returns the sum of the squares of the changes.
// `before` has room for a copy of the part.
double UpdateAndMeasure(const kernels::AdamStep& step,
                        const kernels::AdamElements& part, float* before) {
  std::copy_n(part.parameter, part.count, before);
  kernels::UpdateParameter(step, part);
  for (int64_t i = 0; i < part.count; ++i) {
    before[i] = part.parameter[i] - before[i];
  }
  return kernels::SquaredNorm(part.count, before);
}

// Returns the sum of the squares of all changes.
double RunKernels(std::vector<Work> all) {
  std::vector<int64_t> sizes;
  for (const Work& work : all) {
    sizes.push_back(work.elements.count);
  }
  const std::vector<Chunk> chunks = Chunks(sizes);
  std::vector<kernels::SquaredNorms> norms(chunks.size());
  std::vector<double> changes(chunks.size());
  const auto for_each_chunk = [&](const auto& function) {
    ForEachTask(static_cast<int64_t>(chunks.size()), kChunkSize,
                [&](int64_t i, float* workspace) {
                  function(static_cast<size_t>(i), workspace);
                });
  };
  for_each_chunk([&](size_t i, float* workspace) {
    const Work& work = all[chunks[i].tensor];
    if (work.by_norms) {
      norms[i] = kernels::UpdateMeans(work.step, work.Part(chunks[i]));
    } else {
      changes[i] = UpdateAndMeasure(work.step, work.Part(chunks[i]), workspace);
    }
  });
  std::vector<kernels::SquaredNorms> totals(all.size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    totals[chunks[i].tensor].parameter += norms[i].parameter;
    totals[chunks[i].tensor].direction += norms[i].direction;
  }
  double change = std::accumulate(changes.begin(), changes.end(), 0.0);
  for (size_t t = 0; t < all.size(); ++t) {
    all[t].step.rate *= NormRatio(std::sqrt(totals[t].parameter),
                                  std::sqrt(totals[t].direction));
    change += all[t].step.rate * all[t].step.rate * totals[t].direction;
  }
  for_each_chunk([&](size_t i, float*) {
    const Work& work = all[chunks[i].tensor];
    if (work.by_norms) {
      kernels::MoveParameter(work.step, work.Part(chunks[i]));
    }
  });
  return change;
}

// The sum of the squares, a scalar in double on the tensor's device. In rows of
// a fixed length, so that the order of additions does not follow from the
// number of threads.
torch::Tensor SquaredNormByDefinition(const torch::Tensor& tensor) {
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

// A sum of scalars that waits for their device once, at the end.
class ScalarSum {
 public:
  void Add(const torch::Tensor& scalar) {
    sum_ = sum_.defined() ? sum_ + scalar.to(sum_.device()) : scalar;
  }
  double Value() const { return sum_.defined() ? sum_.item<double>() : 0.0; }

 private:
  torch::Tensor sum_;
};

// Squared norms of tensors of one device other than the CPU, summed: a scalar
// in double, by one operation for each tensor and few for all.
torch::Tensor SquaredNormOnDevice(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> norms;
  for (const torch::Tensor& tensor : tensors) {
    norms.push_back(at::linalg_vector_norm(tensor, 2, /*dim=*/c10::nullopt,
                                           /*keepdim=*/false, torch::kDouble));
  }
  return torch::stack(norms).square().sum();
}

// NormRatio as a scalar on the device, of squared norms.
torch::Tensor NormRatioOf(const torch::Tensor& parameter,
                          const torch::Tensor& direction) {
  return torch::where((parameter > 0).logical_and(direction > 0),
                      (parameter / direction).sqrt(),
                      torch::ones_like(parameter));
}

// The update. Returns the sum of the squares of the changes, a scalar on the
// device, for which nothing here waits.
torch::Tensor UpdateOnDevice_(const AdamUpdate& update) {
  torch::Tensor parameter = update.parameter;
  torch::Tensor mean = update.mean;
  torch::Tensor mean_square = update.mean_square;
  const torch::Tensor gradient = update.gradient * update.gradient_factor;
  mean.mul_(update.beta1).add_(gradient, 1 - update.beta1);
  mean_square.mul_(update.beta2).addcmul_(gradient, gradient, 1 - update.beta2);
  const torch::Tensor direction =
      mean / (update.mean_correction / update.step_factor) /
          ((mean_square / update.square_correction).sqrt() + update.epsilon) +
      update.weight_decay * parameter;
  const torch::Tensor squared_norm = SquaredNormByDefinition(direction);
  if (!update.by_norms) {
    parameter.sub_(direction, update.learning_rate);
    return update.learning_rate * update.learning_rate * squared_norm;
  }
  const torch::Tensor rate =
      update.learning_rate *
      NormRatioOf(SquaredNormByDefinition(parameter), squared_norm);
  parameter.sub_(direction * rate);
  return rate * rate * squared_norm;
}

// Updates of one device other than the CPU that differ in their tensors alone.
bool AreAlike(const AdamUpdate& a, const AdamUpdate& b) {
  const auto constants = [](const AdamUpdate& update) {
    return std::tuple(update.gradient_factor, update.beta1, update.beta2,
                      update.mean_correction, update.square_correction,
                      update.step_factor, update.epsilon, update.weight_decay,
                      update.learning_rate);
  };
  return a.parameter.device() == b.parameter.device() &&
         a.parameter.scalar_type() == b.parameter.scalar_type() &&
         constants(a) == constants(b);
}

// UpdateOnDevice_ of updates that are alike and not by norms, by operations on
// all of their tensors at once: a launch takes a device longer than most of the
// tensors. Numbers are those of UpdateOnDevice_.
torch::Tensor UpdateTogether_(const std::vector<AdamUpdate>& updates) {
  const AdamUpdate& constants = updates.front();
  std::vector<torch::Tensor> parameters, gradients, means, mean_squares;
  for (const AdamUpdate& update : updates) {
    parameters.push_back(update.parameter);
    gradients.push_back(update.gradient);
    means.push_back(update.mean);
    mean_squares.push_back(update.mean_square);
  }
  gradients = at::_foreach_mul(gradients, constants.gradient_factor);
  at::_foreach_mul_(means, constants.beta1);
  at::_foreach_add_(means, gradients, 1 - constants.beta1);
  at::_foreach_mul_(mean_squares, constants.beta2);
  at::_foreach_addcmul_(mean_squares, gradients, gradients,
                        1 - constants.beta2);
  std::vector<torch::Tensor> roots =
      at::_foreach_div(mean_squares, constants.square_correction);
  at::_foreach_sqrt_(roots);
  at::_foreach_add_(roots, constants.epsilon);
  const std::vector<torch::Tensor> directions = at::_foreach_div(
      means, constants.mean_correction / constants.step_factor);
  at::_foreach_div_(directions, roots);
  at::_foreach_add_(directions, parameters, constants.weight_decay);
  at::_foreach_add_(parameters, directions, -constants.learning_rate);
  return SquaredNormOnDevice(directions) * constants.learning_rate *
         constants.learning_rate;
}

// Numbers whose copies a device has at once, unless one tensor has more.
constexpr int64_t kNumbersTogether = int64_t{1} << 24;

// Applies updates on devices other than the CPU, in groups of those that are
// alike, and adds the sums of the squares of the changes.
void UpdateInGroups_(const std::vector<AdamUpdate>& updates,
                     ScalarSum* change) {
  std::vector<std::vector<AdamUpdate>> groups;
  for (const AdamUpdate& update : updates) {
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const std::vector<AdamUpdate>& one) {
                                      return AreAlike(one.front(), update);
                                    });
    if (group == groups.end()) {
      groups.push_back({update});
      continue;
    }
    group->push_back(update);
    int64_t numbers = 0;
    for (const AdamUpdate& one : *group) {
      numbers += one.parameter.numel();
    }
    if (numbers >= kNumbersTogether) {
      change->Add(UpdateTogether_(*group));
      groups.erase(group);
    }
  }
  for (const std::vector<AdamUpdate>& group : groups) {
    change->Add(UpdateTogether_(group));
  }
}

}  // namespace

double UpdateAll_(const std::vector<AdamUpdate>& updates) {
  const torch::NoGradGuard no_grad;
  ScalarSum change;
  std::vector<Work> work;
  std::vector<AdamUpdate> on_devices;
  for (const AdamUpdate& update : updates) {
    if (!update.parameter.is_cpu() && !update.by_norms) {
      on_devices.push_back(update);
    } else if (KernelsApply(update)) {
      work.push_back(WorkOf(update));
      // Counts the change as operations of LibTorch do.
      for (const torch::Tensor& changed :
           {update.parameter, update.mean, update.mean_square}) {
        changed.unsafeGetTensorImpl()->bump_version();
      }
    } else {
      change.Add(UpdateOnDevice_(update));
    }
  }
  UpdateInGroups_(on_devices, &change);
  return change.Value() + RunKernels(std::move(work));
}

double UpdateByDefinition_(const AdamUpdate& update) {
  const torch::NoGradGuard no_grad;
  return UpdateOnDevice_(update).item<double>();
}

double TotalSquaredNorm(const std::vector<torch::Tensor>& tensors) {
  const torch::NoGradGuard no_grad;
  ScalarSum others;
  std::vector<torch::Tensor> on_device;
  std::vector<const float*> data;
  std::vector<int64_t> sizes;
  for (const torch::Tensor& tensor : tensors) {
    if (IsPlainFloat(tensor)) {
      data.push_back(tensor.data_ptr<float>());
      sizes.push_back(tensor.numel());
    } else if (!tensor.is_cpu() && tensor.numel() > 0 &&
               (on_device.empty() ||
                tensor.device() == on_device.front().device())) {
      on_device.push_back(tensor);
    } else {
      others.Add(SquaredNormByDefinition(tensor));
    }
  }
  if (!on_device.empty()) {
    others.Add(SquaredNormOnDevice(on_device));
  }
  const std::vector<Chunk> chunks = Chunks(sizes);
  std::vector<double> norms(chunks.size());
  ForEachTask(static_cast<int64_t>(chunks.size()), /*floats=*/0,
              [&](int64_t i, float*) {
                const Chunk& chunk = chunks[static_cast<size_t>(i)];
                norms[static_cast<size_t>(i)] = kernels::SquaredNorm(
                    chunk.end - chunk.begin, data[chunk.tensor] + chunk.begin);
              });
  return std::accumulate(norms.begin(), norms.end(), others.Value());
}

}  // namespace etc
