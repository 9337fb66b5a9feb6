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
  // Sizes of the other layers.
  Sizes WithAllOutputs() const {
    Sizes all = *this;
    all.long_outputs = long_tokens;
    all.global_outputs = global_tokens;
    return all;
  }

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

// Returns true if layers leave their residual scores in one buffer.
bool IsBuffered(const StepOptions& options) {
  return options.storage != ScoreStorage::kStore &&
         options.backend != StepBackend::kCudaOperations;
}

bool IsRounded(const StepOptions& options) {
  return options.precision == LinearPrecision::kBfloat16;
}

// Bytes that a layer keeps of a token.
struct TokenBytes {
  // Keys that the other stream asks, with their values.
  double keys;
  // Activations up to contexts, of a stream with outputs (OutputRows).
  double attention;
  // Activations behind attention, of a token with an output.
  double output;
};

TokenBytes OnCpuBytes(const EtcConfig& config, const Sizes& s,
                      const StepOptions& options) {
  // A rounded copy of the input; in float32 the layer below has kept it.
  const double input = IsRounded(options) ? kRounded * s.hidden : 0;
  // The feed-forward block before its activation, and operands of products. In
  // float32 these are the outputs of the two norms, and contexts that are there
  // already; else rounded copies.
  const double operands =
      IsRounded(options) ? kRounded * (s.hidden + s.features + s.intermediate)
                         : kFloat * (2 * s.hidden + s.intermediate);
  return {.keys = input + kFloat * 2 * s.features,
          // Queries, keys, values and contexts; the largest score and the sum
          // of a softmax.
          .attention =
              input + kFloat * (Projections(config) * s.features + 2 * s.heads),
          .output = kFloat * ConnectionNumbers(config, s, options.precision) +
                    operands};
}

// LibTorch's operations keep the activation too, and which numbers dropout
// cleared. In bfloat16 attention's operands are rounded.
TokenBytes OnDeviceBytes(const EtcConfig& config, const Sizes& s,
                         const StepOptions& options) {
  constexpr double kBool = 1;
  const double operand = IsRounded(options) ? kRounded : kFloat;
  const double input = IsRounded(options) ? kRounded * s.hidden : 0;
  const double statistics =
      options.backend == StepBackend::kCudaKernels ? 2 * s.heads : 0;
  const double dropped =
      config.hidden_dropout_prob > 0 ? kBool * 2 * s.hidden : 0;
  return {.keys = input + operand * 2 * s.features,
          .attention = input + operand * Projections(config) * s.features +
                       kFloat * statistics,
          .output = kFloat * (ConnectionNumbers(config, s, options.precision) +
                              s.intermediate) +
                    operand * (2 * s.hidden + s.intermediate) - input +
                    dropped};
}

// Each stream has a rounded copy of each weight that it uses on a device.
double RoundedWeightBytes(const EtcConfig& config, const Sizes& s,
                          const StepOptions& options) {
  if (!IsOnDevice(options) || !IsRounded(options)) {
    return 0;
  }
  const double streams =
      (s.long_tokens > 0 ? 1 : 0) + (s.global_tokens > 0 ? 1 : 0);
  return kRounded * streams * s.hidden *
         (Projections(config) * s.features + 2 * s.intermediate);
}

// Bytes that a layer keeps that gives the outputs of `s`.
double LayerBytes(const EtcConfig& config, const Sizes& s,
                  const StepOptions& options) {
  const TokenBytes bytes = IsOnDevice(options)
                               ? OnDeviceBytes(config, s, options)
                               : OnCpuBytes(config, s, options);
  const auto of_stream = [&](double tokens, double outputs) {
    return outputs > 0 ? tokens * bytes.attention + outputs * bytes.output
                       : tokens * bytes.keys;
  };
  return of_stream(s.long_tokens, s.long_outputs) +
         of_stream(s.global_tokens, s.global_outputs) +
         RoundedWeightBytes(config, s, options);
}

// Bytes of the scores that one layer carries to the next, by queries.
struct CarriedBytes {
  CarriedBytes(const EtcConfig& config, const Sizes& s) {
    if (config.residual_attention != "off") {
      longs = kFloat * s.heads * s.Scores(s.long_tokens, 0);
      globals = kFloat * s.heads * s.Scores(0, s.global_tokens);
    }
  }

  double total() const { return longs + globals; }

  double longs = 0;
  double globals = 0;
};

// Bytes of the gradients of residual scores while the backward pass is at layer
// `layer` of all, the last or one below. The first layer takes no scores; the
// last has none of a stream without outputs.
double ScoreGradientBytes(const EtcConfig& config, const Sizes& last,
                          int64_t layer) {
  const CarriedBytes carried(config, last);
  const int64_t top = config.num_hidden_layers - 1;
  const auto has = [&](double outputs) {
    return top >= 1 && (outputs > 0 || (top >= 2 && layer < top)) ? 1 : 0;
  };
  return has(last.long_outputs) * carried.longs +
         has(last.global_outputs) * carried.globals;
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

// Bytes of temporaries where the backward pass of a layer begins that gives the
// outputs of `s`. `score_gradients` are counted beside them.
double WorkingBytes(const Sizes& s, const StepOptions& options, bool carries,
                    double score_gradients) {
  const bool rounded = IsOnDevice(options) && IsRounded(options);
  const double operand = rounded ? kRounded : kFloat;
  // LibTorch has both in float32, and their rounded copies.
  const double activation = IsOnDevice(options)
                                ? kFloat + (rounded ? kRounded : 0)
                            : IsRounded(options) ? kRounded
                                                 : kFloat;
  // Backward begins in the feed-forward block, with the activation and its
  // gradient, in the last layer before scores have gradients; then comes
  // attention, with the gradients of queries, keys and values of one side, when
  // what that block kept is gone.
  const double feed_forward = 2 * activation * s.long_outputs * s.intermediate;
  const double kept = IsOnDevice(options) ? kFloat + operand : activation;
  const double gone = (kFloat + operand) * s.hidden + kept * s.intermediate;
  const auto of_stream = [&](double tokens, double outputs) {
    return tokens * operand * (outputs > 0 ? 3 : 2) * s.features -
           outputs * gone;
  };
  double attention = of_stream(s.long_tokens, s.long_outputs) +
                     of_stream(s.global_tokens, s.global_outputs);
  if (options.backend == StepBackend::kCudaKernels) {
    // Parts of the gradient of the relative table, one for each tile of
    // queries; and where scores are not carried, the products of queries, in
    // float32, and the table.
    attention +=
        kFloat * s.long_tokens / kernels::cuda::kTile * s.ids * s.features;
    if (!carries) {
      attention += kFloat * s.long_tokens * (s.heads * s.ids + s.features);
    }
  } else if (options.backend == StepBackend::kCudaOperations) {
    attention += BlockedBytes(s);
  }
  return std::max({feed_forward - score_gradients, attention, 0.0});
}

// Layers in slices (etc/sliced_layer.cc), where the backward pass begins of the
// last layer, or the one below if that has no long outputs: all that is kept,
// and scores with their gradients.
ActivationBytes SlicedActivations(const EtcConfig& config, const Sizes& s,
                                  const StepOptions& options) {
  const LayerSlices& slices = *options.slices;
  const double operand = IsRounded(options) ? kRounded : kFloat;
  const int64_t count = config.num_hidden_layers;
  const bool is_last = s.long_outputs > 0 || s.long_tokens == 0 || count == 1;
  const double layers = static_cast<double>(is_last ? count : count - 1);
  // Files hold the contexts, too.
  const double of_token =
      kFloat * s.hidden + (slices.directory.empty() ? 0 : operand * s.features);
  const double in_memory =
      s.global_tokens + (slices.directory.empty() ? s.long_tokens : 0);
  // A byte for each number of the embedding, whose dropout may have cleared it.
  const double embedded = config.hidden_dropout_prob > 0 ? s.hidden : 0;
  ActivationBytes bytes;
  bytes.saved = layers * in_memory * of_token + s.Tokens() * embedded;
  bytes.residual_scores = CarriedBytes(config, s).total() +
                          ScoreGradientBytes(config, s, count - 2);
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

// A moment of the backward pass: it comes to layer `end - 1`, of a chain that
// begins with layer `begin`.
struct Moment {
  double inputs;  // chains whose inputs are there
  int64_t begin;
  int64_t end;
  bool is_recomputed = false;
};

// Copies of the scores of one stream's queries, without their gradients, if
// chains of layers have scores of their own.
double ScoreCopies(const Moment& moment, const EtcConfig& config,
                   const StepOptions& options, bool has_outputs) {
  const int64_t count = moment.end - moment.begin;
  // The last layer has none of a stream without outputs.
  const int64_t layers = moment.end == config.num_hidden_layers && !has_outputs
                             ? count - 1
                             : count;
  // The graph holds the buffer of the last chain to the end, with the scores
  // from below.
  const bool is_held = moment.is_recomputed && IsBuffered(options) &&
                       (config.grad_checkpointing_period > 1 || has_outputs);
  const double own = static_cast<double>(options.storage == ScoreStorage::kStore
                                             ? layers
                                             : std::min<int64_t>(layers, 1));
  // The embedding carries no scores into the first chain.
  return own + std::max(moment.inputs - 1, 0.0) + (is_held ? 2 : 0);
}

// Bytes of residual scores and their gradients.
double ScoreBytesAt(const Moment& moment, const EtcConfig& config,
                    const Sizes& last, const StepOptions& options) {
  const int64_t period = config.grad_checkpointing_period;
  const double gradients = ScoreGradientBytes(config, last, moment.end - 1);
  const auto bytes = [&](const Moment& at) {
    const CarriedBytes carried(config, last);
    return ScoreCopies(at, config, options, last.long_outputs > 0) *
               carried.longs +
           ScoreCopies(at, config, options, last.global_outputs > 0) *
               carried.globals;
  };
  if (period <= 0 || period >= config.num_hidden_layers) {
    return bytes(moment) + gradients;
  }
  if (period == 1 && options.storage == ScoreStorage::kReverse) {
    // Single layers keep no scores, and find their gradient where theirs goes
    // (etc/encoder_checkpoint.h): all layers are like one chain.
    return bytes({.inputs = 0, .begin = 0, .end = moment.end}) + gradients;
  }
  // A chain that is computed again is handed the gradient of its scores from
  // outside; with kRecompute that of those from below has memory of its own.
  const bool has_third =
      options.storage == ScoreStorage::kRecompute && period > 1;
  return bytes(moment) + (has_third ? 3 : 2) * gradients;
}

// Bytes held at the moment, without the inputs of attention.
ActivationBytes ActivationsAt(const Moment& moment, const EtcConfig& config,
                              const Sizes& last, const StepOptions& options) {
  const Sizes s = last.WithAllOutputs();
  const Sizes& here = moment.end == config.num_hidden_layers ? last : s;
  const double states = kFloat * s.Tokens() * s.hidden;
  ActivationBytes bytes;
  // The embedding's norm and dropout, and the gradient of the states.
  bytes.saved = (moment.inputs + 3) * states +
                static_cast<double>(moment.end - 1 - moment.begin) *
                    LayerBytes(config, s, options) +
                LayerBytes(config, here, options);
  bytes.residual_scores = ScoreBytesAt(moment, config, last, options);
  bytes.working =
      WorkingBytes(here, options, CarriedBytes(config, last).total() > 0,
                   ScoreGradientBytes(config, last, moment.end - 1));
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
  // A chain that is recomputed keeps its inputs only; the layers of one chain
  // at a time are there. The last chain is computed once.
  const auto chains = CheckpointChains(config.num_hidden_layers,
                                       config.grad_checkpointing_period);
  ActivationBytes most;
  const auto consider = [&](const Moment& moment) {
    const ActivationBytes bytes = ActivationsAt(moment, config, s, options);
    if (bytes.total() > most.total()) {
      most = bytes;
    }
  };
  for (size_t i = 0; i < chains.size(); ++i) {
    const auto [begin, end] = chains[i];
    const double inputs =
        static_cast<double>(std::min(i + 1, chains.size() - 1));
    const bool is_last = end == config.num_hidden_layers;
    consider({.inputs = inputs,
              .begin = begin,
              .end = end,
              .is_recomputed = !is_last});
    // The layer before the last has all outputs.
    if (is_last && end - begin > 1) {
      consider({.inputs = inputs, .begin = begin, .end = end - 1});
    }
  }
  most.attention_inputs = InputBytes(s, options);
  return most;
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
  bytes.residual_scores =
      (IsBuffered(options) ? 1 : 2) * CarriedBytes(config, s).total();
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
