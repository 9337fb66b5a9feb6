#include "attention/backends/cpu/query_tiles.h"

#include <algorithm>
#include <limits>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/kernels/tile_sizes.h"
#include "attention/key_runs.h"

namespace etc {
namespace {

constexpr int64_t kQueriesMultiple = 48;

// All heads together have this many tiles or more, so that there is work for
// each core, but for tiles shorter than that: the longer a tile, the fewer
// times keys and values are packed.
constexpr int64_t kTiles = 64;
constexpr int64_t kShortTile = 288;

// Keys of both blocks that a forward tile packs at once.
constexpr int64_t kKeysOfAPass = 2 * kernels::kChunkKeys;

int64_t LongestTile(int64_t tokens, int64_t heads) {
  return std::clamp(tokens * heads / kTiles, kShortTile, kernels::kTileQueries);
}

// Length of the fewest equal tiles of at most `longest` tokens.
int64_t EvenLength(int64_t tokens, int64_t longest) {
  const int64_t tiles = std::max<int64_t>(1, (tokens + longest - 1) / longest);
  const int64_t even = (tokens + tiles - 1) / tiles;
  return std::max<int64_t>(1,
                           (even + kQueriesMultiple - 1) / kQueriesMultiple) *
         kQueriesMultiple;
}

// The smallest range of keys of a block that holds all which a query sees.
struct Hull {
  int64_t begin = std::numeric_limits<int64_t>::max();
  int64_t end = 0;

  void Add(const Hull& other) {
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
  }
  int64_t size() const { return std::max<int64_t>(end - begin, 0); }
};

Hull HullOf(const RunSetTable& sets, int64_t i) {
  const auto query = static_cast<size_t>(i);
  if (sets.first[query] == sets.last[query]) {
    return {};
  }
  return {.begin = sets.runs[static_cast<size_t>(sets.first[query])].begin,
          .end = sets.runs[static_cast<size_t>(sets.last[query] - 1)].end};
}

// Consecutive queries, and the keys they see.
struct Segment {
  int64_t begin = 0;
  int64_t end = 0;
  Hull own, other;

  int64_t queries() const { return end - begin; }
  int64_t keys() const { return own.size() + other.size(); }
  void Add(const Segment& next) {
    end = next.end;
    own.Add(next.own);
    other.Add(next.other);
  }
};

// Divides the queries of an example wherever no key of either block is seen, or
// lies between keys that are seen, on both sides. Queries that see nothing,
// padding, divide nothing.
std::vector<Segment> Divide(const SoftmaxRuns& runs, int64_t queries) {
  // behind[i]: the keys that queries from i on see.
  std::vector<Segment> behind(static_cast<size_t>(queries) + 1);
  for (int64_t i = queries - 1; i >= 0; --i) {
    Segment& here = behind[static_cast<size_t>(i)];
    here = {.own = HullOf(runs.own.visible, i),
            .other = HullOf(runs.other.visible, i)};
    const Segment& next = behind[static_cast<size_t>(i) + 1];
    here.own.Add(next.own);
    here.other.Add(next.other);
  }
  std::vector<Segment> segments;
  Hull own, other;  // of the queries before
  for (int64_t i = 0; i < queries; ++i) {
    const Segment& rest = behind[static_cast<size_t>(i)];
    const Segment query = {.begin = i,
                           .end = i + 1,
                           .own = HullOf(runs.own.visible, i),
                           .other = HullOf(runs.other.visible, i)};
    const bool is_border = query.keys() > 0 && own.end <= rest.own.begin &&
                           other.end <= rest.other.begin;
    if (segments.empty() || (is_border && segments.back().keys() > 0)) {
      segments.push_back({.begin = i, .end = i});
    }
    segments.back().Add(query);
    own.Add(query.own);
    other.Add(query.other);
  }
  return segments;
}

// Appends the tiles of a segment, before which keys before `first_key` lie.
void AppendTiles(const Segment& segment, int64_t length, int64_t first_key,
                 std::vector<QueryTile>* tiles) {
  for (int64_t begin = segment.begin; begin < segment.end; begin += length) {
    tiles->push_back({.begin = begin,
                      .end = std::min(begin + length, segment.end),
                      .first_key = begin == segment.begin ? first_key : -1});
  }
}

}  // namespace

int64_t TileLength(int64_t tokens, int64_t heads) {
  return EvenLength(tokens, LongestTile(tokens, heads));
}

std::vector<QueryTile> QueryTiles(const AttentionProblem& problem,
                                  int64_t batch) {
  const AttentionSizes sizes(problem);
  const int64_t longest = LongestTile(sizes.queries, sizes.batch * sizes.heads);
  std::vector<Segment> segments;
  if (problem.pattern.window.is_restricted()) {
    // Keys of a window are packed as they come: borders cost nothing.
    segments.push_back({.begin = 0, .end = sizes.queries});
  } else {
    segments = Divide((*problem.pattern.runs)[static_cast<size_t>(batch)],
                      sizes.queries);
  }
  std::vector<QueryTile> tiles;
  int64_t first_key = 0;
  for (size_t n = 0; n < segments.size();) {
    Segment segment = segments[n++];
    for (; n < segments.size(); ++n) {
      Segment longer = segment;
      longer.Add(segments[n]);
      if (longer.queries() > longest || longer.keys() > kKeysOfAPass) {
        break;
      }
      segment = longer;
    }
    AppendTiles(segment, EvenLength(segment.queries(), longest), first_key,
                &tiles);
    first_key = std::max(first_key, segment.other.end);
  }
  return tiles;
}

}  // namespace etc
