#ifndef ETC_TASKS_ANALYSIS_VISIBLE_ROWS_H_
#define ETC_TASKS_ANALYSIS_VISIBLE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "attention/attention_inputs.h"
#include "attention/key_runs.h"
#include "attention/softmax_pattern.h"
#include "etc/model.h"
#include "tasks/analysis/attention_statistics.h"

namespace etc {

// A token that is of a kind, by the index of the kind.
struct KindToken {
  int64_t token = 0;
  size_t kind = 0;
};

// Sentences, positions and kinds of the tokens of one example.
struct DocumentTokens {
  // The global token of each long token's sentence, -1: none; without a
  // pattern, empty.
  std::vector<int32_t> sentence;
  // The long tokens of each global token's sentence.
  std::vector<std::vector<KeyRun>> tokens_of;
  // PositionClass of each token among those of its document, -1: padding; and
  // SentenceClass of each long token, -1: it has no sentence. Empty without a
  // pattern.
  std::vector<int64_t> long_position;
  std::vector<int64_t> global_position;
  std::vector<int64_t> sentence_size;
  // Tokens of a kind, ascending. A token is of the first kind that fits.
  std::vector<KindToken> longs;
  std::vector<KindToken> globals;
};

// One for each example of a batch.
std::vector<DocumentTokens> DocumentsOf(const EtcInput& input,
                                        absl::Span<const KeyKind> kinds);

// A row of a softmax, the keys that it sees, and its classes.
struct VisibleRow {
  int64_t keys() const { return own_keys + other_keys; }

  int64_t row = 0;  // example * length + query
  int64_t example = 0;
  int64_t query = 0;
  int64_t own_keys = 0;
  int64_t other_keys = 0;
  // Visible keys that are linked (RowSums::linked_mass).
  int64_t linked_keys = 0;
  // -1: none.
  int64_t position_class = -1;
  int64_t sentence_class = -1;
  // Drawn for the similarity of heads.
  bool is_sampled = false;
};

// The rows of a stream that are taken.
struct RowChoice {
  // Rows of each example at most, drawn by the seed; 0: all.
  int64_t max_rows = 0;
  uint64_t seed = 1;
  // The index of the first example of the batch, by which rows are drawn.
  int64_t first = 0;
};

// The rows of one stream of a batch that count: those of two visible keys or
// more by the pattern. They, those of a single key and their shares are added
// to the counts of `population`. The pattern must have runs.
std::vector<VisibleRow> CountRows(const SoftmaxPattern& pattern, QuerySide side,
                                  absl::Span<const DocumentTokens> documents,
                                  const RowChoice& choice,
                                  PopulationStatistics* population);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_VISIBLE_ROWS_H_
