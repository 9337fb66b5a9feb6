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

// gelu(x) = x share, and its derivative share + x slope.
struct GeluTerms {
  FloatVector share;
  FloatVector slope;  // of the share, by x
};

// 2^-size of size >= 0. Exp2 stops falling at the end of float32, where the
// product with x would not be 0.
HWY_INLINE FloatVector NegativeExp2(FloatVector size) {
  return hn::IfThenZeroElse(hn::Gt(size, hn::Set(FloatTag(), 125.0f)),
                            Exp2(hn::Neg(size)));
}

// Here written without tanh: u = kLinear x + kCubic x^3, and 2 u log2(e) as
// exponent of 2.
struct TanhGelu {
  static constexpr double kLinear = 0.7978845608028654;  // sqrt(2 / pi)
  static constexpr double kCubic = kLinear * 0.044715;
  static constexpr double kTwoLog2E = 2.0 * 1.4426950408889634;

  // Let e = exp(-2 |u|): the share is the sigmoid of 2 u, 1 / (1 + e) for
  // positive u and e / (1 + e) for negative, precise at both ends.
  static HWY_INLINE GeluTerms Of(FloatVector x) {
    const FloatTag tag;
    const FloatVector one = hn::Set(tag, 1.0f);
    const FloatVector square = hn::Mul(x, x);
    const FloatVector exponent = hn::Mul(
        x,
        hn::MulAdd(hn::Set(tag, static_cast<float>(kCubic * kTwoLog2E)), square,
                   hn::Set(tag, static_cast<float>(kLinear * kTwoLog2E))));
    const FloatVector e = NegativeExp2(hn::Abs(exponent));
    const FloatVector inverse = hn::Div(one, hn::Add(one, e));
    const FloatVector rest = hn::Mul(e, inverse);
    const FloatVector by_x =  // of 2 u
        hn::MulAdd(hn::Set(tag, static_cast<float>(6.0 * kCubic)), square,
                   hn::Set(tag, static_cast<float>(2.0 * kLinear)));
    return {
        .share = hn::IfThenElse(hn::Lt(exponent, hn::Zero(tag)), rest, inverse),
        .slope = hn::Mul(by_x, hn::Mul(rest, inverse))};
  }
};

// Let e = exp(-x^2 / 2): the share of negative x is erfc(|x| / sqrt(2)) / 2,
//
//   e t Q(t) / 2,   t = 1 / (1 + kStep |x|)
//
// as Abramowitz and Stegun 7.1.26 have it, but that their Q is of degree 4 and
// good to 1.5e-7 of erf, this one of degree 7 and good to 1e-7 of erfc, in
// front of e for all x: a least-squares fit, reweighted until the largest error
// was as small as it gets, of erfc(z) exp(z^2) / t on 0 <= z <= 9.
struct ErfGelu {
  static constexpr double kStep = 0.3275911 * 0.7071067811865476;
  static constexpr double kHalfLog2E = 0.5 * 1.4426950408889634;
  static constexpr double kDensity = 0.3989422804014327;  // 1 / sqrt(2 pi)

  static HWY_INLINE GeluTerms Of(FloatVector x) {
    const FloatTag tag;
    const FloatVector one = hn::Set(tag, 1.0f);
    const FloatVector e = NegativeExp2(
        hn::Mul(hn::Mul(x, x), hn::Set(tag, static_cast<float>(kHalfLog2E))));
    const FloatVector t = hn::Div(
        one,
        hn::MulAdd(hn::Abs(x), hn::Set(tag, static_cast<float>(kStep)), one));
    FloatVector q = hn::Set(tag, -0.142079556f);
    q = hn::MulAdd(q, t, hn::Set(tag, 0.500678848f));
    q = hn::MulAdd(q, t, hn::Set(tag, -0.412837219f));
    q = hn::MulAdd(q, t, hn::Set(tag, 0.459697695f));
    q = hn::MulAdd(q, t, hn::Set(tag, 0.0219526052f));
    q = hn::MulAdd(q, t, hn::Set(tag, 0.206972842f));
    q = hn::MulAdd(q, t, hn::Set(tag, 0.180549552f));
    q = hn::MulAdd(q, t, hn::Set(tag, 0.185065332f));
    const FloatVector tail =
        hn::Mul(hn::Mul(e, hn::Set(tag, 0.5f)), hn::Mul(t, q));
    return {.share = hn::IfThenElse(hn::Lt(x, hn::Zero(tag)), tail,
                                    hn::Sub(one, tail)),
            .slope = hn::Mul(e, hn::Set(tag, static_cast<float>(kDensity)))};
  }
};

// The first `count` lanes, a full vector or less.
HWY_INLINE void Store(FloatVector vector, int64_t count, float* to) {
  if (count == Lanes()) {
    hn::StoreU(vector, FloatTag(), to);
  } else {
    LanesBetween(0, count).Store(vector, to);
  }
}
HWY_INLINE FloatVector Load(const float* from, int64_t count) {
  return count == Lanes() ? hn::LoadU(FloatTag(), from)
                          : LanesBetween(0, count).Load(from);
}

// Calls function(c, count) for the vectors of `columns` columns.
template <typename Function>
HWY_INLINE void ForEachColumns(int64_t columns, const Function& function) {
  const int64_t lanes = Lanes();
  int64_t c = 0;
  for (; c + lanes <= columns; c += lanes) {
    function(c, lanes);
  }
  if (c < columns) {
    function(c, columns - c);
  }
}

template <typename Form>
HWY_INLINE void GeluRows(int64_t rows, int64_t columns,
                         const BiasGeluInput& data) {
  const float* input = data.input;
  const float* const HWY_RESTRICT bias = data.bias;
  float* HWY_RESTRICT output = data.output;
  for (int64_t r = 0; r < rows; ++r) {
    ForEachColumns(columns, [&](int64_t c, int64_t count) HWY_ATTR {
      const FloatVector x =
          hn::Add(Load(input + c, count), Load(bias + c, count));
      Store(hn::Mul(x, Form::Of(x).share), count, output + c);
    });
    input += columns;
    output += columns;
  }
}

template <typename Form>
HWY_INLINE void GeluGradientRows(int64_t rows, int64_t columns,
                                 const BiasGeluRows& data) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first = r * columns;
    ForEachColumns(columns, [&](int64_t c, int64_t count) HWY_ATTR {
      const FloatVector x = hn::Add(Load(data.input + first + c, count),
                                    Load(data.bias + c, count));
      const GeluTerms terms = Form::Of(x);
      const FloatVector gradient =
          hn::Mul(Load(data.output_gradient + first + c, count),
                  hn::MulAdd(x, terms.slope, terms.share));
      Store(hn::Mul(x, terms.share), count, data.output + first + c);
      Store(gradient, count, data.input_gradient + first + c);
      Store(hn::Add(Load(data.bias_gradient + c, count), gradient), count,
            data.bias_gradient + c);
    });
  }
}

template <typename Form>
HWY_INLINE void GeluTile(const ProductTile& tile, const RoundedGelu& data) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    const float* const HWY_RESTRICT sums = tile.sums + r * tile.stride;
    const int64_t first = r * data.stride;
    ForEachColumns(tile.columns, [&](int64_t c, int64_t count) HWY_ATTR {
      const FloatVector x =
          hn::Add(Load(sums + c, count), Load(data.bias + c, count));
      if (data.input != nullptr) {
        StoreBfloat16(x, count, data.input + first + c);
      }
      StoreBfloat16(hn::Mul(x, Form::Of(x).share), count,
                    data.output + first + c);
    });
  }
}

template <typename Form>
HWY_INLINE void GeluGradientTile(const ProductTile& tile,
                                 const RoundedGeluGradient& data) {
  FillRun(0.0f, tile.columns, data.bias_gradient);
  for (int64_t r = 0; r < tile.rows; ++r) {
    const float* const HWY_RESTRICT sums = tile.sums + r * tile.stride;
    const int64_t first = r * data.stride;
    ForEachColumns(tile.columns, [&](int64_t c, int64_t count) HWY_ATTR {
      const FloatVector x = LoadBfloat16(data.input + first + c, count);
      const GeluTerms terms = Form::Of(x);
      const FloatVector gradient = hn::Mul(
          Load(sums + c, count), hn::MulAdd(x, terms.slope, terms.share));
      StoreBfloat16(hn::Mul(x, terms.share), count, data.output + first + c);
      StoreBfloat16(gradient, count, data.input_gradient + first + c);
      Store(hn::Add(Load(data.bias_gradient + c, count), gradient), count,
            data.bias_gradient + c);
    });
  }
}

// Calls function(a form).
template <typename Function>
HWY_INLINE void WithForm(GeluForm form, const Function& function) {
  if (form == GeluForm::kErf) {
    function(ErfGelu());
  } else {
    function(TanhGelu());
  }
}

void BiasGeluImpl(GeluForm form, int64_t rows, int64_t columns,
                  const BiasGeluInput& data) {
  WithForm(form, [&](auto gelu) HWY_ATTR {
    GeluRows<decltype(gelu)>(rows, columns, data);
  });
}
void BiasGeluGradientImpl(GeluForm form, int64_t rows, int64_t columns,
                          const BiasGeluRows& data) {
  WithForm(form, [&](auto gelu) HWY_ATTR {
    GeluGradientRows<decltype(gelu)>(rows, columns, data);
  });
}
void BiasGeluOfTileImpl(GeluForm form, const ProductTile& tile,
                        const RoundedGelu& data) {
  WithForm(form,
           [&](auto gelu) HWY_ATTR { GeluTile<decltype(gelu)>(tile, data); });
}
void BiasGeluGradientOfTileImpl(GeluForm form, const ProductTile& tile,
                                const RoundedGeluGradient& data) {
  WithForm(form, [&](auto gelu) HWY_ATTR {
    GeluGradientTile<decltype(gelu)>(tile, data);
  });
}

}  // namespace
}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {

HWY_EXPORT(BiasGeluImpl);
HWY_EXPORT(BiasGeluGradientImpl);
HWY_EXPORT(BiasGeluOfTileImpl);
HWY_EXPORT(BiasGeluGradientOfTileImpl);

void BiasGelu(GeluForm form, int64_t rows, int64_t columns,
              const BiasGeluInput& data) {
  HWY_DYNAMIC_DISPATCH(BiasGeluImpl)(form, rows, columns, data);
}

void BiasGeluGradient(GeluForm form, int64_t rows, int64_t columns,
                      const BiasGeluRows& data) {
  HWY_DYNAMIC_DISPATCH(BiasGeluGradientImpl)(form, rows, columns, data);
}

void BiasGeluOfTile(GeluForm form, const ProductTile& tile,
                    const RoundedGelu& data) {
  HWY_DYNAMIC_DISPATCH(BiasGeluOfTileImpl)(form, tile, data);
}

void BiasGeluGradientOfTile(GeluForm form, const ProductTile& tile,
                            const RoundedGeluGradient& data) {
  HWY_DYNAMIC_DISPATCH(BiasGeluGradientOfTileImpl)(form, tile, data);
}

}  // namespace etc::kernels
#endif  // HWY_ONCE
