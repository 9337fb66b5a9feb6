#include "tasks/text/huggingface/mapped_text.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"

namespace etc::huggingface {

ByteRange MappedText::Source(int64_t from, int64_t to) const {
  const absl::string_view text = this->text();
  const auto size = static_cast<int64_t>(text.size());
  if (!is_mapped_) {
    while (from > 0 && U8_IS_TRAIL(text[static_cast<size_t>(from)])) {
      --from;
    }
    while (to < size && U8_IS_TRAIL(text[static_cast<size_t>(to)])) {
      ++to;
    }
    return {.begin = begin_ + std::max<int64_t>(from - prefix_, 0),
            .end = begin_ + std::max<int64_t>(to - prefix_, 0)};
  }
  ByteRange source = sources_[static_cast<size_t>(from)];
  for (int64_t i = from + 1; i < to; ++i) {
    const ByteRange next = sources_[static_cast<size_t>(i)];
    if (next.begin == next.end) {
      continue;
    }
    if (source.begin == source.end) {
      source = next;
    } else {
      source.begin = std::min(source.begin, next.begin);
      source.end = std::max(source.end, next.end);
    }
  }
  return source;
}

MappedText MappedText::Slice(ByteRange range) const {
  const absl::string_view part =
      text().substr(static_cast<size_t>(range.begin),
                    static_cast<size_t>(range.end - range.begin));
  if (is_mapped_) {
    const int64_t begin =
        range.begin < range.end ? Source(range.begin, range.end).begin : begin_;
    return {std::string(part),
            std::vector<ByteRange>(sources_.begin() + range.begin,
                                   sources_.begin() + range.end),
            begin};
  }
  MappedText slice(part, begin_ + std::max<int64_t>(range.begin - prefix_, 0));
  slice.prefix_ = std::max<int64_t>(prefix_ - range.begin, 0);
  if (is_owned_) {
    slice.owned_ = std::string(part);
    slice.is_owned_ = true;
  }
  return slice;
}

void MappedText::Prepend(absl::string_view prefix) {
  owned_ = absl::StrCat(prefix, text());
  is_owned_ = true;
  if (is_mapped_) {
    sources_.insert(sources_.begin(), prefix.size(),
                    {.begin = begin_, .end = begin_});
  } else {
    prefix_ += static_cast<int64_t>(prefix.size());
  }
}

MappedTextBuilder::MappedTextBuilder(const MappedText& from) : from_(from) {
  text_.reserve(from.text().size());
  sources_.reserve(from.text().size());
}

void MappedTextBuilder::Copy(ByteRange range) {
  const absl::string_view text = from_.text();
  for (int64_t at = range.begin; at < range.end;) {
    int64_t end = at + 1;
    while (end < range.end && U8_IS_TRAIL(text[static_cast<size_t>(end)])) {
      ++end;
    }
    Append(text.substr(static_cast<size_t>(at), static_cast<size_t>(end - at)),
           {.begin = at, .end = end});
    at = end;
  }
}

void MappedTextBuilder::Append(absl::string_view text, ByteRange range) {
  constexpr size_t kMostBytes = size_t{256} << 20;
  if (text.size() > kMostBytes - text_.size()) {
    throw LimitReached(absl::StrCat("the tokenizer makes a text of ",
                                    from_.size(), " bytes longer than ",
                                    kMostBytes, " bytes"));
  }
  ByteRange source;
  if (range.begin < range.end) {
    source = from_.Source(range.begin, range.end);
  } else if (range.begin < from_.size()) {
    source.begin = from_.Source(range.begin, range.begin + 1).begin;
    source.end = source.begin;
  } else {
    source.begin =
        from_.size() > 0 ? from_.Source(0, from_.size()).end : from_.begin();
    source.end = source.begin;
  }
  text_.append(text.data(), text.size());
  sources_.resize(text_.size(), source);
}

MappedText MappedTextBuilder::Build() {
  return {std::move(text_), std::move(sources_), from_.begin()};
}

}  // namespace etc::huggingface
