#ifndef ETC_TASKS_DESCRIPTION_H_
#define ETC_TASKS_DESCRIPTION_H_

#include <cstddef>
#include <functional>
#include <string>

#include "tasks/data/example.h"

namespace etc {

// What descriptions of examples for people (Task::Describe) have in common.

// "16 long tokens, 7 global tokens"
std::string DescribeLengths(const Example& example);

// "; training leaves it out: <why>", or nothing.
std::string DescribeLeftOut(const Example& example);

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
std::string DescribeGlobalTokens(const Example& example,
                                 const GlobalTokenTable& table);

}  // namespace etc

#endif  // ETC_TASKS_DESCRIPTION_H_
