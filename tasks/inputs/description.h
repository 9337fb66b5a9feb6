#ifndef ETC_TASKS_INPUTS_DESCRIPTION_H_
#define ETC_TASKS_INPUTS_DESCRIPTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "attention/pattern.h"
#include "tasks/data/example.h"

namespace etc {

// Parts of the descriptions of examples for people (Task::Describe).

// "16 long tokens, 7 global tokens"
std::string DescribeLengths(const Example& example);

// "nothing truncated", or how the `dropped` tokens or texts were.
template <typename How>
std::string DescribeTruncation(int64_t dropped, How how) {
  return dropped == 0 ? "nothing truncated" : how(dropped);
}

// DescribeLengths of texts (tasks/inputs/text_input.h), and the pieces and
// sentences that had no room.
std::string DescribeTextSize(const Example& example, int64_t dropped_pieces,
                             int64_t dropped_sentences);

// A table with a line for each global token, an empty line between segments:
//
//   global kind          owns         sees         tokens
//        0 [CLS]         0            0            [CLS]
//
// with the long tokens that belong to it, the long tokens that it sees, and
// what those that belong to it are as their sentence.
struct GlobalTokenTable {
  // Least widths of the columns, in characters.
  int kind_width = 0;
  int range_width = 11;
  std::string tokens_heading = "tokens";
  // Stands behind the kind and between two tokens.
  std::string gap = " ";
  // The kind of global token g; may be empty.
  std::function<std::string(size_t g)> kind = nullptr;
  // Long token i.
  std::function<std::string(size_t i)> token;
  // Lines below that of global token g, each with its end; may be empty.
  std::function<std::string(size_t g)> details = nullptr;
};

// The lines above that table, which differ between tasks:
//
//   question 7: who wrote blue?
//   answer: ann lee; training leaves it out: <why>
//   16 long tokens, 7 global tokens; nothing truncated
//   masks: ...
struct ExampleHeading {
  std::string title;
  std::string answer_name = "answer";
  // Answer of an example that has one.
  std::string answer;
  std::string size;
  // Stands before the masks.
  std::string before_masks;
};
std::string DescribeExample(const Example& example,
                            const ExampleHeading& heading,
                            const GlobalTokenTable& table);

// Visibility in an example, for people to read (`realetc inspect`). Sets of
// indices are ranges, both ends included: "0-3 7", or "none".

// The long tokens that a global token sees.
std::string LongTokensSeenBy(const AttentionPattern& pattern, int32_t global);

// The long tokens whose sentence or paragraph is a global token.
std::string LongTokensOwnedBy(const AttentionPattern& pattern, int32_t global);

// "local radius 84, hard g2l mask, soft l2g mask"
std::string DescribeMasks(const AttentionPattern& pattern);

}  // namespace etc

#endif  // ETC_TASKS_INPUTS_DESCRIPTION_H_
