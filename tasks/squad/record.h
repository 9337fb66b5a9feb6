#ifndef ETC_TASKS_SQUAD_RECORD_H_
#define ETC_TASKS_SQUAD_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace etc {

// A record and a prediction, as programs give and get them
// (tasks/inference/predictor.h).

// An answer that a person marked in the context.
struct SquadAnswer {
  std::string text = {};
  // Begin of the answer, in code points of the context. Only training needs it.
  std::optional<int64_t> start = std::nullopt;
};

// A question about a paragraph (doc/squad.md 1).
struct SquadRecord {
  std::string id = {};
  std::string question = {};
  std::string context = {};
  // Absent in data to predict for; empty for a question without answer.
  std::optional<std::vector<SquadAnswer>> answers = std::nullopt;
  // Version 2.0 has it.
  std::optional<bool> is_impossible = std::nullopt;

  // Texts, which should be UTF-8.
  static constexpr auto kTexts = std::make_tuple(
      &SquadRecord::id, &SquadRecord::question, &SquadRecord::context);
};

// An answer that was considered.
struct SquadCandidate {
  // Empty for no answer.
  std::string text = {};
  // Probability among the candidates of the question.
  double probability = 0;
  double start_logit = 0;
  double end_logit = 0;

  double score() const { return start_logit + end_logit; }
};

// An answer, and those that came close.
struct SquadPrediction {
  std::string text = {};
  // The best first; empty where only the text is known.
  std::vector<SquadCandidate> candidates = {};
};

}  // namespace etc

#endif  // ETC_TASKS_SQUAD_RECORD_H_
