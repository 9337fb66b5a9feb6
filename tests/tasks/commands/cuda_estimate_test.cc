// `realetc estimate` for a CUDA device, on a stand-in for it
// (tests/support/stand_in_cuda.h): that it measures there whatever training can
// ask for, says where, and fails in one line. Its figures are those of the CPU,
// so nothing here shows that they are right for a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tasks/train/device_rates.h"
#include "tests/support/idle_cuda_kernels.h"
#include "tests/support/realetc_program.h"
#include "tests/support/stand_in_cuda.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class CudaEstimateTest : public RealetcTest {
 protected:
  // For examples of few tokens, with further fields.
  Result Estimate(const std::string& fields) {
    return Run(absl::StrCat(
        "estimate ", WriteConfig(Config()),
        " --set data.max_long_length=40 --set data.max_global_length=12 ",
        fields));
  }
};

TEST_F(CudaEstimateTest, SaysTheDeviceAndWhatComputesThere) {
  const Result result = Estimate("--set train.device=cuda:1");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(
          HasSubstr("\nMemory on cuda:1, 2 of 3 examples at a time"),
          ContainsRegex("\n  peak +[0-9.]+ [kMG]B\n"),
          ContainsRegex("\n  memory of cuda:1 +[0-9.]+ [MGT]B\n"),
          HasSubstr("\nTime of one update, as fast as cuda:1 is now:\n"),
          ContainsRegex("[0-9.]+ TFLOP/s in linear layers \\(fp32\\), [0-9.]+ "
                        "in attention, [0-9]+ GB/s in passes, [0-9]+ in "
                        "copies\n"),
          HasSubstr("\nattention by LibTorch's operations; no fused kernels: "),
          ContainsRegex("\n  one update +[0-9.e-]+ s\n"),
          ContainsRegex("\n  2 updates +[0-9.e-]+ s\n")));
  EXPECT_THAT(result.out, AllOf(Not(HasSubstr("program")),
                                Not(HasSubstr("with examples kept")),
                                Not(HasSubstr("train.threads"))));
  EXPECT_THAT(result.err, Not(HasSubstr("warning")));
}

TEST_F(CudaEstimateTest, ComputesAsTheConfigurationSays) {
  for (const std::string fields :
       {"--set residual_attention=gate --set train.score_storage=store "
        "--set optimizer.type=lamb --set model.sublayer=rezero",
        "--set residual_attention=decay --set train.score_storage=recompute "
        "--set model.share_qkv_projections=false --set train.precision=bf16"}) {
    const Result result = Estimate("--set train.device=auto " + fields);
    EXPECT_EQ(result.code, 0) << fields << result.err;
    EXPECT_THAT(result.out,
                AllOf(HasSubstr("as fast as cuda:0 is now"),
                      HasSubstr(fields.ends_with("bf16") ? "(bf16)" : "(fp32)"),
                      ContainsRegex("\n  one update +[0-9.e-]+ s\n"),
                      Not(HasSubstr("inf")), Not(HasSubstr("nan"))))
        << fields;
  }
}

TEST_F(CudaEstimateTest, TakesTheKernelsIfThereAreSome) {
  UseIdleCudaKernels();
  const Result result = Estimate("--set train.device=cuda");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nattention by the fused CUDA kernels\n"));
}

// It may be on the machine that is meant.
TEST_F(CudaEstimateTest, WarnsInOneLineWithoutTheDevice) {
  const Result result = Estimate("--set train.device=cuda:7");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("warning: train.device is \"cuda:7\", but there are 2 "
                        "CUDA devices; what can be used here: cpu, cuda:0, "
                        "cuda:1; time and memory are estimated for the CPU"));
  EXPECT_EQ(Lines(result.err), 1) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("\nMemory on the CPU"),
                                HasSubstr("now with train.threads 1")));
}

TEST_F(CudaEstimateTest, SaysWhatToDoWhenItsMemoryIsTooLittle) {
  const StandInMemoryLimit limit(StandInMemoryInUse() + (1 << 17));
  const Result result = Estimate("--set train.device=cuda");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr(": too little\n"),
            HasSubstr("\nTime of one update: not measured, out of memory "
                      "while timing layers on cuda:0"),
            HasSubstr("; lower train.micro_batch_size (now 2), "
                      "data.max_long_length (40) or "
                      "data.max_global_length (12)")));
}

// BERT has global tokens alone.
TEST(DeviceRatesTest, AreThoseOfModelsWithoutLongTokens) {
  RunConfig config;
  config.model.has_long_tokens = false;
  config.model.share_att_output_projection = true;
  config.model.vocab_size = 100;
  config.model.hidden_size = 24;
  config.model.num_hidden_layers = 1;
  config.model.num_attention_heads = 2;
  config.model.intermediate_size = 48;
  config.data.max_long_length = 0;
  config.data.max_global_length = 16;
  const auto rates = MeasureDevice(config, torch::Device(torch::kCUDA, 0));
  ASSERT_TRUE(rates.ok()) << rates.status();
  for (const double rate : {rates->linear, rates->attention, rates->passes,
                            rates->copies, rates->layer_update}) {
    EXPECT_GT(rate, 0);
    EXPECT_TRUE(std::isfinite(rate));
  }
  // Weights and biases of 4 projections and the feed-forward block, tables of
  // relative positions of its one side, two norms.
  const int64_t ids = *config.model.relative_vocab_size;
  EXPECT_EQ(rates->layer_parameters, 4 * (24 * 24 + 24) + 2 * 24 * 48 + 48 +
                                         24 + ids * (24 + 2) + 4 * 24);
}

}  // namespace
}  // namespace etc
