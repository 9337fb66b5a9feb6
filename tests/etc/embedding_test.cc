// Embedding tables against the official unit test (doc/model.md 12.7), and
// gradients of the input layer in both its ways: float32 sums of up to a few
// hundred, within 1e-3.

#include "etc/embedding.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

#include "etc/model.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

// Row i is (1 + i/10, -(1 + i/10)).
EmbeddingTable OfficialTable() {
  EmbeddingTable table(5, 2, 0, 0.02);
  const torch::NoGradGuard no_grad;
  const torch::Tensor column = torch::arange(5) * 0.1 + 1.0;
  table->named_parameters()["weight"].copy_(torch::stack({column, -column}, 1));
  return table;
}

torch::Tensor Expected(std::vector<double> first, at::IntArrayRef shape) {
  const torch::Tensor column = torch::tensor(first, torch::kFloat32);
  std::vector<int64_t> sizes = shape.vec();
  sizes.push_back(2);
  return torch::stack({column, -column}, 1).reshape(sizes);
}

TEST(EmbeddingTableTest, LooksUpRows) {
  EmbeddingTable table = OfficialTable();
  EXPECT_TRUE(IsClose(table->forward(FromDigits({"321", "404"})),
                      Expected({1.3, 1.2, 1.1, 1.4, 1.0, 1.4}, {2, 3}), 1e-6));
}

TEST(EmbeddingTableTest, GivesMaskedIdsNothing) {
  EmbeddingTable table = OfficialTable();
  const torch::Tensor ids =
      torch::tensor({3, 2, 1, 4, -1, 5}, torch::kInt64).reshape({2, 3});
  const torch::Tensor mask = FromDigits({"110", "100"}).to(torch::kBool);
  EXPECT_TRUE(IsClose(table->forward(ids, mask),
                      Expected({1.3, 1.2, 0, 1.4, 0, 0}, {2, 3}), 1e-6));
  EXPECT_THROW(table->forward(ids), c10::Error);
  EXPECT_TRUE(IsClose(table->forward(torch::tensor({1, 0, 0, 3}, torch::kInt64),
                                     torch::tensor({true, true, false, true})),
                      Expected({1.1, 1.0, 0, 1.3}, {4}), 1e-6));
}

TEST(EmbeddingTableTest, ProjectsBeforeMasking) {
  EmbeddingTable table(5, 3, 2, 0.02);
  {
    const torch::NoGradGuard no_grad;
    auto parameters = table->named_parameters();
    parameters["weight"].zero_();
    parameters["weight"][3].copy_(torch::tensor({1.3, -1.3, 0.8}));
    parameters["weight"][4].copy_(torch::tensor({1.4, -1.4, 0.9}));
    parameters["projection.weight"].fill_(1.0);
    parameters["projection.bias"].fill_(1.0);
  }
  const torch::Tensor expected =
      torch::tensor({1.8, 1.8, 0., 0., 0., 0., 0., 0., 0., 0., 1.9, 1.9})
          .reshape({2, 3, 2});
  EXPECT_TRUE(
      IsClose(table->forward(FromDigits({"321", "404"}),
                             FromDigits({"100", "001"}).to(torch::kBool)),
              expected, 1e-6));
}

TEST(EmbeddingTableTest, ProjectsOnlyToAnotherSize) {
  EXPECT_EQ(EmbeddingTable(5, 3, 0, 0.02)->parameters().size(), 1u);
  EXPECT_EQ(EmbeddingTable(5, 3, 3, 0.02)->parameters().size(), 1u);
  EXPECT_EQ(EmbeddingTable(5, 3, 2, 0.02)->parameters().size(), 3u);
}

// Elements that dropout keeps have the same factor in both passes.
TEST(EtcEmbeddingTest, GivesTheSameGradientsIfItRecomputes) {
  EtcConfig config = ToyConfig();
  config.hidden_dropout_prob = 0.3;
  torch::manual_seed(3);
  EtcEmbedding embedding(config);
  const auto gradients = [&](bool recomputes) {
    torch::manual_seed(5);
    embedding->zero_grad();
    const EmbeddedInput embedded = embedding->forward(ToyInput(), recomputes);
    (embedded.long_input.pow(3).sum() + embedded.global_input.pow(3).sum())
        .backward();
    std::vector<torch::Tensor> all = {embedded.long_input.detach(),
                                      embedded.global_input.detach()};
    for (const torch::Tensor& parameter : embedding->parameters()) {
      all.push_back(parameter.grad().clone());
    }
    return all;
  };
  const std::vector<torch::Tensor> at_once = gradients(/*recomputes=*/false);
  const std::vector<torch::Tensor> again = gradients(/*recomputes=*/true);
  ASSERT_EQ(again.size(), at_once.size());
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_TRUE(IsClose(again[i], at_once[i], 1e-3)) << i;
  }
}

}  // namespace
}  // namespace etc
