#include "attention/backends/cpu/cpu_backend.h"

#include <c10/util/StringUtil.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "attention/backends/cpu/backward_pass.h"
#include "attention/backends/cpu/head_view.h"
#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/query_tiles.h"
#include "attention/backends/tensor_layout.h"
#include "base/large_pages.h"
#include "base/parallel_tasks.h"

namespace etc {
namespace {

// Results of a forward pass beside the carried scores.
struct ForwardOutputs {
  torch::Tensor context;  // undefined: only scores are wanted
  SoftmaxSums sums;
};

// Computes one tile, a run of queries of one head: a task of ForEachTask.
class ForwardTask {
 public:
  ForwardTask(const AttentionProblem& problem, const ForwardOutputs& outputs,
              bool subtract)
      : problem_(problem),
        outputs_(outputs),
        subtract_(subtract),
        sizes_(problem) {
    for (int64_t batch = 0; batch < sizes_.batch; ++batch) {
      const std::vector<QueryTile> queries = QueryTiles(problem, batch);
      for (int64_t head = 0; head < sizes_.heads; ++head) {
        for (const QueryTile& tile : queries) {
          tiles_.push_back({batch, head, tile.begin, tile.end});
        }
      }
    }
  }

  int64_t tiles() const { return static_cast<int64_t>(tiles_.size()); }
  int64_t workspace_size() const {
    return tiles() == 0 ? 0
                        : kernels::ForwardWorkspaceSize(HeadOf(problem_, 0, 0));
  }

  void operator()(int64_t task, float* workspace) const {
    const Tile& tile = tiles_[static_cast<size_t>(task)];
    kernels::ForwardTile(HeadOf(problem_, tile.batch, tile.head), tile.begin,
                         tile.end, ResultsOf(tile.batch, tile.head), workspace);
  }

 private:
  struct Tile {
    int64_t batch;
    int64_t head;
    int64_t begin;  // of its queries
    int64_t end;
  };

  kernels::ForwardResults ResultsOf(int64_t batch, int64_t head) const {
    const ScorePair& previous = problem_.previous;
    const ScorePair& carried = problem_.carried;
    kernels::ForwardResults results;
    results.previous[0] = ScoreRowsOf(previous.own, batch, head);
    results.previous[1] = ScoreRowsOf(previous.other, batch, head);
    results.carried[0] = ScoreRowsToWrite(carried.own, batch, head);
    results.carried[1] = ScoreRowsToWrite(carried.other, batch, head);
    results.subtract = subtract_;
    if (outputs_.context.defined()) {
      results.context = HeadRows(outputs_.context, batch, head);
      results.context_stride = outputs_.context.stride(2);
      results.row_max = VectorOfHead(outputs_.sums.row_max, batch, head);
      results.row_inverse_sum =
          VectorOfHead(outputs_.sums.row_inverse_sum, batch, head);
    }
    return results;
  }

  const AttentionProblem& problem_;
  const ForwardOutputs& outputs_;
  const bool subtract_;
  const AttentionSizes sizes_;
  std::vector<Tile> tiles_;
};

}  // namespace

std::string CpuBackend::UnsupportedReason(
    const AttentionProblem& problem) const {
  std::string reason;
  problem.operands.ForEachTensor([&](const torch::Tensor& tensor) {
    if (!reason.empty() || !tensor.defined()) {
      return;
    }
    if (tensor.scalar_type() != torch::kFloat32 &&
        tensor.scalar_type() != torch::kBFloat16) {
      reason = c10::str("a tensor is ", c10::toString(tensor.scalar_type()),
                        ", not Float or BFloat16");
    } else if (!tensor.device().is_cpu()) {
      reason = c10::str("a tensor is on ", tensor.device().str(),
                        ", not on the CPU");
    }
  });
  problem.previous.ForEachTensor([&](const torch::Tensor& scores) {
    if (reason.empty() && scores.defined() &&
        (scores.scalar_type() != torch::kFloat32 ||
         !scores.device().is_cpu())) {
      reason = "previous scores are not Float on the CPU";
    }
  });
  problem.gates.ForEachTensor([&](const torch::Tensor& gate) {
    if (reason.empty() && gate.defined() && !gate.device().is_cpu()) {
      reason = "gates are not on the CPU";
    }
  });
  if (!reason.empty()) {
    return reason;
  }
  return problem.pattern.runs == nullptr
             ? "masks or relative ids are tensors that are not runs of keys"
             : "";
}

void CpuBackend::Prepare(AttentionProblem* problem) const {
  // The kernels copy their operands into tiles anyway; this copy is small
  // beside the scores, and leaves them one type to know.
  if (problem->operands.query.scalar_type() == torch::kBFloat16) {
    problem->precision = LinearPrecision::kBfloat16;
  }
  problem->operands.ForEachTensor([](torch::Tensor& tensor) {
    if (tensor.defined()) {
      tensor = WithAdjacentElements(tensor.to(torch::kFloat32));
    }
  });
  problem->previous.ForEachTensor(
      [](torch::Tensor& scores) { scores = ContiguousOrUndefined(scores); });
  problem->gates.ForEachTensor([](torch::Tensor& gate) {
    if (gate.defined()) {
      gate = gate.to(torch::kFloat32).contiguous();
    }
  });
}

ScorePair CpuBackend::NewScores(const AttentionProblem& problem) const {
  return EmptyScores(AttentionSizes(problem), problem.operands.query.options());
}

AttentionForward CpuBackend::Forward(const AttentionProblem& problem) const {
  const AttentionSizes sizes(problem);
  const torch::TensorOptions options = problem.operands.query.options();
  ForwardOutputs outputs;
  outputs.context = EmptyHeadRows(
      {sizes.batch, sizes.heads, sizes.queries, sizes.value_dim}, options);
  SoftmaxSums& sums = outputs.sums;
  sums.row_max =
      torch::empty({sizes.batch, sizes.heads, sizes.queries}, options);
  sums.row_inverse_sum = torch::empty_like(sums.row_max);
  if (outputs.context.numel() > 0 || problem.carried.defined()) {
    const ForwardTask task(problem, outputs, /*subtract=*/false);
    ForEachTask(task.tiles(), task.workspace_size(), std::cref(task));
  }
  return {.context = outputs.context,
          .scores = problem.carried,
          .saved = {sums.row_max, sums.row_inverse_sum}};
}

void CpuBackend::RecomputeScores(const AttentionProblem& problem,
                                 bool subtract) const {
  const ForwardOutputs scores_alone;
  const ForwardTask task(problem, scores_alone, subtract);
  ForEachTask(task.tiles(), task.workspace_size(), std::cref(task));
}

AttentionGradients CpuBackend::Backward(const AttentionProblem& problem,
                                        const AttentionForward& forward,
                                        const torch::Tensor& context_gradient,
                                        const ScoreGradients& scores) const {
  const torch::Tensor gradient = context_gradient.defined()
                                     ? WithAdjacentElements(context_gradient)
                                     : torch::zeros_like(forward.context);
  ScoreGradients contiguous = scores;
  contiguous.carried.own = ContiguousOrUndefined(scores.carried.own);
  contiguous.carried.other = ContiguousOrUndefined(scores.carried.other);
  return RunBackwardPass({.problem = problem,
                          .context = forward.context,
                          .sums = {.row_max = forward.saved[0],
                                   .row_inverse_sum = forward.saved[1]},
                          .context_gradient = gradient,
                          .scores = contiguous});
}

}  // namespace etc
