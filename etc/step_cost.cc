#include "etc/step_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "attention/sparse_attention.h"
#include "etc/gradient_checkpoint.h"

namespace etc {
namespace {

constexpr double kFloat = 4;
constexpr double kId = 8;

// glibc keeps blocks of up to 32 MiB in its heap, in which holes remain, and
// returns larger ones to the system. Shares of all other activations, measured:
// 0.1 to 0.5 and 0.02 to 0.05.
constexpr double kLargestHeapBlock = 32 << 20;
constexpr double kHeapFragmentation = 0.25;
constexpr double kMappedFragmentation = 0.05;

// The letters of the formulas below, as numbers that do not overflow.
struct Sizes {
  Sizes(const EtcConfig& config, const StepShape& shape)
      : batch(static_cast<double>(shape.batch)),
        long_length(static_cast<double>(shape.long_length)),
        global_length(static_cast<double>(shape.global_length)),
        long_tokens(batch * long_length),
        global_tokens(batch * global_length),
        hidden(static_cast<double>(config.hidden_size)),
        heads(static_cast<double>(config.num_attention_heads)),
        features(static_cast<double>(config.num_attention_heads *
                                     config.head_size())),
        intermediate(static_cast<double>(config.intermediate_size)),
        ids(static_cast<double>(config.relative_vocab_size.value_or(0))),
        window(static_cast<double>(2 * config.local_radius + 1)) {}

  double batch;
  double long_length;    // L
  double global_length;  // G
  double long_tokens;    // B L
  double global_tokens;  // B G
  double hidden;         // H
  double heads;          // N
  double features;       // A
  double intermediate;   // F
  double ids;            // R
  double window;         // W

  // Numbers in the tensors of long and of global scores.
  double LongScores() const {
    return heads * long_tokens * (window + global_length);
  }
  double GlobalScores() const {
    return heads * global_tokens * (long_length + global_length);
  }
};

// --- What autograd keeps ----------------------------------------------------

// Score-sized tensors of one softmax: with dropout its result, the dropout mask
// and their product; without, the result, and what masked_fill makes of it.
double DenseCopies(const EtcConfig& config) {
  return config.attention_probs_dropout_prob > 0 ? 3 : 2;
}
double BlockedCopies(const EtcConfig& config) {
  return config.attention_probs_dropout_prob > 0 ? 3 : 1;
}

// DenseAttention with `queries` and `keys` in all B examples: keys (twice, once
// transposed) and values put together, probabilities, the mask.
double DenseAttentionBytes(const EtcConfig& config, const Sizes& s,
                           double queries, double keys) {
  return kFloat * (3 * s.batch * keys * s.features +
                   DenseCopies(config) * s.heads * s.batch * queries * keys) +
         s.batch * queries * keys;
}

// BlockedSparseAttention's long side: a span of keys and one of values for each
// block, probabilities, and those laid out by spans.
double BlockedAttentionBytes(const EtcConfig& config, const Sizes& s) {
  const double block =
      static_cast<double>(DefaultBlockLength(config.local_radius));
  const double span = block + s.window - 1;
  const double keys = s.window + s.global_length;
  const double padded_tokens =
      s.batch * std::ceil(s.long_length / block) * block;
  return kFloat * (2 * padded_tokens / block * span * s.features +
                   padded_tokens * s.features +
                   s.heads * padded_tokens * (span + 1) +
                   BlockedCopies(config) * s.LongScores()) +
         s.long_tokens * keys;
}

bool IsBlocked(const EtcConfig& config, const StepShape& shape) {
  return FastestAttention(shape.long_length, config.local_radius) ==
         AttentionImplementation::kBlocked;
}

double LayerBytes(const EtcConfig& config, const StepShape& shape) {
  const Sizes s(config, shape);
  const double dropouts = config.hidden_dropout_prob > 0 ? 2 : 0;
  // Of each token: input and output of two norms, dropout masks; queries as
  // three products want them, contexts; the feed-forward block before and after
  // its activation; the scores of relative ids.
  const double of_token = (4 + dropouts) * s.hidden + 3 * s.features +
                          2 * s.intermediate + s.heads * s.ids;
  const double all_keys = s.long_length + s.global_length;
  return kFloat * (s.long_tokens + s.global_tokens) * of_token +
         (IsBlocked(config, shape)
              ? BlockedAttentionBytes(config, s)
              : DenseAttentionBytes(config, s, s.long_length, all_keys)) +
         DenseAttentionBytes(config, s, s.global_length, all_keys);
}

// What one layer hands to the next. The l2g scores are a view of those of all
// keys, so that l2l's are there twice.
double CarriedBytes(const EtcConfig& config, const Sizes& s) {
  if (config.residual_attention == "off") {
    return 0;
  }
  return kFloat * (s.LongScores() + s.heads * s.long_tokens * s.window +
                   s.GlobalScores());
}

}  // namespace

ActivationBytes EstimateActivations(const EtcConfig& config,
                                    const StepShape& shape) {
  const Sizes s(config, shape);
  const double states = kFloat * (s.long_tokens + s.global_tokens) * s.hidden;
  const double layer = LayerBytes(config, shape);
  const double carried = CarriedBytes(config, s);

  ActivationBytes bytes;
  // A chain that is recomputed keeps its inputs only; the layers of one chain
  // at a time are there. The last chain is computed once.
  const auto chains = CheckpointChains(config.num_hidden_layers,
                                       config.grad_checkpointing_period);
  for (size_t i = 0; i < chains.size(); ++i) {
    const auto [begin, end] = chains[i];
    const double inputs =
        static_cast<double>(std::min(i + 1, chains.size() - 1));
    // The embedding carries no scores into the first chain.
    const double saved =
        inputs * states + static_cast<double>(end - begin) * layer;
    if (saved > bytes.saved) {
      bytes.saved = saved;
      bytes.residual_scores = std::max(inputs - 1, 0.0) * carried + carried;
    }
  }
  // The embedding's norm and dropout, and the gradient of the states.
  bytes.saved += 3 * states;
  const double long_pairs = s.long_tokens * s.global_length;
  const double global_pairs = s.global_tokens * s.global_length;
  bytes.attention_inputs = s.long_tokens * s.window + 2 * long_pairs +
                           global_pairs + kId * (long_pairs + global_pairs);
  // In the middle of a softmax: the gradient of one tensor of scores, or, with
  // residual scores, the scores, the logits and the previous ones put together.
  bytes.working = kFloat * s.LongScores() * (carried > 0 ? 3 : 1);
  bytes.fragmentation =
      bytes.total() * (kFloat * s.LongScores() < kLargestHeapBlock
                           ? kHeapFragmentation
                           : kMappedFragmentation);
  return bytes;
}

// --- Operations -------------------------------------------------------------

ForwardFlops CountForwardFlops(const EtcConfig& config,
                               const StepShape& shape) {
  const Sizes s(config, shape);
  const double tokens = s.long_tokens + s.global_tokens;
  const double layers = static_cast<double>(config.num_hidden_layers);
  // Five of queries, keys and values for each stream, whatever is shared, and
  // one of contexts.
  constexpr double kProjections = 6;
  const double scores = (s.LongScores() + s.GlobalScores()) / s.heads;

  ForwardFlops flops;
  flops.projections =
      layers * 2 * kProjections * tokens * s.hidden * s.features;
  flops.attention =
      layers * 2 * (2 * scores * s.features + tokens * s.ids * s.features);
  flops.feed_forward = layers * 2 * 2 * tokens * s.hidden * s.intermediate;
  if (config.token_embedding_size() != config.hidden_size) {
    flops.embedding = 2 * tokens *
                      static_cast<double>(config.token_embedding_size()) *
                      s.hidden;
  }
  return flops;
}

double CountTrainingFlops(const EtcConfig& config, const StepShape& shape) {
  const ForwardFlops forward = CountForwardFlops(config, shape);
  const auto chains = CheckpointChains(config.num_hidden_layers,
                                       config.grad_checkpointing_period);
  const double recomputed_layers = static_cast<double>(chains.back().first);
  return 3 * forward.total() +
         (forward.total() - forward.embedding) * recomputed_layers /
             static_cast<double>(config.num_hidden_layers);
}

}  // namespace etc
