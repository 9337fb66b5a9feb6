#include "tasks/train/shared_start.h"

#include <torch/utils.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/out_of_memory.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config_fields.h"
#include "tasks/config/run_settings.h"
#include "tasks/data/batch.h"
#include "tasks/train/optimizer.h"
#include "tasks/train/optimizer_shards.h"
#include "tasks/train/train_step.h"

namespace etc {
namespace {

using Json = nlohmann::json;

std::string DifferenceText(absl::string_view field, absl::string_view here,
                           absl::string_view there) {
  return absl::StrCat(field, " is ", here, " here and ", there, " there");
}

// Agrees with the other processes that none differs from process 0; `should`
// is what they have in common: "do the same".
absl::Status AgreeOnNone(const std::vector<std::string>& differ,
                         absl::string_view should, ProcessGroup* group) {
  return group->Agree(
      differ.empty() ? absl::OkStatus()
                     : absl::FailedPreconditionError(absl::StrCat(
                           "this process and process 0 should ", should,
                           ", but differ: ", absl::StrJoin(differ, "; "))));
}

absl::StatusOr<Json> JsonOfFirst(const Json& mine, ProcessGroup* group) {
  ETC_ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      group->Gather(group->is_first() ? JsonText(mine) : std::string()));
  return ParseJson(all.front(), "what process 0 has sent");
}

absl::Status Broadcast(const NamedTensors& tensors, ProcessGroup* group,
                       int64_t root = 0) {
  std::vector<torch::Tensor> values;
  for (const auto& [name, tensor] : tensors) {
    values.push_back(tensor);
  }
  return group->Broadcast(values, root);
}

absl::Status ShareState(TrainingState* state,
                        std::optional<int64_t>* saved_step,
                        ProcessGroup* group) {
  const Json mine = {{"state", StateToJson(*state)},
                     {"saved", saved_step->value_or(-1)}};
  ETC_ASSIGN_OR_RETURN(const Json first, JsonOfFirst(mine, group));
  ETC_ASSIGN_OR_RETURN(
      *state, StateFromJson(first["state"], "what process 0 has sent"));
  const auto saved = first["saved"].get<int64_t>();
  *saved_step = saved < 0 ? std::nullopt : std::optional<int64_t>(saved);
  return absl::OkStatus();
}

absl::Status CheckMicroBatches(const TrainingLoaderOptions& loader,
                               int64_t processes) {
  const int64_t micro_batches = loader.micro_batches();
  if (micro_batches >= processes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "an update, train.batch_size ", loader.batch_size,
      ", train.micro_batch_size ", loader.micro_batch_size,
      ", has fewer micro-batches (", micro_batches,
      ") than there are processes (", processes, "): ",
      loader.batch_size < processes
          ? absl::StrCat("train.batch_size should be at least ", processes)
          : absl::StrCat("train.micro_batch_size should be at most ",
                         loader.batch_size / processes)));
}

}  // namespace

absl::StatusOr<ModelToTrain> MakeModelToTrain(const RunOptions& run) {
  const RunPlan& plan = run.plan;
  torch::manual_seed(CombineSeeds({static_cast<uint64_t>(plan.seed)}));
  ModelToTrain made;
  ETC_ASSIGN_OR_RETURN(made.files, run.make_model());
  const NamedTensors all = made.files.model->NamedParameters();
  ETC_RETURN_IF_ERROR(FreezeParameters(plan.train.frozen, all));
  const NamedTensors trained = TrainedParameters(all);
  ETC_ASSIGN_OR_RETURN(auto factors,
                       ParameterFactors(plan.train.gate_learning_rate_factor,
                                        plan.train.learning_rate_factors, all));
  if (plan.train.shard_optimizer && run.runs.context.group != nullptr) {
    made.shards =
        std::make_unique<OptimizerShards>(trained, run.runs.context.group);
  }
  auto optimizer = std::make_unique<Optimizer>(
      plan.optimizer, made.shards != nullptr ? made.shards->own() : trained,
      std::move(factors));
  made.train_step = std::make_unique<TrainStep>(
      made.files.model.get(), std::move(optimizer),
      TrainStep::Options{.clip_norm = plan.optimizer.clip_norm,
                         .schedule = plan.schedule,
                         .seed = plan.seed,
                         .watch_scores = plan.train.watch_scores,
                         .group = run.runs.context.group,
                         .shards = made.shards.get()});
  return made;
}

absl::Status CheckSameFields(const Json& fields, ProcessGroup* group) {
  if (group == nullptr) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const Json first, JsonOfFirst(fields, group));
  // Parsed again, like the values that rank 0 sent.
  const Json mine = Json::parse(JsonText(fields));
  Json all = mine;
  all.update(first);
  std::vector<std::string> differ;
  for (const auto& [name, ignored] : all.items()) {
    const auto text = [&, &name = name](const Json& values) {
      return values.contains(name) ? JsonText(values[name]) : "not there";
    };
    if (text(mine) != text(first)) {
      differ.push_back(DifferenceText(name, text(mine), text(first)));
    }
  }
  return AgreeOnNone(differ, "do the same", group);
}

absl::Status CheckSameStart(const RunConfig& config,
                            const TrainOptions& options) {
  if (options.context.group == nullptr) {
    return absl::OkStatus();
  }
  Json fields = {
      {"--resume", options.earlier == EarlierRun::kResume},
      {"--resume-or-begin", options.earlier == EarlierRun::kResumeOrBegin},
      {"--overwrite", options.earlier == EarlierRun::kOverwrite},
      {"--allow-changes", options.allow_changes},
      {"grid", config.grid},
      {"model", Json::parse(ModelToJson(config))}};
  for (const auto& [name, value] : config.task_options.items()) {
    fields[absl::StrCat(config.task, ".", name)] = value;
  }
  ForEachConfigField(config, [&](const std::string& name, const auto& field,
                                 const auto& value) {
    if (field.rule.is_local) {
      return;
    }
    if constexpr (requires { value.empty(); }) {
      if (field.rule.names_files) {
        // Machines may have them in different places.
        fields[name] = value.empty() ? "none" : "files";
        return;
      }
    }
    fields[name] = FieldToJson(value);
  });
  return CheckSameFields(fields, options.context.group);
}

absl::Status CheckSharedSettings(const Json& settings, ProcessGroup* group) {
  if (group == nullptr) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const Json first, JsonOfFirst(settings, group));
  std::vector<std::string> differ;
  for (const SettingChange& change : FindChanges(first, settings)) {
    differ.push_back(DifferenceText(change.field, change.is, change.was));
  }
  return AgreeOnNone(differ, "have the same configuration and data", group);
}

absl::Status CheckSameRun(const RunOptions& options) {
  ProcessGroup* const group = options.runs.context.group;
  if (group == nullptr) {
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(CheckMicroBatches(options.plan.loader, group->size()));
  return CheckSharedSettings(options.plan.settings, group);
}

absl::StatusOr<TrainingLoaderOptions> RankLoaderOptions(
    const RunOptions& options) {
  TrainingLoaderOptions loader = options.plan.loader;
  loader.stop = options.runs.context.stop;
  loader.group = DataGroupOf(options.runs.context.group);
  if (options.runs.context.group != nullptr) {
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                         options.runs.context.group->Gather(
                             absl::StrCat(loader.max_pool_bytes)));
    for (const std::string& text : all) {
      int64_t bytes = 0;
      if (absl::SimpleAtoi(text, &bytes)) {
        loader.max_pool_bytes = std::min(loader.max_pool_bytes, bytes);
      }
    }
  }
  return loader;
}

std::unique_ptr<BatchLoader> MakeLoader(const RunOptions& run,
                                        const TrainingLoaderOptions& options,
                                        LoaderPosition start) {
  if (run.make_loader != nullptr) {
    return run.make_loader(options, start);
  }
  return std::make_unique<TrainingLoader>(&run.train, options, start);
}

absl::Status BroadcastStart(ProcessGroup* group, const RunStart& start) {
  if (group == nullptr) {
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(Broadcast(start.parameters, group));
  ETC_RETURN_IF_ERROR(ShareNamedTensors(
      [&](const std::string& entry) {
        return start.shards == nullptr || start.shards->IsOwn(entry);
      },
      group, start.optimizer_state));
  return ShareState(start.state, start.saved_step, group);
}

absl::StatusOr<std::string> InitializeByData(ProcessGroup* group,
                                             const DataStart& start) {
  const Examples& examples = start.batch.micro_batches.front();
  std::string message;
  const auto run = [&] {
    if (!examples.empty()) {
      torch::manual_seed(CombineSeeds({static_cast<uint64_t>(start.seed),
                                       /*update=*/0, /*micro_batch=*/0,
                                       /*no gradients=*/2}));
      message = start.model.initialize_by_data(
          start.model.model->Collate(examples, start.device));
    }
    return absl::OkStatus();
  };
  const absl::Status done = NamingOutOfMemory(
      [] { return "setting weights by the first micro-batch"; }, run);
  if (group == nullptr) {
    ETC_RETURN_IF_ERROR(done);
    return message;
  }
  ETC_RETURN_IF_ERROR(group->Agree(done));
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> messages,
                       group->Gather(message));
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    if (!messages[rank].empty()) {
      ETC_RETURN_IF_ERROR(Broadcast(start.model.model->NamedParameters(), group,
                                    static_cast<int64_t>(rank)));
      return messages[rank];
    }
  }
  return std::string();
}

}  // namespace etc
