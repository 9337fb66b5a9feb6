#ifndef ETC_ATTENTION_SOME_HEADS_H_
#define ETC_ATTENTION_SOME_HEADS_H_

#include <torch/types.h>

#include <cstdint>

#include "attention/attention_operands.h"

namespace etc {

// Views of some heads of a tensor whose axis they are; of all the tensor
// itself, whose gradient then takes no detour. An undefined tensor stays so.
inline torch::Tensor SomeHeads(const torch::Tensor& tensor, int64_t axis,
                               const HeadRange& heads) {
  return !tensor.defined() || heads.count == tensor.size(axis)
             ? tensor
             : tensor.narrow(axis, heads.begin, heads.count);
}

// The same of each tensor of a struct, whose axis `axis` are the heads: 0 of
// gates, 1 of operands, scores and contexts.
template <typename Tensors>
Tensors SomeHeadsOfEach(Tensors all, int64_t axis, const HeadRange& heads) {
  all.ForEachTensor(
      [&](torch::Tensor& tensor) { tensor = SomeHeads(tensor, axis, heads); });
  return all;
}

}  // namespace etc

#endif  // ETC_ATTENTION_SOME_HEADS_H_
