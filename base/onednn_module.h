#ifndef ETC_BASE_ONEDNN_MODULE_H_
#define ETC_BASE_ONEDNN_MODULE_H_

#include <cstdint>

#include "base/bfloat16.h"

// The interface between the module realetc_onednn.so and its users.
//
// LibTorch may have a oneDNN of its own inside, of another version than the one
// that we link, and shows parts of it under the same symbol names: of two in
// one scope, one would call into the other. So oneDNN is linked by that module
// alone (base/module_loader.h), and which one multiplies does not follow from
// the order of linking. Only plain types cross the border, and no exception
// passes.

namespace etc {

// Rows or columns are contiguous; strides are in elements.
struct OnednnMatrix {
  void* data;
  int64_t row_stride;
  int64_t column_stride;
};

// result = a b + bias, or with `adds` result += a b + bias; none of the sizes
// 0, summed in float32.
struct OnednnProduct {
  int64_t rows, depth, columns;
  bool is_bfloat16;     // a and b; else float32
  OnednnMatrix a;       // [rows, depth]
  OnednnMatrix b;       // [depth, columns]
  const float* bias;    // [columns], or null
  OnednnMatrix result;  // [rows, columns] float32
  bool adds;
};

// Grows with every change of this file.
constexpr int32_t kOnednnModuleVersion = 2;
constexpr char kOnednnModuleFunction[] = "RealEtcOnednnModule";

// Functions may be called from several threads.
struct OnednnModule {
  int32_t version;  // kOnednnModuleVersion of the module
  // The library's version, as in "2.6.3", and the file that it was loaded from.
  const char* (*library_version)();
  const char* (*library_file)();
  // The instructions that it uses, as it calls them: those of the CPU, or fewer
  // if the environment variable DNNL_MAX_CPU_ISA says so.
  const char* (*instructions)();
  // Support for bfloat16 products with those instructions.
  kernels::Bfloat16Products (*bfloat16_products)();
  // Multiplies on as many threads as OpenMP gives to the calling one. If there
  // is no such product, calls `report(context, message)` and returns false.
  bool (*multiply)(const OnednnProduct& product, void* context,
                   void (*report)(void* context, const char* message));
};

}  // namespace etc

#endif  // ETC_BASE_ONEDNN_MODULE_H_
