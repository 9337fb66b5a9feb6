#ifndef ETC_TASKS_TEXT_HUGGINGFACE_MAPPED_TEXT_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_MAPPED_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tasks/text/byte_range.h"

namespace etc::huggingface {

// A part of a text, perhaps normalized, that knows the bytes of the original
// which each of its bytes stands for. Always valid UTF-8.
class MappedText {
 public:
  // The bytes from `begin` on of the original, unchanged. `text` must outlive
  // this and its copies.
  MappedText(absl::string_view text, int64_t begin)
      : view_(text), begin_(begin) {}
  // A changed text, with the bytes of the original for each of its own;
  // `begin` as begin().
  MappedText(std::string text, std::vector<ByteRange> sources, int64_t begin)
      : owned_(std::move(text)),
        sources_(std::move(sources)),
        begin_(begin),
        is_owned_(true),
        is_mapped_(true) {}

  // Valid as long as this is neither changed nor moved.
  absl::string_view text() const {
    return is_owned_ ? absl::string_view(owned_) : view_;
  }
  int64_t size() const { return static_cast<int64_t>(text().size()); }
  // First byte of the original that belongs to this text.
  int64_t begin() const { return begin_; }

  // The smallest range of the original that covers the sources of all
  // characters with a byte in [from, to). 0 <= from < to <= size().
  ByteRange Source(int64_t from, int64_t to) const;

  // Bytes [range.begin, range.end) of this as a text of their own.
  MappedText Slice(ByteRange range) const;

  // Puts `prefix` before the text; it stands for nothing in the original.
  void Prepend(absl::string_view prefix);

 private:
  absl::string_view view_;
  std::string owned_;
  // Empty unless is_mapped_: byte i stands for byte begin_ + i - prefix_.
  std::vector<ByteRange> sources_;
  int64_t begin_ = 0;
  int64_t prefix_ = 0;  // bytes that stand for nothing
  bool is_owned_ = false;
  bool is_mapped_ = false;
};

// A MappedText that is made of another one from left to right. Append and Copy
// throw LimitReached (base/out_of_memory.h) beyond 256 MiB: each step of a file
// may replace a character by many.
class MappedTextBuilder {
 public:
  // `from` must outlive this.
  explicit MappedTextBuilder(const MappedText& from);

  // Appends bytes [range.begin, range.end) of the other text unchanged. They
  // begin and end with whole characters.
  void Copy(ByteRange range);
  // Appends `text`, which stands for bytes [range.begin, range.end) of the
  // other text; an empty range stands for nothing.
  void Append(absl::string_view text, ByteRange range);

  int64_t size() const { return static_cast<int64_t>(text_.size()); }
  // Ends the work.
  MappedText Build();

 private:
  const MappedText& from_;
  std::string text_;
  std::vector<ByteRange> sources_;
};

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_MAPPED_TEXT_H_
