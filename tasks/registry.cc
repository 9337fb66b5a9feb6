#include "tasks/registry.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_reader.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/nq/metric.h"
#include "tasks/nq/task.h"
#include "tasks/openkp/metric.h"
#include "tasks/openkp/task.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/wikihop/task.h"

namespace etc {

namespace {

TokenizerKind KindOf(const TokenizerConfig& config) {
  return config.type == "sentencepiece" ? TokenizerKind::kSentencePiece
                                        : TokenizerKind::kWordPiece;
}

// What starts messages about the object that is named as the task is.
std::string SourceOf(const FinetuneConfig& config) {
  return absl::StrCat(config.source, ": ", config.task);
}

HotpotqaSetup HotpotqaSetupOf(const FinetuneConfig& config) {
  return {.model = config.model,
          .tokenizer_kind = KindOf(config.tokenizer),
          .max_long_length = config.data.max_long_length,
          .max_global_length = config.data.max_global_length};
}

OpenkpSetup OpenkpSetupOf(const FinetuneConfig& config) {
  return {.model = config.model,
          .max_long_length = config.data.max_long_length,
          .max_global_length = config.data.max_global_length};
}

NqSetup NqSetupOf(const FinetuneConfig& config) {
  return {.model = config.model,
          .tokenizer_kind = KindOf(config.tokenizer),
          .max_long_length = config.data.max_long_length,
          .max_global_length = config.data.max_global_length};
}

absl::StatusOr<std::unique_ptr<Task>> MakeWikihop(
    const FinetuneConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
  const absl::StatusOr<SentenceSplitter> split =
      LoadSentenceSplitter(config.data.sentences);
  if (!split.ok()) {
    return absl::Status(split.status().code(),
                        absl::StrCat(config.source, ": data.sentences: ",
                                     split.status().message()));
  }
  return MakeWikihopTask(config.task_options, SourceOf(config),
                         {.model = config.model,
                          .max_long_length = config.data.max_long_length,
                          .max_global_length = config.data.max_global_length,
                          .split_sentences = *split},
                         std::move(tokenizer));
}

}  // namespace

const std::vector<TaskEntry>& Tasks() {
  static const auto* tasks = new std::vector<TaskEntry>{
      {.name = "wikihop",
       .description =
           "QAngaroo WikiHop: choose among candidates by several documents",
       .main_metric = kWikihopMainMetric,
       .make = MakeWikihop,
       .splits_sentences = true,
       .make_head =
           [](const FinetuneConfig& config) {
             return MakeWikihopHead(config.task_options, SourceOf(config),
                                    config.model);
           },
       .score = [](const std::string& gold, const std::string& predictions,
                   ScoringRules) { return ScoreWikihop(gold, predictions); }},
      {.name = "hotpotqa",
       .description =
           "HotpotQA, distractor setting: answer and find the sentences that "
           "say it",
       .main_metric = kHotpotqaMainMetric,
       .make =
           [](const FinetuneConfig& config,
              std::shared_ptr<const Tokenizer> tokenizer) {
             return MakeHotpotqaTask(config.task_options, SourceOf(config),
                                     HotpotqaSetupOf(config),
                                     std::move(tokenizer));
           },
       .make_head =
           [](const FinetuneConfig& config) {
             return MakeHotpotqaHead(config.task_options, SourceOf(config),
                                     HotpotqaSetupOf(config));
           },
       .score = [](const std::string& gold, const std::string& predictions,
                   ScoringRules) { return ScoreHotpotqa(gold, predictions); }},
      {.name = "openkp",
       .description = "OpenKP: find the key phrases of a web page",
       .main_metric = kOpenkpMainMetric,
       .make =
           [](const FinetuneConfig& config,
              std::shared_ptr<const Tokenizer> tokenizer) {
             return MakeOpenkpTask(config.task_options, SourceOf(config),
                                   OpenkpSetupOf(config), std::move(tokenizer));
           },
       .make_head =
           [](const FinetuneConfig& config) {
             return MakeOpenkpHead(config.task_options, SourceOf(config),
                                   OpenkpSetupOf(config));
           },
       .score =
           [](const std::string& gold, const std::string& predictions,
              ScoringRules rules) {
             return ScoreOpenkpFiles(gold, predictions,
                                     rules == ScoringRules::kOfficial
                                         ? EmptyPhrases::kOfficial
                                         : EmptyPhrases::kLeftOut);
           }},
      {.name = "nq",
       .description =
           "Natural Questions: find a long and a short answer on a web page",
       .main_metric = kNqMainMetric,
       .make =
           [](const FinetuneConfig& config,
              std::shared_ptr<const Tokenizer> tokenizer) {
             return MakeNqTask(config.task_options, SourceOf(config),
                               NqSetupOf(config), std::move(tokenizer));
           },
       .make_head =
           [](const FinetuneConfig& config) {
             return MakeNqHead(config.task_options, SourceOf(config),
                               NqSetupOf(config));
           },
       .score =
           [](const std::string& gold, const std::string& predictions,
              ScoringRules rules) {
             return ScoreNqFiles(
                 gold, predictions,
                 {.official_compatibility = rules == ScoringRules::kOfficial});
           }},
  };
  return *tasks;
}

absl::StatusOr<const TaskEntry*> FindTask(const std::string& name) {
  std::vector<std::string> names;
  for (const TaskEntry& task : Tasks()) {
    if (task.name == name) {
      return &task;
    }
    names.push_back(task.name);
  }
  const std::string nearest = NearestName(name, names);
  return absl::NotFoundError(absl::StrCat(
      "there is no task \"", name, "\"",
      nearest.empty()
          ? absl::StrCat("; there are: ", absl::StrJoin(names, ", "))
          : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

}  // namespace etc
