// ExportWeights: weights in the names and layouts of other projects.

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/convert.h"
#include "etc/weights/gates.h"
#include "etc/weights/import_plan.h"
#include "etc/weights/output_directory.h"
#include "etc/weights/pooling_file.h"
#include "etc/weights/pretraining_heads.h"
#include "etc/weights/roberta_names.h"
#include "etc/weights/source_config.h"

namespace etc {
namespace {

// The end of a message about a model that a project's code cannot compute.
constexpr char kOtherFormat[] = "; --format huggingface writes it as it is";

// The files of an export.
struct Target {
  NameStyle style;
  std::string config_file;
  std::string config;
  std::string weights_file;  // or the prefix
};

// The name of HuggingFace's class for a model with these heads, without the
// leading "Bert" or another ClassPrefix.
std::string KindOf(const SourceWeights& source, const HeadPlan& heads) {
  using enum PretrainingHead;
  if (heads.Has(kClassifier)) {
    return source.hugging_face.chooses() ? "ForMultipleChoice"
           : ClassifiesTexts(source)     ? "ForSequenceClassification"
                                         : "ForTokenClassification";
  }
  if (heads.Has(kAnswerSpan)) {
    return "ForQuestionAnswering";
  }
  if (!heads.Has(kMlm)) {
    return "Model";
  }
  return heads.Has(kNsp) ? "ForPreTraining" : "ForMaskedLM";
}

// The row of [PAD] in a WordPiece vocabulary; nothing without one.
std::optional<int64_t> PaddingIn(const TokenizerFiles& tokenizer) {
  if (tokenizer.type != "wordpiece") {
    return std::nullopt;
  }
  const auto vocabulary = ReadVocabulary(tokenizer.type, tokenizer.vocabulary);
  if (!vocabulary.ok()) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> lines = VocabularyLines(*vocabulary);
  const auto row = std::find(lines.begin(), lines.end(), "[PAD]");
  return row == lines.end() ? std::nullopt
                            : std::make_optional(row - lines.begin());
}

// The HuggingFace fields that an export writes.
HuggingFaceFields ExportedFields(const SourceWeights& source,
                                 const HeadPlan& heads,
                                 const TokenizerFiles& tokenizer) {
  HuggingFaceFields fields = source.hugging_face;
  fields.architecture =
      absl::StrCat(ClassPrefix(fields.model_type), KindOf(source, heads));
  // RoBERTa's padding decides where positions begin.
  if (!fields.pad_token_id.has_value() && !fields.is_roberta()) {
    fields.pad_token_id = PaddingIn(tokenizer);
  }
  if (!heads.Has(PretrainingHead::kClassifier)) {
    fields.problem_type.clear();
  }
  return fields;
}

Target TargetOf(const EtcConfig& config, const HuggingFaceFields& fields,
                int64_t num_outputs, ExportFormat format) {
  const bool is_tensorflow = format == ExportFormat::kTensorFlow;
  if (!IsBert(config)) {
    return {NameStyle::kOfficialEtc, "etc_config.json", EtcConfigToJson(config),
            is_tensorflow ? "model.ckpt" : kOurWeights};
  }
  return is_tensorflow
             ? Target{NameStyle::kGoogleBert, "bert_config.json",
                      GoogleBertConfigToJson(config, fields, num_outputs),
                      "bert_model.ckpt"}
             : Target{NameStyle::kHuggingFace, "config.json",
                      HuggingFaceConfigToJson(config, fields, num_outputs),
                      kOurWeights};
}

// Returns the reason why the heads cannot be written in the style; empty if
// they can.
std::string InexpressibleHead(const SourceWeights& source,
                              const HeadPlan& heads, NameStyle style) {
  using enum PretrainingHead;
  if (style == NameStyle::kGoogleBert && heads.Has(kClassifier) &&
      !ClassifiesTexts(source)) {
    return "has no classifier of tokens or choices, but this model has one";
  }
  if (style == NameStyle::kOfficialEtc) {
    for (const PretrainingHead head : kTaskHeads) {
      if (heads.Has(head)) {
        return absl::StrCat("has no ", PretrainingHeadDescription(head),
                            ", but this model has one");
      }
    }
  }
  if (style != NameStyle::kHuggingFace || !source.hugging_face.is_roberta()) {
    return "";
  }
  if (heads.Has(kNsp)) {
    return "has no next-sentence prediction in RoBERTa, but this model has it";
  }
  return heads.Has(kMlm) && source.config.hidden_act != "gelu_erf"
             ? absl::StrCat(
                   "has the exact gelu in RoBERTa's MLM head, but "
                   "this model has ",
                   source.config.hidden_act, " there")
             : "";
}

absl::Status CheckHeadsExpressible(const SourceWeights& source,
                                   const HeadPlan& heads, NameStyle style) {
  const std::string reason = InexpressibleHead(source, heads, style);
  return reason.empty() ? absl::OkStatus()
                        : absl::InvalidArgumentError(absl::StrCat(
                              source.path, ": ", NameStyleDescription(style),
                              " ", reason, kOtherFormat,
                              "; `import` with --no-heads leaves heads out"));
}

// BERT's tensors in HuggingFace's style as those of RoBERTa.
NamedTensors AsRoberta(const NamedTensors& bert, bool classifies_texts,
                       int64_t first_position) {
  NamedTensors result;
  for (const auto& [name, tensor] : bert) {
    torch::Tensor moved = tensor;
    if (name == "bert.embeddings.position_embeddings.weight") {
      const torch::Tensor padding =
          torch::zeros({first_position, tensor.size(1)}, tensor.options());
      moved = torch::cat({padding, tensor});
    }
    result.emplace(RobertaName(name, classifies_texts), std::move(moved));
  }
  return result;
}

// The TensorFlow code supports one gelu and one epsilon, ETC's Post-LN and
// Pre-LN, and BERT's code, also HuggingFace's, Post-LN alone, with heads that
// divide the width among them.
absl::Status CheckExpressible(const EtcConfig& config, NameStyle style,
                              const std::string& source) {
  const auto sublayer = SublayerFromName(config.sublayer);
  const bool may_precede = style == NameStyle::kOfficialEtc;
  if (sublayer != Sublayer::kPostNorm &&
      !(may_precede && sublayer == Sublayer::kPreNorm)) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": ", NameStyleDescription(style), " has LayerNorm ",
        may_precede ? "before or behind" : "behind",
        " each block only, but this model has sublayer \"", config.sublayer,
        "\"", kOtherFormat));
  }
  if (style != NameStyle::kOfficialEtc &&
      config.num_attention_heads * config.head_size() != config.hidden_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": ", NameStyleDescription(style),
        " has heads of hidden_size / num_attention_heads only, but this model "
        "has hidden_size ",
        config.hidden_size, ", num_attention_heads ",
        config.num_attention_heads, " and att_size_per_head ",
        config.head_size(), kOtherFormat));
  }
  if (style == NameStyle::kHuggingFace) {
    return absl::OkStatus();
  }
  const EtcConfig official;
  if (config.hidden_act == "gelu_erf" ||
      config.layer_norm_epsilon != official.layer_norm_epsilon) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": ", NameStyleDescription(style),
        " knows the tanh form of gelu and an epsilon of ",
        official.layer_norm_epsilon, " only, but this model has hidden_act ",
        config.hidden_act, " and layer_norm_epsilon ",
        config.layer_norm_epsilon,
        style == NameStyle::kGoogleBert
            ? std::string(
                  "; HuggingFace's form (--format safetensors) has both")
            : absl::StrCat(kOtherFormat,
                           ", and a BERT that was lifted from Google's files "
                           "has that gelu")));
  }
  return absl::OkStatus();
}

// The configuration to be exported: only our files have gates.
absl::StatusOr<EtcConfig> WithoutGates(const WeightFile& file,
                                       const std::string& source) {
  EtcConfig config = file.source.config;
  if (config.residual_attention != "gate") {
    return config;
  }
  ETC_ASSIGN_OR_RETURN(const NamedTensors gates,
                       ReadGates(TensorReader(file.tensors)));
  config.residual_attention = ComputedMode(config, gates);
  if (config.residual_attention == "gate") {
    return absl::InvalidArgumentError(absl::StrCat(
        source,
        ": only files of RealETC have gates, and those of this model are "
        "neither all 0, to be exported as residual attention off, nor all 1, "
        "as sum",
        kOtherFormat));
  }
  return config;
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

}  // namespace

absl::StatusOr<NamedTensors> TensorsInStyle(const NamedTensors& encoder,
                                            const EtcConfig& config,
                                            NameStyle style) {
  NamedTensors result;
  for (const EncoderParameter& parameter : EncoderParameters(config)) {
    const std::string& name = NameInStyle(parameter, style);
    if (name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameStyleDescription(style), " cannot express ",
                       parameter.name, ": it has no such parameter"));
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

std::vector<std::string> WarningsOfHeads(const SourceWeights& source,
                                         const HeadPlan& plan) {
  std::vector<std::string> warnings = plan.notices;
  std::vector<std::string> names;
  for (const auto& [name, info] : source.tensors) {
    if (source.names.style == NameStyle::kRealEtc &&
        absl::StartsWith(name, "head.") && !plan.Uses(name)) {
      names.push_back(QuotedName(name));
    }
  }
  if (!names.empty()) {
    warnings.push_back(absl::StrCat(source.path,
                                    ": heads that no export has are left out: ",
                                    JoinFirst(names, ", ", " and ")));
  }
  return warnings;
}

absl::StatusOr<ExportReport> ExportWeights(const std::string& source,
                                           ExportFormat format,
                                           const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(const WeightFile file, OpenWeights(source));
  ETC_ASSIGN_OR_RETURN(const EtcConfig config, WithoutGates(file, source));
  ETC_ASSIGN_OR_RETURN(const HeadPlan head_plan,
                       PlanHeads(file.source, config, {.heads = AllHeads()}));
  ETC_ASSIGN_OR_RETURN(const TokenizerFiles tokenizer, FindTokenizer(source));
  const HuggingFaceFields fields =
      ExportedFields(file.source, head_plan, tokenizer);
  // A choice is made by one output, and named by none.
  const int64_t named_outputs =
      fields.chooses() ? 0 : NumClassifierOutputs(file.source);
  const Target target = TargetOf(config, fields, named_outputs, format);
  ETC_RETURN_IF_ERROR(CheckExpressible(config, target.style, source));
  ETC_RETURN_IF_ERROR(
      CheckHeadsExpressible(file.source, head_plan, target.style));
  ETC_RETURN_IF_ERROR(CheckNoWeightsIn(directory));
  ETC_ASSIGN_OR_RETURN(const NamedTensors encoder, ReadEncoder(file));
  ETC_ASSIGN_OR_RETURN(NamedTensors heads, ReadHeads(file, head_plan));
  UndoScaling(fields, &heads);
  ETC_ASSIGN_OR_RETURN(NamedTensors tensors,
                       TensorsInStyle(encoder, config, target.style));
  tensors.merge(HeadsInStyle(heads, config, target.style));
  if (target.style == NameStyle::kHuggingFace && fields.is_roberta()) {
    tensors =
        AsRoberta(tensors, ClassifiesTexts(file.source), FirstPosition(fields));
  }

  ExportReport report{
      .written = {absl::StrCat(directory, "/", target.config_file)},
      .warnings = WarningsOfHeads(file.source, head_plan)};
  if (!tokenizer.unsupported.empty()) {
    report.warnings.push_back(
        absl::StrCat(tokenizer.unsupported, ": the vocabulary is left out"));
  }
  ETC_RETURN_IF_ERROR(CreateDirectories(directory));
  ETC_RETURN_IF_ERROR(
      target.style == NameStyle::kHuggingFace
          ? CopyTokenizerFor(
                {.max_length = config.max_absolute_position_embeddings,
                 .has_types = config.segment_vocab_size > 1},
                tokenizer, directory)
          : CopyTokenizer(tokenizer, directory));
  ETC_RETURN_IF_ERROR(CopyPoolingFile(source, directory));
  if (!tokenizer.type.empty()) {
    report.written.push_back(
        absl::StrCat(directory, "/", VocabularyFileName(tokenizer.type)));
  }
  ETC_RETURN_IF_ERROR(WriteFileAtomically(report.written[0], target.config));
  const std::string weights = absl::StrCat(directory, "/", target.weights_file);
  ETC_RETURN_IF_ERROR(format == ExportFormat::kTensorFlow
                          ? WriteTensorFlowTensors(weights, tensors)
                          : WriteTensors(weights, tensors, {kFormatMetadata}));
  report.written.push_back(weights);
  return report;
}

}  // namespace etc
