#ifndef ETC_TESTS_TASKS_TASK_BOOLQ_H_
#define ETC_TESTS_TASKS_TASK_BOOLQ_H_

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/fields.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "nlohmann/json.hpp"
#include "tasks/inputs/description.h"
#include "tasks/inputs/text_head.h"
#include "tasks/inputs/text_input.h"
#include "tasks/metrics.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/official_json.h"
#include "tasks/task/prediction.h"

// A whole benchmark in one file, the smallest that there is: BoolQ (Clark et
// al. 2019) in SuperGLUE's format, a line for each question,
//
//   {"idx": 0, "question": "is blue a color", "passage": "...", "label": true}
//
// In tasks/ it would be tasks/boolq/task.{h,cc} and head.cc, and the other
// files that CONTRIBUTING.md lists.

namespace etc {

struct BoolqRecord {
  std::string id;
  std::string question;
  std::string passage;
  std::optional<bool> answer;  // nothing in data to predict for
};

struct BoolqExample : Example {
  bool answer = false;
  int64_t dropped_pieces = 0;     // that had no room
  int64_t dropped_sentences = 0;  // that have no global token
};

struct BoolqOptions {
  InputOptions input;
  TextMarks marks;
  // The answer is yes if its logit is above that of no by more than this.
  double yes_margin = 0;
};

// The object "boolq" of a configuration: a row for each option.
template <>
struct ConfigTable<BoolqOptions> {
  static constexpr auto kFields = std::make_tuple(
      Field("yes_margin", &BoolqOptions::yes_margin,
            "the answer is yes if its logit is above that of no by more than "
            "this",
            {.least = 0, .decodes = true}));
};

template <typename T>
struct BoolqLogits {
  T classes;  // [2]: no, yes

  static constexpr auto kMembers = std::make_tuple(&BoolqLogits::classes);
};

class Boolq : public Benchmark<BoolqRecord, BoolqExample, BoolqLogits,
                               BoolqOptions, bool, bool> {
 public:
  using Benchmark::Benchmark;

  BenchmarkInfo info() const override {
    return {.name = "boolq",
            .description = "BoolQ: answer a question by yes or no",
            .prediction_unit = "line",
            .splits_sentences = true,
            .serves_bert = true};
  }
  std::string main_metric() const override { return "accuracy"; }

  TableSizes Tables(const InputOptions& input) const override {
    return TablesOfTexts(input);
  }
  NeededLengths Lengths(const Options& options) const override {
    return LengthsOfTexts(options.input, options.marks);
  }
  absl::Status UseVocabulary(const Tokenizer& tokenizer,
                             Options* options) const override {
    return FindTextMarks(tokenizer, &options->marks);
  }

  void ReadRecord(JsonObjectReader& reader, Record* record) const override {
    int64_t index = 0;
    reader.Required("idx", &index);
    record->id = absl::StrCat(index);
    reader.Required("question", &record->question);
    reader.Required("passage", &record->passage);
    if (reader.Raw("label", /*required=*/false) != nullptr) {
      reader.Required("label", &record->answer.emplace());
    }
  }
  std::vector<std::string> AnswerFields() const override { return {"label"}; }

  ExamplesOr MakeExamples(Record record,
                          const std::string& /*where*/) const override {
    const InputOptions& input = options().input;
    const TextMarks& marks = options().marks;
    SplitText question;
    SplitText passage;
    AppendText(record.question, tokenizer(), input, &question);
    AppendText(record.passage, tokenizer(), input, &passage);
    auto example = std::make_shared<BoolqExample>();
    example->dropped_pieces =
        CutLongerText(RoomForPieces(input, marks, /*two_texts=*/true),
                      &question.tokens, &passage.tokens);
    int64_t room = RoomForSentences(input);
    const TextPieces a =
        WithinRoom(question, &room, &example->dropped_sentences);
    const TextPieces b =
        WithinRoom(passage, &room, &example->dropped_sentences);
    WriteTexts(a, b, marks, input, example.get());
    example->record_id = std::move(record.id);
    example->has_answer = record.answer.has_value();
    example->answer = record.answer.value_or(false);
    return ExamplesOr({std::move(example)});
  }
  std::vector<TruncatedPart> Truncated(const Example& example) const override {
    return PartsOf({{"pieces", example.dropped_pieces}});
  }
  std::vector<GlobalTokenName> GlobalTokenNames() const override {
    return GlobalTokensOfTexts(options().input.has_long_tokens);
  }
  std::string Describe(const Example& example) const override {
    return absl::StrCat("question ", example.record_id, "\nanswer: ",
                        !example.has_answer ? "unknown"
                        : example.answer    ? "yes"
                                            : "no",
                        "\n",
                        DescribeTextSize(example, example.dropped_pieces,
                                         example.dropped_sentences),
                        "\n");
  }

  Prediction Decode(Outputs outputs) const override {
    const LogitRow classes = outputs.front().logits.classes;
    return classes[1] - classes[0] > options().yes_margin;
  }
  Gold GoldOf(const Example& example) const override { return example.answer; }
  std::optional<Gold> GoldOf(const Record& record) const override {
    return record.answer;
  }
  // {"idx": 0, "label": true}
  PredictionsOr ReadPredictions(const std::string& path) const override {
    return ReadById<bool>(
        path, [](const std::string& text, const std::string& where) {
          return ParseObject<std::pair<std::string, bool>>(
              text, where,
              [](JsonObjectReader& reader, std::pair<std::string, bool>* line) {
                int64_t index = 0;
                reader.Required("idx", &index);
                line->first = absl::StrCat(index);
                reader.Required("label", &line->second);
              });
        });
  }
  std::string FileContents(const Answers& answers) const override {
    return AsciiLines(answers.predictions, [](const std::string& id, bool yes) {
      return nlohmann::json{{"idx", std::stoll(id)}, {"label", yes}};
    });
  }
  std::string PredictionJson(const std::string& id,
                             const Prediction& yes) const override {
    return absl::StrCat("{\"idx\":", id, ",\"label\":", yes ? "true" : "false",
                        "}");
  }
  Scores Score(const Answers& answers) const override {
    const auto predictions = PredictionsFor(answers.gold, answers.predictions);
    int64_t correct = 0;
    for (size_t i = 0; i < predictions.size(); ++i) {
      correct += predictions[i] != nullptr &&
                 *predictions[i] == answers.gold[i].second;
    }
    return {.metrics = {{"accuracy",
                         Share(static_cast<double>(correct),
                               static_cast<int64_t>(answers.gold.size()))}}};
  }
};

// Two classes of the pooled output; the loss is their cross entropy.
class BoolqHead : public BenchmarkHead<BoolqExample, BoolqLogits> {
 public:
  explicit BoolqHead(const EtcConfig& config)
      : classifier_(config, /*outputs=*/2, config.hidden_dropout_prob, this) {}

  ReadTokens Reads() const override { return ReadTokens::kFirstGlobal; }
  Tensors LogitsOf(const EtcOutput& encoded,
                   const TaskBatch& /*batch*/) override {
    return {.classes = classifier_.Logits(encoded, is_training())};
  }
  torch::Tensor LossesOf(const Tensors& logits,
                         const TaskBatch& batch) override {
    return CrossEntropies(logits.classes, batch.Each(&BoolqExample::answer));
  }

 private:
  PooledClassifier classifier_;
};

inline Boolq::HeadPtr MakeBoolqHead(const EtcConfig& model,
                                    const BoolqOptions& /*options*/) {
  return std::make_shared<BoolqHead>(model);
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_TASK_BOOLQ_H_
