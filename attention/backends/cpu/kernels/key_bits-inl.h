// Sets of visible keys as bits. Compiled once for each SIMD target: see
// foreach_target.h of Highway.

#include <algorithm>
#include <cstdint>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/key_runs-inl.h"
#include "attention/backends/cpu/kernels/matrix-inl.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_KEY_BITS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_KEY_BITS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_KEY_BITS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_KEY_BITS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Sets of keys as bits, for rows of which a query does not see all: one pass
// over a row's vectors takes many short runs as fast as a long one. Key j is
// bit n % 32 of word n / 32, where n = j - first().
class KeyBits {
 public:
  // Forgets all sets. Later ones are of `keys`, at most kMostKeys.
  HWY_INLINE void Begin(KeyRange keys) {
    keys_ = keys;
    for (Set& set : sets_) {
      set.first = -1;
    }
  }

  HWY_INLINE int64_t first() const { return keys_.begin; }

  // Returns the set of query i, kept in the given place, below
  // kMostGroupRows, until another one is.
  HWY_INLINE const uint32_t* SetOf(const RunSets& sets, int64_t i,
                                   int64_t place) {
    Set& set = sets_[place];
    if (set.first != sets.first[i] || set.last != sets.last[i]) {
      set.first = sets.first[i];
      set.last = sets.last[i];
      Fill(sets, i, set.words);
    }
    return set.words;
  }

 private:
  struct Set {
    int32_t first;  // of its runs, as in RunSets
    int32_t last;
    // With one more behind the last: see SomeElements.
    uint32_t words[kMostKeys / 32 + 1];
  };

  HWY_INLINE void Fill(const RunSets& sets, int64_t i, uint32_t* words) const {
    std::fill_n(words, (keys_.size() + 31) / 32 + 1, 0);
    ForEachRun(sets, i, keys_, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin - keys_.begin; n < end - keys_.begin;) {
        const int64_t bit = n % 32;
        const int64_t count = std::min(32 - bit, end - keys_.begin - n);
        words[n / 32] |=
            static_cast<uint32_t>(((uint64_t{1} << count) - 1) << bit);
        n += count;
      }
    });
  }

  KeyRange keys_ = {0, 0};
  Set sets_[kMostGroupRows];
};

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
