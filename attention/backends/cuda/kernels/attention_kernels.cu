// The kernels' instances and launches. Compiled by nvcc for devices; tests
// compile it for the CPU (device_emulation.h).

#include <algorithm>

#include "attention/backends/cuda/kernels/arguments.h"
#include "attention/backends/cuda/kernels/device.h"
#include "attention/backends/cuda/kernels/forward.h"
#include "attention/backends/cuda/kernels/key_gradients.h"
#include "attention/backends/cuda/kernels/query_gradients.h"
#include "attention/backends/cuda/kernels/shared_memory.h"

namespace etc::kernels::cuda {
namespace {

template <int kColumns>
struct ColumnCount {
  static constexpr int kValue = kColumns;
};

// Calls function(E(), ColumnCount<n>()) with the instance for a problem.
template <typename Function>
void WithInstance(const Softmax& softmax, Element element,
                  const Function& function) {
  const int columns = std::max(softmax.head_dim, softmax.value_dim);
  const auto with_columns = [&](auto e) {
    if (columns <= 32) {
      function(e, ColumnCount<32>());
    } else if (columns <= 64) {
      function(e, ColumnCount<64>());
    } else {
      function(e, ColumnCount<128>());
    }
  };
  if (element == Element::kFloat32) {
    with_columns(float());
  } else {
    with_columns(Bfloat16());
  }
}

template <typename E, int kColumns>
size_t QueryPassBytes(const Softmax& softmax, bool is_backward) {
  return QueryPassMemory<kColumns, kParts<E>>(nullptr, softmax.ids, is_backward)
      .bytes;
}
template <typename E, int kColumns>
size_t KeyPassBytes(const Softmax& softmax) {
  return KeyPassMemory<kColumns, kParts<E>>(nullptr, softmax.ids).bytes;
}

size_t SharedMemoryOf(const Softmax& softmax, Element element) {
  size_t bytes = 0;
  WithInstance(softmax, element, [&](auto e, auto columns) {
    using E = decltype(e);
    constexpr int kColumns = decltype(columns)::kValue;
    const size_t of_queries = QueryPassBytes<E, kColumns>(softmax, true);
    const size_t of_keys = KeyPassBytes<E, kColumns>(softmax);
    bytes = of_queries > of_keys ? of_queries : of_keys;
  });
  return bytes;
}

void Forward(const ForwardArguments& arguments, Element element, void* stream) {
  const Softmax& softmax = arguments.softmax;
  const int heads = softmax.batch * softmax.heads;
  WithInstance(softmax, element, [&](auto e, auto columns) {
    using E = decltype(e);
    constexpr int kColumns = decltype(columns)::kValue;
    Launch(&ForwardKernel<E, kColumns>, arguments,
           TilesOf(softmax.queries) * arguments.splits.count, heads, kThreads,
           QueryPassBytes<E, kColumns>(softmax, false), stream);
    if (arguments.splits.count > 1) {
      Launch(&JoinSplitsKernel<E>, arguments,
             (softmax.queries + kWarpRows - 1) / kWarpRows, heads, kThreads, 0,
             stream);
    }
  });
}

void ContextDots(const BackwardArguments& arguments, Element element,
                 void* stream) {
  const Softmax& softmax = arguments.softmax;
  const auto launch = [&](auto e) {
    Launch(&ContextDotsKernel<decltype(e)>, arguments,
           (softmax.queries + kWarpRows - 1) / kWarpRows,
           softmax.batch * softmax.heads, kThreads, 0, stream);
  };
  if (element == Element::kFloat32) {
    launch(float());
  } else {
    launch(Bfloat16());
  }
}

void QueryGradients(const BackwardArguments& arguments, Element element,
                    void* stream) {
  const Softmax& softmax = arguments.softmax;
  WithInstance(softmax, element, [&](auto e, auto columns) {
    using E = decltype(e);
    constexpr int kColumns = decltype(columns)::kValue;
    Launch(&QueryGradientsKernel<E, kColumns>, arguments,
           TilesOf(softmax.queries) * arguments.query_splits.count,
           softmax.batch * softmax.heads, kThreads,
           QueryPassBytes<E, kColumns>(softmax, true), stream);
  });
}

void KeyGradients(const BackwardArguments& arguments, int block,
                  Element element, void* stream) {
  const Softmax& softmax = arguments.softmax;
  const KeyGradientArguments all = {arguments, block};
  WithInstance(softmax, element, [&](auto e, auto columns) {
    using E = decltype(e);
    constexpr int kColumns = decltype(columns)::kValue;
    Launch(&KeyGradientsKernel<E, kColumns>, all,
           TilesOf(softmax.keys[block]) * arguments.key_splits.count,
           softmax.batch * softmax.heads, kThreads,
           KeyPassBytes<E, kColumns>(softmax), stream);
  });
}

}  // namespace

Kernels CompiledKernels() {
  return {.unsupported_device = &UnsupportedDevice,
          .current_stream = nullptr,
          .most_shared_memory = &MostSharedMemory,
          .shared_memory = &SharedMemoryOf,
          .forward = &Forward,
          .context_dots = &ContextDots,
          .query_gradients = &QueryGradients,
          .key_gradients = &KeyGradients};
}

}  // namespace etc::kernels::cuda
