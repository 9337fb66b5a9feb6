#ifndef ETC_TASKS_TASK_DEFINITION_H_
#define ETC_TASKS_TASK_DEFINITION_H_

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/data/example.h"
#include "tasks/data/example_source.h"
#include "tasks/scoring.h"
#include "tasks/task_members.h"
#include "tasks/task_types.h"

namespace etc {

// A task is a struct of types (TaskTypes, which it derives from) and static
// functions, such as tasks/wikihop/task.h. TypedTask (tasks/typed_task.h) makes
// a Task of it, ScoreFiles (tasks/score_files.h) the command `score`,
// TaskEntryOf its entry in the registry. Each concept below is a group of what
// the struct has; an error of the compiler names the group and the expression
// that is missing. What a task may have besides:
//
//   Lengths(options)                   lengths below which it cannot be
//                                      configured (NeededLengths)
//   Tables(input)                      instead of Tables(kind), where BERT
//                                      serves as well as ETC; with the other, a
//                                      model without long tokens is refused
//   UseVocabulary(tokenizer, &options) looks tokens up, or refuses the
//                                      vocabulary by kInvalidArgument
//   kPredictionUnit                    what a file of predictions has for each
//                                      record, neither more nor less
//   CheckFiles(answers, files)         another rule for which files belong
//                                      together
//   kMayMissOfficially                 with kPredictionUnit: not so by the
//                                      official rules
//   kRefusesOtherIds                   without kPredictionUnit: predictions for
//                                      others than the records are a mistake
//   MayRepeat(gold, gold)              whether an id may come again with that
//                                      gold; else, never
//   ReadFile(path, options, limits)    the records of a file that does not have
//                                      them as JSON objects: FileRecords
//                                      (tasks/data/file_records.h)
//   CheckRecord(record, options, where), TrainingError(record, options)
//                                      what MakeExamples and Example::
//                                      training_error say of a record, where
//                                      that needs no tokenizer: data that are
//                                      in memory are checked before a run
//   Stratum(record)                    the text by whose values data.
//                                      dev_fraction divides records
//   DescribeRecords(train, dev, options)
//                                      lines about such data before a run
//   MoreFiles(answers, options)        the files that it writes beside that of
//                                      its predictions: PredictionFile
//   ReadRecord(reader, options, &record)
//                                      instead of that without options
//   CompleteOptions(options, data, &json)  adds to `json`, the object that the
//                                      options were read from, what the files
//                                      of `data` (DataConfig) say of them;
//                                      before training only
//   MainMetric(options)                instead of kMainMetric, where options
//                                      decide it
//   Score(answers, options) and FileContents(answers, options), instead of
//                                      those without options

// What a task can be described by without a tokenizer. kName is its directory,
// the field "task" and the object with its options.
template <typename D>
concept CanBeDescribed = requires(const InputOptions& input,
                                  const EtcConfig& model,
                                  const typename D::Options& options) {
  { D::kName } -> std::convertible_to<absl::string_view>;
  { D::kDescription } -> std::convertible_to<absl::string_view>;
  { MainMetricOf<D>(options) } -> std::same_as<std::string>;
  { TablesOf<D>(input) } -> std::same_as<TableSizes>;
  { D::MakeHead(model, options) } -> std::same_as<typename D::HeadPtr>;
};

// Options are the object of the configuration, and maybe have the field
// `official_compatibility`. ReadOptions reads all its fields but that one.
template <typename D>
concept HasOptions = requires(JsonObjectReader& reader,
                              typename D::Options* options) {
  { options->input } -> std::same_as<InputOptions&>;
  D::ReadOptions(reader, options);
};

// From the fields of a record to what the model reads; a mistake in a record is
// noted in the reader. AnswerFields are those that predicting does without, and
// so does not look at. Describe is for people.
template <typename D>
concept MakesExamples = requires(JsonObjectReader& reader,
                                 typename D::Record record,
                                 const typename D::Example& example,
                                 const typename D::Context& context) {
  requires std::derived_from<typename D::Example, Example>;
  requires requires { D::ReadRecord(reader, &record); } || requires {
    D::ReadRecord(reader, context.options, &record);
  };
  {
    AsExamples(D::MakeExamples(std::move(record), context))
    } -> std::convertible_to<absl::StatusOr<Examples>>;
  { D::Describe(example, context) } -> std::same_as<std::string>;
  {
    D::AnswerFields(context.options)
    } -> std::same_as<std::vector<std::string>>;
};

// A record is predicted from NumExamples(example) examples, or from one.
template <typename D>
concept DecodesSeveral = requires(const typename D::Example& example,
                                  const typename D::Outputs& outputs,
                                  const typename D::Context& context) {
  { D::NumExamples(example) } -> std::convertible_to<int64_t>;
  { D::Decode(outputs, context) } -> std::same_as<typename D::Prediction>;
};
template <typename D>
concept DecodesOne = requires(const typename D::Output& output,
                              const typename D::Context& context) {
  { D::Decode(output, context) } -> std::same_as<typename D::Prediction>;
};

// The metric, the same in training and for files. GoldOf is asked of examples
// that have an answer. The gold of a file comes from ParseGold, or from GoldOf
// a record, by its field `id`; that is nothing for one that lacks its answer.
template <typename D>
concept ReadsGold = requires(const std::string& text, const std::string& where,
                             ScoringRules rules) {
  {
    D::ParseGold(text, where, rules)
    } -> std::same_as<absl::StatusOr<
        std::pair<std::string, std::optional<typename D::Gold>>>>;
}
|| requires(const typename D::Record& record) {
  { D::GoldOf(record) } -> std::same_as<std::optional<typename D::Gold>>;
};
template <typename D>
concept ScoresPredictions = requires(const typename D::Example& example,
                                     const typename D::Answers& answers,
                                     const std::string& path) {
  { D::GoldOf(example) } -> std::convertible_to<typename D::Gold>;
  { D::ReadPredictions(path) } -> std::same_as<typename D::PredictionsOr>;
};
template <typename D>
concept TaskDefinition =
    CanBeDescribed<D> && HasOptions<D> && MakesExamples<D> &&
    (DecodesOne<D> || DecodesSeveral<D>)&&ReadsGold<D>&& ScoresPredictions<D> &&
    (NeedsNoOptions<D> || NeedsOptions<D>);

}  // namespace etc

#endif  // ETC_TASKS_TASK_DEFINITION_H_
