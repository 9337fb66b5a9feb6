#include "tasks/runs/task_setup.h"

#include <iterator>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "etc/weights/source_config.h"
#include "etc/weights/tokenizer_files.h"
#include "etc/weights/vocabulary_size.h"
#include "etc/weights/weight_plan.h"
#include "etc/weights/weights.h"
#include "nlohmann/json.hpp"
#include "tasks/config/grid.h"
#include "tasks/text/load_tokenizer.h"

namespace etc {
namespace {

// Checks that the task can hold out the records that the configuration asks
// for.
absl::Status CheckHoldsOut(const RunConfig& config, const TaskEntry& entry) {
  if (config.data.dev_fraction == 0 || entry.holds_out_records) {
    return absl::OkStatus();
  }
  std::vector<std::string> able;
  for (const TaskEntry& task : Tasks()) {
    if (task.holds_out_records) {
      able.push_back(task.name);
    }
  }
  return InvalidArgument(config.source, ": data.dev_fraction should be 0 for ",
                         config.task, ", but is ", config.data.dev_fraction,
                         "; it holds out records of ",
                         absl::StrJoin(able, ", "), " alone");
}

// Checks that the model can read every example that the task may make.
absl::Status CheckModelInput(const RunConfig& config) {
  ETC_ASSIGN_OR_RETURN(const TaskEntry* entry, FindTask(config.task));
  ETC_RETURN_IF_ERROR(CheckHoldsOut(config, *entry));
  if (entry->has_own_model) {
    return absl::OkStatus();
  }
  const EtcConfig& model = config.model;
  if (!model.has_long_tokens && !entry->serves_bert) {
    const bool is_given = config.json.contains(
        nlohmann::json::json_pointer("/model/has_long_tokens"));
    return absl::InvalidArgumentError(absl::StrCat(
        config.source, ": model.has_long_tokens should be true, because ",
        config.task, " needs long tokens, but is false",
        is_given ? "; leave it out: a BERT in init is lifted to ETC"
                 : ", as of BERT; give a preset of ETC, such as \"base\""));
  }
  const int64_t rows = model.max_absolute_position_embeddings;
  const auto check = [&](const char* field, int64_t length) {
    return rows == 0 || length <= rows
               ? absl::OkStatus()
               : absl::InvalidArgumentError(
                     absl::StrCat(config.source, ": data.", field,
                                  " should be at most ", rows,
                                  ", the number of positions of the model "
                                  "(max_absolute_position_embeddings), but is ",
                                  length));
  };
  if (model.has_long_tokens) {
    ETC_RETURN_IF_ERROR(check("max_long_length", config.data.max_long_length));
  }
  return check("max_global_length", config.data.max_global_length);
}

}  // namespace

absl::StatusOr<RunConfig> ReadTaskConfig(
    const std::string& path, const std::vector<std::string>& overrides) {
  const auto check_task = [](const std::string& name) {
    return FindTask(name).status();
  };
  ETC_ASSIGN_OR_RETURN(
      RunConfig config,
      ReadRunConfig(path, overrides, check_task, TypesOfFields()));
  ETC_ASSIGN_OR_RETURN(const std::vector<GridSetting> settings,
                       ExpandGrid(config, check_task));
  for (const GridSetting& setting : settings) {
    ETC_RETURN_IF_ERROR(CheckModelInput(setting.config));
  }
  return config;
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadTokenizer(
    const TokenizerConfig& config, const std::string& init) {
  if (config.vocabulary.empty()) {
    return absl::InvalidArgumentError(
        "tokenizer.vocabulary should name a file, because init names no "
        "checkpoint that has one");
  }
  ETC_ASSIGN_OR_RETURN(TokenizerFiles files,
                       DescribeTokenizer(config.type, config.vocabulary));
  TakeUnstatedBeside(init, &files);
  files.split_punctuation = config.split_punctuation;
  ETC_RETURN_IF_ERROR(
      SetCase(config.lower_case,
              absl::StrCat("tokenizer.lower_case is ",
                           config.lower_case ? "true" : "false"),
              &files));
  return MakeTokenizer(files);
}

namespace {

// Checks that the weights to start from exist, and that the vocabulary beside
// them can be taken, if it is needed.
absl::Status CheckInit(const RunConfig& config) {
  // A path that does not exist may be the prefix of a TensorFlow checkpoint.
  if (!config.init.empty()) {
    ETC_ASSIGN_OR_RETURN(bool is_there, PathExists(config.init));
    if (!is_there) {
      ETC_ASSIGN_OR_RETURN(is_there, PathExists(config.init + ".index"));
    }
    if (!is_there) {
      return absl::NotFoundError(
          absl::StrCat("init names ", config.init,
                       ", but there is no such file or directory"));
    }
  }
  if (config.init.empty() || !config.tokenizer.vocabulary.empty() ||
      config.encoder_decoder.has_value()) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const TokenizerFiles found, FindTokenizer(config.init));
  return found.unsupported.empty()
             ? absl::OkStatus()
             : absl::InvalidArgumentError(
                   absl::StrCat("tokenizer.vocabulary should name a file, for ",
                                found.unsupported));
}

// Checks, by the headers of their files, that the weights to start from fit the
// model.
absl::Status CheckInitFits(const RunConfig& config) {
  if (config.init.empty() || config.encoder_decoder.has_value()) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const WeightFile file,
                       OpenWeights(config.init, &config.model));
  const SourceWeights& weights = file.source;
  const absl::Status fits = PlanWeights(weights, config.model).status();
  if (fits.ok()) {
    return fits;
  }
  const EtcConfig own = config.model.has_long_tokens
                            ? InitialConfig({.config = weights.config})
                            : weights.config;
  return PlanWeights(weights, own).ok()
             ? absl::InvalidArgumentError(
                   absl::StrCat(fits.message(), "; --set ",
                                config.model.has_long_tokens
                                    ? "model={}"
                                    : "'model={\"has_long_tokens\": false}'",
                                " takes the sizes of init"))
             : fits;
}

// The quick checks, before data or a tokenizer are read.
absl::Status CheckBeforeSetup(const RunConfig& config) {
  ETC_RETURN_IF_ERROR(CheckModelInput(config));
  return CheckInit(config);
}

// The setup of a configuration that was checked and is complete.
absl::StatusOr<TaskSetup> MakeSetup(const RunConfig& config) {
  TaskSetup setup;
  ETC_ASSIGN_OR_RETURN(setup.entry, FindTask(config.task));
  if (!setup.entry->has_own_model) {
    ETC_ASSIGN_OR_RETURN(setup.tokenizer,
                         LoadTokenizer(config.tokenizer, config.init));
    ETC_RETURN_IF_ERROR(CheckVocabularySize(
        config.tokenizer.vocabulary, setup.tokenizer->vocab_size(),
        config.model.vocab_size, &setup.warnings));
  }
  setup.warnings.insert(setup.warnings.end(), config.warnings.begin(),
                        config.warnings.end());
  ETC_ASSIGN_OR_RETURN(setup.task, setup.entry->make(config, setup.tokenizer));
  absl::c_move(setup.task->Warnings(), std::back_inserter(setup.warnings));
  if (!setup.entry->splits_sentences &&
      config.data.sentences != DataConfig().sentences) {
    setup.warnings.push_back(
        absl::StrCat("data.sentences is not used: ", config.task,
                     " takes the sentences that its data have, or none"));
  }
  if (setup.entry->has_own_model && config.train.watch_scores > 0) {
    setup.warnings.push_back(absl::StrCat(
        "train.watch_scores is not used: ", config.task, " has no statistics"));
  }
  return setup;
}

}  // namespace

absl::StatusOr<TaskSetup> SetUpTask(const RunConfig& config) {
  ETC_RETURN_IF_ERROR(CheckBeforeSetup(config));
  return MakeSetup(config);
}

absl::StatusOr<TaskSetup> SetUpTraining(RunConfig* config) {
  ETC_RETURN_IF_ERROR(CheckBeforeSetup(*config));
  ETC_RETURN_IF_ERROR(CheckInitFits(*config));
  ETC_ASSIGN_OR_RETURN(const TaskEntry* entry, FindTask(config->task));
  if (entry->complete != nullptr) {
    ETC_RETURN_IF_ERROR(entry->complete(config));
  }
  ETC_ASSIGN_OR_RETURN(TaskSetup setup, MakeSetup(*config));
  if (!config->init.empty() && setup.tokenizer != nullptr) {
    WarnOfOtherPieces(*setup.tokenizer, config->tokenizer.vocabulary,
                      config->init, &setup.warnings);
  }
  return setup;
}

}  // namespace etc
