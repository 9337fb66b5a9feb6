#ifndef ETC_TASKS_TRANSLATION_MODEL_H_
#define ETC_TASKS_TRANSLATION_MODEL_H_

#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "etc/encoder_decoder/model.h"
#include "etc/weights/checkpoint.h"
#include "tasks/config/config.h"
#include "tasks/data/batch.h"
#include "tasks/data/example_source.h"
#include "tasks/task/task.h"
#include "tasks/train/task_model.h"
#include "tasks/translation/options.h"
#include "tasks/translation/vocabulary.h"

namespace etc {

// The tensors of B sentence pairs of at most S source and T target tokens.
struct TranslationInput {
  torch::Tensor source_ids;   // [B, S] int64, padding on the left
  torch::Tensor decoder_ids;  // [B, T]: the end and the tokens, padding behind
  torch::Tensor targets;      // [B, T]: the tokens and the end, padding behind
};
TranslationInput MakeTranslationInput(const Examples& pairs,
                                      const torch::Device& device);

// Source tokens alone, each with the end: [B, S], padding on the left.
torch::Tensor PadSources(absl::Span<const std::vector<int32_t>> sources,
                         const torch::Device& device);

// An encoder-decoder as training knows it. The loss of an update is that of
// its target tokens (etc/nn/smoothed_loss.h) divided once by their number, ends
// counted (doc/translation.md 4.3). A copy shares the model.
class TranslationModel final : public TrainableModel {
 public:
  TranslationModel(EncoderDecoder model, double smoothing)
      : model_(std::move(model)), smoothing_(smoothing) {}

  // By the names of EncoderDecoder: "encoder.*", "decoder.*", "embedding.*".
  NamedTensors NamedParameters() const override;
  // Examples alone: Forward makes the tensors.
  Batch Collate(Examples examples, const torch::Device& device) const override;
  // Sums of losses, of negative log-likelihoods and of tokens: in training
  // [1, 3], of the batch; in evaluation [B, 3], of each sentence, which do not
  // depend on the batch that it is in but by the rounding of products.
  std::vector<torch::Tensor> Forward(const Batch& batch) override;
  // The number of target tokens.
  LossTotals Totals(const Examples& examples) const override;
  torch::Tensor Loss(const std::vector<torch::Tensor>& logits,
                     const Batch& batch, const LossTotals& totals) override;
  bool is_training() const override { return model_->is_training(); }
  void SetTraining(bool training) override { model_->train(training); }

  // Parameters and buffers, which share memory with the model.
  NamedTensors Tensors() const { return ModuleTensors(*model_); }
  EncoderDecoder model() const { return model_; }

 private:
  EncoderDecoder model_;
  double smoothing_;
};

// A model with random weights from LibTorch's generator for the CPU, on
// `device`, with storage and precision of the configuration.
//   others  errors of ReadAdminOmegas for the file in `options.admin_omegas`
absl::StatusOr<TranslationModel> MakeTranslationModel(
    const RunConfig& config, const TranslationOptions& options,
    const torch::Device& device);

// A checkpoint directory of translation has
//
//   encoder_decoder.json  the model's configuration (EncoderDecoderConfig)
//   model.safetensors     its tensors by its own names
//   run_config.json       the configuration of the run
//   tokenizer.model or dict.txt
//
// and can be moved. `vocabulary` are the contents of the latter.
absl::Status WriteTranslationModel(const RunConfig& config,
                                   const TranslationModel& model,
                                   const std::string& vocabulary,
                                   const std::string& directory);

// Reads encoder_decoder.json.
//   kInvalidArgument  EncoderDecoderConfigFromJson; no vocab_size
// and the errors of reading a file.
absl::StatusOr<EncoderDecoderConfig> ReadEncoderDecoderConfig(
    const std::string& directory);

// Replaces the weights by those in a checkpoint directory, or a file: by the
// names of EncoderDecoder or of fairseq (etc/encoder_decoder/fairseq_names.h).
// The modes of residual attention may be others: gates that the model has no
// use for are left out, and those of a path for which the file has none stay.
//   kInvalidArgument  other tensors are missing, too many or of another shape,
//                     or have an element that is infinite or not a number
absl::Status LoadTranslationWeights(const std::string& path,
                                    const TranslationModel& model);

// The model in the directory of a checkpoint, in evaluation mode.
//   kDataLoss  CheckCheckpointFiles
// and the errors of LoadTranslationWeights.
absl::StatusOr<TranslationModel> LoadTranslationModel(
    const std::string& directory, const RunConfig& config,
    TranslationOptions options, const torch::Device& device);

// The model of a run, and its files; `config`, `options` and `vocabulary` must
// outlive it.
absl::StatusOr<ModelWithFiles> MakeTranslationModelWithFiles(
    const RunConfig& config, const TranslationOptions& options,
    const TranslationVocabulary& vocabulary, const torch::Device& device);

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_MODEL_H_
