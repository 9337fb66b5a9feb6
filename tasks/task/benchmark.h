#ifndef ETC_TASKS_TASK_BENCHMARK_H_
#define ETC_TASKS_TASK_BENCHMARK_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "attention/pattern_builders.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "etc/config.h"
#include "tasks/config/config.h"
#include "tasks/data/example.h"
#include "tasks/data/example_source.h"
#include "tasks/data/hold_out.h"
#include "tasks/task/scoring.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// The logits of a task are a struct template that has a member of type T for
// each tensor, and the list of its members:
//
//   template <typename T>
//   struct NqLogits {
//     T ends;         // [4, L]
//     T answer_type;  // [5]
//
//     static constexpr auto kMembers =
//         std::make_tuple(&NqLogits::ends, &NqLogits::answer_type);
//   };
//
// Shapes are those of one example. With T = torch::Tensor it holds the logits
// of a batch, each with the batch as its first axis; with T = LogitRow those of
// one example; with T = std::vector<float> a copy of those. Task code names the
// members; code for all tasks visits them with the functions below.

// The logits of one example in one tensor, the last axis fastest. Valid as long
// as the tensor.
using LogitRow = absl::Span<const float>;

// An example with its logits. T is LogitRow, or std::vector<float> for a copy
// of them, where a record is predicted from several examples.
template <typename E, template <typename> class Logits,
          typename T = std::vector<float>>
struct ExampleLogits {
  std::shared_ptr<const E> example;
  Logits<T> logits;
};

// Number of tensors of logits. Does not compile if a member is missing in the
// list.
template <template <typename> class Logits>
constexpr size_t NumLogits() {
  constexpr size_t kCount =
      std::tuple_size_v<std::remove_const_t<decltype(Logits<char>::kMembers)>>;
  static_assert(sizeof(Logits<char>) == kCount,
                "kMembers should list every member of the logits");
  return kCount;
}

// Calls visit(member) for each member, in the order of the list.
template <template <typename> class Logits, typename T, typename Visitor>
void ForEachMember(Logits<T>& logits, Visitor visit) {
  std::apply([&](const auto... members) { (visit(logits.*members), ...); },
             Logits<T>::kMembers);
}
template <template <typename> class Logits, typename T, typename Visitor>
void ForEachMember(const Logits<T>& logits, Visitor visit) {
  std::apply([&](const auto... members) { (visit(logits.*members), ...); },
             Logits<T>::kMembers);
}

// The logits whose members are convert(member), of type U.
template <typename U, template <typename> class Logits, typename T,
          typename Convert>
Logits<U> MapMembers(const Logits<T>& logits, Convert convert) {
  Logits<U> mapped;
  const auto map = [&]<size_t... i>(std::index_sequence<i...>) {
    ((mapped.*std::get<i>(Logits<U>::kMembers) =
          convert(logits.*std::get<i>(Logits<T>::kMembers))),
     ...);
  };
  map(std::make_index_sequence<NumLogits<Logits>()>());
  return mapped;
}

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
// (tasks/task/benchmark.h), O the options, G what a prediction, P, is compared
// with.
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

// What a configuration says to a task beside the object named as the task is.
struct TaskSettings {
  EtcConfig model;
  TokenizerKind tokenizer_kind = TokenizerKind::kWordPiece;
  int64_t max_long_length = 4096;
  int64_t max_global_length = 512;
  // For tasks whose texts are not split into sentences yet.
  SentenceSplitter split_sentences = SplitSentences;
};

// Those of a configuration, with SplitSentences.
TaskSettings TaskSettingsOf(const FinetuneConfig& config);

// The least sizes of the model's tables for a task's ids.
struct TableSizes {
  // Of the token table: more than the largest id of a token that stands for no
  // text, and how messages call these tokens ("the global tokens 1 to 5").
  int64_t tokens = 0;
  const char* token_names = "";
  // Of the table of types (segments).
  int64_t types = 0;
};

// Whether the tables of `model` have a row for every id. `pieces` is the size
// of the vocabulary, 0 where there is none yet; `source` starts each message.
//   kInvalidArgument  they do not
absl::Status CheckTables(const EtcConfig& model, const TableSizes& needed,
                         int64_t pieces, const std::string& source);

// Tokens that an example of a task cannot do without, and what they are for
// ("[CLS] and two [SEP]"); 0 where any number will do.
struct NeededLengths {
  int64_t long_tokens = 0;
  const char* long_use = "";
  int64_t global_tokens = 0;
  const char* global_use = "";
};

// Whether `input` has room for those; `source` starts each message.
//   kInvalidArgument  it has not
absl::Status CheckLengths(const InputOptions& input,
                          const NeededLengths& needed,
                          const std::string& source);

// Which records of data.train are held out, and how long a record may be.
HoldOutOptions HoldOutOptionsOf(const DataConfig& data);
RecordLimits RecordLimitsOf(const DataConfig& data);

// The lengths, the tokenizer, and the masks and relative ids of the model.
InputOptions InputOptionsOf(const TaskSettings& settings);

// Notes the mistake "<field> should be at least 1, but is 0" in `reader`.
template <typename Number>
void CheckAtLeast(JsonObjectReader& reader, const std::string& field,
                  Number value, std::type_identity_t<Number> least) {
  if (!(value >= least)) {
    reader.Fail(field,
                absl::StrCat("should be at least ", least, ", but is ", value));
  }
}

// What the struct D of a task may have in more than one form
// (tasks/task/benchmark.h), as one.

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

// A task is a struct of types (TaskTypes, which it derives from) and static
// functions, such as tasks/wikihop/task.h. TypedTask
// (tasks/task/benchmark_task.h) makes a Task of it, ScoreFiles
// (tasks/task/score_files.h) the command `score`, TaskEntryOf its entry in the
// registry. Each concept below is a group of what the struct has; an error of
// the compiler names the group and the expression that is missing. What a task
// may have besides:
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
//                                      (tasks/data/record_source.h)
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

#endif  // ETC_TASKS_TASK_BENCHMARK_H_
