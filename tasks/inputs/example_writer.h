#ifndef ETC_TASKS_INPUTS_EXAMPLE_WRITER_H_
#define ETC_TASKS_INPUTS_EXAMPLE_WRITER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "attention/pattern_builders.h"
#include "tasks/data/example.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Parts of writing the examples of several tasks.

// Writes the tokens of an example whose input has segments that do not see one
// another locally (a question, documents), from left to right, and the source
// of its pattern (doc/model.md 6.4).
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
  // Begins another segment. A segment without tokens is part of the one before.
  void EndSegment();

  // Gives the example its pattern; to be called last.
  void SetPattern(const PatternOptions& options, bool flat_sequence = false);

  // Links a long token to a global one; of several the last global token stays.
  void Link(int64_t long_token, int32_t global);

 private:
  Example* const example_;
  MultihopSource source_;
};

// Types of an example without segments.
inline constexpr int32_t kPlainLongType = 1;
inline constexpr int32_t kPlainGlobalType = 0;

// Gives an example without segments these types and its pattern. `sentences` is
// [L], the global token that each long one belongs to, or -1.
void SetTypesAndPattern(const std::vector<int32_t>& sentences,
                        const PatternOptions& options, Example* example);

// Makes the example of a record of benchmark B in steps, which the class
// derived from it has.
template <typename B>
class ExampleBuilder {
 public:
  // `benchmark` must outlive the builder.
  explicit ExampleBuilder(const B& benchmark) : benchmark_(benchmark) {}

  // The example as far as it is made.
  std::shared_ptr<typename B::Example> Result() const { return example_; }

 protected:
  const typename B::Options& options() const { return benchmark_.options(); }
  const Tokenizer& tokenizer() const { return benchmark_.tokenizer(); }
  typename B::Example& example() const { return *example_; }

 private:
  const B& benchmark_;
  const std::shared_ptr<typename B::Example> example_ =
      std::make_shared<typename B::Example>();
};

}  // namespace etc

#endif  // ETC_TASKS_INPUTS_EXAMPLE_WRITER_H_
