// Weights in and out: what a run starts from (an encoder with or without
// prefix, a head of this or another task, another residual mode), what a
// directory of a fine-tuned model gives back, and the messages of those that
// cannot be used.

#include "tasks/train/task_model.h"

#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "base/file.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/import_plan.h"
#include "etc/weights/pretraining_heads.h"
#include "etc/weights/tokenizer_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/runs/task_setup.h"
#include "tasks/text/tokenizer.h"
#include "tasks/train/device.h"
#include "tasks/train/initial_weights.h"
#include "tasks/train/model_files.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/train/toy_task.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunConfig ParseConfig(const nlohmann::json& json) {
  auto config = RunConfigFromJson(json, "toy");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

TaskModel MakeModel(const RunConfig& config, uint64_t seed,
                    const ToyTask& task) {
  torch::manual_seed(seed);
  return MakeTaskModel(config, task);
}

TaskModel MakeModel(const RunConfig& config, uint64_t seed) {
  return MakeModel(config, seed, ToyTask(config.model));
}

// The configuration with a BERT as its model.
RunConfig WithBert(RunConfig config) {
  config.model.max_absolute_position_embeddings = 8;
  config.model.relative_pos_max_distance = 0;
  config.model.relative_vocab_size = std::nullopt;
  config.model.share_att_output_projection = true;
  config.model.has_long_tokens = false;
  return config;
}

bool SameTensors(const NamedTensors& left, const NamedTensors& right) {
  for (const auto& [name, tensor] : left) {
    if (right.count(name) == 0 || !torch::equal(tensor, right.at(name))) {
      return false;
    }
  }
  return left.size() == right.size();
}

NamedTensors Head(const TaskModel& model) {
  return ModuleTensors(*model.head());
}
NamedTensors Encoder(const TaskModel& model) {
  return ModuleTensors(*model.encoder());
}

class TaskModelTest : public testing::Test {
 protected:
  TaskModelTest() : config_(ParseConfig(ToyConfigJson("a", "b", "c"))) {}

  // A directory as a run writes it, of `model`.
  std::string WriteModel(const RunConfig& config, const TaskModel& model) {
    const std::string directory = temporary_.File("model");
    EXPECT_TRUE(CreateDirectories(directory).ok());
    const std::string vocabulary = "[PAD]\n";
    const absl::Status status = WriteTaskModel(
        {.config = config, .model = model, .vocabulary = vocabulary},
        directory);
    EXPECT_TRUE(status.ok()) << status;
    return directory;
  }

  TemporaryDirectory temporary_;
  RunConfig config_;
};

TEST_F(TaskModelTest, ComputesAsTheConfigurationSays) {
  RunConfig config = config_;
  EXPECT_EQ(MakeModel(config, 1).encoder()->linear_precision(),
            LinearPrecision::kFloat32);
  config.train.precision = "bf16";
  config.train.score_storage = "store";
  const TaskModel model = MakeModel(config, 1);
  // Float32 only on a CPU that has no products in bfloat16.
  EXPECT_EQ(model.encoder()->linear_precision(),
            PrecisionOn(torch::kCPU, config));
  EXPECT_EQ(model.encoder()->score_storage(), ScoreStorage::kStore);
}

TEST_F(TaskModelTest, ComesBackAsItWas) {
  const TaskModel model = MakeModel(config_, 1);
  const std::string written = WriteModel(config_, model);
  const std::string moved = temporary_.File("moved");
  std::filesystem::rename(written, moved);

  const auto config = ReadTaskModelConfig(moved);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->task, "toy");
  EXPECT_EQ(config->residual_attention, "sum");
  EXPECT_EQ(config->model.hidden_size, 16);
  EXPECT_EQ(config->tokenizer.vocabulary, moved + "/vocab.txt");
  EXPECT_EQ(*ReadFile(config->tokenizer.vocabulary), "[PAD]\n");

  const auto loaded = LoadTaskModel(moved, *config, ToyTask(config->model));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(SameTensors(loaded->Tensors(), model.Tensors()));
  EXPECT_EQ(loaded->encoder()->residual_attention(), ResidualAttention::kSum);
  EXPECT_FALSE(loaded->encoder()->is_training());
}

TEST_F(TaskModelTest, CarriesTheTablesOfItsSentences) {
  const PunktFiles punkt = {.abbreviations = "mr\n",
                            .collocations = "a\tb\n",
                            .sentence_starters = "the\n",
                            .orthography = "the\t2\n"};
  nlohmann::json json = ToyConfigJson("a", "b", "c");
  json["data"]["sentences"] = "gone/english";
  const RunConfig config = ParseConfig(json);
  const std::string directory = temporary_.File("model");
  ASSERT_TRUE(CreateDirectories(directory).ok());
  const TaskModel model = MakeModel(config, 1);
  const absl::Status written = WriteTaskModel(
      {.config = config, .model = model, .vocabulary = "", .punkt = &punkt},
      directory);
  ASSERT_TRUE(written.ok()) << written;
  const std::string moved = temporary_.File("moved");
  std::filesystem::rename(directory, moved);

  const auto read = ReadTaskModelConfig(moved);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->data.sentences, moved + "/punkt");
  const auto files = ReadPunktFiles(read->data.sentences);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(*files, punkt);

  std::filesystem::remove(moved + "/punkt/ortho_context.tab");
  EXPECT_THAT(ReadTaskModelConfig(moved).status().message(),
              HasSubstr(moved + "/punkt should be a folder of Punkt's"));
}

TEST_F(TaskModelTest, WorksWithoutTheResidualScoresItWasTrainedWith) {
  const std::string written = WriteModel(config_, MakeModel(config_, 1));
  const auto config = ReadTaskModelConfig(written);
  ASSERT_TRUE(config.ok()) << config.status();
  const ToyTask task(config->model);
  auto with = LoadTaskModel(written, *config, task);
  auto without = LoadTaskModel(written, *config, task);
  ASSERT_TRUE(with.ok() && without.ok());
  without->encoder()->set_residual_attention(ResidualAttention::kOff);
  EXPECT_TRUE(SameTensors(with->Tensors(), without->Tensors()));
  const EtcInput input{.token_ids = torch::arange(6).unsqueeze(0),
                       .global_token_ids = torch::ones({1, 1}, torch::kInt64)};
  const torch::Tensor sum = with->encoder()->forward(input).long_output;
  const torch::Tensor off = without->encoder()->forward(input).long_output;
  EXPECT_FALSE(torch::allclose(sum, off, /*rtol=*/0, /*atol=*/1e-6));
}

TEST_F(TaskModelTest, KnowsTheResidualModeThatWasUsed) {
  // The model's own object says nothing: the mode is a field of the run.
  RunConfig config = config_;
  config.residual_attention = "mean";
  config.json["residual_attention"] = "mean";
  const auto read =
      ReadTaskModelConfig(WriteModel(config, MakeModel(config, 1)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->residual_attention, "mean");
  EXPECT_EQ(read->model.residual_attention, "mean");
}

// The memory plan of a micro-batch sets the model's, not the configuration's.
TEST_F(TaskModelTest, WritesTheCheckpointingPeriodOfTheConfiguration) {
  for (const int64_t period : {0, 2}) {
    config_.model.grad_checkpointing_period = period;
    config_.json["model"]["grad_checkpointing_period"] = period;
    const TaskModel model = MakeModel(config_, 1);
    model.encoder()->set_grad_checkpointing_period(1);
    const auto read = ReadTaskModelConfig(WriteModel(config_, model));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->model.grad_checkpointing_period, period);
  }
}

TEST_F(TaskModelTest, StartsFromEncoderAndHeadOfTheSameTask) {
  const TaskModel before = MakeModel(config_, 1);
  RunConfig config = config_;
  config.init = WriteModel(config_, before);
  const TaskModel model = MakeModel(config, 2);
  ASSERT_FALSE(SameTensors(model.Tensors(), before.Tensors()));
  const auto notices = LoadInitialWeights(config, model);
  ASSERT_TRUE(notices.ok()) << notices.status();
  EXPECT_TRUE(SameTensors(model.Tensors(), before.Tensors()));
  EXPECT_THAT(notices->messages, ElementsAre("encoder: from " + config.init,
                                             "head: from " + config.init));
}

TEST_F(TaskModelTest, StartsWithANewHeadForAnotherTask) {
  const TaskModel before = MakeModel(config_, 1);
  RunConfig other = config_;
  other.task = "other";
  RunConfig config = config_;
  config.init = WriteModel(other, before);
  config.residual_attention = "off";
  const TaskModel model = MakeModel(config, 2);
  const auto notices = LoadInitialWeights(config, model);
  ASSERT_TRUE(notices.ok()) << notices.status();
  EXPECT_TRUE(SameTensors(Encoder(model), Encoder(before)));
  EXPECT_FALSE(SameTensors(Head(model), Head(before)));
  EXPECT_THAT(
      notices->messages,
      ElementsAre(
          "encoder: from " + config.init,
          AllOf(HasSubstr("head: random weights"), HasSubstr("for other")),
          "residual attention: pre-trained with sum, fine-tuning with "
          "off"));
  EXPECT_EQ(model.encoder()->residual_attention(), ResidualAttention::kOff);
}

// Options of the first run may have given its head layers that this one lacks.
TEST_F(TaskModelTest, SaysWhichWeightsOfTheHeadItDrops) {
  const TaskModel before = MakeModel(config_, 1);
  RunConfig config = config_;
  config.init = WriteModel(config_, before);
  NamedTensors tensors = before.Tensors();
  tensors["head.visual.bias"] = torch::ones({2});
  tensors["head.visual.weight"] = torch::ones({2});
  ASSERT_TRUE(WriteTensors(config.init + "/model.safetensors", tensors,
                           {{kTaskKey, config.task}})
                  .ok());
  const TaskModel model = MakeModel(config, 2);
  const auto notices = LoadInitialWeights(config, model);
  ASSERT_TRUE(notices.ok()) << notices.status();
  EXPECT_TRUE(SameTensors(Head(model), Head(before)));
  EXPECT_THAT(
      notices->messages,
      ElementsAre("encoder: from " + config.init, "head: from " + config.init,
                  "head: dropped head.visual.bias, head.visual.weight"));
}

// A head of the same shape whose rows stand for other labels.
TEST_F(TaskModelTest, StartsWithANewHeadForOtherOutputs) {
  config_.json["toy"]["labels"] = {"a", "b"};
  const TaskModel before = MakeModel(config_, 1);
  RunConfig config = config_;
  config.init = WriteModel(config_, before);
  const auto load = [&config](const TaskModel& model) {
    const auto notices = LoadInitialWeights(config, model, {"toy.labels"});
    EXPECT_TRUE(notices.ok()) << notices.status();
    return notices->messages.back();
  };
  const TaskModel same = MakeModel(config, 2);
  EXPECT_EQ(load(same), "head: from " + config.init);
  EXPECT_TRUE(SameTensors(same.Tensors(), before.Tensors()));

  config.json["toy"]["labels"] = {"b", "a"};
  const TaskModel other = MakeModel(config, 2);
  EXPECT_EQ(load(other), "head: random weights; " + config.init +
                             " has one for other outputs");
  EXPECT_TRUE(SameTensors(Encoder(other), Encoder(before)));
  EXPECT_FALSE(SameTensors(Head(other), Head(before)));
}

TEST_F(TaskModelTest, StartsFromABareEncoder) {
  const TaskModel before = MakeModel(config_, 1);
  RunConfig config = config_;
  config.init = temporary_.File("encoder.safetensors");
  ASSERT_TRUE(WriteTensors(config.init, Encoder(before), {}).ok());
  const TaskModel model = MakeModel(config, 2);
  const auto notices = LoadInitialWeights(config, model);
  ASSERT_TRUE(notices.ok()) << notices.status();
  EXPECT_TRUE(SameTensors(Encoder(model), Encoder(before)));
  EXPECT_FALSE(SameTensors(Head(model), Head(before)));
}

// A checkpoint of pre-training, ours or another's, starts any task: the heads
// that it has are not this task's.
TEST_F(TaskModelTest, StartsFromPretrainingAndSaysWhatItLeaves) {
  const TaskModel before = MakeModel(config_, 1);
  NamedTensors ours;
  NamedTensors official = *TensorsInStyle(
      ModuleTensors(*before.encoder()), config_.model, NameStyle::kOfficialEtc);
  NamedTensors heads;
  for (const PretrainingParameter& parameter :
       PretrainingParameters(config_.model)) {
    heads[parameter.parameter.name] =
        torch::ones(parameter.parameter.shape, torch::kFloat32);
  }
  official.merge(HeadsInStyle(heads, config_.model, NameStyle::kOfficialEtc));
  ours = Encoder(before);
  ours.merge(heads);
  RunConfig config = config_;
  config.init = temporary_.File("model.safetensors");
  for (const bool is_ours : {true, false}) {
    ASSERT_TRUE(
        (is_ours ? WriteTensors(config.init, ours, {{"task", kPretrainingTask}})
                 : WriteTensors(config.init, official, {}))
            .ok());
    const TaskModel model = MakeModel(config, 2);
    const auto notices = LoadInitialWeights(config, model);
    ASSERT_TRUE(notices.ok()) << notices.status();
    EXPECT_TRUE(SameTensors(Encoder(model), Encoder(before)));
    EXPECT_TRUE(SameTensors(Head(model), Head(MakeModel(config, 2))));
    EXPECT_THAT(notices->messages,
                ElementsAre(HasSubstr("encoder: from " + config.init),
                            "heads not used: CPC kernel, MLM head, "
                            "NSP head, pooler",
                            HasSubstr(is_ours ? "has those of pre-training"
                                              : "has no head for toy")));
  }
}

// BERT in our own form, as `realetc import` leaves it; the run says what it
// misses.
TEST_F(TaskModelTest, LiftsBert) {
  RunConfig bert = WithBert(config_);
  bert.residual_attention = "mean";
  const TaskModel before = MakeModel(bert, 1);
  RunConfig config = config_;
  config.model.share_qkv_projections = false;
  config.init = WriteModel(bert, before);
  const TaskModel model = MakeModel(config, 2);
  const auto notices = LoadInitialWeights(config, model);
  ASSERT_TRUE(notices.ok()) << notices.status();
  EXPECT_THAT(
      notices->messages,
      ElementsAre(
          HasSubstr("8 of 82 parameters freshly initialised"),
          "encoder: BERT is lifted to ETC (model.has_long_tokens false keeps "
          "it)",
          AllOf(HasSubstr("dropped"), HasSubstr("global_position")),
          "head: from " + config.init,
          "residual attention: pre-trained with mean, fine-tuning with sum"));
  EXPECT_TRUE(
      torch::equal(Encoder(model).at("layers.1.attention.g2l_key.weight"),
                   Encoder(before).at("layers.1.attention.l2l_key.weight")));
  const std::string relative = "layers.1.attention.long_relative.embedding";
  EXPECT_TRUE(torch::equal(Encoder(model).at(relative),
                           Encoder(MakeModel(config, 2)).at(relative)))
      << "what the source has not stays as the seed made it";
  config.train.steps = 0;
  EXPECT_THAT(std::string(LoadInitialWeights(config, model).status().message()),
              AllOf(HasSubstr("train.steps is 0, but 8 parameters of the "
                              "encoder would be random: "),
                    HasSubstr(".long_relative.embedding")));
}

TEST_F(TaskModelTest, RefusesAnEncoderThatLacksTensors) {
  NamedTensors tensors = Encoder(MakeModel(config_, 1));
  const std::string lost = tensors.begin()->first;
  tensors.erase(lost);
  RunConfig config = config_;
  config.init = temporary_.File("encoder.safetensors");
  ASSERT_TRUE(WriteTensors(config.init, tensors, {}).ok());
  EXPECT_THAT(
      LoadInitialWeights(config, MakeModel(config, 2)).status().ToString(),
      AllOf(HasSubstr(config.init + ": there is no tensor"), HasSubstr(lost)));
}

TEST_F(TaskModelTest, RefusesAnEncoderOfOtherShapes) {
  RunConfig smaller = config_;
  smaller.model.intermediate_size = 8;
  RunConfig config = config_;
  config.init = WriteModel(smaller, MakeModel(smaller, 1));
  EXPECT_THAT(
      LoadInitialWeights(config, MakeModel(config, 2)).status().ToString(),
      HasSubstr("intermediate_size should be 32, but is 8"));
}

TEST_F(TaskModelTest, RefusesAModelOfAnotherTask) {
  RunConfig other = config_;
  other.task = "other";
  const std::string directory = WriteModel(other, MakeModel(other, 1));
  EXPECT_THAT(LoadTaskModel(directory, config_, ToyTask(config_.model))
                  .status()
                  .ToString(),
              HasSubstr("is fine-tuned for other, not for toy"));
}

// Weights of the encoder and of the head, loaded whole or to begin with.
TEST_F(TaskModelTest, NamesTheWeightsThatAreNotFinite) {
  for (const std::string name :
       {"encoder.layers.1.feed_forward.output.weight", "head.output.bias"}) {
    const TaskModel model = MakeModel(config_, 1);
    {
      const torch::NoGradGuard no_grad;
      model.Tensors().at(name).view({-1})[1].fill_(
          std::numeric_limits<float>::quiet_NaN());
    }
    RunConfig config = config_;
    config.init = WriteModel(config_, model);
    const auto message =
        AllOf(HasSubstr(config.init), HasSubstr(name), HasSubstr("1 of its "));
    EXPECT_THAT(LoadTaskModel(config.init, config_, ToyTask(config_.model))
                    .status()
                    .ToString(),
                message);
    EXPECT_THAT(
        LoadInitialWeights(config, MakeModel(config, 2)).status().ToString(),
        message);
  }
}

// A vocabulary that is found somewhere else may have become another one.
TEST_F(TaskModelTest, DoesNotTakeAVocabularyFromElsewhere) {
  RunConfig config = config_;
  const std::string original = temporary_.Write("words.txt", "[PAD]\n");
  config.tokenizer.vocabulary = original;
  config.json["tokenizer"]["vocabulary"] = original;
  const std::string directory = WriteModel(config, MakeModel(config, 1));
  EXPECT_EQ(ReadTaskModelConfig(directory)->tokenizer.vocabulary,
            directory + "/vocab.txt");
  std::filesystem::remove(directory + "/vocab.txt");
  EXPECT_THAT(ReadTaskModelConfig(directory).status().ToString(),
              AllOf(HasSubstr("there is no " + directory + "/vocab.txt"),
                    HasSubstr("the run read " + original)));
  // A link that leads nowhere is not absent: opening it says why.
  std::filesystem::create_symlink("nowhere", directory + "/vocab.txt");
  EXPECT_EQ(ReadTaskModelConfig(directory)->tokenizer.vocabulary,
            directory + "/vocab.txt");
  std::filesystem::remove(directory + "/vocab.txt");
  // The same where the vocabulary was that of `init`.
  config.json["tokenizer"].erase("vocabulary");
  config.json["init"] = "bert";
  WriteModel(config, MakeModel(config, 1));
  std::filesystem::remove(directory + "/vocab.txt");
  EXPECT_THAT(ReadTaskModelConfig(directory).status().ToString(),
              HasSubstr("there is no " + directory + "/vocab.txt"));
}

TEST_F(TaskModelTest, KeepsHowItsVocabularyIsUsed) {
  const WordPieceOptions options = {.strip_accents = false,
                                    .tokenize_chinese_chars = false,
                                    .max_word_code_points = 100};
  const std::string directory = temporary_.File("model");
  ASSERT_TRUE(CreateDirectories(directory).ok());
  const TaskModel model = MakeModel(config_, 1);
  ASSERT_TRUE(WriteTaskModel({.config = config_,
                              .model = model,
                              .vocabulary = "[PAD]\n",
                              .wordpiece = options},
                             directory)
                  .ok());
  const auto config = ReadTaskModelConfig(directory);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(
      DescribeTokenizer("wordpiece", config->tokenizer.vocabulary)->wordpiece,
      options);
}

// The files of the weights say what none beside the vocabulary does.
TEST_F(TaskModelTest, KeepsWhatTheFilesOfTheWeightsSayOfItsVocabulary) {
  TemporaryDirectory init;
  const std::string pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n";
  init.Write("vocab.txt", pieces);
  init.Write("tokenizer_config.json",
             R"({"strip_accents": false, "tokenizer_class": "BertTokenizer"})");
  RunConfig config = config_;
  config.init = init.path();
  config.tokenizer.vocabulary = temporary_.Write("words.txt", pieces);
  const ToyTask task(config.model);
  const auto model = MakeModelWithFiles(config, task, torch::kCPU, 1);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string directory = temporary_.File("model");
  ASSERT_TRUE(CreateDirectories(directory).ok());
  const absl::Status saved = model->save(directory);
  ASSERT_TRUE(saved.ok()) << saved;
  const auto written = FindTokenizer(directory);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(
      written->wordpiece,
      (WordPieceOptions{.strip_accents = false, .max_word_code_points = 100}));
  const auto trained = LoadTokenizer(config.tokenizer, config.init);
  ASSERT_TRUE(trained.ok()) << trained.status();
  EXPECT_EQ(written->wordpiece, *(*trained)->wordpiece_options());
}

// The original's directory may have got files since that say something else.
TEST_F(TaskModelTest, AsksNobodyButItsOwnDirectory) {
  RunConfig config = config_;
  const std::string original = temporary_.Write("words.txt", "[PAD]\n");
  config.tokenizer.vocabulary = original;
  config.json["tokenizer"]["vocabulary"] = original;
  const std::string directory = WriteModel(config, MakeModel(config, 1));
  temporary_.Write("tokenizer_config.json", R"({"do_lower_case": false})");
  const auto read = ReadTaskModelConfig(directory);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->tokenizer.lower_case);
}

TEST_F(TaskModelTest, NamesTheFileThatIsNotThere) {
  EXPECT_THAT(ReadTaskModelConfig("/nowhere").status().ToString(),
              HasSubstr("/nowhere/run_config.json"));
  RunConfig config = config_;
  config.init = "/nowhere";
  EXPECT_THAT(
      LoadInitialWeights(config, MakeModel(config, 2)).status().ToString(),
      HasSubstr("/nowhere"));
}

// --- A pooler, and a number --------------------------------------------------

// Predicts mean + deviation * output, as a regression of texts does.
class NumberHead : public ToyHead, public NamedOutputs {
 public:
  NumberHead(int64_t hidden_size, double mean, double deviation)
      : ToyHead(hidden_size), mean_(mean), deviation_(deviation) {
    register_module("pooler", torch::nn::Linear(hidden_size, hidden_size));
    register_module("classifier", torch::nn::Linear(hidden_size, 1));
  }
  Meaning OutputMeaning() const override {
    return {.labels = {},
            .problem_type = "regression",
            .mean = mean_,
            .deviation = deviation_};
  }

 private:
  const double mean_;
  const double deviation_;
};

class NumberTask : public ToyTask {
 public:
  explicit NumberTask(const EtcConfig& model, double mean = 0,
                      double deviation = 1)
      : ToyTask(model),
        hidden_size_(model.hidden_size),
        mean_(mean),
        deviation_(deviation) {}
  std::shared_ptr<TaskHead> MakeHead() const override {
    return std::make_shared<NumberHead>(hidden_size_, mean_, deviation_);
  }

 private:
  const int64_t hidden_size_;
  const double mean_;
  const double deviation_;
};

TEST_F(TaskModelTest, ConvertsANumberToTheScaleOfTheRun) {
  const TaskModel before =
      MakeModel(config_, 1, NumberTask(config_.model, 2, 3));
  {
    const torch::NoGradGuard no_grad;
    before.Tensors().at("head.classifier.bias").fill_(0.5);
  }
  RunConfig config = config_;
  config.init = WriteModel(config_, before);
  const TaskModel model = MakeModel(config, 2, NumberTask(config.model, 5, 6));
  const auto notices = LoadInitialWeights(config, model);
  ASSERT_TRUE(notices.ok()) << notices.status();
  // 2 + 3 (w x + 0.5) = 5 + 6 (w x / 2 - 0.25)
  EXPECT_TRUE(torch::allclose(Head(model).at("classifier.weight"),
                              Head(before).at("classifier.weight") / 2));
  EXPECT_NEAR(Head(model).at("classifier.bias").item<double>(), -0.25, 1e-6);
}

TEST_F(TaskModelTest, TakesThePoolerOfBertForBertAlone) {
  RunConfig bert = WithBert(config_);
  bert.task = "other";
  const TaskModel before = MakeModel(bert, 1, NumberTask(bert.model));
  const std::string written = WriteModel(bert, before);
  bert.task = "toy";
  bert.init = written;
  const TaskModel same = MakeModel(bert, 2, NumberTask(bert.model));
  auto notices = LoadInitialWeights(bert, same);
  ASSERT_TRUE(notices.ok()) << notices.status();
  for (const char* name : {"pooler.weight", "pooler.bias", "classifier.weight",
                           "classifier.bias"}) {
    EXPECT_TRUE(torch::equal(Head(same).at(name), Head(before).at(name)))
        << name;
  }

  // An ETC's outputs are others than those that they were trained on.
  RunConfig lifted = config_;
  lifted.model.share_qkv_projections = false;
  lifted.init = written;
  const TaskModel model = MakeModel(lifted, 2, NumberTask(lifted.model));
  notices = LoadInitialWeights(lifted, model);
  ASSERT_TRUE(notices.ok()) << notices.status();
  EXPECT_THAT(notices->messages,
              testing::Contains("head: random weights; the model is lifted, "
                                "which leaves out the pooler and classifier "
                                "of " +
                                written));
  EXPECT_TRUE(SameTensors(
      Head(model), Head(MakeModel(lifted, 2, NumberTask(lifted.model)))));
}

// All of its parts have names that other codes know, too.
TEST_F(TaskModelTest, LeavesNoHeadOutThatItTakesAsAWhole) {
  const TaskModel before = MakeModel(config_, 1, NumberTask(config_.model));
  RunConfig config = config_;
  config.init = WriteModel(config_, before);
  const TaskModel model = MakeModel(config, 2, NumberTask(config.model));
  const auto notices = LoadInitialWeights(config, model);
  ASSERT_TRUE(notices.ok()) << notices.status();
  EXPECT_TRUE(SameTensors(Head(model), Head(before)));
  EXPECT_THAT(notices->messages, ElementsAre("encoder: from " + config.init,
                                             "head: from " + config.init));
}

// A preset or a file says what the model is lifted to.
TEST_F(TaskModelTest, AsksNotToKeepABertWhereTheModelIsChosen) {
  const RunConfig bert = WithBert(config_);
  RunConfig config = config_;
  config.json["model"]["preset"] = "base";
  config.model.share_qkv_projections = false;
  config.init = WriteModel(bert, MakeModel(bert, 1));
  const auto notices = LoadInitialWeights(config, MakeModel(config, 2));
  ASSERT_TRUE(notices.ok()) << notices.status();
  EXPECT_THAT(notices->messages,
              testing::Contains("encoder: BERT is lifted to ETC"));
}

// --- Gates -------------------------------------------------------------------

RunConfig ConfigWithGates(double initial) {
  nlohmann::json json = ToyConfigJson("a", "b", "c");
  json["residual_attention"] = "gate";
  json["model"]["residual_gate_init"] = initial;
  return ParseConfig(json);
}

// With gates of 1.5, 2.5, ..., and all else as MakeModel makes it.
TaskModel ModelWithGates(const RunConfig& config) {
  const TaskModel model = MakeModel(config, 1);
  const torch::NoGradGuard no_grad;
  double value = 0.5;
  for (const auto& [name, tensor] : model.Tensors()) {
    if (IsGate(name)) {
      torch::Tensor(tensor).fill_(++value);
    }
  }
  return model;
}

TEST_F(TaskModelTest, GatesComeBackWithTheirStart) {
  const RunConfig gate = ConfigWithGates(0.25);
  const TaskModel model = ModelWithGates(gate);
  const std::string written = WriteModel(gate, model);
  const auto config = ReadTaskModelConfig(written);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->residual_attention, "gate");
  EXPECT_EQ(config->model.residual_gate_init, 0.25);
  const auto loaded = LoadTaskModel(written, *config, ToyTask(config->model));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(SameTensors(loaded->Tensors(), model.Tensors()));
  EXPECT_EQ(loaded->encoder()->residual_attention(), ResidualAttention::kGate);
}

// As for --residual: a mode that the file's tensors are not of.
TEST_F(TaskModelTest, LoadsIntoModesWithAndWithoutGates) {
  const RunConfig gate = ConfigWithGates(0.25);
  const TaskModel with = ModelWithGates(gate);
  const std::string gated = WriteModel(gate, with);
  const auto without = LoadTaskModel(gated, config_, ToyTask(config_.model));
  ASSERT_TRUE(without.ok()) << without.status();
  const NamedTensors tensors = without->Tensors();
  EXPECT_EQ(tensors.size() + 4, with.Tensors().size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(torch::equal(tensor, with.Tensors().at(name))) << name;
  }

  const std::string plain = WriteModel(config_, *without);
  const auto begun = LoadTaskModel(plain, gate, ToyTask(gate.model));
  ASSERT_TRUE(begun.ok()) << begun.status();
  for (const auto& [name, tensor] : begun->Tensors()) {
    EXPECT_TRUE(torch::equal(
        tensor, IsGate(name) ? torch::full({2}, 0.25) : tensors.at(name)))
        << name;
  }
}

TEST_F(TaskModelTest, RefusesGatesThatAreLost) {
  const RunConfig gate = ConfigWithGates(0);
  const TaskModel model = ModelWithGates(gate);
  const std::string directory = WriteModel(gate, model);
  NamedTensors tensors = model.Tensors();
  const std::string one = "encoder.layers.1.attention.l2l_gate";
  tensors.erase(one);
  const auto load = [&] {
    EXPECT_TRUE(WriteTensors(directory + "/model.safetensors", tensors,
                             {{kTaskKey, "toy"}})
                    .ok());
    return LoadTaskModel(directory, gate, ToyTask(gate.model))
        .status()
        .ToString();
  };
  EXPECT_THAT(load(), HasSubstr("lacks " + one));
  std::erase_if(tensors, [](const auto& entry) { return IsGate(entry.first); });
  EXPECT_THAT(load(), HasSubstr("lacks encoder.layers.1.attention.g2g_gate"));
}

TEST_F(TaskModelTest, SaysWhereGatesBegin) {
  const TaskModel plain = MakeModel(config_, 1);
  RunConfig gate = ConfigWithGates(1);
  gate.init = WriteModel(config_, plain);
  TaskModel model = MakeModel(gate, 2);
  auto notices = LoadInitialWeights(gate, model);
  ASSERT_TRUE(notices.ok()) << notices.status();
  EXPECT_THAT(
      notices->messages,
      ElementsAre("encoder: from " + gate.init,
                  "encoder: the weights have no gates: all begin with 1 "
                  "(residual_gate_init), which computes what sum does",
                  "head: from " + gate.init,
                  "residual attention: pre-trained with sum, fine-tuning with "
                  "gate"));

  const TaskModel gated = ModelWithGates(gate);
  gate.init = WriteModel(gate, gated);
  model = MakeModel(gate, 2);
  notices = LoadInitialWeights(gate, model);
  ASSERT_TRUE(notices.ok()) << notices.status();
  EXPECT_THAT(notices->messages, ElementsAre("encoder: from " + gate.init,
                                             "head: from " + gate.init));
  EXPECT_TRUE(SameTensors(model.Tensors(), gated.Tensors()));

  RunConfig sum = config_;
  sum.init = gate.init;
  notices = LoadInitialWeights(sum, MakeModel(sum, 2));
  ASSERT_TRUE(notices.ok()) << notices.status();
  EXPECT_THAT(
      notices->messages,
      ElementsAre("encoder: from " + gate.init,
                  "encoder: the gates of the weights are left out: residual "
                  "attention is sum, not gate",
                  "head: from " + gate.init,
                  "residual attention: pre-trained with gate, fine-tuning "
                  "with sum"));
}

}  // namespace
}  // namespace etc
