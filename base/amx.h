#ifndef ETC_BASE_AMX_H_
#define ETC_BASE_AMX_H_

#include <cstdint>

// The tile instructions of AMX (Intel's Architecture Instruction Set Extensions
// Programming Reference), for x86-64 and Linux alone: eight tiles of 16 rows of
// 64 bytes. The compiler knows no state of tiles: instructions stay in their
// order, and before and after the accesses to memory that surround them.

namespace etc::kernels {

// Returns true if this CPU has AMX-BF16 and AVX512-BF16, and Linux lets the
// process use tiles; asks for that at its first call.
bool HasAmx();

#if defined(__x86_64__) && defined(__linux__)

// Around the products of a thread.
void BeginTiles();
void EndTiles();

// `bytes`: between rows.
template <int kTile>
inline void LoadTile(const void* from, int64_t bytes) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                   :
                   : "r"(from), "r"(bytes), "i"(kTile)
                   : "memory");
}
template <int kTile>
inline void StoreTile(void* to, int64_t bytes) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                   :
                   : "r"(to), "r"(bytes), "i"(kTile)
                   : "memory");
}
template <int kTile>
inline void ClearTile() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
// Tile kC, [16][16] float, += tile kA, [16][32] bfloat16, times tile kB, whose
// rows are pairs: of rows 2k and 2k + 1 of [32][16] bfloat16, the first in the
// lower half.
template <int kC, int kA, int kB>
inline void MultiplyTiles() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0"
                   :
                   : "i"(kC), "i"(kA), "i"(kB));
}

#endif

}  // namespace etc::kernels

#endif  // ETC_BASE_AMX_H_
