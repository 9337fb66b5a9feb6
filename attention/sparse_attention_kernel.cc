// Sparse attention by the fused kernels: checks, and what autograd wants.

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

#include "attention/check_shape.h"
#include "attention/joint_softmax.h"
#include "attention/kernel_passes.h"
#include "attention/kernels/dropout.h"
#include "attention/relative_position.h"
#include "attention/sparse_attention.h"

namespace etc {
namespace {

// Rows whose elements are adjacent.
torch::Tensor WithAdjacentElements(const torch::Tensor& tensor) {
  return tensor.size(3) == 1 || tensor.stride(3) == 1 ? tensor
                                                      : tensor.contiguous();
}

torch::Tensor ContiguousOrUndefined(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.contiguous() : tensor;
}

void CheckRelativeTable(const KernelProblem& problem) {
  const int64_t distance = (*problem.runs)[0].max_distance;
  const RelativeTable& table = problem.relative;
  TORCH_CHECK(table.embedding.defined() && table.bias.defined(),
              "relative ids are given, but there is no relative table");
  const int64_t ids = table.embedding.size(0);
  const int64_t heads = problem.query.size(1);
  const int64_t head_dim = problem.query.size(3);
  ETC_CHECK_SHAPE(table.embedding, {ids, heads, head_dim});
  ETC_CHECK_SHAPE(table.bias, {ids, heads});
  TORCH_CHECK(ids >= RelativeVocabSize(distance),
              "the relative table should have at least ",
              RelativeVocabSize(distance), " ids for a distance of ", distance,
              ", but has ", ids);
}

// The tensors of a problem, in a fixed order, for autograd.
constexpr size_t kTensors = 9;
std::vector<torch::Tensor> TensorsOf(const KernelProblem& problem) {
  return {
      problem.query,         problem.own_key,      problem.own_value,
      problem.other_key,     problem.other_value,  problem.relative.embedding,
      problem.relative.bias, problem.own_previous, problem.other_previous};
}

KernelProblem WithTensors(KernelProblem problem,
                          const std::vector<torch::Tensor>& tensors) {
  problem.query = tensors[0];
  problem.own_key = tensors[1];
  problem.own_value = tensors[2];
  problem.other_key = tensors[3];
  problem.other_value = tensors[4];
  problem.relative = {.embedding = tensors[5], .bias = tensors[6]};
  problem.own_previous = tensors[7];
  problem.other_previous = tensors[8];
  return problem;
}

// A problem without its tensors, which autograd keeps; it takes none that are
// undefined.
struct ProblemHolder : torch::CustomClassHolder {
  // `defined`: those of TensorsOf that are defined, in order.
  KernelProblem WithDefined(const std::vector<torch::Tensor>& defined) const {
    std::vector<torch::Tensor> all(kTensors);
    size_t next = 0;
    for (size_t i = 0; i < kTensors; ++i) {
      if (is_defined[i]) {
        all[i] = defined[next++];
      }
    }
    return WithTensors(problem, all);
  }

  KernelProblem problem;
  std::vector<bool> is_defined;  // [kTensors]
};

std::vector<torch::Tensor> OnlyDefined(
    const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> defined;
  for (const torch::Tensor& tensor : tensors) {
    if (tensor.defined()) {
      defined.push_back(tensor);
    }
  }
  return defined;
}

class KernelFunction : public torch::autograd::Function<KernelFunction> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Variables = torch::autograd::variable_list;

  // Gives context and, if scores are carried, own and other scores.
  static Variables forward(Context* context,
                           const c10::intrusive_ptr<ProblemHolder>& holder,
                           at::TensorList tensors) {
    context->set_materialize_grads(false);
    const KernelProblem problem = holder->WithDefined(tensors.vec());
    const KernelForward result = RunKernelForward(problem);
    Variables saved = {result.context, result.own_scores, result.other_scores,
                       result.row_max, result.row_inverse_sum};
    saved.insert(saved.end(), tensors.begin(), tensors.end());
    context->save_for_backward(saved);
    context->saved_data["problem"] = c10::IValue::make_capsule(holder);
    if (!problem.carry) {
      return {result.context};
    }
    return {result.context, result.own_scores, result.other_scores};
  }

  static Variables backward(Context* context, Variables gradients) {
    TORCH_CHECK(!torch::GradMode::is_enabled(),
                "gradients of gradients do not pass the attention kernels; use "
                "AttentionImplementation::kReference or kBlocked for them");
    const c10::intrusive_ptr<ProblemHolder> holder =
        c10::static_intrusive_pointer_cast<ProblemHolder>(
            context->saved_data["problem"].toCapsule());
    const Variables saved = context->get_saved_variables();
    const KernelForward result = {.context = saved[0],
                                  .own_scores = saved[1],
                                  .other_scores = saved[2],
                                  .row_max = saved[3],
                                  .row_inverse_sum = saved[4]};
    const KernelProblem problem =
        holder->WithDefined({saved.begin() + 5, saved.end()});
    SparseAttentionOutput gradient;
    if (gradients[0].defined()) {
      gradient.context = WithAdjacentElements(gradients[0]);
    }
    if (problem.carry) {
      gradient.own_scores = ContiguousOrUndefined(gradients[1]);
      gradient.other_scores = ContiguousOrUndefined(gradients[2]);
    }
    const KernelGradients out = RunKernelBackward(problem, result, gradient);
    Variables all =
        OnlyDefined({out.query, out.own_key, out.own_value, out.other_key,
                     out.other_value, out.relative.embedding, out.relative.bias,
                     out.own_previous, out.other_previous});
    all.insert(all.begin(), torch::Tensor());  // that of the holder
    return all;
  }
};

KernelProblem MakeProblem(const SparseAttentionInput& input) {
  const bool is_long = input.side == QuerySide::kLong;
  const int64_t own = input.query.size(2);
  const int64_t other = input.other_key.size(2);
  KernelProblem problem = {
      .side = input.side,
      .query = WithAdjacentElements(input.query),
      .own_key = WithAdjacentElements(input.own_key),
      .own_value = WithAdjacentElements(input.own_value),
      .other_key = WithAdjacentElements(input.other_key),
      .other_value = WithAdjacentElements(input.other_value),
      .own_previous = ContiguousOrUndefined(input.own_previous),
      .other_previous = ContiguousOrUndefined(input.other_previous),
      .runs = input.attention->Runs(input.query.size(0), is_long ? own : other,
                                    is_long ? other : own, input.local_radius),
      .local_radius = input.local_radius,
      .carry = input.residual != ResidualAttention::kOff,
      .divisor = ScoreDivisor(input),
      .dropout = input.dropout};
  if (!problem.runs->empty() && (*problem.runs)[0].max_distance > 0) {
    problem.relative = {
        .embedding = ContiguousOrUndefined(input.relative.embedding),
        .bias = ContiguousOrUndefined(input.relative.bias)};
    CheckRelativeTable(problem);
  }
  if (input.dropout > 0.0) {
    problem.dropout_seed = DrawKernelDropoutSeed();
  }
  return problem;
}

bool AnyRequiresGradient(const std::vector<torch::Tensor>& tensors) {
  for (const torch::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.requires_grad()) {
      return true;
    }
  }
  return false;
}

// [B, N, queries, columns] of factors; `key_of(i, column)` is the key.
template <typename KeyOf>
torch::Tensor DropoutFactors(uint64_t seed, const SparseAttentionInput& input,
                             int64_t columns, int block, const KeyOf& key_of) {
  const int64_t queries = input.query.size(2);
  torch::Tensor factors =
      torch::empty({input.query.size(0), input.query.size(1), queries, columns},
                   torch::kFloat32);
  auto accessor = factors.accessor<float, 4>();
  for (int64_t b = 0; b < factors.size(0); ++b) {
    for (int64_t h = 0; h < factors.size(1); ++h) {
      const uint64_t head_seed = kernels::DropoutHeadSeed(seed, b, h);
      for (int64_t i = 0; i < queries; ++i) {
        const kernels::DropoutRow row =
            kernels::MakeDropoutRow(head_seed, i, block);
        for (int64_t c = 0; c < columns; ++c) {
          accessor[b][h][i][c] = kernels::DropoutFactor(
              row, static_cast<uint32_t>(key_of(i, c)), input.dropout);
        }
      }
    }
  }
  return factors;
}

}  // namespace

std::string WhyKernelsDoNotServe(const SparseAttentionInput& input) {
  for (const torch::Tensor& tensor :
       {input.query, input.own_key, input.own_value, input.other_key,
        input.other_value, input.relative.embedding, input.relative.bias,
        input.own_previous, input.other_previous}) {
    if (!tensor.defined()) {
      continue;
    }
    if (!tensor.device().is_cpu()) {
      return "a tensor is on " + tensor.device().str() + ", not on the CPU";
    }
    if (tensor.scalar_type() != torch::kFloat32) {
      return std::string("a tensor is ") + c10::toString(tensor.scalar_type()) +
             ", not Float";
    }
  }
  if (input.attention->has_tensors()) {
    return "masks or relative ids are explicit tensors, not patterns";
  }
  if (input.own_dropout_factors.defined()) {
    return "dropout factors are given";
  }
  return "";
}

uint64_t DrawKernelDropoutSeed() {
  return static_cast<uint64_t>(
      torch::randint(std::numeric_limits<int64_t>::max(), {1}, torch::kInt64)
          .item<int64_t>());
}

void SpellOutKernelDropout(uint64_t seed, SparseAttentionInput* input) {
  const bool is_long = input->side == QuerySide::kLong;
  const int64_t radius = input->local_radius;
  input->own_dropout_factors = DropoutFactors(
      seed, *input, is_long ? 2 * radius + 1 : input->query.size(2), 0,
      [&](int64_t i, int64_t c) { return is_long ? i + c - radius : c; });
  input->other_dropout_factors =
      DropoutFactors(seed, *input, input->other_key.size(2), 1,
                     [](int64_t, int64_t c) { return c; });
}

SparseAttentionOutput KernelSparseAttention(const SparseAttentionInput& input) {
  CheckSparseAttentionShapes(input);
  const std::string reason = WhyKernelsDoNotServe(input);
  TORCH_CHECK(reason.empty(),
              "the attention kernels do not serve this: ", reason);
  TORCH_CHECK(input.dropout >= 0.0 && input.dropout < 1.0,
              "dropout should be in [0, 1), but is ", input.dropout);
  const KernelProblem problem = MakeProblem(input);
  const std::vector<torch::Tensor> tensors = TensorsOf(problem);
  if (!torch::GradMode::is_enabled() || !AnyRequiresGradient(tensors)) {
    const KernelForward result = RunKernelForward(problem);
    return {.context = result.context,
            .own_scores = result.own_scores,
            .other_scores = result.other_scores};
  }
  const c10::intrusive_ptr<ProblemHolder> holder =
      c10::make_intrusive<ProblemHolder>();
  holder->problem = WithTensors(problem, std::vector<torch::Tensor>(kTensors));
  for (const torch::Tensor& tensor : tensors) {
    holder->is_defined.push_back(tensor.defined());
  }
  const std::vector<torch::Tensor> defined = OnlyDefined(tensors);
  const std::vector<torch::Tensor> out =
      KernelFunction::apply(holder, at::TensorList(defined));
  if (!problem.carry) {
    return {.context = out[0]};
  }
  return {.context = out[0], .own_scores = out[1], .other_scores = out[2]};
}

}  // namespace etc
