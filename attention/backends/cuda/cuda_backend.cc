#include "attention/backends/cuda/cuda_backend.h"

#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <torch/cuda.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/backends/cuda/cuda_loader.h"
#include "attention/backends/cuda/device_runs.h"
#include "attention/backends/tensor_layout.h"
#include "attention/pattern.h"
#include "base/random.h"

namespace etc {
namespace {

namespace cuda = kernels::cuda;

std::atomic<const cuda::Kernels*> kernels_of_tests = nullptr;

absl::StatusOr<const cuda::Kernels*> FindKernels() {
  const cuda::Kernels* const of_tests = kernels_of_tests;
  return of_tests != nullptr ? of_tests : LoadedCudaKernels();
}

// For a problem that is supported.
const cuda::Kernels& KernelsInUse() { return **FindKernels(); }

// Blocks of threads that fill a device: a few for each multiprocessor. A
// constant, so that sums are divided the same way on each.
constexpr int64_t kBlocks = 1024;
// Steps of a split, at least.
constexpr int64_t kStepsOfASplit = 8;

// Parts among which `tiles` tiles of all heads divide their `steps`.
int32_t SplitsOf(int64_t tiles, int64_t steps) {
  return static_cast<int32_t>(
      std::clamp(kBlocks / std::max<int64_t>(tiles, 1), int64_t{1},
                 std::max<int64_t>(steps / kStepsOfASplit, 1)));
}

cuda::Rows CudaRows(const torch::Tensor& tensor) {
  TORCH_CHECK(tensor.stride(2) <= std::numeric_limits<int32_t>::max(),
              "rows of attention's operands are ", tensor.stride(2),
              " numbers apart, more than 2^31 - 1");
  return {.data = tensor.numel() == 0 ? nullptr : tensor.data_ptr(),
          .batch = tensor.stride(0),
          .head = tensor.stride(1),
          .row = tensor.stride(2)};
}

float* FloatsOf(const torch::Tensor& tensor) {
  return tensor.defined() && tensor.numel() > 0 ? tensor.data_ptr<float>()
                                                : nullptr;
}

cuda::ScoreBlocks BlocksOf(const ScorePair& scores) {
  return {.rows = {FloatsOf(scores.own), FloatsOf(scores.other)}};
}

bool SharesMemory(const torch::Tensor& a, const torch::Tensor& b) {
  return a.defined() && b.defined() && a.data_ptr() == b.data_ptr();
}

// The kernels write scores of pairs that see each other alone. Others are
// finite: what they were if the scores are changed in place, else 0.
void ClearUnless(const torch::Tensor& in_place, const torch::Tensor& scores) {
  if (scores.defined() && !SharesMemory(in_place, scores)) {
    torch::Tensor(scores).zero_();
  }
}

int64_t MaxDistance(const AttentionProblem& problem) {
  return problem.pattern.runs->empty()
             ? 0
             : (*problem.pattern.runs)[0].max_distance;
}

// Rows of the relative table that pairs may have; 0 without.
int64_t IdsOf(const AttentionProblem& problem) {
  return problem.operands.relative.embedding.defined() &&
                 MaxDistance(problem) > 0
             ? RelativeVocabSize(MaxDistance(problem))
             : 0;
}

cuda::Element ElementOf(const AttentionProblem& problem) {
  return problem.operands.query.scalar_type() == torch::kBFloat16
             ? cuda::Element::kBfloat16
             : cuda::Element::kFloat32;
}

// A softmax and the tensors that hold what it points at.
struct DeviceSoftmax {
  explicit DeviceSoftmax(const AttentionProblem& problem) {
    const AttentionOperands& operands = problem.operands;
    const AttentionSizes sizes(problem);
    const auto size = [](int64_t value) { return static_cast<int32_t>(value); };
    arguments.batch = size(sizes.batch);
    arguments.heads = size(sizes.heads);
    arguments.queries = size(sizes.queries);
    arguments.keys[0] = size(sizes.own_keys);
    arguments.keys[1] = size(sizes.other_keys);
    arguments.columns[0] = size(sizes.own_columns);
    arguments.columns[1] = size(sizes.other_keys);
    arguments.before = size(problem.pattern.window.before);
    arguments.after = size(problem.pattern.window.after);
    arguments.head_dim = size(sizes.head_dim);
    arguments.value_dim = size(sizes.value_dim);
    arguments.query = CudaRows(operands.query);
    arguments.key[0] = CudaRows(operands.own_key);
    arguments.key[1] = CudaRows(operands.other_key);
    arguments.value[0] = CudaRows(operands.own_value);
    arguments.value[1] = CudaRows(operands.other_value);
    runs = RunsOnDevice(problem.pattern.runs, operands.query.device());
    arguments.runs = runs.data_ptr<int32_t>();
    arguments.score_scale = static_cast<float>(
        problem.score_factor / std::sqrt(static_cast<double>(sizes.head_dim)));
    arguments.divisor = static_cast<float>(problem.divisor);
    arguments.gates[0] = FloatsOf(problem.gates.own);
    arguments.gates[1] = FloatsOf(problem.gates.other);
    if (problem.dropout > 0.0) {
      arguments.dropout_seed = problem.dropout_seed;
      arguments.first_head = static_cast<int>(problem.first_head);
      arguments.dropout_threshold = kernels::DropoutThreshold(problem.dropout);
      arguments.keep_factor = static_cast<float>(1.0 / (1.0 - problem.dropout));
    }
    AddRelative(problem);
  }

  void AddRelative(const AttentionProblem& problem) {
    const int64_t ids = IdsOf(problem);
    if (ids == 0) {
      return;
    }
    const RelativeTable& table = problem.operands.relative;
    embedding =
        table.embedding.to(problem.operands.query.scalar_type()).contiguous();
    bias = table.bias.contiguous();
    arguments.embedding = {.data = embedding.data_ptr(),
                           .batch = 0,
                           .head = embedding.stride(1),
                           .row = embedding.stride(0)};
    arguments.bias = FloatsOf(bias);
    arguments.ids = static_cast<int32_t>(ids);
    arguments.max_distance = static_cast<int32_t>(MaxDistance(problem));
  }

  cuda::Softmax arguments;
  torch::Tensor runs;
  torch::Tensor embedding;
  torch::Tensor bias;
};

// q . E[id] + bias[id] of all queries: [B, N, T, ids].
torch::Tensor ScoresById(const AttentionProblem& problem) {
  const RelativeTable& table = problem.operands.relative;
  const int64_t ids = IdsOf(problem);
  const torch::Tensor embedding = table.embedding.narrow(0, 0, ids)
                                      .to(problem.operands.query.scalar_type())
                                      .to(torch::kFloat32);
  return torch::matmul(problem.operands.query.to(torch::kFloat32),
                       embedding.permute({1, 2, 0}))
      .add_(table.bias.narrow(0, 0, ids).t().unsqueeze(1))
      .contiguous();
}

// Steps of keys that a tile of queries takes at most.
int64_t StepsOfQueries(const AttentionProblem& problem) {
  const AttentionSizes sizes(problem);
  const KeyWindow& window = problem.pattern.window;
  const int64_t own =
      window.is_restricted()
          ? std::min(sizes.own_keys, window.columns() + cuda::kTile)
          : sizes.own_keys;
  return (own + sizes.other_keys) / cuda::kStep;
}

int32_t SplitsOfQueries(const AttentionProblem& problem) {
  const AttentionSizes sizes(problem);
  return SplitsOf(cuda::TilesOf(static_cast<int32_t>(sizes.queries)) *
                      sizes.batch * sizes.heads,
                  StepsOfQueries(problem));
}

int32_t SplitsOfKeys(const AttentionProblem& problem, int block) {
  const AttentionSizes sizes(problem);
  const KeyWindow& window = problem.pattern.window;
  const bool has_window = block == 0 && window.is_restricted();
  const int64_t queries =
      has_window ? std::min(sizes.queries, window.columns() + cuda::kTile)
                 : sizes.queries;
  const int64_t keys = block == 0 ? sizes.own_keys : sizes.other_keys;
  return SplitsOf(
      cuda::TilesOf(static_cast<int32_t>(keys)) * sizes.batch * sizes.heads,
      queries / cuda::kStep);
}

bool IsEmpty(const AttentionProblem& problem) {
  const AttentionSizes sizes(problem);
  return sizes.batch * sizes.heads * sizes.queries == 0;
}

torch::Tensor NewFloats(const AttentionProblem& problem,
                        at::IntArrayRef shape) {
  return torch::empty(shape, problem.operands.query.options()
                                 .dtype(torch::kFloat32)
                                 .requires_grad(false));
}

class CudaBackwardPass {
 public:
  CudaBackwardPass(const AttentionProblem& problem,
                   const AttentionForward& forward,
                   const torch::Tensor& context_gradient,
                   const ScoreGradients& scores)
      : problem_(problem),
        sizes_(problem),
        kernels_(KernelsInUse()),
        stream_(kernels_.current_stream()),
        element_(ElementOf(problem)),
        softmax_(problem),
        previous_gradient_(scores.previous) {
    const torch::ScalarType type = problem.operands.query.scalar_type();
    context_gradient_ = context_gradient.defined()
                            ? WithAdjacentElements(context_gradient.to(type))
                            : torch::zeros_like(forward.context);
    context_dot_ =
        NewFloats(problem, {sizes_.batch, sizes_.heads, sizes_.queries});
    carried_gradient_ = {.own = ContiguousOrUndefined(scores.carried.own),
                         .other = ContiguousOrUndefined(scores.carried.other)};
    arguments_.softmax = softmax_.arguments;
    if (problem.carry) {
      arguments_.carried = BlocksOf(problem.carried);
      arguments_.carried_gradient = BlocksOf(carried_gradient_);
      arguments_.previous_gradient = BlocksOf(scores.previous);
      arguments_.undo = scores.undo;
    }
    arguments_.row_max = FloatsOf(forward.saved[0]);
    arguments_.row_inverse_sum = FloatsOf(forward.saved[1]);
    arguments_.context = CudaRows(forward.context);
    arguments_.context_gradient = CudaRows(context_gradient_);
    arguments_.context_dot = FloatsOf(context_dot_);
  }

  AttentionGradients Run() {
    if (softmax_.arguments.ids > 0 &&
        (!problem_.carry || problem_.gates.defined())) {
      by_id_ = ScoresById(problem_);
      arguments_.by_id = FloatsOf(by_id_);
    }
    if (!IsEmpty(problem_)) {
      kernels_.context_dots(arguments_, element_, stream_);
    }
    RunKeys(0);
    RunKeys(1);
    // The last to read the gradients of the carried scores.
    ClearUnless(carried_gradient_.own, previous_gradient_.own);
    ClearUnless(carried_gradient_.other, previous_gradient_.other);
    RunQueries();
    return gradients_;
  }

 private:
  int64_t Tiles() const {
    return cuda::TilesOf(static_cast<int32_t>(sizes_.queries));
  }

  void RunKeys(int block) {
    const AttentionOperands& operands = problem_.operands;
    const torch::Tensor& key =
        block == 0 ? operands.own_key : operands.other_key;
    const torch::Tensor& value =
        block == 0 ? operands.own_value : operands.other_value;
    torch::Tensor key_gradient = EmptyHeadRows(key.sizes(), key.options());
    torch::Tensor value_gradient =
        EmptyHeadRows(value.sizes(), value.options());
    if (IsEmpty(problem_)) {
      key_gradient.zero_();
      value_gradient.zero_();
    } else if (key.numel() + value.numel() > 0) {
      const int32_t splits = SplitsOfKeys(problem_, block);
      torch::Tensor key_sums, value_sums;
      if (splits > 1) {
        const auto sums = [&](const torch::Tensor& like) {
          return NewFloats(problem_, {splits, sizes_.batch, sizes_.heads,
                                      like.size(2), like.size(3)});
        };
        key_sums = sums(key);
        value_sums = sums(value);
      }
      cuda::BackwardArguments arguments = arguments_;
      arguments.key_gradient = CudaRows(key_gradient);
      arguments.value_gradient = CudaRows(value_gradient);
      arguments.key_splits = {.count = splits, .sums = FloatsOf(key_sums)};
      arguments.value_splits = {.count = splits, .sums = FloatsOf(value_sums)};
      kernels_.key_gradients(arguments, block, element_, stream_);
      if (splits > 1) {
        key_gradient.copy_(key_sums.sum(0));
        value_gradient.copy_(value_sums.sum(0));
      }
    }
    AttentionOperands& out = gradients_.operands;
    (block == 0 ? out.own_key : out.other_key) = key_gradient;
    (block == 0 ? out.own_value : out.other_value) = value_gradient;
  }

  void RunQueries() {
    const torch::Tensor& query = problem_.operands.query;
    torch::Tensor query_gradient =
        EmptyHeadRows(query.sizes(), query.options());
    const int32_t splits = SplitsOfQueries(problem_);
    const int64_t ids = softmax_.arguments.ids;
    const bool is_gated = problem_.gates.defined();
    torch::Tensor sums, embedding, bias, gates;
    const auto of_blocks = [&](std::vector<int64_t> shape) {
      shape.insert(shape.begin(),
                   {splits * Tiles(), sizes_.batch, sizes_.heads});
      return NewFloats(problem_, shape);
    };
    if (splits > 1) {
      sums = NewFloats(problem_, {splits, sizes_.batch, sizes_.heads,
                                  sizes_.queries, sizes_.head_dim});
    }
    if (ids > 0) {
      embedding = of_blocks({ids, sizes_.head_dim});
      bias = of_blocks({ids});
    }
    if (is_gated) {
      gates = of_blocks({2});
    }
    if (!IsEmpty(problem_)) {
      cuda::BackwardArguments arguments = arguments_;
      arguments.query_gradient = CudaRows(query_gradient);
      arguments.query_splits = {.count = splits, .sums = FloatsOf(sums)};
      arguments.embedding_gradient = FloatsOf(embedding);
      arguments.bias_gradient = FloatsOf(bias);
      arguments.gate_gradient = FloatsOf(gates);
      kernels_.query_gradients(arguments, element_, stream_);
    }
    if (splits > 1) {
      query_gradient.copy_(sums.sum(0));
    }
    gradients_.operands.query = query_gradient;
    SetRelative(embedding, bias);
    if (is_gated) {
      const torch::Tensor both = gates.sum(at::IntArrayRef({0, 1}));
      gradients_.gates = {.own = both.select(1, 0).contiguous(),
                          .other = both.select(1, 1).contiguous()};
    }
  }

  // Sums the parts of blocks of threads, [blocks, B, N, ids, d] and [blocks, B,
  // N, ids]; undefined: no pair reads the table.
  void SetRelative(const torch::Tensor& embedding, const torch::Tensor& bias) {
    const RelativeTable& table = problem_.operands.relative;
    if (!table.embedding.defined()) {
      return;
    }
    RelativeTable& out = gradients_.operands.relative;
    out.embedding = torch::zeros_like(table.embedding);
    out.bias = torch::zeros_like(table.bias);
    if (embedding.defined()) {
      const int64_t ids = bias.size(3);
      const std::vector<int64_t> parts = {0, 1};
      out.embedding.narrow(0, 0, ids).copy_(
          embedding.sum(parts).transpose(0, 1));
      out.bias.narrow(0, 0, ids).copy_(bias.sum(parts).t());
    }
  }

  const AttentionProblem& problem_;
  const AttentionSizes sizes_;
  const cuda::Kernels& kernels_;
  void* const stream_;
  const cuda::Element element_;
  const DeviceSoftmax softmax_;
  const ScorePair previous_gradient_;
  ScorePair carried_gradient_;
  torch::Tensor context_gradient_;
  torch::Tensor context_dot_;
  torch::Tensor by_id_;
  cuda::BackwardArguments arguments_;
  AttentionGradients gradients_;
};

// The reason why sizes are beyond the kernels; empty if they are not.
std::string ReasonOfSizes(const AttentionProblem& problem) {
  const AttentionSizes sizes(problem);
  if (std::max(sizes.head_dim, sizes.value_dim) > cuda::Kernels::kMostColumns) {
    return c10::str("heads of ", std::max(sizes.head_dim, sizes.value_dim),
                    " features, more than ", cuda::Kernels::kMostColumns);
  }
  constexpr int64_t kMostHeads = 65535;  // of a grid's second dimension
  if (sizes.batch * sizes.heads > kMostHeads) {
    return c10::str(sizes.batch * sizes.heads,
                    " heads of all examples, more than ", kMostHeads);
  }
  if (std::max({sizes.queries, sizes.own_keys, sizes.other_keys}) >
      std::numeric_limits<int32_t>::max() / 2) {
    return "more than 2^30 tokens";
  }
  return "";
}

// The reason why types and devices are others; empty if they are not.
std::string ReasonOfTensors(const AttentionProblem& problem) {
  const torch::Tensor& query = problem.operands.query;
  if (!query.is_cuda()) {
    return c10::str("a tensor is on ", query.device().str(),
                    ", not on a CUDA device");
  }
  std::string reason;
  problem.operands.ForEachTensor([&](const torch::Tensor& tensor) {
    if (reason.empty() && tensor.defined() &&
        tensor.scalar_type() != torch::kFloat32 &&
        tensor.scalar_type() != torch::kBFloat16) {
      reason = c10::str("a tensor is ", c10::toString(tensor.scalar_type()),
                        ", not Float or BFloat16");
    }
  });
  problem.previous.ForEachTensor([&](const torch::Tensor& scores) {
    if (reason.empty() && scores.defined() &&
        scores.scalar_type() != torch::kFloat32) {
      reason = "previous scores are not Float";
    }
  });
  return reason;
}

}  // namespace

void CudaBackend::UseKernels(const kernels::cuda::Kernels* kernels) {
  kernels_of_tests = kernels;
}

std::string CudaBackend::UnsupportedDeviceReason(const torch::Device& device) {
  const absl::StatusOr<const cuda::Kernels*> found = FindKernels();
  if (!found.ok()) {
    return c10::str("there are no kernels, which a build with ETC_CUDA has: ",
                    found.status().message());
  }
  if (device.index() >= static_cast<int64_t>(torch::cuda::device_count())) {
    return c10::str("LibTorch finds no ", device.str());
  }
  const c10::DeviceGuard guard(device);
  return (*found)->unsupported_device();
}

std::string CudaBackend::UnsupportedReason(
    const AttentionProblem& problem) const {
  std::string reason = ReasonOfTensors(problem);
  if (!reason.empty()) {
    return reason;
  }
  const absl::StatusOr<const cuda::Kernels*> found = FindKernels();
  if (!found.ok()) {
    return std::string(found.status().message());
  }
  const cuda::Kernels* const kernels = *found;
  if (problem.pattern.runs == nullptr) {
    return "masks or relative ids are tensors that are not runs of keys";
  }
  reason = ReasonOfSizes(problem);
  if (!reason.empty()) {
    return reason;
  }
  const c10::DeviceGuard guard(problem.operands.query.device());
  reason = kernels->unsupported_device();
  if (!reason.empty()) {
    return reason;
  }
  const AttentionSizes sizes(problem);
  cuda::Softmax shape;
  shape.head_dim = static_cast<int32_t>(sizes.head_dim);
  shape.value_dim = static_cast<int32_t>(sizes.value_dim);
  shape.ids = static_cast<int32_t>(IdsOf(problem));
  const size_t bytes = kernels->shared_memory(shape, ElementOf(problem));
  return bytes <= kernels->most_shared_memory()
             ? ""
             : c10::str("a block of threads would need ", bytes,
                        " bytes of shared memory, but has ",
                        kernels->most_shared_memory());
}

void CudaBackend::Prepare(AttentionProblem* problem) const {
  AttentionOperands& operands = problem->operands;
  const torch::ScalarType type = operands.query.scalar_type();
  for (torch::Tensor* tensor :
       {&operands.query, &operands.own_key, &operands.own_value,
        &operands.other_key, &operands.other_value}) {
    *tensor = WithAdjacentElements(tensor->to(type));
  }
  const auto to_float = [](torch::Tensor& tensor) {
    if (tensor.defined()) {
      tensor = tensor.to(torch::kFloat32).contiguous();
    }
  };
  to_float(operands.relative.embedding);
  to_float(operands.relative.bias);
  problem->previous.ForEachTensor(to_float);
  problem->gates.ForEachTensor(to_float);
}

ScorePair CudaBackend::NewScores(const AttentionProblem& problem) const {
  return EmptyScores(AttentionSizes(problem),
                     problem.operands.query.options().dtype(torch::kFloat32));
}

AttentionForward CudaBackend::Forward(const AttentionProblem& problem) const {
  const torch::NoGradGuard no_grad;
  const c10::DeviceGuard guard(problem.operands.query.device());
  const AttentionSizes sizes(problem);
  const torch::Tensor& query = problem.operands.query;
  const torch::Tensor context =
      EmptyHeadRows({sizes.batch, sizes.heads, sizes.queries, sizes.value_dim},
                    query.options());
  const torch::Tensor row_max =
      NewFloats(problem, {sizes.batch, sizes.heads, sizes.queries});
  const torch::Tensor row_inverse_sum = torch::empty_like(row_max);
  ClearUnless(problem.previous.own, problem.carried.own);
  ClearUnless(problem.previous.other, problem.carried.other);
  AttentionForward result = {.context = context,
                             .scores = problem.carried,
                             .saved = {row_max, row_inverse_sum}};
  if (IsEmpty(problem)) {
    return result;
  }
  const cuda::Kernels& kernels = KernelsInUse();
  const DeviceSoftmax softmax(problem);
  cuda::ForwardArguments arguments = {.softmax = softmax.arguments,
                                      .previous = BlocksOf(problem.previous),
                                      .carried = BlocksOf(problem.carried)};
  arguments.context = CudaRows(context);
  arguments.row_max = FloatsOf(row_max);
  arguments.row_inverse_sum = FloatsOf(row_inverse_sum);
  const int32_t splits = SplitsOfQueries(problem);
  torch::Tensor sums, split_max, split_sum;
  if (splits > 1) {
    sums = NewFloats(problem, {splits, sizes.batch, sizes.heads, sizes.queries,
                               sizes.value_dim});
    split_max =
        NewFloats(problem, {splits, sizes.batch, sizes.heads, sizes.queries});
    split_sum = torch::empty_like(split_max);
    arguments.split_max = FloatsOf(split_max);
    arguments.split_sum = FloatsOf(split_sum);
  }
  arguments.splits = {.count = splits, .sums = FloatsOf(sums)};
  kernels.forward(arguments, ElementOf(problem), kernels.current_stream());
  return result;
}

void CudaBackend::RecomputeScores(const AttentionProblem& problem,
                                  bool subtract) const {
  const torch::NoGradGuard no_grad;
  const c10::DeviceGuard guard(problem.operands.query.device());
  ClearUnless(problem.previous.own, problem.carried.own);
  ClearUnless(problem.previous.other, problem.carried.other);
  if (IsEmpty(problem)) {
    return;
  }
  const cuda::Kernels& kernels = KernelsInUse();
  const DeviceSoftmax softmax(problem);
  const cuda::ForwardArguments arguments = {
      .softmax = softmax.arguments,
      .previous = BlocksOf(problem.previous),
      .carried = BlocksOf(problem.carried),
      .subtract = subtract};
  kernels.forward(arguments, ElementOf(problem), kernels.current_stream());
}

AttentionGradients CudaBackend::Backward(const AttentionProblem& problem,
                                         const AttentionForward& forward,
                                         const torch::Tensor& context_gradient,
                                         const ScoreGradients& scores) const {
  const torch::NoGradGuard no_grad;
  const c10::DeviceGuard guard(problem.operands.query.device());
  return CudaBackwardPass(problem, forward, context_gradient, scores).Run();
}

}  // namespace etc
