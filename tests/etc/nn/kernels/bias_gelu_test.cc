// Bias and gelu against scalar loops in double, on every SIMD target this CPU
// has, between pages that may not be touched. Columns straddle 4, 8 and 16
// lanes, so that each tail is run. Tolerances: the exponent of 2, up to 20 in
// size, is rounded to 2^-20; after that the results lose a few ulp.

#include "etc/nn/kernels/bias_gelu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/bfloat16.h"
#include "etc/nn/kernels/reference.h"
#include "tests/support/each_target.h"

namespace etc::kernels {
namespace {

constexpr int64_t kColumns[] = {1, 3, 4, 7, 8, 9, 15, 16, 17, 33, 169};
constexpr int64_t kRows = 3;
constexpr GeluForm kForms[] = {GeluForm::kTanh, GeluForm::kErf};

class BiasGeluTest : public EachTargetTest {};

TEST_P(BiasGeluTest, MatchesTheDefinition) {
  for (const GeluForm form : kForms) {
    for (const int64_t columns : kColumns) {
      GuardedBuffer input = Random(kRows * columns, 4.0f);
      GuardedBuffer bias = Random(columns);
      GuardedBuffer output = Zeros(kRows * columns);
      BiasGelu(form, kRows, columns,
               BiasGeluInput{input.data(), bias.data(), output.data()});
      for (int64_t i = 0; i < kRows * columns; ++i) {
        const double x = static_cast<double>(input[i] + bias[i % columns]);
        // Relative, as small results should be good too.
        ASSERT_NEAR(output[i], GeluReference(form, x),
                    4e-6 * std::abs(GeluReference(form, x)) + 1e-12)
            << columns << " columns, element " << i << ", x " << x;
      }
    }
  }
}

TEST_P(BiasGeluTest, HasTheGradientsOfTheDefinition) {
  for (const GeluForm form : kForms) {
    for (const int64_t columns : kColumns) {
      GuardedBuffer input = Random(kRows * columns, 4.0f);
      GuardedBuffer bias = Random(columns);
      GuardedBuffer gradient = Random(kRows * columns);
      GuardedBuffer output = Zeros(kRows * columns);
      GuardedBuffer forward_output = Zeros(kRows * columns);
      GuardedBuffer input_gradient = Zeros(kRows * columns);
      GuardedBuffer bias_gradient = Random(columns);
      std::vector<double> expected_bias(bias_gradient.data(),
                                        bias_gradient.data() + columns);
      BiasGelu(form, kRows, columns,
               BiasGeluInput{input.data(), bias.data(), forward_output.data()});
      BiasGeluGradient(form, kRows, columns,
                       BiasGeluRows{.input = input.data(),
                                    .bias = bias.data(),
                                    .output_gradient = gradient.data(),
                                    .output = output.data(),
                                    .input_gradient = input_gradient.data(),
                                    .bias_gradient = bias_gradient.data()});
      for (int64_t i = 0; i < kRows * columns; ++i) {
        const double x = static_cast<double>(input[i] + bias[i % columns]);
        const double expected =
            static_cast<double>(gradient[i]) * GeluDerivativeReference(form, x);
        ASSERT_NEAR(input_gradient[i], expected, 2e-6)
            << columns << " columns, element " << i << ", x " << x;
        ASSERT_EQ(output[i], forward_output[i]);
        expected_bias[i % columns] += expected;
      }
      for (int64_t c = 0; c < columns; ++c) {
        ASSERT_NEAR(bias_gradient[c], expected_bias[c], 1e-5);
      }
      // In place it gives the same.
      BiasGeluGradient(form, kRows, columns,
                       BiasGeluRows{.input = input.data(),
                                    .bias = bias.data(),
                                    .output_gradient = gradient.data(),
                                    .output = output.data(),
                                    .input_gradient = gradient.data(),
                                    .bias_gradient = bias_gradient.data()});
      for (int64_t i = 0; i < kRows * columns; ++i) {
        ASSERT_EQ(gradient[i], input_gradient[i]);
      }
    }
  }
}

std::vector<uint16_t> Rounded(GuardedBuffer* values) {
  std::vector<uint16_t> result(values->size());
  RoundToBfloat16(static_cast<int64_t>(values->size()), values->data(),
                  result.data());
  return result;
}

// A tile in the middle of a product.
struct TileInMatrix {
  TileInMatrix(int64_t columns, const float* sums)
      : tile{.row = 32,
             .column = 2,
             .rows = kRows,
             .columns = columns,
             .sums = sums,
             .stride = columns} {}

  // A matrix [kRows][columns + 4] that it is in, and the tile's elements of it.
  std::vector<uint16_t> Matrix() const {
    return std::vector<uint16_t>(static_cast<size_t>(kRows * stride()));
  }
  std::vector<uint16_t> ElementsOf(const std::vector<uint16_t>& matrix) const {
    std::vector<uint16_t> elements;
    for (int64_t r = 0; r < kRows; ++r) {
      const auto first = matrix.begin() + r * stride() + tile.column;
      elements.insert(elements.end(), first, first + tile.columns);
    }
    return elements;
  }
  int64_t stride() const { return tile.columns + 4; }

  ProductTile tile;
};

// Expects the float32 results of the same numbers, rounded as
// tests/base/bfloat16_test.cc defines.
TEST_P(BiasGeluTest, FinishesTilesInBfloat16) {
  for (const GeluForm form : kForms) {
    for (const int64_t columns : kColumns) {
      GuardedBuffer sums = Random(kRows * columns, 4.0f);
      GuardedBuffer bias = Random(columns);
      GuardedBuffer output = Zeros(kRows * columns);
      BiasGelu(
          form, kRows, columns,
          {.input = sums.data(), .bias = bias.data(), .output = output.data()});
      GuardedBuffer input = Zeros(kRows * columns);
      for (int64_t i = 0; i < kRows * columns; ++i) {
        input[i] = sums[i] + bias[i % columns];
      }
      const TileInMatrix in(columns, sums.data());
      std::vector<uint16_t> before = in.Matrix(), after = in.Matrix();
      BiasGeluOfTile(form, in.tile,
                     {.bias = bias.data(),
                      .input = before.data() + in.tile.column,
                      .output = after.data() + in.tile.column,
                      .stride = in.stride()});
      EXPECT_EQ(in.ElementsOf(before), Rounded(&input));
      EXPECT_EQ(in.ElementsOf(after), Rounded(&output));
      EXPECT_EQ(before[0], 0);
      std::fill(after.begin(), after.end(), uint16_t{0});
      BiasGeluOfTile(form, in.tile,
                     {.bias = bias.data(),
                      .output = after.data() + in.tile.column,
                      .stride = in.stride()});
      EXPECT_EQ(in.ElementsOf(after), Rounded(&output));
    }
  }
}

TEST_P(BiasGeluTest, FinishesTilesOfGradientsInBfloat16) {
  for (const GeluForm form : kForms) {
    for (const int64_t columns : kColumns) {
      GuardedBuffer input = Random(kRows * columns, 4.0f);
      const std::vector<uint16_t> rounded = Rounded(&input);
      for (size_t i = 0; i < rounded.size(); ++i) {
        input[static_cast<int64_t>(i)] =
            std::bit_cast<float>(static_cast<uint32_t>(rounded[i]) << 16);
      }
      GuardedBuffer bias = Zeros(columns);
      GuardedBuffer gradient = Random(kRows * columns);
      GuardedBuffer output = Zeros(kRows * columns);
      GuardedBuffer input_gradient = Zeros(kRows * columns);
      GuardedBuffer bias_gradient = Zeros(columns);
      BiasGeluGradient(form, kRows, columns,
                       {.input = input.data(),
                        .bias = bias.data(),
                        .output_gradient = gradient.data(),
                        .output = output.data(),
                        .input_gradient = input_gradient.data(),
                        .bias_gradient = bias_gradient.data()});
      const TileInMatrix in(columns, gradient.data());
      std::vector<uint16_t> before = in.Matrix(), after = in.Matrix(),
                            back = in.Matrix();
      for (int64_t i = 0; i < kRows * columns; ++i) {
        before[static_cast<size_t>(i / columns * in.stride() + i % columns +
                                   in.tile.column)] =
            rounded[static_cast<size_t>(i)];
      }
      GuardedBuffer of_tile = Random(columns);
      BiasGeluGradientOfTile(form, in.tile,
                             {.input = before.data() + in.tile.column,
                              .output = after.data() + in.tile.column,
                              .input_gradient = back.data() + in.tile.column,
                              .stride = in.stride(),
                              .bias_gradient = of_tile.data()});
      EXPECT_EQ(in.ElementsOf(after), Rounded(&output));
      EXPECT_EQ(in.ElementsOf(back), Rounded(&input_gradient));
      for (int64_t c = 0; c < columns; ++c) {
        ASSERT_EQ(of_tile[c], bias_gradient[c]);
      }
    }
  }
}

TEST_P(BiasGeluTest, IsRightAtTheEndsAndKeepsNaN) {
  for (const GeluForm form : kForms) {
    GuardedBuffer input = Zeros(6);
    GuardedBuffer bias = Zeros(6);
    GuardedBuffer output = Zeros(6);
    input[0] = 0.0f;
    input[1] = 100.0f;
    input[2] = -100.0f;
    input[3] = 1e30f;
    input[4] = -1e30f;
    input[5] = std::numeric_limits<float>::quiet_NaN();
    BiasGelu(form, 1, 6,
             BiasGeluInput{input.data(), bias.data(), output.data()});
    EXPECT_EQ(output[0], 0.0f);
    EXPECT_EQ(output[1], 100.0f);
    EXPECT_EQ(output[2], 0.0f);
    EXPECT_EQ(output[3], 1e30f);
    EXPECT_EQ(output[4], 0.0f);
    EXPECT_TRUE(std::isnan(output[5]));
  }
}

// Runs from one end to the other, beyond the range of random numbers; the
// exponent of 2 is rounded to 2^-17 there. Not for tanh, whose definition loses
// all digits.
TEST_P(BiasGeluTest, IsPreciseInItsTails) {
  constexpr int64_t kCount = 2600;
  constexpr GeluForm kForm = GeluForm::kErf;
  GuardedBuffer input = Zeros(kCount);
  for (int64_t i = 0; i < kCount; ++i) {
    input[i] = static_cast<float>(i - kCount / 2) / 100.0f;
  }
  GuardedBuffer bias = Zeros(kCount);
  GuardedBuffer gradient = Zeros(kCount);
  for (int64_t i = 0; i < kCount; ++i) {
    gradient[i] = 1.0f;
  }
  GuardedBuffer output = Zeros(kCount);
  GuardedBuffer bias_gradient = Zeros(kCount);
  BiasGeluGradient(kForm, 1, kCount,
                   BiasGeluRows{.input = input.data(),
                                .bias = bias.data(),
                                .output_gradient = gradient.data(),
                                .output = output.data(),
                                .input_gradient = gradient.data(),
                                .bias_gradient = bias_gradient.data()});
  for (int64_t i = 0; i < kCount; ++i) {
    const auto x = static_cast<double>(input[i]);
    const double expected = GeluReference(kForm, x);
    ASSERT_NEAR(output[i], expected, 3e-5 * std::abs(expected) + 1e-30) << x;
    ASSERT_NEAR(gradient[i], GeluDerivativeReference(kForm, x), 2e-6) << x;
  }
}

ETC_INSTANTIATE_FOR_EACH_TARGET(BiasGeluTest);

}  // namespace
}  // namespace etc::kernels
