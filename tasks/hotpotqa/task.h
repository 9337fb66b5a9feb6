#ifndef ETC_TASKS_HOTPOTQA_TASK_H_
#define ETC_TASKS_HOTPOTQA_TASK_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/hotpotqa/example.h"
#include "tasks/hotpotqa/metric.h"
#include "tasks/hotpotqa/prediction.h"
#include "tasks/hotpotqa/raw.h"
#include "tasks/task_definition.h"
#include "tasks/text/tokenizer.h"

namespace etc {

struct HotpotqaHeadOptions {
  HotpotqaAnswerEncoding answer_encoding = HotpotqaAnswerEncoding::kSpan;
  // Whether padding and question take part in softmax and losses.
  bool official_compatibility = false;
};

// The object "hotpotqa" of a fine-tuning configuration: README.md has its
// fields. Absent ones keep their default.
struct HotpotqaOptions {
  HotpotqaHeadOptions head;
  HotpotqaExampleOptions example;
  HotpotqaDecodingOptions decoding;
  // Take the threshold of supporting facts that has the best joint F1 on the
  // very data that are scored, as the official program does at its end. Data
  // without answers get `supporting_fact_threshold`.
  bool search_threshold = false;
  bool official_compatibility = false;
};

// HotpotQA, distractor setting.
struct Hotpotqa {
  static constexpr char kName[] = "hotpotqa";
  static constexpr char kDescription[] =
      "HotpotQA, distractor setting: answer and find the sentences that say it";
  static constexpr char kMainMetric[] = "joint_f1";
  static constexpr TableSizes Tables(TokenizerKind kind) {
    return {.tokens = kind == TokenizerKind::kSentencePiece ? 44 : 6,
            .token_names = "the tokens of HotpotQA",
            .types = kHotpotqaQuestionType + 1};
  }

  using Record = HotpotqaRecord;
  using Example = HotpotqaExample;
  template <typename T>
  using Logits = HotpotqaLogits<T>;
  using Gold = HotpotqaGold;
  using Prediction = HotpotqaPrediction;
  using Options = HotpotqaOptions;

  static void ReadOptions(JsonObjectReader& reader, Options* options);

  static constexpr auto Parse = ParseHotpotqaRecord;
  static std::shared_ptr<const Example> MakeExamples(
      Record record, const Tokenizer& tokenizer,
      const HotpotqaExampleOptions& options, const std::string& /*where*/) {
    return MakeHotpotqaExample(std::move(record), tokenizer, options);
  }
  // Question, answer and where it stands, what did not fit, and a line for each
  // global token. Supporting facts are marked "*", the tokens of an answer are
  // in brackets: "[ jane roe ]".
  static std::string Describe(const Example& example,
                              const Tokenizer& tokenizer,
                              const Options& options);
  // A HotpotqaHead.
  static std::shared_ptr<TaskHead> MakeHead(const EtcConfig& model,
                                            const Options& options);
  // DecodeHotpotqa, with search_threshold by all thresholds.
  static Prediction Decode(const Example& example,
                           const Logits<LogitRow>& logits,
                           const Options& options, const Tokenizer& tokenizer);

  static Gold GoldOf(const Example& example) {
    return {.answer = *example.record->answer,
            .facts = example.record->supporting_facts};
  }
  static absl::StatusOr<std::pair<std::string, Gold>> ParseGold(
      const std::string& text, const std::string& where, ScoringRules rules);
  static constexpr auto ReadPredictions = ReadHotpotqaPredictions;
  static std::string FileContents(const ById<Prediction>& predictions,
                                  const ById<Gold>& gold) {
    return HotpotqaPredictionsToJson(
        WithBestHotpotqaThreshold(gold, predictions));
  }
  static Scores Score(const ById<Gold>& gold,
                      const ById<Prediction>& predictions,
                      ScoringRules /*rules*/) {
    return ScoreHotpotqa(gold, predictions);
  }
};
static_assert(TaskDefinition<Hotpotqa>);

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_TASK_H_
