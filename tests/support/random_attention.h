#ifndef ETC_TESTS_SUPPORT_RANDOM_ATTENTION_H_
#define ETC_TESTS_SUPPORT_RANDOM_ATTENTION_H_

#include <random>
#include <vector>

#include "attention/pattern.h"
#include "attention/pattern_builders.h"

namespace etc {

// A pattern as multi-hop examples have it: contiguous paragraphs of random
// lengths, sentences in them, links, exemptions from hard masks.
inline AttentionPattern RandomMultihopPattern(int64_t longs, int64_t globals,
                                              const PatternOptions& options,
                                              std::mt19937_64* random) {
  const auto draw = [&](int64_t below) {
    return static_cast<int32_t>((*random)() % static_cast<uint64_t>(below));
  };
  const auto global_or_none = [&] {
    return globals == 0 ? -1 : draw(globals + 1) - 1;
  };
  MultihopSource source;
  for (int64_t i = 0; i < longs; ++i) {
    source.long_paragraph_breakpoints.push_back(i + 1 == longs || draw(7) == 0);
    source.long_paragraph_ids.push_back(global_or_none());
    source.long_sentence_ids.push_back(global_or_none());
    source.linked_ids.push_back(global_or_none());
    source.ignore_hard_l2g.push_back(draw(4) == 0);
  }
  for (int64_t g = 0; g < globals; ++g) {
    source.global_paragraph_breakpoints.push_back(g + 1 == globals ||
                                                  draw(3) == 0);
    source.ignore_hard_g2l.push_back(draw(3) == 0);
  }
  return PatternFromMultihop(source, options);
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_RANDOM_ATTENTION_H_
