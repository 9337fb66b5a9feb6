// The CUDA kernels, emulated on the CPU
// (tests/support/emulated_cuda_kernels.h), against the float64 reference: one
// case of each kind, so that a change that breaks them is seen in seconds. All
// cases: cuda_device_test.cc, whose tolerances these are. And which backend is
// chosen on a device, with the kernels and without.
//
// Heads of 8 and of 64 features are two instances of the kernels; 75 long
// tokens are more than a tile of 64, and 250 several.

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>

#include "attention/attention_inputs.h"
#include "attention/backends/cuda/cuda_backend.h"
#include "attention/sparse_attention.h"
#include "tests/support/attention_stack.h"
#include "tests/support/backend_agreement.h"
#include "tests/support/cuda_device.h"
#include "tests/support/emulated_cuda_kernels.h"
#include "tests/support/pattern_layers.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

class EmulatedCudaTest : public testing::Test {
 protected:
  EmulatedCudaTest() { UseEmulatedCudaKernels(); }
  ~EmulatedCudaTest() override { CudaBackend::UseKernels(nullptr); }

  static void ExpectMatches(const AttentionCase& c) {
    ExpectMatchesReference(AttentionImplementation::kKernel, c,
                           kFirstCudaDevice);
  }
};

TEST_F(EmulatedCudaTest, MatchesReferenceWithRelativeIdsAndGates) {
  ExpectMatches({.longs = 75,
                 .globals = 7,
                 .layers = 2,
                 .residual = ResidualAttention::kGate,
                 .distance = 2});
}

TEST_F(EmulatedCudaTest, MatchesReferenceInOneSidedWindowsWithDropout) {
  ExpectMatches({.longs = 250,
                 .globals = 9,
                 .radius = 12,
                 .layers = 2,
                 .causal = true,
                 .dropout = 0.3});
}

TEST_F(EmulatedCudaTest, MatchesReferenceInHeadsOfTheBaseModel) {
  ExpectMatches({.longs = 75,
                 .globals = 7,
                 .radius = 12,
                 .head_dim = 64,
                 .value_dim = 64,
                 .layers = 1,
                 .residual = ResidualAttention::kOff});
}

TEST_F(EmulatedCudaTest, MatchesReferenceInPackedDocuments) {
  ExpectLayersMatchReference(
      AttentionImplementation::kKernel,
      LayersOver(PackedPattern({{0, 2, 3}, {1, 7, 7}, {2, 1, 1}, {3, 4, 21}},
                               /*causal=*/false, 0),
                 {.residual = ResidualAttention::kDecay, .heads = 3}),
      kFirstCudaDevice);
}

TEST_F(EmulatedCudaTest, MatchesReferenceInBfloat16) {
  ExpectMatchesInBfloat16(
      AttentionImplementation::kKernel,
      {.longs = 75, .globals = 7, .radius = 12, .layers = 2}, QuerySide::kLong,
      kFirstCudaDevice);
}

// --- Which backend -----------------------------------------------------------

// Expects kAuto to give the bits of `implementation`.
void ExpectChooses(AttentionImplementation implementation,
                   const AttentionCase& c) {
  const AttentionStack values(c, QuerySide::kLong, MakeAttention(c));
  const auto context = [&](AttentionImplementation by) {
    AttentionStack stack = values.As(torch::kFloat32, kFirstCudaDevice);
    return SparseAttention(stack.layers[0], by).context.detach().cpu();
  };
  const torch::Tensor chosen = context(AttentionImplementation::kAuto);
  EXPECT_TRUE(torch::equal(chosen, context(implementation)));
  EXPECT_GT(chosen.abs().max().item<float>(), 0);
}

TEST_F(EmulatedCudaTest, IsChosenWhereItApplies) {
  EXPECT_EQ(UnfusedReason(kFirstCudaDevice, 64), "");
  EXPECT_EQ(UnfusedReason(torch::Device(torch::kCUDA, 1), 128), "");
  EXPECT_EQ(UnfusedReason(torch::kCPU, 256), "");
  EXPECT_EQ(UnfusedReason(torch::Device(torch::kCUDA, 2), 64),
            "LibTorch finds no cuda:2");
  ExpectChooses(AttentionImplementation::kKernel, {.longs = 29, .layers = 1});
}

TEST_F(EmulatedCudaTest, IsNotChosenForHeadsThatAreTooLarge) {
  EXPECT_EQ(UnfusedReason(kFirstCudaDevice, 129),
            "heads have 129 features, and the kernels take 128");
  const AttentionCase c = {
      .longs = 29, .head_dim = 136, .value_dim = 136, .layers = 1};
  ExpectChooses(AttentionImplementation::kBlocked, c);
  const AttentionStack values(c, QuerySide::kLong, MakeAttention(c));
  const AttentionStack stack = values.As(torch::kFloat32, kFirstCudaDevice);
  EXPECT_THROW(
      SparseAttention(stack.layers[0], AttentionImplementation::kKernel),
      c10::Error);
}

// The module is not built for a LibTorch without CUDA.
TEST(UnfusedReasonTest, IsThatTheModuleIsNotThere) {
  EXPECT_THAT(UnfusedReason(kFirstCudaDevice, 64),
              HasSubstr("needs realetc_cuda_attention.so, which could not be "
                        "opened: "));
  ExpectChooses(AttentionImplementation::kBlocked, {.longs = 29, .layers = 1});
}

}  // namespace
}  // namespace etc
