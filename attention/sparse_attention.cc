// The backend of a softmax, and fused backends as a node of autograd's graph.

#include "attention/sparse_attention.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention_problem.h"
#include "attention/backends/backend.h"
#include "attention/backends/blocked/blocked_backend.h"
#include "attention/backends/cpu/cpu_backend.h"
#include "attention/backends/cuda/cuda_backend.h"
#include "attention/backends/reference/reference_backend.h"
#include "attention/score_buffer.h"
#include "base/check_tensor.h"
#include "base/dropout_seeds.h"

namespace etc {
namespace {

using Variables = torch::autograd::variable_list;

// The fused kernels of the operands' device. With PickBackend the only place
// that knows all backends.
const AttentionBackend& KernelsFor(const AttentionProblem& problem) {
  static const CpuBackend cpu;
  static const CudaBackend cuda;
  if (problem.operands.query.is_cuda()) {
    return cuda;
  }
  return cpu;
}

const AttentionBackend& PickBackend(const AttentionProblem& problem,
                                    AttentionImplementation implementation) {
  static const ReferenceBackend reference;
  static const BlockedBackend blocked;
  const AttentionBackend& kernels = KernelsFor(problem);
  const AttentionBackend* backend = &reference;
  switch (implementation) {
    case AttentionImplementation::kReference:
      break;
    case AttentionImplementation::kBlocked:
      backend = &blocked;
      break;
    case AttentionImplementation::kKernel:
      backend = &kernels;
      break;
    case AttentionImplementation::kAuto:
      // The kernels are several times as fast as the others at every size, from
      // 128 long tokens on (measured, bench/attention_bench).
      if (kernels.UnsupportedReason(problem).empty()) {
        return kernels;
      }
      return blocked;
  }
  const std::string reason = backend->UnsupportedReason(problem);
  TORCH_CHECK(reason.empty(), "the attention backend \"", backend->name(),
              "\" does not support this: ", reason);
  return *backend;
}

// The tensors of a problem that gradients flow to, in a fixed order. The
// previous scores are last: the backward pass does not need their values.
template <typename Problem, typename Function>
void ForEachInput(Problem& problem, const Function& function) {
  problem.operands.ForEachTensor(function);
  problem.gates.ForEachTensor(function);
  problem.previous.ForEachTensor(function);
}

// One forward pass of a fused backend: the problem without the tensors that
// autograd keeps (it takes none that are undefined), and where its scores are.
struct Call : torch::CustomClassHolder {
  // Takes the tensors of `whole` out of it.
  Call(const FusedBackend& fused, AttentionProblem whole, Variables* defined)
      : backend(fused), problem(std::move(whole)) {
    ForEachInput(problem, [&](torch::Tensor& tensor) {
      is_defined.push_back(tensor.defined());
      if (tensor.defined()) {
        defined->push_back(std::move(tensor));
      }
      tensor = torch::Tensor();
    });
  }

  // The problem with the defined ones of its tensors, or the first of them.
  AttentionProblem With(at::TensorList defined) const {
    AttentionProblem whole = problem;
    size_t i = 0;
    size_t next = 0;
    ForEachInput(whole, [&](torch::Tensor& tensor) {
      if (is_defined[i++] && next < defined.size()) {
        tensor = defined[next++];
      }
    });
    return whole;
  }

  // Returns true if scores are in tensors of this layer's own.
  bool stores() const { return problem.carry && buffer == nullptr; }

  const FusedBackend& backend;
  AttentionProblem problem;
  std::vector<bool> is_defined;         // of ForEachInput
  size_t saved = 0;                     // AttentionForward::saved
  std::shared_ptr<ScoreBuffer> buffer;  // null: scores are stored
  LiveScores live;                      // in the buffer, with this layer
};

class AttentionFunction : public torch::autograd::Function<AttentionFunction> {
 public:
  using Context = torch::autograd::AutogradContext;

  // `tensors` are those that are defined. Gives context and, if scores are
  // carried, own and other scores. `context` is null if there will be no
  // backward pass.
  static Variables forward(Context* context,
                           const c10::intrusive_ptr<Call>& call,
                           at::TensorList tensors) {
    AttentionProblem problem = call->With(tensors);
    const ScorePair previous = problem.previous;
    const std::shared_ptr<ScoreBuffer>& buffer = call->buffer;
    if (buffer != nullptr) {
      problem = buffer->Next(std::move(problem), context != nullptr);
    } else if (problem.carry) {
      problem.carried = call->backend.NewScores(problem);
    }
    AttentionForward result = call->backend.Forward(problem);
    if (buffer != nullptr) {
      result.scores = buffer->Added(previous);
      call->live = {
          .buffer = buffer, .layers = buffer->layers(), .pass = buffer->pass()};
    }
    if (context != nullptr) {
      Save(context, call, tensors, result);
    }
    if (!problem.carry) {
      return {result.context};
    }
    return {result.context, result.scores.own, result.scores.other};
  }

  static Variables backward(Context* context, Variables gradients) {
    RefuseSecondGradients("fused attention",
                          "AttentionImplementation::kReference");
    const c10::intrusive_ptr<Call> call =
        c10::static_intrusive_pointer_cast<Call>(
            context->saved_data["call"].toCapsule());
    // In the order of Save.
    const Variables saved = context->get_saved_variables();
    auto next = saved.begin();
    AttentionForward forward = {.context = *next++};
    for (size_t i = 0; i < call->saved; ++i) {
      forward.saved.push_back(*next++);
    }
    ScorePair stored;
    if (call->stores()) {
      stored.own = *next++;
      stored.other = *next++;
    }
    AttentionProblem problem = call->With(Variables(next, saved.end()));
    ScoreGradients scores;
    if (problem.carry) {
      const ScorePair above = {.own = gradients[1], .other = gradients[2]};
      scores = call->stores() ? StoredScores(*call, stored, above, &problem)
                              : BufferedScores(*call, above, &problem);
    }
    const AttentionGradients out =
        call->backend.Backward(problem, forward, gradients[0], scores);
    if (call->buffer != nullptr) {
      call->buffer->Removed(call->live.layers);
    }
    return Gradients(*call, out, scores.previous);
  }

 private:
  static void Save(Context* context, const c10::intrusive_ptr<Call>& call,
                   at::TensorList tensors, const AttentionForward& result) {
    context->set_materialize_grads(false);
    call->saved = result.saved.size();
    Variables saved = {result.context};
    saved.insert(saved.end(), result.saved.begin(), result.saved.end());
    if (call->stores()) {
      saved.insert(saved.end(), {result.scores.own, result.scores.other});
    }
    // Without the previous scores, which are the last two.
    const bool has_previous = call->is_defined.back();
    saved.insert(saved.end(), tensors.begin(),
                 tensors.end() - (has_previous ? 2 : 0));
    context->save_for_backward(saved);
    context->saved_data["call"] = c10::IValue::make_capsule(call);
  }

  static ScoreGradients StoredScores(const Call& call, const ScorePair& stored,
                                     const ScorePair& above,
                                     AttentionProblem* problem) {
    problem->carried = stored;
    ScoreGradients scores = {.carried = above};
    if (call.is_defined.back()) {
      scores.previous = call.backend.NewScores(*problem);
    }
    return scores;
  }

  static ScoreGradients BufferedScores(const Call& call, const ScorePair& above,
                                       AttentionProblem* problem) {
    call.buffer->ReturnTo(call.live.layers, call.live.pass);
    problem->carried = call.buffer->scores();
    return call.buffer->Gradients(call.live.layers, above);
  }

  static Variables Gradients(const Call& call, const AttentionGradients& out,
                             const ScorePair& previous) {
    Variables gradients(1);  // that of the call, which has none
    size_t i = 0;
    const auto add = [&](const torch::Tensor& gradient) {
      if (call.is_defined[i++]) {
        gradients.push_back(gradient);
      }
    };
    out.operands.ForEachTensor(add);
    out.gates.ForEachTensor(add);
    previous.ForEachTensor(add);
    return gradients;
  }
};

// The buffer to continue with, or a new one.
std::shared_ptr<ScoreBuffer> BufferFor(const FusedBackend& backend,
                                       const SparseAttentionInput& input,
                                       const AttentionProblem& problem) {
  if (!problem.carry || input.residual.storage == ScoreStorage::kStore) {
    return nullptr;
  }
  const std::shared_ptr<ScoreBuffer>& buffer = input.previous.own.live().buffer;
  if (buffer != nullptr) {
    // The first layer of a stack takes no scores, but its second forward pass
    // has the buffer of the first one (ScoresTakenAgain).
    const bool continues = problem.previous.defined()
                               ? buffer->Holds(problem.previous)
                               : buffer->layers() == 0;
    if (continues) {
      TORCH_CHECK(buffer->IsOf(backend),
                  "layers whose scores share one buffer should be computed by "
                  "one implementation, but this one would be by ",
                  backend.name(),
                  "; use ScoreStorage::kStore, or choose one for all");
      return buffer;
    }
  }
  return std::make_shared<ScoreBuffer>(backend, input.residual.storage,
                                       problem);
}

bool AnyRequiresGradient(const Variables& tensors) {
  for (const torch::Tensor& tensor : tensors) {
    if (tensor.requires_grad()) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string KernelUnsupportedReason(const SparseAttentionInput& input) {
  const AttentionProblem problem = MakeAttentionProblem(input);
  return KernelsFor(problem).UnsupportedReason(problem);
}

SparseAttentionOutput SparseAttention(const SparseAttentionInput& input,
                                      AttentionImplementation implementation) {
  const int64_t layers = input.previous.layers + 1;
  AttentionProblem problem = MakeAttentionProblem(input);
  SeenKeys seen = input.previous.own.live().seen;
  if (input.pattern.runs == nullptr) {
    seen.compared = input.pattern.mask_source;
  } else {
    seen = {.runs = input.pattern.runs, .window = input.pattern.window};
  }
  const AttentionBackend& backend = PickBackend(problem, implementation);
  const FusedBackend* const fused = backend.fused();
  std::shared_ptr<ScoreBuffer> buffer;
  if (fused != nullptr) {
    fused->Prepare(&problem);
    buffer = BufferFor(*fused, input, problem);
  }
  // Drawn after the checks of MakeAttentionProblem, Prepare and BufferFor, so
  // that a call that they refuse leaves the generator as it was.
  if (problem.dropout > 0.0) {
    problem.dropout_seed = DrawDropoutSeed();
  }
  if (fused == nullptr) {
    const AttentionForward result = backend.Forward(problem);
    return {
        .context = result.context,
        .scores = {.own = ScoreTensor(result.scores.own, {.seen = seen}),
                   .other = ScoreTensor(result.scores.other, {.seen = seen}),
                   .layers = problem.carry ? layers : 0}};
  }
  Variables tensors;
  const auto call =
      c10::make_intrusive<Call>(*fused, std::move(problem), &tensors);
  call->buffer = std::move(buffer);
  const Variables results =
      torch::GradMode::is_enabled() && AnyRequiresGradient(tensors)
          ? AttentionFunction::apply(call, at::TensorList(tensors))
          : AttentionFunction::forward(/*context=*/nullptr, call, tensors);
  SparseAttentionOutput output;
  output.context = results[0].to(input.operands.query.scalar_type());
  if (results.size() > 1) {
    LiveScores live = call->live;
    live.seen = seen;
    output.scores = {.own = ScoreTensor(results[1], live),
                     .other = ScoreTensor(results[2], live),
                     .layers = layers};
  }
  return output;
}

std::string UnfusedReason(const torch::Device& device, int64_t head_size) {
  if (device.is_cpu()) {
    return "";
  }
  if (!device.is_cuda()) {
    return c10::str("there are no kernels for ", device.str());
  }
  constexpr int64_t kMost = kernels::cuda::Kernels::kMostColumns;
  if (head_size > kMost) {
    return c10::str("heads have ", head_size,
                    " features, and the kernels take ", kMost);
  }
  return CudaBackend::UnsupportedDeviceReason(device);
}

}  // namespace etc
