#ifndef ETC_TASKS_EXAMPLE_WRITER_H_
#define ETC_TASKS_EXAMPLE_WRITER_H_

#include <cstdint>
#include <vector>

#include "attention/pattern_builders.h"
#include "tasks/data/example.h"

namespace etc {

// What the examples of several tasks have in common.

// Writes the tokens of an example whose input has segments that do not see each
// other locally (a question, documents), from left to right, and what its
// pattern is made from (doc/model.md 6.4).
class MultihopWriter {
 public:
  // The global tokens that a long token belongs to, -1 for none.
  struct Owners {
    int32_t sentence = -1;
    int32_t paragraph = -1;
  };

  // `example` must outlive the writer.
  explicit MultihopWriter(Example* example) : example_(example) {}

  // Returns the index of the new token.
  int32_t AddGlobal(int32_t token, int32_t type, bool ignore_hard_g2l);
  void AddLong(int32_t token, int32_t type, const Owners& owners);
  // What comes next is another segment. One without tokens is part of the one
  // before.
  void EndSegment();

  // Gives the example its pattern; to be called last.
  void SetPattern(const PatternOptions& options, bool flat_sequence = false);

  // Links a long token to a global one; of several the last global token stays.
  void Link(int64_t long_token, int32_t global);

 private:
  Example* const example_;
  MultihopSource source_;
};

// Gives an example without segments its types, one for all long and one for all
// global tokens, and its pattern. `sentences` is [L], the global token that
// each long one belongs to, or -1.
void SetTypesAndPattern(int32_t long_type, int32_t global_type,
                        const std::vector<int32_t>& sentences,
                        const PatternOptions& options, Example* example);

}  // namespace etc

#endif  // ETC_TASKS_EXAMPLE_WRITER_H_
