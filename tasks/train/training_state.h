#ifndef ETC_TASKS_TRAIN_TRAINING_STATE_H_
#define ETC_TASKS_TRAIN_TRAINING_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/weights/checkpoint.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/config/run_settings.h"
#include "tasks/data/loader.h"
#include "tasks/metrics.h"
#include "tasks/output/checkpoint_files.h"
#include "tasks/output/checkpoint_record.h"
#include "tasks/output/program_version.h"
#include "tasks/train/run_plan.h"

namespace etc {

// The state from which a stopped run goes on, beside the weights. No random
// state, of no device: the random numbers of a step follow from the seed and
// the step, those of an example from the seed, the epoch and the record.
struct TrainingState {
  int64_t step = 0;  // updates made
  // Examples of these (`translation`: batches): train.batch_size of each, as it
  // was then.
  int64_t examples = 0;
  // Position of the next batch.
  LoaderPosition position;
  // The last evaluation: after how many updates, and its scores.
  int64_t evaluated_step = 0;
  Metrics evaluation;
  // The evaluation with the best main metric so far, of equal ones the latest.
  int64_t best_step = 0;
  Metrics best;
  // With early stopping: the main metric at the last improvement, and the
  // evaluations in a row since then.
  std::optional<double> improved_score;
  int64_t stale_evaluations = 0;
  // Bytes in the file of metrics.
  int64_t metrics_bytes = 0;

  bool operator==(const TrainingState&) const = default;
};

// Converts the whole state.
nlohmann::json StateToJson(const TrainingState& state);
// Converts it back; messages begin with `where`.
//   kInvalidArgument  `json` is no state, or has a number that no run comes to,
//                     such as a negative one
absl::StatusOr<TrainingState> StateFromJson(const nlohmann::json& json,
                                            const std::string& where);

// Makes `metrics` those of an evaluation now. Returns true if they are the best
// so far by `main_metric`, of equal ones the latest.
bool SetScores(const Metrics& metrics, const MainMetric& main_metric,
               TrainingState* state);

// Counts `metrics`, those of an evaluation now, towards the end by early
// stopping, before SetScores; where that is off, forgets what was counted.
void CountStale(const TrainConfig& train, const MainMetric& main_metric,
                const Metrics& metrics, TrainingState* state);

// Returns true if early stopping ends a run in this state.
bool HasEndedEarly(const TrainConfig& train, const TrainingState& state);

// Adapts `state` to a run that goes on by `plan`, whose settings changed by
// `changes`: other examples or batches begin a new pass over the data. Returns
// a line for people about each.
//   kInvalidArgument  the run has made more updates already than the plan has
absl::StatusOr<std::vector<std::string>> GoOnWithChanges(
    const std::vector<SettingChange>& changes, const RunPlan& plan,
    TrainingState* state);

// Chooses the best score of `state` anew from `evaluated`, the checkpoints that
// are kept, because that of the best one is lost. Returns a line about it.
std::string ReplaceLostBest(const MainMetric& main_metric,
                            const std::vector<RecordedCheckpoint>& evaluated,
                            TrainingState* state);

// The file training_state.safetensors (kTrainingStateFile) of a checkpoint
// directory.
struct TrainingStateFile {
  TrainingState state;
  nlohmann::json settings;
  // The device that the run was on, "cpu" or "cuda:0".
  std::string device;
  // The program that wrote the checkpoint; without a version: not noted.
  ProgramVersion program = {};
  NamedTensors optimizer;  // Optimizer::State(); read ones are on the CPU
};
absl::Status WriteTrainingState(const TrainingStateFile& contents,
                                const std::string& path);
absl::StatusOr<TrainingStateFile> ReadTrainingState(const std::string& path);

// The file evaluation.json of a checkpoint directory, which is there once the
// checkpoint has been evaluated: the state as of then and the settings that it
// belongs to, which take the place of those in training_state.safetensors. A
// checkpoint is written before it is evaluated, and its tensors are not written
// again. Sealed (tasks/output/sealed_json.h).
struct EvaluatedState {
  TrainingState state;
  nlohmann::json settings;

  bool operator==(const EvaluatedState&) const = default;
};
absl::Status WriteStateAfterEvaluation(const EvaluatedState& evaluated,
                                       const std::string& path);
// Returns nothing if there is no such file.
//   kDataLoss  it is not as it was written
absl::StatusOr<std::optional<EvaluatedState>> ReadStateAfterEvaluation(
    const std::string& path);

// Its name in a checkpoint directory.
inline constexpr char kEvaluationFile[] = "evaluation.json";

// The settings that go with the state of the checkpoint in `directory`: those
// in the later of the two files. Reads no tensors.
absl::StatusOr<nlohmann::json> ReadCheckpointSettings(
    const std::string& directory);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_TRAINING_STATE_H_
