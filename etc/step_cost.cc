#include "etc/step_cost.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "attention/backends/blocked/blocked_backend.h"
#include "attention/backends/cuda/kernels/arguments.h"
#include "etc/nn/feed_forward.h"
#include "etc/nn/gradient_checkpoint.h"

namespace etc {
namespace {

constexpr double kFloat = 4;
constexpr double kRounded = 2;  // bfloat16
constexpr double kIndex = 4;

// The letters of the formulas below, as numbers that do not overflow.
struct Sizes {
  Sizes(const EtcConfig& config, const StepShape& shape)
      : batch(static_cast<double>(shape.batch)),
        long_length(static_cast<double>(shape.long_length)),
        global_length(static_cast<double>(shape.global_length)),
        long_tokens(batch * long_length),
        global_tokens(batch * global_length),
        long_outputs(batch * static_cast<double>(shape.outputs.longs.value_or(
                                 shape.long_length))),
        global_outputs(
            batch * static_cast<double>(
                        shape.outputs.globals.value_or(shape.global_length))),
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
  double long_outputs;
  double global_outputs;
  double hidden;        // H
  double heads;         // N
  double features;      // A
  double intermediate;  // F
  double ids;           // R
  double window;        // W

  double Tokens() const { return long_tokens + global_tokens; }
  // Tokens that the last layer gives outputs of.
  double Outputs() const { return long_outputs + global_outputs; }

  // Numbers in a head's scores of some long and global queries.
  double Scores(double longs, double globals) const {
    return longs * (window + global_length) +
           globals * (long_length + global_length);
  }
  // In the tensors of scores of a layer.
  double Scores() const { return heads * Scores(long_tokens, global_tokens); }
};

// --- What autograd keeps ----------------------------------------------------

// Projections per token: queries, keys and values for its own stream and for
// the other, contexts.
double Projections(const EtcConfig& config) {
  return config.share_qkv_projections ? 4 : 6;
}

// Numbers that the two residual connections of a layer keep for each token. The
// operands of the products behind them are counted apart.
double ConnectionNumbers(const EtcConfig& config, const Sizes& s,
                         LinearPrecision precision) {
  // Input of a LayerNorm, with mean and deviation; with an alpha the change.
  const auto sublayer = SublayerFromName(config.sublayer);
  const double numbers =
      sublayer == Sublayer::kReZero ? s.hidden : s.hidden + 2;
  // With an omega the stream, which is such an operand in float32.
  const bool keeps_stream =
      sublayer == Sublayer::kAdmin && precision != LinearPrecision::kFloat32;
  return 2 * (numbers + (keeps_stream ? s.hidden : 0));
}

bool IsOnDevice(const StepOptions& options) {
  return options.backend != StepBackend::kCpu;
}

bool IsRounded(const StepOptions& options) {
  return options.precision == LinearPrecision::kBfloat16;
}

double OnCpuBytes(const EtcConfig& config, const Sizes& s,
                  const StepOptions& options) {
  // Numbers per token: residual connections; queries, keys, values and
  // contexts; the largest score and the sum of a softmax.
  const double of_token = ConnectionNumbers(config, s, options.precision) +
                          Projections(config) * s.features + 2 * s.heads;
  // The feed-forward block before its activation, and operands of products. In
  // float32 these are the outputs of the two norms, and contexts that are there
  // already; else rounded copies of all.
  const double operands =
      IsRounded(options)
          ? kRounded * (2 * s.hidden + s.features + s.intermediate)
          : kFloat * (2 * s.hidden + s.intermediate);
  return s.Tokens() * (kFloat * of_token + operands);
}

// LibTorch's operations keep the activation too, and which numbers dropout
// cleared. In bfloat16 attention's operands are rounded, and each stream has a
// rounded copy of each weight that it uses.
double OnDeviceBytes(const EtcConfig& config, const Sizes& s,
                     const StepOptions& options) {
  constexpr double kBool = 1;
  const double statistics =
      options.backend == StepBackend::kCudaKernels ? 2 * s.heads : 0;
  const double of_token = ConnectionNumbers(config, s, options.precision) +
                          s.intermediate + statistics;
  const double operands =
      Projections(config) * s.features + 2 * s.hidden + s.intermediate;
  const double dropped =
      config.hidden_dropout_prob > 0 ? kBool * 2 * s.hidden : 0;
  const double tokens =
      s.Tokens() *
      (kFloat * of_token + (IsRounded(options) ? kRounded : kFloat) * operands +
       dropped);
  const double streams =
      (s.long_tokens > 0 ? 1 : 0) + (s.global_tokens > 0 ? 1 : 0);
  const double weights =
      s.hidden * (Projections(config) * s.features + 2 * s.intermediate);
  return tokens + (IsRounded(options) ? kRounded * streams * weights : 0);
}

double LayerBytes(const EtcConfig& config, const StepShape& shape,
                  const StepOptions& options) {
  const Sizes s(config, shape);
  return IsOnDevice(options) ? OnDeviceBytes(config, s, options)
                             : OnCpuBytes(config, s, options);
}

// Bytes of the scores that one layer carries to the next.
double CarriedBytes(const EtcConfig& config, const Sizes& s) {
  if (config.residual_attention == "off") {
    return 0;
  }
  return kFloat * s.Scores();
}

// Bytes of what all layers know of their inputs.
double InputBytes(const Sizes& s, const StepOptions& options) {
  if (options.backend == StepBackend::kCudaOperations) {
    // A mask for each pair, and an id of eight bytes.
    return s.Scores() / s.heads * (s.ids > 0 ? 9 : 1);
  }
  // Three sets of keys for each token, each two indices, and some runs of two.
  return 8 * kIndex * s.Tokens();
}

// Bytes of temporaries of the blocked attention of a layer: several tensors of
// as many heads' scores as it computes at a time.
double BlockedBytes(const Sizes& s) {
  constexpr double kTensors = 8;
  const BlockedBackendOptions backend;
  const double of_head =
      s.Scores(s.long_tokens, 0);  // most are those of long queries
  const auto at_once = static_cast<double>(backend.scores_at_once);
  return kFloat * kTensors *
         std::min(std::max(at_once, of_head), s.heads * of_head);
}

// Bytes of temporaries at the end of forward and where backward begins.
double WorkingBytes(const Sizes& s, const StepOptions& options,
                    double carried) {
  const bool rounded = IsOnDevice(options) && IsRounded(options);
  const double operand = rounded ? kRounded : kFloat;
  // LibTorch has both in float32, and their rounded copies.
  const double activation = IsOnDevice(options)
                                ? kFloat + (rounded ? kRounded : 0)
                            : IsRounded(options) ? kRounded
                                                 : kFloat;
  // Backward begins in the feed-forward block of the last layer, with the
  // activation and its gradient, before scores have gradients; then comes
  // attention, with the gradients of queries, keys and values of one side, when
  // what that block kept is gone.
  const double feed_forward = 2 * activation * s.long_tokens * s.intermediate;
  const double kept = IsOnDevice(options) ? kFloat + operand : activation;
  const double gone = (kFloat + operand) * s.hidden + kept * s.intermediate;
  double attention = s.Tokens() * (operand * 3 * s.features - gone);
  if (options.backend == StepBackend::kCudaKernels) {
    // Parts of the gradient of the relative table, one for each tile of
    // queries; and where scores are not carried, the products of queries, in
    // float32, and the table.
    attention +=
        kFloat * s.long_tokens / kernels::cuda::kTile * s.ids * s.features;
    if (carried == 0) {
      attention += kFloat * s.long_tokens * (s.heads * s.ids + s.features);
    }
  } else if (options.backend == StepBackend::kCudaOperations) {
    attention += BlockedBytes(s);
  }
  return std::max({feed_forward - carried, attention, 0.0});
}

// Layers in slices (etc/sliced_layer.cc), where their backward pass begins: all
// that is kept, and scores with their gradients.
ActivationBytes SlicedActivations(const EtcConfig& config, const Sizes& s,
                                  const StepOptions& options) {
  const LayerSlices& slices = *options.slices;
  const double operand = IsRounded(options) ? kRounded : kFloat;
  const double layers = static_cast<double>(config.num_hidden_layers);
  // Files hold the contexts, too.
  const double of_token =
      kFloat * s.hidden + (slices.directory.empty() ? 0 : operand * s.features);
  const double in_memory =
      s.global_tokens + (slices.directory.empty() ? s.long_tokens : 0);
  // A byte for each number of the embedding, whose dropout may have cleared it.
  const double embedded = config.hidden_dropout_prob > 0 ? s.hidden : 0;
  ActivationBytes bytes;
  bytes.saved = layers * in_memory * of_token + s.Tokens() * embedded;
  bytes.residual_scores = 2 * CarriedBytes(config, s);
  bytes.attention_inputs = InputBytes(s, options);
  // Bytes of a token at once. Autograd holds the gradient of the layer's output
  // to the end; files hold that of its input while heads are computed. Some
  // heads have queries, keys and values, contexts by tokens and by heads, and
  // the gradients of all; the gradients of contexts make way for those of
  // projections, heads by heads.
  const bool in_files = !slices.directory.empty();
  const double heads =
      std::min(static_cast<double>(slices.heads), s.heads) / s.heads;
  const double projections = Projections(config) - 1;
  const double state = kFloat * s.hidden;
  const double contexts = kFloat * s.features;
  const double products = operand * projections * s.features;
  const double by_tokens =
      2 * state + contexts + operand * s.features + (in_files ? state : 0);
  const double by_heads =
      (in_files ? 1 : 2) * state + operand * s.hidden +
      kFloat * 2 * (projections + 2) * heads * s.features +
      std::max(contexts, heads * contexts + (1 - heads) * products);
  const double at_end = 2 * state + operand * s.hidden + products;
  const double stream = std::max({by_tokens, by_heads, at_end});
  // A token in a slice has the feed-forward block's activation before and
  // after, and their gradients; the residual connections.
  const double tokens =
      std::min(static_cast<double>(slices.tokens), s.Tokens());
  const double slice = tokens * (operand * 4 * s.intermediate +
                                 kFloat * (8 * s.hidden + s.features));
  // Gradients of a layer's weights: their sums, those of a slice, and those of
  // both streams.
  const double weights =
      s.hidden * ((projections + 1) * s.features + 2 * s.intermediate);
  bytes.working = s.Tokens() * stream + slice + 3 * kFloat * weights;
  return bytes;
}

}  // namespace

ActivationBytes EstimateActivations(const EtcConfig& config,
                                    const StepShape& shape,
                                    const StepOptions& options) {
  const Sizes s(config, shape);
  if (options.slices.has_value()) {
    return SlicedActivations(config, s, options);
  }
  const double states = kFloat * (s.long_tokens + s.global_tokens) * s.hidden;
  const double layer = LayerBytes(config, shape, options);
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
    // The embedding carries no scores into the first chain; a chain that is
    // computed again is handed the gradient of its scores from outside. Single
    // layers keep no scores, and find that gradient where theirs goes
    // (etc/encoder_checkpoint.h).
    const double kept = options.storage == ScoreStorage::kStore
                            ? static_cast<double>(end - begin)
                            : 1;
    const double gradients = chains.size() > 1 ? 2 : 1;
    const bool in_place = config.grad_checkpointing_period == 1 &&
                          options.storage == ScoreStorage::kReverse;
    const double scores =
        (in_place ? 2.0 : std::max(inputs - 1, 0.0) + kept + gradients) *
        carried;
    const double saved =
        inputs * states + static_cast<double>(end - begin) * layer;
    if (saved + scores > bytes.saved + bytes.residual_scores) {
      bytes.saved = saved;
      bytes.residual_scores = scores;
    }
  }
  // The embedding's norm and dropout, and the gradient of the states.
  bytes.saved += 3 * states;
  bytes.attention_inputs = InputBytes(s, options);
  bytes.working = WorkingBytes(s, options, carried);
  return bytes;
}

ActivationBytes EstimateForwardActivations(const EtcConfig& config,
                                           const StepShape& shape,
                                           const StepOptions& options) {
  const Sizes s(config, shape);
  const bool on_device = IsOnDevice(options);
  // Bytes of a number's rounded copy for a product on the CPU.
  const double copy = IsRounded(options) && !on_device ? kRounded : 0;
  // The stream; pre-norm holds a normalized copy besides, admin and rezero at
  // the end a scaled one.
  const std::optional<Sublayer> sublayer = SublayerFromName(config.sublayer);
  const double stream =
      sublayer == Sublayer::kPreNorm ? 2 * s.hidden : s.hidden;
  const bool scales =
      sublayer == Sublayer::kAdmin || sublayer == Sublayer::kReZero;
  // Bytes of a token. Attention: queries, keys, values and contexts with the
  // statistics of the softmax, then keys, values and contexts with the output.
  // The feed-forward block: attention's output, its sum with the stream, the
  // block's output and, at the end, the next stream.
  const double attention =
      kFloat * stream + copy * s.hidden +
      std::max(kFloat * (4 * s.features + 2 * s.heads),
               kFloat * (3 * s.features + s.hidden) + copy * s.features);
  const double block = kFloat * (stream + 3 * s.hidden);
  const double end = block + kFloat * (scales ? 2 : 1) * s.hidden;
  // The feed-forward block's activation, before and after, of a slice of rows.
  const double rows = std::max(s.long_tokens, s.global_tokens);
  const double slice =
      std::min(rows, static_cast<double>(kFeedForwardSliceRows));
  const double activation = on_device            ? 3 * kFloat
                            : IsRounded(options) ? kRounded
                                                 : 2 * kFloat;
  const double of_slice = activation * s.intermediate +
                          (rows > slice ? kFloat : 0) * s.hidden +
                          copy * s.hidden;

  ActivationBytes bytes;
  const bool is_buffered = options.storage != ScoreStorage::kStore &&
                           options.backend != StepBackend::kCudaOperations;
  bytes.residual_scores = (is_buffered ? 1 : 2) * CarriedBytes(config, s);
  bytes.attention_inputs = InputBytes(s, options);
  bytes.working = std::max(
      {s.Tokens() * attention + (options.backend == StepBackend::kCudaOperations
                                     ? BlockedBytes(s)
                                     : 0),
       s.Tokens() * block + slice * of_slice, s.Tokens() * end});
  return bytes;
}

// --- Operations -------------------------------------------------------------

ForwardFlops CountForwardFlops(const EtcConfig& config,
                               const StepShape& shape) {
  const Sizes s(config, shape);
  const double tokens = s.Tokens();
  const double layers = static_cast<double>(config.num_hidden_layers);
  // In the last layer only tokens whose outputs are wanted have queries.
  const double queries = (layers - 1) * tokens + s.Outputs();
  const double scores =
      (layers - 1) * s.Scores(s.long_tokens, s.global_tokens) +
      s.Scores(s.long_outputs, s.global_outputs);

  ForwardFlops flops;
  flops.projections =
      2 * ((Projections(config) - 2) * layers * tokens + 2 * queries) *
      s.hidden * s.features;
  flops.attention = 2 * (2 * scores + queries * s.ids) * s.features;
  flops.feed_forward = 2 * 2 * queries * s.hidden * s.intermediate;
  if (config.token_embedding_size() != config.hidden_size) {
    flops.embedding = 2 * tokens *
                      static_cast<double>(config.token_embedding_size()) *
                      s.hidden;
  }
  return flops;
}

double LayerPasses(const EtcConfig& config, const StepOptions& options) {
  if (options.slices.has_value()) {
    // Projections and attention twice, unless contexts were kept; these are
    // some half of a pass.
    return options.slices->directory.empty() ? 4.5 : 4;
  }
  const auto chains = CheckpointChains(config.num_hidden_layers,
                                       config.grad_checkpointing_period);
  const double recomputed_layers = static_cast<double>(chains.back().first);
  return 3 + recomputed_layers / static_cast<double>(config.num_hidden_layers);
}

namespace {

// Times that the scores of some layer are computed again.
double RecomputedScores(const EtcConfig& config, const StepOptions& options) {
  if (config.residual_attention == "off" ||
      options.storage != ScoreStorage::kRecompute) {
    return 0;
  }
  int64_t times = 0;
  for (const auto& [begin, end] : CheckpointChains(
           config.num_hidden_layers, config.grad_checkpointing_period)) {
    times += (end - begin) * (end - begin - 1) / 2;
  }
  return static_cast<double>(times);
}

}  // namespace

double CountRecomputedScoreFlops(const EtcConfig& config,
                                 const StepShape& shape,
                                 const StepOptions& options) {
  const Sizes s(config, shape);
  return RecomputedScores(config, options) * 2 *
         (s.Scores(s.long_tokens, s.global_tokens) + s.Tokens() * s.ids) *
         s.features;
}

double CountTrainingFlops(const EtcConfig& config, const StepShape& shape,
                          const StepOptions& options) {
  const ForwardFlops forward = CountForwardFlops(config, shape);
  return 3 * forward.embedding +
         LayerPasses(config, options) * (forward.total() - forward.embedding) +
         CountRecomputedScoreFlops(config, shape, options);
}

double CountTrainingTraffic(const EtcConfig& config, const StepShape& shape,
                            const StepOptions& options) {
  const Sizes s(config, shape);
  const double again = LayerPasses(config, options) - 3;
  const double products = Projections(config) - 1;
  const bool rounded = options.precision == LinearPrecision::kBfloat16;
  // A norm reads change and residual and writes sum and output; its gradient
  // reads two and writes two. An omega reads and writes the residual before;
  // its gradient reads two and writes one. An alpha reads and writes the change
  // for dropout, then reads two and writes one; its gradients read three and
  // write two. Two of them, and one more gradient for each product that reads
  // the same input, added in place; in bfloat16 for all of them together.
  const auto sublayer = SublayerFromName(config.sublayer);
  const double forward = sublayer == Sublayer::kReZero  ? 5
                         : sublayer == Sublayer::kAdmin ? 6
                                                        : 4;
  const double backward = sublayer == Sublayer::kReZero  ? 5
                          : sublayer == Sublayer::kAdmin ? 7
                                                         : 4;
  const double norms =
      2 * ((1 + again) * forward + backward) + 3 * (rounded ? 1 : products);
  // Sums of bias gradients, which bfloat16 has while rounding them, and
  // gradients of queries, keys and values that begin with zeros.
  const double projections = (rounded ? 1 : 2) * products + 1;
  // The activation reads and writes; its gradient reads two and writes two. In
  // bfloat16 two are written of two bytes; then one is read and two written.
  const double activation = rounded ? (1 + again) + 1.5 : (1 + again) * 2 + 4;
  const double layers = static_cast<double>(config.num_hidden_layers);
  double numbers = layers * s.Tokens() * projections * s.features +
                   ((layers - 1) * s.Tokens() + s.Outputs()) *
                       (norms * s.hidden + activation * s.intermediate);
  if (rounded) {
    // Reads four bytes and writes two: inputs forward, gradients backward.
    numbers += 1.5 * layers * s.Tokens() *
               ((1 + again) * (2 * s.hidden + s.features) +
                products * s.features + 2 * s.hidden);
  }
  if (config.residual_attention != "off") {
    // Scores are read and written forward; backward they and their gradients.
    numbers += (layers * ((1 + again) * 2 + 4) +
                2 * RecomputedScores(config, options)) *
               s.Scores();
  }
  return kFloat * numbers;
}

}  // namespace etc
