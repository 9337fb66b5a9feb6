#include "attention/pattern_runs.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace etc {
namespace {

// Appends a set of ascending keys as runs; keys may repeat.
class RunAppender {
 public:
  explicit RunAppender(RunSetTable* table)
      : table_(table), first_(static_cast<int32_t>(table->runs.size())) {}

  void Add(int64_t key) {
    const int32_t k = static_cast<int32_t>(key);
    std::vector<KeyRun>& runs = table_->runs;
    if (static_cast<int32_t>(runs.size()) > first_ && runs.back().end >= k) {
      runs.back().end = std::max(runs.back().end, k + 1);
    } else {
      runs.push_back({k, k + 1});
    }
  }

  // Makes the runs added so far the set of `query`.
  void AssignTo(int64_t query) const {
    table_->first[query] = first_;
    table_->last[query] = static_cast<int32_t>(table_->runs.size());
  }

 private:
  RunSetTable* table_;
  int32_t first_;
};

// Each query's set is the keys with its code.
RunSetTable SetsByCode(const std::vector<int32_t>& query_codes,
                       const std::vector<int32_t>& key_codes, int64_t queries) {
  std::unordered_map<int32_t, std::vector<int64_t>> keys_of_code;
  for (size_t k = 0; k < key_codes.size(); ++k) {
    keys_of_code[key_codes[k]].push_back(static_cast<int64_t>(k));
  }
  RunSetTable table = EmptySets(queries);
  std::unordered_map<int32_t, int64_t> query_of_code;  // that has the set
  for (size_t i = 0; i < query_codes.size(); ++i) {
    const int64_t query = static_cast<int64_t>(i);
    const auto [known, is_new] = query_of_code.emplace(query_codes[i], query);
    if (is_new) {
      RunAppender appender(&table);
      for (const int64_t key : keys_of_code[query_codes[i]]) {
        appender.Add(key);
      }
      appender.AssignTo(query);
    } else {
      table.first[query] = table.first[known->second];
      table.last[query] = table.last[known->second];
    }
  }
  return table;
}

// Queries with negative codes, which are padding, see nothing.
void ClearNegative(const std::vector<int32_t>& query_codes,
                   RunSetTable* visible) {
  for (size_t i = 0; i < query_codes.size(); ++i) {
    if (query_codes[i] < 0) {
      visible->last[i] = visible->first[i];
    }
  }
}

// SetsByCode, for keys that are seen.
RunSetTable VisibleByCode(const std::vector<int32_t>& query_codes,
                          const std::vector<int32_t>& key_codes,
                          int64_t queries) {
  RunSetTable table = SetsByCode(query_codes, key_codes, queries);
  ClearNegative(query_codes, &table);
  return table;
}

void RestrictLongToGlobal(const AttentionPattern& pattern, RunSetTable* sets) {
  for (int64_t i = 0; i < pattern.long_length(); ++i) {
    if (pattern.ignore_hard_l2g[i] != 0) {
      continue;
    }
    RunAppender appender(sets);
    const auto [low, high] =
        std::minmax({pattern.sentence[i], pattern.paragraph[i]});
    for (const int32_t g : {low, high}) {
      if (g >= 0 && pattern.long_example[i] >= 0 &&
          pattern.global_example[g] == pattern.long_example[i]) {
        appender.Add(g);
      }
    }
    appender.AssignTo(i);
  }
}

// Returns, for each global token, the long tokens that belong to it, ascending:
// all three kinds or only the two that hard masks let through.
std::vector<std::vector<int64_t>> LongTokensOf(const AttentionPattern& pattern,
                                               bool with_links) {
  std::vector<std::vector<int64_t>> tokens(pattern.global_length());
  for (int64_t i = 0; i < pattern.long_length(); ++i) {
    for (const int32_t g : {pattern.sentence[i], pattern.paragraph[i],
                            with_links ? pattern.linked[i] : int32_t{-1}}) {
      if (g >= 0) {
        tokens[g].push_back(i);
      }
    }
  }
  return tokens;
}

void RestrictGlobalToLong(const AttentionPattern& pattern, RunSetTable* sets) {
  const std::vector<std::vector<int64_t>> owned =
      LongTokensOf(pattern, /*with_links=*/false);
  for (int64_t g = 0; g < pattern.global_length(); ++g) {
    if (pattern.ignore_hard_g2l[g] != 0) {
      continue;
    }
    RunAppender appender(sets);
    for (const int64_t i : owned[g]) {
      if (pattern.global_example[g] >= 0 &&
          pattern.long_example[i] == pattern.global_example[g]) {
        appender.Add(i);
      }
    }
    appender.AssignTo(g);
  }
}

RunSetTable LongToGlobalLinks(const AttentionPattern& pattern,
                              int64_t queries) {
  RunSetTable table = EmptySets(queries);
  for (int64_t i = 0; i < pattern.long_length(); ++i) {
    int32_t links[] = {pattern.sentence[i], pattern.paragraph[i],
                       pattern.linked[i]};
    std::sort(std::begin(links), std::end(links));
    RunAppender appender(&table);
    for (const int32_t g : links) {
      if (g >= 0) {
        appender.Add(g);
      }
    }
    appender.AssignTo(i);
  }
  return table;
}

RunSetTable GlobalToLongLinks(const AttentionPattern& pattern,
                              int64_t queries) {
  RunSetTable table = EmptySets(queries);
  const std::vector<std::vector<int64_t>> tokens =
      LongTokensOf(pattern, /*with_links=*/true);
  for (int64_t g = 0; g < pattern.global_length(); ++g) {
    RunAppender appender(&table);
    for (const int64_t i : tokens[g]) {
      appender.Add(i);
    }
    appender.AssignTo(g);
  }
  return table;
}

// Sets the rules of relative ids, and the pairs with a special one.
void SetRelativeIds(const AttentionPattern& pattern, int64_t long_length,
                    int64_t global_length, PatternRuns* out) {
  for (SoftmaxRuns* side : {&out->long_side, &out->global_side}) {
    side->max_distance = pattern.relative_pos_max_distance;
    side->own.rule = RelativeRule::kDistance;
    side->other.rule = RelativeRule::kLink;
  }
  out->long_side.other.special = LongToGlobalLinks(pattern, long_length);
  out->global_side.other.special = GlobalToLongLinks(pattern, global_length);
  // Distances apply within a global segment.
  out->global_side.own.special =
      SetsByCode(pattern.global_segment, pattern.global_segment, global_length);
}

}  // namespace

int32_t RunCount(const RunSetTable& table) {
  TORCH_CHECK(table.runs.size() <=
                  static_cast<size_t>(std::numeric_limits<int32_t>::max()),
              "the sets of keys of an example have 2^31 runs or more");
  return static_cast<int32_t>(table.runs.size());
}

PatternRuns MakePatternRuns(const AttentionPattern& pattern,
                            int64_t long_length, int64_t global_length) {
  PatternRuns out;
  RunSetTable& l2l = out.long_side.own.visible;
  RunSetTable& l2g = out.long_side.other.visible;
  RunSetTable& g2g = out.global_side.own.visible;
  RunSetTable& g2l = out.global_side.other.visible;
  l2l = VisibleByCode(pattern.long_segment, pattern.long_segment, long_length);
  l2g =
      VisibleByCode(pattern.long_example, pattern.global_example, long_length);
  g2g = VisibleByCode(pattern.global_example, pattern.global_example,
                      global_length);
  g2l = VisibleByCode(pattern.global_example, pattern.long_example,
                      global_length);
  if (pattern.hard_l2g) {
    RestrictLongToGlobal(pattern, &l2g);
  }
  if (pattern.hard_g2l) {
    RestrictGlobalToLong(pattern, &g2l);
  }
  if (pattern.relative_pos_max_distance > 0) {
    SetRelativeIds(pattern, long_length, global_length, &out);
  }
  return out;
}

}  // namespace etc
