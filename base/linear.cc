#include "base/linear.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <torch/autograd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/amx.h"
#include "base/amx_product.h"
#include "base/apply_linear.h"
#include "base/bfloat16.h"
#include "base/check_shape.h"
#include "base/large_pages.h"
#include "base/onednn_loader.h"
#include "base/parallel_tasks.h"
#include "base/row_chunks.h"

namespace etc {
namespace {

using Context = torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;
using OptionalTensor = c10::optional<torch::Tensor>;

bool IsOnCpu(const torch::Tensor& tensor, torch::ScalarType type) {
  return tensor.device().is_cpu() && tensor.scalar_type() == type;
}

bool IsFloatOnCpu(const torch::Tensor& tensor) {
  return IsOnCpu(tensor, torch::kFloat32);
}

bool IsRounded(const torch::Tensor& operand) {
  return operand.scalar_type() == torch::kBFloat16;
}

const OnednnModule& Onednn() {
  const auto& loaded = LoadedOnednn();
  TORCH_CHECK(loaded.ok(), std::string(loaded.status().message()));
  return **loaded;
}

// Returns `matrix` in a layout that oneDNN takes: rows or columns contiguous.
torch::Tensor AsMatrix(const torch::Tensor& matrix) {
  const int64_t rows = matrix.size(0);
  const int64_t columns = matrix.size(1);
  const bool by_rows = matrix.stride(1) == 1 && matrix.stride(0) >= columns;
  const bool by_columns = matrix.stride(0) == 1 && matrix.stride(1) >= rows;
  return by_rows || by_columns ? matrix : matrix.contiguous();
}

// a b + bias; none of them empty.
struct Product {
  torch::Tensor a, b, bias, result;
};

// Rows and columns of a result that are computed together.
struct TileSize {
  int64_t rows, columns;

  int64_t Across(int64_t size) const { return Parts(size, columns); }
  int64_t Tiles(const torch::Tensor& result) const {
    return Parts(result.size(0), rows) * Across(result.size(1));
  }
  static int64_t Parts(int64_t size, int64_t part) {
    return (size + part - 1) / part;
  }
};

// The larger a tile, the less is packed twice; the more there are, the more
// threads find work. From the sizes alone, so that bits follow from nothing
// else. (Measured on one core with AVX-512 and depths of 768 to 4352: the
// smallest cost up to 20 % more than the largest.)
TileSize TileSizeFor(const torch::Tensor& result) {
  constexpr int64_t kEnough = 24;
  constexpr TileSize kSizes[] = {
      {256, 768}, {128, 768}, {128, 384}, {128, 192}, {64, 192}};
  for (const TileSize& size : kSizes) {
    if (size.Tiles(result) >= kEnough) {
      return size;
    }
  }
  return kSizes[std::size(kSizes) - 1];
}

// The number of terms of the sums that are added at a time. Packing a factor
// whose columns are contiguous and long reads a little of many pages, again for
// each tile: the part read together should stay in the cache. (Measured as
// above, depth 4096: gradients of [1536, 384] and [3072, 768] took up to 20 %
// more at once; others, and bfloat16, gain nothing.)
int64_t DepthOfPart(const torch::Tensor& a) {
  constexpr int64_t kPart = 512;
  constexpr int64_t kLong = 1024;
  const bool is_costly = a.stride(0) == 1 && a.stride(1) >= kLong;
  return is_costly && !IsRounded(a) ? kPart : a.size(1);
}

// The part of `matrix` that begins at a row and a column.
OnednnMatrix PartOf(const torch::Tensor& matrix, int64_t row, int64_t column) {
  const int64_t first = row * matrix.stride(0) + column * matrix.stride(1);
  return {.data = static_cast<char*>(matrix.data_ptr()) +
                  first * static_cast<int64_t>(matrix.element_size()),
          .row_stride = matrix.stride(0),
          .column_stride = matrix.stride(1)};
}

// The origin of a tile and of a part of its sums.
struct TilePart {
  int64_t row, column, term;
};

// Rows [row, row + size.rows) and columns likewise of the result, as far as it
// goes, and terms [term, term + depth) of its sums.
OnednnProduct PartOfTile(const Product& product, const TileSize& size,
                         const TilePart& at, int64_t depth) {
  return {.rows = std::min(size.rows, product.result.size(0) - at.row),
          .depth = std::min(depth, product.a.size(1) - at.term),
          .columns = std::min(size.columns, product.result.size(1) - at.column),
          .is_bfloat16 = IsRounded(product.a),
          .a = PartOf(product.a, at.row, at.term),
          .b = PartOf(product.b, at.term, at.column),
          .bias = product.bias.defined() && at.term == 0
                      ? product.bias.data_ptr<float>() + at.column
                      : nullptr,
          .result = PartOf(product.result, at.row, at.column),
          .adds = at.term > 0};
}

// The first error of several threads.
struct Mistake {
  static void Report(void* mistake, const char* message) {
    auto* const self = static_cast<Mistake*>(mistake);
    const std::lock_guard<std::mutex> lock(self->mutex);
    if (self->message.empty()) {
      self->message = message;
    }
  }

  std::mutex mutex;
  std::string message;
};

kernels::Bfloat16Matrix Bfloat16MatrixOf(const torch::Tensor& matrix) {
  return {.data = static_cast<const uint16_t*>(matrix.data_ptr()),
          .row_stride = matrix.stride(0),
          .column_stride = matrix.stride(1)};
}

// Twice as fast as oneDNN 2.6 at the sizes of a model (bench/product_bench.cc),
// which packs factors for each of its tiles.
void MultiplyByAmx(const Product& product) {
  const kernels::AmxPlan plan(
      {.rows = product.a.size(0),
       .depth = product.a.size(1),
       .columns = product.b.size(1),
       .a = Bfloat16MatrixOf(product.a),
       .b = Bfloat16MatrixOf(product.b),
       .bias =
           product.bias.defined() ? product.bias.data_ptr<float>() : nullptr,
       .result = product.result.data_ptr<float>()},
      at::get_num_threads());
  const torch::Tensor buffer =
      WithLargePages(torch::empty({plan.packed_size()}, torch::kBFloat16));
  auto* const packed = static_cast<uint16_t*>(buffer.data_ptr());
  ForEachTask(plan.packing_tasks(), /*floats=*/0,
              [&](int64_t task, float*) { plan.Pack(task, packed); });
  ForEachTask(plan.tasks(), plan.workspace_size(),
              [&](int64_t task, float* workspace) {
                plan.Multiply(task, packed, workspace);
              });
}

// oneDNN by itself divides long sums among threads, as OpenBLAS does: so tiles
// of the result are products on one thread each.
void MultiplyByOnednn(const Product& product) {
  const OnednnModule& onednn = Onednn();
  const TileSize size = TileSizeFor(product.result);
  const int64_t across = size.Across(product.result.size(1));
  const int64_t depth = DepthOfPart(product.a);
  Mistake mistake;
  ForEachTask(size.Tiles(product.result), /*floats=*/0,
              [&](int64_t tile, float*) {
                TilePart part = {.row = tile / across * size.rows,
                                 .column = tile % across * size.columns};
                for (; part.term < product.a.size(1); part.term += depth) {
                  onednn.multiply(PartOfTile(product, size, part, depth),
                                  &mistake, Mistake::Report);
                }
              });
  TORCH_CHECK(mistake.message.empty(), "oneDNN: ", mistake.message);
}

void Multiply(const Product& product, ProductCode code) {
  const bool can_be_by_amx = IsRounded(product.a) && kernels::HasAmx();
  TORCH_CHECK(code != ProductCode::kAmx || can_be_by_amx,
              "products by AMX are of bfloat16, on a CPU that has AMX");
  if (can_be_by_amx && code != ProductCode::kOnednn) {
    MultiplyByAmx(product);
  } else {
    MultiplyByOnednn(product);
  }
}

// The sums of the columns of [rows, n] float32: [n].
torch::Tensor ColumnSums(const torch::Tensor& matrix) {
  const torch::Tensor rows = matrix.contiguous();
  const int64_t columns = rows.size(1);
  const float* const data = rows.data_ptr<float>();
  return ForEachRowChunk(rows.size(0), 1, columns, [&](const RowChunk& chunk) {
    for (int64_t r = chunk.begin; r < chunk.end; ++r) {
      const float* const row = data + r * columns;
      for (int64_t c = 0; c < columns; ++c) {
        chunk.sums[c] += row[c];
      }
    }
  })[0];
}

void CheckCpu() {
  const OnednnModule& onednn = Onednn();
  TORCH_CHECK(
      kernels::Bfloat16ProductsOfThisCpu() != kernels::Bfloat16Products::kNone,
      "products in bfloat16 need AVX-512, but oneDNN uses ",
      onednn.instructions(), " on this CPU");
}

torch::Tensor AsRows(const torch::Tensor& tensor) {
  // LibTorch cannot tell how many rows a tensor without columns has.
  return tensor.dim() == 2 ? tensor : tensor.reshape({-1, tensor.size(-1)});
}

LinearInput Factor(const torch::Tensor& value, bool rounded) {
  if (rounded && !value.is_cpu() && value.scalar_type() == torch::kFloat32) {
    return {.value = value.to(torch::kBFloat16), .is_rounded = true};
  }
  if (!IsFloatOnCpu(value)) {
    return {.value = value};
  }
  return {.value = value,
          .operand = rounded ? ToBfloat16(value) : value.detach()};
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  // `input` and `weight` for their gradients only.
  static Variables forward(Context* context, const torch::Tensor& input,
                           const torch::Tensor& weight,
                           const OptionalTensor& bias,
                           const torch::Tensor& input_operand,
                           const torch::Tensor& weight_operand) {
    context->save_for_backward({input_operand, weight_operand});
    context->saved_data["has_bias"] = bias.has_value();
    std::vector<int64_t> shape = input.sizes().vec();
    shape.back() = weight.size(0);
    // Not view(): the result of an autograd function must be no view if others
    // are to change it in place.
    return {at::_unsafe_view(
        MatrixProduct(AsRows(input_operand), weight_operand.t(),
                      bias.value_or(torch::Tensor())),
        shape)};
  }

  static Variables backward(Context* context, Variables gradients) {
    TORCH_CHECK(!torch::GradMode::is_enabled(),
                "gradients of gradients do not pass linear layers of float32 "
                "on the CPU; use float64 for them");
    const Variables saved = context->get_saved_variables();
    const torch::Tensor gradient = AsRows(gradients[0]);
    const torch::Tensor operand = Factor(gradient, IsRounded(saved[1])).operand;
    Variables result(5);
    if (context->needs_input_grad(0)) {
      result[0] = MatrixProduct(operand, saved[1]).view(saved[0].sizes());
    }
    if (context->needs_input_grad(1)) {
      result[1] = MatrixProduct(operand.t(), AsRows(saved[0]));
    }
    if (context->saved_data["has_bias"].toBool()) {
      result[2] = ColumnSums(gradient);
    }
    return result;
  }
};

}  // namespace

torch::Tensor ToBfloat16(const torch::Tensor& values) {
  TORCH_CHECK(
      IsFloatOnCpu(values),
      "what is rounded to bfloat16 should be float32 on the CPU, but is ",
      values.scalar_type(), " on ", values.device());
  const torch::Tensor from = values.detach().contiguous();
  torch::Tensor to =
      WithLargePages(torch::empty(from.sizes(), torch::kBFloat16));
  const float* const source = from.data_ptr<float>();
  auto* const target = static_cast<uint16_t*>(to.data_ptr());
  constexpr int64_t kChunk = int64_t{1} << 16;
  const int64_t count = from.numel();
  ForEachTask((count + kChunk - 1) / kChunk, /*floats=*/0,
              [&](int64_t chunk, float*) {
                const int64_t begin = chunk * kChunk;
                kernels::RoundToBfloat16(std::min(kChunk, count - begin),
                                         source + begin, target + begin);
              });
  return to;
}

torch::Tensor MatrixProduct(const torch::Tensor& a, const torch::Tensor& b,
                            const torch::Tensor& bias, ProductCode code) {
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0),
              "factors should be [m, k] and [k, n], but are ", a.sizes(),
              " and ", b.sizes());
  const bool rounded = IsRounded(a);
  for (const torch::Tensor& factor : {a, b}) {
    TORCH_CHECK(
        IsOnCpu(factor, rounded ? torch::kBFloat16 : torch::kFloat32),
        "factors should both be float32 or bfloat16 on the CPU, but one is ",
        factor.scalar_type(), " on ", factor.device());
  }
  if (rounded) {
    CheckCpu();
  }
  torch::Tensor added;
  if (bias.defined()) {
    ETC_CHECK_SHAPE(bias, {b.size(1)});
    TORCH_CHECK(IsFloatOnCpu(bias), "bias should be float32 on the CPU");
    added = bias.detach().contiguous();
  }
  torch::Tensor result =
      WithLargePages(torch::empty({a.size(0), b.size(1)}, torch::kFloat32));
  if (a.size(1) == 0) {
    const torch::NoGradGuard no_grad;
    return added.defined() ? result.copy_(added) : result.zero_();
  }
  if (result.numel() > 0) {
    Multiply(
        {.a = AsMatrix(a), .b = AsMatrix(b), .bias = added, .result = result},
        code);
  }
  return result;
}

// The copies are tensors of normal mode also where the first product is
// computed in InferenceMode: training may follow, and autograd keeps none of
// the latter.
class RoundedWeights {
 public:
  torch::Tensor Of(const torch::Tensor& weight) {
    const c10::InferenceMode normal_mode(false);
    if (weight.is_inference()) {
      return ToBfloat16(weight);
    }
    // Held while rounding, so that threads that begin together round once.
    const std::lock_guard<std::mutex> lock(mutex_);
    Copy& copy = CopyOf(weight);
    const auto version = static_cast<uint32_t>(weight._version());
    if (!copy.bfloat16.defined() || copy.version != version ||
        copy.data != weight.data_ptr()) {
      copy.version = version;
      copy.data = weight.data_ptr();
      copy.bfloat16 = ToBfloat16(weight);
    }
    return copy.bfloat16;
  }

  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    copies_.clear();
  }

 private:
  struct Copy {
    torch::Tensor weight;  // that it is of
    uint32_t version = 0;
    const void* data = nullptr;
    torch::Tensor bfloat16;
  };

  Copy& CopyOf(const torch::Tensor& weight) {
    const auto copy =
        std::find_if(copies_.begin(), copies_.end(),
                     [&](const Copy& c) { return c.weight.is_same(weight); });
    return copy != copies_.end() ? *copy
                                 : copies_.emplace_back(Copy{.weight = weight});
  }

  std::mutex mutex_;
  std::vector<Copy> copies_;
};

LinearProducts::LinearProducts()
    : rounded_(std::make_unique<RoundedWeights>()) {}

LinearProducts::LinearProducts(const LinearProducts& other) : LinearProducts() {
  precision_ = other.precision_;
}

LinearProducts& LinearProducts::operator=(const LinearProducts& other) {
  set_precision(other.precision_);
  return *this;
}

LinearProducts::~LinearProducts() = default;

void LinearProducts::set_precision(LinearPrecision precision) {
  precision_ = precision;
  rounded_->Clear();
}

LinearInput FactorBeside(const LinearInput& other, const torch::Tensor& value) {
  return other.is_rounded || other.operand.defined()
             ? Factor(value, other.is_rounded || IsRounded(other.operand))
             : LinearInput{.value = value};
}

torch::ScalarType LinearProducts::OperandType(
    const torch::Tensor& value) const {
  return precision_ == LinearPrecision::kBfloat16 && IsFloatOnCpu(value)
             ? torch::kBFloat16
             : value.scalar_type();
}

ProductGradients GradientsOfProduct(const torch::Tensor& input,
                                    const torch::Tensor& weight,
                                    const torch::Tensor& gradient) {
  const torch::NoGradGuard no_grad;
  const auto product = [](const torch::Tensor& a, const torch::Tensor& b) {
    return IsFloatOnCpu(a) || IsOnCpu(a, torch::kBFloat16)
               ? MatrixProduct(a, b)
               : torch::matmul(a, b);
  };
  return {.input = product(gradient, weight),
          .weight = product(gradient.t(), input)};
}

LinearInput LinearProducts::Input(const torch::Tensor& value) const {
  return Factor(value, precision_ == LinearPrecision::kBfloat16);
}

LinearInput LinearProducts::Weight(const torch::Tensor& weight) const {
  return precision_ == LinearPrecision::kBfloat16 && IsFloatOnCpu(weight)
             ? LinearInput{.value = weight, .operand = rounded_->Of(weight)}
             : Input(weight);
}

torch::Tensor LinearProducts::Apply(const LinearInput& input,
                                    const LinearInput& weight,
                                    const torch::Tensor& bias) {
  if (input.is_rounded || weight.is_rounded) {
    const torch::Tensor product =
        torch::matmul(input.value, weight.value.t()).to(torch::kFloat32);
    return bias.defined() ? product + bias : product;
  }
  if (!input.operand.defined() || !weight.operand.defined()) {
    return torch::linear(input.value, weight.value, bias);
  }
  TORCH_CHECK(input.value.size(-1) == weight.value.size(1),
              "input should be [..., ", weight.value.size(1), "], but is ",
              input.value.sizes());
  return LinearFunction::apply(
      input.value, weight.value,
      bias.defined() ? OptionalTensor(bias) : OptionalTensor(), input.operand,
      weight.operand)[0];
}

torch::Tensor ApplyLinear(const torch::Tensor& input,
                          const torch::Tensor& weight,
                          const torch::Tensor& bias) {
  const LinearProducts products;
  return LinearProducts::Apply(products.Input(input), products.Input(weight),
                               bias);
}

}  // namespace etc
