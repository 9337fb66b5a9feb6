#ifndef ETC_TASKS_ANALYSIS_HEAD_MAPS_H_
#define ETC_TASKS_ANALYSIS_HEAD_MAPS_H_

#include <string>

#include "tasks/analysis/attention_statistics.h"

namespace etc {

// Pictures of a population with rows, as HTML with inline SVG for a page of
// ToHtml with kMapStyle. Layers stand from the top one down.

// The style of these pictures.
inline constexpr char kMapStyle[] = R"css(
.maps { display: flex; flex-wrap: wrap; gap: 0.6rem 2rem;
  align-items: flex-end; }
.maps figure { width: min-content; min-width: min(14rem, 100%);
  max-width: 100%; overflow-x: auto; }
.maps svg { max-width: none; }
.heat rect { print-color-adjust: exact; }
.similar rect { fill: var(--series-1); stroke: var(--line);
  stroke-width: 0.5; print-color-adjust: exact; }
.curve { fill: none; stroke: var(--series-1); stroke-width: 1;
  stroke-opacity: 0.6; stroke-linecap: round; }
.mean { fill: none; stroke: var(--series-2); stroke-width: 2;
  stroke-linecap: round; }
)css";

// The name of the keys of a KeyMass in a sentence: "candidate tokens", "the
// global token of its sentence".
std::string NameOfKeys(const std::string& population, const std::string& keys);

// Maps of layers and heads: mass on the blocks, on neighbours, linked keys,
// kinds of keys and the largest weights.
std::string BlockMaps(const PopulationStatistics& population);

// Curves of each layer: mass by offset. Only of populations with a radius.
std::string DistanceCurves(const PopulationStatistics& population);

// Curves of each layer: entropy by position in the document and by length of
// the sentence, as far as rows have them.
std::string PositionCurves(const PopulationStatistics& population);

// Matrices of each pair of layers: divergence of all pairs of heads.
std::string SimilarityMaps(const PopulationStatistics& population);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_HEAD_MAPS_H_
