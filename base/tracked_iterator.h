#ifndef ETC_BASE_TRACKED_ITERATOR_H_
#define ETC_BASE_TRACKED_ITERATOR_H_

#include <cstddef>
#include <iterator>

namespace etc {

// Walks over a text for nlohmann's parser and leaves in `*reached` how far that
// has come: the place of mistakes that only the receiver of its events can see.
class TrackedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackedIterator(const char* position, const char** reached)
      : position_(position), reached_(reached) {}

  reference operator*() const { return *position_; }
  TrackedIterator& operator++() {
    *reached_ = ++position_;
    return *this;
  }
  TrackedIterator operator++(int) {
    TrackedIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const TrackedIterator& other) const {
    return position_ == other.position_;
  }
  bool operator!=(const TrackedIterator& other) const {
    return position_ != other.position_;
  }

 private:
  const char* position_;
  const char** reached_;
};

}  // namespace etc

#endif  // ETC_BASE_TRACKED_ITERATOR_H_
