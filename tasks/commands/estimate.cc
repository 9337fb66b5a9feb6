// `realetc estimate`: what a configuration will cost, before it is run.

#include "tasks/train/estimate.h"

#include <torch/types.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/initializers.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "etc/encoder_decoder/model.h"
#include "etc/model_size.h"
#include "etc/residual_choice.h"
#include "etc/step_cost.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/config/config.h"
#include "tasks/config/grid.h"
#include "tasks/registry.h"
#include "tasks/runs/task_setup.h"
#include "tasks/train/checkpoint_space.h"
#include "tasks/train/device.h"
#include "tasks/train/device_rates.h"
#include "tasks/train/memory_plan.h"
#include "tasks/train/task_model.h"
#include "tasks/train/trained_counts.h"
#include "tasks/translation/model.h"
#include "tasks/translation/options.h"
#include "tasks/translation/task.h"

namespace etc {
namespace {

struct EstimateArguments {
  std::string config;
  std::vector<std::string> overrides;
};

void PrintLine(const std::string& name, const std::string& value) {
  std::cout << absl::StreamFormat("  %-26s %15s\n", name, value);
}

// Prints the parameters by their parts, and returns their counts.
TrainedCounts PrintParameters(const RunConfig& config, const TaskHead& layers) {
  const ParameterCounts counts = CountParameters(config.model);
  int64_t head = 0;
  ParameterSizes sizes = EncoderSizes(config.model);
  for (const auto& parameter : layers.named_parameters()) {
    sizes[kHeadPrefix + parameter.key()] = parameter.value().numel();
    head += parameter.value().numel();
  }
  const int64_t total = counts.total() + head;
  std::cout << "Parameters\n";
  PrintLine("token embedding", FormatCount(counts.token_embedding));
  PrintLine("other embeddings", FormatCount(counts.other_embedding));
  PrintLine("attention", FormatCount(counts.attention));
  PrintLine("relative attention", FormatCount(counts.relative_attention));
  PrintLine("feed-forward", FormatCount(counts.feed_forward));
  PrintLine("layer norms", FormatCount(counts.layer_norm));
  if (counts.gates > 0) {
    PrintLine("gates", FormatCount(counts.gates));
  }
  if (counts.residual_scale > 0) {
    PrintLine("alphas or omegas", FormatCount(counts.residual_scale));
  }
  PrintLine("encoder", FormatCount(counts.total()));
  PrintLine("head of " + config.task, FormatCount(head));
  PrintLine("total", FormatCount(total));
  const TrainedCounts trained = CountTrained(config.train, sizes);
  if (trained.trained < total) {
    PrintLine("trained", FormatCount(trained.trained));
  }
  return trained;
}

// The device that figures are for, and the implementation of a step there.
struct EstimatedDevice {
  torch::Device device = torch::kCPU;
  StepBackend backend = StepBackend::kCpu;
  // The reason why a CUDA device has no fused kernels.
  std::string no_kernels;
};

// The device of the run if this machine has it, else the CPU, with a warning: a
// device that this machine lacks may exist on the one that is meant.
absl::StatusOr<torch::Device> DeviceOfEstimate(const RunConfig& config) {
  const absl::StatusOr<RunDevice> run = DeviceOfRun(DeviceSettingsOf(config));
  if (absl::IsFailedPrecondition(run.status())) {
    PrintWarnings({absl::StrCat(
        run.status().message(),
        "; time and memory are estimated for the CPU, but a CUDA device takes "
        "the same for weights, gradients and optimizer")});
    return torch::Device(torch::kCPU);
  }
  ETC_RETURN_IF_ERROR(run.status());
  return run->device;
}

EstimatedDevice WithBackend(const torch::Device& device,
                            const RunConfig& config) {
  EstimatedDevice estimated = {.device = device};
  if (!device.is_cpu()) {
    const DeviceBackend found = BackendOn(device, config);
    estimated.backend = found.backend;
    estimated.no_kernels = found.reason;
  }
  return estimated;
}

// Prints the device's memory beside what a run takes there. Returns the bytes
// that are free, if that is known.
std::optional<double> PrintDeviceMemory(const torch::Device& device,
                                        double needed) {
  const std::string name = device.str();
  if (const auto memory = MemoryOf(device); memory.has_value()) {
    const auto free = static_cast<double>(memory->free);
    PrintLine("memory of " + name,
              FormatBytes(static_cast<double>(memory->total)));
    PrintLine("free now",
              FormatBytes(free) + (needed > free ? ": too little" : ""));
    return free;
  }
  PrintLine("memory of " + name, "not known");
  return std::nullopt;
}

// Prints and returns the bytes that a run on the CPU may take, beside what it
// needs.
double PrintMemoryLimit(const RunConfig& config, double needed) {
  const double limit = MemoryLimit(config);
  PrintLine("a run may have",
            FormatBytes(limit) + (needed > limit ? ": too little" : ""));
  return limit;
}

// Calls function(name, configuration) for each plan that a run may choose from,
// if there are several.
void ForEachPlan(
    const RunConfig& config, StepBackend backend,
    const std::function<void(const std::string&, const RunConfig&)>& function) {
  const std::vector<MemoryPlan> plans = AllowedPlans(config, backend);
  if (plans.size() > 1) {
    for (const MemoryPlan plan : plans) {
      function(absl::StrCat("  by memory_plan ", MemoryPlanName(plan)),
               WithMemoryPlan(config, plan));
    }
  }
}

void PrintParameterMemory(const StepMemory& memory) {
  PrintLine("weights", FormatBytes(memory.weights));
  if (memory.rounded_weights > 0) {
    PrintLine("weights in bfloat16", FormatBytes(memory.rounded_weights));
  }
  PrintLine("gradients", FormatBytes(memory.gradients));
}

// Prints the parts of an update's memory, and its total by each plan. `chosen`
// is `config` with the plan that is chosen. Returns the parts.
StepMemory PrintUpdateMemory(const RunConfig& config, const RunConfig& chosen,
                             const TrainedCounts& parameters,
                             const StepShape& shape,
                             const EstimatedDevice& on) {
  const StepMemory memory =
      EstimateStepMemory(chosen, parameters, shape, on.backend);
  const bool is_cpu = on.device.is_cpu();
  std::cout << absl::StreamFormat(
      "\nMemory on %s, %d of %d examples at a time, each of %d long\nand "
      "%d global tokens; shorter ones need less\n",
      is_cpu ? "the CPU" : on.device.str(), shape.batch,
      config.train.batch_size, shape.long_length, shape.global_length);
  if (is_cpu) {
    PrintLine("program", FormatBytes(memory.program));
  }
  PrintParameterMemory(memory);
  PrintLine("gradients of token table", FormatBytes(memory.table_gradients));
  PrintLine("optimizer", FormatBytes(memory.optimizer));
  PrintLine("activations", FormatBytes(memory.activations.saved));
  PrintLine("residual scores (" + ResidualText(config.model) + ")",
            FormatBytes(memory.activations.residual_scores));
  PrintLine("masks, relative ids",
            FormatBytes(memory.activations.attention_inputs));
  PrintLine("temporaries", FormatBytes(memory.activations.working));
  PrintLine("an update", FormatBytes(memory.without_cache()));
  ForEachPlan(config, on.backend,
              [&](const std::string& name, const RunConfig& planned) {
                const StepMemory by_plan =
                    EstimateStepMemory(planned, parameters, shape, on.backend);
                PrintLine(name, FormatBytes(by_plan.without_cache()));
              });
  if (AllowedPlans(config, on.backend).size() > 1) {
    PrintLine("  by memory_plan auto", chosen.train.memory_plan);
  }
  return memory;
}

void PrintMemory(const RunConfig& config, const RunConfig& chosen,
                 const TrainedCounts& parameters, const StepShape& shape,
                 const EstimatedDevice& on) {
  const StepMemory update =
      PrintUpdateMemory(config, chosen, parameters, shape, on);
  const double evaluation =
      EstimateEvaluationMemory(config, parameters, on.backend).without_cache();
  PrintLine(absl::StrCat("evaluation, ", config.train.evaluation_batch_size,
                         " at a time"),
            FormatBytes(evaluation));
  const double peak = std::max(update.without_cache(), evaluation);
  PrintLine("peak", FormatBytes(peak));
  std::optional<double> limit;
  if (on.device.is_cpu()) {
    PrintLine("with examples kept, up to", FormatBytes(peak + update.cache));
    limit = PrintMemoryLimit(config, peak);
  } else {
    limit = PrintDeviceMemory(on.device, peak);
  }
  if (limit.has_value() && evaluation > *limit &&
      update.without_cache() <= *limit) {
    const int64_t fits =
        EvaluationBatchWithin(*limit, config, parameters, on.backend);
    std::cout << (fits > 0 ? absl::StrCat("evaluations fit with "
                                          "train.evaluation_batch_size=",
                                          fits, "\n")
                           : "updates fit, but no evaluation does\n");
  }
}

void PrintCheckpoints(const RunConfig& config,
                      const TrainedCounts& parameters) {
  std::optional<int64_t> made = UpdatesWithoutData(config);
  if (made.has_value()) {
    ++*made;  // the first weights
  }
  const CheckpointSpace space = EstimateCheckpoints(config, parameters, made);
  std::cout << "\nDisk, for checkpoints with the optimizer's state\n";
  PrintLine("one checkpoint", FormatBytes(space.one));
  PrintLine("of a seed, at most", FormatBytes(space.seed));
  if (const auto seeds = std::ssize(config.train.seeds); seeds > 1) {
    PrintLine(absl::StrCat("of ", seeds, " seeds, at most"),
              FormatBytes(space.all));
  }
}

std::string Gigaflops(double flops) {
  return absl::StrFormat("%.0f GFLOP", flops / 1e9);
}

void PrintOperations(const RunConfig& config, const HeadCost& head) {
  StepShape step = LargestUpdate(config);
  step.outputs = head.outputs;
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
  const double encoder =
      CountTrainingFlops(config.model, step, StepOptionsOf(config));
  PrintLine("forward and backward", Gigaflops(encoder));
  if (const double layers = CountHeadFlops(config.model, head); layers > 0) {
    PrintLine("head of " + config.task, Gigaflops(layers));
    PrintLine("update", Gigaflops(encoder + layers));
  }
}

void PrintDuration(const std::string& name, double seconds) {
  PrintLine(name, FormatSeconds(seconds));
}

// Prints the parts of an update's time and the time of a run. `time_of` is the
// time of an update with a configuration, such as `chosen`, which is `config`
// with the plan that is chosen. Returns the seconds of one update.
double PrintTime(const RunConfig& config, const RunConfig& chosen,
                 StepBackend backend,
                 const std::function<StepTime(const RunConfig&)>& time_of) {
  const StepTime time = time_of(chosen);
  PrintDuration("linear layers", time.linear);
  PrintDuration("attention", time.attention);
  if (time.head > 0) {
    PrintDuration("head of " + config.task, time.head);
  }
  PrintDuration("passes over activations", time.passes);
  PrintDuration("passes over parameters", time.parameters);
  PrintDuration("one update", time.total());
  ForEachPlan(config, backend,
              [&](const std::string& name, const RunConfig& planned) {
                PrintDuration(name, time_of(planned).total());
              });
  PrintDuration(
      "1000 examples",
      1000 * time.total() / static_cast<double>(config.train.batch_size));
  const auto seeds = static_cast<int64_t>(config.train.seeds.size());
  if (const auto updates = UpdatesWithoutData(config); updates.has_value()) {
    PrintDuration(absl::StrCat(FormatCount(*updates * seeds), " updates"),
                  time.total() * static_cast<double>(*updates * seeds));
    std::cout << "without evaluations; shorter examples take less\n";
  } else {
    std::cout << "without evaluations; shorter examples take less. How many "
                 "updates a run has\nfollows from its data, "
                 "train.num_train_examples or train.steps\n";
  }
  return time.total();
}

absl::StatusOr<double> PrintTimeOnCpu(const RunConfig& config,
                                      const RunConfig& chosen,
                                      const TrainedCounts& parameters,
                                      const HeadCost& head) {
  ETC_ASSIGN_OR_RETURN(const int64_t threads,
                       SetThreads(config.train.threads, "train.threads"));
  const MachineRates rates = MeasureRates(config);
  std::cout << absl::StreamFormat(
      "\nTime of one update, as fast as this machine is now with train.threads "
      "%d:\n%.0f GFLOP/s in linear layers (%s), %.0f in other products, %.1f "
      "GB/s\n",
      threads, rates.linear / 1e9, config.train.precision, rates.product / 1e9,
      rates.traffic / 1e9);
  return PrintTime(
      config, chosen, StepBackend::kCpu, [&](const RunConfig& run) {
        return EstimateStepTime(run, parameters.trained, head, rates);
      });
}

absl::StatusOr<double> PrintTimeOnDevice(const RunConfig& config,
                                         const RunConfig& chosen,
                                         const EstimatedDevice& on,
                                         const TrainedCounts& parameters,
                                         const HeadCost& head) {
  ETC_RETURN_IF_ERROR(
      SetThreads(config.train.threads, "train.threads").status());
  ETC_ASSIGN_OR_RETURN(const DeviceRates rates,
                       MeasureDevice(config, on.device));
  std::cout << absl::StreamFormat(
      "\nTime of one update, as fast as %s is now:\n%.1f TFLOP/s in linear "
      "layers (%s), %.1f in attention, %.0f GB/s in passes, %.0f in copies\n",
      on.device.str(), rates.linear / 1e12, config.train.precision,
      rates.attention / 1e12, rates.passes / 1e9, rates.copies / 1e9);
  std::cout << "attention by "
            << (on.no_kernels.empty()
                    ? "the fused CUDA kernels"
                    : absl::StrCat("LibTorch's operations; no fused kernels: ",
                                   on.no_kernels))
            << "\n";
  return PrintTime(config, chosen, on.backend, [&](const RunConfig& run) {
    return EstimateStepTime(run, parameters.trained, head, rates);
  });
}

// Prints and returns the time of an update; nothing, and says so, if memory
// runs out while the rates are measured.
absl::StatusOr<std::optional<double>> PrintTimeOn(
    const RunConfig& config, const RunConfig& chosen, const EstimatedDevice& on,
    const TrainedCounts& parameters, const HeadCost& head) {
  const absl::StatusOr<double> time = NamingOutOfMemory(
      [&] { return absl::StrCat("measuring ", on.device.str()); },
      [&] {
        return on.device.is_cpu()
                   ? PrintTimeOnCpu(config, chosen, parameters, head)
                   : PrintTimeOnDevice(config, chosen, on, parameters, head);
      });
  if (IsOutOfMemory(time.status())) {
    std::cout << "\nTime of one update: not measured, "
              << time.status().message() << "\n";
    return std::nullopt;
  }
  ETC_RETURN_IF_ERROR(time.status());
  return *time;
}

// The runs of a grid and, given the time of an update of the first setting, the
// updates of all, as far as they are known.
void PrintGrid(const std::vector<GridSetting>& settings,
               std::optional<double> time) {
  int64_t updates = 0;
  int64_t runs = 0;
  bool is_known = true;
  for (const GridSetting& setting : settings) {
    const auto seeds = static_cast<int64_t>(setting.config.train.seeds.size());
    const auto of_run = UpdatesWithoutData(setting.config);
    is_known = is_known && of_run.has_value();
    runs += seeds;
    updates += seeds * of_run.value_or(0);
  }
  std::cout << absl::StreamFormat(
      "\nGrid of %s, %s; all above is of the first one,\n%s\n",
      Counted(static_cast<int64_t>(settings.size()), "setting"),
      Counted(runs, "run"), settings.front().name);
  if (time.has_value() && is_known) {
    PrintDuration(absl::StrCat(FormatCount(updates), " updates"),
                  *time * static_cast<double>(updates));
    std::cout << "if all take as long as those of the first setting\n";
  }
}

// Parameters and the memory that updates take at least; time is what
// `train --dry-run` measures.
absl::Status EstimateTranslation(RunConfig config) {
  ETC_ASSIGN_OR_RETURN(const TranslationOptions options,
                       ReadTranslationOptions(config));
  ETC_RETURN_IF_ERROR(TranslationEntry().complete(&config));
  const EncoderDecoderConfig& model = *config.encoder_decoder;
  TrainedCounts parameters = CountParameters(model);
  std::cout << "Parameters\n";
  PrintLine("token tables",
            FormatCount((model.share_embeddings == "all"       ? 1
                         : model.share_embeddings == "decoder" ? 2
                                                               : 3) *
                        model.vocab_size * model.hidden_size));
  PrintLine("total", FormatCount(parameters.all));
  if (!config.train.frozen.empty()) {
    // A model has the names that the patterns are of.
    const TranslationModel made(EncoderDecoder(model), /*smoothing=*/0.0);
    parameters = CountTrained(config.train, SizesOf(made.NamedParameters()));
    PrintLine("trained", FormatCount(parameters.trained));
  }
  const StepMemory memory = EstimateEncoderDecoderMemory(
      config, parameters, TranslationActivationBytes(model, options));
  std::cout << "\nMemory on the CPU\n";
  PrintLine("program", FormatBytes(memory.program));
  PrintParameterMemory(memory);
  PrintLine("optimizer", FormatBytes(memory.optimizer));
  PrintLine("activations, about", FormatBytes(memory.activations.saved));
  PrintLine("peak, about", FormatBytes(memory.without_cache()));
  PrintMemoryLimit(config, memory.without_cache());
  PrintCheckpoints(config, parameters);
  std::cout << "\n`realetc train CONFIG --dry-run` measures the time\n";
  return absl::OkStatus();
}

absl::Status Estimate(const EstimateArguments& arguments) {
  ETC_ASSIGN_OR_RETURN(const RunConfig read,
                       ReadTaskConfig(arguments.config, arguments.overrides));
  ETC_ASSIGN_OR_RETURN(const std::vector<GridSetting> settings,
                       ExpandGrid(read));
  const RunConfig& config = settings.front().config;
  PrintWarnings(config.warnings);
  ETC_ASSIGN_OR_RETURN(const TaskEntry* entry, FindTask(config.task));
  ETC_ASSIGN_OR_RETURN(const torch::Device device, DeviceOfEstimate(config));
  ETC_RETURN_IF_ERROR(CheckMemoryPlan(config, device.is_cpu()));
  PrintWarnings({PrecisionWarning(device, config.train.precision),
                 ThreadsWarning(config.train.threads, "train.threads")});
  if (entry->has_own_model) {
    if (!device.is_cpu()) {
      PrintWarnings({absl::StrCat("memory is estimated for the CPU, not for ",
                                  device.str())});
    }
    ETC_RETURN_IF_ERROR(EstimateTranslation(config));
    if (!read.grid.empty()) {
      PrintGrid(settings, /*time=*/std::nullopt);
    }
    return absl::OkStatus();
  }
  const EstimatedDevice on = WithBackend(device, config);
  const auto make_layers = [&] {
    // Memory that nobody writes to costs nothing: sizes alone are asked for.
    const WithoutInitialValues uninitialised;
    return entry->make_head(config);
  };
  ETC_ASSIGN_OR_RETURN(const std::shared_ptr<TaskHead> layers, make_layers());
  const TrainedCounts parameters = PrintParameters(config, *layers);
  const StepShape largest = LargestMicroBatch(config, *layers);
  PrintWarnings({PlanWarning(config, parameters, largest, on.backend)});
  const RunConfig chosen = WithPlanFor(config, parameters, largest, on.backend);
  PrintMemory(config, chosen, parameters, largest, on);
  PrintCheckpoints(config, parameters);
  const HeadCost head = layers->CostOf(LargestUpdate(config));
  PrintOperations(chosen, head);
  ETC_ASSIGN_OR_RETURN(const std::optional<double> time,
                       PrintTimeOn(config, chosen, on, parameters, head));
  if (!read.grid.empty()) {
    PrintGrid(settings, time);
  }
  return absl::OkStatus();
}

}  // namespace

void AddEstimateCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<EstimateArguments>();
  CLI::App* command = program->add_subcommand(
      "estimate", "Parameters, memory, disk space and time of a configuration");
  command->footer(
      "Nothing is trained, and no data are read; the rates of the machine, or\n"
      "of the CUDA device of train.device, are measured for about a second.\n"
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
