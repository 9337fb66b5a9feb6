// `realetc estimate`: what a configuration will cost, before it is run.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "etc/formats/status_macros.h"
#include "etc/model_size.h"
#include "etc/step_cost.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/formatting.h"
#include "tasks/commands/task_setup.h"
#include "tasks/registry.h"
#include "tasks/text/tokenizer.h"
#include "tasks/train/config.h"
#include "tasks/train/step_memory.h"

namespace etc {
namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> overrides;
};

// Stands in for the vocabulary, which need not be there: no text is read.
class NoTokenizer : public Tokenizer {
 public:
  NoTokenizer(int64_t vocab_size, bool lower_cases)
      : vocab_size_(vocab_size), lower_cases_(lower_cases) {}

  std::vector<TextPiece> Encode(absl::string_view) const override { return {}; }
  int64_t vocab_size() const override { return vocab_size_; }
  std::string Piece(int32_t) const override { return ""; }
  int32_t Id(absl::string_view) const override { return -1; }
  bool lower_cases() const override { return lower_cases_; }

 private:
  int64_t vocab_size_;
  bool lower_cases_;
};

void PrintLine(const std::string& name, const std::string& value) {
  std::cout << absl::StreamFormat("  %-26s %15s\n", name, value);
}

// Returns their sum.
int64_t PrintParameters(const FinetuneConfig& config, const Task& task) {
  const ParameterCounts counts = CountParameters(config.model);
  int64_t head = 0;
  for (const torch::Tensor& parameter : task.MakeHead()->parameters()) {
    head += parameter.numel();
  }
  const int64_t total = counts.total() + head;
  std::cout << "Parameters\n";
  PrintLine("token embedding", FormatCount(counts.token_embedding));
  PrintLine("other embeddings", FormatCount(counts.other_embedding));
  PrintLine("attention", FormatCount(counts.attention));
  PrintLine("relative attention", FormatCount(counts.relative_attention));
  PrintLine("feed-forward", FormatCount(counts.feed_forward));
  PrintLine("layer norms", FormatCount(counts.layer_norm));
  PrintLine("encoder", FormatCount(counts.total()));
  PrintLine("head of " + config.task, FormatCount(head));
  PrintLine("total", FormatCount(total));
  return total;
}

void PrintMemory(const FinetuneConfig& config, int64_t parameters) {
  const StepMemory memory = EstimateStepMemory(config, parameters);
  const StepShape shape = LargestMicroBatch(config);
  std::cout << absl::StreamFormat(
      "\nMemory on the CPU in float32, %d of %d examples at a time, each of "
      "%d long\nand %d global tokens; shorter ones need less\n",
      shape.batch, config.train.batch_size, shape.long_length,
      shape.global_length);
  PrintLine("program", FormatBytes(memory.program));
  PrintLine("weights", FormatBytes(memory.weights));
  PrintLine("gradients", FormatBytes(memory.gradients));
  PrintLine("optimizer", FormatBytes(memory.optimizer));
  PrintLine("examples kept, at most", FormatBytes(memory.cache));
  PrintLine("activations", FormatBytes(memory.activations.saved));
  PrintLine("residual scores (" + config.residual_attention + ")",
            FormatBytes(memory.activations.residual_scores));
  PrintLine("masks, relative ids",
            FormatBytes(memory.activations.attention_inputs));
  PrintLine("temporaries", FormatBytes(memory.activations.working));
  PrintLine("fragmentation", FormatBytes(memory.activations.fragmentation));
  PrintLine("peak", FormatBytes(memory.total()));
}

std::string Gigaflops(double flops) {
  return absl::StrFormat("%.0f GFLOP", flops / 1e9);
}

void PrintOperations(const FinetuneConfig& config) {
  StepShape step = LargestMicroBatch(config);
  step.batch = config.train.batch_size;
  const ForwardFlops forward = CountForwardFlops(config.model, step);
  std::cout << absl::StreamFormat(
      "\nOperations of one update, %d examples of that length\n", step.batch);
  PrintLine("projections, forward", Gigaflops(forward.projections));
  PrintLine("attention, forward", Gigaflops(forward.attention));
  PrintLine("feed-forward, forward", Gigaflops(forward.feed_forward));
  if (forward.embedding > 0) {
    PrintLine("embedding, forward", Gigaflops(forward.embedding));
  }
  PrintLine("forward", Gigaflops(forward.total()));
  PrintLine("forward and backward",
            Gigaflops(CountTrainingFlops(config.model, step)));
}

absl::Status Estimate(const Arguments& arguments) {
  ETC_ASSIGN_OR_RETURN(
      const FinetuneConfig config,
      ReadFinetuneConfig(arguments.config, arguments.overrides));
  PrintWarnings(config.warnings);
  ETC_ASSIGN_OR_RETURN(const TaskEntry* entry, FindTask(config.task));
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<Task> task,
                       entry->make(config, std::make_shared<NoTokenizer>(
                                               config.model.vocab_size,
                                               config.tokenizer.lower_case)));
  const int64_t parameters = PrintParameters(config, *task);
  PrintMemory(config, parameters);
  PrintOperations(config);
  return absl::OkStatus();
}

}  // namespace

void AddEstimateCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program->add_subcommand(
      "estimate", "Parameters, memory and operations of a configuration");
  command->footer(
      "Nothing is trained, and no data are read.\n"
      "\n"
      "Example:\n"
      "  realetc estimate tasks/wikihop/configs/demo.json \\\n"
      "    --set train.micro_batch_size=4 --set residual_attention=off");
  command->add_option("CONFIG", arguments->config, "Configuration in JSON")
      ->required();
  command
      ->add_option("--set", arguments->overrides,
                   "FIELD=VALUE: change a field of the configuration; may be "
                   "repeated")
      ->allow_extra_args(false);
  command->callback(
      [=] { *action = [arguments] { return Estimate(*arguments); }; });
}

}  // namespace etc
