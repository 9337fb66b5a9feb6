// Updates of many parameters at once against their definition in float64, five
// in a row: each error may be twice that of the definition in float32, plus an
// ulp of a parameter. Sizes straddle the chunks that are shared out to threads.
// The definition itself has the goldens of optimizer_test.cc.

#include "tasks/train/adam_update.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/tensor_matchers.h"
#include "tests/support/thread_counts.h"

namespace etc {
namespace {

constexpr int kSteps = 5;

struct Kind {
  const char* name;
  bool by_norms;
  double mean_correction;
  double square_correction;
};
constexpr Kind kKinds[] = {{"bert_adamw", false, 1.0, 1.0},
                           {"lamb", true, 1.0, 1.0},
                           {"adamw", false, 0.1, 0.001}};

std::vector<AdamUpdate> MakeUpdates(const Kind& kind, torch::ScalarType type) {
  torch::manual_seed(9);
  std::vector<AdamUpdate> updates;
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {}, {7}, {3, 5}, {65536}, {300, 301}, {0}}) {
    const auto random = [&](double size) {
      return (torch::randn(shape) * size).to(type);
    };
    updates.push_back({.parameter = random(1.0),
                       .gradient = random(0.1),
                       .mean = random(0.01),
                       .mean_square = random(0.01).square(),
                       .gradient_factor = 0.5,
                       .mean_correction = kind.mean_correction,
                       .square_correction = kind.square_correction,
                       .weight_decay = updates.size() % 2 == 0 ? 0.1 : 0.0,
                       .by_norms = kind.by_norms,
                       .learning_rate = 0.01});
  }
  return updates;
}

void UpdateEachByDefinition(const std::vector<AdamUpdate>& updates) {
  for (const AdamUpdate& update : updates) {
    UpdateByDefinition_(update);
  }
}

TEST(AdamUpdateTest, MatchesTheDefinition) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const auto fast = MakeUpdates(kind, torch::kFloat32);
    const auto plain = MakeUpdates(kind, torch::kFloat32);
    const auto exact = MakeUpdates(kind, torch::kFloat64);
    for (int step = 0; step < kSteps; ++step) {
      UpdateAll_(fast);
      UpdateEachByDefinition(plain);
      UpdateEachByDefinition(exact);
    }
    for (size_t i = 0; i < exact.size(); ++i) {
      for (const auto member : {&AdamUpdate::parameter, &AdamUpdate::mean,
                                &AdamUpdate::mean_square}) {
        const torch::Tensor& values = exact[i].*member;
        // Three units in the last place beside: some versions of LibTorch add a
        // product without rounding it first.
        EXPECT_LE(MaxError(fast[i].*member, values),
                  2 * MaxError(plain[i].*member, values) +
                      3.6e-7 * (values.numel() == 0
                                    ? 0.0
                                    : values.abs().max().item<double>()))
            << "parameter " << i;
      }
    }
  }
}

TEST(AdamUpdateTest, GivesTheSameAtAnyNumberOfThreads) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    ExpectSameOnAnyNumberOfThreads([&] {
      const auto updates = MakeUpdates(kind, torch::kFloat32);
      UpdateAll_(updates);
      std::vector<torch::Tensor> results;
      for (const AdamUpdate& update : updates) {
        results.push_back(update.parameter);
        results.push_back(update.mean_square);
      }
      return results;
    });
  }
}

TEST(AdamUpdateTest, TakesTensorsThatAreNotContiguous) {
  for (const Kind& kind : kKinds) {
    std::vector<AdamUpdate> fast = MakeUpdates(kind, torch::kFloat32);
    std::vector<AdamUpdate> plain = MakeUpdates(kind, torch::kFloat32);
    for (AdamUpdate* update : {&fast[4], &plain[4]}) {
      update->gradient = update->gradient.t().contiguous().t();
    }
    ASSERT_FALSE(fast[4].gradient.is_contiguous());
    UpdateAll_({fast[4]});
    UpdateByDefinition_(plain[4]);
    EXPECT_TRUE(IsClose(fast[4].parameter, plain[4].parameter, 1e-6));
  }
}

// Results computed from the old values must not be taken for up to date.
TEST(AdamUpdateTest, TellsLibTorchThatParametersChanged) {
  const auto updates = MakeUpdates(kKinds[0], torch::kFloat32);
  const torch::Tensor& parameter = updates[2].parameter;
  const int64_t version = parameter._version();
  UpdateAll_(updates);
  EXPECT_GT(parameter._version(), version);
}

TEST(TotalSquaredNormTest, TakesTensorsOfAnyKind) {
  EXPECT_EQ(TotalSquaredNorm({}), 0.0);
  EXPECT_EQ(TotalSquaredNorm({torch::full({70000}, 2.0f),
                              torch::full({3}, 3.0, torch::kFloat64),
                              torch::full({2, 4}, 1.0f).t(), torch::ones({})}),
            4 * 70000 + 27 + 8 + 1);
}

}  // namespace
}  // namespace etc
