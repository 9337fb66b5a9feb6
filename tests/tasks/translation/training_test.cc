// Training of a tiny translation model from files to checkpoints: the loss
// that is reported against the model's own, dev losses that do not depend on
// the batch, runs that are stopped and resumed to the bit in the middle of an
// epoch. Bits are compared where the arithmetic is
// the same; where sums are in another order, to 1e-5 of the value.

#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "etc/encoder_decoder/admin_omegas.h"
#include "etc/encoder_decoder/fairseq_checkpoint.h"
#include "etc/encoder_decoder/fairseq_names.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/pytorch_writer.h"
#include "tasks/data/example_source.h"
#include "tasks/data/loader.h"
#include "tasks/runs/task_setup.h"
#include "tasks/train/model_task.h"
#include "tasks/translation/bleu.h"
#include "tasks/translation/initial_weights.h"
#include "tasks/translation/model.h"
#include "tasks/translation/parallel_text.h"
#include "tasks/translation/translator.h"
#include "tests/support/tensor_matchers.h"
#include "tests/tasks/translation/training_fixture.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Examples AllPairsOf(const ExampleSource& text) {
  Examples pairs;
  for (int64_t i = 0; i < text.size(); ++i) {
    pairs.push_back(text.Make(RequestForEvaluation(i))->front());
  }
  return pairs;
}

TEST_F(TranslationTrainingTest, TrainsSavesAndEvaluates) {
  const GridResult result = Train("run");
  EXPECT_TRUE(result.finished);
  EXPECT_THAT(messages_, Contains(HasSubstr("omegas are set by the first")));
  const std::vector<nlohmann::json> lines = MetricsLines(Seed("run"));
  EXPECT_NEAR(lines.front()["learning_rate"].get<double>(), 1e-7, 1e-12);
  const nlohmann::json& scores = lines.back()["evaluation"];
  EXPECT_LT(scores["nll_loss"], 3.2);  // of 20 tokens by chance: 3.0
  EXPECT_NEAR(scores["perplexity"].get<double>(),
              std::exp(scores["nll_loss"].get<double>()), 1e-9);
  EXPECT_EQ(result.main_metric, "loss");
  EXPECT_TRUE(result.lower_is_better);
  for (const char* file : {"encoder_decoder.json", "model.safetensors",
                           "run_config.json", "dict.txt"}) {
    EXPECT_TRUE(std::filesystem::exists(
        absl::StrCat(Seed("run"), "/checkpoints/best/", file)))
        << file;
  }
}

TEST_F(TranslationTrainingTest, DividesTheLossOnceByTheTokensOfTheUpdate) {
  const RunConfig config = ConfigOf(json_);
  RunConfig complete = config;
  const auto setup = SetUpTraining(&complete);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_EQ(complete.encoder_decoder->vocab_size, 20);
  const auto text = setup->task->Open({.patterns = complete.data.dev});
  ASSERT_TRUE(text.ok()) << text.status();
  torch::manual_seed(1);
  auto model = MakeTranslationModel(complete, {}, torch::kCPU);
  ASSERT_TRUE(model.ok()) << model.status();
  const Examples pairs = AllPairsOf(**text);
  int64_t tokens = 0;
  for (const auto& pair : pairs) {
    tokens += static_cast<int64_t>(
        static_cast<const TranslationExample&>(*pair).target.size());
  }
  EXPECT_EQ(model->Totals(pairs).front(), tokens);
  const TranslationInput input = MakeTranslationInput(pairs, torch::kCPU);
  EXPECT_EQ(input.source_ids[0][-1].item<int64_t>(), 2);  // padded on the left
  EXPECT_EQ(input.decoder_ids[0][0].item<int64_t>(), 2);
  model->SetTraining(false);
  const SmoothedLoss whole = model->model()->Loss(
      input.source_ids, input.decoder_ids, input.targets, 0.1);
  const Batch batch = model->Collate(pairs, torch::kCPU);
  const auto logits = model->Forward(batch);
  EXPECT_EQ(logits.front().size(0), batch.size());
  EXPECT_NEAR(model->Loss(logits, batch, {10.0}).item<double>(),
              whole.loss.item<double>() / 10, 1e-5);
  EXPECT_NEAR(logits.front().select(1, 1).sum().item<double>(),
              whole.nll.item<double>(), 1e-4);
  EXPECT_EQ(logits.front().select(1, 2).sum().item<double>(), tokens);
}

// By the formula of doc/translation.md 4.2, from the logits.
TEST_F(TranslationTrainingTest, SmoothsLabelsAsConfigured) {
  json_["translation"]["label_smoothing"] = 0.3;
  RunConfig config = ConfigOf(json_);
  const auto setup = SetUpTraining(&config);
  ASSERT_TRUE(setup.ok()) << setup.status();
  const auto text = setup->task->Open({.patterns = config.data.dev});
  ASSERT_TRUE(text.ok()) << text.status();
  const Examples pairs = AllPairsOf(**text);
  torch::manual_seed(1);
  auto model = MakeTranslationModel(config, *ReadTranslationOptions(config),
                                    torch::kCPU);
  ASSERT_TRUE(model.ok()) << model.status();
  model->SetTraining(false);
  const torch::NoGradGuard no_grad;
  const TranslationInput input = MakeTranslationInput(pairs, torch::kCPU);
  const torch::Tensor log_probabilities =
      model->model()
          ->forward(input.source_ids, input.decoder_ids)
          .log_softmax(-1);
  const torch::Tensor of_targets =
      log_probabilities.gather(-1, input.targets.unsqueeze(-1)).squeeze(-1);
  const torch::Tensor losses =  // [B, T]
      of_targets.mul(-0.7).sub(log_probabilities.mean(-1), 0.3);
  const torch::Tensor expected = losses.mul(input.targets.ne(1)).sum(1);
  const torch::Tensor sums =
      model->Forward(model->Collate(pairs, torch::kCPU)).front();
  EXPECT_TRUE(IsClose(sums.select(1, 0), expected, 1e-4));
}

TEST_F(TranslationTrainingTest, HasNoEncoderWithAHead) {
  RunConfig config = ConfigOf(json_);
  const auto setup = SetUpTraining(&config);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_EQ(EncoderTaskOf(*setup->task, "It is of translation").status(),
            absl::InvalidArgumentError(
                "It is of translation, whose model is no encoder with layers "
                "of a task"));
}

TEST_F(TranslationTrainingTest, HasBatchesOfAtMostMaxSentences) {
  json_["translation"]["max_sentences"] = 2;
  RunConfig config = ConfigOf(json_);
  const auto setup = SetUpTraining(&config);
  ASSERT_TRUE(setup.ok()) << setup.status();
  const ModelTask* const task = AsModelTask(*setup->task);
  ASSERT_NE(task, nullptr);
  const auto text = setup->task->Open(
      {.patterns = config.data.train, .use = RecordUse::kTraining});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(task->CountUnits(**text, /*batch_size=*/1), 30);  // of 60 pairs
  const auto loader = task->MakeLoader(**text, {.batch_size = 30}, {});
  const auto batch = loader->Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->next.epoch, 1);
  ASSERT_EQ(batch->micro_batches.size(), 30u);
  for (const Examples& sentences : batch->micro_batches) {
    EXPECT_EQ(sentences.size(), 2u);
  }
}

TEST_F(TranslationTrainingTest, GoesOnToTheBitInTheMiddleOfAnEpoch) {
  Train("whole");
  const int64_t updates = MetricsLines(Seed("whole")).back()["step"];
  ASSERT_GT(updates, 5);
  EXPECT_FALSE(Train("parts", /*stop_after=*/1).finished);
  EXPECT_FALSE(Train("parts", /*stop_after=*/4, /*resume=*/true).finished);
  EXPECT_TRUE(Train("parts", -1, /*resume=*/true).finished);
  EXPECT_EQ(Weights("parts"), Weights("whole"));
  EXPECT_EQ(MetricsLines(Seed("parts")), MetricsLines(Seed("whole")));
}

// A row of the token tables would stand for another piece.
TEST_F(TranslationTrainingTest, GoesOnWithNoOtherVocabulary) {
  EXPECT_FALSE(Train("run", /*stop_after=*/1).finished);
  const std::string dictionary = *ReadFile(directory_.File("dict.txt"));
  json_["tokenizer"]["vocabulary"] =
      directory_.Write("other.txt", "A 10\na 10\n" + dictionary.substr(10));
  json_["output"] = directory_.File("run");
  FakeReporter reporter;
  const auto result =
      TrainGrid(ConfigOf(json_),
                {.earlier = EarlierRun::kResume,
                 .allow_changes = {"tokenizer"},
                 .context = {.reporter = &reporter, .stop = &reporter.stop}});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status().message()),
              AllOf(HasSubstr("tokenizer.vocabulary"),
                    HasSubstr("begin a new run with --set init=RUN")));
}

// fairseq's folders have one for each language.
TEST_F(TranslationTrainingTest, ReadsTheVocabularyBesideInitOrNamesItsType) {
  const std::string dictionary = *ReadFile(directory_.File("dict.txt"));
  const std::string init = directory_.File("init");
  std::filesystem::create_directory(init);
  for (const char* language : {"de", "en"}) {
    directory_.Write(absl::StrCat("init/dict.", language, ".txt"), dictionary);
  }
  json_["init"] = init;
  json_["tokenizer"].erase("vocabulary");
  json_["output"] = directory_.File("run");
  EXPECT_EQ(ConfigOf(json_).tokenizer.vocabulary, init + "/dict.de.txt");
  json_["tokenizer"]["type"] = "sentencepiece";
  const auto config = RunConfigFromJson(json_, "run.json");
  EXPECT_EQ(config.status().message(),
            absl::StrCat("run.json: tokenizer.type is \"sentencepiece\", but "
                         "init, ",
                         init,
                         ", has dict.de.txt (\"dictionary\"): give that type, "
                         "or name a vocabulary"));
}

// They share their data, but not what is said of their model.
TEST_F(TranslationTrainingTest, DescribesTheModelOfEachSettingOfAGrid) {
  json_["train"]["steps"] = 1;
  json_["schedule"]["warmup_steps"] = 1;
  json_["grid"] = {{"model.cross_residual_attention", {"off", "mean"}}};
  Train("grid");
  for (const char* mode : {"off", "mean"}) {
    EXPECT_THAT(messages_, Contains(HasSubstr(absl::StrCat(mode, " (cross)"))));
  }
}

TEST_F(TranslationTrainingTest, TakesTheOmegasOfAFile) {
  json_["translation"]["admin_omegas"] = directory_.Write(
      "profile.ratio.init",
      "1 1.0\n2 1.5\n3 1.75\n4 2.0\n1 1.0\n2 1.25\n3 1.5\n4 1.75\n5 2.0\n6 "
      "2.25\n");
  RunConfig config = ConfigOf(json_);
  ASSERT_TRUE(SetUpTraining(&config).ok());
  const TranslationOptions options = *ReadTranslationOptions(config);
  const auto model = MakeTranslationModel(config, options, torch::kCPU);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->model()->encoder()->Omegas()[3][5].item<double>(), 2.0);
  EXPECT_EQ(model->model()->decoder()->Omegas()[5][0].item<double>(), 2.25);
}

// With the vocabulary that it has.
TEST_F(TranslationTrainingTest, StartsFromTheWeightsOfACheckpoint) {
  Train("first");
  json_["init"] = Seed("first") + "/checkpoints/last";
  json_["tokenizer"].erase("vocabulary");
  json_["train"]["steps"] = 1;
  json_["schedule"]["warmup_steps"] = 1;
  Train("second");
  EXPECT_THAT(messages_, Contains(HasSubstr("encoder-decoder: from ")));
  // The checkpoint has its omegas.
  EXPECT_THAT(messages_, Not(Contains(HasSubstr("omegas are set"))));
  EXPECT_LT(MetricsLines(Seed("second")).front()["loss"],
            MetricsLines(Seed("first")).front()["loss"]);
}

// What no tensor shows: heads are cut from the same matrices.
TEST_F(TranslationTrainingTest, RefusesInitialWeightsOfAnotherFunction) {
  RunConfig config = ConfigOf(json_);
  ASSERT_TRUE(SetUpTraining(&config).ok());
  const auto vocabulary = LoadTranslationVocabulary(config.tokenizer);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  const auto model = MakeTranslationModel(config, {}, torch::kCPU);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string dictionary = *ReadFile(config.tokenizer.vocabulary);
  const std::string directory = directory_.File("first");
  std::filesystem::create_directory(directory);
  ASSERT_TRUE(
      WriteTranslationModel(config, *model, dictionary, directory).ok());
  config.init = directory;
  EncoderDecoderConfig& sizes = *config.encoder_decoder;
  const EncoderDecoderConfig same = sizes;
  const auto load = [&] {
    return LoadInitialTranslationWeights(config, **vocabulary, *model);
  };
  const auto error = [&] {
    const auto loaded = load();
    sizes = same;
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(loaded.status().message());
  };
  sizes.num_attention_heads = 4;
  EXPECT_THAT(error(), HasSubstr("run.json: model.num_attention_heads should "
                                 "be 2, that of init, "));
  sizes.hidden_act = "gelu";
  EXPECT_THAT(error(), HasSubstr("model.hidden_act should be relu, that of"));
  sizes.layer_norm_epsilon = 1e-6;
  EXPECT_THAT(error(), HasSubstr("model.layer_norm_epsilon should be 1e-05"));
  sizes.encoder_sublayer = "post_norm";
  EXPECT_THAT(error(), HasSubstr("model.encoder_sublayer should be admin"));
  sizes.decoder_sublayer = "pre_norm";
  EXPECT_THAT(error(), HasSubstr("model.decoder_sublayer should be admin"));
  // Training may go on with other residual scores.
  sizes.cross_residual_attention = "off";
  const auto loaded = load();
  sizes = same;
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(*loaded, HasSubstr("residual attention mean, mean, mean"));

  // No SentencePiece, whose library a run with a dictionary does not need.
  directory_.Write("first/tokenizer.model", "pieces of others");
  EXPECT_TRUE(load().ok());
  directory_.Write("first/dict.txt", "A 10\na 10\n" + dictionary.substr(10));
  EXPECT_THAT(error(), HasSubstr("dict.txt, beside the weights of init, but "
                                 "piece 4 is \"a\", not \"A\""));

  config.init = directory_.File("model.pt");
  ASSERT_TRUE(WriteFairseqCheckpoint(config.init, model->model()).ok());
  EXPECT_TRUE(load().ok());
  sizes.num_attention_heads = 4;
  EXPECT_THAT(error(), HasSubstr("model.pt: num_attention_heads should be 2"));
  sizes.hidden_act = "gelu";
  EXPECT_THAT(error(), HasSubstr("model.hidden_act should be relu"));

  // A file without options does not say its heads and activation.
  ASSERT_TRUE(WritePytorchFile(config.init, nlohmann::json::object(), {},
                               "model", *FairseqTensors(model->model()))
                  .ok());
  sizes.num_attention_heads = 4;
  sizes.hidden_act = "gelu";
  EXPECT_TRUE(load().ok());
}

// fairseq names dictionaries by languages beside the weights that it publishes.
TEST_F(TranslationTrainingTest, RefusesInitialWeightsOfAnotherDictionary) {
  RunConfig config = ConfigOf(json_);
  ASSERT_TRUE(SetUpTraining(&config).ok());
  const auto vocabulary = LoadTranslationVocabulary(config.tokenizer);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  const auto model = MakeTranslationModel(config, {}, torch::kCPU);
  ASSERT_TRUE(model.ok()) << model.status();
  std::filesystem::create_directory(directory_.File("hub"));
  config.init = directory_.File("hub/model.pt");
  ASSERT_TRUE(WriteFairseqCheckpoint(config.init, model->model()).ok());
  const std::string dictionary = *ReadFile(config.tokenizer.vocabulary);
  const auto load_with = [&](const char* name, const std::string& lines) {
    directory_.Write(name, lines);
    return LoadInitialTranslationWeights(config, **vocabulary, *model).status();
  };
  EXPECT_TRUE(load_with("hub/dict.en.txt", dictionary).ok());
  const absl::Status permuted =
      load_with("hub/dict.en.txt", "A 10\na 10\n" + dictionary.substr(10));
  EXPECT_EQ(permuted.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(permuted.message()),
              HasSubstr("dict.en.txt, beside the weights of init, but piece 4 "
                        "is \"a\", not \"A\""));
  const absl::Status differing = load_with("hub/dict.de.txt", dictionary);
  EXPECT_EQ(differing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(differing.message()),
              HasSubstr("dict.en.txt should be equal"));
}

// Gates of a path that the model has no use for are left out, and those that
// the weights lack begin with residual_gate_init.
TEST_F(TranslationTrainingTest, StartsFromModesWithAndWithoutGates) {
  using Modes = std::array<const char*, 3>;  // encoder, decoder, cross
  json_["model"]["residual_gate_init"] = 0.25;
  const auto config_of = [&](const Modes& modes) {
    nlohmann::json json = json_;
    json["model"].update({{"encoder_residual_attention", modes[0]},
                          {"decoder_residual_attention", modes[1]},
                          {"cross_residual_attention", modes[2]}});
    RunConfig config = ConfigOf(json);
    EXPECT_TRUE(SetUpTraining(&config).ok());
    return config;
  };
  const auto vocabulary = LoadTranslationVocabulary(ConfigOf(json_).tokenizer);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  const std::string directory = directory_.File("first");
  std::filesystem::create_directory(directory);
  for (const auto& [before, after, gates] :
       {std::tuple(Modes{"off", "mean", "off"}, Modes{"gate", "gate", "gate"},
                   3),
        {Modes{"gate", "gate", "gate"}, Modes{"sum", "off", "mean"}, 0},
        {Modes{"gate", "off", "sum"}, Modes{"sum", "gate", "gate"}, 2}}) {
    const RunConfig first = config_of(before);
    const auto old = MakeTranslationModel(first, {}, torch::kCPU);
    ASSERT_TRUE(old.ok()) << old.status();
    ASSERT_TRUE(WriteTranslationModel(first, *old,
                                      *ReadFile(first.tokenizer.vocabulary),
                                      directory)
                    .ok());
    RunConfig config = config_of(after);
    config.init = directory;
    const auto model = MakeTranslationModel(config, {}, torch::kCPU);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto loaded =
        LoadInitialTranslationWeights(config, **vocabulary, *model);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const NamedTensors weights = old->Tensors();
    int begun = 0;
    for (const auto& [name, tensor] : model->Tensors()) {
      const auto weight = weights.find(name);
      begun += weight == weights.end() ? 1 : 0;
      EXPECT_TRUE(torch::equal(tensor, weight == weights.end()
                                           ? torch::full({2}, 0.25)
                                           : weight->second))
          << name;
    }
    EXPECT_EQ(begun, gates);
  }
}

// Returns a new model, whose checkpoint is then in `directory`.
TranslationModel WriteNewModel(const RunConfig& config,
                               const std::string& directory) {
  const auto model = MakeTranslationModel(config, {}, torch::kCPU);
  EXPECT_TRUE(model.ok()) << model.status();
  std::filesystem::create_directory(directory);
  EXPECT_TRUE(WriteTranslationModel(config, model.value(),
                                    *ReadFile(config.tokenizer.vocabulary),
                                    directory)
                  .ok());
  return model.value();
}

TEST_F(TranslationTrainingTest, RefusesGatesThatAreLost) {
  json_["residual_attention"] = "gate";
  RunConfig config = ConfigOf(json_);
  ASSERT_TRUE(SetUpTraining(&config).ok());
  const std::string directory = directory_.File("first");
  const TranslationModel model = WriteNewModel(config, directory);
  NamedTensors tensors = model.Tensors();
  // The only one of its path.
  const std::string gate = "decoder.layers.1.cross_attention.gate";
  ASSERT_EQ(tensors.erase(gate), 1u);
  ASSERT_TRUE(WriteTensors(directory + "/model.safetensors", tensors, {}).ok());
  EXPECT_THAT(std::string(LoadTranslationWeights(directory, model).message()),
              HasSubstr("lacks " + gate));
}

TEST_F(TranslationTrainingTest, RefusesWeightsThatAreNotFinite) {
  RunConfig config = ConfigOf(json_);
  ASSERT_TRUE(SetUpTraining(&config).ok());
  const auto model = MakeTranslationModel(config, {}, torch::kCPU);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string path = directory_.File("odd.safetensors");
  const auto load_with = [&](double weight) {
    const torch::NoGradGuard no_grad;
    model->Tensors().at("embedding.weight")[5][3].fill_(weight);
    EXPECT_TRUE(WriteTensors(path, model->Tensors(), {}).ok());
    return LoadTranslationWeights(path, *model);
  };
  EXPECT_TRUE(load_with(1.5).ok());
  for (const double weight : {static_cast<double>(NAN), HUGE_VAL}) {
    const absl::Status loaded = load_with(weight);
    EXPECT_EQ(loaded.code(), absl::StatusCode::kInvalidArgument) << weight;
    EXPECT_THAT(std::string(loaded.message()),
                AllOf(HasSubstr(path), HasSubstr("embedding.weight")));
  }
}

TEST_F(TranslationTrainingTest, RefusesABeamOfTheWholeVocabulary) {
  json_["translation"]["beam_size"] = 20;
  RunConfig config = ConfigOf(json_);
  EXPECT_EQ(std::string(SetUpTraining(&config).status().message()),
            "run.json: translation.beam_size should be from 1 to 19 (the "
            "vocabulary but one), but is 20");
}

TEST_F(TranslationTrainingTest, RefusesFieldsThatDecideNothing) {
  for (const auto& [object, field] :
       {std::pair("tokenizer", "lower_case"),
        std::pair("tokenizer", "split_punctuation"),
        std::pair("data", "max_long_length"),
        std::pair("data", "max_global_length"),
        std::pair("data", "bucket_batches")}) {
    nlohmann::json json = json_;
    json[object][field] = object == std::string("data") ? nlohmann::json(100)
                                                        : nlohmann::json(false);
    EXPECT_EQ(
        std::string(ReadTranslationOptions(ConfigOf(json)).status().message()),
        absl::StrCat("run.json: ", object, ".", field,
                     " decides nothing for translation"));
  }
}

TEST_F(TranslationTrainingTest, RefusesAModelWithTooFewRows) {
  json_["model"]["vocab_size"] = 19;
  RunConfig config = ConfigOf(json_);
  const auto setup = SetUpTraining(&config);
  EXPECT_EQ(setup.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(setup.status().message()),
              AllOf(HasSubstr("run.json: model.vocab_size should be at least "
                              "20"),
                    HasSubstr("but is 19")));
}

std::string LineName(size_t line) { return absl::StrCat("lines:", line + 1); }

Translation BestTranslationOf(const std::string& line, Translator* translator) {
  const std::vector<std::vector<int32_t>> lines = {
      *translator->Encode(line, "line")};
  Translation best;
  const absl::Status done = translator->Translate(
      lines, {},
      [&](size_t /*line*/, const std::vector<Translation>& found) {
        best = found.front();
        return absl::OkStatus();
      },
      LineName);
  EXPECT_TRUE(done.ok()) << done;
  return best;
}

// With a beam of 1 the penalty changes no translation. Scores are negative, and
// lengths at least 2.
TEST_F(TranslationTrainingTest, TranslatesWithTheLengthPenaltyOfItsCheckpoint) {
  json_["translation"].update(
      {{"beam_size", 1}, {"length_penalty", 0}, {"max_length", 5}});
  json_["train"]["steps"] = 1;
  json_["schedule"]["warmup_steps"] = 1;
  Train("run");
  const auto score_with = [&](const TranslatorOptions& options) {
    auto translator =
        Translator::Open(Seed("run") + "/checkpoints/last", options, {});
    EXPECT_TRUE(translator.ok()) << translator.status();
    return BestTranslationOf("a b c", &*translator).score;
  };
  const double of_checkpoint = score_with({});
  EXPECT_EQ(of_checkpoint, score_with({.length_penalty = 0.0}));
  EXPECT_LT(of_checkpoint, score_with({.length_penalty = 1.0}));
}

// Weights are finite, but their products are not.
TEST_F(TranslationTrainingTest, SaysWhichLineHasNoTranslation) {
  json_["data"]["on_bad_record"] = "skip";
  RunConfig config = ConfigOf(json_);
  const auto setup = SetUpTraining(&config);
  ASSERT_TRUE(setup.ok()) << setup.status();
  const auto model = MakeTranslationModel(config, {}, torch::kCPU);
  ASSERT_TRUE(model.ok()) << model.status();
  {
    const torch::NoGradGuard no_grad;
    model->Tensors().at("embedding.weight").fill_(3e38);
  }
  const auto vocabulary = ReadFile(config.tokenizer.vocabulary);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  const std::string directory = directory_.File("odd");
  std::filesystem::create_directory(directory);
  ASSERT_TRUE(
      WriteTranslationModel(config, *model, *vocabulary, directory).ok());
  auto translator = Translator::Open(directory, {.max_length = 3}, {});
  ASSERT_TRUE(translator.ok()) << translator.status();
  const std::vector<std::vector<int32_t>> lines = {
      {}, *translator->Encode("a b", "line")};
  int written = 0;
  const absl::Status done = translator->Translate(
      lines, {},
      [&](size_t /*line*/, const std::vector<Translation>& /*found*/) {
        ++written;
        return absl::OkStatus();
      },
      LineName);
  EXPECT_EQ(done.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(done.message()),
              HasSubstr("lines:2 has no translation"));
  EXPECT_EQ(written, 1);  // the empty line

  // The first pair is skipped.
  const auto bleu =
      TranslateAndScore(*setup->task,
                        {.patterns = {directory_.Write("odd.src", "\na b\n"),
                                      directory_.Write("odd.tgt", "A\nB A\n")},
                         .use = RecordUse::kEvaluation},
                        {}, &*translator);
  EXPECT_EQ(bleu.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(bleu.status().message()),
              HasSubstr("odd.src:2 has no translation"));
}

// Each capital letter is a part of a word: the references are what the model
// wrote, cut into its tokens.
TEST_F(TranslationTrainingTest, ScoresTextsWhosePartsAreJoined) {
  std::vector<std::pair<std::string, std::string>> parts;
  for (char letter = 'A'; letter <= 'H'; ++letter) {
    const std::string token(1, letter);
    parts.emplace_back(token + " ", token + "@@ ");
  }
  for (const char* const file : {"dict.txt", "train.tgt", "dev.tgt"}) {
    const auto contents = ReadFile(directory_.File(file));
    ASSERT_TRUE(contents.ok()) << contents.status();
    directory_.Write(file, absl::StrReplaceAll(*contents, parts));
  }
  Train("run");
  auto translator = Translator::Open(
      directory_.File("run"), {.max_length = 8, .unknown_penalty = 1000}, {});
  ASSERT_TRUE(translator.ok()) << translator.status();
  std::string sources;
  std::string references;
  for (const std::string line : {"a b c d e f", "h g", "c c c d"}) {
    absl::StrAppend(&sources, line, "\n");
    const std::string text = BestTranslationOf(line, &*translator).text;
    for (const char letter : text) {
      if (letter != ' ') {
        absl::StrAppend(&references, std::string(1, letter),
                        absl::ascii_isupper(letter) ? "@@ " : " ");
      }
    }
    references += "\n";
  }
  EXPECT_THAT(references, HasSubstr("@@ "));
  RunConfig config = ConfigOf(json_);
  const auto setup = SetUpTraining(&config);
  ASSERT_TRUE(setup.ok()) << setup.status();
  const auto bleu = TranslateAndScore(
      *setup->task,
      {.patterns = {directory_.Write("parts.src", sources),
                    directory_.Write("parts.tgt", references)},
       .use = RecordUse::kEvaluation},
      {}, &*translator);
  ASSERT_TRUE(bleu.ok()) << bleu.status();
  EXPECT_EQ(bleu->score.matches, bleu->score.totals);
  EXPECT_EQ(bleu->score.hypothesis_length, bleu->score.reference_length);
  EXPECT_EQ(BleuSignature(bleu->options), BleuSignature(TokenizedBleu()));
}

class TranslatorTest : public TranslationTrainingTest {
 protected:
  TranslatorTest() { Train("run"); }
  absl::StatusOr<Translator> Open(const TranslatorOptions& options = {}) {
    return Translator::Open(directory_.File("run"), options, {});
  }
};

TEST_F(TranslatorTest, TranslatesLinesInTheirOrderWhateverTheBatch) {
  const std::vector<std::string> lines = {"a b c d e f", "", "a", "h g"};
  std::vector<std::string> seen;
  for (const int64_t batch_size : {1, 2, 128}) {
    auto translator = Open({.num_best = 2, .batch_size = batch_size});
    ASSERT_TRUE(translator.ok()) << translator.status();
    std::vector<std::vector<int32_t>> encoded;
    for (const std::string& line : lines) {
      encoded.push_back(*translator->Encode(line, "lines:1"));
    }
    std::vector<std::string> written;
    const absl::Status done = translator->Translate(
        encoded, {},
        [&](size_t line, const std::vector<Translation>& found) {
          EXPECT_EQ(line, written.size());
          EXPECT_EQ(found.size(), line == 1 ? 1u : 2u);
          written.push_back(found.front().text);
          return absl::OkStatus();
        },
        LineName);
    EXPECT_TRUE(done.ok()) << done;
    EXPECT_EQ(written.size(), lines.size());
    EXPECT_EQ(written[1], "");
    EXPECT_NE(written[0], "");
    if (!seen.empty()) {
      EXPECT_EQ(written, seen);
    }
    seen = written;
  }
}

// The flag is set within the only batch, by the first step of its search.
TEST_F(TranslatorTest, StopsInTheMiddleOfABatch) {
  static std::atomic<bool> stop;
  static int steps;
  stop = false;
  steps = 0;
  auto translator = Open();
  ASSERT_TRUE(translator.ok()) << translator.status();
  const std::vector<std::vector<int32_t>> lines = {
      *translator->Encode("a b c d", "line")};
  const at::CallbackHandle handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& function)
                                     -> std::unique_ptr<at::ObserverContext> {
        if (function.name() == std::string("aten::log_softmax")) {
          ++steps;
          stop = true;
        }
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  const absl::Status done = translator->Translate(
      lines, {.stop = &stop},
      [](size_t /*line*/, const std::vector<Translation>& /*found*/) {
        ADD_FAILURE();
        return absl::OkStatus();
      },
      LineName);
  at::removeCallback(handle);
  EXPECT_EQ(done.code(), absl::StatusCode::kCancelled) << done;
  EXPECT_EQ(steps, 1);
}

// Penalties that outweigh any log-probability.
TEST_F(TranslatorTest, PenalizesUnknownTokens) {
  const auto text_with = [&](double penalty) {
    auto translator =
        Open({.beam_size = 1, .max_length = 3, .unknown_penalty = penalty});
    EXPECT_TRUE(translator.ok()) << translator.status();
    return BestTranslationOf("a b c", &*translator).text;
  };
  EXPECT_EQ(text_with(-1000), "<unk> <unk> <unk>");
  EXPECT_THAT(text_with(1000), Not(HasSubstr("<unk>")));
}

TEST_F(TranslatorTest, RefusesLinesAndOptionsByName) {
  const auto message = [](const auto& result) {
    return std::string(result.status().message());
  };
  auto translator = Open();
  ASSERT_TRUE(translator.ok()) << translator.status();
  EXPECT_THAT(message(translator->Encode("a \xff", "in:7")),
              HasSubstr("in:7: a line should be UTF-8"));
  EXPECT_THAT(message(translator->Encode("x y", "in:8")),
              HasSubstr("in:8: a line should have a token that the vocabulary "
                        "knows, but \"x y\" has none"));
  std::string long_line;
  for (int i = 0; i < 1024; ++i) {
    long_line += "a ";
  }
  EXPECT_THAT(message(translator->Encode(long_line, "in:9")),
              HasSubstr("in:9: a line should have at most 1024 tokens"));
  const auto longest = translator->Encode(long_line.substr(2), "in:10");
  ASSERT_TRUE(longest.ok()) << longest.status();
  EXPECT_EQ(longest->size(), 1024u);
  EXPECT_EQ(message(Open({.beam_size = 20})),
            "translate: --beam should be from 1 to 19 (the vocabulary but "
            "one), but is 20");
  EXPECT_EQ(message(Open({.num_best = 6})),
            "translate: --n-best should be from 1 to --beam, 5, but is 6");
  EXPECT_THAT(message(Open({.length_penalty = NAN})),
              HasSubstr("translate: --length-penalty should be"));
  EXPECT_THAT(message(Open({.unknown_penalty = NAN})),
              HasSubstr("translate: --unknown-penalty should be"));
}

}  // namespace
}  // namespace etc
