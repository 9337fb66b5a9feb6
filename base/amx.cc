#include "base/amx.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace etc::kernels {
namespace {

// The bits of AMX-TILE and AMX-BF16.
bool CpuHasTiles() {
  constexpr unsigned kTiles = 1u << 24;
  constexpr unsigned kBfloat16 = 1u << 22;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
         (edx & kTiles) != 0 && (edx & kBfloat16) != 0;
}

// Linux gives a process the state of tiles on request.
bool HasPermissionForTiles() {
  constexpr int64_t kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int64_t kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool HasAmx() {
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0 &&
                          CpuHasTiles() && HasPermissionForTiles();
  return has;
}

void BeginTiles() {
  struct alignas(64) {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } const layout;
  static_assert(sizeof(layout) == 64);
  __asm__ volatile("ldtilecfg %0" : : "m"(layout));
}

void EndTiles() { __asm__ volatile("tilerelease"); }

}  // namespace etc::kernels

#else

namespace etc::kernels {

bool HasAmx() { return false; }

}  // namespace etc::kernels

#endif
