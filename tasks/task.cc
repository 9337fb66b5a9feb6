#include "tasks/task.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/data/record_source.h"

namespace etc {
namespace {

// What the official code adds to the number of examples.
constexpr double kOfficialEpsilon = 1e-5;

}  // namespace

EtcInput EncoderInputOf(const Batch& batch) {
  EtcInput input;
  input.token_ids = batch.long_token_ids;
  input.global_token_ids = batch.global_token_ids;
  input.segment_ids = batch.long_type_ids;
  input.global_segment_ids = batch.global_type_ids;
  input.attention = batch.attention;
  return input;
}

std::vector<torch::Tensor> OutputHead::Run(EtcModel encoder,
                                           const Batch& batch) {
  EtcInput input = EncoderInputOf(batch);
  const EmbeddingAdders adders = Adders(batch);
  input.long_embedding_adder = adders.long_adder;
  input.global_embedding_adder = adders.global_adder;
  return forward(encoder->forward(input), batch);
}

LossTotals OutputHead::Totals(const Examples& examples) const {
  return {static_cast<double>(examples.size())};
}

torch::Tensor OutputHead::Loss(const std::vector<torch::Tensor>& logits,
                               const Batch& batch, const LossTotals& totals) {
  const torch::Tensor losses = Losses(logits, batch);
  TORCH_CHECK(losses.dim() == 1 && losses.size(0) == batch.size(),
              "a head's losses should have shape [", batch.size(),
              "], but have ", losses.sizes());
  return losses.sum() / (totals[0] + kOfficialEpsilon);
}

absl::StatusOr<std::unique_ptr<ExampleSource>> RecordTask::Open(
    const DataRequest& request) const {
  const auto make = [this, use = request.use](
                        const std::string& record,
                        const std::string& where) -> absl::StatusOr<Examples> {
    ETC_ASSIGN_OR_RETURN(Examples examples, MakeExamples(record, where));
    for (const auto& example : examples) {
      if (use == RecordUse::kTraining && !example->has_answer) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, " (", example->record_id,
                         ") has no answer, which training needs"));
      }
    }
    return examples;
  };
  if (const FileReader reader = Reader(); reader != nullptr) {
    ETC_ASSIGN_OR_RETURN(
        std::vector<FileRecord> records,
        ReadAllFiles(request.patterns, reader, request.listener));
    return std::make_unique<FileRecordSource>(std::move(records), make);
  }
  return RecordSource::Open(request.patterns, make, request.listener,
                            {.max_record_bytes = request.max_record_bytes,
                             .max_record_field = "data.max_record_megabytes"});
}

}  // namespace etc
