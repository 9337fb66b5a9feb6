#ifndef ETC_TASKS_TOKENS_TAGS_H_
#define ETC_TASKS_TOKENS_TAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace etc {

// Reading of the tags of words.
enum class TagReading {
  // "B-PER" begins a span, "I-PER" goes on with it, all others are "O". A span
  // that begins with "I-PER" is a mistake.
  kIob2,
  // The reading of CoNLL's script conlleval and of seqeval's default mode: any
  // "I-PER" or "E-PER" behind something else begins a span, and "S-PER" is one.
  // So IOB1, IOB2 and IOBES are read.
  kConlleval,
  // seqeval's mode "strict" with its scheme IOB2: a span is "B-PER" with the
  // "I-PER" behind it; any other "I-PER" is outside of spans.
  kStrictIob2,
  // The same with its scheme IOBES: a span is "S-PER", or "B-PER", any number
  // of "I-PER" and "E-PER"; what is neither is outside of spans.
  kStrictIobes,
};

// Returns true for the last two.
bool IsStrict(TagReading reading);

// A span of words, both included.
struct TagSpan {
  std::string label;
  int64_t first = 0;
  int64_t last = 0;

  bool operator==(const TagSpan&) const = default;
};

// A tag as its prefix and the label behind its first "-".
struct TagParts {
  // B, I, E, S or O.
  char prefix = 'O';
  absl::string_view label;
};
TagParts PartsOfTag(absl::string_view tag);

// Returns true for "O" and the tags of all schemes, also those that are read by
// no TagReading ("U-PER" of BILOU).
bool LooksLikeTag(absl::string_view text);

// The mistake of a tag behind `previous`, "O" at the beginning of a sentence,
// as the end of a message that begins with the place of the tag (" should be
// ..."); empty: there is none.
std::string TagMistake(absl::string_view previous, absl::string_view tag,
                       TagReading reading);

// The spans of the tags of a sentence, without mistakes. Those of kIob2 are
// read as kConlleval: without mistakes they are the same.
std::vector<TagSpan> SpansOfTags(absl::Span<const std::string> tags,
                                 TagReading reading);

}  // namespace etc

#endif  // ETC_TASKS_TOKENS_TAGS_H_
