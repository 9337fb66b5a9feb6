// The choices of a run beyond its updates: the metric that compares
// checkpoints, early stopping, an evaluation before the first update, how many
// checkpoints are kept and how often they are written, frozen parameters and
// rates of their own. Each of them that training depends on is stopped in the
// middle and resumed, to the bits of a run that was not. Dropout is on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "tasks/train/dry_run.h"
#include "tests/support/recorded_operations.h"
#include "tests/tasks/train/toy_run.h"
#include "tests/tasks/train/toy_run_fixture.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class RunChoicesTest : public ToyRunTest {
 protected:
  RunChoicesTest() { json_["train"]["evaluate_every"] = 2; }

  std::string Seed(const std::string& name) const {
    return Output(name) + "/seed-1";
  }

  // Names of the checkpoints of a run, without the links.
  std::set<std::string> Checkpoints(const std::string& name) const {
    std::set<std::string> names;
    for (const auto& entry :
         fs::directory_iterator(Seed(name) + "/checkpoints")) {
      if (absl::StartsWith(entry.path().filename().string(), "step-")) {
        names.insert(entry.path().filename().string());
      }
    }
    return names;
  }

  NamedTensors Weights(const std::string& name,
                       const std::string& checkpoint = "last") const {
    return ReadAll(absl::StrCat(Seed(name), "/checkpoints/", checkpoint,
                                "/model.safetensors"));
  }

  nlohmann::json ResultOf(const std::string& name) const {
    return nlohmann::json::parse(*ReadFile(Seed(name) + "/result.json"));
  }

  // Runs once without a stop, and once stopped after the update `stop_after`;
  // both should be the same.
  void ExpectGoesOnBitForBit(int64_t stop_after, size_t updates) {
    const std::string name = absl::StrCat("stopped-", stop_after);
    FakeReporter straight;
    const auto whole = Run("straight", &straight, fs::exists(Seed("straight")));
    ASSERT_TRUE(whole.ok()) << whole.status();
    FakeReporter first;
    first.stop_after = stop_after;
    const auto stopped = Run(name, &first);
    ASSERT_TRUE(stopped.ok()) << stopped.status();
    EXPECT_FALSE(stopped->finished);
    FakeReporter second;
    const auto resumed = Run(name, &second, /*resume=*/true);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_TRUE(resumed->finished);
    EXPECT_EQ(second.updates.size(), updates - static_cast<size_t>(stop_after));
    ExpectSameRun(Seed(name), Seed("straight"));
  }

  // The message that a run is refused with, before it makes an update.
  std::string Refusal() {
    FakeReporter reporter;
    const absl::Status status = Run("refused", &reporter).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(reporter.updates, IsEmpty());
    EXPECT_FALSE(fs::exists(Seed("refused") + "/checkpoints"));
    return std::string(status.message());
  }
};

// --- The program that trains -------------------------------------------------

// A run that another version resumes; the settings are the same for both.
TEST_F(RunChoicesTest, NotesTheProgramInEachCheckpointAndInTheResults) {
  FakeReporter first;
  first.stop_after = 3;
  program_ = {.version = "0.1.0", .commit = "1641a7b"};
  ASSERT_TRUE(Run("run", &first).ok());
  const auto noted = [&] {
    return ReadTrainingState(
        absl::StrCat(Seed("run"), "/checkpoints/last/", kTrainingStateFile));
  };
  auto checkpoint = noted();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE(checkpoint->program == program_);
  EXPECT_FALSE(checkpoint->settings.contains("program"));

  FakeReporter second;
  program_ = {.version = "0.2.0"};
  const auto resumed = Run("run", &second, /*resume=*/true);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  checkpoint = noted();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE(checkpoint->program == program_);
  const nlohmann::json expected = {{"version", "0.2.0"}};
  EXPECT_EQ(ResultOf("run")["program"], expected);
  const auto summary =
      nlohmann::json::parse(*ReadFile(Output("run") + "/summary.json"));
  EXPECT_EQ(summary["runs"][0]["program"], expected);

  program_ = {};
  FakeReporter third;
  ASSERT_TRUE(Run("of-library", &third).ok());
  EXPECT_FALSE(ResultOf("of-library").contains("program"));
  ExpectSameRun(Seed("run"), Seed("of-library"));
}

// --- The first records -------------------------------------------------------

// A trial on 8 of 37 records is the run on a file that has these alone.
TEST_F(RunChoicesTest, UsesTheFirstRecordsAsIfThereWereNoMore) {
  json_["train"]["max_examples"] = 8;
  FakeReporter first;
  const auto trial = Run("trial", &first);
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_THAT(first.messages,
              Contains(HasSubstr("the first 8 of 37 training records, 11 for "
                                 "evaluation")));

  const std::string lines = ToyRecords(37, 1);
  size_t end = 0;
  for (int record = 0; record < 8; ++record) {
    end = lines.find('\n', end) + 1;
  }
  temporary_.Write("few.jsonl", lines.substr(0, end));
  json_["train"].erase("max_examples");
  json_["data"]["train"] = {temporary_.File("few.jsonl")};
  FakeReporter second;
  ASSERT_TRUE(Run("few", &second).ok());
  EXPECT_EQ(first.updates.size(), second.updates.size());
  ExpectSameRun(Seed("trial"), Seed("few"));
}

TEST_F(RunChoicesTest, UsesAllRecordsWhereThereAreNoMoreThanAskedFor) {
  FakeReporter all;
  ASSERT_TRUE(Run("all", &all).ok());
  json_["train"]["max_examples"] = 100;
  FakeReporter most;
  ASSERT_TRUE(Run("most", &most).ok());
  EXPECT_THAT(most.messages, Contains(HasSubstr(": 37 training records, ")));
  ExpectSameRun(Seed("most"), Seed("all"));
}

TEST_F(RunChoicesTest, GoesOnWithTheFirstRecordsBitForBit) {
  json_["train"]["max_examples"] = 16;
  FakeReporter straight;
  const auto whole = Run("whole", &straight);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ExpectGoesOnBitForBit(/*stop_after=*/1, straight.updates.size());

  // Other records are another run, unless that is meant.
  json_["train"]["max_examples"] = 20;
  FakeReporter other;
  EXPECT_THAT(Run("whole", &other, /*resume=*/true).status().message(),
              HasSubstr("another train.max_examples: it began with 16, now "
                        "it is 20"));
}

TEST_F(RunChoicesTest, RefusesFewerRecordsThanABatch) {
  json_["train"]["max_examples"] = 1;
  FakeReporter reporter;
  EXPECT_THAT(Run("refused", &reporter).status().message(),
              HasSubstr("which is less than one batch of 8"));
  EXPECT_FALSE(fs::exists(Seed("refused") + "/checkpoints"));
}

TEST_F(RunChoicesTest, CountsTheFirstRecordsWhateverIsSaidOfAll) {
  json_["train"].erase("steps");
  json_["train"]["max_examples"] = 8;
  json_["train"]["num_train_examples"] = 44000;
  FakeReporter reporter;
  const auto trial = Run("trial", &reporter);
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_EQ(trial->runs[0].steps, 3);  // 8 / 8 * 3
  EXPECT_THAT(reporter.warnings,
              Each(Not(HasSubstr("train.num_train_examples"))));
}

TEST_F(RunChoicesTest, WarnsOfOtherExamplesThanThereAre) {
  json_["train"]["num_train_examples"] = 44;
  const char* const warning =
      "train.num_train_examples, by which epochs are counted, is 44, "
      "but data.train comes to 37";
  FakeReporter reporter;
  ASSERT_TRUE(Run("run", &reporter).ok());
  EXPECT_THAT(reporter.warnings, Contains(StartsWith(warning)));

  json_["output"] = Output("tried");
  const auto config = RunConfigFromJson(json_, "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  FakeReporter dry;
  ASSERT_TRUE(
      TryTrain(*config, ToyTask(config->model), {.context = {.reporter = &dry}})
          .ok());
  EXPECT_THAT(dry.warnings, Contains(StartsWith(warning)));
  EXPECT_THAT(dry.messages, Contains(HasSubstr("37 training records, 11 for "
                                               "evaluation; 12 updates")));
}

TEST_F(RunChoicesTest, WarnsOfEpochsThatCountRecordsOfSeveralExamples) {
  temporary_.Write(
      "train.jsonl",
      absl::StrReplaceAll(ToyRecords(37, 1), {{"}\n", ",\"examples\":3}\n"}}));
  json_["output"] = Output("tried");
  json_["train"].erase("steps");
  const auto warnings = [&](bool counts_records) {
    const auto config = RunConfigFromJson(json_, "toy");
    EXPECT_TRUE(config.ok()) << config.status();
    ToyTask task(config->model);
    task.counts_records = counts_records;
    FakeReporter reporter;
    const auto tried =
        TryTrain(*config, task, {.context = {.reporter = &reporter}});
    EXPECT_TRUE(tried.ok()) << tried.status();
    return reporter.warnings;
  };
  const auto warned = Contains(
      "train.epochs counts 37 records, of which the first 10 give 30 "
      "examples: set train.num_train_examples to the number of examples that "
      "`realetc inspect --count` prints");
  EXPECT_THAT(warnings(/*counts_records=*/false), warned);
  EXPECT_THAT(warnings(/*counts_records=*/true), Not(warned));

  json_["train"]["num_train_examples"] = 111;
  EXPECT_THAT(warnings(/*counts_records=*/false),
              Each(Not(StartsWith("train."))));
  json_["train"].erase("num_train_examples");
  json_["train"]["steps"] = 12;
  EXPECT_THAT(warnings(/*counts_records=*/false),
              Each(Not(StartsWith("train."))));
}

TEST_F(RunChoicesTest, WarnsOfADiskThatIsTooSmallForItsCheckpoints) {
  json_["output"] = Output("tried");
  FakeReporter reporter;
  const auto dry_run = [&] {
    const auto config = RunConfigFromJson(json_, "toy");
    ASSERT_TRUE(config.ok()) << config.status();
    reporter.warnings.clear();
    ASSERT_TRUE(TryTrain(*config, ToyTask(config->model),
                         {.context = {.reporter = &reporter}})
                    .ok());
  };
  const auto is_warning = StartsWith("checkpoints of ");
  // Hundreds of TB, of runs that make so many.
  json_["train"]["keep_last"] = 1'000'000;
  json_["train"]["keep_best"] = 1'000'000;
  std::vector<int64_t> seeds(1000);
  std::iota(seeds.begin(), seeds.end(), 1);
  json_["train"]["seeds"] = seeds;
  dry_run();
  EXPECT_THAT(reporter.warnings, Each(Not(is_warning)));
  json_["train"]["steps"] = 10'000'000;
  json_["train"]["checkpoint_every"] = 1;
  dry_run();
  EXPECT_THAT(reporter.warnings, Contains(is_warning));
}

// The whole of data.cache_megabytes, by default 1 GB, would not fit.
TEST_F(RunChoicesTest, PlansMemoryForTheExamplesThatThereAre) {
  json_["train"]["memory_gigabytes"] = 1.2;
  FakeReporter reporter;
  ASSERT_TRUE(Run("run", &reporter).ok());
  EXPECT_THAT(reporter.warnings, Each(Not(HasSubstr("train.memory_plan"))));
}

// --- The options of the task -------------------------------------------------

// Weights of other labels would be taken in order, without a word, and scores
// with another margin compared.
TEST_F(RunChoicesTest, GoesOnWithTheSameOptionsOfTheTaskAlone) {
  json_["toy"] = {{"labels", {"no", "yes"}}, {"margin", 1}};
  FakeReporter first;
  first.stop_after = 3;
  ASSERT_TRUE(Run("run", &first).ok());
  allow_changes_ = {"toy"};
  for (const auto& [field, value] :
       {std::pair{"labels", nlohmann::json{"yes", "no"}},
        std::pair{"margin", nlohmann::json(2)}}) {
    nlohmann::json& option = json_["toy"][field];
    const nlohmann::json before = std::exchange(option, value);
    FakeReporter refused;
    EXPECT_THAT(
        Run("run", &refused, /*resume=*/true).status().message(),
        AllOf(HasSubstr(absl::StrCat("another toy.", field, ": it began with ",
                                     before.dump())),
              HasSubstr("begin a new run with --set init=RUN"),
              Not(HasSubstr("--allow-changes"))));
    EXPECT_THAT(refused.updates, IsEmpty());
    option = before;
  }
  FakeReporter second;
  const auto resumed = Run("run", &second, /*resume=*/true);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(second.updates.size(), 9u);
}

// --- Replacing a run
// ----------------------------------------------------------

TEST_F(RunChoicesTest, ReplacesARunAndLeavesOtherFiles) {
  json_["train"]["seeds"] = {1, 2};
  json_["train"]["tensorboard"] = true;
  FakeReporter first;
  ASSERT_TRUE(Run("run", &first).ok());
  json_["train"].erase("tensorboard");
  temporary_.Write("run/notes.txt", "mine");
  const std::string foreign = temporary_.Write(
      "run/seed-2/tensorboard/events.out.tfevents.7.x.1.0", "mine as well");
  temporary_.Write("run/seed-1/notes.txt", "mine too");
  FakeReporter refused;
  EXPECT_THAT(Run("run", &refused).status().message(),
              HasSubstr("has a run already: resume it, replace it "
                        "(--overwrite), or choose another output directory"));

  // Stopped after its first update, it has replaced both seeds.
  json_["train"]["learning_rate"] = 0.02;
  overwrite_ = true;
  FakeReporter second;
  second.stop_after = 1;
  const auto stopped = Run("run", &second);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_THAT(second.messages,
              AllOf(Contains("removed the earlier run in " + Seed("run")),
                    Contains("removed the earlier run in " + Output("run") +
                             "/seed-2")));
  EXPECT_THAT(Checkpoints("run"), ::testing::ElementsAre("step-00000001"));
  EXPECT_FALSE(fs::exists(Output("run") + "/seed-2/metrics.jsonl"));
  EXPECT_FALSE(fs::exists(Output("run") + "/seed-1/result.json"));
  EXPECT_FALSE(fs::exists(Output("run") + "/summary.json"));
  EXPECT_TRUE(fs::is_empty(Seed("run") + "/tensorboard"));
  EXPECT_EQ(*ReadFile(foreign), "mine as well");
  const std::string folder = Output("run") + "/seed-2/tensorboard";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);

  overwrite_ = false;
  FakeReporter third;
  const auto resumed = Run("run", &third, /*resume=*/true);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  FakeReporter fourth;
  ASSERT_TRUE(Run("anew", &fourth).ok());
  for (const std::string seed : {"/seed-1", "/seed-2"}) {
    ExpectSameRun(Output("run") + seed, Output("anew") + seed);
  }
  EXPECT_EQ(*ReadFile(Output("run") + "/notes.txt"), "mine");
  EXPECT_EQ(*ReadFile(Seed("run") + "/notes.txt"), "mine too");
}

// As by a kill when the first checkpoint was to be deleted.
TEST_F(RunChoicesTest, TakesNoEarlierRunAfterAnInterruptedRemoval) {
  json_["train"]["seeds"] = {1, 2};
  FakeReporter reporter;
  ASSERT_TRUE(Run("run", &reporter).ok());
  json_["train"]["learning_rate"] = 0.02;
  ASSERT_TRUE(Run("anew", &reporter).ok());
  overwrite_ = true;
  {
    RecordedOperations operations(Output("run"));
    operations.failing_call = "rename to seed-1/checkpoints/step-";
    const ScopedFileOperations scope(&operations);
    EXPECT_FALSE(Run("run", &reporter).ok());
  }
  overwrite_ = false;
  FakeReporter second;
  const auto resumed = Run("run", &second, /*resume=*/true);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(second.updates.size(), 24u);
  for (const std::string seed : {"/seed-1", "/seed-2"}) {
    ExpectSameRun(Output("run") + seed, Output("anew") + seed);
  }
  EXPECT_EQ(Checkpoints("run"), Checkpoints("anew"));
}

TEST_F(RunChoicesTest, ReplacesNothingUnlessAllChecksPass) {
  FakeReporter first;
  ASSERT_TRUE(Run("run", &first).ok());
  ASSERT_TRUE(Run("same", &first).ok());
  overwrite_ = true;
  const auto refusal = [&] {
    FakeReporter reporter;
    const absl::Status status = Run("run", &reporter).status();
    EXPECT_THAT(reporter.updates, IsEmpty());
    ExpectSameRun(Seed("run"), Seed("same"));
    EXPECT_TRUE(fs::exists(Output("run") + "/summary.json"));
    return std::string(status.message());
  };
  json_["train"]["main_metric"] = "acuracy";
  EXPECT_THAT(refusal(), HasSubstr("did you mean \"accuracy\"?"));
  json_["train"].erase("main_metric");
  json_["train"]["frozen"] = {"no.such.parameter"};
  EXPECT_THAT(refusal(), HasSubstr("no.such.parameter"));
  json_["train"].erase("frozen");
  const std::string copy = Seed("run") + "/checkpoints/copy";
  fs::create_directory(copy);
  EXPECT_THAT(refusal(), HasSubstr(copy + " is not of the run that is to be "
                                          "replaced: move it away"));
  fs::remove(copy);
  // The event files in it are to be removed.
  const std::string events = Seed("run") + "/tensorboard";
  ASSERT_TRUE(WriteFileAtomically(events, "a file").ok());
  EXPECT_THAT(refusal(), HasSubstr(events + " is no directory"));
  fs::remove(events);
  json_["data"]["train"] = {temporary_.File("missing.jsonl")};
  EXPECT_THAT(refusal(), HasSubstr("missing.jsonl"));
}

TEST_F(RunChoicesTest, ReplacesNothingIfItIsStoppedBefore) {
  FakeReporter first;
  ASSERT_TRUE(Run("run", &first).ok());
  ASSERT_TRUE(Run("same", &first).ok());
  overwrite_ = true;
  FakeReporter stopped;
  stopped.stop_at_message = "seed 1";
  EXPECT_TRUE(absl::IsCancelled(Run("run", &stopped).status()));
  ExpectSameRun(Seed("run"), Seed("same"));
  EXPECT_TRUE(fs::exists(Output("run") + "/summary.json"));
}

TEST_F(RunChoicesTest, OverwritesWhereThereIsNoRun) {
  FakeReporter first;
  ASSERT_TRUE(Run("plain", &first).ok());
  overwrite_ = true;
  FakeReporter second;
  ASSERT_TRUE(Run("overwriting", &second).ok());
  ExpectSameRun(Seed("overwriting"), Seed("plain"));
}

// --- A dry run
// ----------------------------------------------------------------

TEST_F(RunChoicesTest, TriesARunAndWritesNothing) {
  json_["output"] = Output("tried");
  json_["train"]["evaluate_at_start"] = true;
  const auto config = RunConfigFromJson(json_, "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  const ToyTask task(config->model);
  const auto tried = TryTrain(*config, task, {});
  ASSERT_TRUE(tried.ok()) << tried.status();
  EXPECT_EQ(tried->num_steps, 12);
  EXPECT_EQ(tried->num_examples, 37);
  EXPECT_EQ(tried->num_dev_records, 11);
  EXPECT_EQ(tried->num_evaluations, 7);
  EXPECT_GT(tried->num_parameters, 1000);
  EXPECT_EQ(tried->examples, 3);
  EXPECT_EQ(tried->evaluated_examples, 8);
  EXPECT_GT(tried->seconds, 0);
  // 12 updates of 3 micro-batches, and evaluations besides.
  EXPECT_GT(tried->total_seconds, 36 * tried->seconds);
  EXPECT_GT(tried->step_bytes, 1e6);
  EXPECT_GT(tried->evaluation_bytes, 1e6);
  // The last, the best and the one being written, with two moments.
  EXPECT_EQ(tried->checkpoint_bytes,
            3 * 3 * 4 * static_cast<double>(tried->num_parameters));
  EXPECT_NEAR(tried->loss, std::log(2), 0.5);
  EXPECT_FALSE(fs::exists(Output("tried")));

  // The run is the same after it.
  FakeReporter after;
  ASSERT_TRUE(Run("tried", &after).ok());
  FakeReporter alone;
  ASSERT_TRUE(Run("alone", &alone).ok());
  ExpectSameRun(Seed("tried"), Seed("alone"));
}

// One of 40 records, which are five batches, is longer than all others and was
// cut. With the longest lengths that are allowed a batch is enough, which is
// cut from a pool of 16.
TEST_F(RunChoicesTest, TriesTheLargestMicroBatchAndSaysWhatWasCut) {
  const std::string lines =
      absl::StrCat(ToyRecords(39, 1), "{\"id\": \"long\", \"tokens\": [",
                   absl::StrJoin(std::vector<int>(50, 2), ","),
                   "], \"is_truncated\": true}\n");
  temporary_.Write("train.jsonl", lines);
  json_["output"] = Output("tried");
  DryRun tried;
  const auto messages = [&] {
    const auto config = RunConfigFromJson(json_, "toy");
    EXPECT_TRUE(config.ok()) << config.status();
    FakeReporter reporter;
    const auto run = TryTrain(*config, ToyTask(config->model),
                              {.context = {.reporter = &reporter}});
    EXPECT_TRUE(run.ok()) << run.status();
    tried = run.value_or(DryRun());
    return reporter.messages;
  };
  EXPECT_THAT(messages(), Contains(StartsWith("training: 1 record was cut: ")));
  // The others have at most 9 long tokens, and 2 global ones.
  EXPECT_LE(tried.tokens, 3 * 11);
  EXPECT_GE(tried.largest_tokens, 52);
  EXPECT_LE(tried.largest_examples, 3);
  EXPECT_GT(tried.largest_seconds, 0);
  EXPECT_NEAR(tried.largest_total_seconds - tried.total_seconds,
              36 * (tried.largest_seconds - tried.seconds),
              1e-9 * tried.largest_total_seconds);

  temporary_.Write("train.jsonl",
                   absl::StrReplaceAll(ToyRecords(40, 1),
                                       {{"}\n", ",\"is_truncated\":true}\n"}}));
  json_["data"]["max_long_length"] = 1 << 20;
  EXPECT_THAT(messages(),
              Contains(StartsWith("training, 16 of 40 records read: 16 records "
                                  "were cut: ")));
}

TEST_F(RunChoicesTest, TriesOneSeedAndEstimatesTheTimeOfAll) {
  json_["output"] = Output("tried");
  json_["train"]["seeds"] = {1, 2, 3};
  const auto config = RunConfigFromJson(json_, "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  const ToyTask task(config->model);
  const auto tried = TryTrain(*config, task, {});
  ASSERT_TRUE(tried.ok()) << tried.status();
  EXPECT_EQ(tried->num_seeds, 3);
  EXPECT_EQ(tried->evaluated_examples, 8);
  // 12 updates of 3 micro-batches, and 6 evaluations of 11 examples.
  const double of_seed =
      36 * tried->seconds + 6 * 11.0 / 8 * tried->evaluation_seconds;
  EXPECT_NEAR(tried->total_seconds, 3 * of_seed, 1e-9 * of_seed);
}

TEST_F(RunChoicesTest, TriesARunWithTheErrorsThatItWouldHave) {
  const auto error = [&] {
    const auto config = RunConfigFromJson(json_, "toy");
    EXPECT_TRUE(config.ok()) << config.status();
    ToyTask task(config->model);
    task.nan_record = nan_record_;
    return std::string(TryTrain(*config, task, {}).status().message());
  };
  json_["output"] = Output("run");
  FakeReporter reporter;
  ASSERT_TRUE(Run("run", &reporter).ok());
  EXPECT_THAT(error(), HasSubstr("has a run already"));
  json_["output"] = Output("other");
  json_["train"]["frozen"] = {"no.such.parameter"};
  EXPECT_THAT(error(), HasSubstr("no.such.parameter"));
  json_["train"].erase("frozen");
  json_["train"]["main_metric"] = "acuracy";
  EXPECT_THAT(error(), HasSubstr("did you mean \"accuracy\"?"));
  json_["train"]["main_metric"] = "correct";
  EXPECT_EQ(error(), "");
  json_["train"].erase("main_metric");
  json_["train"]["batch_size"] = 38;
  EXPECT_THAT(error(), HasSubstr("less than one batch of 38"));
  json_["train"]["batch_size"] = 8;
  json_["data"]["train"] = {temporary_.File("missing.jsonl")};
  EXPECT_THAT(error(),
              AllOf(StartsWith("data.train: "), HasSubstr("missing.jsonl")));
  EXPECT_FALSE(fs::exists(Output("other")));
}

// Checkpoints need such a loss: the updates before the first would be lost.
TEST_F(RunChoicesTest, NeedsALossInEvaluationModeBeforeTheFirstUpdate) {
  repeats_in_evaluation_ = true;
  json_["output"] = Output("run");
  const auto config = RunConfigFromJson(json_, "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  ToyTask task(config->model);
  task.repeats_in_evaluation = true;
  EXPECT_THAT([&] { static_cast<void>(TryTrain(*config, task, {})); },
              testing::ThrowsMessage<c10::Error>(
                  HasSubstr("the head's losses in evaluation mode: ")));
  FakeReporter reporter;
  const absl::Status status = Run("run", &reporter).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(
      std::string(status.message()),
      StartsWith("internal error: the head's losses in evaluation mode: "));
  EXPECT_TRUE(reporter.updates.empty());
}

// --- Early stopping ----------------------------------------------------------

// No score rises by 100: the evaluation after 2 updates is the last one that
// improves, and those after 4 and 6 do not.
TEST_F(RunChoicesTest, EndsEarlyAndGoesOnBitForBit) {
  json_["train"]["early_stopping"] = 2;
  json_["train"]["early_stopping_improvement"] = 100;
  for (const int64_t stop_after : {1, 3, 4, 5}) {
    SCOPED_TRACE(stop_after);
    ExpectGoesOnBitForBit(stop_after, /*updates=*/6);
  }
  EXPECT_EQ(ResultOf("straight")["steps"], 6);
  EXPECT_EQ(ResultOf("straight")["end_reason"],
            "accuracy did not improve by more than 100 in 2 evaluations");
  EXPECT_EQ(ResultOf("straight"), [&] {
    nlohmann::json result = ResultOf("stopped-5");
    result["directory"] = ResultOf("straight")["directory"];
    return result;
  }());
}

TEST_F(RunChoicesTest, SaysThatItEndedEarlyAndGoesOnWithMorePatience) {
  FakeReporter reporter;
  ASSERT_TRUE(Run("whole", &reporter).ok());
  EXPECT_FALSE(ResultOf("whole").contains("end_reason"));

  json_["train"]["early_stopping"] = 1;
  json_["train"]["early_stopping_improvement"] = 100;
  FakeReporter early;
  ASSERT_TRUE(Run("run", &early).ok());
  EXPECT_EQ(early.updates.size(), 4u);
  EXPECT_THAT(early.messages,
              Contains("stopped early, after 4 of 12 updates: accuracy did not "
                       "improve by more than 100 in 1 evaluation"));
  // A run that has ended stays as it is.
  FakeReporter again;
  const auto ended = Run("run", &again, /*resume=*/true);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_TRUE(ended->finished);
  EXPECT_THAT(again.updates, IsEmpty());

  json_["train"]["early_stopping"] = 0;
  FakeReporter rest;
  ASSERT_TRUE(Run("run", &rest, /*resume=*/true).ok());
  EXPECT_EQ(rest.updates.size(), 8u);
  ExpectSameTensors(Seed("run") + "/checkpoints/last/model.safetensors",
                    Seed("whole") + "/checkpoints/last/model.safetensors");
  EXPECT_FALSE(ResultOf("run").contains("end_reason"));
}

TEST(EarlyStoppingTest, CountsEvaluationsSinceTheLastImprovement) {
  const TrainConfig early = {.early_stopping = 2,
                             .early_stopping_improvement = 0.5};
  const MainMetric loss = {.name = "loss", .lower_is_better = true};
  TrainingState state;
  const auto evaluate = [&](double score) {
    CountStale(early, loss, {{"loss", score}}, &state);
    return HasEndedEarly(early, state);
  };
  EXPECT_FALSE(evaluate(3));
  EXPECT_FALSE(evaluate(2.5));  // by 0.5, not by more
  EXPECT_FALSE(evaluate(2.25));
  EXPECT_EQ(state.improved_score, 2.25);
  EXPECT_FALSE(evaluate(std::nan("")));
  EXPECT_EQ(state.stale_evaluations, 1);
  const auto read = StateFromJson(StateToJson(state), "state");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->improved_score, 2.25);
  EXPECT_EQ(read->stale_evaluations, 1);
  EXPECT_TRUE(evaluate(2));
  EXPECT_FALSE(HasEndedEarly({}, state));
}

// --- The main metric ---------------------------------------------------------

TEST_F(RunChoicesTest, ComparesByTheMetricAndTheDirectionThatItIsGiven) {
  json_["train"]["main_metric"] = "correct";
  json_["train"]["main_metric_direction"] = "min";
  json_["train"]["keep_last"] = 12;
  FakeReporter reporter;
  const auto result = Run("run", &reporter);
  ASSERT_TRUE(result.ok()) << result.status();
  double least = 1e9;
  int64_t step_of_least = 0;
  for (const nlohmann::json& line : MetricsLines(Seed("run"))) {
    if (line.contains("evaluation") && line["evaluation"]["correct"] <= least) {
      least = line["evaluation"]["correct"];
      step_of_least = line["step"];
    }
  }
  EXPECT_EQ(result->runs[0].best_step, step_of_least);
  EXPECT_EQ(FindMetric(result->runs[0].best, "correct"), least);
  const auto summary =
      nlohmann::json::parse(*ReadFile(Output("run/summary.json")));
  EXPECT_EQ(summary["main_metric"], "correct");
  EXPECT_EQ(summary["main_metric_direction"], "min");
  EXPECT_TRUE(ReadRunSummary(Output("run"))->lower_is_better);
  EXPECT_THAT(reporter.messages, Contains(HasSubstr("updates: correct ")));
}

TEST_F(RunChoicesTest, RefusesAMetricThatTheTaskHasNot) {
  json_["train"]["main_metric"] = "acuracy";
  EXPECT_THAT(Refusal(),
              HasSubstr("train.main_metric should be \"accuracy\" or "
                        "\"correct\", the scores of an evaluation, but is "
                        "\"acuracy\"; did you mean \"accuracy\"?"));
  json_["train"]["main_metric"] = "accuracy";
  json_["data"]["dev"] = nlohmann::json::array();
  EXPECT_THAT(Refusal(), HasSubstr("toy: train.main_metric needs evaluations"));
}

// `count` records without an answer, with ids from `first` on.
std::string RecordsWithoutAnswers(int64_t count, int64_t first) {
  std::string lines;
  for (int64_t i = first; i < first + count; ++i) {
    absl::StrAppend(&lines, R"({"id": ")", i,
                    R"(", "tokens": [2, 7], "has_answer": false})", "\n");
  }
  return lines;
}

// The run itself would end at its first evaluation, and could not go on.
TEST_F(RunChoicesTest, RefusesDataWithoutAnswersWhereScoresAreNeeded) {
  json_["data"]["dev"] = {
      temporary_.Write("test.jsonl", RecordsWithoutAnswers(3, 0))};
  json_["train"]["early_stopping"] = 1;
  EXPECT_THAT(Refusal(),
              HasSubstr("toy: train.early_stopping needs scores, but no record "
                        "of data.dev has an answer"));
  json_["train"].erase("early_stopping");
  json_["train"]["main_metric"] = "correct";
  EXPECT_THAT(Refusal(), HasSubstr("toy: train.main_metric needs scores"));
}

// The first eight are looked at first.
TEST_F(RunChoicesTest, FindsAMisspeltMetricBehindRecordsWithoutAnswers) {
  json_["data"]["dev"] = {temporary_.Write(
      "late.jsonl", RecordsWithoutAnswers(8, 100) + ToyRecords(8, 2))};
  json_["train"]["main_metric"] = "acuracy";
  EXPECT_THAT(Refusal(), HasSubstr("did you mean \"accuracy\"?"));
  json_["train"]["main_metric"] = "accuracy";
  FakeReporter reporter;
  EXPECT_TRUE(Run("late", &reporter).ok());
}

// Scores of some records alone are not known from the first few.
TEST_F(RunChoicesTest, TakesAMetricThatTheFirstRecordsLack) {
  class LateScore : public ToyPredictions {
   public:
    Metrics Score() const override {
      Metrics metrics = ToyPredictions::Score();
      if (logits().size(0) > 10) {
        metrics.emplace_back("late", 0.5);
      }
      return metrics;
    }
  };
  class TaskWithLateScore : public ToyTask {
   public:
    using ToyTask::ToyTask;
    std::unique_ptr<TaskPredictions> MakePredictions() const override {
      return std::make_unique<LateScore>();
    }
  };
  json_["output"] = Output("run");
  const auto train = [&](const std::string& metric) {
    json_["train"]["main_metric"] = metric;
    const auto config = RunConfigFromJson(json_, "toy");
    EXPECT_TRUE(config.ok()) << config.status();
    const TaskWithLateScore task(config->model);
    const auto tried = TryTrain(*config, task, {});
    auto result = TrainRuns(*config, task, {});
    EXPECT_EQ(tried.status(), result.status());
    return result;
  };
  EXPECT_THAT(train("lat").status().message(),
              HasSubstr("did you mean \"late\"?"));
  const auto result = train("late");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(FindMetric(result->runs[0].best, "late"), 0.5);
}

// --- An evaluation at the start ----------------------------------------------

TEST_F(RunChoicesTest, EvaluatesTheFirstWeightsAndTrainsAsBefore) {
  FakeReporter without;
  ASSERT_TRUE(Run("without", &without).ok());
  json_["train"]["evaluate_at_start"] = true;
  FakeReporter reporter;
  ASSERT_TRUE(Run("straight", &reporter).ok());
  const auto lines = MetricsLines(Seed("straight"));
  EXPECT_EQ(lines[0]["step"], 0);
  EXPECT_TRUE(lines[0]["evaluation"].contains("accuracy"));
  const auto others = MetricsLines(Seed("without"));
  EXPECT_EQ(std::vector<nlohmann::json>(lines.begin() + 1, lines.end()),
            others);
  ExpectSameTensors(Seed("straight") + "/checkpoints/last/model.safetensors",
                    Seed("without") + "/checkpoints/last/model.safetensors");
  EXPECT_THAT(reporter.messages,
              Contains(StartsWith("evaluation after 0 updates: accuracy ")));

  // Stopped within that evaluation, and after it.
  FakeReporter first;
  first.stop_after_evaluation_batch = 1;
  const auto stopped = Run("stopped", &first);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(stopped->runs[0].steps, 0);
  FakeReporter second;
  ASSERT_TRUE(Run("stopped", &second, /*resume=*/true).ok());
  ExpectSameRun(Seed("stopped"), Seed("straight"));
  ExpectGoesOnBitForBit(/*stop_after=*/1, /*updates=*/12);
}

// --- Checkpoints -------------------------------------------------------------

TEST_F(RunChoicesTest, KeepsAsManyCheckpointsAsItIsAskedTo) {
  json_["train"]["keep_last"] = 3;
  FakeReporter reporter;
  ASSERT_TRUE(Run("run", &reporter).ok());
  std::set<std::string> names = Checkpoints("run");
  for (const char* name : {"step-00000008", "step-00000010", "step-00000012"}) {
    EXPECT_EQ(names.erase(name), 1u) << name;
  }
  EXPECT_LE(names.size(), 1u);  // the best one

  json_["train"]["keep_last"] = 1;
  json_["train"]["keep_best"] = 12;
  ASSERT_TRUE(Run("best", &reporter).ok());
  EXPECT_EQ(Checkpoints("best").size(), 6u);  // all were evaluated
}

// The checkpoints of a run that was stopped between two evaluations are those
// of one that was not.
TEST_F(RunChoicesTest, RefusesAFieldOfTheScheduleThatDecidesNothing) {
  json_["schedule"] = {{"type", "poly"}, {"min_learning_rate", 1e-6}};
  EXPECT_THAT(Refusal(), HasSubstr("schedule.min_learning_rate"));
}

TEST_F(RunChoicesTest, KeepsNoCheckpointOfAStop) {
  json_["train"]["keep_last"] = 3;
  FakeReporter straight;
  ASSERT_TRUE(Run("straight", &straight).ok());
  for (const int64_t stop_after : {9, 11}) {
    FakeReporter reporter;
    reporter.stop_after = stop_after;
    const bool resume = stop_after > 9;
    ASSERT_TRUE(Run("stopped", &reporter, resume).ok());
    EXPECT_EQ(Checkpoints("stopped").count(absl::StrCat(
                  "step-", absl::Dec(stop_after, absl::kZeroPad8))),
              1u);
  }
  FakeReporter last;
  ASSERT_TRUE(Run("stopped", &last, /*resume=*/true).ok());
  EXPECT_EQ(Checkpoints("stopped"), Checkpoints("straight"));
}

// Remembers the checkpoints that are there after each update, and waits in the
// first one.
class CheckpointReporter final : public FakeReporter {
 public:
  explicit CheckpointReporter(std::function<std::set<std::string>()> list,
                              std::chrono::duration<double> wait = {})
      : list_(std::move(list)), wait_(wait) {}
  void Update(const Progress& progress) override {
    FakeReporter::Update(progress);
    seen.merge(list_());
    if (progress.step == 1) {
      std::this_thread::sleep_for(wait_);
    }
  }

  std::set<std::string> seen;

 private:
  const std::function<std::set<std::string>()> list_;
  const std::chrono::duration<double> wait_;
};

TEST_F(RunChoicesTest, SavesByTheClockUntilTheNextCheckpoint) {
  json_["train"]["keep_last"] = 20;
  json_["train"]["checkpoint_minutes"] = 1e-9;
  CheckpointReporter often([&] { return Checkpoints("often"); });
  ASSERT_TRUE(Run("often", &often).ok());
  EXPECT_EQ(often.seen.size(), 11u);
  EXPECT_EQ(Checkpoints("often").size(), 6u);  // of the evaluations
  json_["train"]["checkpoint_minutes"] = 1e6;
  CheckpointReporter seldom([&] { return Checkpoints("seldom"); });
  ASSERT_TRUE(Run("seldom", &seldom).ok());
  EXPECT_EQ(seldom.seen.size(), 5u);
  EXPECT_EQ(Checkpoints("seldom"), Checkpoints("often"));
  ExpectSameTensors(Seed("often") + "/checkpoints/last/model.safetensors",
                    Seed("seldom") + "/checkpoints/last/model.safetensors");
}

// However long the run takes, it has one checkpoint in an interval at most.
TEST_F(RunChoicesTest, CountsTheTimeFromTheLastCheckpoint) {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds kInterval(0.3);
  json_["train"]["evaluate_every"] = 0;
  json_["train"]["checkpoint_minutes"] = kInterval.count() / 60;
  CheckpointReporter reporter([&] { return Checkpoints("run"); },
                              kInterval * 1.01);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(Run("run", &reporter).ok());
  const Seconds taken = std::chrono::steady_clock::now() - begin;
  std::set<std::string> names = reporter.seen;
  names.merge(Checkpoints("run"));
  EXPECT_TRUE(names.contains("step-00000001"));
  // And one at the end.
  EXPECT_LE(static_cast<double>(names.size()), taken / kInterval + 1);
}

// --- Frozen parameters, and rates of their own -------------------------------

TEST_F(RunChoicesTest, LeavesFrozenParametersAloneAndGoesOnBitForBit) {
  json_["train"]["frozen"] = {"encoder.embedding.*", "encoder.layers.0.*"};
  json_["train"]["evaluate_at_start"] = true;
  json_["train"]["keep_last"] = 20;
  ExpectGoesOnBitForBit(/*stop_after=*/5, /*updates=*/12);
  const NamedTensors before = Weights("straight", "step-00000000");
  int64_t frozen = 0;
  int64_t trained = 0;
  for (const auto& [name, tensor] : Weights("straight")) {
    const bool is_frozen = absl::StartsWith(name, "encoder.embedding.") ||
                           absl::StartsWith(name, "encoder.layers.0.");
    frozen += is_frozen ? 1 : 0;
    if (is_frozen) {
      EXPECT_TRUE(torch::equal(tensor, before.at(name))) << name;
    } else {
      trained += torch::equal(tensor, before.at(name)) ? 0 : 1;
    }
  }
  EXPECT_GT(frozen, 15);
  EXPECT_GT(trained, 10);
  const auto state = ReadTrainingState(
      Seed("straight") + "/checkpoints/last/training_state.safetensors");
  for (const auto& [name, tensor] : state->optimizer) {
    EXPECT_THAT(name, AllOf(Not(HasSubstr("encoder.embedding.")),
                            Not(HasSubstr("encoder.layers.0."))));
  }
  EXPECT_TRUE(state->optimizer.contains("m.head.output.bias"));
}

TEST_F(RunChoicesTest, MultipliesTheRateOfTheParametersNamed) {
  FakeReporter reporter;
  json_["train"]["learning_rate"] = 0.02;
  ASSERT_TRUE(Run("twice", &reporter).ok());
  // By a power of two, which rounds nothing; the last entry decides.
  json_["train"]["learning_rate"] = 0.01;
  json_["train"]["learning_rate_factors"] = {
      {{"parameters", "encoder.*"}, {"factor", 7}},
      {{"parameters", "*"}, {"factor", 2}}};
  ASSERT_TRUE(Run("factor", &reporter).ok());
  ExpectSameTensors(Seed("factor") + "/checkpoints/last/model.safetensors",
                    Seed("twice") + "/checkpoints/last/model.safetensors");
}

TEST_F(RunChoicesTest, RefusesPatternsThatNameNoParameterOrAll) {
  json_["train"]["frozen"] = {"encoder.embeddings.*"};
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("train.frozen: \"encoder.embeddings.*\" should "
                              "name parameters of the model, but names none"),
                    HasSubstr("encoder.embedding")));
  json_["train"]["frozen"] = {"*"};
  EXPECT_THAT(Refusal(), HasSubstr("should leave a parameter to train"));
  json_["train"]["frozen"] = nlohmann::json::array();
  json_["train"]["learning_rate_factors"] = {
      {{"parameters", "hed.*"}, {"factor", 2}}};
  EXPECT_THAT(Refusal(), HasSubstr("train.learning_rate_factors: \"hed.*\""));
}

}  // namespace
}  // namespace etc
