#ifndef ETC_TASKS_ANALYSIS_ATTENTION_STATISTICS_H_
#define ETC_TASKS_ANALYSIS_ATTENTION_STATISTICS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tasks/analysis/streaming_histogram.h"

namespace etc {

// Statistics of attention weights by population, layer and head
// (doc/attention_analysis.md). A population is the rows of one softmax: "all"
// of BERT, "long" and "global" of ETC, whose keys stand in two blocks: "own",
// of the row's stream (l2l, g2g), and "other" (l2g, g2l; BERT has none).

// Classes of rows for means of their entropy: the position in the document in
// twentieths; the tokens of the sentence: 1, 2 and 3, 4 to 7, ..., 128 and
// more, so that class c begins with 2^c tokens.
inline constexpr int64_t kPositionClasses = 20;
inline constexpr int64_t kSentenceClasses = 8;

// Keys of one id, on which the mass is measured.
struct KeyKind {
  std::string name;  // "[SEP]", "candidate"
  int64_t id = -1;
  // False: long tokens of this id as well.
  bool globals_only = false;
};

// Sums over the counted rows of one head.
struct RowSums {
  double own_mass = 0;
  // Visible keys of the own block over all visible keys.
  double own_share = 0;
  // Parts of the entropy H = h(a) + a H_own + (1 - a) H_other, a the mass of
  // the own block: h(a), and that of each block renormalised; nats.
  double between = 0;
  double own_entropy = 0;
  double other_entropy = 0;
  // Mass on the largest weight and on the eight largest.
  double top_1 = 0;
  double top_8 = 0;
  // Own mass by offset key - query, from -radius to radius; empty for global
  // rows of ETC, whose order means nothing.
  std::vector<double> by_offset;
  // Mass on linked keys: of a long row the global token of its sentence, of a
  // global row the long tokens of its sentence.
  double linked_mass = 0;
  // Mass on the keys of each kind, in both blocks.
  std::vector<double> kind_mass;
  // Entropy of the rows of each class; empty: rows have no position, or no
  // sentence.
  std::vector<double> entropy_by_position;
  std::vector<double> entropy_by_sentence;
};

// Distributions and sums over the counted rows of one head.
struct HeadStatistics {
  explicit HeadStatistics(double max_entropy)
      : entropy(0, max_entropy), normalised(0, 1), own_mass(0, 1) {}

  StreamingHistogram entropy;     // nats
  StreamingHistogram normalised;  // entropy over ln(visible keys)
  StreamingHistogram own_mass;
  RowSums sums;
};

// The mean absolute offset of own mass, and the share of own mass at offsets
// beyond 0.9 radius; 0 without own mass.
double MeanDistance(const RowSums& sums);
double EdgeShare(const RowSums& sums);
// Own mass at an offset, over all rows; 0 beyond the radius.
double MassAt(const RowSums& sums, int64_t offset);

struct PopulationStatistics {
  std::string name;        // "all", "long" or "global"
  std::string own_name;    // "l2l" or "g2g"
  std::string other_name;  // "l2g" or "g2l"; empty: there is no such block
  // Keys that a row sees at most; the histograms of entropy end at its
  // logarithm.
  int64_t max_keys = 0;
  // The radius of by_offset; 0: there are no offsets.
  int64_t radius = 0;
  // Rows counted, and rows that see a single key, which are not.
  int64_t rows = 0;
  int64_t rows_single_key = 0;
  std::vector<std::vector<HeadStatistics>> heads;  // [layer][head]
  // Divergence of head i of layer l + 1 and head i of layer l.
  std::vector<std::vector<StreamingHistogram>> divergence;  // [l][head]

  // Rows that see linked keys, and the sum over all rows of linked keys over
  // visible keys.
  int64_t rows_linked = 0;
  double linked_share = 0;
  // Kinds of keys by name, and the sum over rows of their visible keys over all
  // visible keys.
  std::vector<std::string> kinds;
  std::vector<double> kind_share;
  // Rows of each class; empty as in RowSums.
  std::vector<int64_t> rows_by_position;
  std::vector<int64_t> rows_by_sentence;
  // Divergence of head i of layer l + 1 and head j of layer l at [l][i * heads
  // + j], summed over a sample of rows.
  std::vector<std::vector<double>> similarity;
  int64_t rows_sampled = 0;
};

// Sizes of a population.
struct PopulationShape {
  std::string name;
  int64_t layers = 0;
  int64_t heads = 0;
  // At least 2.
  int64_t max_keys = 2;
  int64_t radius = 0;
  std::vector<std::string> kinds = {};
};

// A population without rows.
PopulationStatistics MakePopulation(const PopulationShape& shape);

// The class of `position` among `length` tokens, and of the size of a sentence.
int64_t PositionClass(int64_t position, int64_t length);
int64_t SentenceClass(int64_t tokens);

// Means of the entropy of each class; NaN for classes without rows. `member` is
// entropy_by_position or entropy_by_sentence, with the rows of each class.
std::vector<double> MeanByClass(const HeadStatistics& head,
                                std::vector<double> RowSums::*member,
                                const std::vector<int64_t>& rows);

// Mass of one head on a set of keys, mean over rows.
struct KeyMass {
  // A block ("l2l"), "linked" or the name of a kind.
  std::string keys;
  // Rows of the mean: all counted ones, of linked keys those that see any.
  int64_t rows = 0;
  double mass = 0;
  // Visible keys of the set over all visible keys.
  double share = 0;
  // Mass over share: 1 of weights that are all equal. 0 for sets that nobody
  // sees.
  double lift() const { return share > 0 ? mass / share : 0; }
};

// The blocks, if there are two; linked keys, if a row sees any; each kind.
// Empty without rows.
std::vector<KeyMass> MassesOf(const PopulationStatistics& population,
                              const HeadStatistics& head);

// Mean divergence of head i of layer l + 1 and head j of layer l over the
// sampled rows, of which there must be some.
double MeanSimilarity(const PopulationStatistics& population, size_t l,
                      size_t i, size_t j);

// Heads ascending by the median of entropy; ties: the lower index first. Heads
// without rows stand at the end.
std::vector<int64_t> HeadOrder(const std::vector<HeadStatistics>& heads);

// Standard deviations over visible pairs of one block of a layer, all heads,
// and correlations of each. s are the scores of the layer alone, S those that
// the layers below carried; its softmax sees the logits a s + b S
// (attention/residual_attention.h).
struct ScoreDeviations {
  std::string block;  // "l2l", "l2g", "g2g" or "g2l"
  int64_t pairs = 0;
  double new_scores = 0;  // deviation of s
  // Deviation of S; nothing if nothing is carried.
  std::optional<double> carried_scores = std::nullopt;
  // The deviation of b S over that of a s, with the gate of each head; nothing
  // if nothing is carried, or all s are the same.
  std::optional<double> logit_ratio = std::nullopt;
  // Pearson's correlation of s and S in each head; empty if nothing is carried,
  // nothing for a head of which either are all the same.
  std::vector<std::optional<double>> correlations = {};
};

// The whole analysis of one model and one data set.
struct AttentionAnalysis {
  // The model.
  bool is_bert = false;
  int64_t layers = 0;
  int64_t heads = 0;
  std::string residual;    // "off", "sum", "mean", "decay" or "gate"
  std::string layer_norm;  // "post" or "pre"
  std::string checkpoint;
  // The data.
  std::string data;
  int64_t examples = 0;
  // Text that had no room in the model's input, by unit: {"pieces", 37} and
  // {"sentences", 2} of plain text, {"records", 4} of a task's records; and the
  // same as a sentence. Empty: all was read.
  std::vector<std::pair<std::string, int64_t>> truncated = {};
  std::string truncation = {};
  bool masked_input = false;
  uint64_t seed = 1;
  int64_t max_rows = 0;  // of an example and stream; 0: all
  // The square root of each divergence instead of it.
  bool jsd_distance = false;
  // Colours by the median of the normalised entropy instead of the entropy.
  bool normalised_colours = false;

  std::vector<PopulationStatistics> populations;
  std::vector<std::vector<ScoreDeviations>> scores;  // [layer]
};

// Class of a median, by its unrounded value: above `high` red, below `low`
// blue, else yellow.
enum class MedianColour { kBlue, kYellow, kRed };
MedianColour ColourOfEntropy(double median);     // 1.5 and 4.5 nats
MedianColour ColourOfDivergence(double median);  // 0.25 and 0.75
// 1.5 and 4.5 nats as shares of ln 512: 0.2404 and 0.7213.
MedianColour ColourOfNormalisedEntropy(double median);

// Classes of the medians of a head, which must have rows.
MedianColour EntropyColour(const AttentionAnalysis& analysis,
                           const HeadStatistics& head);
MedianColour DivergenceColour(const AttentionAnalysis& analysis,
                              const StreamingHistogram& divergence);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_ATTENTION_STATISTICS_H_
