// LibTorch and SentencePiece in one process, where plain linking crashes: each
// is used before and after the other.
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/text/sentencepiece_tokenizer.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/tiny_sentencepiece_model.h"

namespace etc {
namespace {

double TrainOneStep() {
  torch::manual_seed(1);
  torch::nn::Linear linear(8, 4);
  torch::optim::AdamW optimizer(linear->parameters());
  torch::Tensor loss =
      torch::matmul(linear->forward(torch::ones({2, 8})), torch::ones({4, 3}))
          .square()
          .mean();
  loss.backward();
  optimizer.step();
  return loss.item<double>();
}

TEST(SentencePieceBesideTorchTest, BothWork) {
  TemporaryDirectory directory;
  const std::string path = directory.Write(
      "tiny.model", TinySentencePieceModel(
                        {{"▁hello", -2.0F}, {"▁world", -2.0F}, {".", -3.0F}})
                        .bytes());
  const double loss = TrainOneStep();
  const auto tokenizer = LoadSentencePieceTokenizer(path);
#if defined(__SANITIZE_ADDRESS__)
  // Only RTLD_DEEPBIND, which AddressSanitizer refuses, separates the two.
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kFailedPrecondition);
#else
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::vector<int32_t> ids;
  for (const Token& piece : (*tokenizer)->Encode("hello world.")) {
    ids.push_back(piece.id);
  }
  EXPECT_THAT(ids, testing::ElementsAre(3, 4, 5));
#endif
  EXPECT_EQ(TrainOneStep(), loss);
}

}  // namespace
}  // namespace etc
