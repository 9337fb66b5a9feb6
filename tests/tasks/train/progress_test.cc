// The progress line, overwritten on a terminal and sparse elsewhere.

#include "tasks/train/progress.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace etc {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Progress kProgress{.step = 12,
                             .num_steps = 400,
                             .epoch = 0.3,
                             .loss = 1.23456,
                             .learning_rate = 3e-5,
                             .examples_per_second = 8.14,
                             .tokens_per_second = 12345,
                             .waiting = 0.021,
                             .seconds_left = 3723};

TEST(ProgressTest, SaysWhereTheRunStands) {
  EXPECT_EQ(FormatProgress(kProgress),
            "step 12/400  epoch 0.30  loss 1.2346  lr 3.0e-05  8.1 examples/s  "
            "12.3k tokens/s  waiting 2%  1:02:03 left");
  Progress with_others = kProgress;
  with_others.later_steps = 800;
  with_others.seconds_left_in_all = 11523;
  EXPECT_EQ(FormatProgress(with_others),
            FormatProgress(kProgress) + ", 3:12:03 with the runs after it");
  with_others.lacks_evaluations = true;
  EXPECT_EQ(FormatProgress(with_others),
            FormatProgress(kProgress) +
                ", 3:12:03 with the runs after it, without evaluations");
  // An epoch that takes 10 000 updates and more.
  Progress large = kProgress;
  large.epoch = 12e-4;
  EXPECT_THAT(FormatProgress(large), HasSubstr("epoch 0.0012  "));
  large.epoch = 12 / 300e3;
  EXPECT_THAT(FormatProgress(large), HasSubstr("epoch 0.000040  "));
  Progress slow = kProgress;
  slow.examples_per_second = 0.712;
  slow.tokens_per_second = 712;
  slow.seconds_left = 61;
  EXPECT_THAT(
      FormatProgress(slow),
      HasSubstr("0.71 examples/s  712 tokens/s  waiting 2%  1:01 left"));
}

TEST(ProgressTest, LeavesOutWhatMattersLeastInANarrowTerminal) {
  Progress progress = kProgress;
  progress.later_steps = 800;
  progress.seconds_left_in_all = 11523;
  EXPECT_EQ(FormatProgress(progress, 105),
            "step 12/400  epoch 0.30  loss 1.2346  8.1 examples/s  "
            "1:02:03 left, 3:12:03 with the runs after it");
  progress.lacks_evaluations = true;
  EXPECT_EQ(FormatProgress(progress, 126),
            "step 12/400  epoch 0.30  loss 1.2346  8.1 examples/s  1:02:03 "
            "left, 3:12:03 with the runs after it, without evaluations");
  EXPECT_EQ(FormatProgress(progress, 105),
            "step 12/400  epoch 0.30  loss 1.2346  8.1 examples/s  "
            "1:02:03 left, 3:12:03 with the runs after it");
  EXPECT_EQ(FormatProgress(kProgress, 110), FormatProgress(kProgress));
  EXPECT_EQ(FormatProgress(kProgress, 80),
            "step 12/400  epoch 0.30  loss 1.2346  lr 3.0e-05  "
            "8.1 examples/s  1:02:03 left");
  EXPECT_EQ(FormatProgress(kProgress, 60),
            "step 12/400  loss 1.2346  8.1 examples/s  1:02:03 left");
  EXPECT_EQ(FormatProgress(kProgress, 40),
            "step 12/400  loss 1.2346  1:02:03 left");
  EXPECT_EQ(FormatProgress(kProgress, 30), "step 12/400  loss 1.2346");
  EXPECT_EQ(FormatProgress(kProgress, 20), "step 12/400");
  EXPECT_EQ(FormatProgress(kProgress, 5), "step");
  for (size_t columns = 0; columns < 150; ++columns) {
    EXPECT_LT(FormatProgress(progress, columns).size(),
              std::max<size_t>(columns, 1));
  }
}

TEST(ProgressMeterTest, AveragesOverTheLastUpdates) {
  ProgressMeter meter;
  Progress progress{.step = 10, .num_steps = 30};
  meter.Add({.loss = 2,
             .seconds = 4,
             .seconds_waited = 1,
             .examples = 8,
             .tokens = 400});
  meter.Fill(&progress);
  EXPECT_DOUBLE_EQ(progress.loss, 2);
  EXPECT_DOUBLE_EQ(progress.examples_per_second, 2);
  EXPECT_DOUBLE_EQ(progress.tokens_per_second, 100);
  EXPECT_DOUBLE_EQ(progress.waiting, 0.25);
  EXPECT_DOUBLE_EQ(progress.seconds_left, 80);
  EXPECT_DOUBLE_EQ(progress.seconds_left_in_all, 80);
  progress.later_steps = 5;
  meter.Fill(&progress);
  EXPECT_DOUBLE_EQ(progress.seconds_left, 80);
  EXPECT_DOUBLE_EQ(progress.seconds_left_in_all, 100);
  for (int i = 0; i < 200; ++i) {
    meter.Add({.loss = 1, .seconds = 1, .examples = 8, .tokens = 400});
  }
  meter.Fill(&progress);
  EXPECT_NEAR(progress.loss, 1, 1e-3);
  EXPECT_NEAR(progress.examples_per_second, 8, 0.1);
  EXPECT_NEAR(progress.seconds_left, 20, 0.1);
}

TEST(ProgressMeterTest, CountsEvaluationsOnceOneWasTimed) {
  ProgressMeter meter;
  meter.Add({.loss = 1, .seconds = 2, .examples = 8, .tokens = 400});
  Progress progress{.step = 10,
                    .num_steps = 30,
                    .later_steps = 5,
                    .evaluations = 3,
                    .later_evaluations = 2};
  meter.Fill(&progress);
  EXPECT_DOUBLE_EQ(progress.seconds_left, 40);
  EXPECT_DOUBLE_EQ(progress.seconds_left_in_all, 50);
  EXPECT_TRUE(progress.lacks_evaluations);
  meter.AddEvaluation(50);
  meter.AddEvaluation(100);
  meter.Fill(&progress);
  EXPECT_DOUBLE_EQ(progress.seconds_left, 340);
  EXPECT_DOUBLE_EQ(progress.seconds_left_in_all, 550);
  EXPECT_FALSE(progress.lacks_evaluations);
}

class StreamReporterTest : public testing::Test {
 protected:
  StreamReporter Make(StreamReporter::Style style) {
    return StreamReporter(
        &stream_, style, [this] { return now_; }, [this] { return columns_; });
  }

  std::ostringstream stream_;
  double now_ = 0;
  size_t columns_ = 200;
};

TEST_F(StreamReporterTest, SaysHowFarOpeningIsIfItTakesLong) {
  StreamReporter reporter = Make(StreamReporter::Style::kLines);
  reporter.Opening({.bytes = 1000000, .num_bytes = 5000000000});
  now_ = 0.9;
  reporter.Opening({.bytes = 5000000000, .num_bytes = 5000000000});
  EXPECT_EQ(stream_.str(), "");
  // Another data set; the second begins again.
  now_ = 5;
  reporter.Opening({.bytes = 1000000, .num_bytes = 5000000000});
  EXPECT_EQ(stream_.str(), "");
  now_ = 6;
  reporter.Opening({.bytes = 1200000000, .num_bytes = 5000000000});
  EXPECT_EQ(stream_.str(),
            "looking through the data: 1.20 of 5.00 GB, 0:03 left\n");
}

TEST_F(StreamReporterTest, SaysHowFarAnAnalysisIs) {
  StreamReporter reporter = Make(StreamReporter::Style::kTerminal);
  reporter.Analysing({.records = 1, .num_records = 1000});
  now_ += 10;
  reporter.Analysing({.records = 400, .num_records = 1000});
  EXPECT_THAT(stream_.str(),
              testing::HasSubstr(
                  "analysing attention: 400 of 1000 records, 0:15 left"));
}

TEST_F(StreamReporterTest, SaysHowFarTheReadingOfARecordIs) {
  StreamReporter reporter = Make(StreamReporter::Style::kLines);
  reporter.Reading({.records = 0, .num_records = 24});
  now_ += 10;
  reporter.Reading({.records = 6, .num_records = 24});
  EXPECT_EQ(stream_.str(), "reading the record: 6 of 24 layers, 0:30 left\n");
}

TEST_F(StreamReporterTest, SaysHowFarEmbeddingIs) {
  StreamReporter reporter = Make(StreamReporter::Style::kLines);
  reporter.CheckingTexts({.records = 0, .num_records = 3});
  now_ += 10;
  reporter.CheckingTexts({.records = 2, .num_records = 3});
  reporter.CheckingTexts({.records = 3, .num_records = 3});
  // The first document is half of the work.
  reporter.Embedding({.documents = 0, .num_documents = 3, .share = 0});
  now_ += 10;
  reporter.Embedding({.documents = 0, .num_documents = 3, .share = 0.25});
  EXPECT_EQ(stream_.str(),
            "checking the texts: 2 of 3 documents, 0:05 left\n"
            "embedding: 0 of 3 documents, 0:30 left\n");
}

TEST_F(StreamReporterTest, SaysHowFarATranslationIs) {
  StreamReporter reporter = Make(StreamReporter::Style::kTerminal);
  reporter.Translating({.records = 0, .num_records = 1000});
  now_ += 10;
  reporter.Translating({.records = 400, .num_records = 1000});
  EXPECT_EQ(stream_.str(), "\rtranslating: 400 of 1000 lines, 0:15 left");
}

TEST_F(StreamReporterTest, SaysHowFarACheckIs) {
  StreamReporter reporter = Make(StreamReporter::Style::kTerminal);
  reporter.Checking({.records = 1, .num_records = 1000});
  now_ += 10;
  reporter.Checking({.records = 400, .num_records = 1000});
  EXPECT_THAT(
      stream_.str(),
      testing::HasSubstr("checking the data: 400 of 1000 records, 0:15 left"));
}

TEST_F(StreamReporterTest, SaysHowFarCountingIsAndClearsItsLine) {
  StreamReporter reporter = Make(StreamReporter::Style::kTerminal);
  reporter.Counting({.records = 1, .num_records = 1000});
  EXPECT_EQ(stream_.str(), "");
  now_ = 100;
  reporter.Counting({.records = 400, .num_records = 1000});
  const std::string line = "counting examples: 400 of 1000 records, 2:30 left";
  EXPECT_EQ(stream_.str(), "\r" + line);
  stream_.str("");
  now_ = 100.1;  // too early for another line
  reporter.Counting({.records = 1000, .num_records = 1000});
  EXPECT_EQ(stream_.str(),
            absl::StrCat("\r", std::string(line.size(), ' '), "\r"));
}

TEST_F(StreamReporterTest, SaysHowFarTokenizingIsAndClearsItsLine) {
  StreamReporter reporter = Make(StreamReporter::Style::kTerminal);
  reporter.Tokenizing({.bytes = 1, .num_bytes = 5'000'000'000});
  EXPECT_EQ(stream_.str(), "");
  now_ = 60;
  reporter.Tokenizing({.bytes = 1'250'000'000,
                       .num_bytes = 5'000'000'000,
                       .bytes_per_second = 20.83e6});
  const std::string line = "tokenizing: 1.25 of 5.00 GB, 20.8 MB/s, 3:00 left";
  EXPECT_EQ(stream_.str(), "\r" + line);
  stream_.str("");
  now_ = 60.1;
  reporter.Tokenizing({.bytes = 5'000'000'000, .num_bytes = 5'000'000'000});
  EXPECT_EQ(stream_.str(),
            absl::StrCat("\r", std::string(line.size(), ' '), "\r"));
}

TEST_F(StreamReporterTest, OverwritesItsLineOnATerminal) {
  StreamReporter reporter = Make(StreamReporter::Style::kTerminal);
  reporter.Update(kProgress);
  const std::string first = stream_.str();
  EXPECT_EQ(first, absl::StrCat("\r", FormatProgress(kProgress)));
  now_ = 0.1;  // too early
  reporter.Update(kProgress);
  EXPECT_EQ(stream_.str(), first);
  now_ = 0.3;
  reporter.Evaluating({.records = 8, .num_records = 14, .seconds_left = 90});
  const std::string evaluating = "evaluating: 8 of 14 records, 1:30 left";
  EXPECT_EQ(
      stream_.str(),
      absl::StrCat(first, "\r", evaluating,
                   std::string(first.size() - 1 - evaluating.size(), ' ')));
  stream_.str("");
  reporter.Message("accuracy 0.5");
  EXPECT_EQ(stream_.str(),
            absl::StrCat("\r", std::string(evaluating.size(), ' '),
                         "\raccuracy 0.5\n"));
}

TEST_F(StreamReporterTest, LeavesNoLineOnATerminalOnceItsWorkHasEnded) {
  // At an error or a stop.
  {
    StreamReporter reporter = Make(StreamReporter::Style::kTerminal);
    reporter.Evaluating({.records = 8, .num_records = 14, .seconds_left = 90});
  }
  const std::string stopped = "evaluating: 8 of 14 records, 1:30 left";
  const auto cleared = [](const std::string& line) {
    return absl::StrCat("\r", line, "\r", std::string(line.size(), ' '), "\r");
  };
  EXPECT_EQ(stream_.str(), cleared(stopped));
  // At its end.
  stream_.str("");
  StreamReporter reporter = Make(StreamReporter::Style::kTerminal);
  reporter.Evaluating({.records = 14, .num_records = 14});
  EXPECT_EQ(stream_.str(), cleared("evaluating: 14 of 14 records, 0:00 left"));
  stream_.str("");
  reporter.Opening({.bytes = 1, .num_bytes = 5'000'000'000});
  now_ = 60;
  reporter.Opening({.bytes = 5'000'000'000, .num_bytes = 5'000'000'000});
  EXPECT_EQ(stream_.str(),
            cleared("looking through the data: 5.00 of 5.00 GB, 0:00 left"));
}

TEST_F(StreamReporterTest, SaysThatAWarningIsOneOnALineOfItsOwn) {
  StreamReporter reporter = Make(StreamReporter::Style::kTerminal);
  reporter.Update(kProgress);
  stream_.str("");
  reporter.WarnOnce("no dev files");
  reporter.WarnOnce("no dev files");
  const std::string written = stream_.str();
  EXPECT_THAT(written, testing::EndsWith("\rrealetc: warning: no dev files\n"));
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 1);
}

TEST_F(StreamReporterTest, StaysInOneLineOfEachTerminal) {
  for (const size_t columns : {100, 80, 40, 24, 12, 1}) {
    columns_ = columns;
    StreamReporter reporter = Make(StreamReporter::Style::kTerminal);
    reporter.Opening({.bytes = 1'000'000, .num_bytes = 5'000'000'000});
    reporter.Counting({.records = 1, .num_records = 1000});
    reporter.Tokenizing({.bytes = 1, .num_bytes = 5'000'000'000});
    now_ += 60;
    reporter.Opening({.bytes = 1'200'000'000, .num_bytes = 5'000'000'000});
    now_ += 40;
    reporter.Counting({.records = 400, .num_records = 1000});
    now_ += 60;
    reporter.Tokenizing({.bytes = 1'250'000'000,
                         .num_bytes = 5'000'000'000,
                         .bytes_per_second = 20.83e6});
    for (int i = 0; i < 150; ++i) {
      now_ += 1;
      reporter.Update(kProgress);
    }
    now_ += 60;
    reporter.Evaluating({.records = 8, .num_records = 14, .predicts = true});
    // The terminal becomes narrower.
    columns_ = 10;
    now_ += 60;
    reporter.Update(kProgress);
  }
  const std::string text = stream_.str();
  EXPECT_EQ(text.find('\n'), std::string::npos);
  size_t longest = 0;
  size_t lines = 0;
  for (const auto line : absl::StrSplit(text, '\r', absl::SkipEmpty())) {
    longest = std::max(longest, line.size());
    ++lines;
  }
  EXPECT_EQ(longest, 94u);
  EXPECT_EQ(lines, 6u * (3 + 150 + 2 + 1));  // the last one clears its line
  EXPECT_THAT(text, HasSubstr("\rcounting examples: 40%, 2:30 left"));
  EXPECT_THAT(text, ContainsRegex("\rpredicting: 8 of 14 *\r"));
}

TEST_F(StreamReporterTest, WritesLinesNowAndThenElsewhere) {
  StreamReporter reporter = Make(StreamReporter::Style::kLines);
  Progress progress = kProgress;
  for (now_ = 0; now_ < 3600; ++now_) {
    reporter.Update(progress);
  }
  progress.step = progress.num_steps;
  reporter.Update(progress);
  const std::string text = stream_.str();
  // Lines at 0, 1, 3, 7, 15, 31, 63 and then each minute, and at the end.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7 + 58 + 1);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

}  // namespace
}  // namespace etc
