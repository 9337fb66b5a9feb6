#ifndef ETC_ATTENTION_PATTERN_BUILDERS_H_
#define ETC_ATTENTION_PATTERN_BUILDERS_H_

#include <cstdint>
#include <vector>

#include "attention/pattern.h"

namespace etc {

// Properties of the model that every builder needs.
struct PatternOptions {
  int64_t local_radius = 84;
  int64_t relative_pos_max_distance = 12;
  bool hard_g2l = false;
  bool hard_l2g = false;
};

// Patterns of one example each. All throw c10::Error on vectors of different
// lengths, indices out of range and ids that are not allowed.

// Builds a pattern from example ids (doc/model.md 6.1): tokens see each other
// iff their example ids are equal. Ids must not be negative; padding has an id
// of its own.
//
//   long_example_ids:   [L]
//   global_example_ids: [G]
//   sentence_ids:       [L], the global token that each long token belongs to
AttentionPattern PatternFromExampleIds(
    const std::vector<int32_t>& long_example_ids,
    const std::vector<int32_t>& global_example_ids,
    const std::vector<int32_t>& sentence_ids, const PatternOptions& options);

// Builds a pattern from breakpoints, 1 at the last token of each packed example
// (doc/model.md 6.2). Not packed: a single 1 at the last real token.
//
//   long_breakpoints: [L], global_breakpoints: [G], sentence_ids: [L]
AttentionPattern PatternFromBreakpoints(
    const std::vector<int32_t>& long_breakpoints,
    const std::vector<int32_t>& global_breakpoints,
    const std::vector<int32_t>& sentence_ids, const PatternOptions& options);

// One global token for every `tokens_per_block` long ones, G = ceil(L /
// tokens_per_block) (doc/model.md 6.3). `input_mask` is [L], 1 for a real
// token.
AttentionPattern PatternFromFixedBlocks(const std::vector<int32_t>& input_mask,
                                        int64_t tokens_per_block,
                                        const PatternOptions& options);

// The global tokens that go with PatternFromFixedBlocks: [G],
// `global_token_id` for each block that holds a real token, else 0.
std::vector<int32_t> FixedBlockGlobalTokenIds(
    const std::vector<int32_t>& input_mask, int64_t tokens_per_block,
    int32_t global_token_id);

// An example of HotpotQA or WikiHop (doc/model.md 6.4).
struct MultihopSource {
  // [L]: 1 at the last long token of the question and of each paragraph.
  std::vector<int32_t> long_paragraph_breakpoints = {};
  // [L]: indices of global tokens, -1 for none and for padding.
  std::vector<int32_t> long_paragraph_ids = {};
  std::vector<int32_t> long_sentence_ids = {};
  // [L] or empty (no links): the global token that a mention refers to, or -1.
  std::vector<int32_t> linked_ids = {};
  // [G]
  std::vector<int32_t> global_paragraph_breakpoints = {};
  // [G] and [L], or empty (zeros): who is exempt from the hard masks.
  std::vector<uint8_t> ignore_hard_g2l = {};
  std::vector<uint8_t> ignore_hard_l2g = {};
};

// The long tokens see their own paragraph only, the global tokens all of the
// example (doc/model.md 6.4). With `flat_sequence`, one sequence without
// borders, whose sentences are the only structure: paragraphs, links and
// exemptions are ignored.
AttentionPattern PatternFromMultihop(const MultihopSource& source,
                                     const PatternOptions& options,
                                     bool flat_sequence = false);

}  // namespace etc

#endif  // ETC_ATTENTION_PATTERN_BUILDERS_H_
