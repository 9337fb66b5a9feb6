#ifndef ETC_ATTENTION_SCORE_STORAGE_H_
#define ETC_ATTENTION_SCORE_STORAGE_H_

namespace etc {

// Storage of the layers' scores, where a fused backend computes them (the
// reference always stores):
//
//   kStore      each layer has tensors of its own, which autograd keeps
//   kReverse    one buffer for all layers: each adds its scores in place, and
//               the backward pass, which computes them again anyway, subtracts
//               them: S_{n-1} = S_n - s_n. Exact up to rounding, about 1e-7 of
//               the largest score over 24 layers: gradients are off by 1e-6 of
//               their size where scores stay below 10, 1e-5 where they reach
//               170, 3e-4 at 3,400 (kGate: in every storage, since its backward
//               pass finds S_{n-1} by the same subtraction)
//   kRecompute  one buffer; before the backward pass of layer n it is filled
//               anew from the queries and keys of layers 0 to n: the same bits
//               as kStore, at a cost that grows with the square of the depth
//
// With one buffer, a layer's scores can be carried to one layer only, which
// the same implementation computes, and are valid until that layer runs; after
// the backward pass they are not, nor after a pass that ended with an
// exception. Any other use, reading included (ScoreTensor) and changes in
// place, throws c10::Error, as does, with kReverse, a second backward pass, and
// one that has to compute scores of a layer whose operands were changed since.
// Gradients of carried scores share a buffer too, and the pass writes
// over them: a hook that keeps them has to copy them.
enum class ScoreStorage { kStore, kReverse, kRecompute };

// The storages by name, in the order of the enum.
inline constexpr const char* kScoreStorageNames[] = {"store", "reverse",
                                                     "recompute"};

}  // namespace etc

#endif  // ETC_ATTENTION_SCORE_STORAGE_H_
