// The state of a run through its file, and files that are not one.

#include "tasks/train/training_state.h"

#include <torch/types.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
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
      R"({"step":1,"epoch":0,"record":0,"example":0,"batch":0,)"
      R"("evaluated_step":0,"evaluation":[],"best_step":0,"best":[],)"
      R"("metrics_bytes":0})";
  EXPECT_THAT(message({{"settings", "{}"}}), HasSubstr("\"training_state\""));
  EXPECT_THAT(message({{"training_state", "{"}, {"settings", "{}"}}),
              HasSubstr(path));
  EXPECT_THAT(message({{"training_state", "[]"}, {"settings", "{}"}}),
              HasSubstr(path));
  EXPECT_THAT(
      message({{"training_state", R"({"step":1})"}, {"settings", "{}"}}),
      HasSubstr("epoch"));
  std::string bad = complete;
  bad.replace(bad.find("[]"), 2, R"([["f1","x"]])");
  EXPECT_THAT(message({{"training_state", bad}, {"settings", "{}"}}),
              HasSubstr("evaluation should be pairs"));
  EXPECT_THAT(message({{"training_state", complete}, {"settings", "{}"}}),
              HasSubstr("OK"));
  EXPECT_THAT(message({{"training_state", complete},
                       {"settings", "{}"},
                       {"program", R"({"version":1})"}}),
              HasSubstr("program"));
}

TEST(TrainingStateTest, GoesOnWithChangesWhereItCan) {
  const RunPlan plan = {.num_steps = 12,
                        .example_settings = {"data", "train.batch_size"}};
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
  EXPECT_TRUE(after("train.learning_rate", begun) == begun);

  TrainingState expected = begun;
  expected.position = {.epoch = 4};
  EXPECT_TRUE(after("data.train", begun) == expected);
  EXPECT_TRUE(after("train.batch_size", begun) == expected);
  // At the beginning of a pass nothing is lost.
  EXPECT_TRUE(after("data.train", expected) == expected);

  expected = begun;
  expected.evaluated_step = 0;
  expected.evaluation.clear();
  expected.best_step = 0;
  expected.best.clear();
  EXPECT_TRUE(after("data.dev", begun) == expected);

  TrainingState state = begun;
  EXPECT_THAT(
      GoOnWithChanges({}, {.num_steps = 11}, &state).status().ToString(),
      HasSubstr("has made 12 updates already"));
}

}  // namespace
}  // namespace etc
