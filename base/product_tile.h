#ifndef ETC_BASE_PRODUCT_TILE_H_
#define ETC_BASE_PRODUCT_TILE_H_

#include <cstdint>
#include <functional>

namespace etc {

// The rows of a tile begin at a multiple of this, and are no more.
inline constexpr int64_t kTileRows = 32;

// Rows [row, row + rows) and columns [column, column + columns) of a matrix
// product, while they are in a cache.
struct ProductTile {
  int64_t row, column;
  int64_t rows, columns;
  const float* sums;  // [rows][columns]
  int64_t stride;     // of rows of sums, in floats
};

// May be called from several threads at once; must not throw.
using FinishTile = std::function<void(const ProductTile&)>;

}  // namespace etc

#endif  // ETC_BASE_PRODUCT_TILE_H_
