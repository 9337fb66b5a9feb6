#ifndef ETC_TASKS_DISTRIBUTED_LINE_PREFIXER_H_
#define ETC_TASKS_DISTRIBUTED_LINE_PREFIXER_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace etc {

// Puts a prefix before each line of a text that comes in pieces. A line ends
// with "\n", "\r" (progress that is overwritten) or "\r\n".
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // Returns the lines that `piece` completes, with their ends, so that lines of
  // several processes can be written between each other. What follows the last
  // end is kept, up to 1 MiB; a longer line is broken.
  std::string Add(absl::string_view piece);

  // Returns the last line, with a "\n", if its end is missing, else nothing.
  std::string Finish();

 private:
  std::string prefix_;
  std::string line_;
  bool after_return_ = false;  // a "\n" that comes next belongs to the "\r"
};

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_LINE_PREFIXER_H_
