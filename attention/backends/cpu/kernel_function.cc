#include "attention/backends/cpu/kernel_function.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

#include <memory>
#include <utility>
#include <vector>

#include "attention/score_buffer.h"
#include "base/large_pages.h"

namespace etc {
namespace {

// The tensors that gradients flow to, in a fixed order; the last two are the
// previous scores, whose values the backward pass does not need.
constexpr size_t kTensors = 9;
constexpr size_t kSavedTensors = 7;
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

bool AnyRequiresGradient(const std::vector<torch::Tensor>& tensors) {
  for (const torch::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.requires_grad()) {
      return true;
    }
  }
  return false;
}

// The buffer's scores as what a layer hands on: new tensors over the same
// memory, of which autograd believes that they are each layer's own. Not to be
// told of changes, they are marked by hand when the next layer changes them, so
// that autograd refuses to use them as they were.
ScorePair HandOn(const ScorePair& scores) {
  return {.own = scores.own.variable_data(),
          .other = scores.other.variable_data()};
}

void MarkAsChanged(const torch::Tensor& handed_on) {
  if (handed_on.defined() && !handed_on.is_inference()) {
    handed_on.unsafeGetTensorImpl()->bump_version();
  }
}

// One layer's softmax: the problem without its tensors, which autograd keeps
// (it takes none that are undefined), and where its scores are.
struct Call : torch::CustomClassHolder {
  // `defined`: those of TensorsOf that are defined, in order.
  KernelProblem WithDefined(const std::vector<torch::Tensor>& defined) const {
    std::vector<torch::Tensor> all(kTensors);
    size_t next = 0;
    for (size_t i = 0; i < kTensors && next < defined.size(); ++i) {
      if (is_defined[i]) {
        all[i] = defined[next++];
      }
    }
    return WithTensors(problem, all);
  }

  KernelProblem problem;
  std::vector<bool> is_defined;  // [kTensors]
  bool carry = false;
  std::shared_ptr<ScoreBuffer> buffer;  // null: scores are stored
  int64_t layers = 0;                   // in the buffer, with this one
};

struct CallResult {
  KernelForward forward;
  ScorePair scores;
};

// Runs the forward pass of `problem`, whose previous scores are at hand.
CallResult Run(Call* call, KernelProblem problem, bool differentiable) {
  if (!call->carry) {
    return {.forward = RunKernelForward(problem)};
  }
  if (call->buffer == nullptr) {
    const ScorePair scores = NewScores(problem);
    problem.own_carried = scores.own;
    problem.other_carried = scores.other;
    return {.forward = RunKernelForward(problem), .scores = scores};
  }
  ScoreBuffer& buffer = *call->buffer;
  const bool in_place =
      buffer.Holds(problem.own_previous, problem.other_previous);
  const torch::Tensor handed_on[] = {problem.own_previous,
                                     problem.other_previous};
  problem = buffer.Next(std::move(problem), differentiable);
  CallResult result = {.forward = RunKernelForward(problem)};
  buffer.Added();
  call->layers = buffer.layers();
  if (in_place) {
    MarkAsChanged(handed_on[0]);
    MarkAsChanged(handed_on[1]);
  }
  result.scores = HandOn(buffer.scores());
  return result;
}

class KernelFunction : public torch::autograd::Function<KernelFunction> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Variables = torch::autograd::variable_list;

  // Gives context and, if scores are carried, own and other scores.
  static Variables forward(Context* context,
                           const c10::intrusive_ptr<Call>& call,
                           at::TensorList tensors) {
    context->set_materialize_grads(false);
    const CallResult result = Run(call.get(), call->WithDefined(tensors.vec()),
                                  /*differentiable=*/true);
    const bool stored = call->carry && call->buffer == nullptr;
    Variables saved = {result.forward.context, result.forward.row_max,
                       result.forward.row_inverse_sum};
    if (stored) {
      saved.insert(saved.end(), {result.scores.own, result.scores.other});
    }
    const size_t previous =
        (call->is_defined[7] ? 1 : 0) + (call->is_defined[8] ? 1 : 0);
    saved.insert(saved.end(), tensors.begin(),
                 tensors.end() - static_cast<std::ptrdiff_t>(previous));
    context->save_for_backward(saved);
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    if (!call->carry) {
      return {result.forward.context};
    }
    return {result.forward.context, result.scores.own, result.scores.other};
  }

  static Variables backward(Context* context, Variables gradients) {
    TORCH_CHECK(!torch::GradMode::is_enabled(),
                "gradients of gradients do not pass the attention kernels; use "
                "AttentionImplementation::kReference or kBlocked for them");
    const c10::intrusive_ptr<Call> call =
        c10::static_intrusive_pointer_cast<Call>(
            context->saved_data["call"].toCapsule());
    Variables saved = context->get_saved_variables();
    const KernelForward result = {
        .context = saved[0], .row_max = saved[1], .row_inverse_sum = saved[2]};
    const bool stored = call->carry && call->buffer == nullptr;
    KernelProblem problem =
        call->WithDefined({saved.begin() + (stored ? 5 : 3), saved.end()});
    KernelScoreGradients scores;
    if (call->carry) {
      const ScorePair above = {.own = ContiguousOrUndefined(gradients[1]),
                               .other = ContiguousOrUndefined(gradients[2])};
      scores = stored ? StoredScores(*call, saved[3], saved[4], above, &problem)
                      : BufferedScores(*call, above, &problem);
    }
    const KernelGradients out = RunKernelBackward(
        problem, result,
        gradients[0].defined() ? WithAdjacentElements(gradients[0])
                               : torch::Tensor(),
        scores);
    if (call->buffer != nullptr) {
      call->buffer->Removed(call->layers);
    }
    return Gradients(*call, out, scores);
  }

 private:
  static KernelScoreGradients StoredScores(const Call& call,
                                           const torch::Tensor& own,
                                           const torch::Tensor& other,
                                           const ScorePair& above,
                                           KernelProblem* problem) {
    problem->own_carried = own;
    problem->other_carried = other;
    KernelScoreGradients scores = {.own_carried = above.own,
                                   .other_carried = above.other};
    if (call.is_defined[kSavedTensors]) {
      const ScorePair previous = NewScores(*problem);
      scores.own_previous = previous.own;
      scores.other_previous = previous.other;
    }
    return scores;
  }

  static KernelScoreGradients BufferedScores(const Call& call,
                                             const ScorePair& above,
                                             KernelProblem* problem) {
    call.buffer->ReturnTo(call.layers);
    problem->own_carried = call.buffer->scores().own;
    problem->other_carried = call.buffer->scores().other;
    return call.buffer->Gradients(call.layers, above);
  }

  static Variables Gradients(const Call& call, const KernelGradients& out,
                             const KernelScoreGradients& scores) {
    const Variables all = {
        out.query,         out.own_key,         out.own_value,
        out.other_key,     out.other_value,     out.relative.embedding,
        out.relative.bias, scores.own_previous, scores.other_previous};
    Variables gradients(1);  // that of the call, which has none
    for (size_t i = 0; i < kTensors; ++i) {
      if (call.is_defined[i]) {
        gradients.push_back(all[i]);
      }
    }
    return gradients;
  }
};

// The buffer to go on with, or a new one.
std::shared_ptr<ScoreBuffer> BufferFor(const KernelProblem& problem,
                                       ScoreStorage storage,
                                       const LiveScores& live) {
  if (storage == ScoreStorage::kStore) {
    return nullptr;
  }
  if (live.buffer == nullptr ||
      !live.buffer->Holds(problem.own_previous, problem.other_previous)) {
    return std::make_shared<ScoreBuffer>(storage, problem);
  }
  TORCH_CHECK(live.buffer->layers() == live.layers,
              "these residual scores, of ", live.layers,
              " layers, are gone: their buffer now holds those of ",
              live.buffer->layers(),
              ". To hand the scores of a layer to several others, or to hold "
              "on to them, use ScoreStorage::kStore");
  return live.buffer;
}

}  // namespace

SparseAttentionOutput DifferentiableKernel(const KernelProblem& problem,
                                           bool carry, ScoreStorage storage,
                                           const LiveScores& live) {
  const c10::intrusive_ptr<Call> call = c10::make_intrusive<Call>();
  call->carry = carry;
  if (carry) {
    call->buffer = BufferFor(problem, storage, live);
  }
  const std::vector<torch::Tensor> tensors = TensorsOf(problem);
  SparseAttentionOutput output;
  if (!torch::GradMode::is_enabled() || !AnyRequiresGradient(tensors)) {
    const CallResult result =
        Run(call.get(), problem, /*differentiable=*/false);
    output = {.context = result.forward.context,
              .own_scores = result.scores.own,
              .other_scores = result.scores.other};
  } else {
    call->problem = WithTensors(problem, std::vector<torch::Tensor>(kTensors));
    for (const torch::Tensor& tensor : tensors) {
      call->is_defined.push_back(tensor.defined());
    }
    const std::vector<torch::Tensor> defined = OnlyDefined(tensors);
    const std::vector<torch::Tensor> out =
        KernelFunction::apply(call, at::TensorList(defined));
    output.context = out[0];
    if (carry) {
      output.own_scores = out[1];
      output.other_scores = out[2];
    }
  }
  output.live = {.buffer = call->buffer, .layers = call->layers};
  return output;
}

}  // namespace etc
