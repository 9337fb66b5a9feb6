#ifndef ETC_TESTS_TASKS_ANALYSIS_DEFINITIONS_H_
#define ETC_TESTS_TASKS_ANALYSIS_DEFINITIONS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/types/span.h"
#include "attention/entropy_term.h"

// The quantities of doc/attention_analysis.md of one row of attention weights,
// in double: the definitions that AttentionPass is tested against.
namespace etc {

// Entropy -sum(p ln p) in nats; terms with p = 0 are 0.
inline double Entropy(absl::Span<const double> p) {
  double sum = 0.0;
  for (const double value : p) {
    sum += EntropyTerm(value);
  }
  return sum;
}

// Jensen-Shannon divergence of p and q, base 2, in [0, 1]; a divergence, not
// its square root:
//
//   sum over keys of 1/2 (p log2(2p / (p + q)) + q log2(2q / (p + q)))
//
// Both have the same keys in the same order.
inline double JensenShannon(absl::Span<const double> p,
                            absl::Span<const double> q) {
  const auto term = [](double a, double b) {
    return a > 0.0 ? a * std::log2(2.0 * a / (a + b)) : 0.0;
  };
  double sum = 0.0;
  for (size_t k = 0; k < p.size(); ++k) {
    sum += term(p[k], q[k]) + term(q[k], p[k]);
  }
  return std::clamp(0.5 * sum, 0.0, 1.0);
}

// A row of attention weights over two blocks of keys, with a the mass of its
// own block: H = h(a) + a H_own + (1 - a) H_other, h the binary entropy.
struct BlockEntropy {
  double own_mass = 0;  // a
  double between = 0;   // h(a), nats
  double own = 0;       // entropy of the renormalised block, nats
  double other = 0;     // idem; 0 for a block without mass
  // The entropy of the row by the identity above.
  double joint() const {
    return between + own_mass * own + (1.0 - own_mass) * other;
  }
};

inline BlockEntropy SplitEntropy(absl::Span<const double> own,
                                 absl::Span<const double> other) {
  const auto renormalised = [](absl::Span<const double> block, double mass) {
    double sum = 0.0;
    for (const double p : block) {
      sum += mass > 0.0 ? EntropyTerm(p / mass) : 0.0;
    }
    return sum;
  };
  const double a = std::accumulate(own.begin(), own.end(), 0.0);
  const double b = std::accumulate(other.begin(), other.end(), 0.0);
  return {.own_mass = a,
          .between = EntropyTerm(a) + EntropyTerm(b),
          .own = renormalised(own, a),
          .other = renormalised(other, b)};
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_ANALYSIS_DEFINITIONS_H_
