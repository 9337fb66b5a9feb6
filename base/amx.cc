#include "base/amx.h"

#if defined(__x86_64__) && defined(__linux__)

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace etc::kernels {
namespace {

// Linux gives a process the state of tiles on request.
bool HasPermissionForTiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool HasAmx() {
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0 &&
                          __builtin_cpu_supports("amx-tile") != 0 &&
                          __builtin_cpu_supports("amx-bf16") != 0 &&
                          HasPermissionForTiles();
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
