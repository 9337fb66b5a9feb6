#include "tasks/inputs/description.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"

namespace etc {
namespace {

// "0-3 7" for the indices in [0, size) that satisfy the predicate.
template <typename Predicate>
std::string Ranges(int64_t size, Predicate contains) {
  std::vector<std::string> ranges;
  for (int64_t begin = 0; begin < size; ++begin) {
    if (!contains(static_cast<size_t>(begin))) {
      continue;
    }
    int64_t last = begin;
    while (last + 1 < size && contains(static_cast<size_t>(last) + 1)) {
      ++last;
    }
    ranges.push_back(last == begin ? absl::StrCat(begin)
                                   : absl::StrCat(begin, "-", last));
    begin = last;
  }
  return ranges.empty() ? "none" : absl::StrJoin(ranges, " ");
}

}  // namespace

std::string LongTokensSeenBy(const AttentionPattern& pattern, int32_t global) {
  const auto at = static_cast<size_t>(global);
  const bool own_only = pattern.hard_g2l && pattern.ignore_hard_g2l[at] == 0;
  return Ranges(pattern.long_length(), [&](size_t i) {
    return pattern.long_example[i] == pattern.global_example[at] &&
           (!own_only || pattern.sentence[i] == global ||
            pattern.paragraph[i] == global);
  });
}

std::string LongTokensOwnedBy(const AttentionPattern& pattern, int32_t global) {
  return Ranges(pattern.long_length(), [&](size_t i) {
    return pattern.sentence[i] == global || pattern.paragraph[i] == global;
  });
}

std::string DescribeMasks(const AttentionPattern& pattern) {
  return absl::StrCat("local radius ", pattern.local_radius, ", ",
                      pattern.hard_g2l ? "hard" : "soft", " g2l mask, ",
                      pattern.hard_l2g ? "hard" : "soft", " l2g mask");
}

namespace {

// The long tokens whose sentence is global token g.
std::string TokensOf(const Example& example, const GlobalTokenTable& table,
                     int32_t g) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < example.long_token_ids.size(); ++i) {
    if (example.pattern.sentence[i] == g) {
      tokens.push_back(table.token(i));
    }
  }
  return absl::StrJoin(tokens, table.gap);
}

std::string DescribeGlobalTokens(const Example& example,
                                 const GlobalTokenTable& table) {
  const AttentionPattern& pattern = example.pattern;
  const auto line = [&table](const auto& global, const std::string& kind,
                             const std::string& owns, const std::string& sees,
                             const std::string& tokens) {
    const std::string text =
        absl::StrFormat("%6s %-*s%s%-*s  %-*s  %s", absl::StrCat(global),
                        table.kind_width, kind, table.gap, table.range_width,
                        owns, table.range_width, sees, tokens);
    return absl::StrCat(absl::StripTrailingAsciiWhitespace(text), "\n");
  };
  std::string text =
      absl::StrCat("\n", line("global", table.kind ? "kind" : "", "owns",
                              "sees", table.tokens_heading));
  for (size_t g = 0; g < example.global_token_ids.size(); ++g) {
    if (g > 0 && pattern.global_segment[g] != pattern.global_segment[g - 1]) {
      absl::StrAppend(&text, "\n");
    }
    const auto global = static_cast<int32_t>(g);
    absl::StrAppend(&text,
                    line(global, table.kind ? table.kind(g) : "",
                         LongTokensOwnedBy(pattern, global),
                         LongTokensSeenBy(pattern, global),
                         TokensOf(example, table, global)),
                    table.details ? table.details(g) : "");
  }
  return text;
}

}  // namespace

std::string DescribeLengths(const Example& example) {
  return absl::StrCat(Counted(example.long_length(), "long token"), ", ",
                      Counted(example.global_length(), "global token"));
}

std::string DescribeTextSize(const Example& example, int64_t dropped_pieces,
                             int64_t dropped_sentences) {
  std::string size = absl::StrCat(
      DescribeLengths(example), "; ",
      DescribeTruncation(dropped_pieces, [](int64_t dropped) {
        return absl::StrCat(Counted(dropped, "token"), " truncated");
      }));
  if (dropped_sentences > 0) {
    absl::StrAppend(&size, "; no global token for ",
                    Counted(dropped_sentences, "sentence"));
  }
  return size;
}

std::string DescribeExample(const Example& example,
                            const ExampleHeading& heading,
                            const GlobalTokenTable& table) {
  const std::string left_out =
      example.left_out.empty()
          ? ""
          : absl::StrCat("; training leaves it out: ", example.left_out);
  return absl::StrCat(
      heading.title, "\n", heading.answer_name, ": ",
      example.has_answer ? absl::StrCat(heading.answer, left_out) : "not given",
      "\n", heading.size, "\n", heading.before_masks,
      DescribeMasks(example.pattern), "\n",
      DescribeGlobalTokens(example, table));
}

}  // namespace etc
