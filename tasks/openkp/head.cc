#include "tasks/openkp/head.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/initializers.h"
#include "etc/nn/activation.h"
#include "etc/nn/residual_norm.h"
#include "tasks/openkp/example_cast.h"
#include "tasks/openkp/ngram_loss.h"

namespace etc {
namespace {

constexpr double kInitializerRange = 0.02;
constexpr double kLayerNormEpsilon = 1e-12;

// W: at least K, so that every n-gram has a place.
int64_t NumWords(const Batch& batch) {
  int64_t words = kOpenkpMaxPhraseLength;
  for (const auto& example : batch.examples) {
    words = std::max(words, AsOpenkp(*example).num_words);
  }
  return words;
}

// Whether place s has a phrase of n words: [B, K, W] bool, on the CPU.
torch::Tensor NgramMask(const Batch& batch) {
  const int64_t words = NumWords(batch);
  torch::Tensor mask =
      torch::zeros({batch.size(), kOpenkpMaxPhraseLength, words}, torch::kBool);
  for (int64_t b = 0; b < batch.size(); ++b) {
    const int64_t of_example =
        AsOpenkp(*batch.examples[static_cast<size_t>(b)]).num_words;
    for (int64_t n = 1; n <= std::min(kOpenkpMaxPhraseLength, of_example);
         ++n) {
      mask[b][n - 1].narrow(0, 0, of_example - n + 1).fill_(true);
    }
  }
  return mask;
}

// How many key phrases stand at each place: [B, K, W].
torch::Tensor LabelCounts(const Batch& batch, int64_t words) {
  torch::Tensor counts =
      torch::zeros({batch.size(), kOpenkpMaxPhraseLength, words});
  auto at = counts.accessor<float, 3>();
  for (int64_t b = 0; b < batch.size(); ++b) {
    const OpenkpExample& example =
        AsOpenkp(*batch.examples[static_cast<size_t>(b)]);
    TORCH_CHECK(example.has_answer, "document ", example.record_id,
                " has no key phrases, so it has no loss");
    for (const PhrasePosition& label : example.labels) {
      if (label.length <= kOpenkpMaxPhraseLength) {
        at[b][label.length - 1][label.start] += 1;
      }
    }
  }
  return counts;
}

torch::nn::LayerNorm RegisteredNorm(torch::nn::Module* owner,
                                    const std::string& name, int64_t size) {
  return owner->register_module(name, MakeLayerNorm(size, kLayerNormEpsilon));
}

}  // namespace

OpenkpHead::OpenkpHead(const EtcConfig& config,
                       const OpenkpHeadOptions& options)
    : options_(options) {
  const int64_t hidden = config.hidden_size;
  if (options.use_visual_features_in_long ||
      options.use_visual_features_in_global) {
    visual_ = register_module("visual",
                              OpenkpVisualEmbedding(config, options.visual));
  }
  word_norm_ = RegisteredNorm(this, "word_norm", hidden);
  for (int64_t n = 1; n <= kOpenkpMaxPhraseLength; ++n) {
    Ngram& ngram = ngrams_.emplace_back();
    const std::string name = absl::StrCat("ngram_", n);
    ngram.weight = register_parameter(absl::StrCat(name, "_weight"),
                                      torch::empty({n, hidden, hidden}));
    ngram.bias =
        register_parameter(absl::StrCat(name, "_bias"), torch::zeros({hidden}));
    ngram.norm = RegisteredNorm(this, absl::StrCat(name, "_norm"), hidden);
    ngram.score = register_parameter(absl::StrCat(name, "_score"),
                                     torch::empty({hidden}));
    TruncatedNormal_(ngram.weight,
                     kInitializerRange / std::sqrt(static_cast<double>(n)));
    TruncatedNormal_(ngram.score, kInitializerRange);
  }
}

EmbeddingAdders OpenkpHead::Adders(const Batch& batch) {
  EmbeddingAdders adders;
  if (!visual_) {
    return adders;
  }
  const torch::Tensor elements = visual_(batch);  // [B, G, H]
  if (options_.use_visual_features_in_long) {
    adders.long_adder = LongFromElements(elements, batch);
  }
  if (options_.use_visual_features_in_global) {
    adders.global_adder = elements;
  }
  return adders;
}

torch::Tensor OpenkpHead::NgramLogits(const Ngram& ngram,
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

std::vector<torch::Tensor> OpenkpHead::forward(const EtcOutput& encoded,
                                               const Batch& batch) {
  const torch::Tensor words =  // [B, W, H]
      ApplyLayerNorm(SumsOfWords(encoded.long_output, batch), word_norm_);
  std::vector<torch::Tensor> logits;  // [B, W] each
  for (const Ngram& ngram : ngrams_) {
    const torch::Tensor valid = NgramLogits(ngram, words);
    logits.push_back(torch::constant_pad_nd(
        valid, {0, words.size(1) - valid.size(1)}, kOpenkpNoNgramLogit));
  }
  return {torch::stack(logits, 1).masked_fill(
      NgramMask(batch).logical_not().to(words.device()), kOpenkpNoNgramLogit)};
}

torch::Tensor OpenkpHead::Losses(const std::vector<torch::Tensor>& logits,
                                 const Batch& batch) {
  TORCH_CHECK(logits.size() == 1, "expected one tensor of logits, found ",
              logits.size());
  const int64_t words = NumWords(batch);
  ETC_CHECK_SHAPE(logits[0], {batch.size(), kOpenkpMaxPhraseLength, words});
  torch::Tensor scores = logits[0];  // [B, K, W], officially [B, K, L]
  torch::Tensor classes = NgramMask(batch);
  torch::Tensor counts = LabelCounts(batch, words);
  if (options_.official_compatibility) {
    const int64_t padding =
        std::max<int64_t>(0, options_.max_long_length - words);
    scores = torch::constant_pad_nd(scores, {0, padding}, kOpenkpNoNgramLogit);
    counts = torch::constant_pad_nd(counts, {0, padding}, 0);
    classes = torch::ones_like(counts, torch::kBool);
  }
  classes = classes.to(scores.device());
  counts = counts.to(scores.device(), scores.dtype().toScalarType());
  return NgramLosses(
      scores, NgramTargets(counts, classes, options_.additive_smoothing_mass),
      classes);
}

torch::Tensor SumsOfWords(const torch::Tensor& encoded, const Batch& batch) {
  const int64_t length = batch.long_token_ids.size(1);
  ETC_CHECK_SHAPE(encoded, {batch.size(), length, encoded.size(2)});
  // Tokens without a word, padding among them, go to a row of their own.
  const int64_t rows = NumWords(batch) + 1;
  std::vector<int64_t> row_of_token;
  for (size_t b = 0; b < batch.examples.size(); ++b) {
    const int64_t first = static_cast<int64_t>(b) * rows;
    for (const int32_t word : AsOpenkp(*batch.examples[b]).long_words) {
      row_of_token.push_back(first + (word < 0 ? rows - 1 : word));
    }
    row_of_token.resize((b + 1) * static_cast<size_t>(length),
                        first + rows - 1);
  }
  const torch::Tensor index =
      torch::tensor(row_of_token, torch::kInt64).to(encoded.device());
  return torch::zeros({batch.size() * rows, encoded.size(2)}, encoded.options())
      .index_add(0, index, encoded.flatten(0, 1))
      .view({batch.size(), rows, encoded.size(2)})
      .narrow(1, 0, rows - 1);
}

}  // namespace etc
