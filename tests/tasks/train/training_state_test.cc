// The state of a run through its file, and files that are not one.

#include "tasks/train/training_state.h"

#include <torch/types.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/json_reader.h"
#include "base/json_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/output/sealed_json.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

TEST(TrainingStateTest, ComesBackAsItWas) {
  TemporaryDirectory temporary;
  const std::string path = temporary.File("training_state.safetensors");
  TrainingStateFile contents;
  contents.state = {
      .step = 12,
      .examples = 96,
      .position = {.epoch = 3, .record = 5, .example = 1, .batch = 2},
      .evaluated_step = 12,
      .evaluation = {{"f1", 0.1}, {"accuracy", 1.0 / 3}},
      .best_step = 8,
      .best = {{"f1", 0.2}, {"accuracy", 0.5}},
      .metrics_bytes = 1234};
  contents.settings = {{"train", {{"learning_rate", 3e-5}}}};
  contents.device = "cuda:1";
  contents.optimizer = {
      {"m.encoder.weight", torch::randn({2, 3})},
      {"updates.encoder.weight", torch::tensor(int64_t{7}, torch::kLong)}};
  ASSERT_TRUE(WriteTrainingState(contents, path).ok());
  const auto read = ReadTrainingState(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->state == contents.state);
  EXPECT_EQ(read->settings, contents.settings);
  EXPECT_EQ(read->device, "cuda:1");
  EXPECT_TRUE(read->program == ProgramVersion());
  ASSERT_EQ(read->optimizer.size(), 2);
  for (const auto& [name, tensor] : contents.optimizer) {
    EXPECT_TRUE(torch::equal(read->optimizer.at(name), tensor)) << name;
  }
}

TEST(TrainingStateTest, NotesTheProgramThatHasAVersion) {
  TemporaryDirectory temporary;
  const std::string path = temporary.File("training_state.safetensors");
  for (const ProgramVersion& program :
       {ProgramVersion{}, ProgramVersion{.version = "0.1.0"},
        ProgramVersion{.version = "0.1.0", .commit = "1641a7b-dirty"}}) {
    TrainingStateFile contents;
    contents.settings = nlohmann::json::object();
    contents.program = program;
    ASSERT_TRUE(WriteTrainingState(contents, path).ok());
    const auto read = ReadTrainingState(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(read->program == program) << program.commit;
    const auto reader = TensorReader::Open(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(reader->metadata().contains("program"), !program.version.empty());
  }
}

TEST(TrainingStateTest, SaysWhatIsWrongWithAFile) {
  TemporaryDirectory temporary;
  const std::string path = temporary.File("training_state.safetensors");
  const auto message = [&path](std::map<std::string, std::string> metadata) {
    EXPECT_TRUE(
        WriteTensors(path, {{"optimizer.m.x", torch::ones({1})}}, metadata)
            .ok());
    return ReadTrainingState(path).status().ToString();
  };
  const std::string complete =
      R"({"step":1,"examples":8,"epoch":0,"record":0,"example":0,"batch":0,)"
      R"("evaluated_step":0,"evaluation":[],"best_step":0,"best":[],)"
      R"("metrics_bytes":0})";
  EXPECT_THAT(message({{"settings", "{}"}}), HasSubstr("\"training_state\""));
  EXPECT_THAT(message({{"training_state", "{"}, {"settings", "{}"}}),
              HasSubstr(path));
  EXPECT_THAT(message({{"training_state", "[]"}, {"settings", "{}"}}),
              HasSubstr(path));
  EXPECT_THAT(
      message({{"training_state", R"({"step":1})"}, {"settings", "{}"}}),
      HasSubstr("examples"));
  std::string bad = complete;
  bad.replace(bad.find("[]"), 2, R"([["f1","x"]])");
  EXPECT_THAT(message({{"training_state", bad}, {"settings", "{}"}}),
              HasSubstr("evaluation should be pairs"));
  bad.replace(bad.find("\"x\""), 3, "null");
  EXPECT_THAT(message({{"training_state", bad}, {"settings", "{}"}}),
              HasSubstr("evaluation should be pairs"));
  EXPECT_THAT(message({{"training_state", complete}, {"settings", "{}"}}),
              HasSubstr("should have \"device\" in its metadata"));
  EXPECT_THAT(message({{"training_state", complete},
                       {"settings", "{}"},
                       {"device", "cpu"}}),
              HasSubstr("OK"));
  EXPECT_THAT(message({{"training_state", complete},
                       {"settings", "{}"},
                       {"device", "cpu"},
                       {"program", R"({"version":1})"}}),
              HasSubstr("program"));
}

// They become indices and sizes.
TEST(TrainingStateTest, RefusesNumbersThatNoRunComesTo) {
  const nlohmann::json good = StateToJson({.step = 4});
  ASSERT_TRUE(StateFromJson(good, "x").ok());
  const auto message = [&](const std::string& field, int64_t value) {
    nlohmann::json bad = good;
    bad[field] = value;
    return std::string(StateFromJson(bad, "x").status().message());
  };
  for (const char* field :
       {"step", "examples", "epoch", "record", "example", "batch",
        "evaluated_step", "best_step", "metrics_bytes", "stale_evaluations"}) {
    for (const int64_t value :
         {int64_t{-1}, int64_t{1} << 62, std::numeric_limits<int64_t>::min()}) {
      EXPECT_THAT(message(field, value),
                  HasSubstr(std::string(field) + " should be from 0 to"))
          << value;
    }
  }
  for (const char* field : {"evaluated_step", "best_step"}) {
    EXPECT_EQ(message(field, 4), "");
    EXPECT_THAT(message(field, 5), HasSubstr("from 0 to 4, but is 5"));
  }
}

TEST(TrainingStateTest, HasTheSettingsOfAnEvaluation) {
  TemporaryDirectory temporary;
  const std::string path = temporary.File(kEvaluationFile);
  const EvaluatedState evaluated = {.state = {.step = 3},
                                    .settings = {{"task", "toy"}}};
  ASSERT_TRUE(WriteStateAfterEvaluation(evaluated, path).ok());
  EXPECT_EQ(*ReadStateAfterEvaluation(path), evaluated);
  const auto settings = ReadCheckpointSettings(temporary.path());
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(*settings, evaluated.settings);
  ASSERT_TRUE(WriteSealedJson(path, StateToJson(evaluated.state)).ok());
  EXPECT_EQ(ReadStateAfterEvaluation(path).status(),
            absl::InvalidArgumentError(path + " should have \"settings\""));
}

TEST(TrainingStateTest, GoesOnWithChangesWhereItCan) {
  const RunPlan plan = {.num_steps = 12};
  const TrainingState begun = {
      .step = 12,
      .position = {.epoch = 3, .record = 5, .example = 1, .batch = 2},
      .evaluated_step = 12,
      .evaluation = {{"f1", 0.1}},
      .best_step = 8,
      .best = {{"f1", 0.2}}};
  const auto after = [&](const std::string& field, TrainingState state) {
    const auto messages = GoOnWithChanges({{field, "1", "2"}}, plan, &state);
    EXPECT_TRUE(messages.ok()) << messages.status();
    EXPECT_EQ(messages->front(), "changed: " + field + ", from 1 to 2");
    return state;
  };
  for (const char* field : {"train.learning_rate", "train.precision",
                            "model.hidden_dropout_prob"}) {
    EXPECT_TRUE(after(field, begun) == begun) << field;
  }

  TrainingState expected = begun;
  expected.position = {.epoch = 4};
  for (const char* field :
       {"data.train", "train.batch_size", "train.seed", "data.bucket_batches",
        "data.number of training records", "translation.max_tokens",
        "translation.max_sentences"}) {
    EXPECT_TRUE(after(field, begun) == expected) << field;
  }
  // At the beginning of a pass nothing is lost.
  EXPECT_TRUE(after("data.train", expected) == expected);

  TrainingState state = begun;
  EXPECT_THAT(
      GoOnWithChanges({}, {.num_steps = 11}, &state).status().ToString(),
      HasSubstr("has made 12 updates already"));
}

TEST(TrainingStateTest, ReplacesABestOneThatIsLost) {
  TrainingState state = {.step = 12,
                         .evaluated_step = 12,
                         .evaluation = {{"f1", 0.1}},
                         .best_step = 8,
                         .best = {{"f1", 0.2}}};
  EXPECT_EQ(
      ReplaceLostBest({"f1"}, {{.step = 4, .scores = {{"f1", 0.15}}}}, &state),
      "the checkpoint of the best score, after 8 updates, is not there: "
      "the best of those that are is f1 0.1500 after 4 updates");
  EXPECT_EQ(state.best_step, 4);
  state.evaluated_step = 0;
  EXPECT_THAT(ReplaceLostBest({"f1"}, {}, &state),
              HasSubstr("the score is forgotten"));
  EXPECT_TRUE(state.best.empty());
}

TEST(TrainingStateTest, KeepsScoresThatAreNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const TrainingState state = {
      .evaluation = {{"perplexity", infinity}, {"f1", 0.5}},
      .best = {{"perplexity", -infinity}, {"pearson", std::nan("")}}};
  const std::string text = JsonText(StateToJson(state));
  const auto read = StateFromJson(*ParseJson(text, "state"), "state");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->evaluation, state.evaluation);
  EXPECT_EQ(read->best[0], state.best[0]);
  EXPECT_TRUE(std::isnan(read->best[1].second));
}

TEST(TrainingStateTest, TakesANumberForBetterThanNone) {
  TrainingState state = {.step = 1};
  EXPECT_TRUE(SetScores({{"f1", std::nan("")}}, {"f1"}, &state));
  state.step = 2;
  EXPECT_TRUE(SetScores({{"f1", 0.1}}, {"f1"}, &state));
  EXPECT_FALSE(SetScores({{"f1", std::nan("")}}, {"f1"}, &state));
  EXPECT_EQ(state.best_step, 2);
}

// A plateau of a score, as of the most frequent token, is no reason to go back.
TEST(TrainingStateTest, TakesTheLatestOfEqualScoresAndCountsThemAsStale) {
  const TrainConfig early = {.early_stopping = 2};
  for (const bool lower_is_better : {false, true}) {
    const MainMetric metric = {.name = "score",
                               .lower_is_better = lower_is_better};
    const double worse = lower_is_better ? 0.75 : 0.25;
    TrainingState state;
    for (const double score : {0.5, 0.5, worse}) {
      ++state.step;
      CountStale(early, metric, {{"score", score}}, &state);
      EXPECT_EQ(SetScores({{"score", score}}, metric, &state), score == 0.5);
    }
    EXPECT_EQ(state.best_step, 2);
    EXPECT_EQ(state.stale_evaluations, 2);
    // Asked for at a resume only.
    CountStale({}, metric, {{"score", 0.5}}, &state);
    CountStale(early, metric, {{"score", 0.5}}, &state);
    EXPECT_EQ(state.stale_evaluations, 1);
  }
}

// Early stopping that a resume asks for counts from the best score before.
TEST(TrainingStateTest, CountsFromTheBestThatIsKnown) {
  const TrainConfig early = {.early_stopping = 2};
  TrainingState state = {.step = 75};
  SetScores({{"f1", 1.0}}, {"f1"}, &state);
  const auto evaluate = [&state](const TrainConfig& counted, double score) {
    state.step += 25;
    CountStale(counted, {"f1"}, {{"f1", score}}, &state);
    SetScores({{"f1", score}}, {"f1"}, &state);
  };
  for (const double score : {0.25, 0.5}) {
    EXPECT_FALSE(HasEndedEarly(early, state));
    evaluate(early, score);
  }
  EXPECT_TRUE(HasEndedEarly(early, state));

  // Switched off for a while, and on again: the best one counts.
  evaluate({}, 0.75);
  EXPECT_FALSE(HasEndedEarly(early, state));
  evaluate(early, 0.875);
  EXPECT_EQ(state.stale_evaluations, 1);
}

}  // namespace
}  // namespace etc
