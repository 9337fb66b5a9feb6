#ifndef ETC_TASKS_SQUAD_PREDICTION_H_
#define ETC_TASKS_SQUAD_PREDICTION_H_

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tasks/squad/example.h"
#include "tasks/squad/metric.h"
#include "tasks/squad/record.h"
#include "tasks/task/benchmark.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// See tasks/task/benchmark.h.
template <typename T>
struct SquadLogits {
  // [2, T], of starts and of ends, T tokens of the text; -1e9 of padding.
  T ends;

  static constexpr auto kMembers = std::make_tuple(&SquadLogits::ends);
};

// The model's logits for a window: [T] of starts and of ends.
struct SquadWindowLogits {
  std::shared_ptr<const SquadExample> example;
  std::vector<double> starts;
  std::vector<double> ends;
};

// The answers that the windows over a context, in any order, give together
// (doc/squad.md 6 and 7). Sums of logits are compared in double, and of equals
// the first comes first: by window, start rank, end rank.
//
// The text of an answer is the part of the context's words that ProjectAnswer
// finds for its pieces. That is WordPiece's rule: with other tokenizers it is
// the text from the first byte of the first piece to the last of the last one
// and of the combining marks behind it.
//
// A context without pieces has the answer "empty", in version 2.0 none.
SquadPrediction DecodeSquad(std::vector<SquadWindowLogits> windows,
                            const SquadOptions& options,
                            const Tokenizer& tokenizer);

// Reduces a prediction to the verdict that is scored. Null odds are the score
// of no answer less that of the best one, 1e6 where there is no other
// candidate.
SquadVerdict JudgeSquad(const SquadPrediction& prediction);

// Sets the text of a prediction to that of its best candidate, or to no answer
// where null odds are above the threshold of `options`.
void ChooseSquadText(const SquadOptions& options, SquadPrediction* prediction);

// The official files beside that of the predictions (doc/squad.md 8), one JSON
// object each:
//
//   n-best             {"ID": [{"text": ..., "probability": ..., "start_logit":
//                       ..., "end_logit": ...}, ...], ...}
//   null odds          {"ID": -1.5, ...}, of questions that have them
std::string SquadCandidatesToJson(const ById<SquadPrediction>& predictions);
std::string SquadNullOddsToJson(const ById<SquadPrediction>& predictions);

}  // namespace etc

#endif  // ETC_TASKS_SQUAD_PREDICTION_H_
