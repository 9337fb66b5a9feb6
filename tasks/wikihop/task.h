#ifndef ETC_TASKS_WIKIHOP_TASK_H_
#define ETC_TASKS_WIKIHOP_TASK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/task/benchmark.h"
#include "tasks/wikihop/example.h"
#include "tasks/wikihop/record.h"

namespace etc {

// See tasks/task/benchmark.h.
template <typename T>
struct WikihopLogits {
  // [G], by global token; the candidates are the first ones.
  T candidates;

  static constexpr auto kMembers = std::make_tuple(&WikihopLogits::candidates);
};

// QAngaroo WikiHop. Gold and predictions are answers.
class Wikihop final
    : public Benchmark<WikihopRecord, WikihopExample, WikihopLogits,
                       WikihopOptions, std::string, std::string> {
 public:
  using Benchmark::Benchmark;

  BenchmarkInfo info() const override {
    return {
        .name = "wikihop",
        .description =
            "QAngaroo WikiHop: choose among candidates by several documents",
        .refuses_other_ids = true,
        .splits_sentences = true};
  }
  std::string main_metric() const override { return "accuracy"; }
  TableSizes Tables(const InputOptions& /*input*/) const override {
    return {.tokens = kWikihopDocumentToken + 1,
            .token_names = "the global tokens 1 to 5",
            .types = kWikihopDocumentGlobalType + 1};
  }

  // kInvalidArgument for WordPiece with upper case and mention_alignment
  // "pieces".
  absl::Status UseVocabulary(const Tokenizer& tokenizer,
                             Options* options) const override;

  // The answer is put in lower case but not stripped before it is looked for
  // (doc/wikihop.md 1.3). Mistakes: no candidates, an answer that is none of
  // them.
  void ReadRecord(JsonObjectReader& reader, Record* record) const override;
  std::vector<std::string> AnswerFields() const override { return {"answer"}; }
  std::vector<std::string> AnswerTextFields() const override {
    return {"answer"};
  }
  //   kInvalidArgument  no candidates, or a label that is none of them; a
  //                     candidate or query without pieces; candidates and query
  //                     alone longer than `max_long_length`; more global tokens
  //                     than `max_global_length`
  ExamplesOr MakeExamples(Record record,
                          const std::string& where) const override;
  std::vector<TruncatedPart> Truncated(const Example& example) const override {
    return PartsOf({{"sentences", example.dropped_sentences},
                    {"pieces", example.dropped_pieces}});
  }
  std::vector<GlobalTokenName> GlobalTokenNames() const override {
    return {{"candidate", kWikihopCandidateToken},
            {"question", kWikihopQueryToken},
            {"document", kWikihopDocumentToken},
            {"sentence", kWikihopSentenceToken}};
  }
  // The question and its answer, losses by truncation, and a line for each
  // global token. A token linked to a candidate has that candidate's index
  // behind it: "oslo>3".
  std::string Describe(const Example& example) const override;

  // The candidate with the largest logit, the first of them if there are
  // several (doc/wikihop.md 8).
  Prediction Decode(Outputs outputs) const override;

  Gold GoldOf(const Example& example) const override;
  std::optional<Gold> GoldOf(const Record& record) const override;
  // The official submission: {"WH_dev_0": "norway", ...}. Written in the order
  // given, ASCII with escapes, and a newline. Read as ReadPredictionJson does.
  PredictionsOr ReadPredictions(const std::string& path) const override;
  std::string FileContents(const Answers& answers) const override;
  // {"id": "WH_dev_0", "answer": "norway"}
  std::string PredictionJson(const std::string& id,
                             const Prediction& prediction) const override;
  // "accuracy", the share of questions whose prediction is equal to the gold
  // answer when stripped and in lower case (doc/wikihop.md 9), and "answered",
  // that of questions with a prediction.
  Scores Score(const Answers& answers) const override;
};

// A logit for each candidate (doc/wikihop.md 5). With x the global output of
// the encoder, B examples, G global tokens, H hidden:
//
//   y     = LayerNorm(x + dropout(W2 act(W1 x + b1) + b2))    final layer
//   logit = y w + b, and -10000 for what is no candidate      [B, G]
//
// W1, W2 are Glorot uniform (Keras' default), w truncated normal; activation,
// sizes and dropout are those of the encoder. The loss is cross entropy
// (doc/wikihop.md 6). Throws c10::Error if `label_smoothing` is not in [0, 1).
Wikihop::HeadPtr MakeWikihopHead(const EtcConfig& model,
                                 const WikihopOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_TASK_H_
