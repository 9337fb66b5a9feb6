// A mode of residual attention as one text: every form, what it sets in a
// configuration and what it leaves, and the message for anything else.
#include "etc/residual_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

EtcConfig Applied(const std::string& text) {
  EtcConfig config;
  config.residual_decay = 0.8;
  config.residual_gate_init = 0.25;
  const absl::Status status = ApplyResidualChoice(text, "run", &config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

TEST(ResidualChoiceTest, AModeLeavesTheNumbers) {
  for (const std::string mode : {"off", "sum", "mean", "decay", "gate"}) {
    const EtcConfig config = Applied(mode);
    EXPECT_EQ(config.residual_attention, mode);
    EXPECT_EQ(config.residual_decay, 0.8);
    EXPECT_EQ(config.residual_gate_init, 0.25);
  }
}

TEST(ResidualChoiceTest, ANumberIsThatOfItsMode) {
  const EtcConfig decay = Applied("decay=0.95");
  EXPECT_EQ(decay.residual_attention, "decay");
  EXPECT_EQ(decay.residual_decay, 0.95);
  EXPECT_EQ(decay.residual_gate_init, 0.25);
  for (const auto& [text, initial] :
       {std::pair("gate=0.5", 0.5), std::pair("gate=1", 1.0),
        std::pair("gate=-2", -2.0), std::pair("gate=0", 0.0)}) {
    const EtcConfig gate = Applied(text);
    EXPECT_EQ(gate.residual_attention, "gate");
    EXPECT_EQ(gate.residual_gate_init, initial);
    EXPECT_EQ(gate.residual_decay, 0.8);
  }
}

TEST(ResidualChoiceTest, RefusesAllElseWithTheForms) {
  for (const std::string text :
       {"", "on", "Sum", "=", "=0.5", "gate=", "gate=x", "gate=0.5x",
        "gate=nan", "gate=inf", "decay=", "decay=0", "decay=1", "decay=-0.5",
        "decay=nan", "sum=1", "off=0", "mean=0.5", "gates=0.5"}) {
    const absl::Status status = ParseResidualChoice(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("off, sum, mean, decay, gate, decay=BETA"),
              HasSubstr("gate=INITIAL"), HasSubstr("but is \"" + text + "\"")));
  }
}

// 1 / 0.4^11 is above kLargestDecayFactor, 1 / 0.45^11 below.
TEST(ResidualChoiceTest, RefusesADecayBeyondTheBoundOfTheDepth) {
  EtcConfig config;
  EXPECT_TRUE(ApplyResidualChoice("decay=0.45", "run", &config).ok());
  EXPECT_THAT(
      std::string(ApplyResidualChoice("decay=0.4", "run", &config).message()),
      AllOf(HasSubstr("run with residual attention decay=0.4: "
                      "residual_decay should be above 0.43"),
            HasSubstr("12 layers"), HasSubstr("but is 0.4")));
  config.num_hidden_layers = 2;
  EXPECT_TRUE(ApplyResidualChoice("decay=0.4", "run", &config).ok());
}

TEST(ResidualChoiceTest, SetsAllPathsOfAnEncoderDecoder) {
  EncoderDecoderConfig config;
  config.cross_residual_attention = "mean";
  EXPECT_EQ(ResidualText(config), "off, off, mean");
  ASSERT_TRUE(ApplyResidualChoice("decay=0.75", "run", &config).ok());
  EXPECT_EQ(ResidualText(config), "decay=0.75, decay=0.75, decay=0.75");
  ASSERT_TRUE(ApplyResidualChoice("gate=0.5", "run", &config).ok());
  EXPECT_EQ(ResidualText(config), "gate, gate, gate");
  EXPECT_EQ(config.residual_gate_init, 0.5);
  EXPECT_EQ(config.residual_decay, 0.75);
  config.num_decoder_layers = 12;
  EXPECT_THAT(
      std::string(ApplyResidualChoice("decay=0.4", "run", &config).message()),
      HasSubstr("run with residual attention decay=0.4: "));
}

TEST(ResidualChoiceTest, NamesTheDecayInMessages) {
  EXPECT_EQ(ResidualText(Applied("sum")), "sum");
  EXPECT_EQ(ResidualText(Applied("gate=0.5")), "gate");
  EXPECT_EQ(ResidualText(Applied("decay")), "decay=0.8");
}

}  // namespace
}  // namespace etc
