#ifndef ETC_PYTHON_CSRC_PATTERN_ARGUMENTS_H_
#define ETC_PYTHON_CSRC_PATTERN_ARGUMENTS_H_

#include <torch/types.h>

#include <cstdint>

#include "attention/softmax_pattern.h"

namespace etc {

// Kinds of patterns; python/realetc/patterns.py has the same numbers. One block
// of keys: kAllKeys, kCausal, kWindow, kMatrix. Two blocks, the long and the
// global softmax of ETC: kLongSide, kGlobalSide.
enum class PatternKind : int64_t {
  kAllKeys,
  kCausal,
  kWindow,
  kMatrix,
  kLongSide,
  kGlobalSide
};

// A pattern as arguments of an operation: a few numbers and up to two tensors
// whose shapes follow from those of queries and keys. So operations that take
// it can be traced, and none of it depends on data.
//
// Tensors on any device; they are read on the CPU:
//
//   kAllKeys, kCausal, kWindow   none; `first` [B, S] bool: keys that are no
//                                padding; or `first` [B, T] and `second` [B, S]
//                                int64 or int32: documents, 0 for padding
//   kMatrix                      `first` bool, [B or 1, T or 1, S or 1]: which
//                                keys each query sees
//   kLongSide, kGlobalSide       none: everything; bool [B, L] and [B, G]: no
//                                padding; integers [B, L] and [B, G]:
//                                documents; int32 [B, 6, L] and [B, 3, G]: the
//                                vectors of AttentionPattern, in the order of
//                                its members
struct PatternArguments {
  // m of relative ids; 0: none.
  int64_t max_distance() const { return numbers[3]; }

  // Kind, before, after, max_distance, causal, hard_l2g, hard_g2l. Of kWindow
  // the keys before and after a query; `before` is the local radius of ETC's
  // sides.
  at::IntArrayRef numbers;
  torch::Tensor first, second;
};

// Sizes of the tensors that a pattern is for.
struct PatternSizes {
  int64_t batch = 0;
  int64_t queries = 0;
  int64_t own_keys = 0;
  int64_t other_keys = 0;
};

// Builds the pattern. Throws c10::Error if numbers or tensors contradict each
// other or do not fit the sizes.
SoftmaxPattern PatternOf(const PatternArguments& arguments,
                         const PatternSizes& sizes);

}  // namespace etc

#endif  // ETC_PYTHON_CSRC_PATTERN_ARGUMENTS_H_
