#include "etc/weights/convert.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "etc/weights/import_plan.h"
#include "etc/weights/pretraining_heads.h"
#include "etc/weights/source_config.h"

namespace etc {
namespace {

constexpr char kWeights[] = "model.safetensors";
// HuggingFace's loaders require it (doc/formats.md 1.2).
constexpr std::pair<const char*, const char*> kMetadata = {"format", "pt"};

absl::Status CheckFree(const std::string& path) {
  if (std::error_code ignored; std::filesystem::exists(path, ignored)) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " is there already and would be overwritten"));
  }
  return absl::OkStatus();
}

absl::Status CopyTokenizer(const TokenizerFiles& tokenizer,
                           const std::string& directory) {
  if (tokenizer.type.empty()) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const std::string vocabulary,
                       ReadVocabulary(tokenizer.type, tokenizer.vocabulary));
  return WriteTokenizer(tokenizer, vocabulary, directory);
}

// The files of an export.
struct Target {
  NameStyle style;
  std::string config_file;
  std::string config;
  std::string weights_file;  // or the prefix
};

// HuggingFace's class of a BERT with these heads.
const char* ArchitectureOf(const HeadPlan& heads) {
  using enum PretrainingHead;
  return heads.Has(kClassifier)   ? "BertForSequenceClassification"
         : heads.Has(kAnswerSpan) ? "BertForQuestionAnswering"
         : !heads.Has(kMlm)       ? "BertModel"
         : heads.Has(kNsp)        ? "BertForPreTraining"
                                  : "BertForMaskedLM";
}

// Of a classifier; 0 if there is none.
int64_t NumOutputs(const HeadPlan& heads) {
  for (const WeightStep& step : heads.steps) {
    if (step.target.name == "head.classifier.bias") {
      return step.target.shape[0];
    }
  }
  return 0;
}

Target TargetOf(const EtcConfig& config, const HeadPlan& heads,
                ExportFormat format) {
  const bool is_tensorflow = format == ExportFormat::kTensorFlow;
  if (!HasOnlyAbsolutePositions(config)) {
    return {NameStyle::kOfficialEtc, "etc_config.json", EtcConfigToJson(config),
            is_tensorflow ? "model.ckpt" : kWeights};
  }
  return is_tensorflow
             ? Target{NameStyle::kGoogleBert, "bert_config.json",
                      GoogleBertConfigToJson(config), "bert_model.ckpt"}
             : Target{NameStyle::kHuggingFace, "config.json",
                      HuggingFaceBertConfigToJson(config, ArchitectureOf(heads),
                                                  NumOutputs(heads)),
                      kWeights};
}

// The TensorFlow code supports one gelu and one epsilon, and BERT's code, also
// HuggingFace's, Post-LN alone.
absl::Status CheckExpressible(const EtcConfig& config, NameStyle style,
                              const std::string& source) {
  if (config.use_pre_activation_order && style != NameStyle::kOfficialEtc) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": ", NameStyleDescription(style),
        " has LayerNorm behind each block only, but this model has "
        "use_pre_activation_order true"));
  }
  if (style == NameStyle::kHuggingFace) {
    return absl::OkStatus();
  }
  const EtcConfig official;
  if (config.hidden_act == "gelu_erf" ||
      config.layer_norm_epsilon != official.layer_norm_epsilon) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": ", NameStyleDescription(style),
                     " knows the tanh form of gelu and an epsilon of ",
                     official.layer_norm_epsilon,
                     " only, but this model has hidden_act ", config.hidden_act,
                     " and layer_norm_epsilon ", config.layer_norm_epsilon));
  }
  return absl::OkStatus();
}

const char* PrefixOf(NameStyle style) {
  switch (style) {
    case NameStyle::kRealEtc:
      return "encoder.";
    case NameStyle::kOfficialEtc:
      return "etc_document_bert/";
    case NameStyle::kGoogleBert:
      return "bert/";
    case NameStyle::kHuggingFace:
      return "bert.";
  }
  return "";
}

absl::StatusOr<HeadPlan> PlanImportedHeads(const SourceWeights& source,
                                           const EtcConfig& config,
                                           const ImportOptions& options) {
  HeadPlanOptions heads{.heads = AllHeads(), .token_rows = options.token_rows};
  if (!options.heads) {
    heads.heads.clear();
  } else if (options.lift) {
    heads.heads = {PretrainingHead::kMlm, PretrainingHead::kCpc};
  }
  return PlanHeads(source, config, heads);
}

// What the metadata of a file of ours say.
std::map<std::string, std::string> MetadataFor(const HeadPlan& heads) {
  std::map<std::string, std::string> metadata = {kMetadata};
  if (!heads.found.empty()) {
    metadata.emplace("task", kPretrainingTask);
  }
  return metadata;
}

}  // namespace

absl::StatusOr<ImportPlan> PlanImport(const ImportOptions& options) {
  ETC_ASSIGN_OR_RETURN(WeightFile file, OpenWeights(options.source));
  if (options.lift && !HasOnlyAbsolutePositions(file.source.config)) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.source,
                     " is ETC already: only BERT and RoBERTa can be lifted"));
  }
  if (!options.residual_attention.empty()) {
    file.source.config.residual_attention = options.residual_attention;
  }
  EtcConfig config =
      options.lift ? LiftedConfig(file.source.config) : file.source.config;
  if (!options.token_rows.empty()) {
    config.vocab_size = static_cast<int64_t>(options.token_rows.size());
  }
  using Segments = WeightPlanOptions::Segments;
  ETC_ASSIGN_OR_RETURN(
      WeightPlan plan,
      PlanWeights(file.source, config,
                  {.segments = options.segments_by_index ? Segments::kByIndex
                                                         : Segments::kBroadcast,
                   .token_rows = options.token_rows}));
  ETC_ASSIGN_OR_RETURN(HeadPlan heads,
                       PlanImportedHeads(file.source, config, options));
  std::erase_if(plan.dropped, [&](const DroppedTensor& tensor) {
    return heads.Uses(tensor.name);
  });
  ETC_ASSIGN_OR_RETURN(TokenizerFiles tokenizer, FindTokenizer(options.source));
  return ImportPlan{.file = std::move(file),
                    .config = std::move(config),
                    .plan = std::move(plan),
                    .heads = std::move(heads),
                    .tokenizer = std::move(tokenizer)};
}

absl::Status WriteImport(const ImportPlan& plan, uint64_t seed,
                         const std::string& directory) {
  const std::string weights = absl::StrCat(directory, "/", kWeights);
  ETC_RETURN_IF_ERROR(CheckFree(weights));
  torch::manual_seed(seed);
  EtcModel model(plan.config);
  ETC_RETURN_IF_ERROR(CopyTensors(TensorReader(plan.file.tensors),
                                  plan.plan.Copies(), ModuleTensors(*model)));
  ETC_ASSIGN_OR_RETURN(NamedTensors tensors, ReadHeads(plan.file, plan.heads));
  tensors.merge(ModuleTensors(*model, "encoder."));
  ETC_RETURN_IF_ERROR(CreateDirectories(directory));
  ETC_RETURN_IF_ERROR(CopyTokenizer(plan.tokenizer, directory));
  ETC_RETURN_IF_ERROR(WriteFileAtomically(directory + "/etc_config.json",
                                          EtcConfigToJson(plan.config)));
  return WriteTensors(weights, tensors, MetadataFor(plan.heads));
}

absl::Status ImportWeights(const ImportOptions& options,
                           const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(const ImportPlan plan, PlanImport(options));
  if (!plan.tokenizer.unsupported.empty() && options.token_rows.empty()) {
    return absl::InvalidArgumentError(plan.tokenizer.unsupported);
  }
  return WriteImport(plan, options.seed, directory);
}

absl::StatusOr<LoadReport> LoadEncoder(const std::string& path,
                                       const EtcModel& model) {
  ETC_ASSIGN_OR_RETURN(
      const FilledEncoder filled,
      FillEncoder(path, model->config(), ModuleTensors(*model)));
  LoadReport report;
  for (const WeightStep& step : filled.plan.steps) {
    if (step.source.empty()) {
      report.missing.push_back(step.target.name);
      continue;
    }
    report.loaded.push_back(step.target.name);
    if (filled.file.source.tensors.at(step.source).dtype != "F32") {
      report.converted.push_back(step.target.name);
    }
  }
  for (const DroppedTensor& dropped : filled.plan.dropped) {
    report.unexpected.push_back(dropped.name);
  }
  return report;
}

absl::StatusOr<NamedTensors> ReadEncoder(const WeightFile& file) {
  ETC_ASSIGN_OR_RETURN(const WeightPlan plan,
                       PlanWeights(file.source, file.source.config));
  NamedTensors encoder;
  for (const WeightStep& step : plan.steps) {
    encoder.emplace(step.target.name, torch::zeros(step.target.shape));
  }
  ETC_RETURN_IF_ERROR(
      CopyTensors(TensorReader(file.tensors), plan.Copies(), encoder));
  return encoder;
}

absl::StatusOr<NamedTensors> TensorsInStyle(const NamedTensors& encoder,
                                            const EtcConfig& config,
                                            NameStyle style) {
  NamedTensors result;
  for (const EncoderParameter& parameter : EncoderParameters(config)) {
    const std::string& name = NameInStyle(parameter, style);
    if (name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameStyleDescription(style), " has no name for ",
                       parameter.name, ", which it does not have"));
    }
    TORCH_CHECK(encoder.contains(parameter.name), "the encoder has no ",
                parameter.name);
    torch::Tensor tensor = encoder.at(parameter.name).detach();
    if (IsTransposedInStyle(parameter, style)) {
      tensor = tensor.t();
    }
    // ETC's code creates the position tables outside its scope (
    // doc/formats.md 3.1).
    const bool is_outside = style == NameStyle::kOfficialEtc &&
                            parameter.role == ParameterRole::kPositionTable;
    const auto [entry, is_new] = result.emplace(
        absl::StrCat(is_outside ? "" : PrefixOf(style), name), tensor);
    if (!is_new && !torch::equal(entry->second, tensor)) {
      return absl::InvalidArgumentError(absl::StrCat(
          NameStyleDescription(style), " has one tensor, ", entry->first,
          ", for what differs in this model: ", parameter.name,
          " and another of the same kind"));
    }
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> ExportWeights(
    const std::string& source, ExportFormat format,
    const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(const WeightFile file, OpenWeights(source));
  const EtcConfig& config = file.source.config;
  ETC_ASSIGN_OR_RETURN(const HeadPlan head_plan,
                       PlanHeads(file.source, config, {.heads = AllHeads()}));
  const Target target = TargetOf(config, head_plan, format);
  ETC_RETURN_IF_ERROR(CheckExpressible(config, target.style, source));
  const std::string weights = absl::StrCat(directory, "/", target.weights_file);
  const bool is_tensorflow = format == ExportFormat::kTensorFlow;
  ETC_RETURN_IF_ERROR(
      CheckFree(is_tensorflow ? absl::StrCat(weights, ".index") : weights));
  ETC_ASSIGN_OR_RETURN(const TokenizerFiles tokenizer, FindTokenizer(source));
  ETC_ASSIGN_OR_RETURN(const NamedTensors encoder, ReadEncoder(file));
  ETC_ASSIGN_OR_RETURN(const NamedTensors heads, ReadHeads(file, head_plan));
  ETC_ASSIGN_OR_RETURN(NamedTensors tensors,
                       TensorsInStyle(encoder, config, target.style));
  tensors.merge(HeadsInStyle(heads, config, target.style));

  std::vector<std::string> written = {
      absl::StrCat(directory, "/", target.config_file)};
  ETC_RETURN_IF_ERROR(CreateDirectories(directory));
  ETC_RETURN_IF_ERROR(CopyTokenizer(tokenizer, directory));
  if (!tokenizer.type.empty()) {
    written.push_back(
        absl::StrCat(directory, "/", VocabularyFileName(tokenizer.type)));
  }
  ETC_RETURN_IF_ERROR(WriteFileAtomically(written[0], target.config));
  ETC_RETURN_IF_ERROR(is_tensorflow
                          ? WriteTensorFlowTensors(weights, tensors)
                          : WriteTensors(weights, tensors, {kMetadata}));
  written.push_back(weights);
  return written;
}

}  // namespace etc
