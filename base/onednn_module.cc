// The module realetc_onednn.so: the only place that links oneDNN. No LibTorch
// here, whose headers bring those of another oneDNN.
#include "base/onednn_module.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>
#include <exception>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

namespace etc {
namespace {

using kernels::Bfloat16Products;
using Memory = dnnl::memory;
using Type = Memory::data_type;

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

Memory::desc Describe(const OnednnMatrix& matrix, int64_t rows, int64_t columns,
                      Type type) {
  return {{rows, columns}, type, {matrix.row_stride, matrix.column_stride}};
}

dnnl::primitive_attr Attributes(bool adds) {
  dnnl::primitive_attr attributes;
  if (adds) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  return attributes;
}

// oneDNN caches its primitives by shape.
dnnl::matmul::primitive_desc Plan(const Memory::desc& a, const Memory::desc& b,
                                  const Memory::desc& result,
                                  const Memory::desc* bias, bool adds) {
  const dnnl::primitive_attr attributes = Attributes(adds);
#if DNNL_VERSION_MAJOR >= 3
  return bias != nullptr
             ? dnnl::matmul::primitive_desc(Engine(), a, b, *bias, result,
                                            attributes)
             : dnnl::matmul::primitive_desc(Engine(), a, b, result, attributes);
#else
  return dnnl::matmul::primitive_desc(
      bias != nullptr ? dnnl::matmul::desc(a, b, *bias, result)
                      : dnnl::matmul::desc(a, b, result),
      attributes, Engine());
#endif
}

// While it lives, signals to this thread wait, but for those that it causes
// itself. In float32 kernels of oneDNN the stack pointer points into the heap
// (its issue 4845, mended in March 2026), where the frame of a signal handler,
// of Ctrl-C's say, overwrites factors and what malloc keeps there.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int own : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP}) {
      sigdelset(&blocked, own);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Throws std::bad_alloc where a limit of addresses (`ulimit -v`) leaves no room
// for a kernel: oneDNN 2.6 does not check the memory into which it writes its
// code.
void CheckRoomForKernel() {
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return;
  }
  constexpr size_t kBytes = size_t{1} << 25;  // code, and packed factors
  void* const room = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    throw std::bad_alloc();
  }
  munmap(room, kBytes);
}

void MultiplyOrThrow(const OnednnProduct& product) {
  CheckRoomForKernel();
  const Type type = product.is_bfloat16 ? Type::bf16 : Type::f32;
  const Memory::desc a = Describe(product.a, product.rows, product.depth, type);
  const Memory::desc b =
      Describe(product.b, product.depth, product.columns, type);
  const Memory::desc result =
      Describe(product.result, product.rows, product.columns, Type::f32);
  const Memory::desc bias({1, product.columns}, Type::f32,
                          Memory::format_tag::ab);
  std::unordered_map<int, Memory> arguments = {
      {DNNL_ARG_SRC, {a, Engine(), product.a.data}},
      {DNNL_ARG_WEIGHTS, {b, Engine(), product.b.data}},
      {DNNL_ARG_DST, {result, Engine(), product.result.data}}};
  if (product.bias != nullptr) {
    arguments.emplace(DNNL_ARG_BIAS,
                      Memory(bias, Engine(), const_cast<float*>(product.bias)));
  }
  dnnl::stream stream(Engine());
  const dnnl::matmul matmul(Plan(
      a, b, result, product.bias != nullptr ? &bias : nullptr, product.adds));
  const SignalsBlocked signals_blocked;
  matmul.execute(stream, arguments);
  stream.wait();
}

// A message of IsOutOfMemory (base/out_of_memory.h).
constexpr char kOutOfMemory[] = "out of memory";

bool Multiply(const OnednnProduct& product, void* context,
              void (*report)(void* context, const char* message)) {
  try {
    MultiplyOrThrow(product);
    return true;
  } catch (const std::bad_alloc&) {
    report(context, kOutOfMemory);
  } catch (const dnnl::error& error) {
    report(context,
           error.status == dnnl_out_of_memory ? kOutOfMemory : error.what());
  } catch (const std::exception& exception) {
    report(context, exception.what());
  }
  return false;
}

// Returns true if bfloat16 products are supported at all; the only reliable
// test is to set up a small one.
bool HasBfloat16Products() {
  const Memory::desc factor({16, 16}, Type::bf16, Memory::format_tag::ab);
  const Memory::desc result({16, 16}, Type::f32, Memory::format_tag::ab);
  try {
    Plan(factor, factor, result, /*bias=*/nullptr, /*adds=*/false);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

Bfloat16Products FindBfloat16Products() {
  if (!HasBfloat16Products()) {
    return Bfloat16Products::kNone;
  }
  // A set of instructions has the bits of those that it includes.
  constexpr unsigned kBfloat16 = dnnl_cpu_isa_avx512_core_bf16;
  const unsigned instructions = dnnl_get_effective_cpu_isa();
  return (instructions & kBfloat16) == kBfloat16 ? Bfloat16Products::kFast
                                                 : Bfloat16Products::kSlow;
}

const char* LibraryVersion() {
  static const std::string version = [] {
    const dnnl_version_t& found = *dnnl_version();
    return std::to_string(found.major) + "." + std::to_string(found.minor) +
           "." + std::to_string(found.patch);
  }();
  return version.c_str();
}

const char* LibraryFile() {
  Dl_info found = {};
  const auto* const function = reinterpret_cast<const void*>(&dnnl_version);
  return dladdr(function, &found) == 0 ? "" : found.dli_fname;
}

constexpr OnednnModule kModule = {
    .version = kOnednnModuleVersion,
    .library_version = LibraryVersion,
    .library_file = LibraryFile,
    .instructions =
        [] { return dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa()); },
    .bfloat16_products =
        [] {
          static const Bfloat16Products products = FindBfloat16Products();
          return products;
        },
    .multiply = Multiply,
};

}  // namespace
}  // namespace etc

extern "C" [[gnu::visibility("default")]] const void* RealEtcOnednnModule() {
  return &etc::kModule;
}
