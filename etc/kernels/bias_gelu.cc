#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc/kernels/bias_gelu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "attention/kernels/softmax_rows-inl.h"
#include "etc/kernels/bias_gelu.h"
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

void BiasGeluImpl(int64_t rows, int64_t columns, const float* input,
                  const float* HWY_RESTRICT bias, float* HWY_RESTRICT output) {
  const FloatTag tag;
  const int64_t lanes = Lanes();
  for (int64_t r = 0; r < rows; ++r) {
    int64_t c = 0;
    for (; c + lanes <= columns; c += lanes) {
      const FloatVector x =
          hn::Add(hn::LoadU(tag, input + c), hn::LoadU(tag, bias + c));
      hn::StoreU(hn::Mul(x, Gelu(x).sigmoid), tag, output + c);
    }
    if (c < columns) {
      const int64_t rest = columns - c;
      const FloatVector x =
          hn::Add(LoadTail(input + c, rest), LoadTail(bias + c, rest));
      StoreTail(hn::Mul(x, Gelu(x).sigmoid), rest, output + c);
    }
    input += columns;
    output += columns;
  }
}

struct GradientVectors {
  FloatVector output;
  FloatVector input_gradient;
};

HWY_INLINE GradientVectors Differentiate(FloatVector x, FloatVector gradient) {
  const GeluTerms terms = Gelu(x);
  return {.output = hn::Mul(x, terms.sigmoid),
          .input_gradient = hn::Mul(gradient, GeluDerivative(x, terms))};
}

void BiasGeluGradientImpl(int64_t rows, int64_t columns,
                          const BiasGeluRows& data) {
  const FloatTag tag;
  const int64_t lanes = Lanes();
  const float* const bias = data.bias;
  float* const sums = data.bias_gradient;
  for (int64_t r = 0; r < rows; ++r) {
    const float* const input = data.input + r * columns;
    const float* const gradient = data.output_gradient + r * columns;
    float* const output = data.output + r * columns;
    float* const result = data.input_gradient + r * columns;
    int64_t c = 0;
    for (; c + lanes <= columns; c += lanes) {
      const GradientVectors all = Differentiate(
          hn::Add(hn::LoadU(tag, input + c), hn::LoadU(tag, bias + c)),
          hn::LoadU(tag, gradient + c));
      hn::StoreU(all.output, tag, output + c);
      hn::StoreU(all.input_gradient, tag, result + c);
      hn::StoreU(hn::Add(hn::LoadU(tag, sums + c), all.input_gradient), tag,
                 sums + c);
    }
    if (c < columns) {
      const int64_t rest = columns - c;
      const GradientVectors all = Differentiate(
          hn::Add(LoadTail(input + c, rest), LoadTail(bias + c, rest)),
          LoadTail(gradient + c, rest));
      StoreTail(all.output, rest, output + c);
      StoreTail(all.input_gradient, rest, result + c);
      StoreTail(hn::Add(LoadTail(sums + c, rest), all.input_gradient), rest,
                sums + c);
    }
  }
}

}  // namespace
}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {

HWY_EXPORT(BiasGeluImpl);
HWY_EXPORT(BiasGeluGradientImpl);

void BiasGelu(int64_t rows, int64_t columns, const float* input,
              const float* bias, float* output) {
  HWY_DYNAMIC_DISPATCH(BiasGeluImpl)(rows, columns, input, bias, output);
}

void BiasGeluGradient(int64_t rows, int64_t columns, const BiasGeluRows& data) {
  HWY_DYNAMIC_DISPATCH(BiasGeluGradientImpl)(rows, columns, data);
}

}  // namespace etc::kernels
#endif  // HWY_ONCE
