#ifndef ETC_TASKS_TASK_DEFINITION_H_
#define ETC_TASKS_TASK_DEFINITION_H_

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "etc/config.h"
#include "tasks/data/example.h"
#include "tasks/data/example_source.h"
#include "tasks/logits.h"
#include "tasks/scoring.h"
#include "tasks/task_settings.h"
#include "tasks/text/tokenizer.h"

namespace etc {

class TaskHead;

// A task is a struct of types and static functions, such as tasks/wikihop/
// task.h. TypedTask (tasks/typed_task.h) makes a Task of it, ScoreFiles
// (tasks/score_files.h) the command `score`, TaskEntryOf its entry in the
// registry. Each concept below is a group of what the struct has; an error of
// the compiler names the group and the expression that is missing.

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

// What a task can be described by without a tokenizer. kName is its directory,
// the field "task" and the object with its options; Tables says which ids it
// needs rows for; MakeHead makes a TypedHead (tasks/typed_head.h).
template <typename D>
concept CanBeDescribed = requires(TokenizerKind kind, const EtcConfig& model,
                                  const typename D::Options& options) {
  { D::kName } -> std::convertible_to<absl::string_view>;
  { D::kDescription } -> std::convertible_to<absl::string_view>;
  { D::kMainMetric } -> std::convertible_to<absl::string_view>;
  { D::Tables(kind) } -> std::same_as<TableSizes>;
  { D::MakeHead(model, options) } -> std::same_as<std::shared_ptr<TaskHead>>;
};

// Options are the object of the configuration, with a part `example` and maybe
// `head`, `decoding` and the field `official_compatibility`; Logits is
// described in tasks/logits.h. Gold is what a Prediction is compared with.
template <typename D>
concept HasTaskTypes = requires(typename D::Options options) {
  typename D::Record;
  typename D::Gold;
  typename D::Prediction;
  options.example;
  NumLogits<D::template Logits>();
}
&&std::derived_from<typename D::Example, Example>;

// Reads all fields of the object but `official_compatibility`, which
// `options` has already.
template <typename D>
concept ReadsOptions = requires(JsonObjectReader& reader,
                                typename D::Options* options) {
  D::ReadOptions(reader, options);
};

// From the JSON text of a record to what the model reads; both may fail with
// kInvalidArgument. Describe is for people.
template <typename D>
concept MakesExamples = requires(const std::string& text,
                                 const std::string& where,
                                 typename D::Record record,
                                 const typename D::Example& example,
                                 const Tokenizer& tokenizer,
                                 const typename D::Options& options) {
  { D::Parse(text, where) } -> std::same_as<absl::StatusOr<typename D::Record>>;
  {
    AsExamples(
        D::MakeExamples(std::move(record), tokenizer, options.example, where))
    } -> std::convertible_to<absl::StatusOr<Examples>>;
  { D::Describe(example, tokenizer, options) } -> std::same_as<std::string>;
};

// A record is predicted from NumExamples(example) examples, each a D::Window,
// which is ExampleLogits<Example, ...>.
template <typename D>
concept DecodesWindows = requires(const typename D::Example& example,
                                  absl::Span<const typename D::Window> windows,
                                  const typename D::Options& options,
                                  const Tokenizer& tokenizer) {
  { D::NumExamples(example) } -> std::convertible_to<int64_t>;
  {
    D::Decode(windows, options, tokenizer)
    } -> std::same_as<typename D::Prediction>;
};

// Or from one.
template <typename D>
concept DecodesExamples =
    requires(const typename D::Example& example,
             const typename D::template Logits<LogitRow>& logits,
             const typename D::Options& options, const Tokenizer& tokenizer) {
  {
    D::Decode(example, logits, options, tokenizer)
    } -> std::same_as<typename D::Prediction>;
};

// The metric, the same in training and for files. GoldOf is asked of examples
// that have an answer only.
template <typename D>
concept ScoresPredictions =
    requires(const typename D::Example& example, const std::string& text,
             const std::string& where, ScoringRules rules,
             const ById<typename D::Gold>& gold,
             const ById<typename D::Prediction>& predictions) {
  { D::GoldOf(example) } -> std::convertible_to<typename D::Gold>;
  {
    D::ParseGold(text, where, rules)
    } -> std::same_as<absl::StatusOr<std::pair<std::string, typename D::Gold>>>;
  {
    D::ReadPredictions(where)
    } -> std::same_as<absl::StatusOr<ById<typename D::Prediction>>>;
  { D::FileContents(predictions, gold) } -> std::same_as<std::string>;
  { D::Score(gold, predictions, rules) } -> std::same_as<Scores>;
};

template <typename D>
concept TaskDefinition = CanBeDescribed<D> && HasTaskTypes<D> &&
    ReadsOptions<D> && MakesExamples<D> &&
    (DecodesExamples<D> || DecodesWindows<D>)&&ScoresPredictions<D>;

}  // namespace etc

#endif  // ETC_TASKS_TASK_DEFINITION_H_
