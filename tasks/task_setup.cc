#include "tasks/task_setup.h"

#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "etc/weights/tokenizer_files.h"
#include "etc/weights/vocabulary_size.h"
#include "tasks/text/sentencepiece_tokenizer.h"
#include "tasks/text/wordpiece_tokenizer.h"

namespace etc {

absl::StatusOr<FinetuneConfig> ReadTaskConfig(
    const std::string& path, const std::vector<std::string>& overrides) {
  return ReadFinetuneConfig(path, overrides, [](const std::string& name) {
    return FindTask(name).status();
  });
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadTokenizer(
    const TokenizerConfig& config) {
  if (config.vocabulary.empty()) {
    return absl::InvalidArgumentError(
        "tokenizer.vocabulary should name a file, because init names no "
        "checkpoint that has one");
  }
  ETC_ASSIGN_OR_RETURN(TokenizerFiles files,
                       DescribeTokenizer(config.type, config.vocabulary));
  if (config.type == "sentencepiece") {
    return LoadSentencePieceTokenizer(
        config.vocabulary, {.split_punctuation = config.split_punctuation});
  }
  ETC_RETURN_IF_ERROR(
      SetCase(config.lower_case,
              absl::StrCat("tokenizer.lower_case is ",
                           config.lower_case ? "true" : "false"),
              &files));
  ETC_ASSIGN_OR_RETURN(const std::string vocabulary,
                       ReadVocabulary(config.type, config.vocabulary));
  return ParseWordPieceTokenizer(vocabulary, config.vocabulary,
                                 files.wordpiece);
}

namespace {

// Whether the weights to start from are there, and the vocabulary beside them
// can be taken, if it is needed.
absl::Status CheckInit(const FinetuneConfig& config) {
  // What is not there itself may be the prefix of a TensorFlow checkpoint.
  if (!config.init.empty() && !std::filesystem::exists(config.init) &&
      !std::filesystem::exists(config.init + ".index")) {
    return absl::NotFoundError(
        absl::StrCat("init names ", config.init,
                     ", but there is no such file or directory"));
  }
  if (config.init.empty() || !config.tokenizer.vocabulary.empty()) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const TokenizerFiles found, FindTokenizer(config.init));
  return found.unsupported.empty()
             ? absl::OkStatus()
             : absl::InvalidArgumentError(
                   absl::StrCat("tokenizer.vocabulary should name a file, for ",
                                found.unsupported));
}

}  // namespace

absl::StatusOr<TaskSetup> SetUpTask(const FinetuneConfig& config) {
  ETC_RETURN_IF_ERROR(CheckInit(config));
  TaskSetup setup;
  ETC_ASSIGN_OR_RETURN(setup.entry, FindTask(config.task));
  ETC_ASSIGN_OR_RETURN(setup.tokenizer, LoadTokenizer(config.tokenizer));
  ETC_RETURN_IF_ERROR(CheckVocabularySize(
      config.tokenizer.vocabulary, setup.tokenizer->vocab_size(),
      config.model.vocab_size, &setup.warnings));
  setup.warnings.insert(setup.warnings.end(), config.warnings.begin(),
                        config.warnings.end());
  ETC_ASSIGN_OR_RETURN(setup.task, setup.entry->make(config, setup.tokenizer));
  if (!setup.entry->splits_sentences &&
      config.data.sentences != DataConfig().sentences) {
    setup.warnings.push_back(
        absl::StrCat("data.sentences is not used: ", config.task,
                     " takes the sentences that its data have, or none"));
  }
  return setup;
}

absl::StatusOr<TaskSetup> SetUpTraining(FinetuneConfig* config) {
  // Data may take long to read, so what is quickly seen comes first.
  ETC_RETURN_IF_ERROR(CheckInit(*config));
  ETC_ASSIGN_OR_RETURN(const TaskEntry* entry, FindTask(config->task));
  if (entry->complete != nullptr) {
    ETC_RETURN_IF_ERROR(entry->complete(config));
  }
  return SetUpTask(*config);
}

}  // namespace etc
