#ifndef ETC_TASKS_ANALYSIS_ANALYSIS_FILES_H_
#define ETC_TASKS_ANALYSIS_ANALYSIS_FILES_H_

#include <string>

#include "tasks/analysis/attention_statistics.h"

namespace etc {

// The files of an analysis for programs (doc/attention_analysis.md). Numbers
// have six significant digits; a head without rows has n = 0, and null in the
// place of numbers that it has not.

// attention.json.
std::string AnalysisJson(const AttentionAnalysis& analysis);

// attention_entropy.csv: a line for each head of each layer and population.
std::string EntropyCsv(const AttentionAnalysis& analysis);

// attention_jsd.csv: a line for each head of each pair of layers; `layer` is
// the upper one.
std::string DivergenceCsv(const AttentionAnalysis& analysis);

// attention_masses.csv: lines for each head, one for each set of keys
// (MassesOf).
std::string MassCsv(const AttentionAnalysis& analysis);

// attention_positions.csv: the mean entropy of each head in each class of rows,
// by position from 0 to 1 in the document, then by tokens of the sentence.
std::string PositionCsv(const AttentionAnalysis& analysis);

// attention_similarity.csv: a line for each pair of heads of neighbouring
// layers; `layer` is the upper one, that of `head`.
std::string SimilarityCsv(const AttentionAnalysis& analysis);

// attention_correlation.csv: a line for each head of each block and layer to
// which scores are carried: the correlation of those and the layer's own, empty
// where either are all the same.
std::string CorrelationCsv(const AttentionAnalysis& analysis);

// "RED", "YELLOW" or "BLUE".
const char* ColourName(MedianColour colour);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_ANALYSIS_FILES_H_
