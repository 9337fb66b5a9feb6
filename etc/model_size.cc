#include "etc/model_size.h"

namespace etc {
namespace {

// A linear map with bias.
int64_t Linear(int64_t in, int64_t out) { return in * out + out; }

// Distinct query, key and value projections of a layer (doc/model.md 3.5).
int64_t QkvProjections(const EtcConfig& config) {
  if (config.share_qkv_projections) {
    return 3;
  }
  return config.share_kv_projections ? 6 : 10;
}

}  // namespace

ParameterCounts CountParameters(const EtcConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t heads = config.num_attention_heads;
  const int64_t attention = heads * config.head_size();
  const int64_t embedding = config.token_embedding_size();
  const int64_t layers = config.num_hidden_layers;
  const int64_t layer_norm = 2 * hidden;
  const int64_t output_projections = config.share_att_output_projection ? 1 : 2;
  const int64_t feed_forwards = config.share_feed_forward_params ? 1 : 2;
  const int64_t streams = config.has_long_tokens ? 2 : 1;

  ParameterCounts counts;
  counts.token_embedding = config.vocab_size * embedding;
  if (embedding != hidden) {
    counts.token_embedding += Linear(embedding, hidden);
  }
  counts.other_embedding = (config.segment_vocab_size +
                            streams * config.max_absolute_position_embeddings) *
                               hidden +
                           streams * layer_norm;
  counts.attention =
      layers * (QkvProjections(config) * Linear(hidden, attention) +
                output_projections * Linear(attention, hidden));
  counts.relative_attention = layers * streams *
                              config.relative_vocab_size.value_or(0) *
                              (attention + heads);
  counts.feed_forward = layers * feed_forwards *
                        (Linear(hidden, config.intermediate_size) +
                         Linear(config.intermediate_size, hidden));
  const int64_t connections = layers * (streams + feed_forwards);
  const auto sublayer = SublayerFromName(config.sublayer);
  if (sublayer == Sublayer::kReZero) {
    counts.residual_scale = connections;
  } else {
    counts.layer_norm = connections * layer_norm;
  }
  if (sublayer == Sublayer::kAdmin) {
    counts.residual_scale = connections * hidden;
  }
  if (config.final_layer_norm) {
    counts.layer_norm += streams * layer_norm;
  }
  if (config.residual_attention == "gate") {
    const int64_t blocks = streams * streams;
    counts.gates = (layers - 1) * blocks * heads;
  }
  return counts;
}

}  // namespace etc
