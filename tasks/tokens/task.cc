#include "tasks/tokens/task.h"

#include <cstddef>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "tasks/inputs/description.h"

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

}  // namespace etc
