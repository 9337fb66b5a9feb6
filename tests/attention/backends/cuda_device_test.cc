// Attention on a CUDA device against the float64 reference on the CPU: every
// backend that runs there, in all modes and storages, forward and backward, in
// float32 and in bfloat16. Sizes are a few windows of a few tokens, for every
// branch, and two cases of the base model's heads and radius.
//
// float32: the tolerance of all fused backends, times two
// (ExpectLayersMatchReference). bfloat16: ExpectMatchesInBfloat16.
//
// Skipped without a device. With LibTorch 1 without CUDA a stand-in computes
// (tests/support/stand_in_cuda.h), the kernels by their emulation
// (tests/support/emulated_cuda_kernels.h): that shows that their arithmetic is
// right, and nothing about races and speed. emulated_cuda_test.cc has
// one case of each kind, in seconds.

#include "tests/support/cuda_device.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/softmax_pattern.h"
#include "attention/sparse_attention.h"
#include "tests/support/attention_stack.h"
#include "tests/support/backend_agreement.h"
#ifdef ETC_STAND_IN_CUDA
#include "tests/support/emulated_cuda_kernels.h"
#endif
#include "tests/support/implementation_names.h"
#include "tests/support/pattern_layers.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

class AttentionOnCudaTest
    : public CudaDeviceTest,
      public testing::WithParamInterface<AttentionImplementation> {
 protected:
#ifdef ETC_STAND_IN_CUDA
  AttentionOnCudaTest() { UseEmulatedCudaKernels(); }
#endif
  static void ExpectMatches(const AttentionCase& c) {
    ExpectMatchesReference(GetParam(), c, kFirstCudaDevice);
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, AttentionOnCudaTest,
                         testing::Values(AttentionImplementation::kBlocked,
                                         AttentionImplementation::kKernel),
                         ImplementationName);

TEST_P(AttentionOnCudaTest, MatchesReferenceInEveryMode) {
  for (const int64_t globals : {0, 7}) {
    for (const ResidualAttention residual : kEveryResidualAttention) {
      for (const bool hard : {false, true}) {
        ExpectMatches({.longs = 29,
                       .globals = globals,
                       .residual = residual,
                       .hard = hard,
                       .distance = hard ? 0 : 2});
      }
    }
  }
}

TEST_P(AttentionOnCudaTest, MatchesReferenceInOneSidedWindows) {
  for (const int64_t longs : {3, 75}) {
    for (const ResidualAttention residual : kEveryResidualAttention) {
      ExpectMatches({.longs = longs,
                     .globals = 7,
                     .radius = 5,
                     .layers = 2,
                     .residual = residual,
                     .causal = true});
    }
  }
}

TEST_P(AttentionOnCudaTest, MatchesReferenceWithoutLongTokens) {
  for (const Borders borders : {Borders::kNone, Borders::kPacked}) {
    for (const ResidualAttention residual : kEveryResidualAttention) {
      ExpectMatches({.longs = 0,
                     .globals = 53,
                     .layers = 2,
                     .residual = residual,
                     .borders = borders,
                     .distance = borders == Borders::kNone ? 2 : 0});
    }
  }
}

// Heads and radius of the base model, several windows, and a length that no
// tile divides.
TEST_P(AttentionOnCudaTest, MatchesReferenceInHeadsOfTheBaseModel) {
  for (const ResidualAttention residual :
       {ResidualAttention::kOff, ResidualAttention::kSum}) {
    ExpectMatches({.longs = 601,
                   .globals = 70,
                   .radius = 84,
                   .head_dim = 64,
                   .value_dim = 64,
                   .layers = 2,
                   .residual = residual,
                   .distance = 12});
  }
}

// The reference drops them on the CPU.
TEST_P(AttentionOnCudaTest, DropsTheSameWeightsAsTheCpu) {
  for (const ResidualAttention residual :
       {ResidualAttention::kOff, ResidualAttention::kSum,
        ResidualAttention::kGate}) {
    for (const bool causal : {false, true}) {
      ExpectMatches({.longs = 250,
                     .globals = 9,
                     .radius = 12,
                     .layers = 2,
                     .residual = residual,
                     .causal = causal,
                     .dropout = 0.3});
    }
  }
}

TEST_P(AttentionOnCudaTest, MatchesReferenceInOddRunsAndPackedDocuments) {
  const std::vector<SoftmaxPattern> patterns = {
      PatternFromMask(MaskOfOddRuns(29, 75, 6),
                      {.queries = 29, .keys = 75, .batch = 2}),
      PackedPattern({{0, 2, 3}, {1, 7, 7}, {2, 1, 1}, {3, 4, 21}, {5, 0, 3}},
                    /*causal=*/false, 0),
      PackedPattern({{1, 7, 7}, {0, 2, 3}, {2, 9, 9}, {6, 2, 0}},
                    /*causal=*/true, 0)};
  for (size_t i = 0; i < patterns.size(); ++i) {
    for (const ResidualAttention residual : kEveryResidualAttention) {
      SCOPED_TRACE("pattern " + std::to_string(i) + " residual " +
                   std::to_string(static_cast<int>(residual)));
      ExpectLayersMatchReference(
          GetParam(),
          LayersOver(patterns[i], {.residual = residual, .heads = 3}),
          kFirstCudaDevice);
    }
  }
}

// A mask that is a tensor, on the device and on the CPU.
TEST_P(AttentionOnCudaTest, TakesMasksAsTensorsOrRefusesThem) {
  const torch::Tensor mask = MaskOfOddRuns(29, 75, 6);
  if (GetParam() == AttentionImplementation::kKernel) {
    const AttentionStack stack =
        LayersOver(DensePattern(mask, {.queries = 29, .keys = 75, .batch = 2}),
                   {})
            .As(torch::kFloat32, kFirstCudaDevice);
    EXPECT_THROW(SparseAttention(stack.layers[0], GetParam()), c10::Error);
    return;
  }
  const KeyPatternOptions sizes = {.queries = 29, .keys = 75, .batch = 2};
  for (const torch::Device& device :
       {torch::Device(torch::kCPU), kFirstCudaDevice}) {
    ExpectLayersMatchReference(
        GetParam(), LayersOver(DensePattern(mask.to(device), sizes), {}),
        kFirstCudaDevice);
  }
}

// --- bfloat16 ----------------------------------------------------------------

TEST_P(AttentionOnCudaTest, MatchesReferenceInBfloat16) {
  for (const ResidualAttention residual : kEveryResidualAttention) {
    for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
      ExpectMatchesInBfloat16(GetParam(),
                              {.longs = 250,
                               .globals = 37,
                               .radius = 12,
                               .head_dim = 32,
                               .value_dim = 32,
                               .residual = residual},
                              side, kFirstCudaDevice);
    }
  }
  ExpectMatchesInBfloat16(GetParam(),
                          {.longs = 601,
                           .globals = 70,
                           .radius = 84,
                           .head_dim = 64,
                           .value_dim = 64,
                           .layers = 2,
                           .distance = 12},
                          QuerySide::kLong, kFirstCudaDevice);
}

// --- Which backend -----------------------------------------------------------

TEST_F(CudaDeviceTest, ResultsAreWhereTheOperandsAre) {
  const AttentionCase c = {.longs = 29};
  const AttentionStack values(c, QuerySide::kLong, MakeAttention(c));
  AttentionStack stack = values.As(torch::kFloat32, kFirstCudaDevice);
  const SparseAttentionOutput output = SparseAttention(stack.layers[0]);
  EXPECT_EQ(output.context.device(), kFirstCudaDevice);
  EXPECT_EQ(output.scores.own->device(), kFirstCudaDevice);
}

}  // namespace
}  // namespace etc
