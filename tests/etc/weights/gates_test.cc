// Gates read from files without a model: which tensors they are, with and
// without the encoder's prefix, the mode that they compute, and the numbers of
// their table.
#include "etc/weights/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>

#include "etc/weights/encoder_parameters.h"
#include "tests/etc/weights/random_model.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

EtcConfig ToyWithGates(int64_t layers = 2) {
  EtcConfig config = ToyConfig();
  config.residual_attention = "gate";
  config.num_hidden_layers = layers;
  return config;
}

absl::StatusOr<NamedTensors> GatesIn(const NamedTensors& tensors) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("model.safetensors");
  EXPECT_TRUE(WriteTensors(path, tensors, {}).ok());
  const auto reader = TensorReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return ReadGates(*reader);
}

TEST(GatesTest, ReadsThoseOfEveryLayerButTheFirst) {
  const EtcModel model = RandomModel(ToyWithGates(3));
  for (const std::string prefix : {"", "encoder."}) {
    const auto gates = GatesIn(ModuleTensors(*model, prefix));
    ASSERT_TRUE(gates.ok()) << gates.status();
    ASSERT_THAT(*gates, SizeIs(8));
    for (const std::string& name : GateNames(model->config())) {
      EXPECT_TRUE(torch::equal(gates->at(prefix + name),
                               ModuleTensors(*model).at(name)))
          << name;
    }
  }
}

TEST(GatesTest, AFileWithoutHasNone) {
  EXPECT_THAT(*GatesIn(ModuleTensors(*RandomModel(ToyConfig()))), IsEmpty());
  // Gates of no encoder's layer.
  EXPECT_THAT(*GatesIn({{"head.attention.gate", torch::ones({2})},
                        {"head.g2g_gate", torch::ones({2})},
                        {"layers.x.attention.g2g_gate", torch::ones({2})}}),
              IsEmpty());
}

TEST(GatesTest, RefusesWhatIsNoNumberForEachHead) {
  for (const torch::Tensor& tensor :
       {torch::ones({2, 2}), torch::ones({2}, torch::kInt64),
        torch::ones({0})}) {
    const auto gates = GatesIn({{"layers.1.attention.g2g_gate", tensor}});
    EXPECT_THAT(std::string(gates.status().message()),
                HasSubstr("\"layers.1.attention.g2g_gate\" should hold a "
                          "floating number for each head"));
  }
}

NamedTensors AllGates(double value) {
  NamedTensors gates;
  for (const std::string& name : GateNames(ToyWithGates())) {
    gates[name] = torch::full({2}, value);
  }
  return gates;
}

TEST(GatesTest, NamesTheModeThatTheyCompute) {
  const EtcConfig gate = ToyWithGates();
  EXPECT_EQ(ComputedMode(gate, AllGates(0)), "off");
  EXPECT_EQ(ComputedMode(gate, AllGates(1)), "sum");
  EXPECT_EQ(ComputedMode(gate, AllGates(0.5)), "gate");
  NamedTensors one_other = AllGates(0);
  one_other.begin()->second[1] = 1e-30;
  EXPECT_EQ(ComputedMode(gate, one_other), "gate");

  EtcConfig none = gate;
  EXPECT_EQ(ComputedMode(none, {}), "off");
  none.residual_gate_init = 1;
  EXPECT_EQ(ComputedMode(none, {}), "sum");
  none.residual_gate_init = 0.5;
  EXPECT_EQ(ComputedMode(none, {}), "gate");
  none.num_hidden_layers = 1;
  EXPECT_EQ(ComputedMode(none, {}), "off");

  EtcConfig decay = gate;
  decay.residual_attention = "decay";
  EXPECT_EQ(ComputedMode(decay, AllGates(0)), "decay=0.9");
}

TEST(GatesTest, SummarizesEachLayerInOrder) {
  const auto layers = SummarizeGates(
      {{"encoder.layers.10.attention.g2g_gate", torch::tensor({0.5, 1.0})},
       {"encoder.layers.2.attention.g2g_gate", torch::tensor({1.0, -3.0})},
       {"encoder.layers.2.attention.l2l_gate", torch::tensor({0.25, 0.25})}});
  ASSERT_THAT(layers, SizeIs(2));
  EXPECT_EQ(layers[0].layer, 2);
  EXPECT_THAT(layers[0].means,
              ElementsAre(Pair("g2g", -1.0), Pair("l2l", 0.25)));
  EXPECT_EQ(layers[0].largest, 3);
  EXPECT_EQ(layers[1].layer, 10);
  EXPECT_THAT(layers[1].means, ElementsAre(Pair("g2g", 0.75)));
  EXPECT_EQ(layers[1].largest, 1);
}

}  // namespace
}  // namespace etc
