#include "attention/attention_problem.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "attention/mask_runs.h"
#include "attention/pattern.h"
#include "attention/sparse_attention.h"
#include "base/check_shape.h"
#include "base/check_tensor.h"

namespace etc {
namespace {

void CheckPattern(const SoftmaxPattern& pattern, const AttentionSizes& sizes) {
  TORCH_CHECK(pattern.masks != nullptr, "who sees whom is missing");
  TORCH_CHECK(pattern.batch == sizes.batch &&
                  pattern.queries == sizes.queries &&
                  pattern.own_keys == sizes.own_keys &&
                  pattern.other_keys == sizes.other_keys,
              "a pattern for ", pattern.batch, " examples of ", pattern.queries,
              " queries, ", pattern.own_keys, " own and ", pattern.other_keys,
              " other keys does not fit ", sizes.batch, " examples of ",
              sizes.queries, ", ", sizes.own_keys, " and ", sizes.other_keys);
  TORCH_CHECK(
      !pattern.window.is_restricted() || pattern.own_keys == pattern.queries,
      "with a window there should be as many own keys as queries, ",
      pattern.queries, ", but there are ", pattern.own_keys);
}

// Checks the kind, the device and the dtype of one of the tensors beside the
// queries.
void CheckOperand(const torch::Tensor& tensor, const char* name,
                  const torch::Tensor& query) {
  CheckFloating(tensor, name);
  CheckSameDevice(tensor, name, query, "the queries");
  TORCH_CHECK(ScoreType(tensor) == ScoreType(query), name, " is ",
              tensor.scalar_type(), ", but the queries are ",
              query.scalar_type());
}

void CheckShapes(const AttentionProblem& problem) {
  const AttentionOperands& operands = problem.operands;
  for (const torch::Tensor* tensor :
       {&operands.query, &operands.own_key, &operands.own_value,
        &operands.other_key, &operands.other_value}) {
    TORCH_CHECK(tensor->dim() == 4,
                "queries, keys and values should be [batch, heads, length, "
                "head_dim], but one is ",
                tensor->sizes());
  }
  const torch::Tensor& query = operands.query;
  operands.ForEachTensor([&](const torch::Tensor& tensor) {
    if (tensor.defined()) {
      CheckOperand(tensor, "an operand of attention", query);
    }
  });
  TORCH_CHECK(
      operands.relative.embedding.defined() == operands.relative.bias.defined(),
      "embedding and bias of a relative table should both be defined, or "
      "neither");
  const AttentionSizes sizes(problem);
  const int64_t batch = sizes.batch;
  const int64_t heads = sizes.heads;
  const int64_t own_keys = sizes.own_keys;
  const int64_t other_keys = sizes.other_keys;
  const int64_t head_dim = sizes.head_dim;
  const int64_t value_dim = sizes.value_dim;
  TORCH_CHECK(head_dim > 0 && value_dim > 0,
              "heads of queries and of values should have at least one "
              "element, but have ",
              head_dim, " and ", value_dim);
  ETC_CHECK_SHAPE(operands.own_key, {batch, heads, own_keys, head_dim});
  ETC_CHECK_SHAPE(operands.own_value, {batch, heads, own_keys, value_dim});
  ETC_CHECK_SHAPE(operands.other_key, {batch, heads, other_keys, head_dim});
  ETC_CHECK_SHAPE(operands.other_value, {batch, heads, other_keys, value_dim});
  CheckPattern(problem.pattern, sizes);
}

void CheckPreviousScores(const ScorePair& scores,
                         const AttentionProblem& problem) {
  constexpr const char* kName = "previous scores";
  TORCH_CHECK(scores.own.defined() == scores.other.defined(), kName,
              " should be defined for both blocks, or neither");
  if (scores.defined()) {
    scores.ForEachTensor([&](const torch::Tensor& tensor) {
      CheckFloating(tensor, kName);
      CheckSameDevice(tensor, kName, problem.operands.query, "the queries");
    });
    const AttentionSizes sizes(problem);
    const int64_t batch = sizes.batch;
    const int64_t heads = sizes.heads;
    const int64_t queries = sizes.queries;
    const int64_t own_columns = sizes.own_columns;
    const int64_t other_keys = sizes.other_keys;
    ETC_CHECK_SHAPE(scores.own, {batch, heads, queries, own_columns});
    ETC_CHECK_SHAPE(scores.other, {batch, heads, queries, other_keys});
  }
}

// Returns the first query that sees a key of `now`, of those in the window,
// that it does not see in `below`; -1: there is none.
int64_t FirstWithOtherKeys(const RunSetTable& now, const RunSetTable& below,
                           const KeyWindow& window) {
  for (size_t i = 0; i < now.first.size(); ++i) {
    const auto query = static_cast<int64_t>(i);
    int32_t before = below.first[i];
    for (int32_t r = now.first[i]; r < now.last[i]; ++r) {
      const KeyRun run = now.runs[static_cast<size_t>(r)];
      int64_t begin = run.begin;
      int64_t end = run.end;
      if (window.is_restricted()) {
        begin = std::max(begin, query - window.before);
        end = std::min(end, query + window.after + 1);
      }
      if (begin >= end) {
        continue;
      }
      while (before < below.last[i] &&
             below.runs[static_cast<size_t>(before)].end < end) {
        ++before;
      }
      if (before == below.last[i] ||
          below.runs[static_cast<size_t>(before)].begin > begin) {
        return query;
      }
    }
  }
  return -1;
}

// The visible keys of a pattern as runs, of any number where it has only masks.
// Masks are asked for on the device of attention, for which a pattern may keep
// them.
std::shared_ptr<const std::vector<SoftmaxRuns>> VisibleRuns(
    const SoftmaxPattern& pattern, const torch::Device& device) {
  if (pattern.runs != nullptr) {
    return pattern.runs;
  }
  const SoftmaxMasks masks = pattern.masks(device);
  const auto tables = [](const torch::Tensor& mask, const KeyWindow& window) {
    return RunsOfMask(mask.to(torch::kCPU).contiguous(), window,
                      /*most_runs=*/mask.size(2))
        .value();
  };
  std::vector<RunSetTable> own = tables(masks.own_mask, pattern.window);
  std::vector<RunSetTable> other = tables(masks.other_mask, kNoWindow);
  std::vector<SoftmaxRuns> runs(own.size());
  for (size_t b = 0; b < runs.size(); ++b) {
    runs[b].own.visible = std::move(own[b]);
    runs[b].other.visible = std::move(other[b]);
  }
  return std::make_shared<const std::vector<SoftmaxRuns>>(std::move(runs));
}

// Throws unless each query sees only keys that it saw in the layer below: the
// scores of other pairs were not computed. A layer with the pattern of the one
// below it needs no comparison, which for masks waits for the device.
void CheckSeenKeys(const SeenKeys& below, const SoftmaxPattern& pattern,
                   const torch::Device& device) {
  if (below.runs == nullptr || below.runs == pattern.runs) {
    return;
  }
  TORCH_CHECK(below.window.before == pattern.window.before,
              "carried scores should be of the same window, ",
              pattern.window.before, " keys before a query, but are of ",
              below.window.before);
  if (pattern.runs == nullptr && below.compared != nullptr &&
      below.compared == pattern.mask_source) {
    return;
  }
  const auto runs = VisibleRuns(pattern, device);
  for (size_t b = 0; b < runs->size(); ++b) {
    const SoftmaxRuns& now = (*runs)[b];
    const SoftmaxRuns& seen = (*below.runs)[b];
    int64_t query =
        FirstWithOtherKeys(now.own.visible, seen.own.visible, pattern.window);
    if (query < 0) {
      query =
          FirstWithOtherKeys(now.other.visible, seen.other.visible, kNoWindow);
    }
    TORCH_CHECK(query < 0,
                "carried scores should be of a layer in which each query saw "
                "all keys that it sees now, but query ",
                query, " of example ", b,
                " did not: its scores with the others are unknown");
  }
}

void CheckRelativeTable(const AttentionProblem& problem) {
  // Masks may come with any ids: tensor operations check each.
  if (problem.pattern.runs == nullptr || problem.pattern.has_no_ids()) {
    return;
  }
  const RelativeTable& table = problem.operands.relative;
  TORCH_CHECK(table.embedding.defined() && table.bias.defined(),
              "relative ids are given, but there is no relative table");
  const int64_t distance = (*problem.pattern.runs)[0].max_distance;
  const int64_t ids = table.embedding.size(0);
  const int64_t heads = problem.operands.query.size(1);
  const int64_t head_dim = problem.operands.query.size(3);
  ETC_CHECK_SHAPE(table.embedding, {ids, heads, head_dim});
  ETC_CHECK_SHAPE(table.bias, {ids, heads});
  TORCH_CHECK(ids >= RelativeVocabSize(distance),
              "the relative table should have at least ",
              RelativeVocabSize(distance), " ids for a distance of ", distance,
              ", but has ", ids);
}

// Sets the factors of the input's residual mode.
void SetResidual(const SparseAttentionInput& input, AttentionProblem* problem) {
  const int64_t below = input.previous.layers;
  const ResidualGates& gates = input.gates;
  TORCH_CHECK(gates.own.defined() == gates.other.defined(),
              "gates should be defined for both blocks, or neither");
  TORCH_CHECK(
      input.residual.mode == ResidualAttention::kGate || !gates.defined(),
      "gates are given, but residual attention is not kGate");
  if (input.residual.mode == ResidualAttention::kMean) {
    problem->divisor = static_cast<double>(below + 1);
  } else if (input.residual.mode == ResidualAttention::kDecay) {
    TORCH_CHECK(input.residual.decay > 0.0 && input.residual.decay < 1.0,
                "decay should be above 0 and below 1, but is ",
                input.residual.decay);
    problem->divisor =
        std::pow(input.residual.decay, -static_cast<double>(below));
    TORCH_CHECK(problem->divisor < kLargestDecayFactor, "a decay of ",
                input.residual.decay, " is too small for ", below + 1,
                " layers: 1 / decay^", below, " should be below ",
                kLargestDecayFactor, ", but is ", problem->divisor);
    problem->score_factor = (1.0 - input.residual.decay) * problem->divisor;
  } else if (input.residual.mode == ResidualAttention::kGate &&
             problem->previous.defined()) {
    TORCH_CHECK(gates.defined(),
                "with kGate, carried scores need gates, but there are none");
    const int64_t heads = problem->operands.query.size(1);
    gates.ForEachTensor([&](const torch::Tensor& gate) {
      CheckOperand(gate, "a gate", problem->operands.query);
    });
    ETC_CHECK_SHAPE(gates.own, {heads});
    ETC_CHECK_SHAPE(gates.other, {heads});
    problem->gates = gates;
  }
}

}  // namespace

AttentionSizes::AttentionSizes(const AttentionProblem& problem)
    : batch(problem.operands.query.size(0)),
      heads(problem.operands.query.size(1)),
      queries(problem.operands.query.size(2)),
      own_keys(problem.operands.own_key.size(2)),
      other_keys(problem.operands.other_key.size(2)),
      head_dim(problem.operands.query.size(3)),
      value_dim(problem.operands.own_value.size(3)),
      own_columns(problem.pattern.own_columns()) {}

AttentionProblem MakeAttentionProblem(const SparseAttentionInput& input) {
  AttentionProblem problem;
  problem.operands = input.operands;
  problem.pattern = input.pattern;
  CheckShapes(problem);
  const ScorePair previous = {.own = input.previous.own,
                              .other = input.previous.other};
  CheckPreviousScores(previous, problem);
  if (previous.defined()) {
    const torch::Tensor& query = problem.operands.query;
    previous.ForEachTensor([&](const torch::Tensor& scores) {
      TORCH_CHECK(scores.scalar_type() == ScoreType(query),
                  "previous scores should be ", ScoreType(query),
                  ", as those of queries of ", query.scalar_type(),
                  ", but are ", scores.scalar_type());
    });
    CheckSeenKeys(input.previous.own.live().seen, problem.pattern,
                  query.device());
  }
  problem.carry = input.residual.mode != ResidualAttention::kOff;
  TORCH_CHECK(problem.carry || !previous.defined(),
              "previous scores are given, but residual attention is off");
  TORCH_CHECK(input.previous.layers >= 0 &&
                  input.previous.defined() == (input.previous.layers > 0),
              "previous scores should be ",
              input.previous.defined() ? "of 1 layer or more"
                                       : "undefined only with 0 layers",
              ", but their `layers` is ", input.previous.layers);
  TORCH_CHECK(input.dropout >= 0.0 && input.dropout < 1.0,
              "dropout should be in [0, 1), but is ", input.dropout);
  if (input.pattern.has_no_ids()) {
    problem.operands.relative = {};
  }
  CheckRelativeTable(problem);
  problem.previous = previous;
  SetResidual(input, &problem);
  problem.precision = input.precision;
  problem.dropout = input.dropout;
  problem.first_head = input.first_head;
  return problem;
}

torch::ScalarType ScoreType(const torch::Tensor& operand) {
  const torch::ScalarType type = operand.scalar_type();
  return type == torch::kBFloat16 || type == torch::kHalf ? torch::kFloat32
                                                          : type;
}

torch::Tensor GatesOfKeys(const AttentionProblem& problem) {
  if (!problem.gates.defined()) {
    return {};
  }
  const auto of_block = [&](const torch::Tensor& gate, int64_t keys) {
    return gate.to(ScoreType(problem.operands.query))
        .unsqueeze(1)
        .expand({-1, keys});
  };
  return torch::cat(
      {of_block(problem.gates.own, problem.operands.own_key.size(2)),
       of_block(problem.gates.other, problem.operands.other_key.size(2))},
      1);
}

}  // namespace etc
