#include "tasks/distributed/tensor_bytes.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

namespace etc {
namespace {

TEST(TensorBytesTest, GivesBackWhatWasThere) {
  const std::vector<torch::Tensor> tensors = {
      torch::randn({3, 4}).t(),
      torch::full({}, 0.1, torch::kFloat64),
      torch::arange(5),
      torch::ones({2, 0, 3}),
      torch::tensor({true, false}),
      torch::randn({5}).to(torch::kBFloat16)};
  const std::vector<torch::Tensor> read =
      TensorsFromBytes(TensorsToBytes(tensors));
  ASSERT_EQ(read.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(read[i].scalar_type(), tensors[i].scalar_type()) << i;
    EXPECT_EQ(read[i].sizes(), tensors[i].sizes()) << i;
    EXPECT_TRUE(torch::equal(read[i], tensors[i])) << i;
  }
  EXPECT_TRUE(TensorsFromBytes(TensorsToBytes({})).empty());
}

TEST(TensorBytesTest, RefusesOtherBytes) {
  const std::string bytes = TensorsToBytes({torch::ones({4})});
  EXPECT_THROW(TensorsFromBytes(bytes.substr(0, bytes.size() - 1)), c10::Error);
  EXPECT_THROW(TensorsFromBytes(std::string(64, 'x')), c10::Error);
}

}  // namespace
}  // namespace etc
