#include "etc/encoder_decoder/decoder_cache.h"

#include <c10/util/Exception.h>

namespace etc {
namespace {

// The rows of keys and values, along their first axis.
KeyValueHeads SelectedHeads(const KeyValueHeads& heads,
                            const torch::Tensor& indices) {
  const torch::Tensor rows = indices.to(heads.key.device());
  return {.key = heads.key.index_select(0, rows),
          .value = heads.value.index_select(0, rows)};
}

void CheckIndices(const torch::Tensor& indices, const char* name,
                  int64_t count) {
  TORCH_CHECK(indices.dim() == 1 && indices.scalar_type() == torch::kInt64 &&
                  indices.is_cpu(),
              name, " should be [n] int64 on the CPU, but are ",
              indices.sizes(), " ", indices.scalar_type());
  TORCH_CHECK(indices.numel() == 0 || (indices.min().item<int64_t>() >= 0 &&
                                       indices.max().item<int64_t>() < count),
              name, " should be in [0, ", count, "), but are ", indices);
}

bool IsIdentity(const torch::Tensor& indices, int64_t count) {
  return indices.numel() == count &&
         indices.equal(torch::arange(count, torch::kInt64));
}

}  // namespace

void DecoderCache::Select(const torch::Tensor& parents,
                          const torch::Tensor& kept) {
  if (parents.defined()) {
    CheckIndices(parents, "parents", rows);
  }
  if (kept.defined()) {
    CheckIndices(kept, "kept", sentences);
  }
  const int64_t new_rows = parents.defined() ? parents.numel() : rows;
  const int64_t new_sentences = kept.defined() ? kept.numel() : sentences;
  TORCH_CHECK(new_sentences > 0 ? new_rows % new_sentences == 0 : new_rows == 0,
              "rows should be a multiple of the sentences, but are ", new_rows,
              " for ", new_sentences);
  if (parents.defined() && !IsIdentity(parents, rows)) {
    for (DecoderLayerCache& layer : layers) {
      if (layer.self.key.defined()) {
        layer.self = SelectedHeads(layer.self, parents);
      }
    }
  }
  if (kept.defined() && !IsIdentity(kept, sentences)) {
    for (DecoderLayerCache& layer : layers) {
      layer.memory = SelectedHeads(layer.memory, kept);
    }
    if (memory_mask.defined()) {
      memory_mask = memory_mask.index_select(0, kept.to(memory_mask.device()));
    }
  }
  rows = new_rows;
  sentences = new_sentences;
}

}  // namespace etc
