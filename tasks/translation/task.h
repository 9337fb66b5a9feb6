#ifndef ETC_TASKS_TRANSLATION_TASK_H_
#define ETC_TASKS_TRANSLATION_TASK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/task/task.h"
#include "tasks/task/task_entry.h"
#include "tasks/train/model_task.h"
#include "tasks/translation/options.h"
#include "tasks/translation/vocabulary.h"

namespace etc {

// Translation by an encoder-decoder (doc/translation.md): the field "task" is
// kTranslationTask, "model" has the fields of EncoderDecoderConfig, and
// data.train and data.dev are files of parallel text (ParallelText).
// Evaluations give the loss and the negative log-likelihood in nats per target
// token, and the perplexity exp(nll).
class TranslationTask final : public ModelTask {
 public:
  //   kInvalidArgument  ReadTranslationOptions, LoadTranslationVocabulary; a
  //                     model with fewer rows than the vocabulary has ids; a
  //                     beam of as many hypotheses as the model has rows
  static absl::StatusOr<std::unique_ptr<Task>> Make(
      const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer);

  absl::StatusOr<std::unique_ptr<ExampleSource>> Open(
      const DataRequest& request) const override;
  absl::StatusOr<Notices> DescribeData(const ExampleSource& train,
                                       const ExampleSource& dev) const override;
  std::vector<std::string> OutputSettings() const override {
    return {"tokenizer.type", "tokenizer.vocabulary"};
  }
  std::unique_ptr<TaskPredictions> MakePredictions() const override;
  std::string main_metric() const override { return "loss"; }
  std::string Describe(const Example& example) const override;

  absl::StatusOr<ModelWithFiles> MakeModel(
      const RunConfig& config, const torch::Device& device) const override;
  absl::StatusOr<std::unique_ptr<TrainableModel>> LoadModel(
      const std::string& directory, const RunConfig& config,
      const torch::Device& device) const override;
  std::unique_ptr<BatchLoader> MakeLoader(const ExampleSource& train,
                                          const TrainingLoaderOptions& options,
                                          LoaderPosition start) const override;
  int64_t CountUnits(const ExampleSource& train,
                     int64_t batch_size) const override;
  double ActivationBytes() const override;
  std::string DescribeRuns(const RunConfig& config, const ExampleSource& train,
                           const ExampleSource& dev) const override;

 private:
  TranslationTask(const RunConfig& config, TranslationOptions options,
                  std::shared_ptr<const TranslationVocabulary> vocabulary);

  const RunConfig config_;
  const TranslationOptions options_;
  const std::shared_ptr<const TranslationVocabulary> vocabulary_;
};

// About the memory of a batch's activations in training, in bytes.
double TranslationActivationBytes(const EncoderDecoderConfig& model,
                                  const TranslationOptions& options);

// Its entry, as those of the registry.
TaskEntry TranslationEntry();

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_TASK_H_
