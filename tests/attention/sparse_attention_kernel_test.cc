// The fused kernels against the float64 reference, forward and backward, over
// three layers through which scores are carried. Yardstick: what the reference
// itself, run in float32, is off; outputs may be off twice that, gradients
// three times, plus 1e-6 of the largest element (sums of other order and
// length). Sizes straddle the vector, the six queries of a group, the 192 of a
// tile, the 384 keys of a chunk, the radius and the window; head sizes 1 to
// 130; none, one and many globals; hard and soft patterns, scattered segments,
// examples shorter than their batch; all residual modes; dropout, whose factors
// the reference is given.
//
// Carried scores are compared where tokens see each other: elsewhere the kernel
// leaves 0.

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "attention/sparse_attention.h"
#include "tests/support/random_attention.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

enum class Borders { kMultihop, kScattered, kNone };

struct Case {
  int64_t longs = 0;
  int64_t globals = 3;
  int64_t radius = 3;
  int64_t head_dim = 8;
  int64_t value_dim = 8;
  int64_t heads = 2;
  int64_t layers = 3;
  ResidualAttention residual = ResidualAttention::kSum;
  Borders borders = Borders::kMultihop;
  bool hard = false;
  int64_t distance = 2;
  double dropout = 0.0;

  std::string Name() const {
    return "L" + std::to_string(longs) + " G" + std::to_string(globals) + " r" +
           std::to_string(radius) + " d" + std::to_string(head_dim) + "/" +
           std::to_string(value_dim) + " residual " +
           std::to_string(static_cast<int>(residual)) + " borders " +
           std::to_string(static_cast<int>(borders)) +
           (hard ? " hard" : " soft") + " m" + std::to_string(distance) +
           " dropout " + std::to_string(dropout);
  }
};

AttentionPattern MakePattern(const Case& c, int64_t longs, int64_t globals,
                             std::mt19937_64* random) {
  const PatternOptions options = {.local_radius = c.radius,
                                  .relative_pos_max_distance = c.distance,
                                  .hard_g2l = c.hard,
                                  .hard_l2g = c.hard};
  if (c.borders == Borders::kNone) {
    return UnrestrictedPattern(longs, globals, c.radius, c.distance);
  }
  AttentionPattern pattern =
      RandomMultihopPattern(longs, globals, options, random);
  if (c.borders == Borders::kScattered) {
    for (int32_t& segment : pattern.long_segment) {
      segment = static_cast<int32_t>((*random)() % 3);
    }
    for (int32_t& example : pattern.long_example) {
      example = static_cast<int32_t>((*random)() % 2);
    }
    for (int32_t& example : pattern.global_example) {
      example = static_cast<int32_t>((*random)() % 3);
    }
    for (int32_t& segment : pattern.global_segment) {
      segment = static_cast<int32_t>((*random)() % 2);
    }
  }
  return pattern;
}

// The second example is shorter than the batch.
AttentionInputs MakeAttention(const Case& c) {
  std::mt19937_64 random(c.longs + 7 * c.globals + 31 * c.radius);
  std::vector<AttentionPattern> patterns;
  patterns.push_back(MakePattern(c, c.longs, c.globals, &random));
  patterns.push_back(
      MakePattern(c, (c.longs + 1) / 2, (c.globals + 1) / 2, &random));
  return AttentionInputs(std::move(patterns));
}

// The layers of one side.
struct Stack {
  Stack(const Case& c, QuerySide side, const AttentionInputs& attention) {
    const int64_t own = side == QuerySide::kLong ? c.longs : c.globals;
    const int64_t other = side == QuerySide::kLong ? c.globals : c.longs;
    // Tokens' heads lie side by side, as projections leave them.
    const auto leaf = [&](int64_t length, int64_t size) {
      return torch::randn({2, length, c.heads, size}).transpose(1, 2);
    };
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      SparseAttentionInput input;
      input.side = side;
      input.query = leaf(own, c.head_dim);
      input.own_key = leaf(own, c.head_dim);
      input.own_value = leaf(own, c.value_dim);
      input.other_key = leaf(other, c.head_dim);
      input.other_value = leaf(other, c.value_dim);
      if (c.distance > 0) {
        input.relative = {
            .embedding =
                torch::randn({2 * c.distance + 5, c.heads, c.head_dim}) * 0.5,
            .bias = torch::randn({2 * c.distance + 5, c.heads})};
      }
      input.attention = &attention;
      input.local_radius = c.radius;
      input.residual = c.residual;
      input.layer = layer;
      input.dropout = c.dropout;
      layers.push_back(input);
    }
  }

  // The same values as new leaves of another type.
  Stack As(torch::ScalarType dtype) const {
    Stack copy = *this;
    for (SparseAttentionInput& input : copy.layers) {
      for (torch::Tensor* tensor : Tensors(&input)) {
        *tensor = tensor->to(dtype).detach().clone().requires_grad_(true);
      }
      for (torch::Tensor* factors :
           {&input.own_dropout_factors, &input.other_dropout_factors}) {
        if (factors->defined()) {
          *factors = factors->to(dtype);
        }
      }
    }
    return copy;
  }

  static std::vector<torch::Tensor*> Tensors(SparseAttentionInput* input) {
    std::vector<torch::Tensor*> all = {&input->query, &input->own_key,
                                       &input->own_value, &input->other_key,
                                       &input->other_value};
    if (input->relative.embedding.defined()) {
      all.push_back(&input->relative.embedding);
      all.push_back(&input->relative.bias);
    }
    return all;
  }

  std::vector<SparseAttentionInput> layers;
};

struct Result {
  std::vector<torch::Tensor> outputs;
  std::vector<torch::Tensor> gradients;
};

// Outputs of all layers, each carrying to the next, scores where they count,
// and the gradients of a scalar in which every output has a part.
Result RunLayers(Stack* stack, AttentionImplementation implementation) {
  Result result;
  std::vector<torch::Tensor> leaves;
  torch::Tensor own, other;
  torch::Tensor scalar = torch::zeros({}, torch::kFloat64);
  const auto add = [&](const torch::Tensor& output) {
    result.outputs.push_back(output.detach());
    const torch::Tensor weights =
        torch::arange(output.numel(), torch::kFloat64)
            .add(static_cast<double>(result.outputs.size()))
            .cos();
    scalar = scalar + (output.reshape(-1).to(torch::kFloat64) * weights).sum();
  };
  for (SparseAttentionInput& layer : stack->layers) {
    for (torch::Tensor* tensor : Stack::Tensors(&layer)) {
      leaves.push_back(*tensor);
    }
    SparseAttentionInput input = layer;
    input.own_previous = own;
    input.other_previous = other;
    const SparseAttentionOutput output = SparseAttention(input, implementation);
    own = output.own_scores;
    other = output.other_scores;
    add(output.context);
    if (own.defined()) {
      const bool is_long = input.side == QuerySide::kLong;
      const int64_t queries = input.query.size(2);
      const int64_t others = input.other_key.size(2);
      const ExplicitInputs masks = input.attention->Tensors(
          2, is_long ? queries : others, is_long ? others : queries,
          input.local_radius, torch::kCPU);
      add(own * (is_long ? masks.l2l_mask : masks.g2g_mask).unsqueeze(1));
      add(other * (is_long ? masks.l2g_mask : masks.g2l_mask).unsqueeze(1));
    }
  }
  result.gradients = torch::autograd::grad({scalar}, leaves, {}, c10::nullopt,
                                           false, /*allow_unused=*/true);
  return result;
}

void ExpectAsExact(const std::vector<torch::Tensor>& actual,
                   const std::vector<torch::Tensor>& reference,
                   const std::vector<torch::Tensor>& exact, double times,
                   const char* what) {
  ASSERT_EQ(actual.size(), exact.size());
  double largest = 0.0;
  for (const torch::Tensor& tensor : exact) {
    if (tensor.defined() && tensor.numel() > 0) {
      largest = std::max(largest, tensor.abs().max().item<double>());
    }
  }
  const double floor = 5e-7 * largest;
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(actual[i].defined(), exact[i].defined()) << what << " " << i;
    if (!exact[i].defined()) {
      continue;
    }
    ASSERT_EQ(actual[i].sizes(), exact[i].sizes()) << what << " " << i;
    EXPECT_LE(MaxError(actual[i], exact[i]),
              times * MaxError(reference[i], exact[i]) + floor)
        << what << " " << i << ", floor " << floor;
  }
}

void ExpectKernelMatches(const Case& c) {
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    SCOPED_TRACE(c.Name() + (side == QuerySide::kLong ? " long" : " global"));
    torch::manual_seed(c.longs * 100 + c.globals);
    const AttentionInputs attention = MakeAttention(c);
    Stack kernel(c, side, attention);
    Stack spelled = kernel;
    torch::manual_seed(17);
    if (c.dropout > 0.0) {
      for (SparseAttentionInput& input : spelled.layers) {
        SpellOutKernelDropout(DrawKernelDropoutSeed(), &input);
      }
    }
    torch::manual_seed(17);
    kernel = kernel.As(torch::kFloat32);
    Stack reference = spelled.As(torch::kFloat32);
    Stack exact = spelled.As(torch::kFloat64);
    const Result a = RunLayers(&kernel, AttentionImplementation::kKernel);
    const Result r = RunLayers(&reference, AttentionImplementation::kReference);
    const Result e = RunLayers(&exact, AttentionImplementation::kReference);
    ExpectAsExact(a.outputs, r.outputs, e.outputs, 2.0, "output");
    ExpectAsExact(a.gradients, r.gradients, e.gradients, 3.0, "gradient");
  }
}

TEST(SparseAttentionKernelTest, MatchesReferenceAtEveryLength) {
  for (const int64_t radius : {1, 2, 5}) {
    for (const int64_t longs :
         {int64_t{1}, radius, radius + 1, 2 * radius, 2 * radius + 1,
          int64_t{6}, int64_t{7}, int64_t{13}, int64_t{47}, int64_t{49}}) {
      ExpectKernelMatches({.longs = longs, .radius = radius});
    }
  }
}

TEST(SparseAttentionKernelTest, MatchesReferenceInEveryMode) {
  for (const int64_t globals : {0, 1, 7}) {
    for (const ResidualAttention residual :
         {ResidualAttention::kOff, ResidualAttention::kSum,
          ResidualAttention::kMean}) {
      for (const bool hard : {false, true}) {
        for (const int64_t distance : {0, 2}) {
          ExpectKernelMatches({.longs = 29,
                               .globals = globals,
                               .residual = residual,
                               .hard = hard,
                               .distance = distance});
        }
      }
    }
  }
}

TEST(SparseAttentionKernelTest, MatchesReferenceAtEveryHeadSize) {
  for (const int64_t head_dim : {1, 3, 15, 16, 17, 32, 48, 64, 65, 128, 130}) {
    ExpectKernelMatches({.longs = 37,
                         .radius = 4,
                         .head_dim = head_dim,
                         .value_dim = head_dim,
                         .layers = 2});
  }
  ExpectKernelMatches({.longs = 37, .head_dim = 5, .value_dim = 20});
  ExpectKernelMatches({.longs = 37, .head_dim = 20, .value_dim = 5});
}

TEST(SparseAttentionKernelTest, MatchesReferenceAcrossTilesAndParts) {
  for (const int64_t longs : {191, 192, 193, 385, 800}) {
    ExpectKernelMatches({.longs = longs,
                         .globals = 50,
                         .radius = 20,
                         .heads = 1,
                         .layers = 2,
                         .borders = Borders::kNone});
  }
  // A window of more keys than a chunk, parts shorter than the radius.
  ExpectKernelMatches({.longs = 900,
                       .globals = 3,
                       .radius = 450,
                       .heads = 1,
                       .layers = 2,
                       .distance = 12});
  // More globals than a tile and a chunk have room for.
  ExpectKernelMatches({.longs = 100,
                       .globals = 400,
                       .radius = 10,
                       .heads = 1,
                       .layers = 2,
                       .hard = true});
}

TEST(SparseAttentionKernelTest, MatchesReferenceWhenSegmentsAreScattered) {
  for (const bool hard : {false, true}) {
    for (const int64_t longs : {10, 60, 210}) {
      ExpectKernelMatches({.longs = longs,
                           .globals = 20,
                           .radius = 9,
                           .layers = 2,
                           .borders = Borders::kScattered,
                           .hard = hard});
    }
  }
}

TEST(SparseAttentionKernelTest, MatchesReferenceUnderTheSameDropout) {
  for (const ResidualAttention residual :
       {ResidualAttention::kOff, ResidualAttention::kSum}) {
    for (const int64_t longs : {40, 250}) {
      ExpectKernelMatches({.longs = longs,
                           .globals = 9,
                           .radius = 12,
                           .layers = 2,
                           .residual = residual,
                           .dropout = 0.3});
    }
  }
}

TEST(SparseAttentionKernelTest, MatchesReferenceOnEveryTarget) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    ExpectKernelMatches({.longs = 75,
                         .globals = 9,
                         .radius = 12,
                         .head_dim = 19,
                         .value_dim = 33,
                         .layers = 2,
                         .dropout = 0.2});
    ExpectKernelMatches({.longs = 61,
                         .radius = 12,
                         .residual = ResidualAttention::kOff,
                         .hard = true});
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(SparseAttentionKernelTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Case c = {.longs = 1300,
                  .globals = 200,
                  .radius = 30,
                  .heads = 3,
                  .layers = 2,
                  .hard = true,
                  .dropout = 0.1};
  const int threads_before = at::get_num_threads();
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    torch::manual_seed(1);
    const AttentionInputs attention = MakeAttention(c);
    const Stack values(c, side, attention);
    Result first;
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      torch::manual_seed(2);
      Stack stack = values.As(torch::kFloat32);
      const Result result = RunLayers(&stack, AttentionImplementation::kKernel);
      if (threads == 1) {
        first = result;
        continue;
      }
      for (size_t i = 0; i < first.outputs.size(); ++i) {
        EXPECT_TRUE(result.outputs[i].equal(first.outputs[i])) << i;
      }
      for (size_t i = 0; i < first.gradients.size(); ++i) {
        EXPECT_TRUE(result.gradients[i].equal(first.gradients[i])) << i;
      }
    }
  }
  at::set_num_threads(threads_before);
}

// A layer of float32 leaves.
struct OneLayer {
  explicit OneLayer(const Case& c) : attention(MakeAttention(c)) {
    torch::manual_seed(4);
    input = Stack(c, QuerySide::kLong, attention).As(torch::kFloat32).layers[0];
  }
  AttentionInputs attention;
  SparseAttentionInput input;
};

TEST(SparseAttentionKernelTest, GivesTheSameWithoutGradients) {
  const OneLayer layer({.longs = 70});
  const SparseAttentionOutput with = KernelSparseAttention(layer.input);
  const torch::NoGradGuard no_grad;
  const SparseAttentionOutput without = KernelSparseAttention(layer.input);
  EXPECT_TRUE(with.context.requires_grad());
  EXPECT_FALSE(without.context.requires_grad());
  EXPECT_TRUE(with.context.equal(without.context));
  EXPECT_TRUE(with.own_scores.equal(without.own_scores));
}

TEST(SparseAttentionKernelTest, PassesOnAGradientOfTheScoresAlone) {
  const OneLayer layer({.longs = 20, .borders = Borders::kNone});
  const torch::Tensor previous =
      torch::zeros({2, 2, 20, 7}).requires_grad_(true);
  SparseAttentionInput input = layer.input;
  input.own_previous = previous;
  input.other_previous = torch::zeros({2, 2, 20, 3}).requires_grad_(true);
  KernelSparseAttention(input).own_scores.sum().backward();
  const torch::Tensor visible =
      input.attention->Tensors(2, 20, 3, 3, torch::kCPU)
          .l2l_mask.unsqueeze(1)
          .expand({2, 2, 20, 7})
          .to(torch::kFloat32);
  EXPECT_TRUE(IsClose(previous.grad(), visible, 0.0));
  EXPECT_EQ(input.other_previous.grad().abs().max().item<float>(), 0.0f);
  EXPECT_EQ(input.own_value.grad().abs().max().item<float>(), 0.0f);
}

TEST(SparseAttentionKernelTest, RefusesGradientsOfGradients) {
  const OneLayer layer({.longs = 9});
  const torch::Tensor sum = KernelSparseAttention(layer.input).context.sum();
  EXPECT_THROW(torch::autograd::grad({sum}, {layer.input.query}, {},
                                     /*retain_graph=*/true,
                                     /*create_graph=*/true),
               c10::Error);
}

TEST(SparseAttentionKernelTest, RejectsWhatItDoesNotServe) {
  const OneLayer layer({.longs = 9});
  SparseAttentionInput bad = layer.input;
  bad.query = bad.query.to(torch::kFloat64);
  EXPECT_THROW(SparseAttention(bad, AttentionImplementation::kKernel),
               c10::Error);
  bad = layer.input;
  const AttentionInputs tensors(SpellOut(*layer.attention.patterns(), 9, 3));
  bad.attention = &tensors;
  EXPECT_THROW(SparseAttention(bad, AttentionImplementation::kKernel),
               c10::Error);
  EXPECT_NO_THROW(SparseAttention(bad));
  bad = layer.input;
  bad.relative = {};
  EXPECT_THROW(SparseAttention(bad, AttentionImplementation::kKernel),
               c10::Error);
  bad = layer.input;
  bad.relative.embedding = bad.relative.embedding.narrow(0, 0, 7);
  bad.relative.bias = bad.relative.bias.narrow(0, 0, 7);
  EXPECT_THROW(SparseAttention(bad, AttentionImplementation::kKernel),
               c10::Error);
  bad = layer.input;
  bad.dropout = 1.0;
  EXPECT_THROW(SparseAttention(bad, AttentionImplementation::kKernel),
               c10::Error);
}

TEST(SparseAttentionKernelTest, LetsNotANumberThrough) {
  const OneLayer layer({.longs = 40, .borders = Borders::kNone});
  const torch::NoGradGuard no_grad;
  layer.input.own_key[0][1][20] = std::numeric_limits<float>::quiet_NaN();
  const torch::Tensor context = KernelSparseAttention(layer.input).context;
  EXPECT_TRUE(context[0][1].narrow(0, 17, 7).isnan().all().item<bool>());
  EXPECT_FALSE(context[0][1].narrow(0, 0, 17).isnan().any().item<bool>());
  EXPECT_FALSE(context[0][0].isnan().any().item<bool>());
}

}  // namespace
}  // namespace etc
