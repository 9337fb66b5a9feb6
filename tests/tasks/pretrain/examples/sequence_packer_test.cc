// Packing of examples into sequences: the streams of golden/text_tasks/
// etc_input.json and the one published with ReadTwice (doc/pretraining.md
// 12.3), and the bounds that hold for any stream.

#include "tasks/pretrain/examples/sequence_packer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/pretrain/examples/draws.h"
#include "tests/support/shared_data.h"
#include "tests/tasks/pretrain/golden_file.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> MembersOf(const std::optional<PackedSequence>& sequence) {
  return sequence.has_value() ? sequence->members : std::vector<int64_t>();
}

TEST(SequencePackerTest, PacksTheGoldenStreams) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path,
                          "golden/text_tasks/etc_input.json");
  const nlohmann::json streams = ReadGolden(path)["packing"];
  ASSERT_EQ(streams.size(), 3);
  for (const nlohmann::json& stream : streams) {
    SequencePacker packer({.max_long = stream["max_long"].get<int64_t>(),
                           .max_global = stream["max_global"].get<int64_t>(),
                           .min_fraction = stream["min_fraction"].get<double>(),
                           .max_cache = stream["max_cache"].get<int64_t>()});
    for (const nlohmann::json& step : stream["steps"]) {
      const auto sequence =
          packer.Add(step["add"].get<int64_t>(), step["long"].get<int64_t>(),
                     step["global_"].get<int64_t>());
      const nlohmann::json& emitted = step["emitted"];
      ASSERT_LE(emitted.size(), 1);
      EXPECT_EQ(MembersOf(sequence),
                emitted.empty()
                    ? std::vector<int64_t>()
                    : emitted[0]["members"].get<std::vector<int64_t>>())
          << step;
    }
    std::vector<std::vector<int64_t>> flushed;
    for (const PackedSequence& sequence : packer.Flush()) {
      flushed.push_back(sequence.members);
    }
    EXPECT_EQ(flushed,
              stream["flushed"].get<std::vector<std::vector<int64_t>>>());
  }
}

// The published one.
TEST(SequencePackerTest, PutsExamplesIntoTheFullestSequenceWithRoom) {
  SequencePacker packer(
      {.max_long = 10, .max_global = 4, .min_fraction = 0.85, .max_cache = 2});
  int64_t next = 0;
  const auto add = [&](int64_t num_long) {
    return MembersOf(packer.Add(next++, num_long, 1));
  };
  EXPECT_THAT(add(8), IsEmpty());
  EXPECT_THAT(add(4), IsEmpty());
  EXPECT_THAT(add(7), ElementsAre(0));
  EXPECT_THAT(add(2), ElementsAre(2, 3));
  EXPECT_THAT(add(1), IsEmpty());
  EXPECT_THAT(add(1), IsEmpty());
  EXPECT_THAT(add(5), IsEmpty());
  EXPECT_THAT(add(1), ElementsAre(1, 4, 5, 7));  // four globals
  EXPECT_THAT(add(9), ElementsAre(8));
  EXPECT_ANY_THROW(add(11));
  EXPECT_THAT(add(8), IsEmpty());
  const std::vector<PackedSequence> flushed = packer.Flush();
  ASSERT_EQ(flushed.size(), 2);
  EXPECT_EQ(flushed[0].num_long, 8);
  EXPECT_EQ(flushed[1].num_long, 5);
  EXPECT_THAT(packer.Flush(), IsEmpty());
}

// Ties go to the oldest of equally full sequences; one that got more counts as
// new.
TEST(SequencePackerTest, PutsExamplesIntoTheOldestOfEquallyFullSequences) {
  SequencePacker packer({.max_long = 10, .max_global = 10, .min_fraction = 1});
  EXPECT_FALSE(packer.Add(0, 3, 1).has_value());
  EXPECT_FALSE(packer.Add(1, 8, 1).has_value());
  EXPECT_FALSE(packer.Add(2, 8, 1).has_value());
  EXPECT_FALSE(packer.Add(3, 5, 1).has_value());  // to 0, 8 in all
  EXPECT_THAT(MembersOf(packer.Add(4, 2, 1)), ElementsAre(1, 4));
  EXPECT_THAT(MembersOf(packer.Add(5, 2, 1)), ElementsAre(2, 5));
  EXPECT_THAT(MembersOf(packer.Add(6, 2, 1)), ElementsAre(0, 3, 6));
}

TEST(SequencePackerTest, NeverExceedsASequenceAndLosesNothing) {
  for (uint64_t key = 0; key < 50; ++key) {
    KeyedDraws draws({key});
    const PackingOptions options{.max_long = draws.Integer(20, 200),
                                 .max_global = draws.Integer(2, 12),
                                 .max_cache = draws.Integer(1, 8)};
    SequencePacker packer(options);
    std::vector<int64_t> lengths;
    std::vector<PackedSequence> sequences;
    for (int64_t member = 0; member < 300; ++member) {
      lengths.push_back(draws.Integer(1, options.max_long));
      if (auto sequence = packer.Add(member, lengths.back(),
                                     draws.Integer(1, options.max_global))) {
        sequences.push_back(*std::move(sequence));
      }
    }
    for (PackedSequence& sequence : packer.Flush()) {
      sequences.push_back(std::move(sequence));
    }
    std::vector<int64_t> members;
    for (const PackedSequence& sequence : sequences) {
      EXPECT_LE(sequence.num_long, options.max_long);
      EXPECT_LE(sequence.num_global, options.max_global);
      int64_t num_long = 0;
      for (const int64_t member : sequence.members) {
        num_long += lengths[static_cast<size_t>(member)];
        members.push_back(member);
      }
      EXPECT_EQ(num_long, sequence.num_long);
    }
    std::sort(members.begin(), members.end());
    std::vector<int64_t> all(300);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(members, all);
  }
}

}  // namespace
}  // namespace etc
