#include "etc/weights/convert.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <torch/utils.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "etc/residual_choice.h"
#include "etc/weights/byte_level_files.h"
#include "etc/weights/import_plan.h"
#include "etc/weights/output_directory.h"
#include "etc/weights/pooling_file.h"
#include "etc/weights/pretraining_heads.h"
#include "etc/weights/roberta_vocabulary.h"
#include "etc/weights/source_config.h"
#include "etc/weights/text_marks.h"
#include "etc/weights/tokenizer_statements.h"
#include "etc/weights/vocabulary_size.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

// Roles of special tokens in transformers and their usual names, as tasks find
// them; where a vocabulary has two for a role, the last counts.
constexpr std::pair<const char*, const char*> kSpecialTokens[] = {
    {"bos_token", "<s>"},     {"eos_token", "</s>"},  {"cls_token", "<s>"},
    {"sep_token", "</s>"},    {"unk_token", "<unk>"}, {"pad_token", "<pad>"},
    {"mask_token", "<mask>"}, {"cls_token", "[CLS]"}, {"sep_token", "[SEP]"},
    {"unk_token", "[UNK]"},   {"pad_token", "[PAD]"}, {"mask_token", "[MASK]"},
};

// The options of a tokenizer.json that it does not state itself: the class by
// which transformers reads it, which else chooses one by the kind of the model,
// and the roles of its special tokens.
nlohmann::json OptionsOfTokenizerJson(const nlohmann::json& file) {
  nlohmann::json options = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  const auto added = file.find("added_tokens");
  const auto has_token = [&](const char* content) {
    return added != file.end() &&
           std::any_of(added->begin(), added->end(),
                       [content](const nlohmann::json& token) {
                         return token.is_object() &&
                                token.contains("content") &&
                                token["content"] == content;
                       });
  };
  for (const auto& [role, content] : kSpecialTokens) {
    if (has_token(content)) {
      options[role] = content;
    }
  }
  return options;
}

// The same of the one at `path`, whose post-processor becomes complete.
absl::StatusOr<nlohmann::json> CompleteTokenizerJson(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(nlohmann::json file, ReadJsonFile(path));
  if (WriteTextMarks(&file)) {
    ETC_RETURN_IF_ERROR(
        WriteFileAtomically(path, JsonText(file, /*indent=*/2) + "\n"));
  }
  return OptionsOfTokenizerJson(file);
}

}  // namespace

absl::Status CopyTokenizer(const TokenizerFiles& tokenizer,
                           const std::string& directory) {
  if (tokenizer.type.empty()) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const std::string vocabulary,
                       ReadVocabulary(tokenizer.type, tokenizer.vocabulary));
  return WriteTokenizer(tokenizer, vocabulary, directory);
}

absl::Status CopyTokenizerFor(const ModelInputs& inputs,
                              const TokenizerFiles& tokenizer,
                              const std::string& directory) {
  ETC_RETURN_IF_ERROR(CopyTokenizer(tokenizer, directory));
  if (tokenizer.type.empty()) {
    return absl::OkStatus();
  }
  const std::string path = absl::StrCat(directory, "/", kTokenizerConfigFile);
  ETC_ASSIGN_OR_RETURN(
      nlohmann::json options,
      tokenizer.type == "huggingface"
          ? CompleteTokenizerJson(absl::StrCat(
                directory, "/", VocabularyFileName(tokenizer.type)))
          : ReadJsonFile(path));
  options["model_max_length"] = inputs.max_length;
  options["model_input_names"] = {"input_ids", "attention_mask"};
  if (inputs.has_types) {
    options["model_input_names"].push_back("token_type_ids");
  }
  return WriteFileAtomically(path, JsonText(options, /*indent=*/2) + "\n");
}

namespace {

absl::StatusOr<HeadPlan> PlanImportedHeads(
    const SourceWeights& source, const EtcConfig& config,
    const ImportOptions& options, const std::vector<int64_t>& token_rows) {
  HeadPlanOptions heads{.heads = AllHeads(), .token_rows = token_rows};
  if (!options.heads) {
    heads.heads.clear();
  } else if (options.lift) {
    heads.heads = {PretrainingHead::kMlm, PretrainingHead::kCpc};
  }
  return PlanHeads(source, config, heads);
}

// The source's fields that the import keeps: none if BERT is lifted to ETC.
HuggingFaceFields KeptFields(const ImportOptions& options,
                             const HeadPlan& heads,
                             const SourceWeights& source) {
  if (options.lift) {
    return {};
  }
  HuggingFaceFields kept = source.hugging_face;
  if (!heads.Has(PretrainingHead::kClassifier)) {
    kept.architecture.clear();
    kept.problem_type.clear();
    kept.labels.clear();
  }
  kept.labels_mistake.clear();
  return kept;
}

// The vocabulary of an import. Another one that is named need not find that of
// the source usable.
absl::StatusOr<TokenizerFiles> ImportedTokenizer(
    const ImportOptions& options,
    const absl::StatusOr<TokenizerFiles>& beside) {
  if (options.vocabulary.empty()) {
    return beside;
  }
  ETC_ASSIGN_OR_RETURN(TokenizerFiles named,
                       DescribeTokenizerAt(options.vocabulary));
  if (beside.ok()) {
    TakeUnstated(*beside, &named);
  }
  return named;
}

// The rows of a byte-level BPE beside the weights for the pieces of a
// SentencePiece model; none if there is no such vocabulary.
absl::StatusOr<std::vector<int64_t>> RowsByPiece(const std::string& weights,
                                                 const std::string& model) {
  std::string path = FileBesideWeights(weights, "tokenizer.json");
  if (path.empty()) {
    ETC_ASSIGN_OR_RETURN(path, FindByteLevelFiles(weights));
  }
  if (path.empty()) {
    return std::vector<int64_t>();
  }
  ETC_ASSIGN_OR_RETURN(const nlohmann::json tokenizer,
                       ReadTokenizerJsonOrByteLevel(path));
  JsonObjectReader reader(tokenizer, path);
  const nlohmann::json* splitter = reader.Given("pre_tokenizer");
  ETC_RETURN_IF_ERROR(reader.status());
  if (splitter == nullptr || !IsByteLevel(*splitter)) {
    return std::vector<int64_t>();
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> pieces,
                       ReadSentencePieces(model));
  return RobertaRows(tokenizer, path, pieces);
}

// Finds ImportPlan::token_rows.
absl::StatusOr<std::vector<int64_t>> MatchedRows(
    const ImportOptions& options, const SourceWeights& source,
    const absl::StatusOr<TokenizerFiles>& beside,
    const TokenizerFiles& tokenizer) {
  if (options.vocabulary.empty() || !options.lift ||
      tokenizer.type != "sentencepiece") {
    return std::vector<int64_t>();
  }
  ETC_ASSIGN_OR_RETURN(std::vector<int64_t> rows,
                       RowsByPiece(options.source, tokenizer.vocabulary));
  if (rows.empty() && source.hugging_face.is_roberta() &&
      (!beside.ok() || beside->type.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.source, " is RoBERTa, whose embeddings are matched to ",
        tokenizer.vocabulary,
        " piece by piece, but its own pieces are not known: put its "
        "tokenizer.json, or vocab.json and merges.txt, beside it, or "
        "tokenizer.model if it has the pieces of such a model"));
  }
  return rows;
}

// Checks, as far as is known beforehand, that weights can be written into
// `directory`.
absl::Status CheckDirectory(const std::string& directory) {
  ETC_RETURN_IF_ERROR(CheckNoWeightsIn(directory));
  const absl::Status status = CheckWritableDirectory(directory);
  return status.ok()
             ? status
             : absl::Status(status.code(),
                            absl::StrCat(directory, " cannot be written: ",
                                         status.message()));
}

// Makes the generator of the CPU draw by `seed` until the end of the scope, and
// then go on as before.
class ScopedSeed {
 public:
  explicit ScopedSeed(uint64_t seed) {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    state_ = generator_.get_state();
    generator_.set_current_seed(seed);
  }
  ~ScopedSeed() {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(state_);
  }
  ScopedSeed(const ScopedSeed&) = delete;
  ScopedSeed& operator=(const ScopedSeed&) = delete;

 private:
  at::Generator generator_ = at::globalContext().defaultGenerator(torch::kCPU);
  torch::Tensor state_;
};

// Checks that the vocabulary, if there is one, can be used and fits the
// embedding table.
absl::Status CheckVocabulary(const ImportPlan& plan) {
  const TokenizerFiles& tokenizer = plan.tokenizer;
  if (tokenizer.type.empty()) {
    return tokenizer.unsupported.empty()
               ? absl::OkStatus()
               : absl::InvalidArgumentError(tokenizer.unsupported);
  }
  ETC_ASSIGN_OR_RETURN(const int64_t pieces, CountPieces(tokenizer));
  std::vector<std::string> warnings;
  return CheckVocabularySize(tokenizer.vocabulary, pieces,
                             plan.config.vocab_size, &warnings);
}

}  // namespace

std::map<std::string, std::string> MetadataFor(const ImportPlan& plan) {
  std::map<std::string, std::string> metadata = {kFormatMetadata};
  if (!plan.heads.found.empty()) {
    metadata.emplace("task", kPretrainingTask);
  }
  metadata.merge(MetadataOf(plan.hugging_face));
  return metadata;
}

absl::StatusOr<ImportPlan> PlanImport(const ImportOptions& options) {
  ETC_ASSIGN_OR_RETURN(WeightFile file, OpenWeights(options.source));
  if (options.lift && !IsBert(file.source.config)) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.source,
                     " is ETC already: only BERT and RoBERTa can be lifted"));
  }
  if (!options.residual_attention.empty()) {
    ETC_RETURN_IF_ERROR(ApplyResidualChoice(
        options.residual_attention, options.source, &file.source.config));
  }
  EtcConfig config =
      options.lift ? LiftedConfig(file.source.config) : file.source.config;
  const absl::StatusOr<TokenizerFiles> beside = FindTokenizer(options.source);
  ETC_ASSIGN_OR_RETURN(TokenizerFiles tokenizer,
                       ImportedTokenizer(options, beside));
  ETC_ASSIGN_OR_RETURN(std::vector<int64_t> token_rows,
                       MatchedRows(options, file.source, beside, tokenizer));
  if (!token_rows.empty()) {
    config.vocab_size = static_cast<int64_t>(token_rows.size());
  }
  using Segments = WeightPlanOptions::Segments;
  ETC_ASSIGN_OR_RETURN(
      WeightPlan plan,
      PlanWeights(file.source, config,
                  {.segments = options.segments_by_index ? Segments::kByIndex
                                                         : Segments::kBroadcast,
                   .token_rows = token_rows}));
  ETC_ASSIGN_OR_RETURN(HeadPlan heads, PlanImportedHeads(file.source, config,
                                                         options, token_rows));
  std::erase_if(plan.dropped, [&](const DroppedTensor& tensor) {
    return heads.Uses(tensor.name);
  });
  plan.notices.insert(plan.notices.end(), heads.notices.begin(),
                      heads.notices.end());
  HuggingFaceFields kept = KeptFields(options, heads, file.source);
  return ImportPlan{.file = std::move(file),
                    .config = std::move(config),
                    .plan = std::move(plan),
                    .heads = std::move(heads),
                    .hugging_face = std::move(kept),
                    .tokenizer = std::move(tokenizer),
                    .token_rows = std::move(token_rows)};
}

absl::StatusOr<NamedTensors> ReadImport(const ImportPlan& plan, uint64_t seed,
                                        const std::string& directory) {
  if (!directory.empty()) {
    ETC_RETURN_IF_ERROR(CheckDirectory(directory));
  }
  ETC_RETURN_IF_ERROR(CheckVocabulary(plan));
  const ScopedSeed draws(seed);
  EtcModel model(plan.config);
  ETC_RETURN_IF_ERROR(CopyTensors(TensorReader(plan.file.tensors),
                                  plan.plan.Copies(), ModuleTensors(*model)));
  ETC_ASSIGN_OR_RETURN(NamedTensors tensors, ReadHeads(plan.file, plan.heads));
  tensors.merge(ModuleTensors(*model, "encoder."));
  return tensors;
}

absl::Status WriteImport(const ImportPlan& plan, uint64_t seed,
                         const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(const NamedTensors tensors,
                       ReadImport(plan, seed, directory));
  ETC_RETURN_IF_ERROR(CreateDirectories(directory));
  ETC_RETURN_IF_ERROR(CopyTokenizer(plan.tokenizer, directory));
  ETC_RETURN_IF_ERROR(CopyPoolingFile(plan.file.source.path, directory));
  ETC_RETURN_IF_ERROR(WriteFileAtomically(directory + "/etc_config.json",
                                          EtcConfigToJson(plan.config)));
  return WriteTensors(absl::StrCat(directory, "/", kOurWeights), tensors,
                      MetadataFor(plan));
}

absl::Status ImportWeights(const ImportOptions& options,
                           const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(const ImportPlan plan, PlanImport(options));
  return WriteImport(plan, options.seed, directory);
}

absl::StatusOr<LoadReport> LoadEncoderWeights(const std::string& path,
                                              const EtcModel& model) {
  ETC_ASSIGN_OR_RETURN(
      const FilledEncoder filled,
      FillEncoder(path, model->config(), ModuleTensors(*model)));
  LoadReport report{.missing = filled.plan.FreshNames(),
                    .notices = filled.plan.notices};
  for (const WeightStep& step : filled.plan.steps) {
    if (step.source.empty()) {
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
    encoder.emplace(step.target.name,
                    torch::full(step.target.shape,
                                step.target.role == ParameterRole::kGate
                                    ? file.source.config.residual_gate_init
                                    : 0.0,
                                torch::kFloat32));
  }
  ETC_RETURN_IF_ERROR(
      CopyTensors(TensorReader(file.tensors), plan.Copies(), encoder));
  return encoder;
}

}  // namespace etc
