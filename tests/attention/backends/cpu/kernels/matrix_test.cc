// The matrix product and the packing of the kernels against scalar loops in
// double, on every SIMD target this CPU has. Rows run over all sizes of a group
// of six and beyond, columns over every number of vectors and over tails, depth
// over 0 and more; strides are odd, and the left factor is read along rows and
// along columns. Tolerance: a sum of `depth` products of numbers below 1 is off
// by less than depth * 2^-23. Packing copies, exactly, from memory whose next
// page may not be touched.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/attention/backends/cpu/kernels/matrix_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "attention/backends/cpu/kernels/matrix-inl.h"
#include "attention/backends/cpu/kernels/packing-inl.h"
#include "attention/backends/cpu/kernels/reference.h"
#include "hwy/highway.h"
#include "tests/support/guarded_buffer.h"

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

void CallMultiplyAdd(int64_t rows, int64_t columns, const float* a,
                     int64_t a_row_stride, int64_t a_depth_stride,
                     const float* b, int64_t b_stride, int64_t depth, float* c,
                     int64_t c_stride) {
  MultiplyAdd(rows, columns, {a, a_row_stride, a_depth_stride}, {b, b_stride},
              depth, c, c_stride);
}

void CallMultiply(int64_t rows, int64_t columns, const float* a,
                  int64_t a_row_stride, int64_t a_depth_stride, const float* b,
                  int64_t b_stride, int64_t depth, float* c, int64_t c_stride,
                  const float* ahead, int64_t ahead_rows) {
  MultiplyRowGroup</*kAdd=*/false>(rows, columns,
                                   {a, a_row_stride, a_depth_stride},
                                   {b, b_stride}, depth, c, c_stride,
                                   {.data = ahead,
                                    .step = 16,
                                    .count = 9,
                                    .rows = ahead_rows,
                                    .row_stride = 200});
}

void CallPackRows(const float* from, int64_t stride, int64_t rows,
                  int64_t columns, int64_t padded, float factor, float* to) {
  PackRows(from, stride, rows, columns, padded, factor, to);
}

void CallPackTransposed(const float* from, int64_t stride, int64_t rows,
                        int64_t columns, float* to, int64_t to_stride) {
  PackTransposed(from, stride, rows, columns, to, to_stride);
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {
namespace {

HWY_EXPORT(CallMultiplyAdd);
HWY_EXPORT(CallMultiply);
HWY_EXPORT(CallPackRows);
HWY_EXPORT(CallPackTransposed);

class MatrixTest : public testing::TestWithParam<int64_t> {
 protected:
  MatrixTest() { hwy::SetSupportedTargetsForTest(GetParam()); }
  ~MatrixTest() override { hwy::SetSupportedTargetsForTest(0); }

  float Draw() { return uniform_(random_); }
  std::vector<float> Draw(int64_t count) {
    std::vector<float> out(static_cast<size_t>(count));
    for (float& x : out) {
      x = Draw();
    }
    return out;
  }

  std::mt19937 random_{7};
  std::uniform_real_distribution<float> uniform_{-1.0f, 1.0f};
};

constexpr int64_t kStride = 150;  // behind the columns, up to a vector more

// c [rows][kStride] is expected [rows][columns].
void ExpectNear(int64_t rows, int64_t columns, int64_t depth,
                const std::vector<float>& c,
                const std::vector<double>& expected) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < columns; ++v) {
      ASSERT_NEAR(c[r * kStride + v], expected[r * columns + v],
                  static_cast<double>(depth + 1) * 0x1p-23)
          << rows << " x " << columns << " x " << depth << " at " << r << ", "
          << v;
    }
  }
}

TEST_P(MatrixTest, MultipliesAsTheDefinition) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 13}) {
    for (const int64_t columns : {1, 4, 15, 16, 17, 31, 33, 48, 63, 80, 129}) {
      for (const int64_t depth : {0, 1, 3, 64, 175}) {
        for (const bool along_columns : {false, true}) {
          const int64_t row_stride = along_columns ? 1 : depth + 3;
          const int64_t depth_stride = along_columns ? rows + 5 : 1;
          const std::vector<float> a = Draw((rows + 5) * (depth + 3));
          const std::vector<float> b = Draw((depth + 1) * kStride);
          std::vector<float> c = Draw(rows * kStride);
          std::vector<double> expected;
          for (int64_t r = 0; r < rows; ++r) {
            expected.insert(expected.end(), &c[r * kStride],
                            &c[r * kStride] + columns);
          }
          MultiplyAddReference(rows, columns, depth, a.data(), row_stride,
                               depth_stride, b.data(), kStride,
                               expected.data());
          HWY_DYNAMIC_DISPATCH(CallMultiplyAdd)
          (rows, columns, a.data(), row_stride, depth_stride, b.data(), kStride,
           depth, c.data(), kStride);
          ExpectNear(rows, columns, depth, c, expected);
          if (rows > 6) {
            continue;
          }
          // Written over, whatever is asked for meanwhile.
          std::fill(c.begin(), c.end(),
                    std::numeric_limits<float>::quiet_NaN());
          std::fill(expected.begin(), expected.end(), 0.0);
          MultiplyAddReference(rows, columns, depth, a.data(), row_stride,
                               depth_stride, b.data(), kStride,
                               expected.data());
          HWY_DYNAMIC_DISPATCH(CallMultiply)
          (rows, columns, a.data(), row_stride, depth_stride, b.data(), kStride,
           depth, c.data(), kStride, b.data(), rows);
          ExpectNear(rows, columns, depth, c, expected);
        }
      }
    }
  }
}

TEST_P(MatrixTest, PacksRowsAndTouchesNothingElse) {
  for (const auto guard :
       {GuardedBuffer::Guard::kBefore, GuardedBuffer::Guard::kBehind}) {
    for (const int64_t rows : {1, 3, 4, 7, 16, 37}) {
      for (const int64_t columns : {1, 3, 15, 16, 17, 64, 67}) {
        const int64_t stride = columns + 2;
        GuardedBuffer from((rows - 1) * stride + columns, guard);
        for (size_t i = 0; i < from.size(); ++i) {
          from[i] = Draw();
        }
        const int64_t padded = (columns + 15) / 16 * 16;
        GuardedBuffer packed(rows * padded, guard);
        HWY_DYNAMIC_DISPATCH(CallPackRows)
        (from.data(), stride, rows, columns, padded, 0.5f, packed.data());
        GuardedBuffer transposed((columns - 1) * (rows + 3) + rows, guard);
        std::fill_n(transposed.data(), transposed.size(), -7.0f);
        HWY_DYNAMIC_DISPATCH(CallPackTransposed)
        (from.data(), stride, rows, columns, transposed.data(), rows + 3);
        for (int64_t i = 0; i < columns * (rows + 3) - 3; ++i) {
          const int64_t r = i % (rows + 3);
          ASSERT_EQ(transposed[i],
                    r < rows ? from[r * stride + i / (rows + 3)] : -7.0f);
        }
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            ASSERT_EQ(packed[r * padded + c], 0.5f * from[r * stride + c]);
          }
          for (int64_t c = columns; c < padded; ++c) {
            ASSERT_EQ(packed[r * padded + c], 0.0f);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, MatrixTest,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const testing::TestParamInfo<int64_t>& target) {
                           return std::string(hwy::TargetName(target.param));
                         });

}  // namespace
}  // namespace etc::kernels
#endif  // HWY_ONCE
