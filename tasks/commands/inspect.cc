// `realetc inspect`: the contents of a checkpoint, or a record's examples and
// the number of examples of the training data.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/counted.h"
#include "base/printable.h"
#include "base/shape_text.h"
#include "base/status_macros.h"
#include "etc/residual_choice.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/compare.h"
#include "etc/weights/formats/tensor_source.h"
#include "etc/weights/gates.h"
#include "etc/weights/source_config.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/commands/find_weights.h"
#include "tasks/commands/translation_weights.h"
#include "tasks/config/config.h"
#include "tasks/data/data_files.h"
#include "tasks/data/example_count.h"
#include "tasks/data/example_source.h"
#include "tasks/data/record_gate.h"
#include "tasks/runs/task_setup.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/model_task.h"
#include "tasks/train/open_data.h"
#include "tasks/train/run_plan.h"

namespace etc {
namespace {

struct InspectArguments {
  std::string checkpoint;
  std::string compare;
  std::string config;
  std::vector<std::string> overrides;
  std::string data;
  int64_t record = 0;
  bool count = false;
};

// --- A checkpoint -----------------------------------------------------------

// A line for each tensor, and the totals; a warning where elements are infinite
// or not a number.
absl::Status PrintTensors(const TensorReader& reader) {
  std::vector<std::string> warnings = reader.warnings();
  int64_t parameters = 0;
  int64_t bytes = 0;
  const std::vector<std::string> names = reader.Names();
  for (const std::string& name : names) {
    ETC_ASSIGN_OR_RETURN(const TensorInfo* info, reader.Find(name));
    const absl::StatusOr<torch::Tensor> read = reader.Read(name);
    if (absl::IsInvalidArgument(read.status())) {
      std::cout << absl::StreamFormat("%-60s %-16s %-8s not numbers\n",
                                      Printable(name), ShapeText(info->shape),
                                      info->dtype);
      continue;
    }
    ETC_RETURN_IF_ERROR(read.status());
    const torch::Tensor& tensor = *read;
    const torch::Tensor wide = tensor.to(torch::kFloat64);
    parameters += tensor.numel();
    bytes += static_cast<int64_t>(tensor.nbytes());
    std::cout << absl::StreamFormat("%-60s %-16s %-8s norm %.6g\n",
                                    Printable(name), ShapeText(tensor.sizes()),
                                    c10::toString(tensor.scalar_type()),
                                    wide.norm().item<double>());
    if (const absl::Status finite = CheckFinite(reader.path(), {{name, wide}});
        !finite.ok()) {
      warnings.emplace_back(finite.message());
    }
  }
  std::cout << "\n"
            << Counted(static_cast<int64_t>(names.size()), "tensor") << ", "
            << FormatCount(parameters)
            << (parameters == 1 ? " number, " : " numbers, ")
            << FormatBytes(static_cast<double>(bytes)) << "\n";
  PrintWarnings(warnings);
  return absl::OkStatus();
}

// The means over the heads of the gates, a line for each layer that has them.
void PrintGates(const TensorReader& reader) {
  const absl::StatusOr<NamedTensors> gates = ReadGates(reader);
  if (!gates.ok()) {
    PrintWarnings({std::string(gates.status().message())});
    return;
  }
  const std::vector<LayerGates> layers = SummarizeGates(*gates);
  if (layers.empty()) {
    return;
  }
  std::cout << "\nGates, means over heads, and the largest magnitude of one\n"
            << absl::StreamFormat("%8s", "layer");
  for (const auto& [block, mean] : layers.front().means) {
    std::cout << absl::StreamFormat("%10s", block);
  }
  std::cout << absl::StreamFormat("%10s\n", "largest");
  for (const LayerGates& layer : layers) {
    std::cout << absl::StreamFormat("%8d", layer.layer);
    for (const auto& [block, mean] : layer.means) {
      std::cout << absl::StreamFormat("%10.4f", mean);
    }
    std::cout << absl::StreamFormat("%10.4f\n", layer.largest);
  }
}

absl::Status InspectCheckpoint(const std::string& checkpoint) {
  ETC_ASSIGN_OR_RETURN(const TensorReader reader,
                       TensorReader::Open(checkpoint));
  ETC_RETURN_IF_ERROR(PrintTensors(reader));
  PrintGates(reader);
  for (const auto& [key, value] : reader.metadata()) {
    std::cout << "metadata " << Printable(key) << ": " << Printable(value)
              << "\n";
  }
  if (IsEncoderDecoder(checkpoint)) {
    return PrintEncoderDecoder(checkpoint);
  }
  const absl::StatusOr<SourceConfig> config = ReadSourceConfig(checkpoint);
  if (absl::IsNotFound(config.status())) {
    std::cout << "There is no configuration beside the tensors.\n";
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(config.status());
  std::cout << "\nResidual attention: " << ResidualText(config->config)
            << "\n\n"
            << config->path << (config->is_bert ? " as etc_config.json" : "")
            << ": " << EtcConfigToJson(config->config);
  PrintWarnings(config->warnings);
  return absl::OkStatus();
}

absl::Status Compare(const std::string& checkpoint, const std::string& other) {
  ETC_ASSIGN_OR_RETURN(const WeightComparison comparison,
                       CompareWeights(checkpoint, other));
  for (const TensorDifference& difference : comparison.differences) {
    std::cout << absl::StreamFormat("%-60s %s\n", Printable(difference.name),
                                    difference.what);
  }
  for (const std::string& text : comparison.config_differences) {
    std::cout << "configuration: " << text << "\n";
  }
  std::cout << Counted(static_cast<int64_t>(comparison.differences.size()),
                       "tensor")
            << (comparison.differences.size() == 1 ? " differs, " : " differ, ")
            << comparison.same << " the same (there: " << other
            << ", here: " << checkpoint << ")\n";
  return absl::OkStatus();
}

// --- A record ---------------------------------------------------------------

// --data, or the files that the configuration names.
absl::StatusOr<std::vector<std::string>> DataOf(
    const InspectArguments& arguments, const RunConfig& config,
    const std::vector<std::string>& files) {
  if (!arguments.data.empty() && config.encoder_decoder.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--data names one file, but ", config.task,
        " reads two: name them in the configuration, or by --set data.",
        arguments.count ? "train" : "dev"));
  }
  if (!arguments.data.empty()) {
    return std::vector<std::string>{arguments.data};
  }
  if (files.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        arguments.config, ": data names no files; give one with --data"));
  }
  return files;
}

// A task with a model of its own completes the model by its vocabulary.
absl::StatusOr<TaskSetup> SetUp(RunConfig* config) {
  return config->encoder_decoder.has_value() ? SetUpTraining(config)
                                             : SetUpTask(*config);
}

absl::Status InspectRecord(const InspectArguments& arguments,
                           RunConfig config) {
  ETC_ASSIGN_OR_RETURN(
      const std::vector<std::string> data,
      DataOf(arguments, config,
             config.data.dev.empty() ? config.data.train : config.data.dev));
  ETC_ASSIGN_OR_RETURN(const TaskSetup setup, SetUp(&config));
  PrintWarnings(setup.warnings);
  ETC_ASSIGN_OR_RETURN(std::vector<std::string> files,
                       FindDataFiles({data.front()}));
  files.resize(1);
  ETC_ASSIGN_OR_RETURN(
      const auto records,
      OpenRecords(*setup.task,
                  {.patterns = AsModelTask(*setup.task) ? data : files,
                   .limits = RecordLimitsOf(config.data)}));
  if (arguments.record < 0 || arguments.record >= records->size()) {
    return absl::OutOfRangeError(
        absl::StrCat(files.front(), ": record ", arguments.record,
                     " should be in [0, ", records->size(), ")"));
  }
  const absl::StatusOr<Examples> examples =
      records->Make(RequestForEvaluation(arguments.record));
  if (IsSkipped(examples.status(), OnBadRecordOf(config.data))) {
    return absl::InvalidArgumentError(
        absl::StrCat(examples.status().message(), "; a run skips this record"));
  }
  ETC_RETURN_IF_ERROR(examples.status());
  for (const auto& example : *examples) {
    std::cout << setup.task->Describe(*example) << "\n";
  }
  return absl::OkStatus();
}

// Warns of a train.num_train_examples that is not about `num_examples`, those
// of data.train.
void WarnOfExamples(const InspectArguments& arguments, const RunConfig& config,
                    int64_t num_examples) {
  if (arguments.data.empty()) {
    PrintWarnings({ExamplesWarning(config, num_examples)});
  }
}

// Prints the right value of train.num_train_examples, and what was left out.
absl::Status CountExamples(const InspectArguments& arguments,
                           RunConfig config) {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> data,
                       DataOf(arguments, config, config.data.train));
  ETC_ASSIGN_OR_RETURN(const TaskSetup setup, SetUp(&config));
  PrintWarnings(setup.warnings);
  StreamReporter reporter = ConsoleReporter();
  ETC_ASSIGN_OR_RETURN(const auto records,
                       OpenRecords(*setup.task,
                                   {.patterns = data,
                                    .use = RecordUse::kTraining,
                                    .limits = RecordLimitsOf(config.data)},
                                   {.reporter = &reporter}));
  if (AsModelTask(*setup.task) != nullptr) {
    const int64_t batches = EpochExamples(*setup.task, *records, config);
    const std::string left_out = records->LeftOut();
    std::cout << Counted(records->size(), "record") << ", " << batches
              << (batches == 1 ? " batch\n" : " batches\n") << left_out
              << (left_out.empty() ? "" : "\n");
    WarnOfExamples(arguments, config, batches);
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(
      const ExampleCount count,
      CountTrainingExamples(
          *records,
          {.on_bad_record = OnBadRecordOf(config.data),
           .stream = {.workers = config.data.workers,
                      .max_prefetch_bytes = CacheBytesOf(config.data)},
           .listener = [&](int64_t done) {
             reporter.Counting(
                 {.records = done, .num_records = records->size()});
           }}));
  std::cout << Counted(records->size(), "record") << ", "
            << Counted(count.examples, "example") << "\n";
  for (const auto& [reason, left_out] : count.skipped.left_out) {
    std::cout << left_out << " more left out: " << reason << "\n";
  }
  for (const std::string& text : LossTexts(count.skipped)) {
    std::cout << text << "\n";
  }
  if (count.skipped.count > 0) {
    std::cout << Counted(count.skipped.count, "bad record")
              << (count.skipped.count == 1 ? ": " : ", the first of them: ")
              << count.skipped.first_message << "\n";
  }
  WarnOfExamples(arguments, config, count.examples);
  return absl::OkStatus();
}

absl::Status Inspect(const InspectArguments& arguments) {
  if (arguments.checkpoint.empty()) {
    ETC_ASSIGN_OR_RETURN(const RunConfig config,
                         ReadTaskConfig(arguments.config, arguments.overrides));
    return arguments.count ? CountExamples(arguments, config)
                           : InspectRecord(arguments, config);
  }
  ETC_ASSIGN_OR_RETURN(const std::string checkpoint,
                       FindWeights(arguments.checkpoint));
  if (arguments.compare.empty()) {
    return InspectCheckpoint(checkpoint);
  }
  ETC_ASSIGN_OR_RETURN(const std::string other, FindWeights(arguments.compare));
  return Compare(checkpoint, other);
}

}  // namespace

void AddInspectCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = program->add_subcommand(
      "inspect", "Show a checkpoint's parameters, or what a record becomes");
  command->footer(
      "Examples:\n"
      "  realetc inspect runs/demo/seed-1/checkpoints/best\n"
      "  realetc inspect checkpoints/lifted --compare bert-base-uncased\n"
      "  realetc inspect --config tasks/wikihop/configs/demo.json --record 3\n"
      "  realetc inspect --config tasks/nq/configs/demo.json --count");
  CLI::Option* checkpoint = command->add_option(
      "CHECKPOINT", arguments->checkpoint,
      "Weights in any format that `import` takes, or the directory of a run, "
      "of "
      "which the best checkpoint is taken: lists names, shapes, types, norms, "
      "totals, gates of residual attention and the configuration");
  command
      ->add_option("--compare", arguments->compare,
                   "Other weights: lists what differs")
      ->needs(checkpoint);
  CLI::Option* config =
      command->add_option("--config", arguments->config,
                          "Configuration whose task reads the record");
  CLI::Option* record =
      command
          ->add_option("--record", arguments->record,
                       "Index of the record, from 0 (default 0)")
          ->needs(config);
  command
      ->add_flag("--count", arguments->count,
                 "Count the training examples instead: what "
                 "train.num_train_examples should be")
      ->needs(config)
      ->excludes(record);
  command
      ->add_option("--data", arguments->data,
                   "Data file, or a pattern of which the first file is "
                   "taken (default: the configuration's first dev file; with "
                   "--count all of the pattern, or of its training files)")
      ->needs(config);
  command
      ->add_option("--set", arguments->overrides,
                   "FIELD=VALUE: change a field of the configuration; may be "
                   "repeated")
      ->allow_extra_args(false)
      ->needs(config);
  checkpoint->excludes(config);
  command->callback([=] {
    if (arguments->checkpoint.empty() && arguments->config.empty()) {
      throw CLI::RequiredError("CHECKPOINT or --config");
    }
    *action = [arguments] { return Inspect(*arguments); };
  });
}

}  // namespace etc
