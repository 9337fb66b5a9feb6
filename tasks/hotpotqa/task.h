#ifndef ETC_TASKS_HOTPOTQA_TASK_H_
#define ETC_TASKS_HOTPOTQA_TASK_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/hotpotqa/example.h"
#include "tasks/hotpotqa/metric.h"
#include "tasks/hotpotqa/prediction.h"
#include "tasks/hotpotqa/raw.h"
#include "tasks/task/benchmark.h"

namespace etc {

// HotpotQA, distractor setting.
struct Hotpotqa : TaskTypes<HotpotqaRecord, HotpotqaExample, HotpotqaLogits,
                            HotpotqaOptions, HotpotqaGold, HotpotqaPrediction> {
  static constexpr char kName[] = "hotpotqa";
  static constexpr char kDescription[] =
      "HotpotQA, distractor setting: answer and find the sentences that say it";
  static constexpr char kMainMetric[] = "joint_f1";
  static constexpr TableSizes Tables(TokenizerKind kind) {
    return {.tokens = kind == TokenizerKind::kSentencePiece ? 44 : 6,
            .token_names = "the tokens of HotpotQA",
            .types = kHotpotqaQuestionType + 1};
  }

  static void ReadOptions(JsonObjectReader& reader, Options* options);

  static void ReadRecord(JsonObjectReader& reader, Record* record);
  // `type` and `level` say something of the answer, and nothing to the model.
  static std::vector<std::string> AnswerFields(const Options& /*options*/) {
    return {"answer", "supporting_facts", "type", "level"};
  }
  // Refuses nothing: what does not fit is left out, and what training cannot
  // use says so in `left_out`.
  static std::shared_ptr<const Example> MakeExamples(Record record,
                                                     const Context& context);
  // Question, answer and where it stands, what did not fit, and a line for each
  // global token. Supporting facts are marked "*", the tokens of an answer are
  // in brackets: "[ jane roe ]".
  static std::string Describe(const Example& example, const Context& context);

  // Four linear layers (doc/hotpotqa.md 4). With B examples, L long and G
  // global tokens, x the long and g the global output of the encoder:
  //
  //   supporting facts  g w + b, each global token          [B, G]
  //   answer type       g[0] w + b, that of [CLS]           [B, 3]
  //   begin, end        x w + b, each long token            [B, 2, L], or
  //   classes           x w + b, each long token            [B, 3, L]
  //
  // w are truncated normal with a standard deviation of 0.02, whatever the
  // encoder's. Begins and ends are -10000 at tokens that are neither text nor
  // [CLS], except with official_compatibility.
  //
  // The loss is the mean of those of each of the above (doc/hotpotqa.md 5):
  // sums of binary cross entropy over global tokens and of cross entropy over
  // the classes of long tokens, cross entropy for the others. The sums are over
  // paragraphs, titles and sentences, and over their long tokens; with
  // official_compatibility over the whole length of the batch. A begin or end
  // beyond the batch has no loss.
  static HeadPtr MakeHead(const EtcConfig& model, const Options& options);

  // DecodeHotpotqa, with search_threshold by all thresholds.
  static Prediction Decode(const Output& output, const Context& context);

  static Gold GoldOf(const Example& example) {
    return *GoldOf(*example.record);
  }
  static std::optional<Gold> GoldOf(const Record& record);
  // The official submission (HotpotqaPredictionsToJson).
  static PredictionsOr ReadPredictions(const std::string& path);
  static std::string FileContents(const Answers& answers) {
    return HotpotqaPredictionsToJson(
        WithBestHotpotqaThreshold(answers.gold, answers.predictions));
  }
  static Scores Score(const Answers& answers) {
    return ScoreHotpotqa(answers.gold, answers.predictions);
  }
};
static_assert(TaskDefinition<Hotpotqa>);

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_TASK_H_
