#include "tasks/openkp/visual_embedding.h"

#include <c10/util/Exception.h>

#include <vector>

#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/initializers.h"
#include "base/to_device.h"
#include "etc/nn/activation.h"

namespace etc {

OpenkpVisualEmbeddingImpl::OpenkpVisualEmbeddingImpl(
    const EtcConfig& config, const OpenkpVisualEmbeddingOptions& options)
    : features_(options.features) {
  TORCH_CHECK(
      options.extra_dense_layers == 0 || options.extra_dense_layers == 1,
      "extra_dense_layers should be 0 or 1, but is ",
      options.extra_dense_layers);
  const int64_t hidden = config.hidden_size;
  const auto table = [hidden](int64_t rows) {
    return EmbeddingTable(rows, hidden, /*projection_size=*/0,
                          kHeadInitializerRange);
  };
  cross_ = register_module("cross", table(features_.CrossVocabulary()));
  font_ = register_module("font", table(kOpenkpFontVocabulary));
  parent_font_ = register_module("parent_font", table(kOpenkpFontVocabulary));
  dense_ = register_module("dense", MakeLinear(features_.DenseSize(), hidden,
                                               kHeadInitializerRange));
  if (options.extra_dense_layers == 1) {
    extra_dense_ = register_module(
        "extra_dense", MakeLinear(hidden, hidden, kHeadInitializerRange));
  }
}

torch::Tensor OpenkpVisualEmbeddingImpl::forward(
    const BenchmarkBatch<OpenkpExample>& batch) {
  const int64_t length = batch.input.global_token_ids.size(1);
  std::vector<int64_t> ids[3];  // cross, font, parent's font
  std::vector<float> numbers;
  for (const auto& example : batch.examples) {
    std::vector<OpenkpElement> elements = example->elements;
    TORCH_CHECK(!elements.empty(), "document ", example->record_id,
                " has no elements, so it has no visual features");
    elements.resize(static_cast<size_t>(length));
    for (const OpenkpElement& element : elements) {
      ids[0].push_back(CrossId(element, features_));
      ids[1].push_back(FontId(element.node.font_size));
      ids[2].push_back(FontId(element.parent.font_size));
      const std::vector<float> dense = DenseFeatures(element, features_);
      numbers.insert(numbers.end(), dense.begin(), dense.end());
    }
  }
  const torch::Device device = dense_->weight.device();
  const auto rows = [&](const std::vector<int64_t>& values) {
    return ToDevice(
        torch::tensor(values, torch::kInt64).view({batch.size(), length}),
        device);
  };
  const torch::Tensor features =  // [B, G, D]
      ToDevice(torch::tensor(numbers)
                   .view({batch.size(), length, features_.DenseSize()})
                   .to(dense_->weight.scalar_type()),
               device);
  torch::Tensor hidden =
      Activate(Activation::kGelu, ApplyLinear(features, dense_));
  if (extra_dense_) {
    hidden = Activate(Activation::kGelu, ApplyLinear(hidden, extra_dense_));
  }
  return hidden + cross_(rows(ids[0])) + font_(rows(ids[1])) +
         parent_font_(rows(ids[2]));
}

torch::Tensor LongFromElements(const torch::Tensor& elements,
                               const Batch& batch) {
  const int64_t length = batch.input.token_ids.size(1);
  const int64_t num_elements = elements.size(1);
  ETC_CHECK_SHAPE(elements, {batch.size(), num_elements, elements.size(2)});
  std::vector<int64_t> rows;  // of `elements` with its first two axes joined
  for (size_t b = 0; b < batch.examples.size(); ++b) {
    const int64_t first = static_cast<int64_t>(b) * num_elements;
    for (const int32_t element : batch.examples[b]->pattern.sentence) {
      rows.push_back(first + element);
    }
    rows.resize((b + 1) * static_cast<size_t>(length), first);
  }
  return elements.flatten(0, 1)
      .index_select(
          0, ToDevice(torch::tensor(rows, torch::kInt64), elements.device()))
      .view({batch.size(), length, elements.size(2)});
}

}  // namespace etc
