#include "tasks/tokens/task.h"

#include <cstddef>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "tasks/inputs/description.h"
#include "tasks/task/label_table.h"

namespace etc {

BenchmarkInfo Tokens::info() const {
  return {.name = "tokens",
          .description =
              "your own documents, CoNLL or JSON: label parts of them, such as "
              "names",
          .prediction_unit = "line",
          .splits_sentences = true,
          .serves_bert = true,
          .has_own_files = true,
          .holds_out_records = true};
}

std::string Tokens::Describe(const Example& example) const {
  const InputOptions& input = options().input;
  const std::vector<int32_t>& text = TextTokens(example, input);
  std::map<size_t, std::string> tags;
  for (size_t i = 0; i < example.classes.size(); ++i) {
    if (example.classes[i] != kOutsideClass) {
      tags[static_cast<size_t>(TokensExample::PositionOf(example.units[i]))] =
          absl::StrCat("/", TagOfClass(example.classes[i], options()));
    }
  }
  const auto token = [&](size_t i) {
    const auto tag = tags.find(i);
    return absl::StrCat(tokenizer().Piece(text[i]),
                        tag == tags.end() ? "" : tag->second);
  };
  GlobalTokenTable table = {.token = token};
  if (!input.has_long_tokens) {
    constexpr int kPieceWidth = 20;
    table.kind_width = kPieceWidth;
    table.kind = token;
  }
  const std::string size = absl::StrCat(
      Counted(static_cast<int64_t>(example.units.size()), "word"), ", ",
      DescribeTextSize(example, example.dropped_pieces,
                       example.dropped_sentences));
  return DescribeExample(example,
                         {.title = absl::StrCat("record ", example.record_id),
                          .answer_name = "spans",
                          .answer = absl::StrCat(example.gold.size()),
                          .size = size},
                         table);
}

Scores Tokens::Score(const Answers& answers) const {
  // Spans of a document, each once.
  using Spans = std::set<std::tuple<int64_t, int64_t, std::string>>;
  const auto add = [](const TokensSpan& span, Spans* spans) {
    spans->emplace(span.start, span.end, span.label);
  };
  std::map<std::string, LabelCounts> labels;
  LabelCounts all;
  const auto found = PredictionsFor(answers.gold, answers.predictions);
  for (size_t i = 0; i < found.size(); ++i) {
    Spans of_gold;
    for (const TokensSpan& span : answers.gold[i].second) {
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
