#ifndef ETC_TASKS_INFERENCE_PREDICTOR_H_
#define ETC_TASKS_INFERENCE_PREDICTOR_H_

#include <any>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tasks/run_task.h"
#include "tasks/task/prediction.h"

namespace etc {

// Settings of a Predictor besides its checkpoint. Messages name them as
// `realetc predict` does: `threads` is --threads.
struct PredictorOptions {
  // The task that the checkpoint should be of, by its name in a configuration
  // ("classify"); empty: any but pre-training.
  std::string task = {};
  // FIELD=VALUE: options of the task that say how records are read
  // ("classify.text=body") or answers decoded ("classify.threshold=0.3"),
  // data.max_long_length and data.max_global_length, in tokens, as far as the
  // model's positions reach, and data.max_record_megabytes. data.on_bad_record
  // decides nothing here: the error of a record is its own answer.
  std::vector<std::string> overrides = {};
  // As in EvaluateTaskOptions.
  std::string residual_attention = {};
  // As in EvaluateTaskOptions.
  std::string device = "auto";
  // Examples that run together; absent: train.evaluation_batch_size of the
  // checkpoint.
  std::optional<int64_t> batch_size = {};
  // CPU threads of the model, which become LibTorch's number for the process;
  // absent: as in training, 0, the default: OMP_NUM_THREADS, or as many as
  // there are cores.
  std::optional<int64_t> threads = 0;
  // Called by Open alone; `stop` is not used.
  TaskCallbacks callbacks = {};
};

// A fine-tuned model that answers for single records, in memory:
//
//   auto predictor = etc::Predictor::Open("runs/mine");
//   auto prediction = predictor->Predict(R"({"text": "good and cheap"})");
//   std::cout << prediction->json << "\n";
//
// A record is the JSON text of one as the official file has it; of tasks whose
// files are no lists of JSON objects it is one of these:
//
//   classify  {"text": "..."}, or the fields that the configuration names
//   tokens    {"text": "..."}, or {"sentences": [["word", ...], ...]}
//   glue      {"text": "...", "text_b": "..."}
//   squad     {"id": "...", "question": "...", "context": "..."}
//
// or it is the struct of its task, from tasks/<task>/record.h: WikihopRecord,
// HotpotqaRecord, NqRecord, OpenkpRecord, ClassifyRecord, TokensRecord,
// GlueRecord, SquadRecord. Answers in JSON records are not read; those of
// structs should be left empty, as they are checked. Predictions, as JSON:
//
//   wikihop   {"id": "...", "answer": "..."}
//   hotpotqa  {"id": "...", "answer": "...", "sp": [["title", 0], ...]}
//   nq        {"example_id": 1, "long_answer": {...}, ...}, an element of the
//             official file's "predictions"
//   openkp    {"url": "...", "KeyPhrases": [["..."], ...]}, a line of the
//             official file
//   classify  {"id": "...", "label": "...", "probabilities": {...}}, "labels"
//             or "value" by its type, a line of its prediction file
//   tokens    {"id": "...", "spans": [{"start": 0, "end": 4, ...}, ...]}, a
//             line of its prediction file
//   glue      {"id": "...", "label": "..."}; STS-B {"id": "...", "score": 3.2}
//   squad     {"id": "...", "answer": "...", "nbest": [...]}, and "null_odds"
//             in version 2.0
//
// and as structs (RecordPrediction::As) HotpotqaPrediction, NqPrediction,
// ClassifyPrediction, TokensPrediction, GluePrediction, SquadPrediction, a
// std::string of wikihop and a std::vector<std::string> of openkp.
//
// A copy shares the model, which is loaded once. All methods may be called from
// any threads at the same time: the model runs in a thread of its own, on
// batches of records that wait together and are about as long. Logits depend on
// the other examples of a batch by rounding alone: matrix products of other
// sizes add in another order, in wide models, which shows in the logits of
// "nbest" and the scores of nq.
class Predictor {
 public:
  // Loads a checkpoint: a directory that fine-tuning wrote, of a checkpoint, or
  // of a grid, run or seed, whose best one is taken.
  //   kNotFound           there is none
  //   kInvalidArgument    it is of another task than `options.task`, or of
  //                       pre-training; what its files or `options` have
  //                       wrong
  //   kFailedPrecondition there is no such device
  //   kResourceExhausted  out of memory, or of threads
  static absl::StatusOr<Predictor> Open(const std::string& checkpoint,
                                        const PredictorOptions& options = {});

  // A prediction that is being made.
  class Pending {
   public:
    // Waits for it. Errors are those of Predict. Throws c10::Error if it is
    // called again, for a copy too.
    absl::StatusOr<RecordPrediction> Get();

   private:
    friend class Predictor;
    struct State;
    explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };

  // The prediction for a record given as JSON text.
  //   kInvalidArgument    the record is not JSON, not UTF-8, without a field
  //                       that it needs, or another mistake in it
  //   kResourceExhausted  it is longer than data.max_record_megabytes; out of
  //                       memory
  //   kAborted            the model's logits are infinite or not a number
  absl::StatusOr<RecordPrediction> Predict(absl::string_view record) const;

  // The same of several: one result for each, in their order.
  std::vector<absl::StatusOr<RecordPrediction>> Predict(
      absl::Span<const std::string> records) const;

  // The same of the struct of a record.
  //   kInvalidArgument  it is the struct of another task, or has a text that is
  //                     not UTF-8
  template <typename Record>
  absl::StatusOr<RecordPrediction> PredictStruct(Record record) const {
    return PredictAny(std::any(std::move(record)));
  }

  // Makes the input of the model in this thread and returns without waiting for
  // the model. `place` is the record's name in messages; its last word is the
  // id of a record that has none ("stdin: record 17").
  Pending Start(absl::string_view record,
                const std::string& place = "record 0") const;

  // The official prediction file of records, as `realetc predict` writes it,
  // from predictions of this task.
  std::string FileOf(absl::Span<const RecordPrediction> predictions) const;

  // The task, as in a configuration.
  const std::string& task() const;
  // The directory of the checkpoint that was taken, without links, which move
  // on while a run is still training.
  const std::string& checkpoint() const;
  // Examples that run together.
  int64_t batch_size() const;
  // Longest record, in bytes.
  uint64_t max_record_bytes() const;

 private:
  struct Model;
  explicit Predictor(std::shared_ptr<const Model> model)
      : model_(std::move(model)) {}
  absl::StatusOr<RecordPrediction> PredictAny(const std::any& record) const;
  // Makes the input of the model for a record given as JSON text.
  Pending Prepare(absl::string_view record, const std::string& place) const;
  // Queues records that are not wrong for the model.
  void Submit(absl::Span<const Pending> records) const;

  std::shared_ptr<const Model> model_;
};

}  // namespace etc

#endif  // ETC_TASKS_INFERENCE_PREDICTOR_H_
