// The benchmarks as a library, against the program: the same scores,
// predictions and mistakes; several runs in a process, and what they leave of
// its state. Training is tested in tests/tasks/train.
#include "tasks/run_task.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cpu_limit.h"
#include "base/file.h"
#include "nlohmann/json.hpp"
#include "tests/support/gzip_member.h"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class RunTaskTest : public RealetcTest {
 protected:
  // Fine-tunes the tiny configuration.
  TrainTaskResult Tuned(const std::vector<std::string>& overrides = {}) {
    auto result =
        TrainTask({.config = WriteConfig(Config()),
                   .overrides = overrides,
                   .callbacks = {.message = [&](const std::string& line) {
                     messages_.push_back(line);
                   }}});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(TrainTaskResult());
  }

  // Returns the program's scores of the same run.
  json ProgramScores(const std::string& options) const {
    const Result result =
        Run(absl::StrCat("evaluate ", run_, options, " --json"));
    EXPECT_EQ(result.code, 0) << result.err;
    return json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }

  const std::string run_ = directory_.File("run");
  std::vector<std::string> messages_;
};

json AsJson(const Metrics& scores) {
  json object = json::object();
  for (const auto& [name, value] : scores) {
    object[name] = value;
  }
  return object;
}

TEST_F(RunTaskTest, TrainsEvaluatesAndScoresAsTheProgramDoes) {
  const TrainTaskResult tuned = Tuned();
  EXPECT_TRUE(tuned.finished);
  EXPECT_THAT(tuned.directories, ElementsAre(run_ + "/seed-1"));
  EXPECT_THAT(messages_, Contains(HasSubstr("accuracy")));
  const json program = ProgramScores("");
  EXPECT_EQ(AsJson(tuned.scores), program);

  const auto evaluated = EvaluateTask({.checkpoint = run_});
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_EQ(evaluated->num_examples, 6);
  EXPECT_EQ(AsJson(evaluated->scores), program);
  const std::string predictions = directory_.File("predictions.json");
  const std::string data = directory_.File("data.json");
  EXPECT_EQ(Run(absl::StrCat("predict ", run_, " --data ", data, " --output ",
                             predictions))
                .code,
            0);
  EXPECT_EQ(evaluated->predictions, Contents(predictions));

  const auto scored = ScoreTask("wikihop", data, predictions);
  ASSERT_TRUE(scored.ok()) << scored.status();
  EXPECT_EQ(scored->main_metric, "accuracy");
  EXPECT_EQ(AsJson(scored->metrics).value("accuracy", -1.0),
            program.value("accuracy", -2.0));
}

TEST_F(RunTaskTest, GivesTheScoresOfAGrid) {
  const TrainTaskResult tuned =
      Tuned({"grid.train.steps=[1, 2]", "train.seeds=[1, 2]"});
  EXPECT_TRUE(tuned.finished);
  ASSERT_EQ(tuned.settings.size(), 2u);
  EXPECT_THAT(tuned.directories, ElementsAre(run_ + "/train.steps=1/seed-1",
                                             run_ + "/train.steps=1/seed-2",
                                             run_ + "/train.steps=2/seed-1",
                                             run_ + "/train.steps=2/seed-2"));
  const json grid = json::parse(Contents(run_ + "/grid.json"));
  for (size_t i = 0; i < tuned.settings.size(); ++i) {
    const TrainTaskSetting& setting = tuned.settings[i];
    const json& written = grid["settings"][i];
    EXPECT_EQ(setting.directory,
              run_ + "/" + written["directory"].get<std::string>());
    ASSERT_EQ(setting.medians.size(), setting.deviations.size());
    for (size_t k = 0; k < setting.medians.size(); ++k) {
      const json& score = written["scores"][setting.medians[k].first];
      EXPECT_EQ(setting.medians[k].second, score["median"]);
      EXPECT_EQ(setting.deviations[k].second, score["standard_deviation"]);
    }
  }
  const bool is_first = grid["best"] == grid["settings"][0]["directory"];
  EXPECT_EQ(tuned.scores, tuned.settings[is_first ? 0 : 1].medians);
}

// Equal models, and two dev files that want opposite answers: one setting has
// the accuracy 1, the other 0, and in one of the orders the second has 1.
TEST_F(RunTaskTest, GivesTheScoresOfTheBestSettingOfAGrid) {
  const auto wanting = [&](const std::string& town) {
    const json record = {{"id", "q"},
                         {"query", "town_of mira"},
                         {"answer", town},
                         {"candidates", {"oslo", "rome"}},
                         {"supports", {"mira lives in oslo ."}}};
    return directory_.Write(town + ".json", json::array({record}).dump());
  };
  const std::string oslo = wanting("oslo");
  const std::string rome = wanting("rome");
  for (const auto& [first, second] :
       {std::pair(oslo, rome), std::pair(rome, oslo)}) {
    const json values = {json::array({first}), json::array({second})};
    const TrainTaskResult tuned =
        Tuned({"train.steps=1", absl::StrCat("grid.data.dev=", values.dump()),
               absl::StrCat("output=",
                            directory_.File(first == oslo ? "oslo" : "rome"))});
    EXPECT_TRUE(tuned.finished);
    ASSERT_EQ(tuned.settings.size(), 2u);
    EXPECT_EQ(AsJson(tuned.settings[0].medians).value("accuracy", -1.0) +
                  AsJson(tuned.settings[1].medians).value("accuracy", -1.0),
              1);
    EXPECT_EQ(AsJson(tuned.scores).value("accuracy", -1.0), 1);
  }
}

TEST_F(RunTaskTest, WarnsOfScoresThatTheModelWasNotTrainedWith) {
  Tuned();
  std::vector<std::string> warnings;
  const auto evaluated =
      EvaluateTask({.checkpoint = run_,
                    .residual_attention = "off",
                    .callbacks = {.warning = [&](const std::string& line) {
                      warnings.push_back(line);
                    }}});
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_THAT(warnings,
              ElementsAre(StartsWith("residual attention: trained with sum")));
  EXPECT_EQ(AsJson(evaluated->scores), ProgramScores(" --residual off"));
}

// Warnings of the vocabulary, of the data and of the threads.
TEST_F(RunTaskTest, GivesEachWarningToTheCallbackOfWarnings) {
  std::vector<std::string> warnings;
  const TaskCallbacks callbacks = {
      .message = [&](const std::string& line) { messages_.push_back(line); },
      .warning = [&](const std::string& line) { warnings.push_back(line); }};
  const int64_t threads = CpusOfProcess() + 1;
  const auto tuned =
      TrainTask({.config = WriteConfig(Config()),
                 .overrides = {absl::StrCat("train.threads=", threads),
                               "data.dev=[]", "model.vocab_size=20"},
                 .callbacks = callbacks});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_THAT(
      warnings,
      AllOf(Contains(HasSubstr("some rows of the table are never used")),
            Contains(StartsWith("data.dev is empty: ")),
            Contains(StartsWith(
                absl::StrCat("train.threads is ", threads, ", but this")))));
  warnings.clear();
  const auto evaluated = EvaluateTask({.checkpoint = run_,
                                       .data = {directory_.File("data.json")},
                                       .threads = threads,
                                       .callbacks = callbacks});
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_THAT(warnings, Contains(HasSubstr("more threads than cores")));
  EXPECT_THAT(
      messages_,
      Each(Not(AnyOf(HasSubstr("warning"), HasSubstr("threads than cores")))));
}

TEST_F(RunTaskTest, StopsAndGoesOn) {
  const std::atomic<bool> stop = true;
  const std::string config = WriteConfig(Config());
  const auto stopped =
      TrainTask({.config = config, .callbacks = {.stop = &stop}});
  EXPECT_TRUE(!stopped.ok() ? absl::IsCancelled(stopped.status())
                            : !stopped->finished && stopped->scores.empty());
  const auto resumed =
      TrainTask({.config = config, .earlier = EarlierRun::kResume});
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_TRUE(resumed->finished);
}

// With the dropout of the default model, 0.1.
TEST_F(RunTaskTest, TrainsTheSameWeightsBesideAnotherRun) {
  const std::string config = WriteConfig(Config());
  const auto weights = [&](const std::string& name) {
    const std::string output = directory_.File(name);
    const auto result = TrainTask(
        {.config = config, .overrides = {"train.steps=8", "output=" + output}});
    EXPECT_TRUE(result.ok()) << result.status();
    return Contents(output + "/seed-1/checkpoints/last/model.safetensors");
  };
  const std::string alone = weights("alone");
  EXPECT_NE(alone, "");
  std::string one;
  std::string other;
  std::thread first([&] { one = weights("one"); });
  std::thread second([&] { other = weights("other"); });
  first.join();
  second.join();
  EXPECT_TRUE(one == alone);
  EXPECT_TRUE(other == alone);
}

TEST_F(RunTaskTest, LeavesGeneratorAndThreadsAsTheyWere) {
  at::set_num_threads(2);
  torch::manual_seed(42);
  const torch::Tensor expected = torch::rand({3});

  torch::manual_seed(42);
  Tuned({"train.threads=1"});
  EXPECT_EQ(at::get_num_threads(), 2);
  EXPECT_TRUE(torch::equal(torch::rand({3}), expected));

  torch::manual_seed(42);
  const auto evaluated = EvaluateTask({.checkpoint = run_, .threads = 3});
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_EQ(at::get_num_threads(), 2);
  EXPECT_TRUE(torch::equal(torch::rand({3}), expected));
}

TEST_F(RunTaskTest, StopsARunThatWaitsForAnother) {
  const std::atomic<bool> stop = true;
  absl::Status waited;
  const auto tuned = TrainTask(
      {.config = WriteConfig(Config()),
       .callbacks = {.message = [&](const std::string&) {
         std::thread([&] {
           waited = EvaluateTask({.callbacks = {.stop = &stop}}).status();
         }).join();
         // In this thread it would wait for itself.
         EXPECT_THROW(static_cast<void>(EvaluateTask({})), c10::Error);
       }}});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_TRUE(absl::IsCancelled(waited)) << waited;
}

TEST_F(RunTaskTest, ResumesBeginsOrReplacesARunAsAsked) {
  const auto code = [&](TrainTaskOptions options) {
    options.config = WriteConfig(Config());
    return TrainTask(options).status().code();
  };
  EXPECT_EQ(code({.earlier = EarlierRun::kResume}),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(code({.earlier = EarlierRun::kResumeOrBegin}),
            absl::StatusCode::kOk);
  EXPECT_EQ(code({}), absl::StatusCode::kAlreadyExists);
  const std::vector<std::string> slower = {"train.learning_rate=1e-6"};
  EXPECT_EQ(code({.overrides = slower, .earlier = EarlierRun::kResume}),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code({.overrides = slower,
                  .earlier = EarlierRun::kResume,
                  .allow_changes = {"train.learning_rate"}}),
            absl::StatusCode::kOk);
  EXPECT_EQ(code({.overrides = slower, .earlier = EarlierRun::kOverwrite}),
            absl::StatusCode::kOk);
}

TEST_F(RunTaskTest, SaysWhatIsWrong) {
  EXPECT_EQ(TrainTask({.config = directory_.File("none.json")}).status().code(),
            absl::StatusCode::kNotFound);
  const auto mistaken = TrainTask(
      {.config = WriteConfig(Config()), .overrides = {"train.stepz=2"}});
  EXPECT_THAT(mistaken.status().ToString(), HasSubstr("stepz"));
  EXPECT_EQ(
      EvaluateTask({.checkpoint = directory_.File("none")}).status().code(),
      absl::StatusCode::kNotFound);
  Tuned();
  EXPECT_EQ(EvaluateTask({.checkpoint = run_, .threads = -1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ScoreTask("wikihopp", "a", "b").status().code(),
            absl::StatusCode::kNotFound);
}

// A record and a prediction for it, whose file is one JSON value.
struct ScoredPair {
  const char* task;
  const char* gold;
  const char* predictions;
};

constexpr ScoredPair kScoredPairs[] = {
    {"wikihop",
     R"([{"id":"a","query":"town_of mira","answer":"oslo",)"
     R"("candidates":["oslo","rome"],"supports":["mira lives in oslo ."]}])",
     R"({"a":"oslo"})"},
    {"hotpotqa",
     R"([{"_id":"a","question":"q","answer":"yes",)"
     R"("supporting_facts":[["T",0]],"context":[["T",["Yes."]]]}])",
     R"({"answer":{"a":"yes"},"sp":{"a":[["T",0]]}})"},
    {"nq",
     R"({"example_id":1,"annotations":[{"yes_no_answer":"NONE",)"
     R"("long_answer":{"start_token":1,"end_token":3},)"
     R"("short_answers":[{"start_token":1,"end_token":2}]}]})",
     R"({"predictions":[{"example_id":1,"yes_no_answer":"NONE",)"
     R"("long_answer":{"start_token":1,"end_token":3},"long_answer_score":1,)"
     R"("short_answers":[{"start_token":1,"end_token":2}],)"
     R"("short_answers_score":1}]})"},
    {"squad",
     R"({"version":"1.1","data":[{"title":"t","paragraphs":[{"context":"c d",)"
     R"("qas":[{"id":"a","question":"q",)"
     R"("answers":[{"text":"c","answer_start":0}]}]}]}]})",
     R"({"a":"c"})"}};

TEST_F(RunTaskTest, ScoresPredictionsThatArePackedByGzip) {
  for (const ScoredPair& pair : kScoredPairs) {
    SCOPED_TRACE(pair.task);
    const std::string gold = directory_.Write("gold.json", pair.gold);
    const auto plain = ScoreTask(pair.task, gold,
                                 directory_.Write("p.json", pair.predictions));
    ASSERT_TRUE(plain.ok()) << plain.status();
    const auto packed =
        ScoreTask(pair.task, gold,
                  directory_.Write("p.json.gz", GzipMember(pair.predictions)));
    ASSERT_TRUE(packed.ok()) << packed.status();
    EXPECT_EQ(packed->metrics, plain->metrics);
  }
}

TEST_F(RunTaskTest, ScoresByConfigurationsOfTheTaskAlone) {
  const std::string gold = WriteData();
  const std::string predictions =
      directory_.Write("p.json", R"({"q0": "oslo"})");
  const auto message = [&](const json& config,
                           const std::vector<std::string>& overrides = {}) {
    const auto scored =
        ScoreTask("wikihop", gold, predictions, ScoringRules::kDefault,
                  directory_.Write("run.json", config.dump()), overrides);
    return std::string(scored.status().message());
  };
  // Nothing that a configuration names need be here.
  json config = Config();
  config["init"] = "gone";
  config["model"] = {{"path", "gone.json"}};
  config["grid"] = {{"train.epochs", {1, 2}}};
  EXPECT_EQ(message(config), "");
  EXPECT_EQ(message({{"wikihop", json::object()}}), "");
  EXPECT_EQ(message(config, {"data.max_record_megabytes=1"}), "");

  EXPECT_THAT(message({{"task", "squad"}, {"squad", json::object()}}),
              HasSubstr("run.json: task should be \"wikihop\", but is "
                        "\"squad\""));
  EXPECT_THAT(message({{"wikihpo", json::object()}}),
              HasSubstr("run.json has no field \"wikihpo\"; did you mean "
                        "\"wikihop\"?"));
  EXPECT_THAT(message({{"squad", json::object()}}),
              HasSubstr("run.json has no field \"squad\""));
  EXPECT_THAT(message({{"q0", "oslo"}}),
              HasSubstr("run.json has no field \"q0\""));
  EXPECT_THAT(message(json::array({config})),
              HasSubstr("run.json should be an object"));
  EXPECT_THAT(message(config, {"data.max_long_length=7"}),
              HasSubstr("--set data.max_long_length=7 should set an option of "
                        "the task, wikihop.NAME"));
}

// Scores the random files that tests/random_metrics.py or random_spans.py made,
// which compare them with those of other implementations: one process for a
// thousand files.
TEST(RandomMetricsTest, ScoresEachCase) {
  const char* const folder = std::getenv("ETC_RANDOM_METRICS");
  if (folder == nullptr) {
    GTEST_SKIP() << "needs files that tests/random_metrics.py makes";
  }
  const std::string directory = absl::StrCat(folder, "/");
  const auto cases = ReadFile(directory + "cases.json");
  ASSERT_TRUE(cases.ok()) << cases.status();
  json all = json::array();
  for (const json& one : json::parse(*cases)) {
    const auto scores =
        ScoreTask(one.at("task"), directory + one.at("gold").get<std::string>(),
                  directory + one.at("predictions").get<std::string>(),
                  one.at("as_official").get<bool>() ? ScoringRules::kOfficial
                                                    : ScoringRules::kDefault,
                  directory + one.at("config").get<std::string>());
    ASSERT_TRUE(scores.ok()) << one << ": " << scores.status();
    all.push_back(AsJson(scores->metrics));
  }
  ASSERT_GT(all.size(), 0);
  const absl::Status written =
      WriteFileAtomically(directory + "scores.json", all.dump());
  EXPECT_TRUE(written.ok()) << written;
}

}  // namespace
}  // namespace etc
