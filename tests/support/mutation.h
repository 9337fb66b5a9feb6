#ifndef ETC_TESTS_SUPPORT_MUTATION_H_
#define ETC_TESTS_SUPPORT_MUTATION_H_

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace etc {

// Damages inputs at random, the same way for the same seed, so that a reader
// can be shown to answer any input. Sanitizers show that it reads nothing that
// it must not.
class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // `input` after one to four changes: a bit flipped, a byte or a number of 2,
  // 4 or 8 bytes replaced by one that is at some border, a piece deleted,
  // doubled, moved or taken from `dictionary`, the end cut off.
  std::string Mutate(std::string input,
                     const std::vector<std::string>& dictionary = {}) {
    for (uint64_t changes = 1 + Below(4); changes > 0; --changes) {
      Change(&input, dictionary);
    }
    return input;
  }

  // A number from 0 to bound - 1; 0 for a bound of 0.
  uint64_t Below(uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }

 private:
  void Change(std::string* input, const std::vector<std::string>& dictionary) {
    const size_t at = Below(input->size() + 1);
    const size_t length = 1 + Below(std::min<size_t>(input->size() - at, 16));
    switch (Below(dictionary.empty() ? 7 : 9)) {
      case 0:
      case 1:
        Replace(
            input, at,
            std::string(1, static_cast<char>(At(*input, at) ^ 1 << Below(8))));
        break;
      case 2:
        Replace(input, at, std::string(1, static_cast<char>(random_())));
        break;
      case 3:
        Replace(input, at, BorderNumber());
        break;
      case 4:
        input->erase(at, length);
        break;
      case 5:
        input->insert(at, input->substr(Below(input->size()), length));
        break;
      case 6:
        // Seldom much, or little would ever be read.
        input->resize(input->size() - std::min(input->size(), Below(20)));
        break;
      default:
        Replace(input, at, dictionary[Below(dictionary.size())]);
    }
  }

  static char At(const std::string& input, size_t at) {
    return at < input.size() ? input[at] : '\0';
  }

  // Overwrites the input with `piece`, beyond the end if need be.
  static void Replace(std::string* input, size_t at, const std::string& piece) {
    input->resize(std::max(input->size(), at + piece.size()));
    std::copy(piece.begin(), piece.end(),
              input->begin() + static_cast<int64_t>(at));
  }

  // 0, 1, all ones, the largest and the smallest signed one, a power of 2, or
  // one beside it; little-endian.
  std::string BorderNumber() {
    const size_t bytes = size_t{1} << Below(4);
    uint64_t number = uint64_t{1} << Below(8 * bytes);
    number += Below(3) - 1;
    if (Below(4) == 0) {
      number = ~number;
    }
    std::string piece;
    for (size_t i = 0; i < bytes; ++i) {
      piece.push_back(static_cast<char>(number >> (8 * i)));
    }
    return piece;
  }

  std::mt19937_64 random_;
};

// The largest part of the process that was in memory at once so far, in bytes.
inline uint64_t PeakMemoryBytes() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace etc

// Under the address sanitizer, one large allocation ends the program, and freed
// memory is not kept for long: it would count as used. ASAN_OPTIONS in the
// environment override this.
extern "C" [[gnu::used]] inline const char* __asan_default_options() {
  return "max_allocation_size_mb=64:quarantine_size_mb=4";
}

#endif  // ETC_TESTS_SUPPORT_MUTATION_H_
