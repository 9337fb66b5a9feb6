#include "tasks/description.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/counted.h"
#include "tasks/data/pattern_text.h"
#include "tasks/wikihop/task.h"

namespace etc {
namespace {

absl::string_view KindOf(int32_t global_type) {
  switch (global_type) {
    case kWikihopCandidateGlobalType:
      return "candidate";
    case kWikihopQueryGlobalType:
      return "query";
    case kWikihopDocumentGlobalType:
      return "document";
    default:
      return "sentence";
  }
}

std::string Heading(const WikihopExample& example) {
  const std::string answer = example.label.has_value()
                                 ? absl::StrCat("candidate ", *example.label,
                                                ", ", Wikihop::GoldOf(example))
                                 : "not given";
  const std::string truncation =
      example.dropped_sentences == 0
          ? "nothing truncated"
          : absl::StrCat("truncated by ",
                         Counted(example.dropped_sentences, "sentence"), " of ",
                         Counted(example.dropped_pieces, "token"));
  return absl::StrCat(
      "question ", example.record_id, ": ", example.query, "\nanswer: ", answer,
      "\n", DescribeLengths(example), "; ",
      Counted(example.num_candidates(), "candidate"), ", ",
      Counted(example.num_documents, "document"), ", ",
      Counted(example.num_sentences, "sentence"), "; ", truncation, "\n",
      Counted(static_cast<int64_t>(example.mentions.size()), "mention"),
      " of candidates; ", DescribeMasks(example.pattern), "\n");
}

}  // namespace

std::string Wikihop::Describe(const Example& example,
                              const Tokenizer& tokenizer,
                              const Options& /*options*/) {
  const auto token = [&](size_t i) {
    const int32_t linked = example.pattern.linked[i];
    return absl::StrCat(tokenizer.Piece(example.long_token_ids[i]),
                        linked >= 0 ? absl::StrCat(">", linked) : "");
  };
  return Heading(example) +
         DescribeGlobalTokens(example, {.kind_width = 9,
                                        .range_width = 13,
                                        .tokens_heading = "tokens (>link)",
                                        .gap = "  ",
                                        .kind =
                                            [&](size_t g) {
                                              return std::string(KindOf(
                                                  example.global_type_ids[g]));
                                            },
                                        .token = token});
}

}  // namespace etc
