// Attention over one block of keys: dense with padding, causal, and cross
// attention with T < S and T > S, through three layers that carry scores in
// each mode. First the reference, in float64, against a softmax written out
// here (to 1e-12: the same sums in another order), and its gradients against
// central differences. Then the kernels against the float64 reference, forward
// and backward, in each way of storing scores, with dropout (ExpectAsExact: off
// at most twice as much as the reference in float32, gradients three times).
// Sizes straddle the vector, the six queries of a group, the 288 queries of a
// tile, the 384 keys of a chunk and of a part.
//
// Scores are compared where queries see keys: elsewhere they are unspecified.

#include "attention/dot_product_attention.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/attention_stack.h"
#include "tests/support/backend_agreement.h"
#include "tests/support/error_message.h"
#include "tests/support/exactness.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/thread_counts.h"

namespace etc {
namespace {

constexpr int64_t kLayers = 3;

struct Case {
  int64_t queries = 0;
  int64_t keys = 0;
  bool causal = false;
  int64_t heads = 2;
  int64_t head_dim = 8;
  int64_t value_dim = 8;
  ResidualAttention residual = ResidualAttention::kSum;
  int64_t distance = 0;
  double dropout = 0.0;

  std::string Name() const {
    return "T" + std::to_string(queries) + " S" + std::to_string(keys) +
           (causal ? " causal" : "") + " N" + std::to_string(heads) + " d" +
           std::to_string(head_dim) + "/" + std::to_string(value_dim) +
           " residual " + std::to_string(static_cast<int>(residual)) + " m" +
           std::to_string(distance) + " dropout " + std::to_string(dropout);
  }

  // The second example is shorter than the batch.
  std::vector<SequenceLengths> Lengths() const {
    return {{queries, keys}, {(queries + 1) / 2, (2 * keys + 2) / 3}};
  }

  // The keys that a query sees, without the pattern: [batch, 1, query, key].
  torch::Tensor VisibleKeys() const {
    const torch::Tensor query = torch::arange(queries).unsqueeze(1);
    const torch::Tensor key = torch::arange(keys);
    std::vector<torch::Tensor> examples;
    for (const SequenceLengths& length : Lengths()) {
      const torch::Tensor inside =
          (query < length.queries).logical_and(key < length.keys);
      examples.push_back(causal ? inside.logical_and(key <= query) : inside);
    }
    return torch::stack(examples).unsqueeze(1);
  }

  SoftmaxPattern Pattern() const {
    const KeyPatternOptions options = {.queries = queries,
                                       .keys = keys,
                                       .lengths = Lengths(),
                                       .max_distance = distance};
    return causal ? CausalPattern(options) : AllKeysPattern(options);
  }
};

// Layers of leaves.
class Stack {
 public:
  Stack(const Case& c, torch::ScalarType dtype) {
    torch::manual_seed(c.queries * 1000 + c.keys);
    const SoftmaxPattern pattern = c.Pattern();
    // Heads of a token lie side by side, as projections leave them.
    const auto tokens = [&](int64_t length, int64_t size) {
      return torch::randn({2, length, c.heads, size}).transpose(1, 2);
    };
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      DotProductAttentionInput input;
      input.query = tokens(c.queries, c.head_dim);
      input.key = tokens(c.keys, c.head_dim);
      input.value = tokens(c.keys, c.value_dim);
      if (c.distance > 0) {
        const int64_t ids = 2 * c.distance + 4;
        input.relative = {
            .embedding = torch::randn({ids, c.heads, c.head_dim}) * 0.5,
            .bias = torch::randn({ids, c.heads})};
      }
      input.pattern = pattern;
      input.residual.mode = c.residual;
      input.residual.decay = 0.6;
      if (c.residual == ResidualAttention::kGate && layer > 0) {
        input.gate = torch::randn({c.heads});
      }
      input.dropout = c.dropout;
      layers_.push_back(input);
    }
    for (DotProductAttentionInput& input : layers_) {
      for (torch::Tensor* tensor : Tensors(&input)) {
        *tensor = tensor->to(dtype).detach().clone().requires_grad_(true);
      }
    }
  }

  std::vector<DotProductAttentionOutput> Run(
      AttentionImplementation implementation,
      ScoreStorage storage = ScoreStorage::kStore) const {
    std::vector<DotProductAttentionOutput> outputs;
    DotProductAttentionOutput below;
    for (DotProductAttentionInput input : layers_) {
      input.previous = below.scores;
      input.residual.storage = storage;
      below = DotProductAttention(input, implementation);
      outputs.push_back(below);
    }
    return outputs;
  }

  static std::vector<torch::Tensor*> Tensors(DotProductAttentionInput* input) {
    std::vector<torch::Tensor*> all;
    for (torch::Tensor* tensor :
         {&input->query, &input->key, &input->value, &input->relative.embedding,
          &input->relative.bias, &input->gate}) {
      if (tensor->defined()) {
        all.push_back(tensor);
      }
    }
    return all;
  }

  std::vector<torch::Tensor> Leaves() {
    std::vector<torch::Tensor> leaves;
    for (DotProductAttentionInput& input : layers_) {
      for (torch::Tensor* tensor : Tensors(&input)) {
        leaves.push_back(*tensor);
      }
    }
    return leaves;
  }

  DotProductAttentionInput& layer(size_t i) { return layers_[i]; }

 private:
  std::vector<DotProductAttentionInput> layers_;
};

// Contexts and the scores that count of all layers, and the gradients of a
// scalar in which each has a part. (Taken while layers run, as the next layer
// may overwrite scores.) All runs drop the weights of the same seed.
StackResult RunWithGradients(Stack* stack,
                             AttentionImplementation implementation,
                             ScoreStorage storage = ScoreStorage::kStore) {
  torch::manual_seed(17);
  StackResult result;
  torch::Tensor scalar = torch::zeros({}, torch::kFloat64);
  const auto add = [&](const torch::Tensor& output) {
    result.outputs.push_back(output.detach().clone());
    scalar = scalar + WeightedSum(output, result.outputs.size());
  };
  DotProductAttentionOutput below;
  for (size_t i = 0; i < kLayers; ++i) {
    DotProductAttentionInput input = stack->layer(i);
    input.previous = below.scores;
    input.residual.storage = storage;
    below = DotProductAttention(input, implementation);
    add(below.context);
    if (below.scores.sum.defined()) {
      add(*below.scores.sum *
          input.pattern.masks(torch::kCPU).other_mask.unsqueeze(1));
    }
  }
  result.gradients =
      torch::autograd::grad({scalar}, stack->Leaves(), {}, c10::nullopt, false,
                            /*allow_unused=*/true);
  return result;
}

// a, b and c of ResidualAttention, and the gates of a layer, [N, 1, 1].
struct ResidualFactors {
  double a = 1.0;
  double b = 1.0;
  double c = 1.0;
  torch::Tensor gate = torch::ones({1, 1, 1}, torch::kFloat64);
};

ResidualFactors FactorsOf(const DotProductAttentionInput& input, double layer) {
  switch (input.residual.mode) {
    case ResidualAttention::kOff:
      return {.b = 0.0};
    case ResidualAttention::kSum:
      return {};
    case ResidualAttention::kMean:
      return {.a = 1.0 / (layer + 1.0), .b = 1.0 / (layer + 1.0)};
    case ResidualAttention::kDecay:
      return {.a = 1.0 - input.residual.decay,
              .b = std::pow(input.residual.decay, layer),
              .c = (1.0 - input.residual.decay) *
                   std::pow(input.residual.decay, -layer)};
    case ResidualAttention::kGate:
      break;
  }
  return input.gate.defined()
             ? ResidualFactors{.gate = input.gate.view({-1, 1, 1})}
             : ResidualFactors();
}

// softmax(a s_n + b S_{n-1}) V with s_n = Q K^T / sqrt(d) and S_n = S_{n-1} + c
// s_n, written out.
std::vector<torch::Tensor> PlainContexts(const Case& c, Stack* stack) {
  std::vector<torch::Tensor> contexts;
  torch::Tensor carried = torch::zeros({}, torch::kFloat64);
  const torch::Tensor mask = c.VisibleKeys();
  for (size_t i = 0; i < kLayers; ++i) {
    const DotProductAttentionInput& input = stack->layer(i);
    const torch::Tensor scores =
        input.query.matmul(input.key.transpose(-2, -1)) /
        std::sqrt(static_cast<double>(c.head_dim));
    const ResidualFactors factors = FactorsOf(input, static_cast<double>(i));
    const torch::Tensor exponentials =
        (factors.a * scores + factors.b * factors.gate * carried)
            .exp()
            .masked_fill(mask.logical_not(), 0.0);
    carried = carried + factors.c * scores;
    const torch::Tensor totals = exponentials.sum(-1, /*keepdim=*/true);
    contexts.push_back(exponentials.div(totals.masked_fill(totals.eq(0.0), 1.0))
                           .matmul(input.value));
  }
  return contexts;
}

std::vector<Case> SmallCases() {
  std::vector<Case> cases;
  for (const auto& [queries, keys] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {7, 7}, {5, 9}, {9, 5}, {4, 0}}) {
    for (const bool causal : {false, true}) {
      for (const ResidualAttention residual : kEveryResidualAttention) {
        // With one key gates have no gradient but for rounding.
        if (residual == ResidualAttention::kGate && keys == 1) {
          continue;
        }
        cases.push_back({.queries = queries,
                         .keys = keys,
                         .causal = causal,
                         .head_dim = 3,
                         .value_dim = 4,
                         .residual = residual});
      }
    }
  }
  return cases;
}

TEST(DotProductAttentionTest, ReferenceIsASoftmaxOverVisibleKeys) {
  for (const Case& c : SmallCases()) {
    SCOPED_TRACE(c.Name());
    Stack stack(c, torch::kFloat64);
    const std::vector<torch::Tensor> expected = PlainContexts(c, &stack);
    for (const AttentionImplementation implementation :
         {AttentionImplementation::kReference,
          AttentionImplementation::kBlocked, AttentionImplementation::kAuto}) {
      const auto outputs = stack.Run(implementation);
      for (size_t i = 0; i < kLayers; ++i) {
        EXPECT_TRUE(IsClose(outputs[i].context, expected[i], 1e-12)) << i;
      }
    }
  }
}

TEST(DotProductAttentionTest, ReferenceHasTheRightGradients) {
  for (const auto& [queries, keys] :
       std::vector<std::pair<int64_t, int64_t>>{{5, 5}, {3, 6}, {6, 3}}) {
    for (const bool causal : {false, true}) {
      const Case c = {.queries = queries,
                      .keys = keys,
                      .causal = causal,
                      .head_dim = 3,
                      .value_dim = 4,
                      .residual = causal ? ResidualAttention::kGate
                                         : ResidualAttention::kMean,
                      .distance = 2};
      SCOPED_TRACE(c.Name());
      Stack stack(c, torch::kFloat64);
      for (size_t i = 0; i < kLayers; ++i) {
        // Elements of contiguous leaves are changed one at a time.
        for (torch::Tensor* tensor : Stack::Tensors(&stack.layer(i))) {
          *tensor = tensor->detach().contiguous().requires_grad_(true);
        }
      }
      std::vector<std::pair<std::string, torch::Tensor>> variables;
      for (const torch::Tensor& leaf : stack.Leaves()) {
        variables.emplace_back("leaf " + std::to_string(variables.size()),
                               leaf);
      }
      EXPECT_TRUE(GradientsMatchDifferences(
          [&] {
            torch::Tensor sum = torch::zeros({}, torch::kFloat64);
            for (const DotProductAttentionOutput& output :
                 stack.Run(AttentionImplementation::kReference)) {
              sum = sum + output.context.sin().sum() +
                    output.scores.sum->sin().sum() * 0.1;
            }
            return sum;
          },
          variables, /*atol=*/1e-7, /*max_elements=*/12));
    }
  }
}

void ExpectKernelMatches(const Case& c) {
  SCOPED_TRACE(c.Name());
  const bool compared = IsCompared(c.Pattern());
  StackResult r;
  StackResult e;
  if (compared) {
    Stack reference(c, torch::kFloat32);
    Stack exact(c, torch::kFloat64);
    r = RunWithGradients(&reference, AttentionImplementation::kReference);
    e = RunWithGradients(&exact, AttentionImplementation::kReference);
  }
  for (const ScoreStorage storage :
       {ScoreStorage::kStore, ScoreStorage::kReverse,
        ScoreStorage::kRecompute}) {
    SCOPED_TRACE("storage " + std::to_string(static_cast<int>(storage)));
    Stack kernel(c, torch::kFloat32);
    const StackResult a =
        RunWithGradients(&kernel, AttentionImplementation::kKernel, storage);
    if (compared) {
      ExpectAsExact(a.outputs, r.outputs, e.outputs, 2.0, "output");
      ExpectAsExact(a.gradients, r.gradients, e.gradients, 3.0, "gradient");
    } else {
      ExpectFinite(a);
    }
    if (c.residual == ResidualAttention::kOff) {
      break;
    }
  }
}

TEST(DotProductAttentionTest, KernelMatchesReferenceInEveryMode) {
  for (Case c : SmallCases()) {
    for (const int64_t distance : {0, 2}) {
      c.distance = distance;
      ExpectKernelMatches(c);
    }
  }
}

TEST(DotProductAttentionTest, KernelMatchesReferenceAcrossTilesAndParts) {
  for (const auto& [queries, keys] :
       std::vector<std::pair<int64_t, int64_t>>{{49, 50},
                                                {13, 400},
                                                {400, 13},
                                                {289, 289},
                                                {100, 900},
                                                {800, 390}}) {
    for (const bool causal : {false, true}) {
      ExpectKernelMatches({.queries = queries,
                           .keys = keys,
                           .causal = causal,
                           .heads = 1,
                           .head_dim = 17,
                           .value_dim = 16});
    }
  }
  ExpectKernelMatches(
      {.queries = 400, .keys = 850, .heads = 1, .distance = 40});
  ExpectKernelMatches({.queries = 400,
                       .keys = 850,
                       .heads = 2,
                       .residual = ResidualAttention::kGate,
                       .distance = 5});
}

TEST(DotProductAttentionTest, KernelMatchesReferenceUnderTheSameDropout) {
  for (const ResidualAttention residual : kEveryResidualAttention) {
    for (const bool causal : {false, true}) {
      ExpectKernelMatches({.queries = 60,
                           .keys = 45,
                           .causal = causal,
                           .residual = residual,
                           .dropout = 0.3});
    }
  }
}

TEST(DotProductAttentionTest, KernelGivesTheSameBitsOnAnyNumberOfThreads) {
  for (const bool causal : {false, true}) {
    for (const ScoreStorage storage :
         {ScoreStorage::kStore, ScoreStorage::kReverse}) {
      const Case c = {.queries = 310,
                      .keys = 800,
                      .causal = causal,
                      .heads = 3,
                      .distance = 5,
                      .dropout = 0.1};
      SCOPED_TRACE(c.Name());
      ExpectSameOnAnyNumberOfThreads([&] {
        Stack stack(c, torch::kFloat32);
        return RunWithGradients(&stack, AttentionImplementation::kKernel,
                                storage)
            .Tensors();
      });
    }
  }
}

TEST(DotProductAttentionTest, LayersShareOneBuffer) {
  const Case c = {.queries = 20, .keys = 30};
  Stack stack(c, torch::kFloat32);
  const auto outputs =
      stack.Run(AttentionImplementation::kKernel, ScoreStorage::kReverse);
  EXPECT_EQ(outputs[0].scores.sum.live().buffer,
            outputs[2].scores.sum.live().buffer);
  EXPECT_EQ(outputs[2].scores.sum.live().layers, 3);
  // The first layer's scores are overwritten.
  DotProductAttentionInput again = stack.layer(1);
  again.previous = outputs[0].scores;
  again.residual.storage = ScoreStorage::kReverse;
  EXPECT_THROW(DotProductAttention(again), c10::Error);
}

TEST(DotProductAttentionTest, TakesBfloat16) {
  const Case c = {.queries = 20, .keys = 30};
  Stack narrow(c, torch::kBFloat16);
  Stack wide(c, torch::kFloat32);
  for (size_t i = 0; i < kLayers; ++i) {
    const std::vector<torch::Tensor*> from = Stack::Tensors(&narrow.layer(i));
    const std::vector<torch::Tensor*> to = Stack::Tensors(&wide.layer(i));
    for (size_t t = 0; t < from.size(); ++t) {
      *to[t] = from[t]->detach().to(torch::kFloat32);
    }
    wide.layer(i).precision = LinearPrecision::kBfloat16;
  }
  const auto outputs = narrow.Run(AttentionImplementation::kKernel);
  const auto expected = wide.Run(AttentionImplementation::kKernel);
  for (size_t i = 0; i < kLayers; ++i) {
    EXPECT_TRUE(
        outputs[i].context.equal(expected[i].context.to(torch::kBFloat16)));
    EXPECT_TRUE(outputs[i].scores.sum->equal(expected[i].scores.sum));
  }
}

// Rows that overlap, as those of unfold(), of which a gradient is the sum.
TEST(DotProductAttentionTest, HasTheGradientsOfRowsThatOverlap) {
  const torch::Tensor key = torch::randn({1, 1, 3, 8});
  std::vector<torch::Tensor> gradients;
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference,
        AttentionImplementation::kKernel}) {
    torch::manual_seed(3);
    const torch::Tensor source = torch::randn({1, 1, 10}).requires_grad_(true);
    const DotProductAttentionOutput output = DotProductAttention(
        {.query = source.unfold(2, 8, 1),
         .key = key,
         .value = key,
         .pattern = AllKeysPattern({.queries = 3, .keys = 3, .batch = 1})},
        implementation);
    gradients.push_back(
        torch::autograd::grad({output.context.sin().sum()}, {source})[0]);
  }
  EXPECT_TRUE(IsClose(gradients[1], gradients[0], 1e-5));
}

TEST(DotProductAttentionTest, RejectsWhatDoesNotFit) {
  const Case c = {.queries = 5, .keys = 7, .distance = 2};
  const DotProductAttentionInput good = Stack(c, torch::kFloat32).layer(0);
  EXPECT_NO_THROW(DotProductAttention(good));
  DotProductAttentionInput bad = good;
  bad.pattern = {};
  EXPECT_THROW(DotProductAttention(bad), c10::Error);
  bad = good;
  bad.key = bad.key.narrow(2, 0, 6);
  EXPECT_THROW(DotProductAttention(bad), c10::Error);
  bad.value = bad.value.narrow(2, 0, 6);  // the pattern says 7
  EXPECT_THROW(DotProductAttention(bad), c10::Error);
  bad = good;
  bad.value = torch::Tensor();
  EXPECT_THROW(DotProductAttention(bad), c10::Error);
  bad = good;
  bad.relative = {};
  EXPECT_THROW(DotProductAttention(bad), c10::Error);
  bad = good;
  bad.previous = {.sum = torch::zeros({2, 2, 5, 6}), .layers = 1};
  EXPECT_THROW(DotProductAttention(bad), c10::Error);  // 7 keys
  bad.previous = {.sum = torch::zeros({2, 2, 5, 7})};
  EXPECT_THROW(DotProductAttention(bad), c10::Error);  // of how many layers?
  bad.previous = {.layers = 1};
  EXPECT_THROW(DotProductAttention(bad), c10::Error);
  bad.previous = {.sum = torch::zeros({2, 2, 5, 7}), .layers = 1};
  EXPECT_NO_THROW(DotProductAttention(bad));
  bad.residual.mode = ResidualAttention::kOff;
  EXPECT_THROW(DotProductAttention(bad), c10::Error);
  bad = good;
  bad.query = bad.query.to(torch::kFloat64);
  EXPECT_THROW(DotProductAttention(bad, AttentionImplementation::kKernel),
               c10::Error);
}

// By the names that the caller knows.
TEST(DotProductAttentionTest, SaysWhatItExpected) {
  const Case c = {.queries = 5, .keys = 7, .distance = 2};
  const DotProductAttentionInput good = Stack(c, torch::kFloat32).layer(0);
  const auto message = [&](const auto& change) {
    DotProductAttentionInput bad = good;
    change(bad);
    return MessageOf([&] { DotProductAttention(bad); });
  };
  using Input = DotProductAttentionInput;
  EXPECT_THAT(message([](Input& i) { i.key = i.key.narrow(1, 0, 1); }),
              testing::StartsWith("key should be {batch, heads, keys, head_dim}"
                                  " = [2, 2, 7, 8], but is [2, 1, 7, 8]"));
  EXPECT_THAT(message([](Input& i) { i.value = i.value.narrow(2, 0, 6); }),
              testing::StartsWith("value should be {batch, heads, keys, "
                                  "value_dim} = [2, 2, 7, 8], but is [2, 2, 6, "
                                  "8]"));
  EXPECT_THAT(message([](Input& i) {
                i.pattern = AllKeysPattern(
                    {.queries = 5, .keys = 10, .batch = 2, .max_distance = 2});
              }),
              testing::StartsWith("the pattern should be for 2 examples of 5 "
                                  "queries and 7 keys, but is for 2 of 5 and "
                                  "10"));
}

TEST(DotProductAttentionTest, RefusesARelativeTableThatNothingReads) {
  const Case c = {.queries = 5, .keys = 7, .distance = 2};
  DotProductAttentionInput input = Stack(c, torch::kFloat32).layer(0);
  const SoftmaxPattern with_ids = input.pattern;
  for (const SoftmaxPattern& without :
       {AllKeysPattern({.queries = 5, .keys = 7, .batch = 2}),
        DensePattern(torch::ones({5, 7}, torch::kBool),
                     {.queries = 5, .keys = 7, .batch = 2})}) {
    input.pattern = without;
    EXPECT_THAT(MessageOf([&] { DotProductAttention(input); }),
                testing::HasSubstr("max_distance is 0"));
  }
  input.pattern = with_ids;
  input.relative.embedding = torch::Tensor();
  EXPECT_THAT(MessageOf([&] { DotProductAttention(input); }),
              testing::HasSubstr("should both be defined, or neither"));
}

}  // namespace
}  // namespace etc
