#include "tasks/description.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/counted.h"
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

}  // namespace

std::string Wikihop::Describe(const Example& example, const Context& context) {
  const auto kind = [&example](size_t g) {
    return std::string(KindOf(example.global_type_ids[g]));
  };
  const auto token = [&](size_t i) {
    const int32_t linked = example.pattern.linked[i];
    return absl::StrCat(context.tokenizer.Piece(example.long_token_ids[i]),
                        linked >= 0 ? absl::StrCat(">", linked) : "");
  };
  const auto truncation = [&example](int64_t sentences) {
    return absl::StrCat("truncated by ", Counted(sentences, "sentence"), " of ",
                        Counted(example.dropped_pieces, "token"));
  };
  return DescribeExample(
      example,
      {.title =
           absl::StrCat("question ", example.record_id, ": ", example.query),
       .answer = example.has_answer ? absl::StrCat("candidate ", *example.label,
                                                   ", ", GoldOf(example))
                                    : "",
       .size = absl::StrCat(
           DescribeLengths(example), "; ",
           Counted(example.num_candidates(), "candidate"), ", ",
           Counted(example.num_documents, "document"), ", ",
           Counted(example.num_sentences, "sentence"), "; ",
           DescribeTruncation(example.dropped_sentences, truncation)),
       .before_masks = absl::StrCat(
           Counted(static_cast<int64_t>(example.mentions.size()), "mention"),
           " of candidates; ")},
      {.kind_width = 9,
       .range_width = 13,
       .tokens_heading = "tokens (>link)",
       .gap = "  ",
       .kind = kind,
       .token = token});
}

}  // namespace etc
