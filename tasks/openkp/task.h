#ifndef ETC_TASKS_OPENKP_TASK_H_
#define ETC_TASKS_OPENKP_TASK_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
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

// The references of a document.
struct OpenkpGold : OpenkpReferences {
  // True of a gold file's document without "VDOM": its phrases are split into
  // words (PlainOpenkpWords), and so are the predictions for it.
  bool is_plain = false;
};

// OpenKP. Gold is what the references of a document are, a prediction its
// phrases, the best first.
class Openkp final
    : public Benchmark<OpenkpRecord, OpenkpExample, OpenkpLogits, OpenkpOptions,
                       OpenkpGold, std::vector<std::string>> {
 public:
  using Benchmark::Benchmark;

  BenchmarkInfo info() const override {
    return {.name = "openkp",
            .description =
                "OpenKP: find the key phrases of a web page, or of your own "
                "documents",
            .prediction_unit = "line",
            .splits_sentences = true,
            .has_gold_by_sentence = true};
  }
  std::string main_metric() const override { return "f1@3"; }
  ScoringRules rules() const override {
    return options().official_compatibility ? ScoringRules::kOfficial
                                            : ScoringRules::kDefault;
  }
  TableSizes Tables(const InputOptions& /*input*/) const override {
    return {.tokens = kOpenkpGlobalToken + 1,
            .token_names = "the global token 1",
            .types = kPlainLongType + 1};
  }

  void CheckOptions(JsonObjectReader& reader, Options* options) const override;

  // Checks the record as the official program does (doc/openkp.md 2): the
  // elements have one Id, follow one another without gap, and each has the text
  // of its words. Without visual features, a record may be any document:
  // ReadPlainOpenkpRecord.
  void ReadRecord(JsonObjectReader& reader, Record* record) const override;
  std::vector<std::string> AnswerFields() const override {
    return {"KeyPhrases"};
  }
  std::vector<std::string> AnswerTextFields() const override {
    return {"KeyPhrases"};
  }
  // Not "VDOM", which is longer.
  std::vector<std::string> DocumentFields() const override { return {"text"}; }
  //   kInvalidArgument  with official_compatibility a url of more than 1000
  //                     characters, a position or size that is a whole number
  //                     (doc/openkp.md 3.1)
  absl::Status CheckRecord(const Record& record,
                           const std::string& where) const override;
  // Urls may come again with the same text: some pages are twice in the
  // official dev file.
  Example::IdKind IdKindOf(const Record& /*record*/) const override {
    return Example::IdKind::kOfText;
  }
  // Makes the example; tokens beyond `max_long_length` or `max_global_length`
  // are left out.
  //   kInvalidArgument  what CheckRecord says; elements that do not cover the
  //                     words in order; with official_compatibility more words
  //                     than `max_long_length` (doc/openkp.md 3.3)
  ExamplesOr MakeExamples(Record record,
                          const std::string& where) const override;
  std::vector<TruncatedPart> Truncated(const Example& example) const override {
    return PartsOf({{"words", example.dropped_words}});
  }
  std::vector<GlobalTokenName> GlobalTokenNames() const override {
    return {{options().fixed_block_length > 0 ? "block" : "element",
             kOpenkpGlobalToken}};
  }
  // The key phrases and their places, what truncation took, and a line for each
  // global token with one below for the layout of its element. The pieces of
  // key phrases stand in brackets.
  std::string Describe(const Example& example) const override;

  Prediction Decode(Outputs outputs) const override {
    return DecodeKeyPhrases(*outputs.front().example, outputs.front().logits,
                            options());
  }

  Gold GoldOf(const Example& example) const override {
    return {*example.references};
  }
  // By rules().
  std::optional<Gold> GoldOf(const Record& record) const override;
  bool HasGold(const Record& record) const override {
    return record.key_phrases.has_value();
  }
  // Parses a line, of a page or of a document without "VDOM". Without a text
  // either, only the url and the key phrases: then there is no score by ETC's
  // protocol.
  absl::StatusOr<std::pair<std::string, std::optional<Gold>>> ParseGold(
      const std::string& text, const std::string& where,
      ScoringRules rules) const override;
  // True if both have a text, and the same one (by hash). The official dev file
  // has some pages twice (doc/openkp.md 8.3), and the official program has a
  // rule for them (ScoreOpenkp).
  bool MayRepeat(const Gold& earlier, const Gold& later) const override {
    return earlier.has_text && later.has_text &&
           earlier.text_hash == later.text_hash;
  }
  // JoinedPhrases of each line, as Decode gives them.
  //   kInvalidArgument  what ParseOpenkpPhraseLists says of a line; a url that
  //                     comes again
  PredictionsOr ReadPredictions(const std::string& path) const override;
  std::string FileContents(const Answers& answers) const override {
    return OpenkpPredictionLines(answers.predictions);
  }
  // The line of the file.
  std::string PredictionJson(const std::string& id,
                             const Prediction& prediction) const override;
  // ScoreOpenkp, with predictions as OpenkpGold has them.
  Scores Score(const Answers& answers) const override;
};

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
Openkp::HeadPtr MakeOpenkpHead(const EtcConfig& model,
                               const OpenkpOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_TASK_H_
