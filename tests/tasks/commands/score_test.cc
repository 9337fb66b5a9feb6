// `realetc score`: a table for people, JSON for programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using ScoreCommandTest = RealetcTest;

TEST_F(ScoreCommandTest, PrintsATableOrAllDigits) {
  const std::string gold = WriteData();
  // The answers are oslo, rome, lima and again; two of six are wrong.
  const std::string predictions = directory_.Write(
      "predictions.json",
      R"({"q0": "oslo", "q1": "rome", "q2": "lima", "q3": "oslo",
          "q4": "oslo", "q5": "oslo"})");
  const std::string arguments = absl::StrCat(gold, " ", predictions);
  const Result table = Run("score wikihop " + arguments);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.out,
            "accuracy  0.6667  (main metric)\n"
            "answered  1.0000\n");
  const Result json = Run("score --json wikihop " + arguments);
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(nlohmann::json::parse(json.out),
            nlohmann::json({{"accuracy", 4.0 / 6.0}, {"answered", 1.0}}));
}

}  // namespace
}  // namespace etc
