#ifndef ETC_ETC_MODEL_SIZE_H_
#define ETC_ETC_MODEL_SIZE_H_

#include <cstdint>

#include "etc/config.h"

namespace etc {

// Numbers of parameters of an EtcModel, by their purpose. With H hidden size, A
// = heads x head size, F intermediate size, R relative vocabulary, and n layers
// (doc/model.md 1.2):
struct ParameterCounts {
  // The token table, and its projection if it is not H wide.
  int64_t token_embedding = 0;
  // Segment and absolute position tables and a LayerNorm, of each stream.
  int64_t other_embedding = 0;
  // Query, key, value and output projections: P (H A + A) + O (A H + H) a
  // layer, P in {3, 6, 10} and O in {1, 2}, depending on sharing.
  int64_t attention = 0;
  // Keys and biases of relative ids: R (A + heads) a stream and layer.
  int64_t relative_attention = 0;
  // 2 H F + F + H a layer, twice that if not shared.
  int64_t feed_forward = 0;
  // 2 H for each LayerNorm of the layers and behind them.
  int64_t layer_norm = 0;
  // Gates of residual attention "gate": one a head for each of the four blocks
  // of attention (BERT: the one block) of every layer but the first.
  int64_t gates = 0;
  // 1 for each alpha of sublayer "rezero", H for each omega of "admin".
  int64_t residual_scale = 0;

  int64_t total() const {
    return token_embedding + other_embedding + attention + relative_attention +
           feed_forward + layer_norm + gates + residual_scale;
  }
};

// Counts without building the model. `config` has passed CheckEtcConfig. BERT's
// pooler is not counted.
ParameterCounts CountParameters(const EtcConfig& config);

}  // namespace etc

#endif  // ETC_ETC_MODEL_SIZE_H_
