#ifndef ETC_TASKS_OPENKP_TASK_H_
#define ETC_TASKS_OPENKP_TASK_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/inputs/example_writer.h"
#include "tasks/openkp/example.h"
#include "tasks/openkp/metric.h"
#include "tasks/openkp/prediction.h"
#include "tasks/openkp/raw.h"
#include "tasks/task/benchmark.h"

namespace etc {

// OpenKP. Gold is what the references of a document are, a prediction its
// phrases, the best first.
struct Openkp
    : TaskTypes<OpenkpRecord, OpenkpExample, OpenkpLogits, OpenkpOptions,
                OpenkpReferences, std::vector<std::string>> {
  static constexpr char kName[] = "openkp";
  static constexpr char kDescription[] =
      "OpenKP: find the key phrases of a web page";
  static constexpr char kMainMetric[] = "f1@3";
  static constexpr char kPredictionUnit[] = "line";
  static constexpr TableSizes Tables(TokenizerKind) {
    return {.tokens = kOpenkpGlobalToken + 1,
            .token_names = "the global token 1",
            .types = kPlainLongType + 1};
  }

  static void ReadOptions(JsonObjectReader& reader, Options* options);

  // Checks the record as the official program does (doc/openkp.md 2): the
  // elements have one Id, follow one another without gap, and each has the text
  // of its words.
  static void ReadRecord(JsonObjectReader& reader, Record* record);
  static std::vector<std::string> AnswerFields(const Options& /*options*/) {
    return {"KeyPhrases"};
  }
  // Makes the example; tokens beyond `max_long_length` or `max_global_length`
  // are left out.
  //   kInvalidArgument  only with official_compatibility: a url of more than
  //                     1000 characters, a position or size that is a whole
  //                     number, more words than `max_long_length`
  //                     (doc/openkp.md 3.1, 3.3)
  static ExampleOr<Example> MakeExamples(const Record& record,
                                         const Context& context);
  // The key phrases and their places, what truncation took, and a line for each
  // global token with one below for the layout of its element. The pieces of
  // key phrases stand in brackets.
  static std::string Describe(const Example& example, const Context& context);

  // A logit for each n-gram of a document's words, n = 1, ..., K = 5
  // (doc/openkp.md 5.2). With x the long output of the encoder, W the words of
  // the longest document (at least K), H hidden:
  //
  //   y         sums of x over the tokens of a word, LayerNorm  [B, W, H]
  //   c_n[s]    LayerNorm_n(gelu(b_n + sum_k A_n[k] y[s + k]))
  //   logit_n   c_n . u_n, and -10000
  //             where word s + n - 1 is none                    [B, W]
  //
  // A_n [n, H, H] is truncated normal(0.02 / sqrt(n)), u_n [H] truncated
  // normal(0.02), LayerNorms have epsilon 1e-12.
  //
  // The loss is cross entropy with a target that the places of the key phrases
  // share equally (doc/openkp.md 6). The classes are the n-grams that exist;
  // with official_compatibility all K * max_long_length places, of which those
  // that do not exist add a constant of up to 1.
  static HeadPtr MakeHead(const EtcConfig& model, const Options& options);
  static Prediction Decode(const Output& output, const Context& context) {
    return DecodeKeyPhrases(*output.example, output.logits, context.options);
  }

  static Gold GoldOf(const Example& example) { return *example.references; }
  // Parses a line; without "VDOM", only the url and the key phrases: then there
  // is no score by ETC's protocol.
  static absl::StatusOr<std::pair<std::string, std::optional<Gold>>> ParseGold(
      const std::string& text, const std::string& where, ScoringRules rules);
  // True if both have a text, and the same one. The official dev file has some
  // pages twice (doc/openkp.md 8.3), and the official program has a rule for
  // them (ScoreOpenkp).
  static bool MayRepeat(const Gold& earlier, const Gold& later) {
    return earlier.has_text && later.has_text && earlier.text == later.text;
  }
  // Phrases as the official evaluator compares them (EvaluatorPhrases).
  //   kInvalidArgument  what ParseOpenkpPhraseLists says of a line; a url that
  //                     comes again
  static PredictionsOr ReadPredictions(const std::string& path);
  static std::string FileContents(const Answers& answers) {
    return OpenkpPredictionLines(answers.predictions);
  }
  static Scores Score(const Answers& answers) {
    return {.metrics = ScoreOpenkp(answers.gold, answers.predictions)};
  }
};
static_assert(TaskDefinition<Openkp>);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_TASK_H_
