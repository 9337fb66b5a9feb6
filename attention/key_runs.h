#ifndef ETC_ATTENTION_KEY_RUNS_H_
#define ETC_ATTENTION_KEY_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace etc {

// Keys [begin, end).
struct KeyRun {
  int32_t begin;
  int32_t end;
};

// Keys on both sides of a query: query i sees of a block the keys [i - before,
// i + after], of those there are.
struct KeyWindow {
  // Columns of a matrix with a column for each key of a query's window: column
  // w of row i is key i + w - before.
  constexpr int64_t columns() const { return before + 1 + after; }
  // False: no window, all keys of the block.
  constexpr bool is_restricted() const { return before >= 0; }

  int64_t before = 0;
  int64_t after = 0;
};
inline constexpr KeyWindow kNoWindow = {.before = -1, .after = -1};

// A set of keys for each query: the runs [first[i], last[i]) of query i, which
// are ascending and do not touch. Queries may share runs. This is the view that
// kernels read; RunSetTable owns the memory.
struct RunSets {
  const KeyRun* runs = nullptr;
  const int32_t* first = nullptr;  // [queries]
  const int32_t* last = nullptr;   // [queries]
};

// RunSets with their memory.
struct RunSetTable {
  RunSets View() const {
    return first.empty() ? RunSets()
                         : RunSets{runs.data(), first.data(), last.data()};
  }

  std::vector<KeyRun> runs = {};
  std::vector<int32_t> first = {};  // [queries]
  std::vector<int32_t> last = {};   // [queries]
};

// `queries` empty sets.
inline RunSetTable EmptySets(int64_t queries) {
  const auto count = static_cast<size_t>(queries);
  return {.runs = {},
          .first = std::vector<int32_t>(count, 0),
          .last = std::vector<int32_t>(count, 0)};
}

// Row of the relative table for a query and a key, with m the maximum distance
// (attention/pattern.h):
//   kNone      none
//   kDistance  RelativeId(key - query, m) for keys in `special` (all keys, if
//              it has no sets), and OtherSegmentId(m) for others
//   kLink      LinkedId(m) for keys in `special`, NotLinkedId(m) for others
enum class RelativeRule { kNone, kDistance, kLink };

// One block of keys in one example.
struct BlockRuns {
  RunSetTable visible = {};
  RelativeRule rule = RelativeRule::kNone;
  RunSetTable special = {};
};

// The keys that the queries of one softmax see in one example, in two blocks
// (AttentionOperands). A window over own keys is not applied yet.
struct SoftmaxRuns {
  BlockRuns own = {}, other = {};
  // m; 0 for no relative ids.
  int64_t max_distance = 0;
};

}  // namespace etc

#endif  // ETC_ATTENTION_KEY_RUNS_H_
