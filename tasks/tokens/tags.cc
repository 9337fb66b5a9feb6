#include "tasks/tokens/tags.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace etc {
namespace {

constexpr absl::string_view kIob2Prefixes = "BI";
constexpr absl::string_view kAllPrefixes = "BIES";
// The prefixes of all schemes, those of BILOU among them.
constexpr absl::string_view kKnownPrefixes = "BIESLU";

bool HasPrefixOf(absl::string_view prefixes, absl::string_view tag) {
  return tag.size() >= 3 && tag[1] == '-' &&
         prefixes.find(tag[0]) != absl::string_view::npos;
}

// The end of a message about a tag of another scheme than that which is read.
absl::string_view HintOfScheme(absl::string_view tag) {
  return HasPrefixOf(kAllPrefixes, tag)
             ? "; tokens.tags \"conlleval\" and \"strict_iobes\" read IOBES"
         : HasPrefixOf(kKnownPrefixes, tag)
             ? "; of BILOU, \"L-\" should be written as \"E-\" and \"U-\" as "
               "\"S-\", which tokens.tags \"conlleval\" reads"
             : "";
}

// conlleval's endOfChunk, between two tags.
bool EndsSpan(const TagParts& previous, const TagParts& tag) {
  if (previous.prefix == 'O') {
    return false;
  }
  return previous.prefix == 'E' || previous.prefix == 'S' ||
         tag.prefix == 'B' || tag.prefix == 'S' || tag.prefix == 'O' ||
         previous.label != tag.label;
}

// conlleval's startOfChunk.
bool StartsSpan(const TagParts& previous, const TagParts& tag) {
  if (tag.prefix == 'O') {
    return false;
  }
  return tag.prefix == 'B' || tag.prefix == 'S' || previous.prefix == 'E' ||
         previous.prefix == 'S' || previous.prefix == 'O' ||
         previous.label != tag.label;
}

// seqeval's Tokens.entities: a span that is begun and not ended as the scheme
// has it is none, and the next may begin where it broke off.
std::vector<TagSpan> StrictSpans(absl::Span<const std::string> tags,
                                 bool is_iobes) {
  std::vector<TagSpan> spans;
  for (size_t i = 0; i < tags.size();) {
    const size_t first = i++;
    const TagParts begin = PartsOfTag(tags[first]);
    if (begin.prefix != 'B' && (!is_iobes || begin.prefix != 'S')) {
      continue;
    }
    char last = begin.prefix;
    for (; i < tags.size() && (last == 'B' || last == 'I'); ++i) {
      const TagParts tag = PartsOfTag(tags[i]);
      if ((tag.prefix != 'I' && (!is_iobes || tag.prefix != 'E')) ||
          tag.label != begin.label) {
        break;
      }
      last = tag.prefix;
    }
    if (!is_iobes || last == 'E' || last == 'S') {
      spans.push_back({.label = std::string(begin.label),
                       .first = static_cast<int64_t>(first),
                       .last = static_cast<int64_t>(i) - 1});
    }
  }
  return spans;
}

}  // namespace

TagParts PartsOfTag(absl::string_view tag) {
  return tag.size() < 3 ? TagParts()
                        : TagParts{.prefix = tag[0], .label = tag.substr(2)};
}

bool LooksLikeTag(absl::string_view text) {
  return text == "O" || HasPrefixOf(kKnownPrefixes, text);
}

bool IsStrict(TagReading reading) {
  return reading == TagReading::kStrictIob2 ||
         reading == TagReading::kStrictIobes;
}

std::string TagMistake(absl::string_view previous, absl::string_view tag,
                       TagReading reading) {
  if (tag == "O") {
    return "";
  }
  const bool is_iob2 = reading == TagReading::kIob2;
  const bool has_two = is_iob2 || reading == TagReading::kStrictIob2;
  const absl::string_view prefixes = has_two ? kIob2Prefixes : kAllPrefixes;
  if (!HasPrefixOf(prefixes, tag)) {
    return absl::StrCat(
        " should be \"O\", or ",
        has_two ? "\"B-\" or \"I-\"" : "\"B-\", \"I-\", \"E-\" or \"S-\"",
        " and a label, but is ", QuotedName(tag), HintOfScheme(tag));
  }
  const TagParts parts = PartsOfTag(tag);
  const TagParts before = PartsOfTag(previous);
  if (is_iob2 && parts.prefix == 'I' &&
      (before.prefix == 'O' || before.label != parts.label)) {
    return absl::StrCat(
        " is ", QuotedName(tag), ", which should stand behind ",
        QuotedName(absl::StrCat("B-", parts.label)), " or itself, but stands ",
        previous == "O" ? "where no span is"
                        : absl::StrCat("behind ", QuotedName(previous)),
        "; tokens.tags \"conlleval\" lets spans begin so");
  }
  return "";
}

std::vector<TagSpan> SpansOfTags(absl::Span<const std::string> tags,
                                 TagReading reading) {
  if (IsStrict(reading)) {
    return StrictSpans(tags, reading == TagReading::kStrictIobes);
  }
  std::vector<TagSpan> spans;
  TagParts previous;
  bool is_open = false;
  const auto close = [&](size_t end) {
    if (is_open) {
      spans.back().last = static_cast<int64_t>(end) - 1;
    }
    is_open = false;
  };
  for (size_t i = 0; i < tags.size(); ++i) {
    const TagParts tag = PartsOfTag(tags[i]);
    if (EndsSpan(previous, tag)) {
      close(i);
    }
    if (StartsSpan(previous, tag)) {
      spans.push_back(
          {.label = std::string(tag.label), .first = static_cast<int64_t>(i)});
      is_open = true;
    }
    previous = tag;
  }
  close(tags.size());
  return spans;
}

}  // namespace etc
