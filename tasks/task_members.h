#ifndef ETC_TASKS_TASK_MEMBERS_H_
#define ETC_TASKS_TASK_MEMBERS_H_

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "tasks/data/example_source.h"
#include "tasks/scoring.h"
#include "tasks/task_settings.h"
#include "tasks/task_types.h"

namespace etc {

// What the struct D of a task may have in more than one form
// (tasks/task_definition.h), as one.

// What D::MakeExamples may return: one example or several, or a status.
template <typename E>
Examples AsExamples(std::shared_ptr<const E> example) {
  return {std::move(example)};
}
template <typename E>
Examples AsExamples(const std::vector<std::shared_ptr<const E>>& examples) {
  return {examples.begin(), examples.end()};
}
template <typename T>
absl::StatusOr<Examples> AsExamples(absl::StatusOr<T> made) {
  ETC_RETURN_IF_ERROR(made.status());
  return AsExamples(*std::move(made));
}

// Which ids D needs rows for: D::Tables(kind) of the vocabulary, or, where more
// decides it, D::Tables(input).
template <typename D>
TableSizes TablesOf(const InputOptions& input) {
  if constexpr (requires { D::Tables(input); }) {
    return D::Tables(input);
  } else {
    return D::Tables(input.tokenizer_kind);
  }
}

// By which metric checkpoints are compared: D::kMainMetric or, where options
// decide it, D::MainMetric(options).
template <typename D>
std::string MainMetricOf(const typename D::Options& options) {
  if constexpr (requires { D::MainMetric(options); }) {
    return D::MainMetric(options);
  } else {
    return D::kMainMetric;
  }
}

template <typename D>
concept NeedsNoOptions = requires(const typename D::Answers& answers) {
  { D::FileContents(answers) } -> std::same_as<std::string>;
  { D::Score(answers) } -> std::same_as<Scores>;
};
template <typename D>
concept NeedsOptions = requires(const typename D::Answers& answers,
                                const typename D::Options& options) {
  { D::FileContents(answers, options) } -> std::same_as<std::string>;
  { D::Score(answers, options) } -> std::same_as<Scores>;
};

template <typename D>
Scores ScoreOf(const typename D::Answers& answers,
               const typename D::Options& options) {
  if constexpr (NeedsOptions<D>) {
    return D::Score(answers, options);
  } else {
    return D::Score(answers);
  }
}
template <typename D>
std::string FileContentsOf(const typename D::Answers& answers,
                           const typename D::Options& options) {
  if constexpr (NeedsOptions<D>) {
    return D::FileContents(answers, options);
  } else {
    return D::FileContents(answers);
  }
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_MEMBERS_H_
