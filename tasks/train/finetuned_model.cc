#include "tasks/train/finetuned_model.h"

#include <torch/utils.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "attention/kernels/bfloat16.h"
#include "attention/linear.h"
#include "etc/config.h"
#include "etc/formats/file.h"
#include "etc/formats/json_reader.h"
#include "etc/formats/status_macros.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

constexpr char kEncoder[] = "encoder.";
constexpr char kHead[] = "head.";
// Where the metadata of model.safetensors say which task the head is for.
constexpr char kTaskKey[] = "task";

// The first few of `names`, and how many more there are.
std::string Some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  const size_t shown = std::min(names.size(), kShown);
  return absl::StrCat(
      absl::StrJoin(names.begin(), names.begin() + static_cast<int64_t>(shown),
                    ", "),
      names.size() > shown
          ? absl::StrCat(" and ", names.size() - shown, " more")
          : "");
}

NamedTensors WithPrefix(const NamedTensors& tensors,
                        const std::string& prefix) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) {
    if (absl::StartsWith(name, prefix)) {
      result.emplace(name, tensor);
    }
  }
  return result;
}

// Loads all of `destination`.
absl::StatusOr<LoadReport> LoadAll(const std::string& path,
                                   const TensorReader& reader,
                                   const NamedTensors& destination) {
  ETC_ASSIGN_OR_RETURN(LoadReport report, LoadTensors(reader, destination));
  if (!report.missing.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " lacks ", Some(report.missing)));
  }
  return report;
}

// Why the head in the file cannot be used; empty if it can.
absl::StatusOr<std::string> WhyNotHead(const TensorReader& reader,
                                       const std::string& task,
                                       const NamedTensors& head) {
  const std::vector<std::string> names = reader.Names();
  const std::set<std::string> found(names.begin(), names.end());
  const auto made_for = reader.metadata().find(kTaskKey);
  if (made_for == reader.metadata().end() || made_for->second != task) {
    return made_for == reader.metadata().end()
               ? std::string("it has none")
               : absl::StrCat("its own is for ", made_for->second);
  }
  for (const auto& [name, tensor] : head) {
    if (found.count(name) == 0) {
      return absl::StrCat("its own has no ", name);
    }
    ETC_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, reader.Shape(name));
    if (tensor.sizes() != shape) {
      return absl::StrCat("its own has ", name, " of shape [",
                          absl::StrJoin(shape, ", "), "]");
    }
  }
  return std::string();
}

// The path of `name` in the checkpoint directory `init`, or beside the file
// `init`; empty if there is no such file.
std::string FileOfCheckpoint(const std::string& init, const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path path(init);
  const fs::path file =
      (fs::is_regular_file(path, ignored) ? path.parent_path() : path) / name;
  return fs::exists(file, ignored) ? file.string() : "";
}

// "sum" where the checkpoint's etc_config.json says so; empty without one.
absl::StatusOr<std::string> ResidualAttentionOf(const std::string& init) {
  const std::string file = FileOfCheckpoint(init, "etc_config.json");
  if (file.empty()) {
    return std::string();
  }
  std::vector<std::string> unknown_fields;
  ETC_ASSIGN_OR_RETURN(const EtcConfig config,
                       ReadEtcConfig(file, &unknown_fields));
  return config.residual_attention;
}

// The configuration has a warning where this is not what it asks for.
LinearPrecision PrecisionOfThisCpu(const FinetuneConfig& config) {
  return config.train.precision == "bf16" &&
                 kernels::Bfloat16ProductsOfThisCpu() !=
                     kernels::Bfloat16Products::kNone
             ? LinearPrecision::kBfloat16
             : LinearPrecision::kFloat32;
}

}  // namespace

std::vector<torch::Tensor> FinetunedModel::Logits(const Batch& batch) const {
  EtcInput input;
  input.token_ids = batch.long_token_ids;
  input.global_token_ids = batch.global_token_ids;
  input.segment_ids = batch.long_type_ids;
  input.global_segment_ids = batch.global_type_ids;
  input.attention = batch.attention;
  return head->forward(encoder.ptr()->forward(input), batch);
}

NamedTensors FinetunedModel::Tensors() const {
  NamedTensors tensors = ModuleTensors(*encoder, kEncoder);
  tensors.merge(ModuleTensors(*head, kHead));
  return tensors;
}

NamedTensors FinetunedModel::Parameters() const {
  NamedTensors parameters;
  for (const auto& parameter : encoder->named_parameters()) {
    parameters.emplace(kEncoder + parameter.key(), parameter.value());
  }
  for (const auto& parameter : head->named_parameters()) {
    parameters.emplace(kHead + parameter.key(), parameter.value());
  }
  return parameters;
}

void FinetunedModel::SetTraining(bool training) const {
  encoder.ptr()->train(training);
  head->train(training);
}

FinetunedModel MakeFinetunedModel(const FinetuneConfig& config,
                                  const Task& task) {
  FinetunedModel model;
  model.encoder = EtcModel(config.model);
  model.encoder->set_residual_attention(
      ResidualAttentionFromName(config.residual_attention));
  model.encoder->set_score_storage(
      ScoreStorageFromName(config.train.score_storage));
  model.encoder->set_linear_precision(PrecisionOfThisCpu(config));
  model.head = task.MakeHead();
  return model;
}

absl::StatusOr<std::vector<std::string>> LoadInitialWeights(
    const FinetuneConfig& config, const FinetunedModel& model) {
  ETC_ASSIGN_OR_RETURN(const TensorReader reader,
                       TensorReader::Open(config.init));
  const std::vector<std::string> names = reader.Names();
  const bool has_prefix = std::any_of(
      names.begin(), names.end(),
      [](const std::string& name) { return absl::StartsWith(name, kEncoder); });
  ETC_RETURN_IF_ERROR(
      LoadAll(config.init, reader,
              ModuleTensors(*model.encoder, has_prefix ? kEncoder : ""))
          .status());
  std::vector<std::string> messages = {
      absl::StrCat("encoder: from ", config.init)};

  const NamedTensors head = WithPrefix(model.Tensors(), kHead);
  ETC_ASSIGN_OR_RETURN(const std::string why_not,
                       WhyNotHead(reader, config.task, head));
  if (why_not.empty()) {
    ETC_RETURN_IF_ERROR(LoadAll(config.init, reader, head).status());
    messages.push_back(absl::StrCat("head: from ", config.init));
  } else {
    messages.push_back(absl::StrCat("head: random weights, because ",
                                    config.init, ": ", why_not));
  }

  ETC_ASSIGN_OR_RETURN(const std::string before,
                       ResidualAttentionOf(config.init));
  if (!before.empty() && before != config.residual_attention) {
    messages.push_back(absl::StrCat("residual attention: pre-trained with ",
                                    before, ", fine-tuning with ",
                                    config.residual_attention));
  }
  return messages;
}

absl::Status WriteFinetunedModel(const FinetunedModelFiles& files,
                                 const std::string& directory) {
  const FinetuneConfig& config = files.config;
  EtcConfig encoder = files.model.encoder->config();
  encoder.residual_attention = config.residual_attention;
  ETC_RETURN_IF_ERROR(WriteFileAtomically(directory + "/etc_config.json",
                                          EtcConfigToJson(encoder)));
  ETC_RETURN_IF_ERROR(WriteFileAtomically(directory + "/finetune.json",
                                          config.json.dump(2) + "\n"));
  if (!files.vocabulary.empty()) {
    ETC_RETURN_IF_ERROR(WriteFileAtomically(
        absl::StrCat(directory, "/", VocabularyFileName(config.tokenizer.type)),
        files.vocabulary));
  }
  return WriteTensors(directory + "/model.safetensors", files.model.Tensors(),
                      {{"format", "pt"}, {kTaskKey, config.task}});
}

absl::StatusOr<FinetuneConfig> ReadFinetunedConfig(
    const std::string& directory) {
  const std::string path = directory + "/finetune.json";
  ETC_ASSIGN_OR_RETURN(nlohmann::json json, ReadJsonFile(path));
  if (json.is_object()) {
    json["model"] = {{"path", directory + "/etc_config.json"}};
  }
  ETC_ASSIGN_OR_RETURN(FinetuneConfig config,
                       FinetuneConfigFromJson(std::move(json), path));
  const std::string vocabulary =
      absl::StrCat(directory, "/", VocabularyFileName(config.tokenizer.type));
  if (std::error_code ignored; std::filesystem::exists(vocabulary, ignored)) {
    config.tokenizer.vocabulary = vocabulary;
  }
  return config;
}

absl::StatusOr<FinetunedModel> LoadFinetunedModel(const std::string& directory,
                                                  const FinetuneConfig& config,
                                                  const Task& task) {
  FinetunedModel model = MakeFinetunedModel(config, task);
  ETC_RETURN_IF_ERROR(LoadFinetunedWeights(directory, config, model));
  model.SetTraining(false);
  return model;
}

absl::Status LoadFinetunedWeights(const std::string& directory,
                                  const FinetuneConfig& config,
                                  const FinetunedModel& model) {
  ETC_ASSIGN_OR_RETURN(const TensorReader reader,
                       TensorReader::Open(directory));
  const auto made_for = reader.metadata().find(kTaskKey);
  if (made_for != reader.metadata().end() && made_for->second != config.task) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, " is fine-tuned for ", made_for->second,
                     ", not for ", config.task));
  }
  ETC_ASSIGN_OR_RETURN(const LoadReport report,
                       LoadAll(directory, reader, model.Tensors()));
  if (!report.unexpected.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory,
        " has tensors that the model does not: ", Some(report.unexpected)));
  }
  return absl::OkStatus();
}

std::string VocabularyFileName(const std::string& tokenizer_type) {
  return tokenizer_type == "sentencepiece" ? "tokenizer.model" : "vocab.txt";
}

std::string VocabularyPath(const FinetuneConfig& config) {
  if (!config.tokenizer.vocabulary.empty() || config.init.empty()) {
    return config.tokenizer.vocabulary;
  }
  return FileOfCheckpoint(config.init,
                          VocabularyFileName(config.tokenizer.type));
}

}  // namespace etc
