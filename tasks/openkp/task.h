#ifndef ETC_TASKS_OPENKP_TASK_H_
#define ETC_TASKS_OPENKP_TASK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/openkp/example.h"
#include "tasks/openkp/metric.h"
#include "tasks/openkp/prediction.h"
#include "tasks/openkp/raw.h"
#include "tasks/openkp/visual_features.h"
#include "tasks/task_definition.h"
#include "tasks/text/tokenizer.h"

namespace etc {

struct OpenkpHeadOptions {
  bool use_visual_features_in_long = true;
  bool use_visual_features_in_global = true;
  OpenkpVisualEmbeddingOptions visual;
  // Share of the target spread over all n-grams; at least 1e-6 is.
  double additive_smoothing_mass = 1e-4;
  // L in the official number of classes; see OpenkpHead.
  int64_t max_long_length = 4096;
  bool official_compatibility = false;
};

// The object "openkp" of a fine-tuning configuration: README.md has its fields.
// Absent ones keep their default, which is the published recipe with sound
// rules.
struct OpenkpOptions {
  OpenkpExampleOptions example;
  OpenkpHeadOptions head;
  OpenkpDecodingOptions decoding;
  bool official_compatibility = false;
};

// OpenKP. Gold is what the references of a document are, a prediction its
// phrases, the best first.
struct Openkp {
  static constexpr char kName[] = "openkp";
  static constexpr char kDescription[] =
      "OpenKP: find the key phrases of a web page";
  static constexpr char kMainMetric[] = "f1@3";
  static constexpr TableSizes Tables(TokenizerKind) {
    return {.tokens = kOpenkpGlobalToken + 1,
            .token_names = "the global token 1",
            .types = kOpenkpLongType + 1};
  }

  using Record = OpenkpRecord;
  using Example = OpenkpExample;
  template <typename T>
  using Logits = OpenkpLogits<T>;
  using Gold = OpenkpReferences;
  using Prediction = std::vector<std::string>;
  using Options = OpenkpOptions;

  static void ReadOptions(JsonObjectReader& reader, Options* options);

  static constexpr auto Parse = ParseOpenkpRecord;
  static constexpr auto MakeExamples = MakeOpenkpExample;
  // The key phrases and their places, what truncation took, and a line for each
  // global token with one below for the layout of its element. The pieces of
  // key phrases stand in brackets.
  static std::string Describe(const Example& example,
                              const Tokenizer& tokenizer,
                              const Options& options);
  // An OpenkpHead.
  static std::shared_ptr<TaskHead> MakeHead(const EtcConfig& model,
                                            const Options& options);
  static Prediction Decode(const Example& example,
                           const Logits<LogitRow>& logits,
                           const Options& options,
                           const Tokenizer& /*tokenizer*/) {
    return DecodeKeyPhrases(example, logits, options.decoding);
  }

  static Gold GoldOf(const Example& example) { return *example.references; }
  // Of a line without "VDOM", only the url and the key phrases: then there is
  // no score by ETC's protocol.
  static absl::StatusOr<std::pair<std::string, Gold>> ParseGold(
      const std::string& text, const std::string& where, ScoringRules rules);
  static constexpr auto ReadPredictions = ReadOpenkpPredictions;
  static std::string FileContents(const ById<Prediction>& predictions,
                                  const ById<Gold>& /*gold*/) {
    return OpenkpPredictionLines(predictions);
  }
  static absl::Status CheckFiles(const ById<Gold>& gold,
                                 const ById<Prediction>& predictions,
                                 const ScoredFiles& files) {
    return CheckSameRecords(gold, predictions, files, "line");
  }
  static Scores Score(const ById<Gold>& gold,
                      const ById<Prediction>& predictions,
                      ScoringRules /*rules*/) {
    return {.metrics = ScoreOpenkp(gold, predictions)};
  }
};
static_assert(TaskDefinition<Openkp>);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_TASK_H_
