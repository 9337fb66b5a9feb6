#include "tasks/openkp/head.h"

#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/initializers.h"
#include "base/to_device.h"
#include "etc/nn/activation.h"
#include "etc/nn/residual_norm.h"
#include "tasks/openkp/task.h"
#include "tasks/openkp/visual_embedding.h"

namespace etc {
namespace {

using OpenkpBatch = BenchmarkBatch<OpenkpExample>;

// W: at least K, so that every n-gram has a place.
int64_t NumWords(const OpenkpBatch& batch) {
  int64_t words = kOpenkpMaxPhraseLength;
  for (const auto& example : batch.examples) {
    words = std::max(words, example->num_words);
  }
  return words;
}

// Marks the places s that have a phrase of n words: [B, K, W] bool, on the CPU.
torch::Tensor NgramMask(const OpenkpBatch& batch) {
  const int64_t words = NumWords(batch);
  torch::Tensor mask =
      torch::zeros({batch.size(), kOpenkpMaxPhraseLength, words}, torch::kBool);
  for (int64_t b = 0; b < batch.size(); ++b) {
    const int64_t of_example = batch.example(b).num_words;
    for (int64_t n = 1; n <= std::min(kOpenkpMaxPhraseLength, of_example);
         ++n) {
      mask[b][n - 1].narrow(0, 0, of_example - n + 1).fill_(true);
    }
  }
  return mask;
}

// Counts the key phrases at each place: [B, K, W].
torch::Tensor LabelCounts(const OpenkpBatch& batch, int64_t words) {
  torch::Tensor counts =
      torch::zeros({batch.size(), kOpenkpMaxPhraseLength, words});
  auto at = counts.accessor<float, 3>();
  for (int64_t b = 0; b < batch.size(); ++b) {
    for (const PhrasePosition& label : batch.example(b).labels) {
      if (label.length <= kOpenkpMaxPhraseLength) {
        at[b][label.length - 1][label.start] += 1;
      }
    }
  }
  return counts;
}

torch::nn::LayerNorm RegisteredNorm(torch::nn::Module* owner,
                                    const std::string& name, int64_t size) {
  return owner->register_module(name,
                                MakeLayerNorm(size, kHeadLayerNormEpsilon));
}

// See MakeOpenkpHead.
class OpenkpHead : public BenchmarkHead<OpenkpExample, OpenkpLogits> {
 public:
  OpenkpHead(const EtcConfig& config, const OpenkpOptions& options)
      : options_(options) {
    const int64_t hidden = config.hidden_size;
    if (options.has_visual_features()) {
      visual_ = register_module("visual",
                                OpenkpVisualEmbedding(config, options.visual));
    }
    word_norm_ = RegisteredNorm(this, "word_norm", hidden);
    for (int64_t n = 1; n <= kOpenkpMaxPhraseLength; ++n) {
      Ngram& ngram = ngrams_.emplace_back();
      const std::string name = absl::StrCat("ngram_", n);
      ngram.weight = register_parameter(absl::StrCat(name, "_weight"),
                                        torch::empty({n, hidden, hidden}));
      ngram.bias = register_parameter(absl::StrCat(name, "_bias"),
                                      torch::zeros({hidden}));
      ngram.norm = RegisteredNorm(this, absl::StrCat(name, "_norm"), hidden);
      ngram.score = register_parameter(absl::StrCat(name, "_score"),
                                       torch::empty({hidden}));
      TruncatedNormal_(ngram.weight, kHeadInitializerRange /
                                         std::sqrt(static_cast<double>(n)));
      TruncatedNormal_(ngram.score, kHeadInitializerRange);
    }
  }

  // The layout of elements, for tokens and globals (doc/openkp.md 5.1).
  EmbeddingAdders Adders(const Batch& batch) override {
    EmbeddingAdders adders;
    if (!visual_) {
      return adders;
    }
    const torch::Tensor elements = visual_(TaskBatch(batch));  // [B, G, H]
    if (options_.use_visual_features_in_long) {
      adders.long_adder = LongFromElements(elements, batch);
    }
    if (options_.use_visual_features_in_global) {
      adders.global_adder = elements;
    }
    return adders;
  }

  ReadTokens Reads() const override { return ReadTokens::kText; }

  Tensors LogitsOf(const EtcOutput& encoded, const TaskBatch& batch) override {
    const torch::Tensor words =  // [B, W, H]
        ApplyLayerNorm(SumsOfWords(encoded.long_output, batch), word_norm_);
    std::vector<torch::Tensor> logits;  // [B, W] each
    for (const Ngram& ngram : ngrams_) {
      const torch::Tensor valid = NgramLogits(ngram, words);
      logits.push_back(torch::constant_pad_nd(
          valid, {0, words.size(1) - valid.size(1)}, kOpenkpNoNgramLogit));
    }
    return {.ngrams = torch::stack(logits, 1).masked_fill(
                ToDevice(NgramMask(batch).logical_not(), words.device()),
                kOpenkpNoNgramLogit)};
  }

  torch::Tensor LossesOf(const Tensors& logits,
                         const TaskBatch& batch) override {
    const int64_t words = NumWords(batch);
    torch::Tensor scores = logits.ngrams;  // [B, K, W], officially [B, K, L]
    ETC_CHECK_SHAPE(scores, {batch.size(), kOpenkpMaxPhraseLength, words});
    torch::Tensor classes = NgramMask(batch);
    torch::Tensor counts = LabelCounts(batch, words);
    if (options_.official_compatibility) {
      const int64_t padding =
          std::max<int64_t>(0, options_.input.max_long_length - words);
      scores =
          torch::constant_pad_nd(scores, {0, padding}, kOpenkpNoNgramLogit);
      counts = torch::constant_pad_nd(counts, {0, padding}, 0);
      classes = torch::ones_like(counts, torch::kBool);
    }
    classes = ToDevice(classes, scores.device());
    counts = ToDevice(counts.to(scores.scalar_type()), scores.device());
    return NgramLosses(
        scores, NgramTargets(counts, classes, options_.additive_smoothing_mass),
        classes);
  }

 private:
  struct Ngram {
    torch::Tensor weight;  // A_n as [n, H, H]: [k, output, input]
    torch::Tensor bias;    // [H]
    torch::nn::LayerNorm norm = nullptr;
    torch::Tensor score;  // u_n: [H]
  };

  // The logits of n-grams of one length: [B, W - n + 1].
  static torch::Tensor NgramLogits(const Ngram& ngram,
                                   const torch::Tensor& words) {
    const int64_t length = ngram.weight.size(0);
    const int64_t places = words.size(1) - length + 1;
    torch::Tensor hidden;  // [B, places, H]
    for (int64_t k = 0; k < length; ++k) {
      const torch::Tensor part = words.narrow(1, k, places);
      hidden = k == 0 ? ApplyLinear(part, ngram.weight[k], ngram.bias)
                      : hidden + ApplyLinear(part, ngram.weight[k]);
    }
    const torch::Tensor normal =
        ApplyLayerNorm(Activate(Activation::kGelu, hidden), ngram.norm);
    return ApplyLinear(normal, ngram.score.unsqueeze(0)).squeeze(-1);
  }

  const OpenkpOptions options_;
  // Null if no input uses visual features.
  OpenkpVisualEmbedding visual_ = nullptr;
  torch::nn::LayerNorm word_norm_ = nullptr;
  std::vector<Ngram> ngrams_;
};

}  // namespace

Openkp::HeadPtr MakeOpenkpHead(const EtcConfig& model,
                               const OpenkpOptions& options) {
  return std::make_shared<OpenkpHead>(model, options);
}

torch::Tensor SumsOfWords(const torch::Tensor& encoded,
                          const OpenkpBatch& batch) {
  const int64_t length = batch.input.token_ids.size(1);
  ETC_CHECK_SHAPE(encoded, {batch.size(), length, encoded.size(2)});
  // Tokens without a word, padding among them, go to a row of their own.
  const int64_t rows = NumWords(batch) + 1;
  std::vector<int64_t> row_of_token;
  for (size_t b = 0; b < batch.examples.size(); ++b) {
    const int64_t first = static_cast<int64_t>(b) * rows;
    for (const int32_t word : batch.examples[b]->long_words) {
      row_of_token.push_back(first + (word < 0 ? rows - 1 : word));
    }
    row_of_token.resize((b + 1) * static_cast<size_t>(length),
                        first + rows - 1);
  }
  const torch::Tensor index =
      ToDevice(torch::tensor(row_of_token, torch::kInt64), encoded.device());
  return torch::zeros({batch.size() * rows, encoded.size(2)}, encoded.options())
      .index_add(0, index, encoded.flatten(0, 1))
      .view({batch.size(), rows, encoded.size(2)})
      .narrow(1, 0, rows - 1);
}

torch::Tensor NgramTargets(const torch::Tensor& counts,
                           const torch::Tensor& classes, double mass) {
  constexpr double kMinimum = 1e-6;
  ETC_CHECK_SHAPE(classes, counts.sizes().vec());
  const std::vector<int64_t> places = {1, 2};
  const torch::Tensor sum = counts.sum(places, /*keepdim=*/true);
  const torch::Tensor num_classes = classes.sum(places, /*keepdim=*/true);
  const torch::Tensor smoothed =
      counts / (sum + kMinimum) +
      classes * std::max(mass, kMinimum) / num_classes;
  return smoothed / smoothed.sum(places, /*keepdim=*/true);
}

torch::Tensor NgramLosses(const torch::Tensor& logits,
                          const torch::Tensor& targets,
                          const torch::Tensor& classes) {
  ETC_CHECK_SHAPE(targets, logits.sizes().vec());
  ETC_CHECK_SHAPE(classes, logits.sizes().vec());
  const torch::Tensor others = classes.logical_not().flatten(1);
  const torch::Tensor log_probabilities =  // [B, K W]
      logits.flatten(1)
          .masked_fill(others, -std::numeric_limits<double>::infinity())
          .log_softmax(-1)
          .masked_fill(others, 0);
  return -(targets.flatten(1) * log_probabilities).sum(-1);
}

}  // namespace etc
