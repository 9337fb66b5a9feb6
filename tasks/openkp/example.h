#ifndef ETC_TASKS_OPENKP_EXAMPLE_H_
#define ETC_TASKS_OPENKP_EXAMPLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/pattern_builders.h"
#include "tasks/data/example.h"
#include "tasks/openkp/phrases.h"
#include "tasks/openkp/raw.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Ids and types of tokens, the same with every vocabulary (doc/openkp.md 3.3).
inline constexpr int32_t kOpenkpGlobalToken = 1;
inline constexpr int32_t kOpenkpLongType = 1;
inline constexpr int32_t kOpenkpGlobalType = 0;

struct OpenkpExampleOptions {
  int64_t max_long_length = 4096;
  int64_t max_global_length = 512;
  // 0: a global token for each element of the page; else one for so many long
  // tokens, without elements (doc/openkp.md 3.7).
  int64_t fixed_block_length = 0;
  // The official code's behaviour where it only hurts; the task's README has
  // the list.
  bool official_compatibility = false;
  PatternOptions pattern = {};
};

// One document as the model reads it (doc/openkp.md 3): the pieces of its
// words, and a global token for each element of the page. There are no special
// tokens. A document without a single piece is given one [PAD] that belongs to
// no word.
struct OpenkpExample : Example {
  // All words of the document, of which the model reads the first ones.
  std::string text;
  // [L]: the word of each long token, counted from 0; -1 for none.
  std::vector<int32_t> long_words;
  // The words that the model reads; those without pieces count.
  int64_t num_words = 0;
  // [G], or empty with fixed blocks. The end of the last one may be cut off.
  std::vector<OpenkpElement> elements;
  // The key phrases that occur in the input, longer ones than the model can say
  // among them.
  std::vector<PhrasePosition> labels;
  // None if the record has no key phrases.
  std::optional<OpenkpReferences> references;
  // What truncation took away.
  int64_t dropped_words = 0;

  int64_t TaskBytes() const override;
};

// Builds the example of a record; `where` starts each message. What does not
// fit in `max_long_length` or `max_global_length` is left out.
//   kInvalidArgument  only with official_compatibility: a url of more than 1000
//                     characters, a position or size that is a whole number,
//                     more words than `max_long_length` (doc/openkp.md 3.1,
//                     3.3)
absl::StatusOr<std::shared_ptr<const OpenkpExample>> MakeOpenkpExample(
    const OpenkpRecord& record, const Tokenizer& tokenizer,
    const OpenkpExampleOptions& options, const std::string& where);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_EXAMPLE_H_
