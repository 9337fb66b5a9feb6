#ifndef ETC_TASKS_TASK_TYPES_H_
#define ETC_TASKS_TASK_TYPES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "attention/pattern_builders.h"
#include "tasks/logits.h"
#include "tasks/scoring.h"
#include "tasks/text/tokenizer.h"

namespace etc {

template <typename E, template <typename> class Logits>
class TypedHead;

// What examples of every task depend on: the field `input` of its options. A
// configuration says it outside of the object named as the task is.
struct InputOptions {
  int64_t max_long_length = 4096;
  int64_t max_global_length = 512;
  // False for BERT, whose tokens are all global.
  bool has_long_tokens = true;
  TokenizerKind tokenizer_kind = TokenizerKind::kWordPiece;
  PatternOptions pattern = {};
};

// What the functions of a task are given beside a record or an example. Both
// references must outlive it.
template <typename O>
struct TaskContext {
  const O& options;
  const Tokenizer& tokenizer;
  // The place of the record, which starts each message about it.
  std::string where;
};

// An example of a record, or why there is none.
template <typename E>
using ExampleOr = absl::StatusOr<std::shared_ptr<const E>>;

// The types of a task, which its struct derives from: R is a record of the
// official file, E the example that the model reads, L the logits of the head
// (tasks/logits.h), O the options, G what a prediction, P, is compared with.
template <typename R, typename E, template <typename> class L, typename O,
          typename G, typename P>
struct TaskTypes {
  using Record = R;
  using Example = E;
  template <typename T>
  using Logits = L<T>;
  using Options = O;
  using Gold = G;
  using Prediction = P;

  using Context = TaskContext<O>;
  using HeadPtr = std::shared_ptr<TypedHead<E, L>>;
  // What the model says of one example; of the examples of one record, where
  // they are decided together.
  using Output = ExampleLogits<E, L, LogitRow>;
  using Outputs = absl::Span<const ExampleLogits<E, L>>;
  using Answers = ScoredAnswers<G, P>;
  using PredictionsOr = absl::StatusOr<ById<P>>;
};

}  // namespace etc

#endif  // ETC_TASKS_TASK_TYPES_H_
