// Whole tiles, forward and backward, with every buffer between pages that may
// not be touched (the workspace too), on every SIMD target this CPU has: a read
// or write beyond ends the test. Sizes: heads of one float to more than two
// vectors, tiles and windows at both ends of the sequence, residual scores on
// and off. The context is compared with a scalar loop in double, to 1e-5 (up to
// 60 weights, values below 1); gradients are compared with their definition in
// cpu_backend_test.cc.

#include "attention/backends/cpu/kernels/attention_tile.h"

#include <gtest/gtest.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <vector>

#include "attention/backends/cpu/kernels/flush_denormals.h"
#include "attention/backends/cpu/kernels/rounded_products.h"
#include "tests/support/each_target.h"
#include "tests/support/guarded_buffer.h"

namespace etc::kernels {
namespace {

constexpr int64_t kQueries = 50;
constexpr int64_t kOthers = 11;
constexpr int64_t kRadius = 20;
constexpr int64_t kWindow = 2 * kRadius + 1;
constexpr int64_t kMaxDistance = 2;
constexpr int64_t kIds = 2 * kMaxDistance + 4;

// One head: long queries, all of one segment, and globals that they all see.
class GuardedHead {
 public:
  GuardedHead(int64_t head_dim, bool carry, GuardedBuffer::Guard guard,
              const RoundedProducts* rounded)
      : carry_(carry), guard_(guard) {
    const int64_t value_dim = head_dim + 1;
    head_.rounded = rounded;
    head_.head_dim = head_dim;
    head_.value_dim = value_dim;
    head_.query = Random(kQueries * head_dim);
    head_.query_stride = head_dim;
    head_.max_distance = kMaxDistance;
    head_.relative = Random(kIds * head_dim);
    head_.relative_stride = head_dim;
    head_.relative_bias = Random(kIds);
    head_.relative_bias_stride = 1;
    for (int b = 0; b < 2; ++b) {
      KeyBlock& block = head_.blocks[b];
      block.keys = b == 0 ? kQueries : kOthers;
      block.key = Random(block.keys * head_dim);
      block.key_stride = head_dim;
      block.value = Random(block.keys * value_dim);
      block.value_stride = value_dim;
      block.visible = {
          .runs = &all_[b], .first = zeros_.data(), .last = ones_.data()};
    }
    head_.blocks[0].window = {.before = kRadius, .after = kRadius};
    head_.blocks[0].rule = RelativeRule::kDistance;
    head_.blocks[1].rule = RelativeRule::kLink;
    head_.blocks[1].special = {
        .runs = &link_, .first = zeros_.data(), .last = ones_.data()};

    results_.context = Random(kQueries * value_dim);
    results_.context_stride = value_dim;
    results_.row_max = Random(kQueries);
    results_.row_inverse_sum = Random(kQueries);
    if (carry) {
      for (int b = 0; b < 2; ++b) {
        const int64_t columns = b == 0 ? kWindow : kOthers;
        results_.previous[b] = {Random(kQueries * columns), columns};
        results_.carried[b] = {Random(kQueries * columns), columns};
      }
    }
  }

  void RunForward() {
    float* const workspace = Workspace(ForwardWorkspaceSize(head_));
    ForwardTile(head_, 0, 31, results_, workspace);
    ForwardTile(head_, 31, kQueries, results_, workspace);
  }

  // Scores alone, in place.
  void RunScores(bool subtract) {
    ForwardResults scores;
    for (int b = 0; b < 2; ++b) {
      scores.carried[b] = results_.carried[b];
      scores.previous[b] = {results_.carried[b].rows,
                            results_.carried[b].stride};
    }
    scores.subtract = subtract;
    float* const workspace = Workspace(ForwardWorkspaceSize(head_));
    ForwardTile(head_, 0, 31, scores, workspace);
    ForwardTile(head_, 31, kQueries, scores, workspace);
  }

  // The largest |carried - previous - times * score|.
  double ErrorOfCarried(double times) const {
    double error = 0.0;
    for (int b = 0; b < 2; ++b) {
      for (int64_t i = 0; i < kQueries; ++i) {
        for (int64_t j = 0; j < head_.blocks[b].keys; ++j) {
          if (b == 0 && std::abs(j - i) > kRadius) {
            continue;
          }
          const int64_t column = b == 0 ? j - i + kRadius : j;
          const ScoreRows<float>& carried = results_.carried[b];
          const ScoreRows<const float>& previous = results_.previous[b];
          const double before = previous.rows[i * previous.stride + column];
          error = std::max(
              error, std::abs(carried.rows[i * carried.stride + column] -
                              before - times * (Score(b, i, j) - before)));
        }
      }
    }
    return error;
  }

  // Gives all gradients of weights and tokens. `in_place`: carried scores
  // become the previous ones, and their gradients as well.
  std::vector<GuardedBuffer*> RunBackward(bool in_place) {
    BackwardInputs inputs = {
        .context = results_.context,
        .context_stride = results_.context_stride,
        .row_max = results_.row_max,
        .row_inverse_sum = results_.row_inverse_sum,
        .context_gradient = Random(kQueries * head_.value_dim),
        .context_gradient_stride = head_.value_dim,
        .keys = {{0, kQueries}, {0, kOthers}}};
    BackwardResults gradients;
    const size_t first = buffers_.size();
    gradients.query = {{Gradient(kQueries, head_.head_dim)}};
    for (int b = 0; b < 2; ++b) {
      const int64_t keys = head_.blocks[b].keys;
      gradients.key[b] = {{Gradient(keys, head_.head_dim)}};
      gradients.value[b] = {{Gradient(keys, head_.value_dim)}};
    }
    gradients.relative = Random(kIds * RelativeGradientStride(head_.head_dim));
    const size_t last = buffers_.size();
    if (carry_) {
      for (int b = 0; b < 2; ++b) {
        const int64_t columns = b == 0 ? kWindow : kOthers;
        inputs.carried[b] = {results_.carried[b].rows, columns};
        inputs.carried_gradient[b] = {Random(kQueries * columns), columns};
        gradients.previous[b] = {Random(kQueries * columns), columns};
        if (in_place) {
          inputs.carried_gradient[b].rows = gradients.previous[b].rows;
          gradients.undone[b] = results_.carried[b];
        }
      }
    }
    float* const workspace = Workspace(BackwardWorkspaceSize(head_));
    BackwardTile(head_, 0, 31, inputs, gradients, workspace);
    BackwardTile(head_, 31, kQueries, inputs, gradients, workspace);
    std::vector<GuardedBuffer*> out;
    for (size_t i = first; i < last; ++i) {
      out.push_back(&buffers_[i]);
    }
    return out;
  }

  // The context of one query, by definition.
  std::vector<double> Context(int64_t i) const {
    std::vector<double> logits, sums(static_cast<size_t>(head_.value_dim));
    std::vector<const float*> values;
    for (int b = 0; b < 2; ++b) {
      const KeyBlock& block = head_.blocks[b];
      for (int64_t j = 0; j < block.keys; ++j) {
        if (b == 0 && std::abs(j - i) > kRadius) {
          continue;
        }
        logits.push_back(Score(b, i, j));
        values.push_back(block.value + j * block.value_stride);
      }
    }
    const double largest = *std::max_element(logits.begin(), logits.end());
    double total = 0.0;
    for (size_t k = 0; k < logits.size(); ++k) {
      const double weight = std::exp(logits[k] - largest);
      total += weight;
      for (size_t c = 0; c < sums.size(); ++c) {
        sums[c] += weight * static_cast<double>(values[k][c]);
      }
    }
    for (double& sum : sums) {
      sum /= total;
    }
    return sums;
  }

  const ForwardResults& results() const { return results_; }

 private:
  double Score(int b, int64_t i, int64_t j) const {
    const KeyBlock& block = head_.blocks[b];
    int64_t id = 0;
    if (b == 0) {
      id = RelativeIdOfColumn(
          std::clamp(j - i, -kMaxDistance, kMaxDistance) + kMaxDistance,
          kMaxDistance);
    } else {
      const bool linked = j >= link_.begin && j < link_.end;
      id = 2 * kMaxDistance + (linked ? 2 : 1);
    }
    double score = head_.relative_bias[id];
    for (int64_t c = 0; c < head_.head_dim; ++c) {
      score +=
          static_cast<double>(head_.query[i * head_.query_stride + c]) *
          (static_cast<double>(block.key[j * block.key_stride + c]) +
           static_cast<double>(head_.relative[id * head_.relative_stride + c]));
    }
    score /= std::sqrt(static_cast<double>(head_.head_dim));
    if (carry_) {
      const int64_t column = b == 0 ? j - i + kRadius : j;
      score +=
          results_.previous[b].rows[i * results_.previous[b].stride + column];
    }
    return score;
  }

  float* Random(int64_t count) {
    GuardedBuffer& buffer =
        buffers_.emplace_back(static_cast<size_t>(count), guard_);
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    for (size_t i = 0; i < buffer.size(); ++i) {
      buffer[i] = uniform(random_);
    }
    return buffer.data();
  }

  // NaN, which shows wherever it is read before it was written.
  float* Workspace(int64_t count) {
    GuardedBuffer& buffer =
        buffers_.emplace_back(static_cast<size_t>(count), guard_);
    std::fill_n(buffer.data(), count, std::numeric_limits<float>::quiet_NaN());
    return buffer.data();
  }

  GradientRows Gradient(int64_t rows, int64_t columns) {
    return {.rows = Random(rows * columns),
            .stride = columns,
            .begin = 0,
            .end = rows};
  }

  bool carry_;
  GuardedBuffer::Guard guard_;
  std::mt19937 random_{3};
  std::deque<GuardedBuffer> buffers_;
  const KeyRun all_[2] = {{0, kQueries}, {0, kOthers}};
  const KeyRun link_ = {4, 6};
  const std::vector<int32_t> zeros_ = std::vector<int32_t>(kQueries, 0);
  const std::vector<int32_t> ones_ = std::vector<int32_t>(kQueries, 1);
  AttentionHead head_;
  ForwardResults results_;
};

class AttentionTileTest : public EachTargetTest {
 protected:
  // Null for those in float32, then what this CPU has.
  static std::vector<const RoundedProducts*> EveryProducts() {
    std::vector<const RoundedProducts*> all = {nullptr};
    for (const RoundedProducts* rounded : {Avx512Products(), AmxProducts()}) {
      if (rounded != nullptr) {
        all.push_back(rounded);
      }
    }
    return all;
  }
  static double Tolerance(const RoundedProducts* rounded) {
    return rounded == nullptr ? 1e-5 : 0.02;
  }
};

TEST_P(AttentionTileTest, TouchesOnlyItsOwnAndMatchesTheDefinition) {
  const auto expect = [&](int64_t head_dim, bool carry,
                          const RoundedProducts* rounded) {
    GuardedHead head(head_dim, carry, guard(), rounded);
    head.RunForward();
    for (int64_t i = 0; i < kQueries; ++i) {
      const std::vector<double> expected = head.Context(i);
      for (size_t c = 0; c < expected.size(); ++c) {
        ASSERT_NEAR(head.results().context[i * head.results().context_stride +
                                           static_cast<int64_t>(c)],
                    expected[c], Tolerance(rounded))
            << "head_dim " << head_dim << ", query " << i;
      }
    }
    for (const bool in_place : {false, true}) {
      for (GuardedBuffer* gradient : head.RunBackward(in_place)) {
        for (size_t k = 0; k < gradient->size(); ++k) {
          ASSERT_TRUE(std::isfinite((*gradient)[k]));
        }
      }
    }
  };
  for (const RoundedProducts* rounded : EveryProducts()) {
    SCOPED_TRACE(rounded == nullptr ? "float32" : rounded->name);
    for (const int64_t head_dim : {1, 5, 16, 33}) {
      for (const bool carry : {false, true}) {
        expect(head_dim, carry, rounded);
      }
    }
  }
}

TEST_P(AttentionTileTest, AddsScoresAndTakesThemAwayInPlace) {
  for (const RoundedProducts* rounded : EveryProducts()) {
    SCOPED_TRACE(rounded == nullptr ? "float32" : rounded->name);
    for (const int64_t head_dim : {1, 5, 16, 33}) {
      GuardedHead head(head_dim, /*carry=*/true, guard(), rounded);
      head.RunForward();
      EXPECT_LT(head.ErrorOfCarried(1), Tolerance(rounded));
      head.RunScores(/*subtract=*/false);
      EXPECT_LT(head.ErrorOfCarried(2), 2 * Tolerance(rounded));
      head.RunScores(/*subtract=*/true);
      EXPECT_LT(head.ErrorOfCarried(1), Tolerance(rounded));
      // The same scores are taken away, to their rounding in float32.
      head.RunBackward(/*in_place=*/true);
      EXPECT_LT(head.ErrorOfCarried(0), 1e-5);
    }
  }
}

#if defined(__SSE__)
TEST(FlushDenormalsTest, GivesZerosWhileItLives) {
  const unsigned before = _mm_getcsr();
  volatile float smallest = 1.2e-38f;
  {
    const FlushDenormals flush_denormals;
    EXPECT_EQ(smallest * 0.5f, 0.0f);
  }
  EXPECT_GT(smallest * 0.5f, 0.0f);
  EXPECT_EQ(_mm_getcsr() & 0x8000u, before & 0x8000u);
}

// Weights of keys 90 below the largest score are denormal.
TEST_P(AttentionTileTest, HasNoDenormalWeights) {
  const float query = 1.0f;
  const float key[] = {90.0f, 0.0f};
  const float value[] = {0.0f, 1.0f};
  const KeyRun all = {0, 2};
  const int32_t first = 0;
  const int32_t last = 1;
  AttentionHead head;
  head.head_dim = head.value_dim = 1;
  head.query = &query;
  head.query_stride = 1;
  KeyBlock& block = head.blocks[1];
  block = {.key = key, .key_stride = 1, .value = value, .value_stride = 1};
  block.keys = 2;
  block.visible = {.runs = &all, .first = &first, .last = &last};
  const int32_t none = 0;
  head.blocks[0].visible = {.runs = &all, .first = &none, .last = &none};
  float context = 1.0f;
  float row_max = 0.0f;
  float inverse_sum = 0.0f;
  const ForwardResults results = {.context = &context,
                                  .context_stride = 1,
                                  .row_max = &row_max,
                                  .row_inverse_sum = &inverse_sum};
  GuardedBuffer workspace(static_cast<size_t>(ForwardWorkspaceSize(head)),
                          guard());
  ForwardTile(head, 0, 1, results, workspace.data());
  EXPECT_EQ(row_max, 90.0f);
  // Where there is no instruction for powers of 2 they stay at 2^-125.
  EXPECT_TRUE(context == 0.0f || context == 0x1p-125f) << context;
}
#endif

ETC_INSTANTIATE_FOR_EACH_TARGET(AttentionTileTest);

}  // namespace
}  // namespace etc::kernels
