#include "base/matrix_product.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <string>

#include "base/amx.h"
#include "base/amx_product.h"
#include "base/bfloat16.h"
#include "base/check_shape.h"
#include "base/large_pages.h"
#include "base/onednn_loader.h"
#include "base/parallel_tasks.h"

namespace etc {
namespace {

bool IsOnCpu(const torch::Tensor& tensor, torch::ScalarType type) {
  return tensor.device().is_cpu() && tensor.scalar_type() == type;
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

// a b + bias, into `result` or, where that is undefined, to `finish`; none of
// them empty.
struct Product {
  torch::Tensor a, b, bias, result;
  const FinishTile* finish = nullptr;

  int64_t rows() const { return a.size(0); }
  int64_t columns() const { return b.size(1); }
};

// Rows and columns of a result that are computed together.
struct TileSize {
  int64_t rows, columns;

  int64_t Across(int64_t size) const { return Parts(size, columns); }
  int64_t Tiles(const Product& product) const {
    return Parts(product.rows(), rows) * Across(product.columns());
  }
  static int64_t Parts(int64_t size, int64_t part) {
    return (size + part - 1) / part;
  }
};

// The larger a tile, the less is packed twice; the more there are, the more
// threads find work. From the sizes alone, so that bits follow from nothing
// else. (Measured on one core with AVX-512 and depths of 768 to 4352: the
// smallest cost up to 20 % more than the largest.)
TileSize TileSizeFor(const Product& product) {
  constexpr int64_t kEnough = 24;
  constexpr TileSize kSizes[] = {
      {256, 768}, {128, 768}, {128, 384}, {128, 192}, {64, 192}};
  for (const TileSize& size : kSizes) {
    if (size.Tiles(product) >= kEnough) {
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
// goes, and terms [term, term + depth) of its sums. `sums` is of a tile, for a
// product without a result.
OnednnProduct PartOfTile(const Product& product, const TileSize& size,
                         const TilePart& at, int64_t depth, float* sums) {
  return {.rows = std::min(size.rows, product.rows() - at.row),
          .depth = std::min(depth, product.a.size(1) - at.term),
          .columns = std::min(size.columns, product.columns() - at.column),
          .is_bfloat16 = IsRounded(product.a),
          .a = PartOf(product.a, at.row, at.term),
          .b = PartOf(product.b, at.term, at.column),
          .bias = product.bias.defined() && at.term == 0
                      ? product.bias.data_ptr<float>() + at.column
                      : nullptr,
          .result = product.finish == nullptr
                        ? PartOf(product.result, at.row, at.column)
                        : OnednnMatrix{.data = sums,
                                       .row_stride = size.columns,
                                       .column_stride = 1},
          .adds = at.term > 0};
}

// Finishes `whole`, of the columns from `column` on, in tiles of kTileRows.
void FinishRows(const FinishTile& finish, const ProductTile& whole) {
  for (int64_t r = 0; r < whole.rows; r += kTileRows) {
    ProductTile tile = whole;
    tile.row += r;
    tile.rows = std::min(kTileRows, whole.rows - r);
    tile.sums += r * whole.stride;
    finish(tile);
  }
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
       .result = product.finish == nullptr ? product.result.data_ptr<float>()
                                           : nullptr,
       .finish = product.finish},
      at::get_num_threads());
  const torch::Tensor buffer = EmptyBfloat16({plan.packed_size()});
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
  const TileSize size = TileSizeFor(product);
  const int64_t across = size.Across(product.columns());
  const int64_t depth = DepthOfPart(product.a);
  const int64_t workspace =
      product.finish == nullptr ? 0 : size.rows * size.columns;
  Mistake mistake;
  ForEachTask(size.Tiles(product), workspace, [&](int64_t tile, float* sums) {
    TilePart part = {.row = tile / across * size.rows,
                     .column = tile % across * size.columns};
    OnednnProduct last = {};
    for (; part.term < product.a.size(1); part.term += depth) {
      last = PartOfTile(product, size, part, depth, sums);
      if (!onednn.multiply(last, &mistake, Mistake::Report)) {
        return;
      }
    }
    if (product.finish != nullptr) {
      FinishRows(*product.finish, {.row = part.row,
                                   .column = part.column,
                                   .rows = last.rows,
                                   .columns = last.columns,
                                   .sums = sums,
                                   .stride = size.columns});
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

void CheckCpu() {
  const OnednnModule& onednn = Onednn();
  TORCH_CHECK(
      kernels::Bfloat16ProductsOfThisCpu() != kernels::Bfloat16Products::kNone,
      "products in bfloat16 need AVX-512, but oneDNN uses ",
      onednn.instructions(), " on this CPU");
}

void CheckFactors(const torch::Tensor& a, const torch::Tensor& b) {
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
}

}  // namespace

bool IsFloatOnCpu(const torch::Tensor& tensor) {
  return IsOnCpu(tensor, torch::kFloat32);
}

bool IsRounded(const torch::Tensor& operand) {
  return operand.scalar_type() == torch::kBFloat16;
}

torch::Tensor EmptyBfloat16(at::IntArrayRef sizes) {
  return WithLargePages(torch::empty(sizes, torch::kBFloat16));
}

torch::Tensor ToBfloat16(const torch::Tensor& values) {
  TORCH_CHECK(
      IsFloatOnCpu(values),
      "what is rounded to bfloat16 should be float32 on the CPU, but is ",
      values.scalar_type(), " on ", values.device());
  const torch::Tensor from = values.detach().contiguous();
  const torch::Tensor to = EmptyBfloat16(from.sizes());
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
  CheckFactors(a, b);
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

void ForEachProductTile(const torch::Tensor& a, const torch::Tensor& b,
                        const FinishTile& finish, ProductCode code) {
  CheckFactors(a, b);
  if (a.size(0) == 0 || b.size(1) == 0) {
    return;
  }
  // Without terms sums are 0, as they are of one term that is.
  const bool has_terms = a.size(1) > 0;
  Multiply({.a = has_terms ? AsMatrix(a) : a.new_zeros({a.size(0), 1}),
            .b = has_terms ? AsMatrix(b) : b.new_zeros({1, b.size(1)}),
            .finish = &finish},
           code);
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

}  // namespace etc
