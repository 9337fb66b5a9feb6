#ifndef ETC_TASKS_TASK_BENCHMARK_H_
#define ETC_TASKS_TASK_BENCHMARK_H_

#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "attention/pattern_builders.h"
#include "base/fields.h"
#include "base/json_reader.h"
#include "base/non_finite_json.h"
#include "base/status_macros.h"
#include "etc/config.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/data/example.h"
#include "tasks/data/hold_out.h"
#include "tasks/data/record_source.h"
#include "tasks/metrics.h"
#include "tasks/task/notices.h"
#include "tasks/task/prediction.h"
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

// Throws c10::Error: a row of `size` logits has none of index `index`.
[[noreturn]] void ThrowNoLogit(size_t index, size_t size);

// The logits of one example in one tensor, the last axis fastest. Valid as long
// as the tensor. A head may give fewer than Decode reads, so that operator[]
// throws c10::Error beyond the end.
class LogitRow : public absl::Span<const float> {
 public:
  using Span = absl::Span<const float>;

  LogitRow() = default;
  LogitRow(const float* data, size_t size) : Span(data, size) {}
  LogitRow(Span row) : Span(row) {}  // NOLINT(google-explicit-constructor)
  LogitRow(const std::vector<float>& row)  // NOLINT
      : Span(row) {}

  const float& operator[](size_t index) const {
    if (index >= size()) {
      ThrowNoLogit(index, size());
    }
    return data()[index];
  }
};

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

// The result of a task's metric on a data set.
struct Scores {
  // The official scores, the task's main metric among them.
  Metrics metrics;
  // Further output of `realetc score`.
  Metrics diagnostics;
};

// Gold or predictions of a data set, each with the id of its record, in the
// order of the data. In files each id occurs once (IdPlaces).
template <typename T>
using ById = std::vector<std::pair<std::string, T>>;

// "all 80 predictions are the same" if they are several and have one value of
// `predicted`, although the gold has several of `right`; else empty. Both are
// members or functions.
template <typename G, typename Right, typename P, typename Predicted>
std::string SameAnswersRemark(const ById<G>& gold, Right right,
                              const ById<P>& predictions, Predicted predicted) {
  const auto are_same = [](const auto& answers, const auto& value_of) {
    return absl::c_all_of(answers, [&](const auto& answer) {
      return std::invoke(value_of, answer.second) ==
             std::invoke(value_of, answers.front().second);
    });
  };
  return predictions.size() < 2 || !are_same(predictions, predicted) ||
                 are_same(gold, right)
             ? ""
             : absl::StrCat("all ", predictions.size(),
                            " predictions are the same");
}

// Input of a metric.
template <typename Gold, typename Prediction>
struct ScoredAnswers {
  ById<Gold> gold = {};
  ById<Prediction> predictions = {};
  ScoringRules rules = ScoringRules::kDefault;
  // Text that the model did not read of the record of each prediction; empty
  // where predictions are those of a file.
  std::vector<std::vector<TruncatedPart>> truncated = {};
};

// Adds "truncated": {"pieces": 37} at the end of `json`, a JSON object with
// fields, and "from" behind a part that has it; nothing without parts.
void AddTruncated(absl::Span<const TruncatedPart> parts, std::string* json);

// A line with the JSON text `json(id, prediction)` for each prediction, and
// what AddTruncated adds to it.
template <typename Gold, typename Prediction, typename ToJson>
std::string PredictionLines(const ScoredAnswers<Gold, Prediction>& answers,
                            ToJson json) {
  std::string lines;
  for (size_t i = 0; i < answers.predictions.size(); ++i) {
    const auto& [id, prediction] = answers.predictions[i];
    std::string line = json(id, prediction);
    if (!answers.truncated.empty()) {
      AddTruncated(answers.truncated.at(i), &line);
    }
    absl::StrAppend(&lines, line, "\n");
  }
  return lines;
}

// The values that count where only the last one of an id does. `values` must
// outlive the result.
template <typename T>
std::map<absl::string_view, const T*> LastOfEachId(const ById<T>& values) {
  std::map<absl::string_view, const T*> last;
  for (const auto& [id, value] : values) {
    last.insert_or_assign(id, &value);
  }
  return last;
}

// The value of `id`, or null.
template <typename T>
const T* FindById(const std::map<absl::string_view, const T*>& values,
                  absl::string_view id) {
  const auto found = values.find(id);
  return found == values.end() ? nullptr : found->second;
}

// The prediction for each value of `gold`, null if there is none. If an id
// comes several times in both, its first prediction is for its first gold and
// so on; what is left of its gold gets its last one.
template <typename Gold, typename Prediction>
std::vector<const Prediction*> PredictionsFor(
    const ById<Gold>& gold, const ById<Prediction>& predictions) {
  std::map<absl::string_view, std::vector<const Prediction*>> of_id;
  for (const auto& [id, prediction] : predictions) {
    of_id[id].push_back(&prediction);
  }
  std::map<absl::string_view, size_t> used;
  std::vector<const Prediction*> found;
  for (const auto& [id, value] : gold) {
    const std::vector<const Prediction*>& candidates = of_id[id];
    const size_t next = used[id]++;
    found.push_back(candidates.empty()         ? nullptr
                    : next < candidates.size() ? candidates[next]
                                               : candidates.back());
  }
  return found;
}

// Options that the examples of every task depend on: the field `input` of its
// options. A configuration says them outside of the object of the task's name.
struct InputOptions {
  int64_t max_long_length = 4096;
  int64_t max_global_length = 512;
  // False for BERT, whose tokens are all global.
  bool has_long_tokens = true;
  // False for RoBERTa, whose tokens are all of one type.
  bool has_second_type = true;
  TokenizerKind tokenizer_kind = TokenizerKind::kWordPiece;
  PatternOptions pattern = {};
  // For tasks whose texts are not split into sentences yet (data.sentences).
  SentenceSplitter split_sentences = SplitSentences;
};

// The input options of a model, of the default lengths and with SplitSentences.
InputOptions InputOptionsOf(const EtcConfig& model);
// The same of a run: with its lengths, and its kind of tokenizer.
InputOptions InputOptionsOf(const RunConfig& config);

// The least sizes of the model's tables for a task's ids.
struct TableSizes {
  // Rows of the token table: more than the largest id of a token that stands
  // for no text, and the name of these tokens in messages ("the global tokens 1
  // to 5").
  int64_t tokens = 0;
  const char* token_names = "";
  // Rows of the table of types (segments).
  int64_t types = 0;
};

// Checks that the tables of `model` have a row for every id. `pieces` is the
// size of the vocabulary, 0 where there is none yet; `source` starts each
// message.
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

// Checks that `input` has room for those; `source` starts each message.
//   kInvalidArgument  it has not
absl::Status CheckLengths(const InputOptions& input,
                          const NeededLengths& needed,
                          const std::string& source);

// Which records of data.train are held out.
HoldOutOptions HoldOutOptionsOf(const DataConfig& data);

// The description of a benchmark that does not depend on options.
struct BenchmarkInfo {
  // The directory, the field "task" and the object with its options.
  std::string name;
  // One line for people.
  std::string description;
  // The unit of a prediction file ("line"), which has one for each record,
  // neither more nor less. Empty: it may have others.
  std::string prediction_unit = {};
  // With a unit: records may lack predictions by the official rules.
  bool may_miss_officially = false;
  // Without a unit: predictions for others than the records are a mistake,
  // unless by the official rules.
  bool refuses_other_ids = false;
  // The field data.sentences decides how texts are split
  // (InputOptions::split_sentences).
  bool splits_sentences = false;
  // Gold depends on these sentences, too. Only with splits_sentences.
  bool has_gold_by_sentence = false;
  // BERT, a model without long tokens, can read its examples.
  bool serves_bert = false;
  // The records of its files are not JSON objects: ReadFile reads them.
  bool has_own_files = false;
  // Stratum says by which values data.dev_fraction divides the records. Only
  // with has_own_files.
  bool holds_out_records = false;
  // WhyLeftOut looks at all training records before a run.
  bool tells_left_out = false;
  // Official epochs count records, although these may have several examples.
  bool epochs_count_records = false;
};

template <typename E, template <typename> class Logits>
class BenchmarkHead;

// A benchmark: from its official file to its official score. Derive a class and
// override the pure functions, which come first in each part, and what differs:
// `override` finds what is misspelt. It becomes a Task by MakeTask, an entry of
// tasks/registry.cc by BenchmarkEntry (tasks/task/benchmark_task.h), and the
// command `score` by ScoreFiles (tasks/task/score_files.h). Its head is not
// here, but a function of its own that BenchmarkEntry is given: metrics and
// examples do without LibTorch.
//
//   R  a record of the official file, with a field `id`, a string; kTexts names
//      its texts, which should be UTF-8 (tasks/task/record_texts.h)
//   E  the example that the model reads, derived from Example
//   L  the logits of the head (above)
//   O  the options, with a field `input`, InputOptions; ConfigTable<O>
//      (base/fields.h) has a row for each field of the object of the task's
//      name, which reads, checks and describes it
//   G  the gold answer of a record
//   P  a prediction, which is compared with it
//
// Immutable: all methods may be called from several threads.
template <typename R, typename E, template <typename> class L, typename O,
          typename G, typename P>
class Benchmark {
 public:
  using Record = R;
  using Example = E;
  template <typename T>
  using Logits = L<T>;
  using Options = O;
  using Gold = G;
  using Prediction = P;

  using HeadPtr = std::shared_ptr<BenchmarkHead<E, L>>;
  // The examples of a record, or why there are none.
  using ExamplesOr = absl::StatusOr<std::vector<std::shared_ptr<E>>>;
  // An example with its logits, which must outlive it.
  using Output = ExampleLogits<E, L, LogitRow>;
  using Outputs = absl::Span<const Output>;
  using Answers = ScoredAnswers<G, P>;
  using PredictionsOr = absl::StatusOr<ById<P>>;

  // With the default options and without a tokenizer.
  Benchmark() = default;
  // `tokenizer` must outlive it; null where no examples are made, described or
  // decoded.
  explicit Benchmark(O options, const Tokenizer* tokenizer = nullptr)
      : options_(std::move(options)), tokenizer_(tokenizer) {}
  virtual ~Benchmark() = default;

  const O& options() const { return options_; }
  // Throws c10::Error if there is none.
  const Tokenizer& tokenizer() const {
    TORCH_CHECK(tokenizer_ != nullptr, info().name, " has no tokenizer here");
    return *tokenizer_;
  }

  // --- configuration, to be overridden ---------------------------------------

  virtual BenchmarkInfo info() const = 0;
  // The metric by which checkpoints are compared, one of those of Score. Its
  // name tells the direction: larger is better, but for IsLowerBetter
  // (tasks/metrics.h), "error_rate" say.
  virtual std::string main_metric() const = 0;
  // The ids that the model's tables need rows for.
  virtual TableSizes Tables(const InputOptions& input) const = 0;

  // --- configuration, may be overridden --------------------------------------

  // The rules of scores: official with the option `official_compatibility`,
  // where there is one.
  virtual ScoringRules rules() const { return ScoringRules::kDefault; }
  // Checks options across fields, when they have been read by their table, and
  // fills in absent ones whose default depends on others; `options->input` is
  // there. Mistakes are noted in the reader.
  virtual void CheckOptions(JsonObjectReader& /*reader*/,
                            O* /*options*/) const {}
  // The lengths below which it cannot be configured.
  virtual NeededLengths Lengths(const O& /*options*/) const { return {}; }
  // Looks tokens up for the options.
  //   kInvalidArgument  the vocabulary does not serve
  virtual absl::Status UseVocabulary(const Tokenizer& /*tokenizer*/,
                                     O* /*options*/) const {
    return absl::OkStatus();
  }
  // Warnings about options() that are allowed; with the lengths of inputs and
  // what UseVocabulary has found.
  virtual std::vector<std::string> Warnings() const { return {}; }
  // Adds to `json`, the object that options() were read from, what the files of
  // `data` say of them. Before training only.
  virtual absl::Status CompleteOptions(const DataConfig& /*data*/,
                                       nlohmann::json* /*json*/) const {
    return absl::OkStatus();
  }

  // --- file -> record -> examples, to be overridden --------------------------

  // Reads the fields of a record; those that it does not ask for are ignored.
  // Mistakes are noted in the reader.
  virtual void ReadRecord(JsonObjectReader& reader, R* record) const = 0;
  // The fields that predicting does without, and so does not look at.
  virtual std::vector<std::string> AnswerFields() const = 0;
  // The examples of a record, most often one (NumExamples); with tokenizer().
  // They have an answer (Example::has_answer) if the record has gold (GoldOf).
  // `where` is the place of the record and starts each message.
  virtual ExamplesOr MakeExamples(R record, const std::string& where) const = 0;
  // An example for people, on several lines: tokens with their globals, masks
  // as ranges, the gold answer; with tokenizer().
  virtual std::string Describe(const E& example) const = 0;

  // --- file -> record -> examples, may be overridden -------------------------

  // Reads a file whose records are not JSON objects (info().has_own_files).
  virtual absl::StatusOr<std::vector<FileRecord>> ReadFile(
      const std::string& path, const RecordLimits& /*limits*/) const {
    return absl::InternalError(
        absl::StrCat(path, ": ", info().name, " has no files of its own"));
  }
  // Names those of AnswerFields that hold texts which may stand in the record;
  // labels and numbers are none.
  virtual std::vector<std::string> AnswerTextFields() const { return {}; }
  // Names the fields that may hold the text of the document for people: the
  // first of them that a record has does. Without one the longest field does.
  virtual std::vector<std::string> DocumentFields() const { return {}; }
  // Puts texts for people in the place of what points to them, in an object of
  // the AnswerFields or of PredictionJson; `record` is the JSON of the record.
  virtual void ShowAnswers(const nlohmann::json& /*record*/,
                           nlohmann::json* /*answers*/) const {}
  // Returns the errors of MakeExamples that can be told without a tokenizer,
  // beyond those of ReadRecord: records are checked before a run. `where` is
  // the place of the record and starts each message.
  virtual absl::Status CheckRecord(const R& /*record*/,
                                   const std::string& /*where*/) const {
    return absl::OkStatus();
  }
  // The same of Example::training_error; empty: there is none.
  virtual std::string TrainingError(const R& /*record*/) const { return ""; }
  // The reason why training leaves out all examples of a correct record
  // (Example::left_out), whatever the lengths of inputs; empty: none. Only with
  // info().tells_left_out.
  virtual std::string WhyLeftOut(const R& /*record*/) const { return ""; }
  // The meaning of a record's id.
  virtual etc::Example::IdKind IdKindOf(const R& /*record*/) const {
    return etc::Example::IdKind::kUnique;
  }
  // The text by whose values data.dev_fraction divides records
  // (info().holds_out_records).
  virtual std::string Stratum(const R& /*record*/) const { return ""; }
  // Facts and warnings about the records of has_own_files, before a run.
  virtual Notices DescribeRecords(
      const std::vector<FileRecord>& /*train*/,
      const std::vector<FileRecord>& /*dev*/) const {
    return {};
  }
  // The text of the record that its examples leave out because they are full,
  // given the first of them; with tokenizer(). Without it nobody is told.
  virtual std::vector<TruncatedPart> Truncated(const E& /*example*/) const {
    return {};
  }
  // The kinds of global tokens that stand for no text, by their ids; with
  // tokenizer(). Empty: there are none.
  virtual std::vector<GlobalTokenName> GlobalTokenNames() const { return {}; }

  // --- logits -> prediction -> score, to be overridden -----------------------

  // The prediction for a record, from all of its examples; with tokenizer().
  virtual P Decode(Outputs outputs) const = 0;
  // The gold of an example that has an answer.
  virtual G GoldOf(const E& example) const = 0;
  // The gold of a record; nothing if it lacks its answer.
  virtual std::optional<G> GoldOf(const R& record) const = 0;
  // Reads a prediction file in the official format, or lines of PredictionJson
  // where these are JSON, too.
  virtual PredictionsOr ReadPredictions(const std::string& path) const = 0;
  // The contents of such a file.
  virtual std::string FileContents(const Answers& answers) const = 0;
  // The prediction for one record as a JSON object on one line, in ASCII,
  // without a newline; that of the file where the file has one for each record.
  virtual std::string PredictionJson(const std::string& id,
                                     const P& prediction) const = 0;
  // The metrics, the same in training and for files.
  virtual Scores Score(const Answers& answers) const = 0;

  // --- logits -> prediction -> score, may be overridden ----------------------

  // Returns true if a record has gold; to be overridden where GoldOf takes
  // time.
  virtual bool HasGold(const R& record) const {
    return GoldOf(record).has_value();
  }
  // The number of examples of the record that an example is of.
  virtual int64_t NumExamples(const E& /*example*/) const { return 1; }
  // The id and the gold of a record, given its JSON text.
  //   kInvalidArgument  what ParseRecord and CheckRecord say
  virtual absl::StatusOr<std::pair<std::string, std::optional<G>>> ParseGold(
      const std::string& text, const std::string& where,
      ScoringRules /*rules*/) const {
    ETC_ASSIGN_OR_RETURN(R record, ParseRecord(text, where));
    ETC_RETURN_IF_ERROR(CheckRecord(record, where));
    std::optional<G> gold = GoldOf(record);
    return std::pair(std::move(record.id), std::move(gold));
  }
  // Returns true if an id may come again with `later` where it had `earlier`.
  virtual bool MayRepeat(const G& /*earlier*/, const G& /*later*/) const {
    return false;
  }
  // The files that are written beside the prediction file.
  virtual std::vector<PredictionFile> MoreFiles(
      const Answers& /*answers*/) const {
    return {};
  }
  // Returns true if Score decides by the option `option` what a prediction of a
  // file says; else it is as the file has it.
  virtual bool DecodesAgain(const P& /*prediction*/,
                            absl::string_view /*option*/) const {
    return false;
  }
  // Checks that gold and predictions belong together, beyond their ids.
  virtual absl::Status CheckFiles(const Answers& /*answers*/,
                                  const ScoredFiles& /*files*/) const {
    return absl::OkStatus();
  }
  // A remark for people beside the scores of an evaluation, as of a model that
  // says the same of all records; empty: there is none.
  virtual std::string Remark(const Answers& /*answers*/) const { return ""; }
  // The score by which people compare single records, and its name, which tells
  // its direction (IsLowerBetter); `answers` are those of one. Another one than
  // the main metric where that says nothing of one record, as a correlation.
  virtual std::pair<std::string, double> RecordScore(
      const Answers& answers) const {
    return {main_metric(),
            FindMetric(Score(answers).metrics, main_metric()).value_or(0)};
  }

  // --- of all benchmarks -----------------------------------------------------

  // The rules by which files are scored: official if `asked` or rules() are.
  ScoringRules RulesOfFiles(ScoringRules asked = ScoringRules::kDefault) const {
    return asked == ScoringRules::kOfficial ? asked : rules();
  }

  // The records of the files that `patterns` name, all in memory
  // (info().has_own_files).
  absl::StatusOr<std::vector<FileRecord>> ReadFiles(
      const std::vector<std::string>& patterns,
      const RecordLimits& limits) const {
    return ReadAllFiles(
        patterns,
        [this](const std::string& path, const RecordLimits& of_records) {
          return ReadFile(path, of_records);
        },
        /*listener=*/nullptr, limits);
  }

  // A record from its JSON value or text. `where` starts each message.
  //   kInvalidArgument  the first mistake that ReadRecord notes
  absl::StatusOr<R> RecordFromJson(const nlohmann::json& json,
                                   const std::string& where) const {
    return ReadObject<R>(json, where, [&](JsonObjectReader& reader, R* record) {
      ReadRecord(reader, record);
    });
  }
  absl::StatusOr<R> ParseRecord(absl::string_view text,
                                const std::string& where) const {
    ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, where));
    return RecordFromJson(json, where);
  }
  // The same as if it had none of the AnswerFields, in which there may also be
  // numbers that are not finite.
  absl::StatusOr<R> ParseRecordWithoutAnswers(absl::string_view text,
                                              const std::string& where) const {
    ETC_ASSIGN_OR_RETURN(nlohmann::json json,
                         ParseJsonWithNonFinite(text, where, [](auto) {
                           return std::string("null");
                         }));
    if (json.is_object()) {
      for (const std::string& field : AnswerFields()) {
        json.erase(field);
      }
    }
    return RecordFromJson(json, where);
  }

 private:
  const O options_ = {};
  const Tokenizer* const tokenizer_ = nullptr;
};

// The options of benchmark B from the object of its name, with `input`. Absent
// fields keep their default. `source` names the object and starts each message
// ("run.json: wikihop").
//   kInvalidArgument  a field that does not exist, a wrong type or value
template <typename B>
absl::StatusOr<typename B::Options> ReadTaskOptions(
    const nlohmann::json& json, const std::string& source,
    const InputOptions& input = InputOptionsOf(EtcConfig())) {
  typename B::Options options;
  options.input = input;
  JsonObjectReader reader(json, source);
  ReadFields(&reader, &options);
  B().CheckOptions(reader, &options);
  ETC_RETURN_IF_ERROR(reader.Finish());
  return options;
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_BENCHMARK_H_
