#ifndef ETC_ATTENTION_ENTROPY_TERM_H_
#define ETC_ATTENTION_ENTROPY_TERM_H_

#include <cmath>

namespace etc {

// Term -p ln p of an entropy in nats; 0 for p = 0, and for padding that
// rounding made negative.
inline double EntropyTerm(double p) { return p > 0.0 ? -p * std::log(p) : 0.0; }

}  // namespace etc

#endif  // ETC_ATTENTION_ENTROPY_TERM_H_
