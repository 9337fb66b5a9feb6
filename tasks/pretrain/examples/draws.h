#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_DRAWS_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_DRAWS_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace etc {

// The source of the random decisions of pre-training, in the order in which
// doc/pretraining.md mentions them: "draw u" is Uniform(), "draw a..b" is
// Integer(a, b). Examples are drawn from this interface alone, so that tests
// can script the draws.
class Draws {
 public:
  virtual ~Draws() = default;

  // Uniform in [0, 1).
  virtual double Uniform() = 0;

  // Uniform in [first, last], both ends included; throws c10::Error unless
  // first <= last.
  virtual int64_t Integer(int64_t first, int64_t last) = 0;

  // 0, ..., size - 1 in random order: a list is shuffled by
  // new[i] = old[order[i]].
  virtual std::vector<int32_t> Permutation(int32_t size) = 0;

  // Uniform in [0, bound), bound > 0.
  int64_t Below(int64_t bound) { return Integer(0, bound - 1); }
};

// Draws that follow from a key alone, a list of numbers that states their
// purpose: the stateless generator of doc/pretraining.md 12.6. Number i of key
// k is that of SplitMix64 in state k + i * 0x9e3779b97f4a7c15; integers are the
// high half of a product with the bound (a bias of at most bound / 2^64), and
// permutations Fisher and Yates' from the top. The same on every machine.
class KeyedDraws : public Draws {
 public:
  KeyedDraws(std::initializer_list<uint64_t> key);

  double Uniform() override;
  int64_t Integer(int64_t first, int64_t last) override;
  std::vector<int32_t> Permutation(int32_t size) override;

  // The next 64 bits.
  uint64_t Bits();

 private:
  uint64_t state_ = 0;
};

// Purpose of the draws of one key, its last number. A change here changes the
// examples of every earlier run that is resumed.
enum class DrawPurpose : uint64_t {
  // The chunks, partners and masks of a document (doc/pretraining.md 2, 3).
  kInstances = 0,
  // The hidden sentences of a window, and its masked words (9.2).
  kHiddenSentences = 1,
  kMaskedWords = 2,
  // The order in which windows are packed.
  kWindowOrder = 3,
  // Selection of the documents that are mixed, and the order of their pairs.
  kDocumentOrder = 4,
  kPairOrder = 5,
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_DRAWS_H_
