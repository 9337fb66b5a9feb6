// The module: torch::nn::MultiheadAttention with the same weights, forward and
// every gradient, 1e-6 in float32 and 1e-12 in float64, self and cross
// attention, with padding and causal; residual scores against sums written out
// in float64; kernels against the reference in float64 (ExpectAsExact),
// gradients by central differences; copies, files, moves, and its name; errors.

#include "attention/multi_head_attention.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/serialize.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "attention/pattern.h"
#include "base/bfloat16.h"
#include "base/linear.h"
#include "tests/support/attention_case.h"
#include "tests/support/error_message.h"
#include "tests/support/exactness.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

constexpr int64_t kHidden = 12, kHeads = 3, kBatch = 2, kQueries = 7, kKeys = 9;

constexpr AttentionImplementation kImplementations[] = {
    AttentionImplementation::kReference, AttentionImplementation::kBlocked,
    AttentionImplementation::kKernel};

MultiHeadAttentionOptions SmallOptions() {
  return {.hidden_size = kHidden,
          .num_heads = kHeads,
          .head_size = 4,
          .dropout = 0.0,
          .initializer_range = 0.3};
}

// Biases that are not zero.
MultiHeadAttention Make(const MultiHeadAttentionOptions& options) {
  MultiHeadAttention attention(options);
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : attention->parameters()) {
    if (parameter.dim() == 1 || parameter.size(1) == options.num_heads) {
      parameter.normal_(0.0, 0.3);
    }
  }
  return attention;
}

// torch's module with the weights of ours, which are then leaves of its own.
class Torch {
 public:
  Torch(const MultiHeadAttention& ours,
        const MultiHeadAttentionOptions& options)
      : module_(torch::nn::MultiheadAttentionOptions(options.hidden_size,
                                                     options.num_heads)
                    .kdim(options.key_size > 0 ? options.key_size
                                               : options.hidden_size)
                    .vdim(options.value_size > 0 ? options.value_size
                                                 : options.hidden_size)) {
    const auto p = ours->named_parameters();
    module_->to(p["query.weight"].scalar_type());
    const torch::NoGradGuard no_grad;
    const auto weights = [&] {
      return std::vector<torch::Tensor>{p["query.weight"], p["key.weight"],
                                        p["value.weight"]};
    };
    if (module_->in_proj_weight.defined()) {
      module_->in_proj_weight.copy_(torch::cat(weights()));
    } else {
      module_->q_proj_weight.copy_(p["query.weight"]);
      module_->k_proj_weight.copy_(p["key.weight"]);
      module_->v_proj_weight.copy_(p["value.weight"]);
    }
    module_->in_proj_bias.copy_(
        torch::cat({p["query.bias"], p["key.bias"], p["value.bias"]}));
    module_->out_proj->weight.copy_(p["output.weight"]);
    module_->out_proj->bias.copy_(p["output.bias"]);
  }

  // Batch first. True in the first mask: not allowed; the second is added to
  // scores.
  torch::Tensor Run(const torch::Tensor& query, const torch::Tensor& key,
                    const torch::Tensor& value,
                    const torch::Tensor& key_padding_mask,
                    const torch::Tensor& attn_mask) {
    return std::get<0>(module_->forward(query.transpose(0, 1),
                                        key.transpose(0, 1),
                                        value.transpose(0, 1), key_padding_mask,
                                        /*need_weights=*/false, attn_mask))
        .transpose(0, 1);
  }

  // In the order of ours: weights and biases of query, key, value, output.
  std::vector<torch::Tensor> Gradients() const {
    const bool together = module_->in_proj_weight.defined();
    const std::vector<torch::Tensor> weights =
        together ? module_->in_proj_weight.grad().chunk(3)
                 : std::vector<torch::Tensor>{module_->q_proj_weight.grad(),
                                              module_->k_proj_weight.grad(),
                                              module_->v_proj_weight.grad()};
    const auto biases = module_->in_proj_bias.grad().chunk(3);
    return {weights[0],
            biases[0],
            weights[1],
            biases[1],
            weights[2],
            biases[2],
            module_->out_proj->weight.grad(),
            module_->out_proj->bias.grad()};
  }

 private:
  torch::nn::MultiheadAttention module_;
};

struct Sources {
  torch::Tensor query, key, value;

  std::vector<torch::Tensor> Gradients() const {
    return {query.grad(), key.grad(), value.grad()};
  }
};

struct TorchCase {
  MultiHeadAttentionOptions options;
  bool self = false;    // one source for all three
  bool causal = false;  // and some keys are padding
};

void ExpectLikeTorch(const TorchCase& c, torch::ScalarType dtype,
                     AttentionImplementation implementation, double atol) {
  torch::manual_seed(1);
  MultiHeadAttention ours = Make(c.options);
  ours->to(dtype);
  ours->set_implementation(implementation);
  Torch theirs(ours, c.options);
  const int64_t keys = c.self ? kQueries : kKeys;
  const auto& o = ours->options();
  const auto sources = [&] {
    torch::manual_seed(2);
    const auto leaf = [&](int64_t length, int64_t size) {
      return torch::randn({kBatch, length, size})
          .to(dtype)
          .requires_grad_(true);
    };
    Sources all;
    all.query = leaf(kQueries, o.hidden_size);
    all.key = c.self ? all.query : leaf(keys, o.key_size);
    all.value = c.self ? all.query : leaf(keys, o.value_size);
    return all;
  };
  SoftmaxPattern pattern;
  torch::Tensor padding, later;
  if (c.causal) {
    torch::Tensor tokens = torch::ones({kBatch, keys}, torch::kBool);
    tokens[1].narrow(0, 3, 2).fill_(false);
    padding = tokens.logical_not();
    // torch's C++ module adds this one to scores, whatever its type.
    later = torch::full({kQueries, keys},
                        -std::numeric_limits<double>::infinity(), dtype)
                .triu(1);
    pattern = OnlyKeys(
        CausalPattern({.queries = kQueries, .keys = keys, .batch = kBatch}),
        tokens);
  }
  const Sources a = sources();
  const Sources b = sources();
  const torch::Tensor actual = ours(a.query, a.key, a.value, pattern).output;
  const torch::Tensor expected =
      theirs.Run(b.query, b.key, b.value, padding, later);
  EXPECT_TRUE(IsClose(actual, expected, atol));
  const torch::Tensor weights =
      torch::arange(actual.numel()).cos().view(actual.sizes()).to(dtype) * 0.1;
  (actual * weights).sum().backward();
  (expected * weights).sum().backward();
  std::vector<torch::Tensor> of_ours = a.Gradients();
  for (const char* name : {"query", "key", "value", "output"}) {
    for (const char* kind : {".weight", ".bias"}) {
      of_ours.push_back(
          ours->named_parameters()[std::string(name) + kind].grad());
    }
  }
  std::vector<torch::Tensor> of_theirs = b.Gradients();
  const auto more = theirs.Gradients();
  of_theirs.insert(of_theirs.end(), more.begin(), more.end());
  for (size_t i = 0; i < of_ours.size(); ++i) {
    EXPECT_TRUE(IsClose(of_ours[i], of_theirs[i], atol)) << "gradient " << i;
  }
}

TEST(MultiHeadAttentionTest, IsTorchsWithTheSameWeights) {
  MultiHeadAttentionOptions other_sizes = SmallOptions();
  // torch's C++ module takes no keys and values of different sizes.
  other_sizes.key_size = other_sizes.value_size = 5;
  for (const TorchCase& c :
       {TorchCase{.options = SmallOptions(), .self = true},
        TorchCase{.options = SmallOptions(), .self = true, .causal = true},
        TorchCase{.options = SmallOptions()},
        TorchCase{.options = SmallOptions(), .causal = true},
        TorchCase{.options = other_sizes}}) {
    for (const AttentionImplementation implementation : kImplementations) {
      SCOPED_TRACE(std::string(c.self ? "self" : "cross") +
                   (c.causal ? ", causal" : "") + ", implementation " +
                   std::to_string(static_cast<int>(implementation)));
      ExpectLikeTorch(c, torch::kFloat32, implementation, 1e-6);
      if (implementation != AttentionImplementation::kKernel) {
        ExpectLikeTorch(c, torch::kFloat64, implementation, 1e-12);
      }
    }
  }
}

// Outputs of three layers that carry scores, in which each token of the first
// source sees those of the second.
std::vector<torch::Tensor> RunLayers(MultiHeadAttention& attention,
                                     ResidualAttention mode,
                                     ScoreStorage storage, torch::Tensor query,
                                     const torch::Tensor& key,
                                     const SoftmaxPattern& pattern) {
  std::vector<torch::Tensor> outputs;
  CarriedKeyScores carried = {.residual = {.mode = mode, .storage = storage}};
  for (int layer = 0; layer < 3; ++layer) {
    const MultiHeadAttentionOutput output =
        attention(query, key, key, pattern, carried);
    query = query + output.output;
    outputs.push_back(query);
    carried.previous = output.scores;
  }
  return outputs;
}

TEST(MultiHeadAttentionTest, CarriesSumsOfScores) {
  torch::manual_seed(3);
  MultiHeadAttention attention = Make(SmallOptions());
  attention->to(torch::kFloat64);
  const auto p = attention->named_parameters();
  const torch::Tensor start =
      torch::randn({kBatch, kQueries, kHidden}, torch::kFloat64);
  const torch::Tensor key =
      torch::randn({kBatch, kKeys, kHidden}, torch::kFloat64);
  const auto linear = [&](const char* name, const torch::Tensor& x) {
    return torch::linear(x, p[std::string(name) + ".weight"],
                         p[std::string(name) + ".bias"]);
  };
  const auto heads = [&](const char* name, const torch::Tensor& x) {
    return linear(name, x)
        .reshape({kBatch, x.size(1), kHeads, 4})
        .transpose(1, 2);
  };
  for (const auto mode : {ResidualAttention::kOff, ResidualAttention::kSum,
                          ResidualAttention::kMean}) {
    const std::vector<torch::Tensor> actual = RunLayers(
        attention, mode, ScoreStorage::kStore, start, key, SoftmaxPattern());
    torch::Tensor query = start;
    torch::Tensor sum = torch::zeros({}, torch::kFloat64);
    for (int layer = 0; layer < 3; ++layer) {
      const torch::Tensor scores =
          heads("query", query).matmul(heads("key", key).transpose(2, 3)) / 2.0;
      sum = mode == ResidualAttention::kOff ? scores : sum + scores;
      const double divisor = mode == ResidualAttention::kMean ? layer + 1 : 1;
      const torch::Tensor context =
          torch::softmax(sum / divisor, -1).matmul(heads("value", key));
      query = query + linear("output", context.transpose(1, 2).reshape(
                                           {kBatch, kQueries, kHidden}));
      EXPECT_TRUE(IsClose(actual[static_cast<size_t>(layer)], query, 1e-12));
    }
  }
}

// Outputs of three layers, and the gradients of their sines' sum in the sources
// and all parameters.
std::vector<torch::Tensor> WithGradients(MultiHeadAttention& attention,
                                         ResidualAttention mode,
                                         ScoreStorage storage,
                                         const torch::Tensor& query,
                                         const torch::Tensor& key,
                                         const SoftmaxPattern& pattern) {
  std::vector<torch::Tensor> leaves = {query.detach().requires_grad_(true),
                                       key.detach().requires_grad_(true)};
  std::vector<torch::Tensor> all =
      RunLayers(attention, mode, storage, leaves[0], leaves[1], pattern);
  torch::Tensor sum = torch::zeros({}, query.options());
  for (torch::Tensor& output : all) {
    sum = sum + output.sin().sum();
    output = output.detach();
  }
  for (const torch::Tensor& parameter : attention->parameters()) {
    leaves.push_back(parameter);
  }
  const auto gradients = torch::autograd::grad({sum}, leaves);
  all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

// Every backend over a window; where there are as many keys as queries its
// scores are a band.
void ExpectBackendsAgree(int64_t keys) {
  MultiHeadAttentionOptions options = SmallOptions();
  options.relative_pos_max_distance = 2;
  for (const auto mode : kEveryResidualAttention) {
    SCOPED_TRACE(static_cast<int>(mode));
    if (mode == ResidualAttention::kGate) {
      options.residual_gate_init = 0.5;
    }
    torch::manual_seed(4);
    const SoftmaxPattern pattern =
        WindowPattern({.queries = kQueries,
                       .keys = keys,
                       .lengths = {{kQueries, keys}, {5, 4}},
                       .max_distance = 2},
                      {.before = 3, .after = 1});
    EXPECT_EQ(pattern.own_keys, keys == kQueries ? keys : 0);
    MultiHeadAttention attention = Make(options);
    const torch::Tensor query = torch::randn({kBatch, kQueries, kHidden});
    const torch::Tensor key = torch::randn({kBatch, keys, kHidden});
    const auto run = [&](AttentionImplementation implementation,
                         ScoreStorage storage) {
      attention->set_implementation(implementation);
      const auto dtype = attention->parameters()[0].scalar_type();
      return WithGradients(attention, mode, storage, query.to(dtype),
                           key.to(dtype), pattern);
    };
    const auto reference =
        run(AttentionImplementation::kReference, ScoreStorage::kStore);
    std::vector<std::vector<torch::Tensor>> kernels;
    for (const ScoreStorage storage :
         {ScoreStorage::kStore, ScoreStorage::kReverse,
          ScoreStorage::kRecompute}) {
      kernels.push_back(run(AttentionImplementation::kKernel, storage));
    }
    attention->to(torch::kFloat64);
    const auto exact =
        run(AttentionImplementation::kReference, ScoreStorage::kStore);
    const auto blocked =
        run(AttentionImplementation::kBlocked, ScoreStorage::kStore);
    for (const auto& kernel : kernels) {
      ExpectAsExact(kernel, reference, exact, 3.0, "kernel, tensor");
    }
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_TRUE(IsClose(blocked[i], exact[i], 1e-10)) << "blocked " << i;
    }
  }
}

TEST(MultiHeadAttentionTest, BackendsAgree) {
  ExpectBackendsAgree(kKeys);
  ExpectBackendsAgree(kQueries);
}

// Queries may see fewer keys than in the layer below, and no others, whose
// scores the kernels did not compute.
TEST(MultiHeadAttentionTest, CarriesScoresToQueriesThatSeeFewerKeys) {
  torch::manual_seed(8);
  MultiHeadAttention attention = Make(SmallOptions());
  const torch::Tensor tokens = torch::randn({kBatch, kKeys, kHidden});
  const KeyPatternOptions sizes = {
      .queries = kKeys, .keys = kKeys, .batch = kBatch};
  const SoftmaxPattern everything = AllKeysPattern(sizes);
  const SoftmaxPattern causal = CausalPattern(sizes);
  const SoftmaxPattern some = OnlyKeys(
      causal,
      torch::arange(kBatch * kKeys).view({kBatch, kKeys}).remainder(3).ne(1));
  const auto run = [&](const std::vector<SoftmaxPattern>& patterns) {
    torch::Tensor stream = tokens.clone().requires_grad_(true);
    const torch::Tensor leaf = stream;
    CarriedKeyScores carried = {
        .residual = {.mode = ResidualAttention::kSum,
                     .storage = ScoreStorage::kReverse}};
    for (const SoftmaxPattern& pattern : patterns) {
      const MultiHeadAttentionOutput output =
          attention(stream, stream, stream, pattern, carried);
      stream = stream + output.output;
      carried.previous = output.scores;
    }
    const torch::Tensor gradient =
        torch::autograd::grad({stream.sin().sum()}, {leaf})[0];
    return std::vector<torch::Tensor>{stream.detach(), gradient};
  };
  attention->set_implementation(AttentionImplementation::kReference);
  const auto expected = run({everything, causal, some});
  for (const AttentionImplementation implementation : kImplementations) {
    SCOPED_TRACE(static_cast<int>(implementation));
    attention->set_implementation(implementation);
    const auto actual = run({everything, causal, some});
    EXPECT_TRUE(IsClose(actual[0], expected[0], 1e-4));
    EXPECT_TRUE(IsClose(actual[1], expected[1], 1e-4));
    // Made anew for a layer, the same keys.
    EXPECT_NO_THROW(run({causal, CausalPattern(sizes)}));
    EXPECT_THAT(MessageOf([&] {
                  run({causal, everything});
                }),
                testing::HasSubstr("query 0 of example 0 did not"));
    EXPECT_THAT(MessageOf([&] {
                  run({everything, some, causal});
                }),
                testing::HasSubstr("carried scores should be of a layer in "
                                   "which each query saw all keys"));
    // As many columns of scores, of other keys.
    EXPECT_THAT(MessageOf([&] {
                  run({WindowPattern(sizes, {.before = 1, .after = 1}),
                       WindowPattern(sizes, {.before = 2, .after = 0})});
                }),
                testing::HasSubstr("should be of the same window"));
  }
}

// The stream behind a layer for each pattern, which carry their scores.
torch::Tensor StreamBehind(MultiHeadAttention& attention, torch::Tensor stream,
                           const std::vector<SoftmaxPattern>& patterns) {
  CarriedKeyScores carried = {.residual = {.mode = ResidualAttention::kSum}};
  for (const SoftmaxPattern& pattern : patterns) {
    const MultiHeadAttentionOutput output =
        attention(stream, stream, stream, pattern, carried);
    stream = stream + output.output;
    carried.previous = output.scores;
  }
  return stream;
}

// A pattern without runs goes to tensor operations, which compute the scores of
// all pairs, but find only the kernels' from below.
TEST(MultiHeadAttentionTest, ComparesDensePatternsWithTheKeysSeenBelow) {
  torch::manual_seed(9);
  MultiHeadAttention attention = Make(SmallOptions());
  const torch::Tensor tokens = torch::randn({kBatch, kKeys, kHidden});
  const KeyPatternOptions sizes = {
      .queries = kKeys, .keys = kKeys, .batch = kBatch};
  const SoftmaxPattern causal = CausalPattern(sizes);
  const torch::Tensor past =
      torch::ones({kBatch, kKeys, kKeys}, torch::kBool).tril();
  const torch::Tensor some =
      past.logical_and(torch::arange(kKeys).remainder(3).ne(1));
  torch::Tensor one_more = some.clone();
  one_more[1][4][5] = true;
  const auto dense = [&](const torch::Tensor& mask) {
    return DensePattern(mask, sizes);
  };
  const auto run = [&](const std::vector<SoftmaxPattern>& patterns) {
    return StreamBehind(attention, tokens, patterns);
  };
  const std::vector<SoftmaxPattern> fewer = {causal, dense(past), dense(some),
                                             causal};
  attention->set_implementation(AttentionImplementation::kReference);
  const torch::Tensor expected = run(fewer);
  attention->set_implementation(AttentionImplementation::kAuto);
  EXPECT_TRUE(IsClose(run(fewer), expected, 1e-4));
  // Scores of all pairs.
  EXPECT_NO_THROW(run({dense(some), dense(past), AllKeysPattern(sizes)}));
  const auto expect_refused = [&](const std::vector<SoftmaxPattern>& patterns,
                                  const char* where) {
    EXPECT_THAT(MessageOf([&] { run(patterns); }),
                testing::HasSubstr(where + std::string(" did not")));
  };
  expect_refused({causal, dense(torch::ones_like(past))},
                 "query 0 of example 0");
  expect_refused({causal, dense(one_more)}, "query 4 of example 1");
  expect_refused({causal, dense(some), AllKeysPattern(sizes)},
                 "query 0 of example 0");
  // Made of the pattern below, but other masks.
  const SoftmaxPattern all = dense(torch::ones_like(past));
  const torch::Tensor first_key = torch::arange(kKeys).eq(0);
  expect_refused({causal, OnlyKeys(all, first_key.expand({kBatch, -1})), all},
                 "query 0 of example 0");
  const torch::Tensor last_queries =
      torch::arange(1, kBatch + 1) * kKeys - 1;  // of b * T + i
  expect_refused({causal, OnlyQueries(all, last_queries), all},
                 "query 0 of example 0");
}

// To compare masks they are made once more, and copied to the CPU.
TEST(MultiHeadAttentionTest, ComparesTheMasksOfEqualLayersOnce) {
  MultiHeadAttention attention = Make(SmallOptions());
  const torch::Tensor tokens = torch::randn({kBatch, kKeys, kHidden});
  const KeyPatternOptions sizes = {
      .queries = kKeys, .keys = kKeys, .batch = kBatch};
  SoftmaxPattern dense =
      DensePattern(torch::ones({kKeys, kKeys}, torch::kBool).tril(), sizes);
  int64_t made = 0;
  dense.masks = [masks = dense.masks, &made](const torch::Device& device) {
    ++made;
    return masks(device);
  };
  StreamBehind(attention, tokens, {dense, dense, dense});
  const int64_t without_comparison = std::exchange(made, 0);
  StreamBehind(attention, tokens, {CausalPattern(sizes), dense, dense, dense});
  EXPECT_EQ(made, without_comparison + 1);
}

TEST(MultiHeadAttentionTest, HasTheRightGradients) {
  torch::manual_seed(5);
  MultiHeadAttentionOptions options = SmallOptions();
  options.relative_pos_max_distance = 2;
  options.residual_gate_init = 0.5;
  MultiHeadAttention attention = Make(options);
  attention->to(torch::kFloat64);
  const torch::Tensor query =
      torch::randn({1, 5, kHidden}, torch::kFloat64).requires_grad_(true);
  const torch::Tensor key =
      torch::randn({1, 6, kHidden}, torch::kFloat64).requires_grad_(true);
  const SoftmaxPattern pattern =
      CausalPattern({.queries = 5, .keys = 6, .batch = 1, .max_distance = 2});
  std::vector<std::pair<std::string, torch::Tensor>> variables = {
      {"query", query}, {"key", key}};
  for (const auto& parameter : attention->named_parameters()) {
    variables.emplace_back(parameter.key(), parameter.value());
  }
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference,
        AttentionImplementation::kBlocked}) {
    attention->set_implementation(implementation);
    EXPECT_TRUE(GradientsMatchDifferences(
        [&] {
          torch::Tensor sum = torch::zeros({}, torch::kFloat64);
          for (const torch::Tensor& output :
               RunLayers(attention, ResidualAttention::kGate,
                         ScoreStorage::kStore, query, key, pattern)) {
            sum = sum + output.sin().sum();
          }
          return sum;
        },
        variables, /*atol=*/1e-6, /*max_elements=*/8));
  }
}

TEST(MultiHeadAttentionTest, DropsOnlyInTraining) {
  torch::manual_seed(6);
  MultiHeadAttentionOptions options = SmallOptions();
  options.dropout = 0.5;
  MultiHeadAttention attention = Make(options);
  const torch::Tensor tokens = torch::randn({kBatch, kQueries, kHidden});
  const auto run = [&] { return attention(tokens, tokens, tokens).output; };
  EXPECT_FALSE(run().equal(run()));
  attention->eval();
  EXPECT_TRUE(run().equal(run()));
}

// Each call draws one number: the second call's weights agree too.
TEST(MultiHeadAttentionTest, DropsTheSameWeightsWithEveryImplementation) {
  torch::manual_seed(6);
  MultiHeadAttentionOptions options = SmallOptions();
  options.dropout = 0.5;
  MultiHeadAttention attention = Make(options);
  const torch::Tensor tokens = torch::randn({kBatch, kQueries, kHidden});
  std::vector<torch::Tensor> outputs;
  for (const AttentionImplementation implementation : kImplementations) {
    attention->set_implementation(implementation);
    torch::manual_seed(7);
    const torch::Tensor first = attention(tokens, tokens, tokens).output;
    outputs.push_back(attention(first, first, first).output);
    EXPECT_TRUE(IsClose(outputs.back(), outputs[0], 1e-5));
  }
}

TEST(MultiHeadAttentionTest, IsClonedSavedLoadedMovedAndPrinted) {
  torch::manual_seed(7);
  MultiHeadAttentionOptions options = SmallOptions();
  options.relative_pos_max_distance = 3;
  MultiHeadAttention attention = Make(options);
  attention->eval();
  const torch::Tensor tokens = torch::randn({kBatch, kQueries, kHidden});
  const torch::Tensor expected = attention(tokens, tokens, tokens).output;
  const auto run = [&](MultiHeadAttentionImpl& module) {
    return module.forward(tokens, tokens, tokens).output;
  };

  const auto clone = std::dynamic_pointer_cast<MultiHeadAttentionImpl>(
      attention->clone(torch::Device(torch::kCPU)));
  ASSERT_NE(clone, nullptr);
  EXPECT_FALSE(clone->is_training());
  EXPECT_TRUE(run(*clone).equal(expected));
  {
    const torch::NoGradGuard no_grad;
    clone->parameters()[0].fill_(0.0);
  }
  EXPECT_TRUE(run(*attention).equal(expected));

  std::stringstream file;
  torch::save(attention, file);
  MultiHeadAttention loaded = Make(options);
  torch::load(loaded, file);
  loaded->eval();
  EXPECT_TRUE(run(*loaded).equal(expected));

  attention->to(torch::kFloat64);
  EXPECT_TRUE(
      IsClose(attention(tokens.to(torch::kFloat64), tokens.to(torch::kFloat64),
                        tokens.to(torch::kFloat64))
                  .output,
              expected, 1e-5));

  std::ostringstream text;
  text << attention;
  EXPECT_THAT(text.str(),
              testing::StartsWith(
                  "etc::MultiHeadAttention(hidden_size=12, key_size=12, "
                  "value_size=12, num_heads=3, head_size=4, "
                  "relative_pos_max_distance=3, dropout=0)"));
  EXPECT_THAT(text.str(), testing::HasSubstr("(relative): "));
}

TEST(MultiHeadAttentionTest, IsClonedWithItsPrecision) {
  torch::manual_seed(7);
  MultiHeadAttention attention = Make(SmallOptions());
  const torch::Tensor tokens = torch::randn({kBatch, kQueries, kHidden});
  const auto run = [&](MultiHeadAttentionImpl& module) {
    return module.forward(tokens, tokens, tokens).output;
  };
  const torch::Tensor in_float = run(*attention);
  attention->set_linear_precision(LinearPrecision::kBfloat16);
  const auto clone =
      std::dynamic_pointer_cast<MultiHeadAttentionImpl>(attention->clone());
  ASSERT_NE(clone, nullptr);
  if (kernels::Bfloat16ProductsOfThisCpu() ==
      kernels::Bfloat16Products::kNone) {
    EXPECT_THROW(run(*attention), c10::Error);
    EXPECT_THROW(run(*clone), c10::Error);
    return;
  }
  EXPECT_TRUE(run(*clone).equal(run(*attention)));
  EXPECT_FALSE(run(*clone).equal(in_float));
}

TEST(MultiHeadAttentionTest, AttendsToKeysThatWereProjectedBefore) {
  torch::manual_seed(2);
  MultiHeadAttention attention = Make(SmallOptions());
  const torch::Tensor query = torch::randn({kBatch, kQueries, kHidden});
  const torch::Tensor key = torch::randn({kBatch, kKeys, kHidden});
  const torch::Tensor value = torch::randn({kBatch, kKeys, kHidden});
  const CarriedKeyScores carried = {
      .residual = {.mode = ResidualAttention::kSum}};
  const MultiHeadAttentionOutput whole =
      attention->forward(query, key, value, {}, carried);
  const KeyValueHeads heads = attention->Project(key, value);
  EXPECT_EQ(heads.key.sizes(), (at::IntArrayRef{kBatch, kHeads, kKeys, 4}));
  const MultiHeadAttentionOutput halves =
      attention->Attend(query, heads, {}, carried);
  EXPECT_TRUE(halves.output.equal(whole.output));
  EXPECT_TRUE(halves.scores.sum->equal(*whole.scores.sum));
  // Keys in two parts, as a cache grows.
  const auto part = [&](int64_t begin, int64_t length) {
    return attention->Project(key.narrow(1, begin, length),
                              value.narrow(1, begin, length));
  };
  const KeyValueHeads first = part(0, 4), rest = part(4, kKeys - 4);
  EXPECT_TRUE(IsClose(
      attention
          ->Attend(query, {.key = torch::cat({first.key, rest.key}, 2),
                           .value = torch::cat({first.value, rest.value}, 2)})
          .output,
      attention->forward(query, key, value).output, 1e-6));
  EXPECT_THAT(MessageOf([&] { attention->Attend(query, {}); }),
              testing::HasSubstr("heads.key should be [batch, heads, keys"));
  EXPECT_THAT(
      MessageOf([&] { attention->Attend(query.narrow(0, 0, 1), heads); }),
      testing::HasSubstr("heads.key should be {batch"));
  EXPECT_THAT(
      MessageOf([&] { attention->Project(key, value.narrow(0, 0, 1)); }),
      testing::HasSubstr("value should be {batch, keys"));
}

TEST(MultiHeadAttentionTest, SaysWhatItExpected) {
  const auto make = [](auto change) {
    MultiHeadAttentionOptions options = SmallOptions();
    change(options);
    return MultiHeadAttention(options);
  };
  EXPECT_THROW(make([](auto& o) { o.num_heads = 0; }), c10::Error);
  EXPECT_THROW(make([](auto& o) { o.hidden_size = 0; }), c10::Error);
  EXPECT_THROW(make([](auto& o) { o.dropout = 1.0; }), c10::Error);
  EXPECT_THROW(make([](auto& o) { o.key_size = -1; }), c10::Error);
  for (const int64_t distance : {int64_t{-1}, kMostRelativeDistance + 1,
                                 std::numeric_limits<int64_t>::max() / 2}) {
    EXPECT_THROW(make([&](auto& o) { o.relative_pos_max_distance = distance; }),
                 c10::Error);
  }

  MultiHeadAttention attention = Make(SmallOptions());
  const torch::Tensor query = torch::randn({kBatch, kQueries, kHidden});
  const torch::Tensor key = torch::randn({kBatch, kKeys, kHidden});
  const auto message = [&](const torch::Tensor& q, const torch::Tensor& k,
                           const torch::Tensor& v,
                           const SoftmaxPattern& pattern = {}) {
    return MessageOf([&] { attention(q, k, v, pattern); });
  };
  EXPECT_EQ(message(query, key, key), "nothing was thrown");
  EXPECT_THAT(message(query[0], key, key),
              testing::HasSubstr("query should be [batch, length, features]"));
  EXPECT_THAT(message(query, torch::Tensor(), key),
              testing::HasSubstr("key should be [batch, length, features]"));
  EXPECT_THAT(message(query, key.to(torch::kFloat64), key),
              testing::HasSubstr("key should be Float, as the layer's"));
  EXPECT_THAT(message(query, key.narrow(0, 0, 1), key),
              testing::HasSubstr("key should be {batch, keys"));
  EXPECT_THAT(message(query, key, key.narrow(1, 0, 3)),
              testing::HasSubstr("value should be {batch, keys"));
  const KeyPatternOptions options = {
      .queries = kQueries, .keys = kKeys, .batch = kBatch};
  KeyPatternOptions other = options;
  other.batch = 1;
  EXPECT_THAT(message(query, key, key, CausalPattern(other)),
              testing::HasSubstr("the pattern should be for 2 examples of 7 "
                                 "queries and 9 keys, but is for 1 of 7 and "
                                 "9"));
  other = options;
  other.keys = 8;
  EXPECT_THAT(message(query, key, key, CausalPattern(other)),
              testing::HasSubstr("but is for 2 of 7 and 8"));
  other = options;
  other.max_distance = 4;
  EXPECT_THAT(message(query, key, key, CausalPattern(other)),
              testing::HasSubstr("the max_distance of the pattern should be "
                                 "the layer's relative_pos_max_distance, 0, "
                                 "but is 4"));
  EXPECT_THAT(
      message(query, key, key,
              DensePattern(torch::ones({kBatch, kQueries, kKeys}, torch::kBool),
                           other)),
      testing::HasSubstr("the max_distance of the pattern should be"));
}

}  // namespace
}  // namespace etc
