#ifndef ETC_TASKS_ANALYSIS_ATTENTION_STATISTICS_H_
#define ETC_TASKS_ANALYSIS_ATTENTION_STATISTICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/analysis/distribution.h"

namespace etc {

// Statistics of attention weights by population, layer and head
// (doc/attention_analysis.md). A population is the rows of one softmax: "all"
// of BERT, "long" and "global" of ETC, whose keys stand in two blocks: "own",
// of the row's stream (l2l, g2g), and "other" (l2g, g2l; BERT has none).

// Sums over the counted rows of one head.
struct RowSums {
  double own_mass = 0;
  // Visible keys of the own block over all visible keys.
  double own_share = 0;
  // Entropy between the blocks and within each (BlockEntropy), nats.
  double between = 0;
  double own_entropy = 0;
  double other_entropy = 0;
  // Mass on the largest weight and on the eight largest.
  double top_1 = 0;
  double top_8 = 0;
  // Own mass by offset key - query, from -radius to radius; empty for global
  // rows of ETC, whose order means nothing.
  std::vector<double> by_offset;
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
};

// A population without rows. `max_keys` is at least 2.
PopulationStatistics MakePopulation(const std::string& name, int64_t layers,
                                    int64_t heads, int64_t max_keys,
                                    int64_t radius);

// Heads ascending by the median of entropy; ties: the lower index first. Heads
// without rows stand at the end.
std::vector<int64_t> HeadOrder(const std::vector<HeadStatistics>& heads);

// Standard deviations over visible pairs of one block of a layer, all heads.
struct ScoreDeviations {
  std::string block;  // "l2l", "l2g", "g2g" or "g2l"
  int64_t pairs = 0;
  double new_scores = 0;
  double carried_scores = 0;  // 0: nothing is carried
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

// Classes of the medians of a head, which must have rows.
MedianColour EntropyColour(const AttentionAnalysis& analysis,
                           const HeadStatistics& head);
MedianColour DivergenceColour(const AttentionAnalysis& analysis,
                              const StreamingHistogram& divergence);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_ATTENTION_STATISTICS_H_
