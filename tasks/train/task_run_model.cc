#include "tasks/train/task_run_model.h"

#include "base/status_macros.h"
#include "etc/weights/tokenizer_files.h"
#include "tasks/text/sentence_splitter.h"

namespace etc {

absl::StatusOr<std::unique_ptr<RunModel>> TaskRunModel::Make(
    const FinetuneConfig& config, const Task& task,
    const torch::Device& device) {
  std::string vocabulary;
  TokenizerFiles tokenizer;
  if (const TokenizerConfig& named = config.tokenizer;
      !named.vocabulary.empty()) {
    ETC_ASSIGN_OR_RETURN(tokenizer,
                         DescribeTokenizer(named.type, named.vocabulary));
    ETC_ASSIGN_OR_RETURN(vocabulary,
                         ReadVocabulary(named.type, named.vocabulary));
  }
  std::optional<PunktFiles> punkt;
  if (config.data.sentences != kIcuSentences) {
    ETC_ASSIGN_OR_RETURN(punkt, ReadPunktFiles(config.data.sentences));
  }
  // The constructor is private: make_unique cannot see it.
  return std::unique_ptr<RunModel>(new TaskRunModel(
      config, MakeTaskModel(config, task, device), std::move(vocabulary),
      std::move(tokenizer.wordpiece), std::move(punkt)));
}

absl::StatusOr<std::vector<std::string>> TaskRunModel::LoadInitialWeights() {
  if (config_.init.empty()) {
    return std::vector<std::string>{"encoder and head: random weights"};
  }
  return etc::LoadInitialWeights(config_, model_);
}

absl::Status TaskRunModel::Save(const std::string& directory) const {
  return WriteTaskModel({.config = config_,
                         .model = model_,
                         .vocabulary = vocabulary_,
                         .punkt = punkt_.has_value() ? &*punkt_ : nullptr,
                         .wordpiece = wordpiece_},
                        directory);
}

absl::Status TaskRunModel::Load(const std::string& directory) {
  return LoadTaskModelWeights(directory, config_, model_);
}

}  // namespace etc
