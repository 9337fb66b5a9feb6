#include "tasks/translation/model.h"

#include <torch/utils.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/to_device.h"
#include "etc/encoder_decoder/admin_omegas.h"
#include "etc/encoder_decoder/config.h"
#include "etc/encoder_decoder/fairseq_names.h"
#include "etc/weights/gates.h"
#include "etc/weights/source_config.h"
#include "etc/weights/tokenizer_files.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"
#include "tasks/output/checkpoint_files.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/train/device.h"
#include "tasks/translation/initial_weights.h"
#include "tasks/translation/parallel_text.h"

namespace etc {
namespace {

// [rows, width] of padding.
torch::Tensor PaddingIds(size_t rows, size_t width) {
  return torch::full({static_cast<int64_t>(rows), static_cast<int64_t>(width)},
                     kPaddingId, torch::kInt64);
}

int64_t* Row(const torch::Tensor& ids, size_t row) {
  return ids.data_ptr<int64_t>() + static_cast<int64_t>(row) * ids.size(1);
}

}  // namespace

torch::Tensor PadSources(absl::Span<const std::vector<int32_t>> sources,
                         const torch::Device& device) {
  size_t longest = 0;
  for (const std::vector<int32_t>& source : sources) {
    longest = std::max(longest, source.size());
  }
  const torch::Tensor ids = PaddingIds(sources.size(), longest);
  for (size_t i = 0; i < sources.size(); ++i) {
    std::copy(sources[i].begin(), sources[i].end(),
              Row(ids, i) + (longest - sources[i].size()));
  }
  return ToDevice(ids, device);
}

TranslationInput MakeTranslationInput(const Examples& pairs,
                                      const torch::Device& device) {
  std::vector<std::vector<int32_t>> sources;
  size_t longest = 0;
  for (const auto& pair : pairs) {
    sources.push_back(ExampleAs<TranslationExample>(*pair).source);
    longest =
        std::max(longest, ExampleAs<TranslationExample>(*pair).target.size());
  }
  const torch::Tensor decoder_ids = PaddingIds(pairs.size(), longest);
  const torch::Tensor targets = PaddingIds(pairs.size(), longest);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::vector<int32_t>& target =
        ExampleAs<TranslationExample>(*pairs[i]).target;
    std::copy(target.begin(), target.end(), Row(targets, i));
    Row(decoder_ids, i)[0] = kEndId;
    std::copy(target.begin(), target.end() - 1, Row(decoder_ids, i) + 1);
  }
  return {.source_ids = PadSources(sources, device),
          .decoder_ids = ToDevice(decoder_ids, device),
          .targets = ToDevice(targets, device)};
}

NamedTensors TranslationModel::NamedParameters() const {
  NamedTensors parameters;
  for (const auto& parameter : model_->named_parameters()) {
    parameters.emplace(parameter.key(), parameter.value());
  }
  return parameters;
}

Batch TranslationModel::Collate(Examples examples,
                                const torch::Device& /*device*/) const {
  Batch batch;
  batch.examples = std::move(examples);
  return batch;
}

std::vector<torch::Tensor> TranslationModel::Forward(const Batch& batch) {
  const TranslationInput input =
      MakeTranslationInput(batch.examples, DeviceOf(NamedParameters()));
  const auto row = [](const SmoothedLoss& loss) {
    return torch::stack(
        {loss.loss, loss.nll, torch::full_like(loss.nll, loss.tokens)});
  };
  if (is_training()) {
    return {row(model_->Loss(input.source_ids, input.decoder_ids, input.targets,
                             smoothing_))
                .unsqueeze(0)};
  }
  const torch::Tensor states = model_->decoder()->forward(
      model_->encoder()->forward(input.source_ids), input.decoder_ids);
  std::vector<torch::Tensor> rows;
  for (int64_t i = 0; i < batch.size(); ++i) {
    rows.push_back(
        row(model_->decoder()->Loss(states[i], input.targets[i], smoothing_)));
  }
  return {torch::stack(rows)};
}

LossTotals TranslationModel::Totals(const Examples& examples) const {
  int64_t tokens = 0;
  for (const auto& example : examples) {
    tokens += static_cast<int64_t>(
        ExampleAs<TranslationExample>(*example).target.size());
  }
  return {static_cast<double>(tokens)};
}

torch::Tensor TranslationModel::Loss(const std::vector<torch::Tensor>& logits,
                                     const Batch& /*batch*/,
                                     const LossTotals& totals) {
  return logits.front().select(/*dim=*/1, /*index=*/0).sum() / totals.front();
}

absl::StatusOr<TranslationModel> MakeTranslationModel(
    const RunConfig& config, const TranslationOptions& options,
    const torch::Device& device) {
  EncoderDecoder model(*config.encoder_decoder);
  if (options.admin_omegas != kClosedForm &&
      options.admin_omegas != kFirstBatch) {
    ETC_ASSIGN_OR_RETURN(
        const AdminOmegas omegas,
        ReadAdminOmegas(options.admin_omegas,
                        AdminBlocksOf(*config.encoder_decoder)));
    SetAdminOmegas(model, omegas);
  }
  model->set_score_storage(ScoreStorageFromName(config.train.score_storage));
  model->set_linear_precision(PrecisionOn(device, config));
  if (!device.is_cpu()) {
    model->to(device);
  }
  return TranslationModel(std::move(model), options.label_smoothing);
}

absl::Status WriteTranslationModel(const RunConfig& config,
                                   const TranslationModel& model,
                                   const std::string& vocabulary,
                                   const std::string& directory) {
  ETC_RETURN_IF_ERROR(
      WriteFileAtomically(absl::StrCat(directory, "/", kEncoderDecoderFile),
                          EncoderDecoderConfigToJson(model.model()->config())));
  ETC_RETURN_IF_ERROR(
      WriteFileAtomically(directory + "/run_config.json",
                          JsonText(config.json, /*indent=*/2) + "\n"));
  ETC_RETURN_IF_ERROR(WriteFileAtomically(
      absl::StrCat(directory, "/", VocabularyFileName(config.tokenizer.type)),
      vocabulary));
  return WriteTensors(directory + "/model.safetensors", model.Tensors(),
                      {{"format", "pt"}, {kTaskKey, config.task}});
}

absl::StatusOr<EncoderDecoderConfig> ReadEncoderDecoderConfig(
    const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kEncoderDecoderFile);
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonFile(path));
  ETC_ASSIGN_OR_RETURN(const EncoderDecoderConfig config,
                       EncoderDecoderConfigFromJson(json, path));
  if (config.vocab_size == 0) {
    return InvalidArgument(path, ": vocab_size should be given");
  }
  return config;
}

namespace {

// The gates of each path of residual attention on which only one of the file
// and the model has some, by the configuration beside the file if there is one.
std::set<std::string> OptionalGates(const TensorReader& reader,
                                    const NamedTensors& model) {
  using Config = EncoderDecoderConfig;
  struct Path {
    const char* stack;
    const char* gate;
    std::string Config::*mode;
  };
  const std::string file =
      FileBesideWeights(reader.path(), kEncoderDecoderFile);
  const Config written =
      file.empty()
          ? Config()
          : ReadEncoderDecoderConfig(FolderOf(file)).value_or(Config());
  std::set<std::string> gates;
  for (const Path& path : {Path{"encoder.", "self_attention.gate",
                                &Config::encoder_residual_attention},
                           Path{"decoder.", "self_attention.gate",
                                &Config::decoder_residual_attention},
                           Path{"decoder.", "cross_attention.gate",
                                &Config::cross_residual_attention}}) {
    gates.merge(GatesOfOneSide(reader, model, written.*path.mode == "gate",
                               [&path](const std::string& name) {
                                 return absl::StartsWith(name, path.stack) &&
                                        absl::EndsWith(name, path.gate);
                               }));
  }
  return gates;
}

}  // namespace

absl::Status LoadTranslationWeights(const std::string& path,
                                    const TranslationModel& model) {
  ETC_ASSIGN_OR_RETURN(const TensorReader reader, TensorReader::Open(path));
  const std::vector<std::string>& names = reader.Names();
  const bool is_of_fairseq =
      std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return absl::EndsWith(name, "embed_tokens.weight");
      });
  if (is_of_fairseq) {
    return LoadFairseqTensors(reader, model.model());
  }
  const NamedTensors tensors = model.Tensors();
  return LoadTensors(reader, tensors, NameMatch::kBoth,
                     OptionalGates(reader, tensors))
      .status();
}

absl::StatusOr<TranslationModel> LoadTranslationModel(
    const std::string& directory, const RunConfig& config,
    TranslationOptions options, const torch::Device& device) {
  ETC_RETURN_IF_ERROR(CheckCheckpointFiles(directory));
  options.admin_omegas = kClosedForm;  // those of the file take their place
  ETC_ASSIGN_OR_RETURN(TranslationModel model,
                       MakeTranslationModel(config, options, device));
  ETC_RETURN_IF_ERROR(LoadTranslationWeights(directory, model));
  model.SetTraining(false);
  return model;
}

namespace {

// Sets the omegas by one pass over a batch in training mode; a message with
// their range.
std::string ProfileOmegas(const TranslationModel& model, const Batch& batch) {
  const torch::NoGradGuard no_grad;
  model.model()->train(true);
  const TranslationInput input =
      MakeTranslationInput(batch.examples, DeviceOf(model.NamedParameters()));
  const AdminOmegas omegas =
      ProfileAdmin(model.model(), input.source_ids, input.decoder_ids);
  double largest = 1;
  for (const auto* stack : {&omegas.encoder, &omegas.decoder}) {
    for (const double omega : *stack) {
      largest = std::max(largest, omega);
    }
  }
  return absl::StrFormat(
      "sublayer admin: omegas are set by the first batch, up to %.4g", largest);
}

}  // namespace

absl::StatusOr<ModelWithFiles> MakeTranslationModelWithFiles(
    const RunConfig& config, const TranslationOptions& options,
    const TranslationVocabulary& vocabulary, const torch::Device& device) {
  ETC_ASSIGN_OR_RETURN(
      std::string vocabulary_file,
      ReadFile(config.tokenizer.vocabulary, kMostVocabularyBytes));
  // A copy shares the model.
  ETC_ASSIGN_OR_RETURN(const TranslationModel model,
                       MakeTranslationModel(config, options, device));
  const EncoderDecoderConfig& sizes = *config.encoder_decoder;
  const bool has_omegas =
      sizes.encoder_sublayer == "admin" || sizes.decoder_sublayer == "admin";
  std::function<std::string(const Batch&)> initialize_by_data;
  // Weights that were trained depend on the omegas that they come with.
  if (has_omegas && config.init.empty() &&
      options.admin_omegas == kFirstBatch) {
    initialize_by_data = [model](const Batch& batch) {
      return ProfileOmegas(model, batch);
    };
  }
  return ModelWithFiles{
      .model = std::make_unique<TranslationModel>(model),
      .load_initial_weights = [&config, &vocabulary,
                               model]() -> absl::StatusOr<Notices> {
        if (config.init.empty()) {
          return Notices{.messages = {"encoder-decoder: random weights"}};
        }
        ETC_ASSIGN_OR_RETURN(std::string line, LoadInitialTranslationWeights(
                                                   config, vocabulary, model));
        return Notices{.messages = {std::move(line)}};
      },
      .initialize_by_data = std::move(initialize_by_data),
      .save =
          [&config, model,
           file = std::move(vocabulary_file)](const std::string& directory) {
            return WriteTranslationModel(config, model, file, directory);
          },
      .load =
          [model](const std::string& directory) {
            return LoadTranslationWeights(directory, model);
          }};
}

}  // namespace etc
