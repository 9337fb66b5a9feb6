// The learning rate against the goldens of doc/model.md 13.2 and
// doc/wikihop.md 11.4, the edges of doc/model.md 8.1 that follow from its
// formula, and the step counts of doc/wikihop.md 10. Goldens are printed with 6
// digits, hence the relative tolerance of 5e-6.

#include "tasks/train/schedule.h"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "gtest/gtest.h"

namespace etc {
namespace {

void ExpectRate(const LearningRateSchedule& schedule, int64_t step,
                double expected) {
  EXPECT_NEAR(schedule.At(step), expected, 5e-6 * expected) << "step " << step;
}

TEST(LearningRateScheduleTest, MatchesGoldensOfModelSpec132) {
  const LearningRateSchedule schedule{
      .learning_rate = 1e-3, .num_steps = 100, .warmup_steps = 10};
  EXPECT_EQ(schedule.At(0), 0);
  ExpectRate(schedule, 1, 1e-4);
  ExpectRate(schedule, 9, 9e-4);
  ExpectRate(schedule, 10, 9e-4);
  ExpectRate(schedule, 11, 8.9e-4);
  ExpectRate(schedule, 50, 5e-4);
  ExpectRate(schedule, 99, 1e-5);
  EXPECT_EQ(schedule.At(100), 0);
  EXPECT_EQ(schedule.At(1000), 0);
}

TEST(LearningRateScheduleTest, MatchesGoldensOfWikihopSpec114) {
  const LearningRateSchedule schedule{
      .learning_rate = 4e-5, .num_steps = 20625, .warmup_steps = 2062};
  EXPECT_EQ(schedule.At(0), 0);
  ExpectRate(schedule, 1, 1.93986e-8);
  ExpectRate(schedule, 1031, 2e-5);
  ExpectRate(schedule, 2061, 3.99806e-5);
  ExpectRate(schedule, 2062, 3.60010e-5);
  ExpectRate(schedule, 10000, 2.06061e-5);
  ExpectRate(schedule, 20624, 1.93939e-9);
  EXPECT_EQ(schedule.At(20625), 0);
}

TEST(LearningRateScheduleTest, MatchesGoldensOfTranslationSpec111) {
  LearningRateSchedule schedule{.type = ScheduleTypeFromName("inverse_sqrt"),
                                .learning_rate = 1e-3,
                                .num_steps = 100'000,
                                .warmup_steps = 8000,
                                .initial_rate = 1e-7};
  ExpectRate(schedule, 0, 1e-7);
  ExpectRate(schedule, 1, 2.249875e-7);
  ExpectRate(schedule, 4000, 5.0005e-4);
  ExpectRate(schedule, 8000, 1e-3);
  ExpectRate(schedule, 16'000, 7.071067812e-4);
  ExpectRate(schedule, 100'000, 2.828427125e-4);
  schedule.type = ScheduleTypeFromName("linear");
  schedule.learning_rate = 5e-4;
  schedule.min_rate = 1e-9;
  ExpectRate(schedule, 0, 1e-7);
  ExpectRate(schedule, 1, 1.624875e-7);
  ExpectRate(schedule, 4000, 2.5005e-4);
  ExpectRate(schedule, 8000, 5e-4);
  ExpectRate(schedule, 16'000, 4.565218261e-4);
  ExpectRate(schedule, 100'000, 1e-9);
}

TEST(LearningRateScheduleTest, StartsAtTheFullRateWithoutWarmUp) {
  const LearningRateSchedule schedule{.learning_rate = 1, .num_steps = 4};
  EXPECT_EQ(schedule.At(0), 1);
  EXPECT_EQ(schedule.At(1), 0.75);
}

TEST(LearningRateScheduleTest, CountsWarmUpFromItsFirstStep) {
  const LearningRateSchedule schedule{.learning_rate = 1,
                                      .num_steps = 8,
                                      .warmup_steps = 2,
                                      .start_warmup_step = 2};
  EXPECT_EQ(schedule.At(0), -1);  // the official formula
  EXPECT_EQ(schedule.At(2), 0);
  EXPECT_EQ(schedule.At(3), 0.5);
  EXPECT_EQ(schedule.At(4), 0.5);
}

TEST(LearningRateScheduleTest, RaisesWhatIsLeftToThePower) {
  const LearningRateSchedule schedule{
      .learning_rate = 1, .num_steps = 4, .poly_power = 2};
  EXPECT_EQ(schedule.At(1), 0.5625);
}

// Against the closed forms: linear and cosine from the full rate at the end of
// the warm-up to 0, with 2 of 10 updates of warm-up.
TEST(LearningRateScheduleTest, DecaysFromTheFullRateUnlessPoly) {
  LearningRateSchedule schedule{
      .learning_rate = 2, .num_steps = 10, .warmup_steps = 2};
  for (const auto& [name, middle] :
       {std::pair<const char*, double>("linear", 1),
        {"cosine", 1},
        {"constant", 2}}) {
    SCOPED_TRACE(name);
    schedule.type = ScheduleTypeFromName(name);
    EXPECT_EQ(schedule.At(0), 0);
    EXPECT_EQ(schedule.At(1), 1);
    EXPECT_EQ(schedule.At(2), 2);
    EXPECT_NEAR(schedule.At(6), middle, 1e-15);
  }
  schedule.type = ScheduleType::kLinear;
  EXPECT_EQ(schedule.At(4), 1.5);
  EXPECT_EQ(schedule.At(10), 0);
  EXPECT_EQ(schedule.At(99), 0);
  schedule.type = ScheduleType::kCosine;
  EXPECT_NEAR(schedule.At(4), 1 + std::sqrt(0.5), 1e-15);
  EXPECT_EQ(schedule.At(10), 0);
  schedule.type = ScheduleType::kConstant;
  EXPECT_EQ(schedule.At(99), 2);
  schedule.type = ScheduleTypeFromName("poly");
  EXPECT_NEAR(schedule.At(2), 1.6, 1e-15);
}

TEST(LearningRateScheduleTest, HasNoTypeOfAnotherName) {
  EXPECT_THROW(ScheduleTypeFromName("polynomial"), std::invalid_argument);
  EXPECT_THROW(ScheduleTypeFromName(""), std::invalid_argument);
}

// The warm-up takes updates 2 and 3, the decay those from 4 to 8.
TEST(LearningRateScheduleTest, DecaysFromTheEndOfALaterWarmUp) {
  LearningRateSchedule schedule{.type = ScheduleType::kLinear,
                                .learning_rate = 1,
                                .num_steps = 8,
                                .warmup_steps = 2,
                                .start_warmup_step = 2};
  EXPECT_EQ(schedule.At(3), 0.5);
  EXPECT_EQ(schedule.At(4), 1);
  EXPECT_EQ(schedule.At(5), 0.75);
  EXPECT_EQ(schedule.At(8), 0);
  schedule.type = ScheduleType::kCosine;
  EXPECT_EQ(schedule.At(4), 1);
  EXPECT_NEAR(schedule.At(5), 0.5 + 0.5 * std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(schedule.At(6), 0.5, 1e-15);
  // sqrt(2 / (step - 2))
  schedule.type = ScheduleType::kInverseSqrt;
  EXPECT_EQ(schedule.At(3), 0.5);
  EXPECT_EQ(schedule.At(4), 1);
  EXPECT_EQ(schedule.At(10), 0.5);
}

TEST(LearningRateScheduleTest, NeedsNoUpdateAfterTheWarmUp) {
  LearningRateSchedule schedule{.type = ScheduleType::kLinear,
                                .learning_rate = 1,
                                .num_steps = 4,
                                .warmup_steps = 4};
  EXPECT_EQ(schedule.At(3), 0.75);
  EXPECT_EQ(schedule.At(4), 0);
  schedule.warmup_steps = 0;
  EXPECT_EQ(schedule.At(0), 1);
  EXPECT_EQ(schedule.At(1), 0.75);
}

TEST(NumTrainingStepsTest, MatchesWikihopSpec10) {
  EXPECT_EQ(NumTrainingSteps(44000, 32, 15), 20625);
  EXPECT_EQ(NumTrainingSteps(43738, 32, 15), 20502);
  EXPECT_EQ(NumWarmupSteps(20625, 0.1), 2062);
}

}  // namespace
}  // namespace etc
