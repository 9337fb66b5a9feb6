// Attention whose products have rounded factors, by every set of instructions
// for them that this CPU has: against the float64 reference. Factors are off by
// 2^-9 of themselves at most.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "attention/backends/cpu/kernels/rounded_products.h"
#include "attention/sparse_attention.h"
#include "tests/support/attention_case.h"
#include "tests/support/attention_stack.h"
#include "tests/support/backend_agreement.h"
#include "tests/support/thread_counts.h"

namespace etc {
namespace {

// "amx" or "avx512".
class RoundedAttentionTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const kernels::RoundedProducts* const products =
        GetParam() == "amx" ? kernels::AmxProducts()
                            : kernels::Avx512Products();
    if (products == nullptr) {
      GTEST_SKIP() << "this CPU has no such products";
    }
    kernels::SetRoundedProductsForTest(products);
  }
  void TearDown() override { kernels::SetRoundedProductsForTest(nullptr); }
};

AttentionStack Rounded(const AttentionStack& values) {
  AttentionStack stack = values.As(torch::kFloat32);
  for (SparseAttentionInput& input : stack.layers) {
    input.precision = LinearPrecision::kBfloat16;
  }
  return stack;
}

double RelativeError(const torch::Tensor& actual, const torch::Tensor& exact) {
  const double norm = exact.norm().item<double>();
  const double error =
      (actual.to(torch::kFloat64) - exact).norm().item<double>();
  return norm == 0.0 ? error : error / norm;
}

// Expects tensors to be off by at most 2^-6 of themselves: a few times the
// rounding of the factors of one product.
void ExpectNear(const StackResult& actual, const StackResult& expected) {
  const std::vector<torch::Tensor> a = actual.Tensors();
  const std::vector<torch::Tensor> e = expected.Tensors();
  ASSERT_EQ(a.size(), e.size());
  for (size_t i = 0; i < e.size(); ++i) {
    ASSERT_EQ(a[i].defined(), e[i].defined()) << i;
    if (e[i].defined() && e[i].numel() > 0) {
      // Gradients of biases and gates are sums in which much cancels.
      const double bound = e[i].dim() == 4 || e[i].dim() == 3 ? 0x1p-6 : 0x1p-5;
      EXPECT_LE(RelativeError(a[i], e[i]), bound) << i << " " << e[i].sizes();
    }
  }
}

// Compares outputs and gradients of each layer with the float64 reference, of
// values around `mean`.
void ExpectMatches(const AttentionCase& c, QuerySide side, double mean = 0.0) {
  SCOPED_TRACE(c.Name() + (side == QuerySide::kLong ? " long" : " global"));
  torch::manual_seed(c.longs);
  const AttentionInputs attention = MakeAttention(c);
  const AttentionStack values(c, side, attention);
  for (const SparseAttentionInput& input : values.layers) {
    input.operands.own_value.add_(mean);
    input.operands.other_value.add_(mean);
  }
  const bool compared = IsCompared(values.layers[0].pattern);
  StackResult expected;
  if (compared) {
    AttentionStack exact = values.As(torch::kFloat64);
    torch::manual_seed(17);
    expected = RunLayers(&exact, AttentionImplementation::kReference);
  }
  for (const ScoreStorage storage :
       {ScoreStorage::kStore, ScoreStorage::kReverse,
        ScoreStorage::kRecompute}) {
    SCOPED_TRACE("storage " + std::to_string(static_cast<int>(storage)));
    AttentionStack stack = Rounded(values);
    torch::manual_seed(17);
    const StackResult actual =
        RunLayers(&stack, AttentionImplementation::kKernel, storage);
    if (compared) {
      ExpectNear(actual, expected);
    } else {
      ExpectFinite(actual);
    }
    if (c.residual == ResidualAttention::kOff) {
      break;
    }
  }
}

void ExpectMatches(const AttentionCase& c) {
  if (c.longs > 0) {
    ExpectMatches(c, QuerySide::kLong);
  }
  ExpectMatches(c, QuerySide::kGlobal);
}

TEST_P(RoundedAttentionTest, MatchesReferenceAtEveryLength) {
  for (const int64_t radius : {1, 5}) {
    for (const int64_t longs : {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 97}) {
      for (const bool causal : {false, true}) {
        ExpectMatches(
            {.longs = longs, .radius = radius, .layers = 2, .causal = causal});
      }
    }
  }
}

TEST_P(RoundedAttentionTest, MatchesReferenceAtEveryHeadSize) {
  for (const int64_t head_dim : {1, 3, 16, 17, 31, 32, 33, 64, 65, 130}) {
    ExpectMatches({.longs = 37,
                   .radius = 4,
                   .head_dim = head_dim,
                   .value_dim = head_dim,
                   .layers = 2});
  }
  ExpectMatches({.longs = 37, .head_dim = 5, .value_dim = 20, .layers = 2});
  ExpectMatches({.longs = 37, .head_dim = 40, .value_dim = 5, .layers = 2});
}

TEST_P(RoundedAttentionTest, MatchesReferenceInEveryMode) {
  for (const ResidualAttention residual : kEveryResidualAttention) {
    for (const double dropout : {0.0, 0.2}) {
      ExpectMatches({.longs = 75,
                     .globals = 19,
                     .radius = 12,
                     .head_dim = 19,
                     .value_dim = 33,
                     .residual = residual,
                     .hard = dropout > 0.0,
                     .dropout = dropout});
    }
  }
}

// A gradient of the context and its rounded self have other products with a
// large mean, all of which the softmax takes away again.
TEST_P(RoundedAttentionTest, MatchesReferenceWhateverTheMeanOfValues) {
  for (const ResidualAttention residual :
       {ResidualAttention::kOff, ResidualAttention::kSum}) {
    const AttentionCase c = {
        .longs = 150, .globals = 20, .radius = 40, .residual = residual};
    ExpectMatches(c, QuerySide::kLong, 3.0);
    ExpectMatches(c, QuerySide::kGlobal, 3.0);
  }
}

TEST_P(RoundedAttentionTest, MatchesReferenceAcrossTilesAndParts) {
  for (const int64_t longs : {288, 385, 800}) {
    for (const bool causal : {false, true}) {
      ExpectMatches({.longs = longs,
                     .globals = 50,
                     .radius = 20,
                     .heads = 1,
                     .layers = 2,
                     .borders = Borders::kNone,
                     .causal = causal});
    }
  }
  for (const int64_t radius : {250, 650}) {
    ExpectMatches({.longs = radius + 100,
                   .globals = 3,
                   .radius = radius,
                   .heads = 1,
                   .layers = 2,
                   .distance = 12});
  }
  // Distances far beyond the sequence; more globals than a chunk has room for;
  // scattered segments, packed documents.
  ExpectMatches({.longs = 20, .radius = 3, .distance = 100});
  ExpectMatches({.longs = 100,
                 .globals = 400,
                 .radius = 10,
                 .heads = 1,
                 .layers = 2,
                 .hard = true});
  ExpectMatches({.longs = 210,
                 .globals = 20,
                 .radius = 9,
                 .layers = 2,
                 .borders = Borders::kScattered});
  for (const int64_t globals : {250, 800}) {
    ExpectMatches({.longs = 0,
                   .globals = globals,
                   .heads = 1,
                   .layers = 2,
                   .borders = Borders::kPacked,
                   .distance = 0});
  }
}

// Each thread sets up its own tiles.
TEST_P(RoundedAttentionTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const AttentionCase c = {.longs = 900,
                           .globals = 100,
                           .radius = 30,
                           .heads = 3,
                           .layers = 2,
                           .dropout = 0.1};
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    torch::manual_seed(1);
    const AttentionInputs attention = MakeAttention(c);
    const AttentionStack values(c, side, attention);
    ExpectSameOnAnyNumberOfThreads([&] {
      torch::manual_seed(2);
      AttentionStack stack = Rounded(values);
      return RunLayers(&stack, AttentionImplementation::kKernel,
                       ScoreStorage::kReverse)
          .Tensors();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Instructions, RoundedAttentionTest,
                         testing::Values("amx", "avx512"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace etc
