#include "tasks/commands/task_setup.h"

#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "etc/formats/status_macros.h"
#include "tasks/text/sentencepiece_tokenizer.h"
#include "tasks/text/wordpiece_tokenizer.h"
#include "tasks/train/finetuned_model.h"

namespace etc {
namespace {

absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadTokenizer(
    const FinetuneConfig& config) {
  if (!config.init.empty() && !std::filesystem::exists(config.init)) {
    return absl::NotFoundError(
        absl::StrCat("init names ", config.init,
                     ", but there is no such file or directory"));
  }
  const std::string path = VocabularyPath(config);
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "tokenizer.vocabulary should name a file, because init names no "
        "checkpoint that has one");
  }
  if (config.tokenizer.type == "sentencepiece") {
    return LoadSentencePieceTokenizer(
        path, {.split_punctuation = config.tokenizer.split_punctuation});
  }
  return LoadWordPieceTokenizer(path,
                                {.lower_case = config.tokenizer.lower_case});
}

}  // namespace

absl::StatusOr<TaskSetup> SetUpTask(const FinetuneConfig& config) {
  TaskSetup setup;
  setup.warnings = config.warnings;
  ETC_ASSIGN_OR_RETURN(setup.entry, FindTask(config.task));
  ETC_ASSIGN_OR_RETURN(setup.tokenizer, LoadTokenizer(config));
  const int64_t pieces = setup.tokenizer->vocab_size();
  const std::string sizes = absl::StrCat(
      "the vocabulary ", VocabularyPath(config), " has ", pieces,
      " pieces, and model.vocab_size is ", config.model.vocab_size);
  if (pieces > config.model.vocab_size) {
    return absl::InvalidArgumentError(
        absl::StrCat(sizes, "; it should be at least as large"));
  }
  if (pieces < config.model.vocab_size) {
    setup.warnings.push_back(
        absl::StrCat(sizes, ": some rows of the table are never used"));
  }
  ETC_ASSIGN_OR_RETURN(setup.task, setup.entry->make(config, setup.tokenizer));
  return setup;
}

void PrintWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    std::cerr << "realetc: warning: " << warning << std::endl;
  }
}

}  // namespace etc
