#include "tasks/distributed/line_prefixer.h"

#include "absl/strings/str_cat.h"

namespace etc {
namespace {

constexpr size_t kLongestLine = size_t{1} << 20;

}  // namespace

std::string LinePrefixer::Add(absl::string_view piece) {
  std::string lines;
  if (after_return_ && !piece.empty() && piece.front() == '\n') {
    lines += '\n';
    piece.remove_prefix(1);
    after_return_ = false;
  }
  while (!piece.empty()) {
    after_return_ = false;
    size_t size = piece.find_first_of("\n\r");
    if (size == absl::string_view::npos) {
      absl::StrAppend(&line_, piece);
      break;
    }
    const bool is_return = piece[size] == '\r';
    ++size;
    if (is_return && size < piece.size() && piece[size] == '\n') {
      ++size;
    }
    after_return_ = is_return && size == piece.size() && piece.back() == '\r';
    absl::StrAppend(&lines, prefix_, line_, piece.substr(0, size));
    line_.clear();
    piece.remove_prefix(size);
  }
  if (line_.size() > kLongestLine) {
    lines += Finish();
  }
  return lines;
}

std::string LinePrefixer::Finish() {
  if (line_.empty()) {
    return "";
  }
  std::string last = absl::StrCat(prefix_, line_, "\n");
  line_.clear();
  return last;
}

}  // namespace etc
