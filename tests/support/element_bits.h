#ifndef ETC_TESTS_SUPPORT_ELEMENT_BITS_H_
#define ETC_TESTS_SUPPORT_ELEMENT_BITS_H_

#include <cstdint>
#include <random>
#include <vector>

namespace etc::kernels {

// Elements [begin, end) of a row that tests of kernels run on, in several
// kinds, with the words of SomeElements (base/lanes-inl.h).
class ElementBits {
 public:
  // All of them, without words; all of them by words; three of four; one of
  // sixteen, so that whole vectors have none.
  static constexpr int kAll = 0;
  static constexpr int kKinds[] = {kAll, 1, 2, 3};
  // SomeElements::first.
  static constexpr int64_t kFirst = 21;

  ElementBits(int64_t begin, int64_t end, int kind) : begin_(begin), end_(end) {
    std::mt19937 random(static_cast<uint32_t>(begin * 1000 + end * 10 + kind));
    // Bits outside of the range are set: they do not count.
    words_.assign(static_cast<size_t>(kFirst + end) / 32 + 2, 0xffffffffu);
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t chance = random() % 16;
      if ((kind == 2 && chance < 4) || (kind == 3 && chance > 0)) {
        words_[static_cast<size_t>(kFirst + i) / 32] &=
            ~(uint32_t{1} << ((kFirst + i) % 32));
      }
    }
    has_words_ = kind != kAll;
  }

  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }
  const uint32_t* words() const { return has_words_ ? words_.data() : nullptr; }
  // Returns true for the elements that count.
  bool Has(int64_t i) const {
    return i >= begin_ && i < end_ &&
           (words_[static_cast<size_t>(kFirst + i) / 32] >>
                ((kFirst + i) % 32) &
            1) != 0;
  }

 private:
  int64_t begin_;
  int64_t end_;
  bool has_words_ = false;
  std::vector<uint32_t> words_;
};

}  // namespace etc::kernels

#endif  // ETC_TESTS_SUPPORT_ELEMENT_BITS_H_
