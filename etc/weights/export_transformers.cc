#include "etc/weights/export_transformers.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "etc/weights/import_plan.h"
#include "etc/weights/pooling_file.h"
#include "etc/weights/pretraining_heads.h"
#include "etc/weights/source_config.h"
#include "etc/weights/tokenizer_statements.h"
#include "etc/weights/transformers_code.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

constexpr char kTransformersConfig[] = "config.json";
constexpr char kTextsClass[] = "RealEtcForSequenceClassification";
constexpr char kTokensClass[] = "RealEtcForTokenClassification";
constexpr char kEncoderClass[] = "RealEtcModel";

// The place of a class in the first file of the code.
std::string InCode(const char* name) {
  return absl::StrCat("modeling_realetc.", name);
}

// The contents of config.json: the encoder's fields by our names, the labels,
// the classes for AutoModel, and how texts become inputs.
std::string TransformersConfig(const ImportPlan& plan,
                               const TextLimits& limits) {
  json object = json::parse(EtcConfigToJson(plan.config));
  const SourceWeights& source = plan.file.source;
  const bool of_texts = ClassifiesTexts(source);
  const bool of_tokens = ClassifiesTokens(source);
  object.update(HuggingFaceFieldsToJson(
      plan.hugging_face,
      of_texts || of_tokens ? NumClassifierOutputs(source) : 0));
  object["model_type"] = kRealEtcModelType;
  object["architectures"] = {of_texts    ? kTextsClass
                             : of_tokens ? kTokensClass
                                         : kEncoderClass};
  object["auto_map"] = {
      {"AutoConfig", InCode("RealEtcConfig")},
      {"AutoModel", InCode(kEncoderClass)},
      {"AutoModelForSequenceClassification", InCode(kTextsClass)},
      {"AutoModelForTokenClassification", InCode(kTokensClass)}};
  object["max_long_length"] = limits.max_long_length;
  object["max_global_length"] = limits.max_global_length;
  object["sentences"] = limits.sentences;
  return JsonText(object, /*indent=*/2) + "\n";
}

// Makes the outputs of a regression the numbers that they stand for, in the
// weights and in what the files say about them.
void PredictNumbersThemselves(ImportPlan* plan, NamedTensors* tensors) {
  HuggingFaceFields& fields = plan->hugging_face;
  UndoScaling(fields, tensors);
  fields.mean = 0;
  fields.deviation = 1;
}

}  // namespace

absl::StatusOr<ExportReport> ExportForTransformers(
    const std::string& source, const TextLimits& limits,
    const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(ImportPlan plan, PlanImport({.source = source}));
  if (!plan.tokenizer.unsupported.empty()) {
    return absl::InvalidArgumentError(plan.tokenizer.unsupported);
  }
  ETC_ASSIGN_OR_RETURN(NamedTensors tensors,
                       ReadImport(plan, /*seed=*/1, directory));
  PredictNumbersThemselves(&plan, &tensors);
  std::vector<std::pair<std::string, std::string>> files = {
      {kTransformersConfig, TransformersConfig(plan, limits)}};
  for (const CodeFile& file : TransformersCode()) {
    files.emplace_back(file.name, file.contents);
  }
  ExportReport report{.warnings =
                          WarningsOfHeads(plan.file.source, plan.heads)};
  // The longest word of transformers' BertTokenizer, whatever a file says.
  plan.tokenizer.wordpiece.max_word_code_points = kHuggingFaceWordCodePoints;
  ETC_RETURN_IF_ERROR(CreateDirectories(directory));
  ETC_RETURN_IF_ERROR(CopyTokenizerFor(
      {.max_length = limits.max_long_length > 0 ? limits.max_long_length
                                                : limits.max_global_length,
       .has_types = plan.config.segment_vocab_size > 1},
      plan.tokenizer, directory));
  ETC_RETURN_IF_ERROR(CopyPoolingFile(source, directory));
  if (!plan.tokenizer.type.empty()) {
    report.written.push_back(
        absl::StrCat(directory, "/", VocabularyFileName(plan.tokenizer.type)));
  }
  for (const auto& [name, contents] : files) {
    report.written.push_back(absl::StrCat(directory, "/", name));
    ETC_RETURN_IF_ERROR(WriteFileAtomically(report.written.back(), contents));
  }
  report.written.push_back(absl::StrCat(directory, "/", kOurWeights));
  ETC_RETURN_IF_ERROR(
      WriteTensors(report.written.back(), tensors, MetadataFor(plan)));
  return report;
}

}  // namespace etc
