#include "tasks/nq/predictions.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check_shape.h"
#include "tasks/nq/example_cast.h"
#include "tasks/nq/predictions_file.h"

namespace etc {
namespace {

// What the head says of example `b`. `spans` is [B, 4, L], `types` [B, 5], both
// contiguous and float32.
NqWindow WindowOf(const Batch& batch, const torch::Tensor& spans,
                  const torch::Tensor& types, int64_t b) {
  const auto& example = batch.examples[static_cast<size_t>(b)];
  // The same object, as what it is.
  NqWindow window{.example = {example, &AsNq(*example)}};
  const int64_t length = spans.size(2);
  const float* logits = spans.data_ptr<float>() + b * kNqNumChannels * length;
  for (std::vector<float>& channel : window.ends) {
    channel.assign(logits, logits + length);
    logits += length;
  }
  const float* type = types.data_ptr<float>() + b * kNqNumAnswerTypes;
  std::copy(type, type + kNqNumAnswerTypes, window.answer_type.begin());
  return window;
}

}  // namespace

void NqPredictions::Add(const Batch& batch,
                        const std::vector<torch::Tensor>& logits) {
  TORCH_CHECK(logits.size() == 2, "expected 2 tensors of logits, found ",
              logits.size());
  ETC_CHECK_SHAPE(logits[0],
                  {batch.size(), batch.long_token_ids.size(1), kNqNumChannels});
  ETC_CHECK_SHAPE(logits[1], {batch.size(), kNqNumAnswerTypes});
  const torch::Tensor spans =  // [B, 4, L]
      logits[0].to(torch::kFloat32).transpose(1, 2).contiguous();
  const torch::Tensor types = logits[1].to(torch::kFloat32).contiguous();
  for (int64_t b = 0; b < batch.size(); ++b) {
    NqWindow window = WindowOf(batch, spans, types, b);
    const NqDocument& document = *window.example->document;
    std::vector<NqWindow>& windows = incomplete_[document.example_id];
    const int64_t num_windows = document.num_windows;
    windows.push_back(std::move(window));
    if (static_cast<int64_t>(windows.size()) == num_windows) {
      const auto complete =
          incomplete_.extract(windows.front().example->document->example_id);
      AddDocument(complete.mapped());
    }
  }
}

void NqPredictions::AddDocument(const std::vector<NqWindow>& windows) {
  const NqDocument& document = *windows.front().example->document;
  const NqPrediction prediction = DecodeNqDocument(windows, options_);
  if (!document.annotations.empty()) {
    scorer_.AddGold(document.example_id, document.annotations);
  }
  scorer_.AddPrediction(prediction);
  const auto [found, is_new] =
      index_.emplace(document.example_id, predictions_.size());
  if (is_new) {
    predictions_.push_back(prediction);
  } else {
    predictions_[found->second] = prediction;
  }
}

std::string NqPredictions::FileContents() const {
  return NqPredictionsToJson(predictions_);
}

}  // namespace etc
