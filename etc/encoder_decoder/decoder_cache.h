#ifndef ETC_ETC_ENCODER_DECODER_DECODER_CACHE_H_
#define ETC_ETC_ENCODER_DECODER_DECODER_CACHE_H_

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "attention/multi_head_attention.h"

namespace etc {

// Projected keys and values of one layer for incremental decoding
// (doc/translation.md 3.2). Scores are not among them: a row of scores serves
// its own query only.
struct DecoderLayerCache {
  KeyValueHeads self = {};    // [rows, N, tokens so far, head_size]
  KeyValueHeads memory = {};  // [B, N, S, head_size]
};

// The state of incremental decoding: rows / B hypotheses for each of B
// sentences, in order of sentences. Made by TransformerDecoder::Begin, with one
// row a sentence.
struct DecoderCache {
  std::vector<DecoderLayerCache> layers = {};
  int64_t length = 0;     // tokens of each hypothesis so far
  int64_t sentences = 0;  // B
  int64_t rows = 0;
  int64_t memory_length = 0;       // S
  torch::Tensor memory_mask = {};  // [B, S] bool; undefined: all tokens

  // Makes row i of the new cache what row parents[i] was, and sentence j what
  // sentence kept[j] was: hypotheses that are continued, and sentences that are
  // still searched. Both int64 on the CPU; an undefined one keeps all. Throws
  // c10::Error if rows are no multiple of sentences, or indices are not there.
  void Select(const torch::Tensor& parents, const torch::Tensor& kept);
};

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_DECODER_CACHE_H_
