// Products by AMX against sums in double, with rows or columns of either factor
// contiguous, at sizes around those of a tile, a block, a task and a part of
// the depth. Skipped where the CPU has no AMX.

#include "base/amx_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "base/amx.h"
#include "tests/support/guarded_buffer.h"

namespace etc::kernels {
namespace {

float Widened(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value = 0.0f;
  static_assert(sizeof(value) == sizeof(bits));
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// Halves between pages that may not be touched.
class GuardedHalves {
 public:
  GuardedHalves(int64_t count, GuardedBuffer::Guard guard)
      : floats_(static_cast<size_t>((count + 1) / 2), guard),
        // An odd number of them ends at a guard behind, too.
        data_(reinterpret_cast<uint16_t*>(floats_.data()) +
              (guard == GuardedBuffer::Guard::kBehind ? count % 2 : 0)) {}
  uint16_t* data() { return data_; }

 private:
  GuardedBuffer floats_;
  uint16_t* data_;
};

struct Sizes {
  int64_t rows, depth, columns;
};

class AmxProductTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasAmx()) {
      GTEST_SKIP() << "this CPU has no AMX";
    }
  }

  void Fill(int64_t count, uint16_t* to) {
    std::uniform_int_distribution<int> sign(0, 1);
    std::uniform_int_distribution<int> mantissa(0, 0xff);
    for (int64_t i = 0; i < count; ++i) {
      // Numbers between 1/2 and 2.
      to[i] = static_cast<uint16_t>(sign(random_) << 15 |
                                    (0x3f00 + mantissa(random_)));
    }
  }

  // Returns the result, computed for so many threads.
  static std::vector<float> Multiply(AmxProduct product, int64_t threads) {
    std::vector<float> result(
        static_cast<size_t>(product.rows * product.columns), NAN);
    product.result = result.data();
    const AmxPlan plan(product, threads);
    std::vector<float> packed_floats(
        static_cast<size_t>(plan.packed_size() / 2 + 32), NAN);
    std::vector<float> workspace_floats(
        static_cast<size_t>(plan.workspace_size() + 16), NAN);
    auto* const packed = reinterpret_cast<uint16_t*>(Aligned(&packed_floats));
    for (int64_t task = 0; task < plan.packing_tasks(); ++task) {
      plan.Pack(task, packed);
    }
    for (int64_t task = 0; task < plan.tasks(); ++task) {
      plan.Multiply(task, packed, Aligned(&workspace_floats));
    }
    return result;
  }

  void ExpectRight(const Sizes& sizes, bool a_has_rows, bool b_has_rows,
                   bool has_bias, GuardedBuffer::Guard guard) {
    SCOPED_TRACE(std::to_string(sizes.rows) + " x " +
                 std::to_string(sizes.depth) + " x " +
                 std::to_string(sizes.columns) + (a_has_rows ? " r" : " c") +
                 (b_has_rows ? "r" : "c") + (has_bias ? " bias" : ""));
    GuardedHalves a(sizes.rows * sizes.depth, guard);
    GuardedHalves b(sizes.depth * sizes.columns, guard);
    Fill(sizes.rows * sizes.depth, a.data());
    Fill(sizes.depth * sizes.columns, b.data());
    GuardedBuffer bias(static_cast<size_t>(sizes.columns), guard);
    for (size_t c = 0; c < bias.size(); ++c) {
      bias[c] = static_cast<float>(c % 7) - 3.0f;
    }
    const AmxProduct product = {.rows = sizes.rows,
                                .depth = sizes.depth,
                                .columns = sizes.columns,
                                .a = {a.data(), a_has_rows ? sizes.depth : 1,
                                      a_has_rows ? 1 : sizes.rows},
                                .b = {b.data(), b_has_rows ? sizes.columns : 1,
                                      b_has_rows ? 1 : sizes.depth},
                                .bias = has_bias ? bias.data() : nullptr,
                                .result = nullptr};
    const std::vector<float> result = Multiply(product, 1);
    ExpectNear(product, result);
    EXPECT_EQ(result, Multiply(product, 5)) << "with tasks of other sizes";
  }

  static void ExpectNear(const AmxProduct& product,
                         const std::vector<float>& result) {
    for (int64_t r = 0; r < product.rows; ++r) {
      for (int64_t c = 0; c < product.columns; ++c) {
        double sum = product.bias == nullptr ? 0.0 : product.bias[c];
        for (int64_t k = 0; k < product.depth; ++k) {
          sum += static_cast<double>(
                     Widened(product.a.data[r * product.a.row_stride +
                                            k * product.a.column_stride])) *
                 static_cast<double>(
                     Widened(product.b.data[k * product.b.row_stride +
                                            c * product.b.column_stride]));
        }
        // Each of the terms is at most 4.
        ASSERT_NEAR(result[static_cast<size_t>(r * product.columns + c)], sum,
                    4.0 * static_cast<double>(product.depth + 1) * 0x1p-23)
            << r << ", " << c;
      }
    }
  }

 private:
  static float* Aligned(std::vector<float>* floats) {
    const auto address = reinterpret_cast<uintptr_t>(floats->data());
    return reinterpret_cast<float*>((address + 63) / 64 * 64);
  }

  std::mt19937 random_{5};
};

TEST_F(AmxProductTest, MultipliesEveryShape) {
  for (const auto guard :
       {GuardedBuffer::Guard::kBefore, GuardedBuffer::Guard::kBehind}) {
    for (const Sizes& sizes : {Sizes{1, 1, 1},
                               {2, 3, 5},
                               {16, 32, 16},
                               {31, 33, 17},
                               {32, 32, 32},
                               {33, 31, 65},
                               {64, 64, 64},
                               {70, 65, 40},
                               {40, 1024, 70}}) {
      for (const bool a_has_rows : {false, true}) {
        for (const bool b_has_rows : {false, true}) {
          for (const bool has_bias : {false, true}) {
            ExpectRight(sizes, a_has_rows, b_has_rows, has_bias, guard);
          }
        }
      }
    }
  }
}

// Several tasks across and down, and two parts of the depth.
TEST_F(AmxProductTest, MultipliesWhatTasksShare) {
  for (const bool a_has_rows : {false, true}) {
    for (const bool b_has_rows : {false, true}) {
      ExpectRight({300, 40, 600}, a_has_rows, b_has_rows, /*has_bias=*/false,
                  GuardedBuffer::Guard::kBehind);
      ExpectRight({600, 40, 300}, a_has_rows, b_has_rows, /*has_bias=*/true,
                  GuardedBuffer::Guard::kBehind);
      ExpectRight({70, 3100, 40}, a_has_rows, b_has_rows, /*has_bias=*/true,
                  GuardedBuffer::Guard::kBehind);
      ExpectRight({70, 3100, 40}, a_has_rows, b_has_rows, /*has_bias=*/false,
                  GuardedBuffer::Guard::kBefore);
    }
  }
}

}  // namespace
}  // namespace etc::kernels
