#ifndef ETC_TASKS_TRAIN_INITIAL_WEIGHTS_H_
#define ETC_TASKS_TRAIN_INITIAL_WEIGHTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/task/notices.h"
#include "tasks/train/task_model.h"

namespace etc {

// Fills a new model from `config.init`: the encoder as PlanWeights plans it, in
// any of its formats; BERT is lifted. The head's weights are taken if all are
// there and come from the same task; those of a classifier by the labels of its
// outputs (MatchOutputs), and of other heads only if `output_settings`
// (Task::OutputSettings) are the same there. Returns what was loaded, for
// people to read, with the warnings of the file and of outputs that are matched
// by a guess.
//   kInvalidArgument  the errors of OpenWeights and PlanWeights; a weight that
//                     is infinite or not a number; random weights, of the head
//                     or the encoder, although train.steps is 0
absl::StatusOr<Notices> LoadInitialWeights(
    const RunConfig& config, const TaskModel& model,
    const std::vector<std::string>& output_settings = {});

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_INITIAL_WEIGHTS_H_
