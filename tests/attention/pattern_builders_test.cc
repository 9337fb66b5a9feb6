// Patterns, spelled out as tensors, against the masks and relative ids of the
// official unit tests (doc/model.md 12.1, 12.2, 12.8, 12.9). All are exact.
//
// Left out, since nothing here has a counterpart: ids that ignore direction,
// and breakpoints at the start of a segment.

#include "attention/pattern_builders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <string>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/pattern.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

using Ids = std::vector<int32_t>;

Ids Digits(const std::string& digits) {
  Ids ids;
  for (const char digit : digits) {
    ids.push_back(digit - '0');
  }
  return ids;
}

ExplicitInputs MaterializeOne(const AttentionPattern& pattern) {
  return Materialize({pattern}, pattern.long_length(), pattern.global_length());
}

testing::AssertionResult Equals(const torch::Tensor& actual,
                                const torch::Tensor& expected) {
  return IsClose(actual.to(torch::kInt64), expected.unsqueeze(0), 0.0);
}

testing::AssertionResult EqualsDigits(const torch::Tensor& actual,
                                      const std::vector<std::string>& rows) {
  return Equals(actual, FromDigits(rows));
}

torch::Tensor Rows(const std::vector<std::vector<int64_t>>& rows) {
  std::vector<torch::Tensor> tensors;
  for (const std::vector<int64_t>& row : rows) {
    tensors.push_back(torch::tensor(row, torch::kInt64));
  }
  return torch::stack(tensors);
}

// [n, n] of the ids of doc/model.md 12.1, which global tokens of one segment
// get.
torch::Tensor GlobalIds(int64_t length, int64_t distance,
                        const Ids& segments = {}) {
  AttentionPattern pattern = UnrestrictedPattern(1, length, 1, distance);
  if (!segments.empty()) {
    pattern.global_segment = segments;
  }
  return MaterializeOne(pattern).g2g_ids;
}

TEST(RelativePositionTest, MatchesOfficialIdsOfWholeSequences) {
  EXPECT_EQ(RelativeDistanceCount(3), 7);
  EXPECT_EQ(RelativeDistanceCount(0), 1);
  EXPECT_TRUE(EqualsDigits(GlobalIds(6, 3), {"012333", "401233", "540123",
                                             "654012", "665401", "666540"}));
  EXPECT_TRUE(Equals(GlobalIds(5, 9), Rows({{0, 1, 2, 3, 4},
                                            {10, 0, 1, 2, 3},
                                            {11, 10, 0, 1, 2},
                                            {12, 11, 10, 0, 1},
                                            {13, 12, 11, 10, 0}})));
  EXPECT_TRUE(EqualsDigits(GlobalIds(5, 4),
                           {"01234", "50123", "65012", "76501", "87650"}));
}

TEST(RelativePositionTest, HasNoIdsWithoutDistance) {
  const ExplicitInputs inputs = MaterializeOne(UnrestrictedPattern(4, 2, 2, 0));
  EXPECT_FALSE(inputs.l2l_ids.defined());
  EXPECT_FALSE(inputs.l2g_ids.defined());
  EXPECT_FALSE(inputs.g2g_ids.defined());
  EXPECT_FALSE(inputs.g2l_ids.defined());
}

TEST(RelativePositionTest, MatchesOfficialIdsOfWindows) {
  const auto window = [](int64_t distance, int64_t radius) {
    return MaterializeOne(UnrestrictedPattern(2, 0, radius, distance)).l2l_ids;
  };
  EXPECT_TRUE(EqualsDigits(window(3, 5), {"66654012333", "66654012333"}));
  EXPECT_TRUE(Equals(window(9, 4), Rows({{13, 12, 11, 10, 0, 1, 2, 3, 4},
                                         {13, 12, 11, 10, 0, 1, 2, 3, 4}})));
  EXPECT_TRUE(EqualsDigits(window(4, 4), {"876501234", "876501234"}));
  EXPECT_TRUE(EqualsDigits(window(3, 4), {"665401233", "665401233"}));
}

TEST(RelativePositionTest, GivesOtherSegmentsAnIdOfTheirOwn) {
  // The official test overwrites with 100; here it is 2m + 3 = 9.
  EXPECT_TRUE(EqualsDigits(GlobalIds(5, 3, {10, 10, 20, 30, 30}),
                           {"01999", "40999", "99099", "99901", "99940"}));
  EXPECT_TRUE(EqualsDigits(GlobalIds(5, 3, {10, 20, 20, 10, 10}),
                           {"09933", "90199", "94099", "69901", "69940"}));
}

torch::Tensor LocalMask(const Ids& segments, int64_t radius) {
  return MaterializeOne(
             PatternFromExampleIds(
                 segments, {}, Ids(segments.size(), -1),
                 {.local_radius = radius, .relative_pos_max_distance = 0}))
      .l2l_mask;
}

torch::Tensor LocalMaskFromBreakpoints(const std::string& breakpoints,
                                       int64_t radius) {
  return MaterializeOne(
             PatternFromBreakpoints(
                 Digits(breakpoints), {}, Ids(breakpoints.size(), -1),
                 {.local_radius = radius, .relative_pos_max_distance = 0}))
      .l2l_mask;
}

TEST(LocalMaskTest, MatchesOfficialSegments) {
  EXPECT_TRUE(EqualsDigits(LocalMask(Digits("00101011"), 2),
                           {"00110", "01101", "00101", "10101", "10101",
                            "10100", "10110", "01100"}));
  EXPECT_TRUE(EqualsDigits(LocalMask(Digits("00000000"), 2),
                           {"00111", "01111", "11111", "11111", "11111",
                            "11111", "11110", "11100"}));
  EXPECT_TRUE(EqualsDigits(LocalMask(Digits("43334111"), 2),
                           {"00100", "00111", "01110", "11100", "00100",
                            "00111", "01110", "11100"}));
  EXPECT_TRUE(EqualsDigits(LocalMask(Digits("06543210"), 2),
                           std::vector<std::string>(8, "00100")));
  EXPECT_TRUE(
      EqualsDigits(LocalMask(Digits("0010101122"), 3),
                   {"0001101", "0011010", "0001010", "1101010", "0101011",
                    "0101000", "0101100", "1011000", "0001100", "0011000"}));
  EXPECT_TRUE(
      EqualsDigits(LocalMask(Digits("0000000000"), 3),
                   {"0001111", "0011111", "0111111", "1111111", "1111111",
                    "1111111", "1111111", "1111110", "1111100", "1111000"}));
  EXPECT_TRUE(EqualsDigits(LocalMask(Digits("01"), 3), {"0001000", "0001000"}));
  EXPECT_TRUE(EqualsDigits(LocalMask(Digits("00"), 3), {"0001100", "0011000"}));
}

TEST(LocalMaskTest, MatchesOfficialBreakpoints) {
  EXPECT_TRUE(EqualsDigits(LocalMaskFromBreakpoints("00010000", 2),
                           {"00111", "01111", "11110", "11100", "00111",
                            "01111", "11110", "11100"}));
  EXPECT_TRUE(EqualsDigits(LocalMaskFromBreakpoints("10011001", 2),
                           {"00100", "00111", "01110", "11100", "00100",
                            "00111", "01110", "11100"}));
}

TEST(GlobalMaskTest, MatchesOfficialSegmentsAndBreakpoints) {
  const auto from_ids = [](const std::string& ids) {
    return MaterializeOne(
               PatternFromExampleIds(
                   {}, Digits(ids), {},
                   {.local_radius = 1, .relative_pos_max_distance = 0}))
        .g2g_mask;
  };
  const auto from_breakpoints = [](const std::string& breakpoints) {
    return MaterializeOne(
               PatternFromBreakpoints(
                   {}, Digits(breakpoints), {},
                   {.local_radius = 1, .relative_pos_max_distance = 0}))
        .g2g_mask;
  };
  const std::vector<std::string> identity = {"100000", "010000", "001000",
                                             "000100", "000010", "000001"};
  const std::vector<std::string> ones(6, "111111");
  EXPECT_TRUE(EqualsDigits(from_ids("001100"), {"110011", "110011", "001100",
                                                "001100", "110011", "110011"}));
  EXPECT_TRUE(EqualsDigits(from_ids("003030"), {"110101", "110101", "001010",
                                                "110101", "001010", "110101"}));
  EXPECT_TRUE(EqualsDigits(from_ids("054321"), identity));
  EXPECT_TRUE(EqualsDigits(from_ids("222222"), ones));
  EXPECT_TRUE(EqualsDigits(from_ids("111000"), {"111000", "111000", "111000",
                                                "000111", "000111", "000111"}));
  EXPECT_TRUE(EqualsDigits(
      from_breakpoints("010100"),
      {"110000", "110000", "001100", "001100", "000011", "000011"}));
  EXPECT_TRUE(EqualsDigits(
      from_breakpoints("100001"),
      {"100000", "011111", "011111", "011111", "011111", "011111"}));
  EXPECT_TRUE(EqualsDigits(from_breakpoints("111111"), identity));
  EXPECT_TRUE(EqualsDigits(from_breakpoints("000000"), ones));
}

// Input A and B of doc/model.md 12.8: r = 2, m = 1, so V0 = 3.
struct SideInputsCase {
  std::string long_breakpoints, global_breakpoints, sentence_ids;
  std::string long_example_ids, global_example_ids;
  std::vector<std::string> l2l_mask, g2g_mask, soft_g2l, hard_g2l, g2l_links;
};

const SideInputsCase kInputA = {
    "0001001000",
    "0011",
    "0112333000",
    "0000111222",
    "0001",
    {"00111", "01111", "11110", "11100", "00111", "01110", "11100", "00111",
     "01110", "11100"},
    {"1110", "1110", "1110", "0001"},
    {"1111000000", "1111000000", "1111000000", "0000111000"},
    {"1000000000", "0110000000", "0001000000", "0000111000"},
    {"1000000111", "0110000000", "0001000000", "0000111000"}};

const SideInputsCase kInputB = {
    "1000010001",
    "1110",
    "0111112223",
    "0111112222",
    "0123",
    {"00100", "00111", "01111", "11111", "11110", "11100", "00111", "01111",
     "11110", "11100"},
    {"1000", "0100", "0010", "0001"},
    {"1000000000", "0111110000", "0000001111", "0000000000"},
    {"1000000000", "0111110000", "0000001110", "0000000000"},
    {"1000000000", "0111110000", "0000001110", "0000000001"}};

class SideInputsTest : public testing::TestWithParam<SideInputsCase> {};

void ExpectSideInputs(const ExplicitInputs& actual, const SideInputsCase& c,
                      bool hard_g2l, bool hard_l2g) {
  EXPECT_TRUE(EqualsDigits(actual.l2l_mask, c.l2l_mask));
  EXPECT_TRUE(EqualsDigits(actual.g2g_mask, c.g2g_mask));
  EXPECT_TRUE(
      EqualsDigits(actual.g2l_mask, hard_g2l ? c.hard_g2l : c.soft_g2l));
  EXPECT_TRUE(Equals(actual.l2g_mask,
                     FromDigits(hard_l2g ? c.hard_g2l : c.soft_g2l).t()));
  EXPECT_TRUE(
      EqualsDigits(actual.l2l_ids, std::vector<std::string>(10, "22011")));
  EXPECT_TRUE(EqualsDigits(actual.g2g_ids, {"0111", "2011", "2201", "2220"}));
  EXPECT_TRUE(Equals(actual.g2l_ids, FromDigits(c.g2l_links) + 3));
  EXPECT_TRUE(Equals(actual.l2g_ids, (FromDigits(c.g2l_links) + 3).t()));
}

TEST_P(SideInputsTest, MatchOfficialOnesForAllHardFlags) {
  const SideInputsCase& c = GetParam();
  for (const bool hard_g2l : {false, true}) {
    for (const bool hard_l2g : {false, true}) {
      const PatternOptions options = {.local_radius = 2,
                                      .relative_pos_max_distance = 1,
                                      .hard_g2l = hard_g2l,
                                      .hard_l2g = hard_l2g};
      ExpectSideInputs(
          MaterializeOne(PatternFromBreakpoints(
              Digits(c.long_breakpoints), Digits(c.global_breakpoints),
              Digits(c.sentence_ids), options)),
          c, hard_g2l, hard_l2g);
      ExpectSideInputs(
          MaterializeOne(PatternFromExampleIds(
              Digits(c.long_example_ids), Digits(c.global_example_ids),
              Digits(c.sentence_ids), options)),
          c, hard_g2l, hard_l2g);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Official, SideInputsTest,
                         testing::Values(kInputA, kInputB));

TEST(FixedBlocksTest, MatchOfficialSideInputs) {
  const PatternOptions options = {.local_radius = 2,
                                  .relative_pos_max_distance = 2};
  const ExplicitInputs half =
      MaterializeOne(PatternFromFixedBlocks(Digits("1111100000"), 3, options));
  const ExplicitInputs whole =
      MaterializeOne(PatternFromFixedBlocks(Digits("1111111111"), 3, options));

  EXPECT_TRUE(EqualsDigits(
      half.l2l_mask, {"00111", "01111", "11111", "11110", "11100", "00111",
                      "01111", "11111", "11110", "11100"}));
  EXPECT_TRUE(EqualsDigits(half.g2g_mask, {"1100", "1100", "0011", "0011"}));
  EXPECT_TRUE(EqualsDigits(
      half.g2l_mask, {"1111100000", "1111100000", "0000011111", "0000011111"}));
  EXPECT_TRUE(
      EqualsDigits(whole.g2g_mask, std::vector<std::string>(4, "1111")));
  EXPECT_TRUE(
      EqualsDigits(whole.g2l_mask, std::vector<std::string>(4, "1111111111")));
  EXPECT_TRUE(EqualsDigits(
      whole.l2l_mask, {"00111", "01111", "11111", "11111", "11111", "11111",
                       "11111", "11111", "11110", "11100"}));
  for (const ExplicitInputs& inputs : {half, whole}) {
    EXPECT_TRUE(
        EqualsDigits(inputs.l2l_ids, std::vector<std::string>(10, "43012")));
    EXPECT_TRUE(EqualsDigits(inputs.g2g_ids, {"0122", "3012", "4301", "4430"}));
    EXPECT_TRUE(EqualsDigits(inputs.g2l_ids, {"6665555555", "5556665555",
                                              "5555556665", "5555555556"}));
  }
  EXPECT_THAT(FixedBlockGlobalTokenIds(Digits("1111100000"), 3, 1),
              testing::ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(FixedBlockGlobalTokenIds(Digits("11"),
                                       std::numeric_limits<int64_t>::max(), 1),
              testing::ElementsAre(1));
  EXPECT_THAT(FixedBlockGlobalTokenIds({}, 3, 1), testing::ElementsAre());
  EXPECT_THAT(FixedBlockGlobalTokenIds(Digits("1111111111"), 3, 1),
              testing::ElementsAre(1, 1, 1, 1));
}

// doc/model.md 12.9: r = 4, m = 2, so V0 = 5.
class MultihopTest : public testing::Test {
 protected:
  MultihopTest() {
    source_.long_paragraph_breakpoints = Digits("000100010001000");
    source_.long_sentence_ids = {1,  2,  3,  4,  6,  6,  7, 8,
                                 10, 10, 11, 12, -1, -1, -1};
    source_.long_paragraph_ids = {-1, -1, -1, -1, 5,  5,  5, 5,
                                  9,  9,  9,  9,  -1, -1, -1};
    source_.linked_ids = {1,  -1, -1, -1, 1,  1,  2, -1,
                          -1, -1, -1, -1, -1, -1, -1};
    source_.global_paragraph_breakpoints = Digits("10001000100010");
    source_.ignore_hard_g2l = std::vector<uint8_t>(14);
    source_.ignore_hard_g2l[0] = source_.ignore_hard_g2l[2] = 1;
    source_.ignore_hard_l2g = std::vector<uint8_t>(15);
    source_.ignore_hard_l2g[0] = 1;
  }

  // Rows of `columns`: ones at the columns named.
  static torch::Tensor Ones(int64_t columns,
                            const std::vector<std::vector<int64_t>>& rows) {
    torch::Tensor out = torch::zeros(
        {static_cast<int64_t>(rows.size()), columns}, torch::kInt64);
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const int64_t j : rows[i]) {
        out[static_cast<int64_t>(i)][j] = 1;
      }
    }
    return out;
  }

  static std::vector<int64_t> Range(int64_t begin, int64_t end) {
    std::vector<int64_t> range;
    for (int64_t i = begin; i <= end; ++i) {
      range.push_back(i);
    }
    return range;
  }

  MultihopSource source_;
  PatternOptions options_ = {.local_radius = 4, .relative_pos_max_distance = 2};
};

TEST_F(MultihopTest, MatchesOfficialSoftMasksAndIds) {
  const ExplicitInputs actual =
      MaterializeOne(PatternFromMultihop(source_, options_));
  std::vector<std::string> l2l;
  for (int i = 0; i < 3; ++i) {
    l2l.insert(l2l.end(), {"000011110", "000111100", "001111000", "011110000"});
  }
  l2l.insert(l2l.end(), {"000011100", "000111000", "001110000"});
  EXPECT_TRUE(EqualsDigits(actual.l2l_mask, l2l));
  EXPECT_TRUE(
      EqualsDigits(actual.l2l_ids, std::vector<std::string>(15, "444301222")));

  torch::Tensor g2g = torch::zeros({14, 14}, torch::kInt64);
  g2g.narrow(0, 0, 13).narrow(1, 0, 13).fill_(1);
  g2g[13][13] = 1;
  EXPECT_TRUE(Equals(actual.g2g_mask, g2g));

  torch::Tensor l2g = torch::zeros({15, 14}, torch::kInt64);
  l2g.narrow(0, 0, 12).narrow(1, 0, 13).fill_(1);
  l2g.narrow(0, 12, 3).select(1, 13).fill_(1);
  EXPECT_TRUE(Equals(actual.l2g_mask, l2g));
  EXPECT_TRUE(Equals(actual.g2l_mask, l2g.t()));

  const torch::Tensor links = Ones(14, {{1},
                                        {2},
                                        {3},
                                        {4},
                                        {1, 5, 6},
                                        {1, 5, 6},
                                        {2, 5, 7},
                                        {5, 8},
                                        {9, 10},
                                        {9, 10},
                                        {9, 11},
                                        {9, 12},
                                        {},
                                        {},
                                        {}});
  EXPECT_TRUE(Equals(actual.l2g_ids, links + 5));
  EXPECT_TRUE(Equals(actual.g2l_ids, (links + 5).t()));

  torch::Tensor g2g_ids = torch::full({14, 14}, 7, torch::kInt64);
  const torch::Tensor group = FromDigits({"0122", "3012", "4301", "4430"});
  for (const int64_t begin : {1, 5, 9}) {
    g2g_ids.narrow(0, begin, 4).narrow(1, begin, 4).copy_(group);
  }
  g2g_ids[0][0] = 0;
  g2g_ids[13][13] = 0;
  EXPECT_TRUE(Equals(actual.g2g_ids, g2g_ids));
}

TEST_F(MultihopTest, MatchesOfficialHardMasks) {
  options_.hard_g2l = options_.hard_l2g = true;
  const ExplicitInputs actual =
      MaterializeOne(PatternFromMultihop(source_, options_));
  EXPECT_TRUE(Equals(actual.l2g_mask, Ones(14, {Range(0, 12),
                                                {2},
                                                {3},
                                                {4},
                                                {5, 6},
                                                {5, 6},
                                                {5, 7},
                                                {5, 8},
                                                {9, 10},
                                                {9, 10},
                                                {9, 11},
                                                {9, 12},
                                                {},
                                                {},
                                                {}})));
  EXPECT_TRUE(Equals(actual.g2l_mask, Ones(15, {Range(0, 11),
                                                {0},
                                                Range(0, 11),
                                                {2},
                                                {3},
                                                Range(4, 7),
                                                {4, 5},
                                                {6},
                                                {7},
                                                Range(8, 11),
                                                {8, 9},
                                                {10},
                                                {11},
                                                {}})));
}

TEST_F(MultihopTest, FlatSequenceHasSentencesOnly) {
  options_.hard_g2l = true;
  const ExplicitInputs flat =
      MaterializeOne(PatternFromMultihop(source_, options_, true));
  const Ids long_mask = Digits("111111111111000");
  const Ids global_mask = Digits("11111111111110");
  const ExplicitInputs expected = MaterializeOne(PatternFromExampleIds(
      long_mask, global_mask, source_.long_sentence_ids, options_));
  EXPECT_TRUE(flat.l2l_mask.equal(expected.l2l_mask));
  EXPECT_TRUE(flat.g2l_mask.equal(expected.g2l_mask));
  EXPECT_TRUE(flat.l2g_ids.equal(expected.l2g_ids));
  EXPECT_TRUE(flat.g2g_ids.equal(expected.g2g_ids));
}

TEST(PatternTest, RejectsWhatCannotBe) {
  const PatternOptions options = {.local_radius = 2,
                                  .relative_pos_max_distance = 1};
  EXPECT_THROW(PatternFromExampleIds({0, -1}, {0}, {0, 0}, options),
               c10::Error);
  EXPECT_THROW(PatternFromExampleIds({0, 0}, {0}, {0}, options), c10::Error);
  EXPECT_THROW(PatternFromExampleIds({0, 0}, {0}, {0, 1}, options), c10::Error);
  EXPECT_THROW(PatternFromExampleIds({0, 0}, {0}, {0, -2}, options),
               c10::Error);
  EXPECT_THROW(PatternFromBreakpoints({0, 2}, {1}, {0, 0}, options),
               c10::Error);
  EXPECT_THROW(PatternFromFixedBlocks({1, 1}, 0, options), c10::Error);
  EXPECT_THROW(PatternFromFixedBlocks({1, 3}, 1, options), c10::Error);
  EXPECT_THROW(PatternFromExampleIds({0}, {0}, {0}, {.local_radius = 0}),
               c10::Error);
  EXPECT_THROW(
      PatternFromExampleIds({0}, {0}, {0}, {.relative_pos_max_distance = -1}),
      c10::Error);
}

TEST(ExplicitInputsTest, LeavesWhatIsBeyondAnExampleInvisible) {
  const ExplicitInputs inputs =
      Materialize({UnrestrictedPattern(2, 1, 1, 1)}, /*long_length=*/3,
                  /*global_length=*/2);
  EXPECT_TRUE(EqualsDigits(inputs.l2l_mask, {"011", "110", "000"}));
  EXPECT_TRUE(EqualsDigits(inputs.l2g_mask, {"10", "10", "00"}));
  EXPECT_TRUE(EqualsDigits(inputs.g2g_mask, {"10", "00"}));
  EXPECT_TRUE(EqualsDigits(inputs.g2l_mask, {"110", "000"}));
  EXPECT_THROW(Materialize({UnrestrictedPattern(4, 1, 1, 1)}, 3, 2),
               c10::Error);
  EXPECT_THROW(Materialize({}, 3, 2), c10::Error);
  EXPECT_THROW(Materialize({UnrestrictedPattern(2, 1, 1, 1),
                            UnrestrictedPattern(2, 1, 2, 1)},
                           3, 2),
               c10::Error);
}

}  // namespace
}  // namespace etc
