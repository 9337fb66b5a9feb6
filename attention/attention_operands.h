#ifndef ETC_ATTENTION_ATTENTION_OPERANDS_H_
#define ETC_ATTENTION_ATTENTION_OPERANDS_H_

#include <torch/types.h>

#include <cstdint>

namespace etc {

// Some of the heads of an attention layer.
struct HeadRange {
  int64_t begin = 0;
  int64_t count = 0;
};

// The learned relative positions of one softmax: R ids, N heads, d features.
// Both undefined: no relative positions.
struct RelativeTable {
  torch::Tensor embedding = {};  // [R, N, d]
  torch::Tensor bias = {};       // [R, N]
};

// The operands of one softmax: T queries over two blocks of keys, of which
// either may be empty. In ETC's layers "own" keys are tokens of the queries'
// own stream (l2l, g2g), "other" keys tokens of the other stream (l2g, g2l).
// All are float64, or all float32, bfloat16 and float16, in any mixture; and
// all finite, padding included, since 0, the weight of a key that is not seen,
// times NaN is NaN. The gradients of these tensors are an AttentionOperands
// too.
//
// B batch, N heads, d head_dim, e value_dim:
struct AttentionOperands {
  torch::Tensor query = {};        // [B, N, T, d]
  torch::Tensor own_key = {};      // [B, N, own keys, d]
  torch::Tensor own_value = {};    // [B, N, own keys, e]
  torch::Tensor other_key = {};    // [B, N, other keys, d]
  torch::Tensor other_value = {};  // [B, N, other keys, e]
  RelativeTable relative = {};

  // Calls function(tensor) for each tensor, defined or not, in the order above.
  template <typename Function>
  void ForEachTensor(const Function& function) {
    Visit(*this, function);
  }
  template <typename Function>
  void ForEachTensor(const Function& function) const {
    Visit(*this, function);
  }

 private:
  template <typename Self, typename Function>
  static void Visit(Self& self, const Function& function) {
    for (auto* tensor :
         {&self.query, &self.own_key, &self.own_value, &self.other_key,
          &self.other_value, &self.relative.embedding, &self.relative.bias}) {
      function(*tensor);
    }
  }
};

// The factors of carried scores in the logits of ResidualAttention::kGate, one
// for each head: [N]. Both are defined, or neither. Their dtypes are as those
// of operands (AttentionOperands).
struct ResidualGates {
  torch::Tensor own = {};
  torch::Tensor other = {};

  bool defined() const { return own.defined(); }

  // Calls function(tensor) for both, defined or not.
  template <typename Function>
  void ForEachTensor(const Function& function) {
    function(own);
    function(other);
  }
  template <typename Function>
  void ForEachTensor(const Function& function) const {
    function(own);
    function(other);
  }
};

// Numbers for each query and key of both blocks: scores, their gradients, or
// factors of dropout. Both tensors are defined, or neither. Scores are float64
// for operands of float64, else float32.
struct ScorePair {
  // [B, N, T, own keys]; with a window over own keys (SoftmaxPattern) [B, N, T,
  // before + 1 + after], where column w of row i is key i + w - before.
  torch::Tensor own = {};
  torch::Tensor other = {};  // [B, N, T, other keys]

  bool defined() const { return own.defined(); }

  template <typename Function>
  void ForEachTensor(const Function& function) {
    function(own);
    function(other);
  }
  template <typename Function>
  void ForEachTensor(const Function& function) const {
    function(own);
    function(other);
  }
};

}  // namespace etc

#endif  // ETC_ATTENTION_ATTENTION_OPERANDS_H_
