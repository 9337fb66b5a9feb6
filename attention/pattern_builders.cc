#include "attention/pattern_builders.h"

#include <c10/util/Exception.h>

#include <algorithm>

namespace etc {
namespace {

// out[t] = sum of in[u] over u >= t: the number of segments that end at t or
// later, so equal within a segment and 0 behind the last breakpoint.
std::vector<int32_t> ReverseCumulativeSum(const std::vector<int32_t>& in) {
  std::vector<int32_t> out(in.size());
  int32_t sum = 0;
  for (size_t t = in.size(); t-- > 0;) {
    TORCH_CHECK(in[t] == 0 || in[t] == 1, "breakpoint ", t,
                " should be 0 or 1, but is ", in[t]);
    sum += in[t];
    out[t] = sum;
  }
  return out;
}

std::vector<int32_t> ClampToOne(std::vector<int32_t> values) {
  for (int32_t& value : values) {
    value = std::min(value, 1);
  }
  return values;
}

void CheckNotNegative(const char* name, const std::vector<int32_t>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    TORCH_CHECK(ids[i] >= 0, name, "[", i, "] should not be negative, but is ",
                ids[i]);
  }
}

AttentionPattern EmptyPattern(int64_t long_length, int64_t global_length,
                              const PatternOptions& options) {
  AttentionPattern pattern =
      UnrestrictedPattern(long_length, global_length, options.local_radius,
                          options.relative_pos_max_distance);
  pattern.hard_g2l = options.hard_g2l;
  pattern.hard_l2g = options.hard_l2g;
  return pattern;
}

}  // namespace

AttentionPattern PatternFromExampleIds(
    const std::vector<int32_t>& long_example_ids,
    const std::vector<int32_t>& global_example_ids,
    const std::vector<int32_t>& sentence_ids, const PatternOptions& options) {
  CheckNotNegative("long_example_ids", long_example_ids);
  CheckNotNegative("global_example_ids", global_example_ids);
  AttentionPattern pattern =
      EmptyPattern(static_cast<int64_t>(long_example_ids.size()),
                   static_cast<int64_t>(global_example_ids.size()), options);
  pattern.long_segment = long_example_ids;
  pattern.long_example = long_example_ids;
  pattern.global_example = global_example_ids;
  pattern.sentence = sentence_ids;
  CheckPattern(pattern);
  return pattern;
}

AttentionPattern PatternFromBreakpoints(
    const std::vector<int32_t>& long_breakpoints,
    const std::vector<int32_t>& global_breakpoints,
    const std::vector<int32_t>& sentence_ids, const PatternOptions& options) {
  return PatternFromExampleIds(ReverseCumulativeSum(long_breakpoints),
                               ReverseCumulativeSum(global_breakpoints),
                               sentence_ids, options);
}

AttentionPattern PatternFromFixedBlocks(const std::vector<int32_t>& input_mask,
                                        int64_t tokens_per_block,
                                        const PatternOptions& options) {
  const std::vector<int32_t> global_mask = FixedBlockGlobalTokenIds(
      input_mask, tokens_per_block, /*global_token_id=*/1);
  std::vector<int32_t> sentence_ids(input_mask.size());
  for (size_t i = 0; i < sentence_ids.size(); ++i) {
    sentence_ids[i] =
        static_cast<int32_t>(static_cast<int64_t>(i) / tokens_per_block);
  }
  return PatternFromExampleIds(input_mask, global_mask, sentence_ids, options);
}

std::vector<int32_t> FixedBlockGlobalTokenIds(
    const std::vector<int32_t>& input_mask, int64_t tokens_per_block,
    int32_t global_token_id) {
  TORCH_CHECK(tokens_per_block >= 1,
              "tokens_per_block should be at least 1, but is ",
              tokens_per_block);
  const int64_t long_length = static_cast<int64_t>(input_mask.size());
  std::vector<int32_t> ids(
      long_length == 0 ? 0 : (long_length - 1) / tokens_per_block + 1);
  for (int64_t i = 0; i < long_length; ++i) {
    TORCH_CHECK(input_mask[i] == 0 || input_mask[i] == 1, "input_mask[", i,
                "] should be 0 or 1, but is ", input_mask[i]);
    if (input_mask[i] == 1) {
      ids[i / tokens_per_block] = global_token_id;
    }
  }
  return ids;
}

AttentionPattern PatternFromMultihop(const MultihopSource& source,
                                     const PatternOptions& options,
                                     bool flat_sequence) {
  const std::vector<int32_t> long_segment =
      ReverseCumulativeSum(source.long_paragraph_breakpoints);
  const std::vector<int32_t> global_segment =
      ReverseCumulativeSum(source.global_paragraph_breakpoints);
  AttentionPattern pattern = PatternFromExampleIds(
      ClampToOne(long_segment), ClampToOne(global_segment),
      source.long_sentence_ids, options);
  if (flat_sequence) {
    return pattern;
  }
  pattern.long_segment = long_segment;
  pattern.global_segment = global_segment;
  pattern.paragraph = source.long_paragraph_ids;
  if (!source.linked_ids.empty()) {
    pattern.linked = source.linked_ids;
  }
  if (!source.ignore_hard_g2l.empty()) {
    pattern.ignore_hard_g2l = source.ignore_hard_g2l;
  }
  if (!source.ignore_hard_l2g.empty()) {
    pattern.ignore_hard_l2g = source.ignore_hard_l2g;
  }
  CheckPattern(pattern);
  return pattern;
}

}  // namespace etc
