#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_PAIRS_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_PAIRS_H_

#include <cstddef>
#include <cstdint>

#include "attention/backends/cuda/kernels/arguments.h"
#include "attention/backends/cuda/kernels/device.h"
#include "attention/backends/cuda/kernels/products.h"
#include "attention/key_runs.h"
#include "base/random.h"

namespace etc::kernels::cuda {

// Pairs of a query and a key: who sees whom, relative ids, dropped weights, and
// where their scores are.

struct RowSets {
  const int32_t* hulls = nullptr;
  const int32_t* first = nullptr;
  const int32_t* last = nullptr;
  const int32_t* runs = nullptr;
  bool is_single = true;
};

// The keys of one block in one example.
struct KeyBlock {
  RowSets visible;
  RowSets special;
  bool has_special;
  RelativeRule rule;
  int queries;
  int keys;
  int before;  // below 0: no window
  int after;
};

ETC_DEVICE RowSets RowSetsOf(const Softmax& softmax,
                             const SetOffsets& offsets) {
  return {softmax.runs + offsets.hulls, softmax.runs + offsets.first,
          softmax.runs + offsets.last, softmax.runs + offsets.runs,
          offsets.is_single != 0};
}

ETC_DEVICE KeyBlock KeyBlockOf(const Softmax& softmax, int batch, int block) {
  const BlockOffsets& offsets =
      reinterpret_cast<const BlockOffsets*>(softmax.runs)[2 * batch + block];
  return {RowSetsOf(softmax, offsets.visible),
          RowSetsOf(softmax, offsets.special),
          offsets.has_special != 0,
          static_cast<RelativeRule>(offsets.rule),
          softmax.queries,
          softmax.keys[block],
          block == 0 ? softmax.before : -1,
          block == 0 ? softmax.after : -1};
}

// Keys [begin, end).
struct KeyRange {
  int begin;
  int end;
};

// More than there are.
inline constexpr int kEveryKey = 1 << 30;

// Bits of the keys [begin, end) among the 32 from `key` on.
ETC_DEVICE uint32_t BitsOfRange(const KeyRange& range, int key) {
  const int begin = Largest(range.begin - key, 0);
  const int end = Least(range.end - key, 32);
  if (begin >= end) {
    return 0;
  }
  return (end == 32 ? ~0u : (1u << end) - 1u) & ~((1u << begin) - 1u);
}

ETC_DEVICE KeyRange HullOf(const RowSets& sets, int query) {
  return {sets.hulls[2 * query], sets.hulls[2 * query + 1]};
}

// Bits of the keys that a query has in its set, of the 32 from `key` on, where
// a query has several runs.
ETC_DEVICE_CALL uint32_t BitsOfRuns(const RowSets& sets, int query, int key) {
  int low = sets.first[query];
  const int last = sets.last[query];
  int high = last;
  while (low < high) {  // the first run that ends behind `key`
    const int middle = (low + high) / 2;
    if (sets.runs[2 * middle + 1] <= key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  uint32_t bits = 0;
  for (; low < last && sets.runs[2 * low] < key + 32; ++low) {
    bits |= BitsOfRange({sets.runs[2 * low], sets.runs[2 * low + 1]}, key);
  }
  return bits;
}

ETC_DEVICE uint32_t BitsOfSet(const RowSets& sets, int query, int key) {
  const uint32_t of_hull = BitsOfRange(HullOf(sets, query), key);
  return sets.is_single || of_hull == 0 ? of_hull
                                        : BitsOfRuns(sets, query, key);
}

// Keys of which a query sees some.
ETC_DEVICE KeyRange WindowOf(const KeyBlock& block, int query) {
  return block.before < 0
             ? KeyRange{0, block.keys}
             : KeyRange{query - block.before, query + block.after + 1};
}
ETC_DEVICE KeyRange RangeOf(const KeyBlock& block, int query) {
  if (query >= block.queries) {
    return {block.keys, 0};
  }
  const KeyRange hull = HullOf(block.visible, query);
  const KeyRange window = WindowOf(block, query);
  return hull.begin >= hull.end ? KeyRange{block.keys, 0}
                                : KeyRange{Largest(hull.begin, window.begin),
                                           Least(hull.end, window.end)};
}

ETC_DEVICE KeyRange SpecialRangeOf(const KeyBlock& block, int query) {
  if (!block.has_special) {
    return {-kEveryKey, kEveryKey};
  }
  return query >= block.queries ? KeyRange{0, 0} : HullOf(block.special, query);
}

ETC_DEVICE uint32_t VisibleBits(const KeyBlock& block, int query, int key) {
  if (query >= block.queries) {
    return 0;
  }
  const uint32_t window = BitsOfRange(WindowOf(block, query), key);
  return window == 0 ? 0 : window & BitsOfSet(block.visible, query, key);
}
ETC_DEVICE uint32_t SpecialBits(const KeyBlock& block, int query, int key) {
  if (!block.has_special) {
    return ~0u;
  }
  return query >= block.queries ? 0 : BitsOfSet(block.special, query, key);
}

// Ids that many keys of a row have: of distances of m and more to the right
// and to the left, of other streams and of other segments.
inline constexpr int kFarIds = 5;
ETC_DEVICE int IdOfFar(int far, int m) {
  return far == 0 ? m : 2 * m + far - 1;
}

// The relative id of a pair with a rule, delta = key - query (RelativeRule,
// attention/pattern.h). `far`: which of the ids above it is, or -1: no other
// key of the row has it.
ETC_DEVICE int IdOf(RelativeRule rule, bool is_special, int delta, int m,
                    int* far) {
  if (rule == RelativeRule::kLink) {
    *far = is_special ? 3 : 2;
  } else if (!is_special) {
    *far = 4;
  } else if (delta >= m) {
    *far = 0;
  } else if (delta <= -m) {
    *far = 1;
  } else {
    *far = -1;
    return delta >= 0 ? delta : m - delta;
  }
  return IdOfFar(*far, m);
}

// Queries and keys of a warp in one step.
struct WarpPairs {
  int first_query;
  int last_query;
  int first_key;
  int last_key;
};

// The one of the ids of many keys that all pairs of a warp have; -1: not all
// the same. Bits of the thread's pairs that are special for any, or all, of its
// rows; `all`: of pairs that there are.
ETC_DEVICE int FarOfAll(RelativeRule rule, const WarpPairs& pairs, int m,
                        uint32_t any_special, uint32_t all_special,
                        uint32_t all) {
  const bool has_special = WarpAny(any_special != 0);
  if (!has_special) {
    return rule == RelativeRule::kLink ? 2 : 4;
  }
  if (rule == RelativeRule::kLink || WarpAny(all_special != all)) {
    return -1;
  }
  if (pairs.first_key - pairs.last_query >= m) {
    return 0;
  }
  return pairs.first_query - pairs.last_key >= m ? 1 : -1;
}

// The steps of keys of both blocks that a block of threads goes through.
struct KeySteps {
  ETC_DEVICE int Key(int block, int step) const {
    return (block == 0 ? own_key : other_key) + kStep * step;
  }
  ETC_DEVICE int Begin(int block) const {
    return block == 0 ? Least(begin, own_steps) : Largest(begin - own_steps, 0);
  }
  ETC_DEVICE int End(int block) const {
    return block == 0 ? Least(end, own_steps) : Largest(end - own_steps, 0);
  }

  int own_key;  // of step 0
  int other_key;
  int own_steps;
  int begin;  // of both blocks' steps
  int end;
};

// The steps of a split that has keys which queries [first, first + kTile) see.
// `memory` of 4 warps, 4 integers each, shared. All threads together.
ETC_DEVICE KeySteps StepsOf(const Softmax& softmax, int batch, int first,
                            int split, int splits, int* memory) {
  for (int block = 0; block < 2; ++block) {
    const KeyBlock keys = KeyBlockOf(softmax, batch, block);
    KeyRange range = RangeOf(keys, first + Thread() % kTile);
    for (int mask = 16; mask > 0; mask /= 2) {
      range.begin = Least(range.begin, ShuffleXor(range.begin, mask));
      range.end = Largest(range.end, ShuffleXor(range.end, mask));
    }
    if (Thread() % 32 == 0) {
      memory[Thread() / 32 * 4 + 2 * block] = range.begin;
      memory[Thread() / 32 * 4 + 2 * block + 1] = range.end;
    }
  }
  SyncThreads();
  int begin[2];
  int steps[2];
  for (int block = 0; block < 2; ++block) {
    // All 64 queries are in the first two warps.
    const int from = Least(memory[2 * block], memory[4 + 2 * block]);
    const int to = Largest(memory[2 * block + 1], memory[4 + 2 * block + 1]);
    // Where four scores are 16 aligned bytes, if the window is even.
    const int offset = block == 0 && softmax.before >= 0 ? softmax.before : 0;
    begin[block] = from - (from + offset) % 4;  // may be below 0
    steps[block] = to <= from ? 0 : (to - begin[block] + kStep - 1) / kStep;
  }
  const int all = steps[0] + steps[1];
  return {begin[0], begin[1], steps[0], all * split / splits,
          all * (split + 1) / splits};
}

// Where the scores of a head and block are: that of query i and key j is
// `query_stride` i + j numbers from the beginning.
struct ScorePlaces {
  ETC_DEVICE ScorePlaces(const Softmax& softmax, int64_t head_of_batch,
                         int block)
      : begin(head_of_batch * softmax.queries *
                  static_cast<int64_t>(softmax.columns[block]) +
              (block == 0 && softmax.before >= 0 ? softmax.before : 0)),
        query_stride(softmax.columns[block] -
                     (block == 0 && softmax.before >= 0 ? 1 : 0)) {}

  // Null where there are no scores.
  ETC_DEVICE float* Of(float* rows, int query, int key) const {
    return rows == nullptr
               ? nullptr
               : rows + begin + static_cast<int64_t>(query) * query_stride +
                     key;
  }

  // Returns true if scores of `count` adjacent keys are aligned wherever those
  // of `place` are.
  ETC_DEVICE bool IsAligned(const float* place, int count) const {
    return query_stride % count == 0 &&
           reinterpret_cast<uintptr_t>(place) % (sizeof(float) * count) == 0;
  }

  int64_t begin;
  int query_stride;
};

// The factor of a weight.
ETC_DEVICE float WeightFactor(const Softmax& softmax, const DropoutRow& row,
                              int key) {
  return DropoutNumber(row, static_cast<uint32_t>(key)) <
                 softmax.dropout_threshold
             ? 0.0f
             : softmax.keep_factor;
}

}  // namespace etc::kernels::cuda

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_PAIRS_H_
