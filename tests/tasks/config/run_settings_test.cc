// Settings that a resumed run compares. Every field of every table is changed:
// either the change is refused by name, or the table gives the reason why it
// may change, and it is not among the settings at all. Files are compared by
// their contents: moved ones pass, changed ones do not. The changes and names
// that --allow-changes takes, and those that nothing allows. Several ranks read
// the files once. That a new field cannot be forgotten is checked when
// config.cc and run_settings.cc are compiled.
#include "tasks/config/run_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "tasks/config/config_fields.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/data/thread_group.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

RunConfig Config() {
  RunConfig config;
  config.task = "toy";
  config.task_options = {{"margin", 1.5}, {"names", {"a", "b"}}};
  return config;
}

nlohmann::json Settings(const RunConfig& config, const RunFiles& files = {}) {
  return RunSettings(config, {.seed = 1, .num_records = 10, .files = files});
}

void Change(bool* value) { *value = !*value; }
void Change(int64_t* value) { *value += 1; }
void Change(double* value) { *value += 0.125; }
void Change(std::string* value) { *value += "x"; }
template <typename T>
void Change(std::optional<T>* value) {
  *value = value->value_or(T()) + 1;
}
template <typename T>
void Change(std::vector<T>* value) {
  value->emplace_back();
}

TEST(RunSettingsTest, RefusesAChangeOfEachFieldOrSaysWhyNot) {
  const RunConfig config = Config();
  const nlohmann::json then = Settings(config);
  EXPECT_THAT(*CheckSameSettings(then, then, {}), IsEmpty());
  const std::set<std::string> kept = {"task",
                                      "residual_attention",
                                      "tokenizer.type",
                                      "tokenizer.vocabulary",
                                      "tokenizer.lower_case",
                                      "tokenizer.split_punctuation",
                                      "data.dev",
                                      "data.dev_fraction",
                                      "data.dev_seed",
                                      "data.dev_records",
                                      "data.max_long_length",
                                      "data.max_global_length",
                                      "data.sentences",
                                      "optimizer.type",
                                      "train.main_metric",
                                      "train.main_metric_direction"};
  std::set<std::string> free;
  int64_t refused = 0;
  RunConfig changed = config;
  ForEachConfigField(changed, [&](const std::string& name, const auto& field,
                                  auto& value) {
    SCOPED_TRACE(name);
    const auto before = value;
    Change(&value);
    const nlohmann::json now = Settings(changed);
    value = before;
    const auto changes = CheckSameSettings(then, now, {});
    if (!field.rule.may_change.empty()) {
      free.insert(name);
      EXPECT_THAT(*changes, IsEmpty());
      return;
    }
    ++refused;
    EXPECT_EQ(changes.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(changes.status().message()),
                AllOf(HasSubstr("another " + name + ": it began with "),
                      HasSubstr(kept.contains(name) ? "--set init=RUN"
                                                    : "--allow-changes ")));
    EXPECT_NE(CheckSameSettings(then, now, {name}).ok(), kept.contains(name));
  });
  EXPECT_GE(refused, 27);
  // Fields freed by accident would stand here.
  for (const char* name :
       {"train.precision", "data.train", "train.batch_size", "init", "task"}) {
    EXPECT_EQ(free.count(name), 0) << name;
  }
}

TEST(RunSettingsTest, RefusesAChangeOfTheModelTheOptionsAndTheSeed) {
  const nlohmann::json then = Settings(Config());
  const nlohmann::json model =
      nlohmann::json::parse(EtcConfigToJson(EtcConfig()));
  for (const auto& [field, value] : model.items()) {
    // The residual mode has a field of its own beside the model.
    EXPECT_EQ(then["model"].contains(field), field != "residual_attention")
        << field;
  }
  RunConfig config = Config();
  config.model.local_radius = 7;
  EXPECT_THAT(
      CheckSameSettings(then, Settings(config), {}).status().ToString(),
      HasSubstr("another model.local_radius: it began with 84, now it is 7"));
  config = Config();
  config.task_options["margin"] = 2;
  config.task_options["more"] = true;
  EXPECT_THAT(CheckSameSettings(then, Settings(config), {}).status().ToString(),
              AllOf(HasSubstr("another toy.margin: it began with 1.5, now it "
                              "is 2; nor with another toy.more: it began with "
                              "the default, now it is true"),
                    HasSubstr("begin a new run")));
  const RunFiles none;
  EXPECT_THAT(
      CheckSameSettings(
          then,
          RunSettings(Config(), {.seed = 2, .num_records = 9, .files = none}),
          {})
          .status()
          .ToString(),
      AllOf(HasSubstr("another train.seed: it began with 1, now it is 2"),
            HasSubstr("another data.number of training records")));
}

TEST(RunSettingsTest, ReturnsTheChangesThatAreMeant) {
  RunConfig config = Config();
  const nlohmann::json then = Settings(config);
  config.train.learning_rate = 0.5;
  config.optimizer.beta1 = 0.5;
  const nlohmann::json now = Settings(config);
  EXPECT_THAT(CheckSameSettings(then, now, {"optimizer"}).status().ToString(),
              AllOf(HasSubstr("another train.learning_rate"),
                    testing::Not(HasSubstr("optimizer"))));
  // A beginning of a name is not the name.
  EXPECT_FALSE(CheckSameSettings(then, now, {"optimizer", "train.learn"}).ok());
  const auto changes =
      CheckSameSettings(then, now, {"optimizer", "train.learning_rate"});
  ASSERT_TRUE(changes.ok()) << changes.status();
  ASSERT_THAT(*changes, SizeIs(2));
  EXPECT_EQ((*changes)[0].field, "optimizer.beta1");
  EXPECT_EQ((*changes)[0].was, "0.9");
  EXPECT_EQ((*changes)[0].is, "0.5");
}

// Fields that decide scores, the model, and the state of the optimizer.
TEST(RunSettingsTest, NothingAllowsScoresThatCannotBeCompared) {
  RunConfig config = Config();
  RunConfig translation = config;
  translation.encoder_decoder.emplace();
  nlohmann::json whole = Settings(config);
  whole["model"].update(Settings(translation)["model"]);
  whole["toy"]["margin"] = 1;
  const nlohmann::json then = Settings(config);
  config.train.learning_rate = 0.5;
  const nlohmann::json allowed = Settings(config);
  const std::vector<std::string> all = {
      "task",  "data", "tokenizer",          "model",
      "train", "toy",  "residual_attention", "optimizer"};
  for (const char* place :
       {"/task", "/data/dev", "/data/max_long_length", "/tokenizer/lower_case",
        "/toy/margin", "/train/main_metric", "/train/main_metric_direction",
        "/model/residual_decay", "/model/local_radius",
        "/model/cross_residual_attention", "/residual_attention",
        "/optimizer/type"}) {
    EXPECT_TRUE(whole.contains(nlohmann::json::json_pointer(place))) << place;
    nlohmann::json now = allowed;
    now[nlohmann::json::json_pointer(place)] = "other";
    const absl::Status status = CheckSameSettings(then, now, all).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << place;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("begin a new run with --set "
                                "init=RUN/seed-1/checkpoints/last"),
                      testing::Not(HasSubstr("--allow-changes")),
                      testing::Not(HasSubstr("learning_rate"))))
        << place;
  }
  for (const char* place :
       {"/data/train", "/data/bucket_batches", "/data/on_bad_record",
        "/train/batch_size", "/model/hidden_dropout_prob",
        "/model/attention_probs_dropout_prob", "/model/activation_dropout_prob",
        "/model/initializer_range", "/model/depth_scaled_initializer",
        "/model/residual_gate_init", "/model/grad_checkpointing_period"}) {
    EXPECT_TRUE(whole.contains(nlohmann::json::json_pointer(place))) << place;
    nlohmann::json now = allowed;
    now[nlohmann::json::json_pointer(place)] = "other";
    EXPECT_TRUE(CheckSameSettings(then, now, all).ok()) << place;
    EXPECT_EQ(
        CheckSameSettings(then, now, all, /*evaluates_train_files=*/true).ok(),
        std::string(place) != "/data/train")
        << place;
  }
}

// Each field is noted, at its default too.
TEST(RunSettingsTest, RefusesASettingThatOneSideLacks) {
  const nlohmann::json whole = Settings(Config());
  for (const auto& [object, field, value] :
       {std::tuple{"model", "residual_decay", "0.9"},
        std::tuple{"schedule", "type", "\"poly\""},
        std::tuple{"train", "max_examples", "0"}}) {
    nlohmann::json part = whole;
    EXPECT_EQ(part[object].erase(field), 1u);
    EXPECT_THAT(CheckSameSettings(part, whole, {}).status().ToString(),
                HasSubstr(absl::StrCat("another ", object, ".", field,
                                       ": it began with not noted, now it is ",
                                       value)));
    EXPECT_THAT(CheckSameSettings(whole, part, {}).status().ToString(),
                HasSubstr(absl::StrCat("it began with ", value,
                                       ", now it is not noted")));
  }
}

// Without the files, which take long to read.
TEST(RunSettingsTest, ComparesWhatIsKnownBeforeDataAreRead) {
  RunConfig config = Config();
  const RunFiles files = {
      {"data.train", {{.path = "a", .digest = {.bytes = 1, .digest = "b"}}}}};
  const nlohmann::json then = Settings(config, files);
  config.data.train = {"/nowhere"};
  config.task_options["names"] = {"completed later"};
  EXPECT_THAT(
      *CheckSameSettings(then, SettingsWithFilesOf(config, 1, then), {}),
      IsEmpty());
  config.train.learning_rate = 0.5;
  EXPECT_THAT(CheckSameSettings(then, SettingsWithFilesOf(config, 2, then), {})
                  .status()
                  .ToString(),
              AllOf(HasSubstr("another train.learning_rate"),
                    HasSubstr("another train.seed"),
                    testing::Not(HasSubstr("data.train")),
                    testing::Not(HasSubstr("toy"))));
}

TEST(RunSettingsTest, KnowsTheNamesOfFields) {
  const RunConfig config = Config();
  EXPECT_TRUE(CheckFieldNames(config, {"train.precision", "data", "model",
                                       "model.local_radius", "toy",
                                       "toy.margin", "residual_attention"})
                  .ok());
  // Names that CheckSameSettings may advise: of options that the task takes
  // from the data, or that were removed since.
  EXPECT_TRUE(CheckFieldNames(config, {"toy.labels"}).ok());
  EXPECT_FALSE(CheckFieldNames(config, {"toys.labels"}).ok());
  EXPECT_EQ(CheckFieldNames(config, {"train.precison"}).message(),
            "there is no field \"train.precison\"; did you mean "
            "\"train.precision\"?");
  EXPECT_FALSE(CheckFieldNames(config, {"run.json"}).ok());
  EXPECT_FALSE(CheckFieldNames(config, {""}).ok());
}

// --- Files ------------------------------------------------------------------

class RunFilesTest : public testing::Test {
 protected:
  // The settings of `config` with its files as they are now.
  nlohmann::json Now(const RunConfig& config) const {
    const auto files = FindRunFiles(config, nullptr);
    EXPECT_TRUE(files.ok()) << files.status();
    return files.ok() ? Settings(config, *files) : nlohmann::json();
  }

  TemporaryDirectory directory_;
};

TEST_F(RunFilesTest, TakesMovedFilesAndRefusesChangedOnes) {
  RunConfig config = Config();
  config.data.train = {directory_.Write("a1.json", "[1]"),
                       directory_.Write("a2.json", "[2]")};
  config.tokenizer.vocabulary = directory_.Write("vocab.txt", "[PAD]\n");
  const nlohmann::json then = Now(config);

  // Named by pattern, elsewhere, and with another name of the vocabulary.
  const std::string moved = directory_.File("moved");
  std::filesystem::create_directory(moved);
  for (const char* name : {"a1.json", "a2.json"}) {
    std::filesystem::rename(directory_.File(name),
                            absl::StrCat(moved, "/", name));
  }
  config.data.train = {moved + "/*.json"};
  config.tokenizer.vocabulary = directory_.Write("words.txt", "[PAD]\n");
  EXPECT_THAT(*CheckSameSettings(then, Now(config), {}), IsEmpty());

  // The same size, other contents.
  directory_.Write("moved/a2.json", "[3]");
  EXPECT_THAT(CheckSameSettings(then, Now(config), {}).status().ToString(),
              AllOf(HasSubstr("another data.train: it began with 2 files, of "
                              "which number 2 is "),
                    HasSubstr("/a2.json (3 bytes, sha256:"),
                    HasSubstr("now it is 2 files, of which number 2 is ")));
  // One less; and in another order.
  config.data.train = {moved + "/a1.json"};
  EXPECT_FALSE(CheckSameSettings(then, Now(config), {}).ok());
  directory_.Write("moved/a2.json", "[2]");
  config.data.train = {moved + "/a2.json", moved + "/a1.json"};
  EXPECT_FALSE(CheckSameSettings(then, Now(config), {}).ok());
  config.data.train = {moved + "/a1.json", moved + "/a2.json"};
  EXPECT_TRUE(CheckSameSettings(then, Now(config), {}).ok());
  directory_.Write("words.txt", "[UNK]\n");
  EXPECT_THAT(CheckSameSettings(then, Now(config), {}).status().ToString(),
              HasSubstr("another tokenizer.vocabulary: it began with "));
}

TEST_F(RunFilesTest, ReadsDirectoriesAndPrefixesOfCheckpoints) {
  RunConfig config = Config();
  const std::string init = directory_.File("init");
  std::filesystem::create_directory(init);
  const auto names = [&] {
    const auto files = FindRunFiles(config, nullptr);
    EXPECT_TRUE(files.ok()) << files.status();
    std::vector<std::string> found;
    for (const RunFile& file : files->at("init")) {
      found.push_back(std::filesystem::path(file.path).filename().string());
    }
    return found;
  };
  directory_.Write("init/bert_model.ckpt.index", "i");
  directory_.Write("init/bert_model.ckpt.data-00000-of-00001", "d");
  directory_.Write("init/bert_config.json", "{}");
  directory_.Write("init/.gitattributes", "");
  config.init = init;
  EXPECT_THAT(names(), ElementsAre("bert_config.json",
                                   "bert_model.ckpt.data-00000-of-00001",
                                   "bert_model.ckpt.index"));
  config.init = init + "/bert_model.ckpt";
  EXPECT_THAT(names(), ElementsAre("bert_model.ckpt.data-00000-of-00001",
                                   "bert_model.ckpt.index"));
  config.init = init + "/bert_config.json";
  EXPECT_THAT(names(), ElementsAre("bert_config.json"));
  config.init = "";
  EXPECT_THAT(names(), IsEmpty());
}

// People put notes beside weights, and evaluations write files there.
TEST_F(RunFilesTest, IgnoresFilesOfADirectoryThatAreNotRead) {
  RunConfig config = Config();
  config.init = directory_.File("init");
  std::filesystem::create_directory(config.init);
  directory_.Write("init/model.safetensors", "weights");
  directory_.Write("init/etc_config.json", "{}");
  const nlohmann::json then = Now(config);
  for (const char* added :
       {"README.md", "evaluation.json", "predictions.json", "config.json",
        "training_state.safetensors", "pytorch_model.bin", "notes.txt"}) {
    directory_.Write(absl::StrCat("init/", added), "added");
    EXPECT_TRUE(CheckSameSettings(then, Now(config), {}).ok()) << added;
  }
  for (const char* read : {"model.safetensors", "etc_config.json"}) {
    const std::string name = absl::StrCat("init/", read);
    const std::string text = *ReadFile(directory_.File(name));
    directory_.Write(name, "others");
    EXPECT_THAT(CheckSameSettings(then, Now(config), {}).status().ToString(),
                HasSubstr("another init"))
        << read;
    directory_.Write(name, text);
  }
  std::filesystem::remove(directory_.File("init/etc_config.json"));
  EXPECT_FALSE(CheckSameSettings(then, Now(config), {}).ok());
}

TEST_F(RunFilesTest, RefusesAVocabularyThatIsUsedOtherwise) {
  RunConfig config = Config();
  config.tokenizer.vocabulary = directory_.Write("vocab.txt", "[PAD]\n");
  directory_.Write("tokenizer_config.json", R"({"strip_accents": false})");
  const nlohmann::json then = Now(config);
  EXPECT_THAT(*CheckSameSettings(then, Now(config), {}), IsEmpty());
  directory_.Write("tokenizer_config.json", R"({"strip_accents": true})");
  EXPECT_THAT(CheckSameSettings(then, Now(config), {}).status().ToString(),
              HasSubstr("another tokenizer.vocabulary"));
}

// They may name the class of the tokenizer, and complete a vocabulary that is
// not theirs.
TEST_F(RunFilesTest, RefusesOtherStatementsOfTheFilesOfTheWeights) {
  RunConfig config = Config();
  config.tokenizer.vocabulary = directory_.Write("vocab.txt", "[PAD]\n");
  config.init = directory_.File("init");
  std::filesystem::create_directory(config.init);
  directory_.Write("init/model.safetensors", "weights");
  directory_.Write("init/vocab.txt", "[PAD]\n");
  directory_.Write("init/config.json", R"({"model_type": "bert"})");
  directory_.Write("init/etc_config.json", "{}");
  directory_.Write("config.json", R"({"model_type": "bert"})");
  const nlohmann::json now = Now(config);
  for (const char* name :
       {"init/tokenizer_config.json", "config.json", "init/config.json"}) {
    const std::string path = directory_.File(name);
    const std::string before = ReadFile(path).value_or("");
    directory_.Write(name, R"({"tokenizer_class": "BertTokenizer"})");
    EXPECT_THAT(CheckSameSettings(now, Now(config), {}).status().ToString(),
                HasSubstr("another tokenizer.vocabulary"))
        << name;
    if (before.empty()) {
      std::filesystem::remove(path);
    } else {
      directory_.Write(name, before);
    }
  }
  EXPECT_TRUE(CheckSameSettings(now, Now(config), {}).ok());
  // The same directory, spelled in another way.
  config.tokenizer.vocabulary = directory_.File("init/vocab.txt");
  const nlohmann::json beside = Now(config);
  config.init = directory_.File("init/.");
  const absl::Status same = CheckSameSettings(beside, Now(config), {}).status();
  EXPECT_TRUE(same.ok()) << same;
}

TEST_F(RunFilesTest, IgnoresFilesBesideAVocabularyThatAreNotRead) {
  const std::pair<const char*, const char*> table[] = {
      {"huggingface", "special_tokens_map.json"},
      {"sentencepiece", "tokenizer.json"}};
  for (const auto& [type, unread] : table) {
    RunConfig config = Config();
    config.tokenizer.type = type;
    config.tokenizer.vocabulary = directory_.Write("words", "{}");
    const nlohmann::json then = Now(config);
    const std::string link = directory_.File(unread);
    std::filesystem::create_symlink("nowhere", link);
    EXPECT_EQ(Now(config), then) << type;
    std::filesystem::remove(link);
  }
}

TEST_F(RunFilesTest, NamesTheFieldOfAFileThatIsNotThere) {
  RunConfig config = Config();
  config.data.dev = {"/nowhere/a*.json"};
  EXPECT_THAT(FindRunFiles(config, nullptr).status().ToString(),
              HasSubstr("data.dev: there is no file that matches /nowhere/a"));
  config = Config();
  config.tokenizer.vocabulary = "/nowhere/vocab.txt";
  EXPECT_THAT(FindRunFiles(config, nullptr).status().ToString(),
              HasSubstr("tokenizer.vocabulary: there is no file or directory "
                        "/nowhere/vocab.txt"));
  config = Config();
  config.data.train = {"/nowhere/a.json"};
  EXPECT_THAT(FindRunFiles(config, nullptr).status().ToString(),
              HasSubstr("/nowhere/a.json"));
}

TEST_F(RunFilesTest, TellsHowFarItIsAndCanBeStopped) {
  RunConfig config = Config();
  config.data.train = {directory_.Write("a", std::string(3 << 20, 'a')),
                       directory_.Write("b", std::string(2 << 20, 'b'))};
  uint64_t last = 0;
  const auto listen = [&last](uint64_t bytes, uint64_t num_bytes) {
    EXPECT_LT(last, bytes);
    EXPECT_EQ(num_bytes, 5 << 20);
    last = bytes;
    return absl::OkStatus();
  };
  ASSERT_TRUE(FindRunFiles(config, listen).ok());
  EXPECT_EQ(last, 5 << 20);
  const auto stop = [](uint64_t, uint64_t) {
    return absl::CancelledError("enough");
  };
  EXPECT_EQ(FindRunFiles(config, stop).status(),
            absl::CancelledError("enough"));
}

// Each file is read by one of them, unless it is another file elsewhere.
TEST_F(RunFilesTest, AreReadByOneProcessEach) {
  RunConfig config = Config();
  config.data.train = {directory_.Write("a", std::string(3 << 20, 'a')),
                       directory_.Write("b", std::string(2 << 20, 'b'))};
  std::string changed(2 << 20, 'b');
  changed.front() = 'c';
  RunConfig other = config;
  other.data.train.back() = directory_.Write("c", changed);
  const auto expected = FindRunFiles(config, nullptr);
  const auto expected_other = FindRunFiles(other, nullptr);
  ASSERT_TRUE(expected.ok() && expected_other.ok());
  std::vector<uint64_t> bytes(3);
  RunAsGroup(3, [&](const DataGroup& group) {
    uint64_t& read = bytes[static_cast<size_t>(group.rank)];
    const auto listen = [&read](uint64_t so_far, uint64_t) {
      read = so_far;
      return absl::OkStatus();
    };
    const auto same = FindRunFiles(config, listen, group);
    ASSERT_TRUE(same.ok()) << same.status();
    for (const auto& [field, files] : *expected) {
      for (size_t i = 0; i < files.size(); ++i) {
        EXPECT_EQ(same->at(field)[i].path, files[i].path);
        EXPECT_EQ(same->at(field)[i].digest, files[i].digest) << files[i].path;
      }
    }
    const bool is_last = group.rank == 2;
    const auto some = FindRunFiles(is_last ? other : config, nullptr, group);
    ASSERT_TRUE(some.ok()) << some.status();
    EXPECT_EQ(
        some->at("data.train")[1].digest,
        (is_last ? expected_other : expected)->at("data.train")[1].digest);
  });
  std::sort(bytes.begin(), bytes.end());
  EXPECT_LT(bytes[0], 1 << 10);
  EXPECT_EQ(bytes[1] >> 20, 2);
  EXPECT_EQ(bytes[2] >> 20, 3);
}

// One that is stopped while others wait for its digests.
TEST_F(RunFilesTest, EndAlikeInAllProcesses) {
  RunConfig config = Config();
  config.data.train = {directory_.Write("a", std::string(3 << 20, 'a'))};
  RunConfig other = config;
  other.data.train.push_back(directory_.File("nowhere"));
  RunAsGroup(3, [&](const DataGroup& group) {
    const auto stop = [&](uint64_t, uint64_t num_bytes) {
      return num_bytes >= (3 << 20) ? absl::CancelledError("enough")
                                    : absl::OkStatus();
    };
    const auto stopped = FindRunFiles(config, stop, group);
    EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
    EXPECT_THAT(stopped.status().message(), HasSubstr("enough"));
    const auto without =
        FindRunFiles(group.rank == 1 ? other : config, nullptr, group);
    EXPECT_EQ(without.status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(without.status().message(), HasSubstr("nowhere"));
  });
}

}  // namespace
}  // namespace etc
