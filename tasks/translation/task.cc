#include "tasks/translation/task.h"

#include <c10/util/Exception.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "etc/encoder_decoder/beam_search.h"
#include "etc/encoder_decoder/config.h"
#include "etc/encoder_decoder/config_fields.h"
#include "tasks/config/field_list.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/train/run_plan.h"
#include "tasks/translation/model.h"
#include "tasks/translation/parallel_text.h"
#include "tasks/translation/token_batches.h"

namespace etc {
namespace {

// Losses of a data set, per target token.
class TranslationScores final : public TaskPredictions {
 public:
  void Add(const Batch& /*batch*/,
           const std::vector<torch::Tensor>& logits) override {
    const torch::Tensor rows = logits.front().to(torch::kFloat64).contiguous();
    const auto values = rows.accessor<double, 2>();
    for (int64_t i = 0; i < values.size(0); ++i) {
      loss_ += values[i][0];
      nll_ += values[i][1];
      tokens_ += values[i][2];
    }
  }
  Metrics Score() const override {
    if (tokens_ == 0) {
      return {};
    }
    return {{"loss", loss_ / tokens_},
            {"nll_loss", nll_ / tokens_},
            {"perplexity", std::exp(nll_ / tokens_)}};
  }
  std::string FileContents() const override { return ""; }

 private:
  double loss_ = 0;
  double nll_ = 0;
  double tokens_ = 0;
};

TokenBatchOptions BatchOptionsOf(const TranslationOptions& options) {
  return {.max_tokens = options.max_tokens,
          .max_sentences = options.max_sentences};
}

// Fills vocab_size where the configuration leaves it to the vocabulary.
absl::Status CompleteVocabularySize(RunConfig* config) {
  if (config->encoder_decoder->vocab_size > 0) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const auto vocabulary,
                       LoadTranslationVocabulary(config->tokenizer));
  config->encoder_decoder->vocab_size = vocabulary->size();
  return CheckEncoderDecoderConfig(*config->encoder_decoder,
                                   absl::StrCat(config->source, ": model"));
}

}  // namespace

TranslationTask::TranslationTask(
    const RunConfig& config, TranslationOptions options,
    std::shared_ptr<const TranslationVocabulary> vocabulary)
    : config_(config),
      options_(std::move(options)),
      vocabulary_(std::move(vocabulary)) {}

absl::StatusOr<std::unique_ptr<Task>> TranslationTask::Make(
    const RunConfig& config, std::shared_ptr<const Tokenizer> /*tokenizer*/) {
  ETC_ASSIGN_OR_RETURN(TranslationOptions options,
                       ReadTranslationOptions(config));
  ETC_ASSIGN_OR_RETURN(std::shared_ptr<const TranslationVocabulary> vocabulary,
                       LoadTranslationVocabulary(config.tokenizer));
  const int64_t rows = config.encoder_decoder->vocab_size;
  if (rows < vocabulary->size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.source, ": model.vocab_size should be at least ",
                     vocabulary->size(), ", the ids of ",
                     config.tokenizer.vocabulary, ", but is ", rows));
  }
  ETC_RETURN_IF_ERROR(
      CheckBeamSearchOptions({.beam_size = options.beam_size,
                              .length_penalty = options.length_penalty,
                              .max_length = options.max_length},
                             rows, config.source + ": translation"));
  // The constructor is private: make_unique cannot see it.
  return std::unique_ptr<Task>(
      new TranslationTask(config, std::move(options), std::move(vocabulary)));
}

absl::StatusOr<std::unique_ptr<ExampleSource>> TranslationTask::Open(
    const DataRequest& request) const {
  const EncoderDecoderConfig& model = *config_.encoder_decoder;
  ETC_ASSIGN_OR_RETURN(
      std::unique_ptr<ParallelText> text,
      ParallelText::Open(
          request, *vocabulary_,
          {.max_source_length = model.max_source_positions,
           .max_target_length = model.max_target_positions,
           .max_tokens =
               request.use == RecordUse::kTraining ? options_.max_tokens : 0,
           .on_bad_record = OnBadRecordOf(config_.data)}));
  return text;
}

absl::StatusOr<Notices> TranslationTask::DescribeData(
    const ExampleSource& train, const ExampleSource& dev) const {
  Notices notices;
  for (const ExampleSource* source : {&train, &dev}) {
    if (const auto* text = dynamic_cast<const ParallelText*>(source)) {
      for (const std::string& line : text->descriptions()) {
        notices.messages.push_back(absl::StrCat(
            source == &train ? "training: " : "evaluation: ", line));
      }
      for (std::string& warning : text->Warnings()) {
        notices.warnings.push_back(std::move(warning));
      }
    }
  }
  return notices;
}

std::unique_ptr<TaskPredictions> TranslationTask::MakePredictions() const {
  return std::make_unique<TranslationScores>();
}

std::string TranslationTask::Describe(const Example& example) const {
  const auto& pair = ExampleAs<TranslationExample>(example);
  std::string text;
  for (const auto& [name, ids] :
       {std::pair("source", &pair.source), std::pair("target", &pair.target)}) {
    std::vector<std::string> pieces;
    for (const int32_t id : *ids) {
      pieces.push_back(vocabulary_->Piece(id));
    }
    absl::StrAppend(&text, name, ", ", Counted(pieces.size(), "token"), ": ",
                    absl::StrJoin(pieces, " "), "\n");
  }
  return text;
}

absl::StatusOr<ModelWithFiles> TranslationTask::MakeModel(
    const RunConfig& config, const torch::Device& device) const {
  return MakeTranslationModelWithFiles(config, options_, *vocabulary_, device);
}

absl::StatusOr<std::unique_ptr<TrainableModel>> TranslationTask::LoadModel(
    const std::string& directory, const RunConfig& config,
    const torch::Device& device) const {
  ETC_ASSIGN_OR_RETURN(
      TranslationModel model,
      LoadTranslationModel(directory, config, options_, device));
  return std::make_unique<TranslationModel>(std::move(model));
}

std::unique_ptr<BatchLoader> TranslationTask::MakeLoader(
    const ExampleSource& train, const TrainingLoaderOptions& options,
    LoaderPosition start) const {
  return std::make_unique<TokenBatchLoader>(&train, BatchOptionsOf(options_),
                                            options, start);
}

int64_t TranslationTask::CountUnits(const ExampleSource& train,
                                    int64_t batch_size) const {
  const absl::StatusOr<std::vector<PairLengths>> lengths = LengthsOf(train);
  TORCH_CHECK(lengths.ok(), lengths.status().ToString());
  // Their number does not depend on the order of pairs of equal lengths.
  const auto batches = static_cast<int64_t>(
      MakeTokenBatches(*lengths, BatchOptionsOf(options_), /*seed=*/1).size());
  return (batches + batch_size - 1) / batch_size * batch_size;
}

double TranslationTask::ActivationBytes() const {
  return TranslationActivationBytes(*config_.encoder_decoder, options_);
}

double TranslationActivationBytes(const EncoderDecoderConfig& model,
                                  const TranslationOptions& options) {
  // Numbers that a token leaves for the backward pass: inputs and outputs of
  // products, of norms and dropout; a chunk of the loss.
  constexpr double kLossChunk = 2.0 * 1024;
  const auto hidden = static_cast<double>(model.hidden_size);
  const auto inner = static_cast<double>(model.intermediate_size);
  const double encoder = 9 * hidden + 3 * inner;
  const double decoder = 15 * hidden + 3 * inner;
  return sizeof(float) *
         (static_cast<double>(options.max_tokens) *
              (static_cast<double>(model.num_encoder_layers) * encoder +
               static_cast<double>(model.num_decoder_layers) * decoder +
               6 * hidden) +
          kLossChunk * static_cast<double>(model.vocab_size));
}

std::string TranslationTask::DescribeRuns(const RunConfig& config,
                                          const ExampleSource& train,
                                          const ExampleSource& dev) const {
  const EncoderDecoderConfig& model = *config.encoder_decoder;
  return absl::StrCat(
      Counted(train.size(), "pair"), ", ", dev.size(), " for evaluation; ",
      CountUnits(train, /*batch_size=*/1), " batches of at most ",
      options_.max_tokens, " tokens an epoch, ", config.train.batch_size,
      " an update; residual attention ", model.encoder_residual_attention,
      " (encoder), ", model.decoder_residual_attention, " (decoder), ",
      model.cross_residual_attention, " (cross)");
}

TaskEntry TranslationEntry() {
  return {.name = kTranslationTask,
          .description = "Translation by an encoder-decoder",
          .fields = DescribeTable<TranslationOptions>(kTranslationTask),
          .model_fields = DescribeTable<EncoderDecoderConfig>("model"),
          .make = TranslationTask::Make,
          .complete = CompleteVocabularySize,
          .has_own_model = true};
}

}  // namespace etc
