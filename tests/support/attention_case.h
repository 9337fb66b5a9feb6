#ifndef ETC_TESTS_SUPPORT_ATTENTION_CASE_H_
#define ETC_TESTS_SUPPORT_ATTENTION_CASE_H_

// Sizes and patterns of sparse attention that tests compare between backends.

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/pattern.h"
#include "attention/pattern_builders.h"
#include "attention/residual_scores.h"
#include "tests/support/random_attention.h"

namespace etc {

inline constexpr ResidualAttention kEveryResidualAttention[] = {
    ResidualAttention::kOff, ResidualAttention::kSum, ResidualAttention::kMean,
    ResidualAttention::kDecay, ResidualAttention::kGate};

// kPacked: several examples, one behind the other.
enum class Borders { kMultihop, kScattered, kNone, kPacked };

struct AttentionCase {
  int64_t longs = 0;
  int64_t globals = 3;
  int64_t radius = 3;
  int64_t head_dim = 8;
  int64_t value_dim = 8;
  int64_t heads = 2;
  int64_t layers = 3;
  ResidualAttention residual = ResidualAttention::kSum;
  Borders borders = Borders::kMultihop;
  bool hard = false;
  // Windows that end with the query (AttentionInputs::Causal).
  bool causal = false;
  int64_t distance = 2;
  double dropout = 0.0;

  std::string Name() const {
    return "L" + std::to_string(longs) + " G" + std::to_string(globals) + " r" +
           std::to_string(radius) + " d" + std::to_string(head_dim) + "/" +
           std::to_string(value_dim) + " residual " +
           std::to_string(static_cast<int>(residual)) + " borders " +
           std::to_string(static_cast<int>(borders)) +
           (hard ? " hard" : " soft") + (causal ? " causal" : "") + " m" +
           std::to_string(distance) + " dropout " + std::to_string(dropout);
  }
};

inline AttentionPattern MakePattern(const AttentionCase& c, int64_t longs,
                                    int64_t globals, std::mt19937_64* random) {
  const PatternOptions options = {.local_radius = c.radius,
                                  .relative_pos_max_distance = c.distance,
                                  .hard_g2l = c.hard,
                                  .hard_l2g = c.hard};
  if (c.borders == Borders::kNone) {
    return UnrestrictedPattern(longs, globals, c.radius, c.distance);
  }
  AttentionPattern pattern =
      RandomMultihopPattern(longs, globals, options, random);
  if (c.borders == Borders::kPacked) {
    int32_t example = 1;
    for (int32_t& of_global : pattern.global_example) {
      example += (*random)() % 40 == 0 ? 1 : 0;
      of_global = example;
    }
  }
  if (c.borders == Borders::kScattered) {
    for (int32_t& segment : pattern.long_segment) {
      segment = static_cast<int32_t>((*random)() % 3);
    }
    for (int32_t& example : pattern.long_example) {
      example = static_cast<int32_t>((*random)() % 2);
    }
    for (int32_t& example : pattern.global_example) {
      example = static_cast<int32_t>((*random)() % 3);
    }
    for (int32_t& segment : pattern.global_segment) {
      segment = static_cast<int32_t>((*random)() % 2);
    }
  }
  return pattern;
}

// The second example is shorter than the batch.
inline AttentionInputs MakeAttention(const AttentionCase& c) {
  std::mt19937_64 random(c.longs + 7 * c.globals + 31 * c.radius);
  std::vector<AttentionPattern> patterns;
  patterns.push_back(MakePattern(c, c.longs, c.globals, &random));
  patterns.push_back(
      MakePattern(c, (c.longs + 1) / 2, (c.globals + 1) / 2, &random));
  const AttentionInputs inputs(std::move(patterns));
  return c.causal ? inputs.Causal() : inputs;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_ATTENTION_CASE_H_
