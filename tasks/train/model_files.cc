#include "tasks/train/model_files.h"

#include <torch/utils.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "etc/config.h"
#include "etc/residual_choice.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/gates.h"
#include "etc/weights/source_config.h"
#include "etc/weights/tokenizer_files.h"
#include "nlohmann/json.hpp"
#include "tasks/output/checkpoint_files.h"
#include "tasks/task/task.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/train/initial_weights.h"
#include "tasks/train/model_task.h"

namespace etc {

namespace {

// The folder of a checkpoint for the tables of data.sentences.
std::string PunktFolder(const std::string& directory) {
  return directory + "/punkt";
}

// The HuggingFace fields of a model, with those that its head states.
HuggingFaceFields FieldsOf(const TaskModel& model) {
  HuggingFaceFields fields = model.hugging_face();
  if (const auto* named =
          dynamic_cast<const NamedOutputs*>(model.head().get())) {
    const NamedOutputs::Meaning meaning = named->OutputMeaning();
    fields.labels = meaning.labels;
    fields.problem_type = meaning.problem_type;
    fields.mean = meaning.mean;
    fields.deviation = meaning.deviation;
  }
  return fields;
}

}  // namespace

absl::Status WriteTaskModel(const TaskModelFiles& files,
                            const std::string& directory) {
  const RunConfig& config = files.config;
  EtcConfig encoder = files.model.encoder()->config();
  encoder.residual_attention = config.residual_attention;
  // Not that of the memory plan by which the last micro-batch was computed.
  encoder.grad_checkpointing_period = config.model.grad_checkpointing_period;
  ETC_RETURN_IF_ERROR(WriteFileAtomically(directory + "/etc_config.json",
                                          EtcConfigToJson(encoder)));
  // Written as used, for readers that do not have `init` any more.
  nlohmann::json json = config.json;
  json["tokenizer"]["type"] = config.tokenizer.type;
  json["tokenizer"]["lower_case"] = config.tokenizer.lower_case;
  json["tokenizer"]["split_punctuation"] = config.tokenizer.split_punctuation;
  ETC_RETURN_IF_ERROR(WriteFileAtomically(directory + "/run_config.json",
                                          JsonText(json, /*indent=*/2) + "\n"));
  if (!files.vocabulary.empty()) {
    TokenizerFiles tokenizer = {
        .type = config.tokenizer.type,
        .wordpiece = files.wordpiece,
        .split_punctuation = config.tokenizer.split_punctuation};
    tokenizer.wordpiece.lower_case = config.tokenizer.lower_case;
    ETC_RETURN_IF_ERROR(WriteTokenizer(tokenizer, files.vocabulary, directory));
  }
  if (files.punkt != nullptr) {
    ETC_RETURN_IF_ERROR(WritePunktFiles(*files.punkt, PunktFolder(directory)));
  }
  std::map<std::string, std::string> metadata = {{"format", "pt"},
                                                 {kTaskKey, config.task}};
  metadata.merge(MetadataOf(FieldsOf(files.model)));
  return WriteTensors(directory + "/model.safetensors", files.model.Tensors(),
                      metadata);
}

namespace {

// Puts the path of the vocabulary in `directory`, which is returned, in the
// place of `original` if it is there, or else nothing.
std::string TakeVocabulary(const std::string& directory, nlohmann::json* json,
                           std::string* original) {
  std::string type = TokenizerConfig().type;
  const auto tokenizer = json->find("tokenizer");
  const bool is_object = tokenizer != json->end() && tokenizer->is_object();
  const auto take = [&](const char* field, std::string* value) {
    if (is_object && tokenizer->contains(field) &&
        tokenizer->find(field)->is_string()) {
      *value = tokenizer->find(field)->get<std::string>();
    }
  };
  take("type", &type);
  take("vocabulary", original);
  std::string path = absl::StrCat(directory, "/", VocabularyFileName(type));
  if (is_object || tokenizer == json->end()) {
    (*json)["tokenizer"]["vocabulary"] =
        EntryExists(path).value_or(false) ? path : "";
  }
  return path;
}

}  // namespace

absl::StatusOr<RunConfig> ReadTaskModelConfig(const std::string& directory) {
  const std::string path = directory + "/run_config.json";
  ETC_ASSIGN_OR_RETURN(nlohmann::json json, ReadJsonFile(path));
  bool had_init = false;
  std::string original;  // the vocabulary that the run read
  std::string vocabulary;
  if (json.is_object()) {
    vocabulary = TakeVocabulary(directory, &json, &original);
    had_init = json.contains("init") && json["init"] != "";
    const bool translates =
        json.contains("task") && json["task"] == kTranslationTask;
    json["model"] = {{"path", absl::StrCat(directory, "/",
                                           translates ? kEncoderDecoderFile
                                                      : "etc_config.json")}};
    if (translates) {
      json.erase("residual_attention");  // the model has it by paths
    }
    json.erase("init");
  }
  ETC_ASSIGN_OR_RETURN(RunConfig config,
                       RunConfigFromJson(std::move(json), path));
  config.train.device = TrainConfig().device;
  if (config.tokenizer.vocabulary.empty() && (had_init || !original.empty())) {
    // The file that the run read may have been replaced since.
    return absl::NotFoundError(absl::StrCat(
        "there is no ", vocabulary,
        ", which was written with the checkpoint: copy it there",
        original.empty() ? ""
                         : absl::StrCat(" (the run read ", original, ")")));
  }
  if (config.data.sentences != kIcuSentences) {
    config.data.sentences = PunktFolder(directory);
    // Here a missing file can be named as what it is; later it cannot.
    ETC_RETURN_IF_ERROR(ReadPunktFiles(config.data.sentences).status());
  }
  return config;
}

namespace {

// The gates of a checkpoint, if one of the modes asks for them.
absl::StatusOr<NamedTensors> GatesFor(const EtcConfig& trained,
                                      const EtcConfig& now,
                                      const std::string& directory) {
  if (trained.residual_attention != "gate" &&
      now.residual_attention != "gate") {
    return NamedTensors();
  }
  ETC_ASSIGN_OR_RETURN(const TensorReader reader,
                       TensorReader::Open(directory));
  return ReadGates(reader);
}

}  // namespace

absl::Status ApplyResidual(const std::string& directory,
                           const std::string& choice, const RunContext& context,
                           RunConfig* config) {
  if (choice.empty()) {
    return absl::OkStatus();
  }
  if (config->encoder_decoder.has_value()) {
    EncoderDecoderConfig& paths = *config->encoder_decoder;
    const std::string trained = ResidualText(paths);
    ETC_RETURN_IF_ERROR(ApplyResidualChoice(choice, directory, &paths));
    if (trained != ResidualText(paths)) {
      context.Warn(OtherModeText(trained, ResidualText(paths)));
    }
    return absl::OkStatus();
  }
  const EtcConfig trained = config->model;
  EtcConfig& now = config->model;
  ETC_RETURN_IF_ERROR(ApplyResidualChoice(choice, directory, &now));
  config->residual_attention = now.residual_attention;
  ETC_ASSIGN_OR_RETURN(const NamedTensors gates,
                       GatesFor(trained, now, directory));
  if (now.residual_gate_init != trained.residual_gate_init && !gates.empty()) {
    context.Warn(absl::StrCat(
        "residual attention: ", choice,
        " sets gates of models that have none; this one keeps its own"));
  }
  if (ComputedMode(trained, gates) != ComputedMode(now, gates)) {
    context.Warn(OtherModeText(ResidualText(trained), ResidualText(now)));
  }
  return absl::OkStatus();
}

absl::StatusOr<DataConfig> ReadTextData(const std::string& weights,
                                        const EtcConfig& model) {
  const std::string trained = FileBesideWeights(weights, "run_config.json");
  if (!trained.empty()) {
    ETC_ASSIGN_OR_RETURN(
        RunConfig config,
        ReadTaskModelConfig(std::filesystem::path(trained).parent_path()));
    return std::move(config.data);
  }
  DataConfig data;
  for (const char* name : {"config.json", "text_options.json"}) {
    const std::string path = FileBesideWeights(weights, name);
    if (path.empty()) {
      continue;
    }
    ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonFile(path));
    if (absl::string_view(name) == "config.json" &&
        !IsOfTransformersExport(json)) {
      continue;
    }
    JsonObjectReader reader(json, path);
    reader.Optional("max_long_length", &data.max_long_length);
    reader.Optional("max_global_length", &data.max_global_length);
    reader.Optional("sentences", &data.sentences);
    ETC_RETURN_IF_ERROR(reader.status());
    return data;
  }
  if (model.max_absolute_position_embeddings > 0) {
    data.max_long_length = model.max_absolute_position_embeddings;
    data.max_global_length = model.max_absolute_position_embeddings;
  }
  return data;
}

absl::StatusOr<TaskModel> LoadTaskModel(const std::string& directory,
                                        const RunConfig& config,
                                        const EncoderTask& task,
                                        const torch::Device& device) {
  ETC_RETURN_IF_ERROR(CheckCheckpointFiles(directory));
  TaskModel model = MakeTaskModel(config, task, device);
  ETC_RETURN_IF_ERROR(LoadTaskModelWeights(directory, config, model));
  model.SetTraining(false);
  return model;
}

absl::Status LoadTaskModelWeights(const std::string& directory,
                                  const RunConfig& config,
                                  const TaskModel& model) {
  ETC_ASSIGN_OR_RETURN(const TensorReader reader,
                       TensorReader::Open(directory));
  const auto made_for = reader.metadata().find(kTaskKey);
  if (made_for != reader.metadata().end() && made_for->second != config.task) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, " is fine-tuned for ", made_for->second,
                     ", not for ", config.task));
  }
  ETC_ASSIGN_OR_RETURN(
      const HuggingFaceFields fields,
      HuggingFaceFieldsFromMetadata(reader.metadata(), directory));
  const NamedTensors tensors = model.Tensors();
  const absl::StatusOr<SourceConfig> written = ReadSourceConfig(directory);
  const bool should_have_gates =
      written.ok() && written->config.residual_attention == "gate";
  const std::set<std::string> gates = GatesOfOneSide(
      reader, tensors, should_have_gates, [](const std::string& name) {
        return absl::StartsWith(name, kEncoderPrefix) && IsGate(name);
      });
  ETC_RETURN_IF_ERROR(
      LoadTensors(reader, tensors, NameMatch::kBoth, gates).status());
  model.hugging_face() = fields;
  return absl::OkStatus();
}

absl::StatusOr<ModelWithFiles> MakeModel(const RunConfig& config,
                                         const Task& task,
                                         const torch::Device& device,
                                         int64_t processes) {
  if (const ModelTask* const model_task = AsModelTask(task)) {
    return model_task->MakeModel(config, device);
  }
  ETC_ASSIGN_OR_RETURN(
      const EncoderTask* const encoder_task,
      EncoderTaskOf(task, absl::StrCat(config.source, " is of ", config.task)));
  return MakeModelWithFiles(config, *encoder_task, device, processes);
}

absl::StatusOr<ModelWithFiles> MakeModelWithFiles(const RunConfig& config,
                                                  const EncoderTask& task,
                                                  const torch::Device& device,
                                                  int64_t processes) {
  std::string vocabulary;
  TokenizerFiles tokenizer;
  if (const TokenizerConfig& named = config.tokenizer;
      !named.vocabulary.empty()) {
    ETC_ASSIGN_OR_RETURN(tokenizer,
                         DescribeTokenizer(named.type, named.vocabulary));
    TakeUnstatedBeside(config.init, &tokenizer);
    ETC_ASSIGN_OR_RETURN(vocabulary,
                         ReadVocabulary(named.type, named.vocabulary));
  }
  std::optional<PunktFiles> punkt;
  if (config.data.sentences != kIcuSentences) {
    ETC_ASSIGN_OR_RETURN(punkt, ReadPunktFiles(config.data.sentences));
  }
  // A copy shares encoder and head with the model.
  const TaskModel model = MakeTaskModel(config, task, device, processes);
  // Weights that were trained depend on the omegas that they come with, or on
  // those of 1 with which they compute the same as before.
  std::function<std::string(const Batch&)> initialize_by_data;
  if (config.init.empty() &&
      SublayerFromName(config.model.sublayer) == Sublayer::kAdmin) {
    initialize_by_data = [model](const Batch& batch) {
      return InitializeOmegas(model, batch);
    };
  }
  return ModelWithFiles{
      .model = std::make_unique<TaskModel>(model),
      .load_initial_weights = [&config, model,
                               output_settings = task.OutputSettings()]()
          -> absl::StatusOr<Notices> {
        if (config.init.empty()) {
          return Notices{.messages = {"encoder and head: random weights"}};
        }
        return LoadInitialWeights(config, model, output_settings);
      },
      .initialize_by_data = std::move(initialize_by_data),
      .save =
          [&config, model, vocabulary = std::move(vocabulary),
           punkt = std::move(punkt),
           wordpiece =
               std::move(tokenizer.wordpiece)](const std::string& directory) {
            return WriteTaskModel(
                {.config = config,
                 .model = model,
                 .vocabulary = vocabulary,
                 .punkt = punkt.has_value() ? &*punkt : nullptr,
                 .wordpiece = wordpiece},
                directory);
          },
      .load =
          [&config, model](const std::string& directory) {
            return LoadTaskModelWeights(directory, config, model);
          }};
}

}  // namespace etc
