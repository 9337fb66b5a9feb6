// ETC restricted to the past (AttentionInputs::Causal): the runs of keys
// against the definition by tensors, and that against loops; that no later
// token changes an earlier output or gets a gradient of it, through three
// layers with carried scores, on each backend; which globals are seen; kernels
// against the reference in float64 (ExpectAsExact), and gradients by central
// differences.

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/global_local_attention.h"
#include "attention/pattern_builders.h"
#include "tests/support/exactness.h"
#include "tests/support/gradient_check.h"
#include "tests/support/random_attention.h"
#include "tests/support/run_masks.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

constexpr int64_t kLong = 23, kGlobal = 6, kRadius = 3, kDistance = 2;

constexpr AttentionImplementation kImplementations[] = {
    AttentionImplementation::kReference, AttentionImplementation::kBlocked,
    AttentionImplementation::kKernel};

AttentionPattern Everything() {
  return UnrestrictedPattern(kLong, kGlobal, kRadius, kDistance);
}

// Globals that see no long token: a prefix.
AttentionPattern Prefix() {
  AttentionPattern pattern = Everything();
  pattern.hard_g2l = true;
  return pattern;
}

// A global token for each four long ones, which it sees.
AttentionPattern Sentences() {
  AttentionPattern pattern = Prefix();
  for (int64_t i = 0; i < kLong; ++i) {
    pattern.sentence[static_cast<size_t>(i)] = static_cast<int32_t>(i / 4);
  }
  return pattern;
}

std::vector<AttentionPattern> AllPatterns() {
  std::vector<AttentionPattern> patterns = {Everything(), Prefix(),
                                            Sentences()};
  std::mt19937_64 random(1);
  for (const bool hard_g2l : {false, true}) {
    for (const bool hard_l2g : {false, true}) {
      for (int i = 0; i < 5; ++i) {
        patterns.push_back(
            RandomMultihopPattern(kLong - i, kGlobal - i % 3,
                                  {.local_radius = kRadius,
                                   .relative_pos_max_distance = kDistance,
                                   .hard_g2l = hard_g2l,
                                   .hard_l2g = hard_l2g},
                                  &random));
      }
    }
  }
  return patterns;
}

TEST(CausalAttentionTest, IsWhatItsDefinitionSays) {
  const std::vector<AttentionPattern> patterns = AllPatterns();
  const auto batch = static_cast<int64_t>(patterns.size());
  const AttentionInputs inputs(patterns);
  const auto tensors = [&](const AttentionInputs& of) {
    return of.Tensors(batch, kLong, kGlobal, kRadius, torch::kCPU);
  };
  const ExplicitInputs all = tensors(inputs);
  const ExplicitInputs past = tensors(inputs.Causal());
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<int64_t> horizons(kGlobal, -1);
    for (int64_t g = 0; g < kGlobal; ++g) {
      for (int64_t i = 0; i < kLong; ++i) {
        if (all.g2l_mask[b][g][i].item<bool>()) {
          horizons[static_cast<size_t>(g)] = i;
        }
      }
    }
    torch::Tensor l2l = all.l2l_mask[b].clone();
    torch::Tensor l2g = all.l2g_mask[b].clone();
    torch::Tensor g2g = all.g2g_mask[b].clone();
    for (int64_t i = 0; i < kLong; ++i) {
      for (int64_t w = kRadius + 1; w < 2 * kRadius + 1; ++w) {
        l2l[i][w] = false;
      }
      for (int64_t g = 0; g < kGlobal; ++g) {
        if (horizons[static_cast<size_t>(g)] > i) {
          l2g[i][g] = false;
        }
      }
    }
    for (int64_t g = 0; g < kGlobal; ++g) {
      for (int64_t k = 0; k < kGlobal; ++k) {
        if (horizons[static_cast<size_t>(k)] >
            horizons[static_cast<size_t>(g)]) {
          g2g[g][k] = false;
        }
      }
    }
    EXPECT_TRUE(past.l2l_mask[b].equal(l2l)) << b;
    EXPECT_TRUE(past.l2g_mask[b].equal(l2g)) << b;
    EXPECT_TRUE(past.g2g_mask[b].equal(g2g)) << b;
    EXPECT_TRUE(past.g2l_mask[b].equal(all.g2l_mask[b])) << b;
  }
  // Given as tensors the same comes out.
  const ExplicitInputs of_tensors = tensors(AttentionInputs(all).Causal());
  EXPECT_TRUE(of_tensors.l2l_mask.equal(past.l2l_mask));
  EXPECT_TRUE(of_tensors.l2g_mask.equal(past.l2g_mask));
  EXPECT_TRUE(of_tensors.g2g_mask.equal(past.g2g_mask));
  EXPECT_TRUE(of_tensors.g2l_mask.equal(past.g2l_mask));
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    ExpectRunsMatchMasks(
        inputs.Causal().Softmax(side, batch, kLong, kGlobal, kRadius));
  }
}

TEST(CausalAttentionTest, PrefixIsSeenByAllAndSummariesByThoseBehindThem) {
  const auto l2g = [](const AttentionPattern& pattern) {
    return AttentionInputs(std::vector{pattern})
        .Causal()
        .Tensors(1, kLong, kGlobal, kRadius, torch::kCPU)
        .l2g_mask[0];
  };
  EXPECT_TRUE(l2g(Prefix()).all().item<bool>());
  const torch::Tensor of_sentences = l2g(Sentences());
  const torch::Tensor of_everything = l2g(Everything());
  for (int64_t i = 0; i < kLong; ++i) {
    for (int64_t g = 0; g < kGlobal; ++g) {
      EXPECT_EQ(of_sentences[i][g].item<bool>(),
                std::min(4 * g + 3, kLong - 1) <= i);
      EXPECT_EQ(of_everything[i][g].item<bool>(), i == kLong - 1);
    }
  }
}

TEST(CausalAttentionTest, IsMadeOnceAndStaysWithADistance) {
  const AttentionInputs inputs = AttentionInputs().Causal();
  EXPECT_EQ(inputs.Softmax(QuerySide::kLong, 1, kLong, kGlobal, kRadius).runs,
            AttentionInputs(inputs)
                .Causal()
                .Softmax(QuerySide::kLong, 1, kLong, kGlobal, kRadius)
                .runs);
  EXPECT_TRUE(inputs.WithDistance(2)
                  .Tensors(1, kLong, kGlobal, kRadius, torch::kCPU)
                  .l2l_mask.equal(
                      inputs.Tensors(1, kLong, kGlobal, kRadius, torch::kCPU)
                          .l2l_mask));
}

GlobalLocalAttention MakeAttention(bool causal) {
  torch::manual_seed(2);
  return GlobalLocalAttention(
      GlobalLocalAttentionOptions{.long_hidden_size = 6,
                                  .global_hidden_size = 6,
                                  .num_heads = 2,
                                  .head_size = 3,
                                  .local_radius = kRadius,
                                  .relative_vocab_size = 8,
                                  .share_qkv_projections = false,
                                  .causal = causal,
                                  .dropout = 0.0,
                                  .initializer_range = 0.5});
}

// The long outputs after three layers that carry scores, [B, L, 6], and the
// outputs and scores of all layers.
torch::Tensor RunLayers(GlobalLocalAttention& attention, torch::Tensor longs,
                        torch::Tensor globals, const AttentionInputs& inputs,
                        std::vector<torch::Tensor>* outputs = nullptr) {
  CarriedScores carried = {.residual = {.mode = ResidualAttention::kSum}};
  for (int layer = 0; layer < 3; ++layer) {
    const GlobalLocalAttentionOutput output =
        attention(longs, globals, inputs, carried);
    longs = longs + output.long_output;
    globals = globals + output.global_output;
    carried.previous = output.scores;
    if (outputs != nullptr) {
      outputs->insert(outputs->end(), {longs, globals});
    }
  }
  return longs;
}

TEST(CausalAttentionTest, NoLaterTokenChangesAnEarlierOutput) {
  GlobalLocalAttention attention = MakeAttention(/*causal=*/true);
  const std::vector<AttentionPattern> patterns = AllPatterns();
  const auto batch = static_cast<int64_t>(patterns.size());
  const torch::Tensor longs = torch::randn({batch, kLong, 6});
  const torch::Tensor globals = torch::randn({batch, kGlobal, 6});
  const torch::NoGradGuard no_grad;
  for (const bool as_tensors : {false, true}) {
    const AttentionInputs inputs =
        as_tensors ? AttentionInputs(Materialize(patterns, kLong, kGlobal))
                   : AttentionInputs(patterns);
    for (const AttentionImplementation implementation : kImplementations) {
      if (as_tensors && implementation == AttentionImplementation::kKernel) {
        continue;  // takes no ids as tensors
      }
      attention->set_implementation(implementation);
      const torch::Tensor before = RunLayers(attention, longs, globals, inputs);
      for (int64_t j = 0; j < kLong; ++j) {
        torch::Tensor changed = longs.clone();
        changed.select(1, j).add_(1.0);
        const torch::Tensor after =
            RunLayers(attention, changed, globals, inputs);
        EXPECT_TRUE(after.narrow(1, 0, j).equal(before.narrow(1, 0, j)))
            << "token " << j;
        EXPECT_FALSE(after.select(1, j).equal(before.select(1, j)));
      }
    }
  }
}

// Without `causal` there is a way from later tokens to earlier ones, within the
// windows and through globals.
TEST(CausalAttentionTest, WithoutItLaterTokensAreSeen) {
  GlobalLocalAttention attention = MakeAttention(/*causal=*/false);
  const AttentionInputs inputs(std::vector{Everything()});
  const torch::Tensor longs = torch::randn({1, kLong, 6});
  const torch::Tensor globals = torch::randn({1, kGlobal, 6});
  torch::Tensor changed = longs.clone();
  changed.select(1, kLong - 1).add_(1.0);
  EXPECT_FALSE(
      RunLayers(attention, changed, globals, inputs)
          .select(1, 0)
          .equal(RunLayers(attention, longs, globals, inputs).select(1, 0)));
}

TEST(CausalAttentionTest, NoGradientGoesToLaterTokens) {
  GlobalLocalAttention attention = MakeAttention(/*causal=*/true);
  const AttentionInputs inputs(AllPatterns());
  const auto batch = static_cast<int64_t>(AllPatterns().size());
  for (const AttentionImplementation implementation : kImplementations) {
    attention->set_implementation(implementation);
    const torch::Tensor longs =
        torch::randn({batch, kLong, 6}).requires_grad_(true);
    const torch::Tensor globals = torch::randn({batch, kGlobal, 6});
    const int64_t i = kLong / 2;
    const torch::Tensor gradient =
        torch::autograd::grad({RunLayers(attention, longs, globals, inputs)
                                   .narrow(1, 0, i + 1)
                                   .sin()
                                   .sum()},
                              {longs})[0];
    EXPECT_TRUE(
        gradient.narrow(1, i + 1, kLong - i - 1).eq(0).all().item<bool>());
    EXPECT_TRUE(gradient.select(1, i).ne(0).all().item<bool>());
  }
}

// Outputs of all layers and the gradients of their sines' sum.
std::vector<torch::Tensor> WithGradients(GlobalLocalAttention& attention,
                                         const torch::Tensor& longs,
                                         const torch::Tensor& globals,
                                         const AttentionInputs& inputs) {
  const torch::Tensor of_long = longs.detach().requires_grad_(true);
  const torch::Tensor of_global = globals.detach().requires_grad_(true);
  std::vector<torch::Tensor> all;
  RunLayers(attention, of_long, of_global, inputs, &all);
  torch::Tensor sum = torch::zeros({}, longs.options());
  for (torch::Tensor& output : all) {
    sum = sum + output.sin().sum();
    output = output.detach();
  }
  const auto gradients = torch::autograd::grad({sum}, {of_long, of_global});
  all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

TEST(CausalAttentionTest, BackendsAgree) {
  GlobalLocalAttention attention = MakeAttention(/*causal=*/true);
  const std::vector<AttentionPattern> patterns = AllPatterns();
  const auto batch = static_cast<int64_t>(patterns.size());
  const AttentionInputs inputs(patterns);
  const torch::Tensor longs = torch::randn({batch, kLong, 6});
  const torch::Tensor globals = torch::randn({batch, kGlobal, 6});
  attention->set_implementation(AttentionImplementation::kReference);
  const auto reference = WithGradients(attention, longs, globals, inputs);
  attention->set_implementation(AttentionImplementation::kKernel);
  const auto kernel = WithGradients(attention, longs, globals, inputs);
  attention->to(torch::kFloat64);
  const torch::Tensor wide_longs = longs.to(torch::kFloat64);
  const torch::Tensor wide_globals = globals.to(torch::kFloat64);
  attention->set_implementation(AttentionImplementation::kReference);
  const auto exact = WithGradients(attention, wide_longs, wide_globals, inputs);
  attention->set_implementation(AttentionImplementation::kBlocked);
  const auto blocked =
      WithGradients(attention, wide_longs, wide_globals, inputs);
  ExpectAsExact(kernel, reference, exact, 3.0, "kernel, tensor");
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_TRUE(IsClose(blocked[i], exact[i], 1e-10)) << "blocked " << i;
  }
}

TEST(CausalAttentionTest, HasTheRightGradients) {
  GlobalLocalAttention attention = MakeAttention(/*causal=*/true);
  attention->to(torch::kFloat64);
  const AttentionInputs inputs(std::vector{Sentences()});
  const torch::Tensor longs =
      torch::randn({1, kLong, 6}, torch::kFloat64).requires_grad_(true);
  const torch::Tensor globals =
      torch::randn({1, kGlobal, 6}, torch::kFloat64).requires_grad_(true);
  std::vector<std::pair<std::string, torch::Tensor>> variables = {
      {"long input", longs}, {"global input", globals}};
  for (const auto& parameter : attention->named_parameters()) {
    variables.emplace_back(parameter.key(), parameter.value());
  }
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference,
        AttentionImplementation::kBlocked}) {
    attention->set_implementation(implementation);
    EXPECT_TRUE(GradientsMatchDifferences(
        [&] {
          std::vector<torch::Tensor> outputs;
          RunLayers(attention, longs, globals, inputs, &outputs);
          torch::Tensor sum = torch::zeros({}, torch::kFloat64);
          for (const torch::Tensor& output : outputs) {
            sum = sum + output.sin().sum() * 0.01;
          }
          return sum;
        },
        variables, /*atol=*/1e-6, /*max_elements=*/6));
  }
}

TEST(CausalAttentionTest, NeedsLongTokens) {
  EXPECT_THROW(GlobalLocalAttention(
                   GlobalLocalAttentionOptions{.has_long_tokens = false,
                                               .share_output_projection = true,
                                               .causal = true}),
               c10::Error);
}

}  // namespace
}  // namespace etc
