#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc/nn/kernels/bias_gelu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "attention/backends/cpu/kernels/softmax_rows-inl.h"
#include "base/bfloat16-inl.h"
#include "etc/nn/kernels/bias_gelu.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {
namespace {

// u = kLinear x + kCubic x^3, and 2 u log2(e) as exponent of 2.
constexpr double kLinear = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double kCubic = kLinear * 0.044715;
constexpr double kTwoLog2E = 2.0 * 1.4426950408889634;

struct GeluTerms {
  FloatVector square;      // x^2
  FloatVector sigmoid;     // of 2 u
  FloatVector derivative;  // of the sigmoid, by 2 u
};

// With e = exp(-2 |u|): the sigmoid is 1 / (1 + e) for positive u and
// e / (1 + e) for negative, precise at both ends.
HWY_INLINE GeluTerms Gelu(FloatVector x) {
  const FloatTag tag;
  const FloatVector one = hn::Set(tag, 1.0f);
  const FloatVector square = hn::Mul(x, x);
  const FloatVector exponent = hn::Mul(
      x,
      hn::MulAdd(hn::Set(tag, static_cast<float>(kCubic * kTwoLog2E)), square,
                 hn::Set(tag, static_cast<float>(kLinear * kTwoLog2E))));
  const FloatVector size = hn::Neg(hn::Abs(exponent));
  // Below, Exp2 stops falling, and the product with x would not be 0.
  const FloatVector e =
      hn::IfThenZeroElse(hn::Lt(size, hn::Set(tag, -125.0f)), Exp2(size));
  const FloatVector inverse = hn::Div(one, hn::Add(one, e));
  const FloatVector rest = hn::Mul(e, inverse);
  return {
      .square = square,
      .sigmoid = hn::IfThenElse(hn::Lt(exponent, hn::Zero(tag)), rest, inverse),
      .derivative = hn::Mul(rest, inverse)};
}

// sigmoid + x sigmoid' (2 u)', the derivative by x.
HWY_INLINE FloatVector GeluDerivative(FloatVector x, const GeluTerms& terms) {
  const FloatTag tag;
  const FloatVector slope =  // of 2 u
      hn::MulAdd(hn::Set(tag, static_cast<float>(6.0 * kCubic)), terms.square,
                 hn::Set(tag, static_cast<float>(2.0 * kLinear)));
  return hn::MulAdd(hn::Mul(x, slope), terms.derivative, terms.sigmoid);
}

// The first `count` lanes, a full vector or less.
HWY_INLINE void Store(FloatVector vector, int64_t count, float* to) {
  if (count == Lanes()) {
    hn::StoreU(vector, FloatTag(), to);
  } else {
    StoreLanes(vector, 0, count, to);
  }
}
HWY_INLINE void Store(FloatVector vector, int64_t count, uint16_t* to) {
  StoreBfloat16(vector, count, to);
}
HWY_INLINE FloatVector Load(const float* from, int64_t count) {
  return count == Lanes() ? hn::LoadU(FloatTag(), from)
                          : LoadLanes(from, 0, count);
}

template <typename Output>
HWY_INLINE void GeluRows(int64_t rows, int64_t columns, const float* input,
                         const float* HWY_RESTRICT bias,
                         Output* HWY_RESTRICT output) {
  const int64_t lanes = Lanes();
  for (int64_t r = 0; r < rows; ++r) {
    const auto vector = [&](int64_t c, int64_t count) HWY_ATTR {
      const FloatVector x =
          hn::Add(Load(input + c, count), Load(bias + c, count));
      Store(hn::Mul(x, Gelu(x).sigmoid), count, output + c);
    };
    int64_t c = 0;
    for (; c + lanes <= columns; c += lanes) {
      vector(c, lanes);
    }
    if (c < columns) {
      vector(c, columns - c);
    }
    input += columns;
    output += columns;
  }
}

template <typename Output>
HWY_INLINE void GeluGradientRows(int64_t rows, int64_t columns,
                                 const BiasGeluRows<Output>& data) {
  const int64_t lanes = Lanes();
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first = r * columns;
    const auto vector = [&](int64_t c, int64_t count) HWY_ATTR {
      const FloatVector x = hn::Add(Load(data.input + first + c, count),
                                    Load(data.bias + c, count));
      const GeluTerms terms = Gelu(x);
      const FloatVector gradient =
          hn::Mul(Load(data.output_gradient + first + c, count),
                  GeluDerivative(x, terms));
      Store(hn::Mul(x, terms.sigmoid), count, data.output + first + c);
      Store(gradient, count, data.input_gradient + first + c);
      Store(hn::Add(Load(data.bias_gradient + c, count), gradient), count,
            data.bias_gradient + c);
    };
    int64_t c = 0;
    for (; c + lanes <= columns; c += lanes) {
      vector(c, lanes);
    }
    if (c < columns) {
      vector(c, columns - c);
    }
  }
}

void FloatImpl(int64_t rows, int64_t columns, const float* input,
               const float* bias, float* output) {
  GeluRows(rows, columns, input, bias, output);
}
void Bfloat16Impl(int64_t rows, int64_t columns, const float* input,
                  const float* bias, uint16_t* output) {
  GeluRows(rows, columns, input, bias, output);
}
void FloatGradientImpl(int64_t rows, int64_t columns,
                       const BiasGeluRows<float>& data) {
  GeluGradientRows(rows, columns, data);
}
void Bfloat16GradientImpl(int64_t rows, int64_t columns,
                          const BiasGeluRows<uint16_t>& data) {
  GeluGradientRows(rows, columns, data);
}

}  // namespace
}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {

HWY_EXPORT(FloatImpl);
HWY_EXPORT(Bfloat16Impl);
HWY_EXPORT(FloatGradientImpl);
HWY_EXPORT(Bfloat16GradientImpl);

void BiasGelu(int64_t rows, int64_t columns, const float* input,
              const float* bias, float* output) {
  HWY_DYNAMIC_DISPATCH(FloatImpl)(rows, columns, input, bias, output);
}

void BiasGelu(int64_t rows, int64_t columns, const float* input,
              const float* bias, uint16_t* output) {
  HWY_DYNAMIC_DISPATCH(Bfloat16Impl)(rows, columns, input, bias, output);
}

void BiasGeluGradient(int64_t rows, int64_t columns,
                      const BiasGeluRows<float>& data) {
  HWY_DYNAMIC_DISPATCH(FloatGradientImpl)(rows, columns, data);
}

void BiasGeluGradient(int64_t rows, int64_t columns,
                      const BiasGeluRows<uint16_t>& data) {
  HWY_DYNAMIC_DISPATCH(Bfloat16GradientImpl)(rows, columns, data);
}

}  // namespace etc::kernels
#endif  // HWY_ONCE
