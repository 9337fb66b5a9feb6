#ifndef ETC_TASKS_HOTPOTQA_TASK_H_
#define ETC_TASKS_HOTPOTQA_TASK_H_

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
class Hotpotqa final
    : public Benchmark<HotpotqaRecord, HotpotqaExample, HotpotqaLogits,
                       HotpotqaOptions, HotpotqaGold, HotpotqaPrediction> {
 public:
  using Benchmark::Benchmark;

  BenchmarkInfo info() const override {
    return {.name = "hotpotqa",
            .description =
                "HotpotQA, distractor setting: answer and find the "
                "sentences that say it",
            .refuses_other_ids = true,
            .tells_left_out = true};
  }
  std::string main_metric() const override { return "joint_f1"; }
  ScoringRules rules() const override {
    return options().official_compatibility ? ScoringRules::kOfficial
                                            : ScoringRules::kDefault;
  }
  TableSizes Tables(const InputOptions& input) const override {
    return {.tokens =
                input.tokenizer_kind == TokenizerKind::kSentencePiece ? 44 : 6,
            .token_names = "the tokens of HotpotQA",
            .types = kHotpotqaQuestionType + 1};
  }

  // Warns of search_threshold with the default threshold, which predictions
  // take.
  std::vector<std::string> Warnings() const override;

  // Refuses a tokenizer.json without a piece for the beginning of a text.
  absl::Status UseVocabulary(const Tokenizer& tokenizer,
                             Options* options) const override;

  // An answer without supporting facts is a mistake: scores need both.
  void ReadRecord(JsonObjectReader& reader, Record* record) const override;
  // `type` and `level` say something of the answer, and nothing to the model.
  std::vector<std::string> AnswerFields() const override {
    return {"answer", "supporting_facts", "type", "level"};
  }
  std::vector<std::string> AnswerTextFields() const override {
    return {"answer", "supporting_facts"};
  }
  // Returns why training leaves a record out: it has no supporting paragraph,
  // or its answer stands in none of the supporting titles and sentences. Needs
  // tokenizer().
  std::string WhyLeftOut(const Record& record) const override;
  // One example. Refuses nothing: what does not fit is left out, and what
  // training cannot use says so in `left_out`.
  ExamplesOr MakeExamples(Record record,
                          const std::string& where) const override;
  std::vector<TruncatedPart> Truncated(const Example& example) const override {
    return PartsOf({{"question_pieces", example.dropped_question_pieces},
                    {"texts", example.dropped_texts}});
  }
  std::vector<GlobalTokenName> GlobalTokenNames() const override {
    const HotpotqaTokens tokens =
        HotpotqaTokensOf(options().input.tokenizer_kind, tokenizer());
    return {{"question", tokens.question},
            {"paragraph", tokens.paragraph},
            {"sentence", tokens.sentence}};
  }
  // Question, answer and where it stands, what did not fit, and a line for each
  // global token. Supporting facts are marked "*", the tokens of an answer are
  // in brackets: "[ jane roe ]".
  std::string Describe(const Example& example) const override;

  // Facts and answer (doc/hotpotqa.md 6). Facts are the sentences with a
  // probability of at least the threshold, in the order of the context. An
  // answer that is neither yes nor no is the span with the highest p_begin *
  // p_end (or mean probability of its classes) within one sentence or title
  // that is predicted to be a supporting fact; the later one of equals. If
  // there is none, it comes from any sentence or title, and with
  // `official_compatibility` it is empty. That also limits the search to the 50
  // best begins and ends, and loses an answer marked by classes up to the end
  // of a full long input. With search_threshold also by all thresholds.
  Prediction Decode(Outputs outputs) const override;

  Gold GoldOf(const Example& example) const override {
    return *GoldOf(*example.record);
  }
  std::optional<Gold> GoldOf(const Record& record) const override;
  // The official submission, {"answer": {"<id>": "text"}, "sp": {"<id>":
  // [["title", 0]]}}. Written by id, ASCII with escapes, and a newline, and
  // with search_threshold by the best threshold (WithBestHotpotqaThreshold).
  PredictionsOr ReadPredictions(const std::string& path) const override;
  std::string FileContents(const Answers& answers) const override;
  // {"id": "5a8b", "answer": "text", "sp": [["title", 0]]}
  std::string PredictionJson(const std::string& id,
                             const Prediction& prediction) const override;
  // The official scores of a data set (hotpot_evaluate_v1; doc/hotpotqa.md 8).
  //
  //   metrics      em, f1, prec, recall, then the same with sp_ and joint_ in
  //                front: shares of all questions, where what is missing counts
  //                0, for its part and for the joint score. Then "threshold",
  //                if the predictions have several (HotpotqaPrediction): the
  //                scores are those of the best one.
  //   diagnostics  "answered" and "sp_answered", the shares of questions with
  //                an answer and with supporting facts, which empty ones are
  //                not, and what answers of each kind of question are like, as
  //                shares of its questions:
  //                "kinds/A_B" for gold A (a span), Y (yes) or N
  //                (no), predicted Y, N, E (nothing), A (the gold span; or, for
  //                yes and no, any other text) or B (another span)
  //
  // Predictions for other questions are ignored, as by the official program;
  // `score` refuses files that have them, unless by the official rules.
  Scores Score(const Answers& answers) const override;
  // Names the threshold that was found where the one that predictions take has
  // another joint F1.
  std::string Remark(const Answers& answers) const override;

 private:
  // Decode by one threshold of supporting facts.
  Prediction DecodeAt(double threshold, const Output& output) const;
};

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
// The loss is the mean of those of each of the above (doc/hotpotqa.md 5): sums
// of binary cross entropy over global tokens and of cross entropy over the
// classes of long tokens, cross entropy for the others. The sums are over
// paragraphs, titles and sentences, and over their long tokens; with
// official_compatibility over the whole length of the batch. A begin or end
// beyond the batch has no loss.
Hotpotqa::HeadPtr MakeHotpotqaHead(const EtcConfig& model,
                                   const HotpotqaOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_TASK_H_
