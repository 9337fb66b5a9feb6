#include "tasks/inputs/example_writer.h"

#include <algorithm>
#include <cstddef>

namespace etc {

int32_t MultihopWriter::AddGlobal(int32_t token, int32_t type,
                                  bool ignore_hard_g2l) {
  example_->global_token_ids.push_back(token);
  example_->global_type_ids.push_back(type);
  source_.global_paragraph_breakpoints.push_back(0);
  source_.ignore_hard_g2l.push_back(ignore_hard_g2l ? 1 : 0);
  return static_cast<int32_t>(example_->global_length()) - 1;
}

void MultihopWriter::AddLong(int32_t token, int32_t type,
                             const Owners& owners) {
  example_->long_token_ids.push_back(token);
  example_->long_type_ids.push_back(type);
  source_.long_sentence_ids.push_back(owners.sentence);
  source_.long_paragraph_ids.push_back(owners.paragraph);
  source_.long_paragraph_breakpoints.push_back(0);
}

void MultihopWriter::EndSegment() {
  source_.long_paragraph_breakpoints.back() = 1;
  source_.global_paragraph_breakpoints.back() = 1;
}

void MultihopWriter::Link(int64_t long_token, int32_t global) {
  source_.linked_ids.resize(example_->long_token_ids.size(), -1);
  int32_t& linked = source_.linked_ids[static_cast<size_t>(long_token)];
  linked = std::max(linked, global);
}

void MultihopWriter::SetPattern(const PatternOptions& options,
                                bool flat_sequence) {
  example_->pattern = PatternFromMultihop(source_, options, flat_sequence);
}

void SetTypesAndPattern(const std::vector<int32_t>& sentences,
                        const PatternOptions& options, Example* example) {
  const size_t num_long = example->long_token_ids.size();
  const size_t num_global = example->global_token_ids.size();
  example->long_type_ids.assign(num_long, kPlainLongType);
  example->global_type_ids.assign(num_global, kPlainGlobalType);
  example->pattern = PatternFromExampleIds(
      /*long_example_ids=*/std::vector<int32_t>(num_long, 1),
      /*global_example_ids=*/std::vector<int32_t>(num_global, 1), sentences,
      options);
}

}  // namespace etc
