#ifndef ETC_TASKS_ANALYSIS_VIOLIN_GRID_H_
#define ETC_TASKS_ANALYSIS_VIOLIN_GRID_H_

#include <string>
#include <utility>
#include <vector>

#include "tasks/analysis/attention_statistics.h"
#include "tasks/analysis/streaming_histogram.h"

namespace etc {

// A cell of a grid of violins; null numbers: none.
struct ViolinCell {
  const StreamingHistogram* numbers = nullptr;
  MedianColour colour = MedianColour::kBlue;
  std::string name;  // plain text, for the tooltip
};

// Distributions as a grid of horizontal violins, as Figures 4 to 6 of the
// RealFormer paper are. All text is plain.
struct ViolinGrid {
  // For readers of the page by ear.
  std::string label;
  std::vector<std::string> columns;
  // The axis of each cell, from 0 to `x_high`.
  std::string x_label;
  double x_high = 1;
  std::vector<double> ticks;
  // Decimals of the medians.
  int decimals = 1;
  double cell_width = 72;
  // Rows with their names, the first one at the top; a cell for each column.
  std::vector<std::pair<std::string, std::vector<ViolinCell>>> rows;
};

// The style of grids in a page of ToHtml.
inline constexpr char kGridStyle[] = R"css(
.grid text { font-size: 11px; }
.grid .median { fill: var(--ink); paint-order: stroke;
  stroke: var(--panel); stroke-width: 3px; }
.grid .cell { fill: var(--panel); stroke: var(--line); stroke-width: 0.5; }
.grid .violin { stroke: var(--ink); stroke-width: 0.5;
  print-color-adjust: exact; }
.grid .mark { stroke: var(--ink); stroke-width: 1.5; }
.RED { fill: var(--red); } .YELLOW { fill: var(--yellow); }
.BLUE { fill: var(--blue); }
)css";

// The grid as inline SVG.
std::string GridSvg(const ViolinGrid& grid);
// The grid as an SVG file, with a style of its own.
std::string PictureOf(const ViolinGrid& grid);

// Ticks of an axis of entropies up to `high` nats.
std::vector<double> EntropyTicks(double high);

// Entropies by layer, top layer first, and by rank of the head.
ViolinGrid EntropyGrid(const AttentionAnalysis& analysis,
                       const PopulationStatistics& population);
// Divergences by pair of layers, top pair first, and by head.
ViolinGrid DivergenceGrid(const AttentionAnalysis& analysis,
                          const PopulationStatistics& population);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_VIOLIN_GRID_H_
