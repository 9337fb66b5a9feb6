// Storage of residual scores between layers: in tensors of each layer, or in
// one buffer that the backward pass runs backwards or fills anew. Run for each
// fused backend. Proves that all three give the same results
// (every_backend_test.cc compares each with the reference), also where the
// backward pass skips layers, where lower layers are frozen, and where the sum
// begins with scores from elsewhere; that there is only one buffer; and that
// unsupported uses are refused.

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attention/global_local_attention.h"
#include "attention/sparse_attention.h"
#include "tests/support/attention_stack.h"
#include "tests/support/error_message.h"
#include "tests/support/implementation_names.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/thread_counts.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

constexpr ScoreStorage kBuffered[] = {ScoreStorage::kReverse,
                                      ScoreStorage::kRecompute};

AttentionCase SomeLayers(int64_t layers, bool causal = false) {
  return {.longs = 250,
          .globals = 20,
          .radius = 9,
          .head_dim = 16,
          .value_dim = 16,
          .layers = layers,
          .hard = true,
          .causal = causal,
          .dropout = 0.1};
}

// Layers with inputs of their own, which carry scores upwards.
class Layers {
 public:
  Layers(const AttentionCase& c, AttentionImplementation implementation)
      : implementation_(implementation),
        attention_(MakeAttention(c)),
        stack_(AttentionStack(c, QuerySide::kLong, attention_)
                   .As(torch::kFloat32)) {}

  SparseAttentionInput& input(int64_t layer) { return stack_.layers[layer]; }
  // Computes the layers from now on.
  void set_implementation(AttentionImplementation implementation) {
    implementation_ = implementation;
  }
  int64_t size() const { return static_cast<int64_t>(stack_.layers.size()); }

  // Contexts of layers [begin, end), of which the first takes `below`.
  std::vector<SparseAttentionOutput> Run(ScoreStorage storage, int64_t begin,
                                         int64_t end,
                                         SparseAttentionOutput below = {}) {
    std::vector<SparseAttentionOutput> outputs;
    for (int64_t layer = begin; layer < end; ++layer) {
      below = RunOne(storage, layer, below);
      outputs.push_back(below);
    }
    return outputs;
  }

  SparseAttentionOutput RunOne(ScoreStorage storage, int64_t layer,
                               const SparseAttentionOutput& below) {
    SparseAttentionInput input = stack_.layers[layer];
    input.previous = below.scores;
    input.residual.storage = storage;
    return SparseAttention(input, implementation_);
  }

  std::vector<torch::Tensor> Leaves() {
    std::vector<torch::Tensor> leaves;
    for (SparseAttentionInput& input : stack_.layers) {
      for (torch::Tensor* tensor : AttentionStack::Tensors(&input)) {
        leaves.push_back(*tensor);
      }
    }
    return leaves;
  }

 private:
  AttentionImplementation implementation_;
  AttentionInputs attention_;
  AttentionStack stack_;
};

class ScoreStorageTest
    : public testing::TestWithParam<AttentionImplementation> {};

INSTANTIATE_TEST_SUITE_P(FusedBackends, ScoreStorageTest,
                         testing::Values(AttentionImplementation::kBlocked,
                                         AttentionImplementation::kKernel),
                         ImplementationName);

torch::Tensor Scalar(const torch::Tensor& tensor) {
  return (tensor.reshape(-1) * torch::arange(tensor.numel()).cos()).sum();
}

std::vector<torch::Tensor> Gradients(const torch::Tensor& scalar,
                                     const std::vector<torch::Tensor>& leaves,
                                     bool retain_graph = false) {
  return torch::autograd::grad({scalar}, leaves, {}, retain_graph, false,
                               /*allow_unused=*/true);
}

// kReverse: up to rounding.
void ExpectSame(ScoreStorage storage, const std::vector<torch::Tensor>& actual,
                const std::vector<torch::Tensor>& stored) {
  ASSERT_EQ(actual.size(), stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    ASSERT_EQ(actual[i].defined(), stored[i].defined()) << i;
    if (!stored[i].defined()) {
      continue;
    }
    if (storage == ScoreStorage::kReverse) {
      EXPECT_TRUE(IsClose(actual[i], stored[i], 2e-5)) << i;
    } else {
      EXPECT_TRUE(actual[i].equal(stored[i])) << i;
    }
  }
}

TEST_P(ScoreStorageTest, AllWaysGiveTheSame) {
  for (const ResidualAttention residual :
       {ResidualAttention::kSum, ResidualAttention::kDecay,
        ResidualAttention::kGate}) {
    using Run = std::pair<QuerySide, bool>;
    for (const auto& [side, causal] :
         {Run{QuerySide::kLong, false}, Run{QuerySide::kLong, true},
          Run{QuerySide::kGlobal, false}}) {
      AttentionCase c = SomeLayers(5, causal);
      c.residual = residual;
      SCOPED_TRACE(c.Name());
      torch::manual_seed(1);
      const AttentionInputs attention = MakeAttention(c);
      const AttentionStack values(c, side, attention);
      const auto run = [&](ScoreStorage storage) {
        AttentionStack stack = values.As(torch::kFloat32);
        torch::manual_seed(2);
        return RunLayers(&stack, GetParam(), storage);
      };
      const StackResult stored = run(ScoreStorage::kStore);
      for (const ScoreStorage storage : kBuffered) {
        const StackResult result = run(storage);
        for (size_t i = 0; i < stored.outputs.size(); ++i) {
          EXPECT_TRUE(result.outputs[i].equal(stored.outputs[i])) << i;
        }
        ExpectSame(storage, result.gradients, stored.gradients);
      }
    }
  }
}

TEST_P(ScoreStorageTest, DriftsByRoundingOnlyOver24Layers) {
  AttentionCase c = SomeLayers(24);
  c.longs = 60;
  torch::manual_seed(1);
  const AttentionInputs attention = MakeAttention(c);
  const AttentionStack values(c, QuerySide::kLong, attention);
  std::vector<torch::Tensor> gradients[2];
  for (const ScoreStorage storage :
       {ScoreStorage::kStore, ScoreStorage::kReverse}) {
    AttentionStack stack = values.As(torch::kFloat32);
    torch::manual_seed(2);
    gradients[storage == ScoreStorage::kReverse] =
        RunLayers(&stack, GetParam(), storage).gradients;
  }
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    const double largest = gradients[0][i].abs().max().item<double>();
    EXPECT_TRUE(IsClose(gradients[1][i], gradients[0][i], 2e-5 * largest)) << i;
  }
}

TEST_P(ScoreStorageTest, LayersShareOneBuffer) {
  const AttentionCase c = SomeLayers(4);
  for (const bool gradients : {false, true}) {
    const torch::AutoGradMode mode(gradients);
    for (const ScoreStorage storage : kBuffered) {
      Layers layers(c, GetParam());
      std::set<void*> addresses;
      SparseAttentionOutput output;
      for (int64_t layer = 0; layer < layers.size(); ++layer) {
        output = layers.RunOne(storage, layer, output);
        addresses.insert(output.scores.own->data_ptr());
        addresses.insert(output.scores.other->data_ptr());
      }
      EXPECT_EQ(addresses.size(), 2u);
    }
  }
}

// A task that reads the long stream only leaves out the global side of the last
// layers.
TEST_P(ScoreStorageTest, BackwardMaySkipTheUppermostLayers) {
  Layers layers(SomeLayers(5), GetParam());
  const std::vector<torch::Tensor> leaves = layers.Leaves();
  const auto gradients = [&](ScoreStorage storage) {
    torch::manual_seed(2);
    const auto outputs = layers.Run(storage, 0, 5);
    return Gradients(Scalar(outputs[0].context) + Scalar(outputs[2].context),
                     leaves);
  };
  const auto stored = gradients(ScoreStorage::kStore);
  for (const ScoreStorage storage : kBuffered) {
    ExpectSame(storage, gradients(storage), stored);
  }
}

TEST_P(ScoreStorageTest, LowerLayersMayBeFrozen) {
  Layers layers(SomeLayers(5), GetParam());
  for (const int64_t layer : {0, 1}) {
    for (torch::Tensor* tensor :
         AttentionStack::Tensors(&layers.input(layer))) {
      *tensor = tensor->detach();
    }
  }
  std::vector<torch::Tensor> leaves;
  for (const int64_t layer : {2, 3, 4}) {
    leaves.push_back(layers.input(layer).operands.query);
    leaves.push_back(layers.input(layer).operands.own_key);
  }
  const auto gradients = [&](ScoreStorage storage) {
    torch::manual_seed(2);
    return Gradients(Scalar(layers.Run(storage, 0, 5).back().context), leaves);
  };
  const auto stored = gradients(ScoreStorage::kStore);
  for (const ScoreStorage storage : kBuffered) {
    ExpectSame(storage, gradients(storage), stored);
  }
}

// Gradient checkpointing passes scores without their buffer, and needs them
// once more.
TEST_P(ScoreStorageTest, ScoresFromElsewhereBeginABufferAndStayAsTheyAre) {
  Layers layers(SomeLayers(4), GetParam());
  for (const ScoreStorage storage : kBuffered) {
    torch::manual_seed(2);
    SparseAttentionOutput below = layers.Run(storage, 0, 2).back();
    below.scores.own = below.scores.own->detach().requires_grad_(true);
    below.scores.other = below.scores.other->detach().requires_grad_(true);
    const torch::Tensor before = below.scores.own->detach().clone();
    std::vector<torch::Tensor> leaves = layers.Leaves();
    leaves.insert(leaves.end(), {below.scores.own, below.scores.other});
    const auto gradients = [&](ScoreStorage above) {
      torch::manual_seed(3);
      return Gradients(Scalar(layers.Run(above, 2, 4, below).back().context),
                       leaves);
    };
    const auto stored = gradients(ScoreStorage::kStore);
    ExpectSame(storage, gradients(storage), stored);
    ExpectSame(storage, gradients(storage), stored);
    EXPECT_TRUE(below.scores.own->detach().equal(before));
  }
}

TEST_P(ScoreStorageTest, EvaluationMayComeBetweenForwardAndBackward) {
  Layers layers(SomeLayers(3), GetParam());
  const auto leaves = layers.Leaves();
  torch::manual_seed(2);
  const auto stored = Gradients(
      Scalar(layers.Run(ScoreStorage::kStore, 0, 3).back().context), leaves);
  for (const ScoreStorage storage : kBuffered) {
    torch::manual_seed(2);
    const auto outputs = layers.Run(storage, 0, 3);
    {
      const torch::NoGradGuard no_grad;
      layers.Run(storage, 0, 3);
    }
    ExpectSame(storage, Gradients(Scalar(outputs.back().context), leaves),
               stored);
  }
}

TEST_P(ScoreStorageTest, SecondBackwardIsRefusedOrRepeatsTheFirst) {
  Layers layers(SomeLayers(3), GetParam());
  const auto leaves = layers.Leaves();
  {
    const torch::Tensor scalar =
        Scalar(layers.Run(ScoreStorage::kRecompute, 0, 3).back().context);
    const auto first = Gradients(scalar, leaves, /*retain_graph=*/true);
    ExpectSame(ScoreStorage::kRecompute, Gradients(scalar, leaves), first);
  }
  const torch::Tensor scalar =
      Scalar(layers.Run(ScoreStorage::kReverse, 0, 3).back().context);
  Gradients(scalar, leaves, /*retain_graph=*/true);
  try {
    Gradients(scalar, leaves);
    FAIL() << "the buffer was consumed";
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("has consumed the residual scores"));
  }
}

TEST_P(ScoreStorageTest, RefusesToCarryTheSameScoresToTwoLayers) {
  for (const ScoreStorage storage : kBuffered) {
    Layers layers(SomeLayers(3), GetParam());
    const SparseAttentionOutput below = layers.RunOne(storage, 0, {});
    layers.RunOne(storage, 1, below);
    try {
      layers.RunOne(storage, 2, below);
      FAIL() << "the scores are gone";
    } catch (const c10::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("of 1 layers, are gone"));
    }
  }
}

TEST_P(ScoreStorageTest, RefusesLayersOfTwoImplementationsInOneBuffer) {
  for (const ScoreStorage storage : kBuffered) {
    Layers layers(SomeLayers(2), GetParam());
    const SparseAttentionOutput below = layers.RunOne(storage, 0, {});
    layers.set_implementation(GetParam() == AttentionImplementation::kKernel
                                  ? AttentionImplementation::kBlocked
                                  : AttentionImplementation::kKernel);
    torch::manual_seed(3);
    const torch::Tensor next = torch::rand({1});
    torch::manual_seed(3);
    // The first would be computed again by the second.
    EXPECT_THAT(MessageOf([&] { layers.RunOne(storage, 1, below); }),
                HasSubstr("computed by one implementation"));
    EXPECT_TRUE(torch::rand({1}).equal(next)) << "a seed of dropout was drawn";
  }
}

TEST_P(ScoreStorageTest, GradientsOfScoresFromElsewhereStayAsTheyAre) {
  Layers layers(SomeLayers(2), GetParam());
  SparseAttentionOutput below = layers.RunOne(ScoreStorage::kStore, 0, {});
  below.scores.own = below.scores.own->detach().requires_grad_(true);
  below.scores.other = below.scores.other->detach().requires_grad_(true);
  const torch::Tensor context =
      layers.RunOne(ScoreStorage::kRecompute, 1, below).context;
  const std::vector<torch::Tensor> leaves = {below.scores.own,
                                             below.scores.other};
  const auto first = Gradients(Scalar(context), leaves, /*retain_graph=*/true);
  const torch::Tensor before = first[0].clone();
  Gradients(Scalar(context.square()), leaves);
  EXPECT_TRUE(first[0].equal(before));
}

TEST_P(ScoreStorageTest, RefusesToReadScoresThatAreGone) {
  const auto message = [](const ResidualPair& scores) -> std::string {
    try {
      scores.own->sum();
      scores.other->sum();
    } catch (const c10::Error& error) {
      return error.what();
    }
    return "was read";
  };
  for (const ScoreStorage storage : kBuffered) {
    Layers layers(SomeLayers(3), GetParam());
    const auto outputs = layers.Run(storage, 0, 2);
    // Overwritten by the next layer, or taken back.
    EXPECT_THAT(message(outputs[0].scores), HasSubstr("of 1 layers, are gone"));
    EXPECT_EQ(message(outputs[1].scores), "was read");
    const SparseAttentionOutput above = layers.RunOne(storage, 2, outputs[1]);
    EXPECT_EQ(message(above.scores), "was read");
    Gradients(Scalar(above.context), layers.Leaves());
    EXPECT_THAT(message(above.scores), HasSubstr("of 3 layers, are gone"));
  }
}

// The backward pass of the last layer alone takes it back, and another takes
// its place: as many layers, other scores.
TEST_P(ScoreStorageTest, KnowsScoresThatOthersReplaced) {
  Layers layers(SomeLayers(3), GetParam());
  for (torch::Tensor* tensor : AttentionStack::Tensors(&layers.input(0))) {
    *tensor = tensor->detach();
  }
  const SparseAttentionOutput below =
      layers.RunOne(ScoreStorage::kReverse, 0, {});
  const torch::Tensor before = below.scores.own->clone();
  const SparseAttentionOutput first =
      layers.RunOne(ScoreStorage::kReverse, 1, below);
  Gradients(Scalar(first.context), {layers.input(1).operands.query});
  EXPECT_TRUE(IsClose(below.scores.own, before, 1e-5));
  const SparseAttentionOutput second =
      layers.RunOne(ScoreStorage::kReverse, 2, below);
  EXPECT_EQ(first.scores.own.live().layers, second.scores.own.live().layers);
  EXPECT_NO_THROW(second.scores.own->sum());
  EXPECT_THROW(first.scores.own->sum(), c10::Error);
}

// Two layers over the same scores, one after the other's backward pass, which
// brought these back. The buffer then holds the second alone.
TEST_P(ScoreStorageTest, ALayerMayReplaceOneWhoseBackwardPassIsOver) {
  for (const ScoreStorage storage : kBuffered) {
    Layers layers(SomeLayers(4), GetParam());
    // With kReverse layer 0 is frozen: no backward pass takes its scores back.
    std::vector<torch::Tensor> leaves;
    for (const int64_t layer : {0, 1, 2, 3}) {
      for (torch::Tensor* tensor :
           AttentionStack::Tensors(&layers.input(layer))) {
        if (layer == 0 && storage == ScoreStorage::kReverse) {
          *tensor = tensor->detach();
        } else {
          leaves.push_back(*tensor);
        }
      }
    }
    const auto gradients = [&](ScoreStorage used) {
      torch::manual_seed(2);
      const SparseAttentionOutput below = layers.RunOne(used, 0, {});
      const SparseAttentionOutput first = layers.RunOne(used, 1, below);
      Gradients(Scalar(first.context), leaves, /*retain_graph=*/true);
      const SparseAttentionOutput second = layers.RunOne(used, 2, below);
      const SparseAttentionOutput third = layers.RunOne(used, 3, second);
      if (used != ScoreStorage::kStore) {
        EXPECT_THAT(MessageOf([&] {
                      Gradients(Scalar(first.context), leaves,
                                /*retain_graph=*/true);
                    }),
                    HasSubstr("another layer took its place"));
      }
      return Gradients(Scalar(third.context), leaves);
    };
    const auto stored = gradients(ScoreStorage::kStore);
    ExpectSame(storage, gradients(storage), stored);
  }
}

TEST_P(ScoreStorageTest, RefusesScoresThatWereChangedInPlace) {
  const auto halve = [](const torch::Tensor& scores) {
    torch::Tensor(scores).mul_(0.5);
  };
  for (const ScoreStorage storage : kBuffered) {
    for (const bool recorded : {false, true}) {
      Layers layers(SomeLayers(2), GetParam());
      const SparseAttentionOutput below = layers.RunOne(storage, 0, {});
      {
        const torch::AutoGradMode mode(recorded);
        halve(below.scores.own);
      }
      EXPECT_THAT(MessageOf([&] { layers.RunOne(storage, 1, below); }),
                  HasSubstr("were changed in place"));
      const SparseAttentionOutput last = layers.Run(storage, 0, 2).back();
      {
        const torch::AutoGradMode mode(recorded);
        halve(last.scores.other);
      }
      EXPECT_THAT(
          MessageOf([&] { Gradients(Scalar(last.context), layers.Leaves()); }),
          HasSubstr("were changed in place"));
    }
  }
}

// Autograd knows only what it differentiates.
TEST_P(ScoreStorageTest, RefusesToComputeScoresAgainFromChangedOperands) {
  for (const ScoreStorage storage : kBuffered) {
    Layers layers(SomeLayers(3), GetParam());
    const auto outputs = layers.Run(storage, 0, 3);
    torch::Tensor scalar = Scalar(outputs[0].context);
    if (storage == ScoreStorage::kRecompute) {
      scalar = Scalar(outputs[2].context);
      // Back to the scores of layer 0.
      Gradients(scalar, layers.Leaves(), /*retain_graph=*/true);
    }
    {
      const torch::NoGradGuard no_grad;
      layers.input(1).operands.own_key.mul_(2.0);
    }
    const int64_t of = storage == ScoreStorage::kReverse ? 0 : 2;
    EXPECT_THAT(MessageOf([&] {
                  Gradients(scalar, {layers.input(of).operands.query});
                }),
                HasSubstr("operands of a layer were changed in place"));
  }
}

// Runs the blocked backend, whose patterns make masks in each pass.
TEST(ScoreBufferTest, ScoresOfAPassThatFailedAreGone) {
  for (const ScoreStorage storage : kBuffered) {
    for (const bool forward : {false, true}) {
      Layers layers(SomeLayers(2), AttentionImplementation::kBlocked);
      bool fails = false;
      layers.input(1).pattern.masks = [masks = layers.input(1).pattern.masks,
                                       &fails](const torch::Device& device) {
        TORCH_CHECK(!fails, "out of memory");
        return masks(device);
      };
      const SparseAttentionOutput below = layers.RunOne(storage, 0, {});
      fails = forward;
      SparseAttentionOutput above;
      const std::string failed = MessageOf([&] {
        above = layers.RunOne(storage, 1, below);
        fails = true;
        Gradients(Scalar(above.context), layers.Leaves(),
                  /*retain_graph=*/true);
      });
      EXPECT_THAT(failed, HasSubstr("out of memory"));
      fails = false;
      if (forward) {
        EXPECT_THAT(MessageOf([&] { layers.RunOne(storage, 1, below); }),
                    HasSubstr("are gone"));
      } else if (storage == ScoreStorage::kReverse) {
        EXPECT_THAT(MessageOf([&] {
                      Gradients(Scalar(above.context), layers.Leaves());
                    }),
                    HasSubstr("are gone"));
      } else {
        EXPECT_NO_THROW(Gradients(Scalar(above.context), layers.Leaves()));
      }
    }
  }
}

// Autograd kept the scores of layer 0 for the square; layer 1 overwrote them.
TEST_P(ScoreStorageTest, RefusesToDifferentiateOverwrittenScores) {
  for (const ScoreStorage storage : kBuffered) {
    Layers layers(SomeLayers(2), GetParam());
    const SparseAttentionOutput below = layers.RunOne(storage, 0, {});
    const torch::Tensor square = below.scores.own->square().sum();
    const SparseAttentionOutput above = layers.RunOne(storage, 1, below);
    EXPECT_THROW(Gradients(square + Scalar(above.context), layers.Leaves()),
                 c10::Error);
  }
}

TEST_P(ScoreStorageTest, IsTheSameOnAnyNumberOfThreads) {
  if (GetParam() == AttentionImplementation::kBlocked) {
    GTEST_SKIP() << "LibTorch's products depend on the number of threads";
  }
  Layers layers(SomeLayers(3), GetParam());
  const auto leaves = layers.Leaves();
  for (const ScoreStorage storage : kBuffered) {
    ExpectSameOnAnyNumberOfThreads([&] {
      torch::manual_seed(2);
      return Gradients(Scalar(layers.Run(storage, 0, 3).back().context),
                       leaves);
    });
  }
}

TEST_P(ScoreStorageTest, ModuleCarriesBothBuffers) {
  torch::manual_seed(1);
  GlobalLocalAttention attention(
      GlobalLocalAttentionOptions{.long_hidden_size = 8,
                                  .global_hidden_size = 8,
                                  .num_heads = 2,
                                  .head_size = 4,
                                  .local_radius = 3,
                                  .dropout = 0.0});
  const torch::Tensor longs = torch::randn({1, 30, 8});
  const torch::Tensor globals = torch::randn({1, 5, 8});
  attention->set_implementation(GetParam());
  const AttentionInputs inputs(std::vector{UnrestrictedPattern(30, 5, 3, 12)});
  const auto run = [&](ScoreStorage storage) {
    CarriedScores carried{
        .residual = {.mode = ResidualAttention::kSum, .storage = storage}};
    GlobalLocalAttentionOutput output;
    for (int layer = 0; layer < 3; ++layer) {
      output = attention->forward(longs, globals, inputs, carried);
      carried.previous = output.scores;
    }
    return output;
  };
  const GlobalLocalAttentionOutput stored = run(ScoreStorage::kStore);
  for (const ScoreStorage storage : kBuffered) {
    const GlobalLocalAttentionOutput output = run(storage);
    EXPECT_TRUE(output.long_output.equal(stored.long_output));
    EXPECT_TRUE(output.global_output.equal(stored.global_output));
    EXPECT_TRUE(output.scores.g2g->equal(stored.scores.g2g));
    EXPECT_TRUE(output.scores.g2l->equal(stored.scores.g2l));
    EXPECT_TRUE(output.scores.l2g->equal(stored.scores.l2g));
    EXPECT_TRUE(output.scores.l2l->equal(stored.scores.l2l));
    EXPECT_EQ(output.scores.l2l.live().layers, 3);
    EXPECT_EQ(output.scores.g2g.live().layers, 3);
  }
}

TEST(ResidualNamesTest, AreThoseOfTheEnums) {
  static_assert(ResidualAttentionNamed("decay") == ResidualAttention::kDecay);
  static_assert(!ResidualAttentionNamed("Decay").has_value());
  EXPECT_STREQ(ResidualAttentionName(ResidualAttention::kMean), "mean");
  EXPECT_EQ(ResidualAttentionFromName("gate"), ResidualAttention::kGate);
  EXPECT_THAT(MessageOf([] { ResidualAttentionFromName("on"); }),
              HasSubstr("should be off, sum, mean, decay or gate, but is on"));
  EXPECT_EQ(ScoreStorageFromName("store"), ScoreStorage::kStore);
  EXPECT_EQ(ScoreStorageFromName("reverse"), ScoreStorage::kReverse);
  EXPECT_EQ(ScoreStorageFromName("recompute"), ScoreStorage::kRecompute);
  EXPECT_THAT(MessageOf([] { ScoreStorageFromName("files"); }),
              HasSubstr("should be store, reverse or recompute, but is files"));
}

}  // namespace
}  // namespace etc
