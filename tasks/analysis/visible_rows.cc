#include "tasks/analysis/visible_rows.h"

#include <torch/types.h>

#include <algorithm>
#include <map>

#include "base/random.h"

namespace etc {
namespace {

// Examples, and rows of each of their streams, from which the similarity of
// heads is taken: all pairs of heads cost as much as many divergences.
constexpr int64_t kSampledExamples = 256;
constexpr int64_t kSampledRows = 16;

// --- Documents ---------------------------------------------------------------

// The tokens of row `b` of `ids` that are of a kind.
std::vector<KindToken> TokensOfKinds(const torch::Tensor& ids, int64_t b,
                                     absl::Span<const KeyKind> kinds,
                                     bool globals) {
  std::vector<KindToken> tokens;
  const auto* row = ids.data_ptr<int64_t>() + b * ids.size(1);
  for (int64_t i = 0; i < ids.size(1); ++i) {
    for (size_t k = 0; k < kinds.size(); ++k) {
      if (kinds[k].id == row[i] && (globals || !kinds[k].globals_only)) {
        tokens.push_back({.token = i, .kind = k});
        break;
      }
    }
  }
  return tokens;
}

// Position classes among the tokens of equal `document`; negative: padding.
std::vector<int64_t> PositionsIn(const std::vector<int32_t>& document) {
  std::map<int32_t, int64_t> lengths;
  for (const int32_t id : document) {
    ++lengths[id];
  }
  std::map<int32_t, int64_t> seen;
  std::vector<int64_t> classes;
  for (const int32_t id : document) {
    classes.push_back(id < 0 ? -1 : PositionClass(seen[id]++, lengths[id]));
  }
  return classes;
}

void AddPattern(const AttentionPattern& pattern, DocumentTokens* document) {
  document->sentence = pattern.sentence;
  document->long_position = PositionsIn(pattern.long_example);
  document->global_position = PositionsIn(pattern.global_example);
  document->tokens_of.resize(static_cast<size_t>(pattern.global_length()));
  std::vector<int64_t> sizes(document->tokens_of.size(), 0);
  for (size_t i = 0; i < pattern.sentence.size(); ++i) {
    const int32_t global = pattern.sentence[i];
    if (global < 0 || pattern.long_example[i] < 0) {
      continue;
    }
    const auto token = static_cast<int32_t>(i);
    std::vector<KeyRun>& runs =
        document->tokens_of[static_cast<size_t>(global)];
    if (runs.empty() || runs.back().end != token) {
      runs.push_back({token, token});
    }
    ++runs.back().end;
    ++sizes[static_cast<size_t>(global)];
  }
  for (size_t i = 0; i < pattern.sentence.size(); ++i) {
    const int32_t global = pattern.sentence[i];
    document->sentence_size.push_back(
        global < 0 || pattern.long_example[i] < 0
            ? -1
            : SentenceClass(sizes[static_cast<size_t>(global)]));
  }
}

// --- Visible keys ------------------------------------------------------------

// Keys [begin, end) of a block, as the query sees them.
struct QueryKeys {
  const RunSetTable& table;
  int64_t query = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// Calls visit(begin, end) for each run of visible keys.
template <typename Visit>
void ForEachRun(const QueryKeys& keys, Visit visit) {
  const RunSets sets = keys.table.View();
  if (sets.first == nullptr) {
    return;
  }
  for (int32_t at = sets.first[keys.query]; at < sets.last[keys.query]; ++at) {
    const int64_t begin = std::max<int64_t>(sets.runs[at].begin, keys.begin);
    const int64_t end = std::min<int64_t>(sets.runs[at].end, keys.end);
    if (begin < end) {
      visit(begin, end);
    }
  }
}

int64_t CountKeys(const QueryKeys& keys) {
  int64_t count = 0;
  ForEachRun(keys, [&](int64_t begin, int64_t end) { count += end - begin; });
  return count;
}

// Adds the visible tokens of each kind to `*counts`.
void CountKinds(const QueryKeys& keys, absl::Span<const KindToken> tokens,
                std::vector<int64_t>* counts) {
  ForEachRun(keys, [&](int64_t begin, int64_t end) {
    for (auto next = std::lower_bound(
             tokens.begin(), tokens.end(), begin,
             [](const KindToken&a, int64_t b) { return a.token < b; });
         next != tokens.end() && next->token < end; ++next) {
      ++(*counts)[next->kind];
    }
  });
}

// --- Rows --------------------------------------------------------------------

// One example of a batch on one side.
struct ExampleRows {
  const SoftmaxPattern& pattern;
  const SoftmaxRuns& runs;
  const DocumentTokens& document;
  bool is_long = false;

  QueryKeys Own(int64_t query) const {
    const KeyWindow& window = pattern.window;
    const bool restricted = window.is_restricted();
    return {
        .table = runs.own.visible,
        .query = query,
        .begin = restricted ? std::max<int64_t>(0, query - window.before) : 0,
        .end = restricted ? std::min(pattern.own_keys, query + window.after + 1)
                          : pattern.own_keys};
  }
  QueryKeys Other(int64_t query) const {
    return {.table = runs.other.visible,
            .query = query,
            .begin = 0,
            .end = pattern.other_keys};
  }
  int64_t CountLinked(int64_t query) const;
  VisibleRow Row(int64_t example, int64_t query) const;
  // Adds the row to the counts of its population.
  void Count(const VisibleRow& row, PopulationStatistics* population) const;
};

int64_t ExampleRows::CountLinked(int64_t query) const {
  const auto at = static_cast<size_t>(query);
  QueryKeys keys = Other(query);
  int64_t linked = 0;
  if (is_long && at < document.sentence.size() && document.sentence[at] >= 0) {
    keys.begin = document.sentence[at];
    keys.end = keys.begin + 1;
    linked = CountKeys(keys);
  }
  if (!is_long && at < document.tokens_of.size()) {
    for (const KeyRun& run : document.tokens_of[at]) {
      keys.begin = run.begin;
      keys.end = run.end;
      linked += CountKeys(keys);
    }
  }
  return linked;
}

VisibleRow ExampleRows::Row(int64_t example, int64_t query) const {
  const auto class_in = [&](const std::vector<int64_t>& classes) {
    const auto at = static_cast<size_t>(query);
    return at < classes.size() ? classes[at] : -1;
  };
  return {.row = example * pattern.queries + query,
          .example = example,
          .query = query,
          .own_keys = CountKeys(Own(query)),
          .other_keys = CountKeys(Other(query)),
          .linked_keys = CountLinked(query),
          .position_class = class_in(is_long ? document.long_position
                                             : document.global_position),
          .sentence_class =
              is_long ? class_in(document.sentence_size) : int64_t{-1}};
}

void ExampleRows::Count(const VisibleRow& row,
                        PopulationStatistics* population) const {
  const auto keys = static_cast<double>(row.keys());
  ++population->rows;
  population->rows_sampled += row.is_sampled ? 1 : 0;
  population->rows_linked += row.linked_keys > 0 ? 1 : 0;
  population->linked_share += static_cast<double>(row.linked_keys) / keys;
  if (row.position_class >= 0 && !population->rows_by_position.empty()) {
    ++population->rows_by_position[static_cast<size_t>(row.position_class)];
  }
  if (row.sentence_class >= 0) {
    ++population->rows_by_sentence[static_cast<size_t>(row.sentence_class)];
  }
  std::vector<int64_t> counts(population->kinds.size(), 0);
  CountKinds(Own(row.query), is_long ? document.longs : document.globals,
             &counts);
  CountKinds(Other(row.query), is_long ? document.globals : document.longs,
             &counts);
  for (size_t k = 0; k < counts.size(); ++k) {
    population->kind_share[k] += static_cast<double>(counts[k]) / keys;
  }
}

// Indices of `most` rows drawn by the key, ascending; all if there are fewer.
std::vector<size_t> DrawnRows(uint64_t key, int64_t most,
                              const std::vector<VisibleRow>& rows) {
  std::vector<size_t> drawn(rows.size());
  for (size_t i = 0; i < drawn.size(); ++i) {
    drawn[i] = i;
  }
  if (static_cast<int64_t>(rows.size()) > most) {
    const auto number = [&](size_t i) {
      return CombineSeeds({key, static_cast<uint64_t>(rows[i].query)});
    };
    std::sort(drawn.begin(), drawn.end(),
              [&](size_t a, size_t b) { return number(a) < number(b); });
    drawn.resize(static_cast<size_t>(most));
    std::sort(drawn.begin(), drawn.end());
  }
  return drawn;
}

// Keeps `most` of the rows; 0: all.
void KeepDrawn(uint64_t key, int64_t most, std::vector<VisibleRow>* rows) {
  if (most > 0) {
    std::vector<VisibleRow> kept;
    for (const size_t i : DrawnRows(key, most, *rows)) {
      kept.push_back((*rows)[i]);
    }
    *rows = std::move(kept);
  }
}

}  // namespace

std::vector<DocumentTokens> DocumentsOf(const EtcInput& input,
                                        absl::Span<const KeyKind> kinds) {
  const auto on_cpu = [](const torch::Tensor& ids) {
    return ids.to(torch::kCPU, torch::kInt64).contiguous();
  };
  const torch::Tensor longs = on_cpu(input.token_ids);
  const torch::Tensor globals = on_cpu(input.global_token_ids);
  const std::vector<AttentionPattern>* patterns = input.attention.patterns();
  std::vector<DocumentTokens> documents;
  for (int64_t b = 0; b < globals.size(0); ++b) {
    DocumentTokens& document = documents.emplace_back();
    document.longs = TokensOfKinds(longs, b, kinds, /*globals=*/false);
    document.globals = TokensOfKinds(globals, b, kinds, /*globals=*/true);
    if (patterns != nullptr) {
      AddPattern((*patterns)[static_cast<size_t>(b)], &document);
    }
  }
  return documents;
}

std::vector<VisibleRow> CountRows(const SoftmaxPattern& pattern, QuerySide side,
                                  absl::Span<const DocumentTokens> documents,
                                  const RowChoice& choice,
                                  PopulationStatistics* population) {
  TORCH_CHECK(pattern.runs != nullptr &&
                  static_cast<int64_t>(pattern.runs->size()) == pattern.batch,
              "the keys that tokens see should be known as runs");
  const bool is_long = side == QuerySide::kLong;
  const uint64_t stream = is_long ? 0 : 1;
  std::vector<VisibleRow> all;
  for (int64_t b = 0; b < pattern.batch; ++b) {
    const auto at = static_cast<size_t>(b);
    const ExampleRows example = {.pattern = pattern,
                                 .runs = (*pattern.runs)[at],
                                 .document = documents[at],
                                 .is_long = is_long};
    std::vector<VisibleRow> rows;
    for (int64_t i = 0; i < pattern.queries; ++i) {
      rows.push_back(example.Row(b, i));
    }
    std::erase_if(rows, [](const VisibleRow& row) { return row.keys() == 0; });
    const uint64_t key = CombineSeeds(
        {choice.seed, stream, static_cast<uint64_t>(choice.first + b)});
    KeepDrawn(key, choice.max_rows, &rows);
    population->rows_single_key += static_cast<int64_t>(std::erase_if(
        rows, [](const VisibleRow& row) { return row.keys() == 1; }));
    if (choice.first + b < kSampledExamples) {
      for (const size_t i : DrawnRows(key, kSampledRows, rows)) {
        rows[i].is_sampled = true;
      }
    }
    for (const VisibleRow& row : rows) {
      example.Count(row, population);
    }
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace etc
