#include "tasks/wikihop/description.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "tasks/data/pattern_text.h"

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

std::string TextOf(const WikihopExample& example, const Tokenizer& tokenizer,
                   int32_t g) {
  std::string text;
  for (size_t i = 0; i < example.long_token_ids.size(); ++i) {
    if (example.pattern.sentence[i] != g) {
      continue;
    }
    absl::StrAppend(&text, "  ", tokenizer.Piece(example.long_token_ids[i]));
    if (const int32_t linked = example.pattern.linked[i]; linked >= 0) {
      absl::StrAppend(&text, ">", linked);
    }
  }
  return text;
}

std::string Heading(const WikihopExample& example) {
  const std::string answer =
      example.label.has_value()
          ? absl::StrCat(
                "candidate ", *example.label, ", ",
                example.candidates[static_cast<size_t>(*example.label)])
          : "not given";
  const std::string truncation =
      example.dropped_sentences == 0
          ? "nothing truncated"
          : absl::StrCat("truncated by ",
                         Counted(example.dropped_sentences, "sentence"), " of ",
                         Counted(example.dropped_pieces, "token"));
  return absl::StrCat(
      "question ", example.record_id, ": ", example.query, "\nanswer: ", answer,
      "\n", Counted(example.long_length(), "long token"), ", ",
      Counted(example.global_length(), "global token"), "; ",
      Counted(example.num_candidates(), "candidate"), ", ",
      Counted(example.num_documents, "document"), ", ",
      Counted(example.num_sentences, "sentence"), "; ", truncation, "\n",
      Counted(static_cast<int64_t>(example.mentions.size()), "mention"),
      " of candidates; ", DescribeMasks(example.pattern), "\n");
}

}  // namespace

std::string DescribeWikihopExample(const WikihopExample& example,
                                   const Tokenizer& tokenizer) {
  const AttentionPattern& pattern = example.pattern;
  std::string text = Heading(example);
  absl::StrAppendFormat(&text, "\n%6s %-9s  %-13s  %-13s  %s\n", "global",
                        "kind", "owns", "sees", "tokens (>link)");
  for (int32_t g = 0; g < static_cast<int32_t>(pattern.global_length()); ++g) {
    if (g > 0 && pattern.global_segment[static_cast<size_t>(g)] !=
                     pattern.global_segment[static_cast<size_t>(g) - 1]) {
      absl::StrAppend(&text, "\n");
    }
    const std::string line = absl::StrFormat(
        "%6d %-9s  %-13s  %-13s%s", g,
        KindOf(example.global_type_ids[static_cast<size_t>(g)]),
        LongTokensOwnedBy(pattern, g), LongTokensSeenBy(pattern, g),
        TextOf(example, tokenizer, g));
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return text;
}

}  // namespace etc
