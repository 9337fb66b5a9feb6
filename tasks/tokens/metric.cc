#include "tasks/tokens/metric.h"

#include <cstddef>
#include <set>
#include <string>
#include <tuple>

#include "tasks/task/label_table.h"

namespace etc {

Scores ScoreTokens(const ById<std::vector<TokensSpan>>& gold,
                   const ById<TokensPrediction>& predictions) {
  // Spans of a document, each once.
  using Spans = std::set<std::tuple<int64_t, int64_t, std::string>>;
  const auto add = [](const TokensSpan& span, Spans* spans) {
    spans->emplace(span.start, span.end, span.label);
  };
  std::map<std::string, LabelCounts> labels;
  LabelCounts all;
  const auto found = PredictionsFor(gold, predictions);
  for (size_t i = 0; i < gold.size(); ++i) {
    Spans of_gold;
    for (const TokensSpan& span : gold[i].second) {
      add(span, &of_gold);
    }
    Spans predicted;
    if (found[i] != nullptr) {
      for (const TokensPredictedSpan& span : found[i]->spans) {
        add(span.span, &predicted);
      }
    }
    for (const auto& span : of_gold) {
      ++labels[std::get<2>(span)].gold;
      ++all.gold;
    }
    for (const auto& span : predicted) {
      const int64_t right = of_gold.contains(span) ? 1 : 0;
      LabelCounts& counts = labels[std::get<2>(span)];
      ++counts.predicted;
      counts.right += right;
      ++all.predicted;
      all.right += right;
    }
  }
  return {.metrics = {{"f1", all.f1()},
                      {"precision", all.precision()},
                      {"recall", all.recall()}},
          .diagnostics = LabelTable(labels)};
}

}  // namespace etc
