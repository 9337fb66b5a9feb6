#include "tasks/train/run_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/metrics.h"
#include "tasks/output/results.h"
#include "tasks/train/score_statistics_json.h"

namespace etc {
namespace {

// Adds the numbers of residual scores that the update has.
void AddResidualScores(const TrainStepResult& update,
                       nlohmann::ordered_json* line) {
  if (update.gates.has_value()) {
    (*line)["gate_mean"] = update.gates->mean;
    (*line)["gate_max"] = update.gates->largest;
  }
  if (!update.score_statistics.empty()) {
    (*line)["scores"] = ScoreStatisticsToJson(update.score_statistics);
  }
}

// The gates for a histogram, at every hundredth of a run and at its end; else
// empty.
std::vector<double> GatesToShow(const TrainStepResult& update, int64_t step,
                                int64_t num_steps) {
  constexpr int64_t kHistograms = 100;
  const bool is_due = step == num_steps ||
                      step % std::max<int64_t>(1, num_steps / kHistograms) == 0;
  return is_due && update.gates.has_value() ? update.gates->values
                                            : std::vector<double>();
}

// Sets the evaluations that are left; the runs after this one have as many for
// each update.
void SetEvaluations(const RunOptions& options, Progress* progress) {
  if (options.evaluate == nullptr) {
    return;
  }
  const RunPlan& plan = options.plan;
  progress->evaluations = EvaluationsFrom(plan, progress->step);
  progress->later_evaluations =
      std::llround(static_cast<double>(progress->later_steps *
                                       EvaluationsFrom(plan, /*step=*/1)) /
                   static_cast<double>(plan.num_steps));
}

}  // namespace

RunReport::RunReport(const RunOptions& options, MetricsLog log,
                     std::optional<EventLog> events)
    : options_(options), log_(std::move(log)), events_(std::move(events)) {}

absl::Status RunReport::Write(const nlohmann::ordered_json& line,
                              const std::vector<double>& gates) {
  ETC_RETURN_IF_ERROR(log_.Write(line));
  if (events_.has_value()) {
    absl::Status written = events_->Write(line);
    if (written.ok() && !gates.empty()) {
      written = events_->WriteHistogram(line["step"].get<int64_t>(),
                                        "train/gates", gates);
    }
    NoteEvents(written);
  }
  return absl::OkStatus();
}

void RunReport::NoteEvents(const absl::Status& status) {
  if (!status.ok()) {
    options_.runs.context.Warn(absl::StrCat(
        status.message(), "; from here on nothing is written for TensorBoard"));
    events_.reset();
  }
}

absl::Status RunReport::Sync() {
  if (events_.has_value()) {
    NoteEvents(events_->Sync());
  }
  return log_.Sync();
}

absl::Status RunReport::ReportUpdate(const TrainingState& state,
                                     const TrainStepResult& update,
                                     const Times& times,
                                     const SkippedRecords& skipped) {
  const RunPlan& plan = options_.plan;
  const int64_t step = state.step;
  const double epoch = static_cast<double>(state.examples) /
                       static_cast<double>(plan.epoch_examples);
  const auto examples = static_cast<double>(update.examples);
  const auto tokens = static_cast<double>(update.tokens);
  nlohmann::ordered_json line = {
      {"step", step},
      {"epoch", epoch},
      {"loss", update.loss},
      {"learning_rate", update.learning_rate},
      {"gradient_norm", update.gradient_norm},
      {"update_norm", update.update_norm},
      {"weight_norm", update.weight_norm},
      {"examples", update.examples},
      {"tokens", update.tokens},
      {"examples_per_second", examples / times.seconds},
      {"tokens_per_second", tokens / times.seconds},
      {"seconds_waited", times.seconds_waited},
      {"page_faults", times.page_faults}};
  AddResidualScores(update, &line);
  if (options_.runs.context.group != nullptr) {
    line["seconds_communicating"] = times.seconds_communicating;
  }
  ETC_RETURN_IF_ERROR(Write(line, GatesToShow(update, step, plan.num_steps)));
  meter_.Add({.loss = update.loss,
              .seconds = times.seconds,
              .seconds_waited = times.seconds_waited,
              .examples = examples,
              .tokens = tokens});
  Progress progress{.step = step,
                    .num_steps = plan.num_steps,
                    .later_steps = options_.runs.later_steps,
                    .epoch = epoch,
                    .learning_rate = update.learning_rate};
  SetEvaluations(options_, &progress);
  meter_.Fill(&progress);
  if (options_.runs.context.reporter != nullptr) {
    options_.runs.context.reporter->Update(progress);
  }
  // Reported once: after one such update most later ones are like it.
  if (!update.warning.empty() && !warned_) {
    options_.runs.context.Warn(update.warning);
    warned_ = true;
  }
  if (update.model_warning.severity > warned_of_model_) {
    options_.runs.context.Warn(update.model_warning.text);
    warned_of_model_ = update.model_warning.severity;
  }
  if (step == plan.num_steps) {
    ReportUnused(skipped);
  } else {
    ReportUnusedSoFar(skipped, state.position.epoch);
  }
  return absl::OkStatus();
}

void RunReport::ReportUnusedSoFar(const SkippedRecords& skipped,
                                  int64_t passes) {
  if (skipped_train_ == 0) {
    ReportSkipped("training", skipped, &skipped_train_);
  }
  if (passes > 0) {
    ReportLosses("training", skipped, &told_losses_of_train_);
  }
}

absl::Status RunReport::ReportEvaluation(const TrainingState& state,
                                         const Evaluation& evaluation,
                                         const Metrics& best_before) {
  nlohmann::ordered_json scores = nlohmann::ordered_json::object();
  for (const auto& [name, value] : evaluation.metrics) {
    scores[name] = value;
  }
  nlohmann::ordered_json line = {{"step", state.step},
                                 {"evaluation", scores},
                                 {"examples", evaluation.num_examples},
                                 {"seconds", evaluation.seconds}};
  AddMainMetric(options_.main_metric, &line);
  meter_.AddEvaluation(evaluation.seconds);
  ETC_RETURN_IF_ERROR(Write(line, /*gates=*/{}));
  // The other scores are in the log.
  const std::string& main = options_.main_metric.name;
  std::string comparison;
  if (state.best_step == state.step && !state.best.empty()) {
    const bool is_equal =
        FindMetric(best_before, main) == FindMetric(state.best, main);
    comparison = is_equal ? ", equal to the best so far" : ", the best so far";
  } else if (!state.best.empty()) {
    comparison =
        absl::StrCat("; best so far: ", FormatMainScore(state.best, main),
                     " after ", Counted(state.best_step, "update"));
  }
  const std::string remark =
      evaluation.predictions == nullptr ? "" : evaluation.predictions->Remark();
  options_.runs.context.Message(absl::StrFormat(
      "evaluation after %s: %s%s (%s, %.1f s)%s%s",
      Counted(state.step, "update"), FormatMainScore(evaluation.metrics, main),
      comparison, Counted(evaluation.num_examples, "example"),
      evaluation.seconds, remark.empty() ? "" : ": ", remark));
  ReportSkipped("evaluation", evaluation.skipped, &skipped_dev_);
  ReportLosses("evaluation", evaluation.skipped, &told_losses_of_dev_);
  return absl::OkStatus();
}

absl::Status RunReport::ReportDivergence(int64_t step,
                                         const absl::Status& error) {
  ETC_RETURN_IF_ERROR(log_.Write(
      {{"step", step}, {kDivergence, std::string(error.message())}}));
  return log_.Sync();
}

void RunReport::ReportSkipped(const std::string& data,
                              const SkippedRecords& skipped,
                              int64_t* reported) {
  if (skipped.count > *reported) {
    options_.runs.context.MessageOnce(
        absl::StrCat(data, ": ", SkippedText(skipped)));
    *reported = skipped.count;
  }
}

void RunReport::ReportLosses(const std::string& data,
                             const SkippedRecords& skipped, bool* reported) {
  if (*reported) {
    return;
  }
  for (const std::string& text : LossTexts(skipped)) {
    options_.runs.context.MessageOnce(absl::StrCat(data, ": ", text));
    *reported = true;
  }
}

void RunReport::ReportLeftOut(const SkippedRecords& skipped) {
  for (const std::string& text : LeftOutTexts(skipped)) {
    options_.runs.context.MessageOnce(absl::StrCat("training: ", text));
  }
}

}  // namespace etc
