#ifndef ETC_BASE_AMX_PRODUCT_H_
#define ETC_BASE_AMX_PRODUCT_H_

#include <cstdint>

#include "base/product_tile.h"

namespace etc::kernels {

// A matrix of bfloat16 whose rows or columns are contiguous. Strides are in
// elements.
struct Bfloat16Matrix {
  const uint16_t* data;
  int64_t row_stride;
  int64_t column_stride;
};

// result = a b + bias, summed in float32, by the tiles of AMX (base/amx.h): for
// factors large enough to be read from memory again and again. With the same
// sizes a sum is taken in the same order however tasks divide the result. If
// the depth is several parts, the last rows and columns, where they are no
// whole block, are summed in another order than the others: a row may then
// differ by rounding with the number of rows behind it.
struct AmxProduct {
  int64_t rows, depth, columns;  // none of them 0
  Bfloat16Matrix a;              // [rows, depth]
  Bfloat16Matrix b;              // [depth, columns]
  const float* bias;             // [columns], or null
  float* result;                 // [rows, columns], contiguous; or null
  // Takes the tiles of the result, where that is null.
  const FinishTile* finish = nullptr;
};

// How a product is computed, in two rounds of tasks: first factors are packed
// that all tasks of the second one read.
class AmxPlan {
 public:
  // The more threads there will be, the smaller the tasks.
  AmxPlan(const AmxProduct& product, int64_t threads);

  // Elements of the buffer of packed factors, 64-byte aligned.
  int64_t packed_size() const;
  int64_t packing_tasks() const;
  void Pack(int64_t task, uint16_t* packed) const;

  int64_t tasks() const;
  int64_t workspace_size() const;  // of a task, in floats
  // The result's part of a task. `packed` is what Pack filled.
  void Multiply(int64_t task, const uint16_t* packed, float* workspace) const;

 private:
  struct Part;
  struct Workspace;

  // Returns true if rows of the first factor are read where they are.
  bool IsInPlace() const;
  int64_t PackedDepth() const;
  void MultiplyPart(const Part& part, const uint16_t* packed,
                    const Workspace& work) const;
  void PackPanels(const Part& part, uint32_t* panels) const;
  void MultiplyRows(const Part& part, int64_t row, const uint16_t* a,
                    int64_t a_stride, const Workspace& work) const;
  void WriteSome(const Part& part, int64_t row, int64_t column,
                 const float* sums) const;
  void WriteTransposed(const Part& part, int64_t row, const float* sums) const;

  // The product as it is computed: the transposed one, where that leaves less
  // to transpose.
  AmxProduct product_;
  bool is_transposed_ = false;
  int64_t rows_of_task_ = 0;
  int64_t columns_of_task_ = 0;
  int64_t depth_of_part_ = 0;
};

}  // namespace etc::kernels

#endif  // ETC_BASE_AMX_PRODUCT_H_
