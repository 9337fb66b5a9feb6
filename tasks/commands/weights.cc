// `realetc import` and `realetc export`: weights of other projects in and out.

#include "etc/weights/weights.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/printable.h"
#include "base/shape_text.h"
#include "base/status_macros.h"
#include "etc/residual_choice.h"
#include "etc/weights/convert.h"
#include "etc/weights/export_transformers.h"
#include "etc/weights/gates.h"
#include "etc/weights/import_plan.h"
#include "etc/weights/output_directory.h"
#include "etc/weights/source_config.h"
#include "etc/weights/tokenizer_files.h"
#include "etc/weights/vocabulary_size.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/commands/find_weights.h"
#include "tasks/commands/model_options.h"
#include "tasks/commands/output_file.h"
#include "tasks/commands/translation_weights.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/train/model_files.h"

namespace etc {
namespace {

struct ImportArguments {
  ImportOptions options;
  std::string directory;
  std::string segments = "first";
  bool cased = false;
  bool split_punctuation = false;
  bool dry_run = false;
  // A line for each parameter.
  bool verbose = false;
  // Attention heads, for checkpoints of fairseq that do not say it.
  int64_t heads = 0;
};

struct ExportArguments {
  std::string source;
  std::string directory;
  std::string format;  // empty: tensorflow, or fairseq for translation
  bool fold_omegas = false;
};

// --- Vocabularies -----------------------------------------------------------

// Applies the arguments to the tokenizer.
absl::Status OverrideTokenizer(const ImportArguments& arguments,
                               TokenizerFiles* tokenizer) {
  if (arguments.cased) {
    ETC_RETURN_IF_ERROR(
        CheckVocabularyOption("--cased", "wordpiece", *tokenizer));
    ETC_RETURN_IF_ERROR(
        SetCase(/*lower_case=*/false, "--cased is given", tokenizer));
  }
  if (arguments.split_punctuation) {
    ETC_RETURN_IF_ERROR(CheckVocabularyOption("--split-punctuation",
                                              "sentencepiece", *tokenizer));
    tokenizer->split_punctuation = true;
  }
  return absl::OkStatus();
}

absl::Status CheckTokenizer(const ImportPlan& plan) {
  if (plan.tokenizer.type.empty() && !plan.tokenizer.unsupported.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan.tokenizer.unsupported,
                     "; or give another vocabulary with --vocabulary"));
  }
  if (plan.tokenizer.type.empty()) {
    PrintWarnings({absl::StrCat(
        plan.file.source.path,
        " has no vocabulary that is known: vocab.txt, tokenizer.json, "
        "vocab.json with merges.txt or a SentencePiece model; give one with "
        "--vocabulary")});
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const auto tokenizer, MakeTokenizer(plan.tokenizer));
  const std::string use = TokenizerText(plan.tokenizer);
  std::cout << "vocabulary: " << plan.tokenizer.vocabulary << ", "
            << Counted(tokenizer->vocab_size(), "piece")
            << (use.empty() ? "" : ", ") << use << "\n";
  std::vector<std::string> warnings = TokenizerWarnings(plan.tokenizer);
  ETC_RETURN_IF_ERROR(CheckVocabularySize(plan.tokenizer.vocabulary,
                                          tokenizer->vocab_size(),
                                          plan.config.vocab_size, &warnings));
  if (plan.token_rows.empty()) {
    WarnOfOtherPieces(*tokenizer, plan.tokenizer.vocabulary,
                      plan.file.source.path, &warnings);
  }
  PrintWarnings(warnings);
  return absl::OkStatus();
}

// --- What is printed --------------------------------------------------------

// Prints the source of each parameter, and the reason why a tensor is dropped.
void PrintParameters(const ImportPlan& plan) {
  constexpr char kLine[] = "%-52s %-14s %-72s %s\n";
  std::cout << absl::StreamFormat(kLine, "parameter", "shape", "from", "how");
  for (const WeightStep& step : plan.plan.steps) {
    std::cout << absl::StreamFormat(
        kLine, step.target.name, ShapeText(step.target.shape),
        step.source.empty() ? "-" : Printable(step.source), step.how);
  }
  for (const WeightStep& step : plan.heads.steps) {
    std::cout << absl::StreamFormat(kLine, step.target.name,
                                    ShapeText(step.target.shape),
                                    Printable(step.source), step.how);
  }
  for (const DroppedTensor& tensor : plan.plan.dropped) {
    std::cout << absl::StreamFormat(
        kLine, "-", ShapeText(plan.file.source.tensors.at(tensor.name).shape),
        Printable(tensor.name), absl::StrCat("dropped: ", tensor.why));
  }
  std::cout << "\n";
}

// "dropped: a, b, c and 4 more", if there are any.
void PrintSome(const std::string& what, const std::vector<std::string>& names) {
  if (names.empty()) {
    return;
  }
  constexpr size_t kShown = 3;
  const size_t shown = std::min(names.size(), kShown);
  std::cout << what << ": "
            << absl::StrJoin(names.begin(),
                             names.begin() + static_cast<int64_t>(shown), ", ");
  if (names.size() > shown) {
    std::cout << " and " << names.size() - shown << " more";
  }
  std::cout << "\n";
}

// The heads of pre-training, and those of fine-tuned models.
std::pair<std::vector<PretrainingHead>, std::vector<PretrainingHead>> ByUse(
    std::vector<PretrainingHead> heads) {
  const auto of_tasks = std::stable_partition(
      heads.begin(), heads.end(), [](PretrainingHead head) {
        return std::find(std::begin(kTaskHeads), std::end(kTaskHeads), head) ==
               std::end(kTaskHeads);
      });
  std::vector<PretrainingHead> tasks(of_tasks, heads.end());
  heads.erase(of_tasks, heads.end());
  return {std::move(heads), std::move(tasks)};
}

// The names of a classifier's outputs, if they are known.
void PrintLabels(const std::vector<std::string>& labels) {
  std::vector<std::string> names;
  for (size_t i = 0; i < labels.size(); ++i) {
    names.push_back(absl::StrCat(i, " ", Printable(labels[i])));
  }
  PrintSome("outputs of the classifier", names);
}

// Prints the heads that come along, and those that do not.
void PrintHeads(const ImportPlan& plan) {
  std::set<std::string> left_out;
  for (const DroppedTensor& tensor : plan.plan.dropped) {
    if (!tensor.head.empty()) {
      left_out.insert(tensor.head);
    }
  }
  const auto [found, of_tasks] = ByUse(plan.heads.found);
  const auto [missing, ignored] = ByUse(plan.heads.missing);
  std::cout << "heads of pre-training: " << JoinPretrainingHeads(found);
  if (found.empty() && left_out.empty()) {
    std::cout << " in the source";
  } else if (!missing.empty()) {
    std::cout << "; not in the source: " << JoinPretrainingHeads(missing);
  }
  if (!left_out.empty()) {
    std::cout << "; left out: " << absl::StrJoin(left_out, ", ");
  }
  std::cout << "\n";
  if (!of_tasks.empty()) {
    std::cout << "heads of fine-tuning: " << JoinPretrainingHeads(of_tasks);
    for (const WeightStep& step : plan.heads.steps) {
      if (step.target.name == "head.classifier.bias") {
        std::cout << " of " << Counted(step.target.shape[0], "output");
      }
    }
    std::cout << "\n";
    PrintLabels(plan.hugging_face.labels);
  }
}

// The totals, and what stands in the table of parameters unless that was shown.
void PrintSummary(const ImportPlan& plan, bool table_shown) {
  const auto total = static_cast<int64_t>(plan.plan.steps.size());
  const auto dropped = static_cast<int64_t>(plan.plan.dropped.size());
  const int64_t fresh = plan.plan.NumFresh();
  const int64_t gates = plan.plan.NumNewGates();
  const int64_t ignored = plan.plan.bookkeeping;
  std::cout << NameStyleDescription(plan.file.source.names.style) << ": "
            << Counted(total, "parameter") << ", " << total - fresh - gates
            << " from the source, " << fresh << " freshly initialised"
            << (gates > 0 ? absl::StrCat(", ", Counted(gates, "gate"), " at ",
                                         plan.config.residual_gate_init)
                          : "")
            << "; " << Counted(dropped, "tensor") << " dropped"
            << (ignored == 0   ? ""
                : ignored == 1 ? ", 1 that is no weight ignored"
                               : absl::StrCat(", ", ignored,
                                              " that are no weights ignored"))
            << "\n";
  if (!table_shown) {
    PrintSome("freshly initialised", plan.plan.FreshNames());
    std::vector<std::string> names;
    for (const DroppedTensor& tensor : plan.plan.dropped) {
      names.push_back(Printable(tensor.name));
    }
    PrintSome("dropped", names);
  }
  PrintHeads(plan);
  std::cout << "residual attention: " << ResidualText(plan.config) << "\n";
  std::cout << "activation: " << plan.config.hidden_act
            << (plan.config.hidden_act == "gelu_erf" ? " (the exact gelu)"
                : plan.config.hidden_act == "gelu"   ? " (its tanh form)"
                                                     : "")
            << "\n";
  for (const std::string& notice : plan.plan.notices) {
    std::cout << "note: " << notice << "\n";
  }
}

// ----------------------------------------------------------------------------

// Checks that DIR can be written to and holds no input file, and none that is
// looked for beside weights. `source` is a directory, a file, or the common
// prefix of several; all files in its directory count as inputs, and so does
// `vocabulary`.
absl::Status CheckDirectory(const std::string& directory,
                            const std::string& source,
                            const std::string& vocabulary = "") {
  std::vector<std::string> read = FilesAt(
      std::filesystem::is_directory(source) ? source : FolderOf(source));
  read.push_back(vocabulary);
  ETC_RETURN_IF_ERROR(CheckOutputDirectory("DIR", directory, read));
  return CheckNoWeightsIn(directory);
}

// A checkpoint of fairseq, for which none of the options of encoders count.
absl::Status ImportFairseq(const ImportArguments& arguments) {
  const ImportOptions& options = arguments.options;
  if (options.lift || !options.residual_attention.empty() || !options.heads ||
      arguments.cased || arguments.split_punctuation || arguments.verbose) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.source,
        " is a translation model of fairseq, which is imported with "
        "--vocabulary, --num-heads and --dry-run alone"));
  }
  if (!arguments.directory.empty()) {
    ETC_RETURN_IF_ERROR(CheckDirectory(arguments.directory, options.source,
                                       options.vocabulary));
  }
  return ImportTranslation({.source = options.source,
                            .directory = arguments.directory,
                            .vocabulary = options.vocabulary,
                            .heads = arguments.heads,
                            .dry_run = arguments.dry_run});
}

absl::Status Import(ImportArguments arguments) {
  ImportOptions& options = arguments.options;
  if (arguments.segments == "rows") {
    options.segments_by_index = true;
  }
  ETC_ASSIGN_OR_RETURN(options.source, FindWeights(options.source));
  if (IsFairseqFile(options.source)) {
    return ImportFairseq(arguments);
  }
  if (arguments.heads != 0) {
    return absl::InvalidArgumentError(
        "--num-heads is for translation models of fairseq");
  }
  ETC_ASSIGN_OR_RETURN(ImportPlan plan, PlanImport(options));
  // A dry run needs no directory.
  if (!arguments.dry_run || !arguments.directory.empty()) {
    ETC_RETURN_IF_ERROR(CheckDirectory(arguments.directory, options.source,
                                       options.vocabulary));
  }
  ETC_RETURN_IF_ERROR(OverrideTokenizer(arguments, &plan.tokenizer));
  if (arguments.verbose) {
    PrintParameters(plan);
  }
  PrintSummary(plan, arguments.verbose);
  PrintWarnings(plan.file.warnings);
  ETC_RETURN_IF_ERROR(CheckTokenizer(plan));
  if (arguments.dry_run) {
    // Reads and checks all, so that it refuses what the import itself refuses.
    return ReadImport(plan, options.seed, arguments.directory).status();
  }
  ETC_RETURN_IF_ERROR(WriteImport(plan, options.seed, arguments.directory));
  std::cout << "written: " << arguments.directory << "\n";
  return absl::OkStatus();
}

void PrintReport(const ExportReport& report) {
  for (const std::string& path : report.written) {
    std::cout << "written: " << path << "\n";
  }
  PrintWarnings(report.warnings);
}

// The mode of an export, which has no gates.
std::string ExportedMode(const std::string& source, const EtcConfig& config) {
  if (config.residual_attention != "gate") {
    return ResidualText(config);
  }
  const absl::StatusOr<TensorReader> reader = TensorReader::Open(source);
  const absl::StatusOr<NamedTensors> gates =
      reader.ok() ? ReadGates(*reader)
                  : absl::StatusOr<NamedTensors>(reader.status());
  return gates.ok() ? ComputedMode(config, *gates) : config.residual_attention;
}

// Warns of scores that the code which reads an export does not carry from layer
// to layer.
void WarnOfResidualScores(const std::string& source, bool is_tensorflow) {
  const absl::StatusOr<SourceConfig> config = ReadSourceConfig(source);
  if (!config.ok()) {
    return;
  }
  const std::string mode = ExportedMode(source, config->config);
  if (mode == "off") {
    return;
  }
  const bool is_realformer = is_tensorflow && IsBert(config->config) &&
                             (mode == "sum" || mode == "mean");
  PrintWarnings({absl::StrCat(
      "this model has residual attention \"", mode, "\", which ",
      is_realformer ? "only RealFormer's code computes, not BERT's"
                    : "no other code computes that reads these files",
      ": elsewhere its outputs are others; --format huggingface writes the "
      "code, too")});
}

// How texts become inputs of the model.
absl::StatusOr<TextLimits> LimitsOf(const std::string& source) {
  ETC_ASSIGN_OR_RETURN(const WeightFile file, OpenWeights(source));
  const EtcConfig& config = file.source.config;
  ETC_ASSIGN_OR_RETURN(const DataConfig data, ReadTextData(source, config));
  const bool has_own_tables =
      config.has_long_tokens && data.sentences != kIcuSentences;
  if (has_own_tables) {
    PrintWarnings({absl::StrCat(
        "this model was trained with the sentences of Punkt's tables, which "
        "the "
        "exported code does not split: give them to it by split_sentences")});
  }
  return TextLimits{
      .max_long_length = config.has_long_tokens ? data.max_long_length : 0,
      .max_global_length = data.max_global_length,
      .sentences = has_own_tables ? "punkt" : std::string(kIcuSentences)};
}

absl::Status ExportWithCode(const std::string& source,
                            const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(const TextLimits limits, LimitsOf(source));
  ETC_ASSIGN_OR_RETURN(const ExportReport report,
                       ExportForTransformers(source, limits, directory));
  PrintReport(report);
  return absl::OkStatus();
}

absl::Status Export(const ExportArguments& arguments) {
  ETC_ASSIGN_OR_RETURN(const std::string source, FindWeights(arguments.source));
  ETC_RETURN_IF_ERROR(CheckDirectory(arguments.directory, source));
  const bool is_translation = IsEncoderDecoder(source) || IsFairseqFile(source);
  if (is_translation
          ? arguments.format != "fairseq" && !arguments.format.empty()
          : arguments.format == "fairseq" || arguments.fold_omegas) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, is_translation
                    ? " is a translation model, which is written with "
                      "--format fairseq alone"
                    : " is no translation model, for which --format fairseq "
                      "and --fold-omegas are"));
  }
  if (is_translation) {
    return ExportTranslation({.source = source,
                              .directory = arguments.directory,
                              .fold_omegas = arguments.fold_omegas});
  }
  if (arguments.format == "huggingface") {
    return ExportWithCode(source, arguments.directory);
  }
  const bool is_tensorflow = arguments.format != "safetensors";
  ETC_ASSIGN_OR_RETURN(const ExportReport report,
                       ExportWeights(source,
                                     is_tensorflow ? ExportFormat::kTensorFlow
                                                   : ExportFormat::kSafetensors,
                                     arguments.directory));
  PrintReport(report);
  WarnOfResidualScores(source, is_tensorflow);
  return absl::OkStatus();
}

constexpr char kImportFooter[] =
    "Says how many parameters come from the source and which do not, with\n"
    "--verbose of each where it comes from, and refuses when anything that\n"
    "matters is missing. BERT stays BERT (all tokens global, absolute\n"
    "positions) unless --lift makes it ETC, as `train` does by itself.\n"
    "A translation model of fairseq, or ADMIN's, becomes an encoder-decoder\n"
    "that `realetc translate` takes, with the vocabulary beside it.\n"
    "\n"
    "Examples:\n"
    "  realetc import etc_base_2x_pretrain checkpoints/etc_base\n"
    "  realetc import bert-base-uncased checkpoints/lifted --lift\n"
    "  realetc import realformer/bert_model.ckpt --dry-run --residual sum\n"
    "  realetc import fairseq/checkpoint_best.pt checkpoints/en-de";

}  // namespace

void AddImportCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* command = program->add_subcommand(
      "import", "Take in weights of ETC, BERT, RealFormer, RoBERTa or fairseq");
  command->footer(kImportFooter);
  command
      ->add_option("SOURCE", arguments->options.source,
                   "Directory or file: TensorFlow checkpoint, safetensors, "
                   "pytorch_model.bin, fairseq's model.pt")
      ->required();
  CLI::Option* directory = command->add_option(
      "DIR", arguments->directory,
      "Checkpoint directory to be written, without files of a model");
  CLI::Option* dry_run =
      command->add_flag("--dry-run", arguments->dry_run,
                        "Check everything and say what would "
                        "be done, but write nothing");
  command->add_flag("--verbose", arguments->verbose,
                    "A line for each parameter");
  CLI::Option* lift =
      command->add_flag("--lift", arguments->options.lift,
                        "Make ETC of BERT or RoBERTa: relative positions, "
                        "projections for long and global tokens");
  AddResidualOption(command,
                    "Residual attention scores of the training, where the "
                    "source does not say",
                    &arguments->options.residual_attention);
  command
      ->add_option("--segments", arguments->segments,
                   "With --lift: every segment from BERT's row 0 (first), or "
                   "row by row (rows)")
      ->check(CLI::IsMember({"first", "rows"}))
      ->needs(lift);
  command->add_option(
      "--vocabulary", arguments->options.vocabulary,
      "vocab.txt, tokenizer.json, vocab.json, SentencePiece .model or "
      "fairseq's dict.txt, instead of the source's; with --lift, RoBERTa's "
      "embeddings are matched to a .model piece by piece, for which "
      "RoBERTa's own vocabulary has to lie beside SOURCE");
  command->add_flag_callback(
      "--no-heads", [=] { arguments->options.heads = false; },
      "Leave out the heads of pre-training and of fine-tuning");
  command->add_flag(
      "--cased", arguments->cased,
      "WordPiece: do not fold to lower case, where no file beside "
      "the vocabulary, or else beside SOURCE, says do_lower_case");
  command->add_flag("--split-punctuation", arguments->split_punctuation,
                    "SentencePiece: split into words first");
  command
      ->add_option("--num-heads", arguments->heads,
                   "Attention heads of a translation model of fairseq that "
                   "does not say it")
      ->check(AtLeastOne());
  command->callback([=] {
    if (directory->empty() && dry_run->empty()) {
      throw CLI::RequiredError("DIR or --dry-run");
    }
    *action = [arguments] { return Import(*arguments); };
  });
}

void AddExportCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = program->add_subcommand(
      "export", "Write a model for the official codes, HuggingFace or fairseq");
  command->footer(
      "ETC gets the names of its TensorFlow code, BERT those of Google's\n"
      "(tensorflow) or HuggingFace's (safetensors), and what came from "
      "RoBERTa\n"
      "those of RoBERTa. Heads that BERT's code has come along (of "
      "pre-training,\n"
      "glue, classify, squad), with the labels of a classifier as id2label;\n"
      "those of other tasks stay behind, with a warning. ETC's code has no\n"
      "head of glue, classify or squad: write such a model as huggingface,\n"
      "or after `import --no-heads`. Translation models are written as\n"
      "fairseq's: model.pt, which torch.load reads with weights_only=False,\n"
      "dict.txt, and of SentencePiece tokenizer.model.\n"
      "\n"
      "huggingface writes the model as it is, with residual scores, and the\n"
      "Python code that computes it in transformers:\n"
      "  AutoModel.from_pretrained(\"exported\", trust_remote_code=True)\n"
      "\n"
      "Examples:\n"
      "  realetc export runs/demo/seed-1/checkpoints/best exported\n"
      "  realetc export runs/demo exported --format huggingface");
  command
      ->add_option("CHECKPOINT", arguments->source,
                   "Checkpoint directory, or that of a run, of which the best "
                   "one is taken, or whatever `import` takes")
      ->required();
  command
      ->add_option("DIR", arguments->directory,
                   "Directory to be written, without files of a model")
      ->required();
  command
      ->add_option("--format", arguments->format,
                   "tensorflow (default), safetensors or huggingface; for "
                   "translation fairseq (default)")
      ->check(CLI::IsMember(
          {"tensorflow", "safetensors", "huggingface", "fairseq"}));
  command->add_flag("--fold-omegas", arguments->fold_omegas,
                    "Write plain Post-LN in the place of ADMIN's omegas: the "
                    "same function, for stacks whose first omega is 1, as "
                    "profiles begin");
  command->callback(
      [=] { *action = [arguments] { return Export(*arguments); }; });
}

}  // namespace etc
