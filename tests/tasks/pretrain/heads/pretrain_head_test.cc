// The heads of pre-training on a toy encoder: names, what the loss is made of,
// and that nothing of a hidden sentence reaches what has to tell it. The parts
// have tests of their own: mlm_head_test, nsp_head_test, cpc_loss_test.

#include "tasks/pretrain/heads/pretrain_head.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/pretraining_parameters.h"
#include "tasks/data/loader.h"
#include "tasks/pretrain/examples/packed_example.h"
#include "tasks/pretrain/heads/pretrain_head.h"
#include "tasks/train/optimizer.h"
#include "tasks/train/task_model.h"
#include "tasks/train/train_step.h"

namespace etc {
namespace {

namespace nn = torch::nn::functional;

constexpr int32_t kMask = 3;
constexpr int32_t kVocabulary = 40;

EtcConfig SmallEtc() {
  EtcConfig config;
  config.vocab_size = kVocabulary;
  config.segment_vocab_size = 4;
  config.hidden_size = 16;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.intermediate_size = 24;
  config.local_radius = 4;
  config.relative_pos_max_distance = 3;
  config.relative_vocab_size = 10;
  config.hidden_dropout_prob = 0;
  config.attention_probs_dropout_prob = 0;
  config.initializer_range = 0.3;
  config.use_hard_g2l_mask = true;
  config.residual_attention = "sum";
  return config;
}

EtcConfig SmallBert() {
  EtcConfig config = *EtcConfigPreset("bert_small");
  config.vocab_size = kVocabulary;
  config.hidden_size = 16;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.intermediate_size = 24;
  config.max_absolute_position_embeddings = 12;
  config.hidden_dropout_prob = 0;
  config.attention_probs_dropout_prob = 0;
  config.initializer_range = 0.3;
  return config;
}

PretrainOptions OptionsOf(const std::string& objective) {
  PretrainOptions options;
  options.objective = objective;
  options.mlm_weight = 0.8;
  return options;
}

// Two parts of four sentences, of which the second and the last are hidden in
// each; every third other token is masked. `changed` tokens of hidden sentences
// are others, in what the sentences were.
std::shared_ptr<PretrainExample> PackedToy(const EtcConfig& model,
                                           int32_t changed = 0) {
  PackedExampleOptions options;
  options.mlm.mask_id = kMask;
  options.mlm.vocab_size = kVocabulary;
  options.pattern = {
      .local_radius = model.local_radius,
      .relative_pos_max_distance = model.relative_pos_max_distance,
      .hard_g2l = model.use_hard_g2l_mask};
  class FixedDraws : public Draws {
   public:
    double Uniform() override { return 0.5; }
    int64_t Integer(int64_t first, int64_t) override { return first; }
    // The second and the last come first.
    std::vector<int32_t> Permutation(int32_t size) override {
      std::vector<int32_t> order;
      for (int32_t i = 0; i < size; ++i) {
        order.push_back(i);
      }
      if (size == 4) {
        order = {1, 3, 0, 2};
      }
      return order;
    }
  };
  options.cpc_rate = 0.5;
  PackedExampleWriter writer(&options);
  FixedDraws draws;
  for (int32_t part = 0; part < 2; ++part) {
    DocumentPart document;
    for (int32_t sentence = 0; sentence < 4; ++sentence) {
      const bool hidden = sentence % 2 == 1;
      for (int32_t i = 0; i < 3; ++i) {
        document.pieces.Add(
            10 + (7 * part + 5 * sentence + i + (hidden ? changed : 0)) % 25,
            /*continues=*/false);
      }
      document.sentence_ends.push_back(document.pieces.size());
    }
    writer.Add(document, draws, draws);
  }
  auto example = writer.Finish();
  example->record_id = "packed";
  return example;
}

// [CLS] A [SEP] B [SEP] with `length` tokens, of which two are masked.
std::shared_ptr<PretrainExample> PairToy(int32_t length, int32_t next) {
  auto example = std::make_shared<PretrainExample>();
  example->record_id = "pair";
  for (int32_t i = 0; i < length; ++i) {
    example->global_token_ids.push_back(5 + 3 * i % 30);
    example->global_type_ids.push_back(i < length / 2 ? 0 : 1);
  }
  for (const int32_t position : {1, length - 2}) {
    example->masked_positions.push_back(position);
    example->masked_labels.push_back(std::exchange(
        example->global_token_ids[static_cast<size_t>(position)], kMask));
  }
  example->next_sentence = next;
  example->pattern = UnrestrictedPattern(0, length, /*local_radius=*/1,
                                         /*relative_pos_max_distance=*/0);
  return example;
}

TaskModel MakeModel(const EtcConfig& config, const PretrainOptions& options) {
  torch::manual_seed(5);
  EtcModel encoder(config);
  return TaskModel(encoder, std::make_shared<PretrainHead>(config, options));
}

torch::Tensor LossOf(TaskModel& model, const Examples& examples) {
  const Batch batch = MakeBatch(examples);
  return model.Loss(model.Forward(batch), batch, model.Totals(examples));
}

// --- Names -------------------------------------------------------------------

using Shapes = std::map<std::string, std::vector<int64_t>>;

TEST(PretrainHeadTest, HasTheNamesAndShapesOfFiles) {
  for (const std::string objective : {"mlm", "mlm_nsp", "mlm_cpc"}) {
    for (const std::string score : {"bilinear", "dot"}) {
      PretrainOptions options = OptionsOf(objective);
      options.cpc_score = score;
      PretrainHead head(SmallEtc(), options);
      head.to(torch::kFloat64);
      Shapes shapes;
      for (const auto& [name, tensor] : ModuleTensors(head, "head.")) {
        EXPECT_TRUE(tensor.requires_grad()) << name;
        shapes[name] = tensor.sizes().vec();
      }
      const bool has_kernel = objective == "mlm_cpc" && score == "bilinear";
      Shapes expected;
      for (const PretrainingParameter& parameter :
           PretrainingParameters(SmallEtc())) {
        if (parameter.head == PretrainingHead::kMlm ||
            (parameter.head == PretrainingHead::kCpc
                 ? has_kernel
                 : objective == "mlm_nsp")) {
          expected[parameter.parameter.name] = parameter.parameter.shape;
        }
      }
      EXPECT_EQ(shapes, expected) << objective << ", " << score;
    }
  }
}

// --- Losses ------------------------------------------------------------------

// Expected losses of pairs of two lengths, from the encoder's output and plain
// operations.
TEST(PretrainHeadTest, AddsUpTheLossesOfPairs) {
  TaskModel model = MakeModel(SmallBert(), OptionsOf("mlm_nsp"));
  model.SetTraining(false);
  const Examples examples = {PairToy(10, 1), PairToy(7, 0)};
  const Batch batch = MakeBatch(examples);
  const EtcOutput encoded = model.encoder()->forward(batch.input);
  const NamedTensors weights = model.Tensors();
  const auto linear = [&](const torch::Tensor& x, const std::string& name) {
    return torch::linear(x, weights.at(name + ".weight"),
                         weights.at(name + ".bias"));
  };
  const torch::Tensor first = encoded.global_output.select(1, 0);
  const torch::Tensor next =
      linear(torch::tanh(linear(first, "head.pooler")), "head.nsp");
  const torch::Tensor labels = torch::tensor({1, 0}, torch::kLong);
  double masked = 0;
  double correct = 0;
  for (int64_t b = 0; b < 2; ++b) {
    const auto& example =
        static_cast<const PretrainExample&>(*examples[static_cast<size_t>(b)]);
    for (size_t i = 0; i < 2; ++i) {
      const torch::Tensor x =
          encoded.global_output[b][example.masked_positions[i]].unsqueeze(0);
      const torch::Tensor hidden = torch::layer_norm(
          torch::gelu(linear(x, "head.mlm.transform"), "tanh"), {16},
          weights.at("head.mlm.norm.weight"), weights.at("head.mlm.norm.bias"),
          1e-12);
      const torch::Tensor logits =
          torch::matmul(hidden, model.encoder()->token_embedding_table().t()) +
          weights.at("head.mlm.output_bias");
      const auto label =
          torch::tensor({example.masked_labels[i]}, torch::kLong);
      masked += nn::cross_entropy(logits, label).item<double>();
      correct += logits.argmax(1).equal(label) ? 1 : 0;
    }
  }
  const double expected_next = nn::cross_entropy(next, labels).item<double>();
  EXPECT_NEAR(LossOf(model, examples).item<double>(),
              0.8 * masked / 4.00001 + expected_next, 2e-5);

  PretrainMetrics metrics(OptionsOf("mlm_nsp"));
  const torch::NoGradGuard no_grad;
  metrics.Add(batch, model.Forward(batch));
  const Metrics scores = metrics.Score();
  EXPECT_NEAR(*FindMetric(scores, "masked_lm_loss"), masked / 4, 2e-5);
  EXPECT_EQ(*FindMetric(scores, "masked_lm_accuracy"), correct / 4);
  EXPECT_NEAR(*FindMetric(scores, "next_sentence_loss"), expected_next, 1e-5);
  EXPECT_NEAR(*FindMetric(scores, "loss"), 0.8 * masked / 4 + expected_next,
              2e-5);
  EXPECT_FALSE(FindMetric(scores, "cpc_loss").has_value());
}

// Expected losses of hidden sentences, from two runs of the encoder.
TEST(PretrainHeadTest, TellsHiddenSentencesFromTheOthersOfTheBatch) {
  const EtcConfig config = SmallEtc();
  TaskModel model = MakeModel(config, OptionsOf("mlm_cpc"));
  model.SetTraining(false);
  const Examples examples = {PackedToy(config), PackedToy(config, 4)};
  const Batch batch = MakeBatch(examples);
  const torch::Tensor globals =
      model.encoder()->forward(batch.input).global_output;
  std::vector<torch::Tensor> contexts;
  std::vector<torch::Tensor> targets;
  for (int64_t b = 0; b < 2; ++b) {
    const auto& example =
        static_cast<const PretrainExample&>(*examples[static_cast<size_t>(b)]);
    ASSERT_EQ(example.hidden_globals.size(), 4u);
    // Alone, so without padding.
    const torch::Tensor target =
        model.encoder()
            ->forward(MakeBatch({example.targets}).input)
            .global_output[0];
    for (size_t i = 0; i < 4; ++i) {
      contexts.push_back(globals[b][example.hidden_globals[i]]);
      targets.push_back(target[static_cast<int64_t>(i)]);
    }
  }
  const torch::Tensor scores =
      torch::matmul(torch::matmul(torch::stack(contexts),
                                  model.Tensors().at("head.cpc.kernel")),
                    torch::stack(targets).t());
  const torch::NoGradGuard no_grad;
  for (const double temperature : {1.0, 2.0}) {
    PretrainOptions options = OptionsOf("mlm_cpc");
    options.cpc_temperature = temperature;
    TaskModel other = MakeModel(config, options);  // of the same weights
    other.SetTraining(false);
    const double expected =
        nn::cross_entropy(scores / temperature, torch::arange(8))
            .item<double>();
    PretrainMetrics metrics(options);
    metrics.Add(batch, other.Forward(batch));
    const Metrics found = metrics.Score();
    EXPECT_NEAR(*FindMetric(found, "cpc_loss"), expected, 1e-4) << temperature;
    EXPECT_EQ(*FindMetric(found, "cpc_chance"), 1.0 / 8);
    EXPECT_EQ(*FindMetric(found, "cpc_accuracy"),
              scores.argmax(1).eq(torch::arange(8)).sum().item<double>() / 8);
  }
}

// The balance is 0.8 and 0.2 (doc/pretraining.md 7), another if so configured.
TEST(PretrainHeadTest, WeighsTheLossOfHiddenSentences) {
  const EtcConfig config = SmallEtc();
  const Examples examples = {PackedToy(config), PackedToy(config, 4)};
  const Batch batch = MakeBatch(examples);
  const torch::NoGradGuard no_grad;
  for (const double weight : {0.2, 3.0}) {
    PretrainOptions options = OptionsOf("mlm_cpc");
    if (weight != 0.2) {
      options.cpc_weight = weight;
    }
    TaskModel model = MakeModel(config, options);
    model.SetTraining(false);
    PretrainMetrics metrics(options);
    metrics.Add(batch, model.Forward(batch));
    const Metrics found = metrics.Score();
    const double masked = *FindMetric(found, "masked_lm_loss");
    const double hidden = *FindMetric(found, "cpc_loss");
    const double expected = 0.8 * masked + weight * hidden;
    EXPECT_NEAR(*FindMetric(found, "loss"), expected, 1e-6);
    // The epsilon of 1e-5 beside four masked tokens.
    EXPECT_NEAR(LossOf(model, examples).item<double>(), expected, 1e-4);
    EXPECT_GT(hidden, 0.1);
  }
}

// --- What must not be seen (doc/pretraining.md 9.2) --------------------------

TEST(PretrainHeadTest, DoesNotSeeHiddenSentences) {
  for (const bool hard_g2l : {true, false}) {
    EtcConfig config = SmallEtc();
    config.use_hard_g2l_mask = hard_g2l;
    TaskModel model = MakeModel(config, OptionsOf("mlm_cpc"));
    model.SetTraining(false);
    const torch::NoGradGuard no_grad;
    const auto context = [&](int32_t changed) {
      return model.encoder()->forward(
          MakeBatch({PackedToy(config, changed)}).input);
    };
    EXPECT_TRUE(
        torch::equal(context(0).global_output, context(9).global_output));
    EXPECT_TRUE(torch::equal(context(0).long_output, context(9).long_output));
  }
}

TEST(PretrainHeadTest, TargetsSeeTheirOwnSentenceAlone) {
  const EtcConfig config = SmallEtc();
  TaskModel model = MakeModel(config, OptionsOf("mlm_cpc"));
  model.SetTraining(false);
  const torch::NoGradGuard no_grad;
  const auto targets = [&](int64_t changed_token) {
    Example example = *PackedToy(config)->targets;
    if (changed_token >= 0) {
      example.long_token_ids[static_cast<size_t>(changed_token)] = 39;
    }
    return model.encoder()
        ->forward(MakeBatch({std::make_shared<Example>(example)}).input)
        .global_output[0];
  };
  const torch::Tensor before = targets(-1);
  ASSERT_EQ(before.size(0), 4);
  for (int64_t token = 0; token < 12; ++token) {
    const torch::Tensor after = targets(token);
    for (int64_t sentence = 0; sentence < 4; ++sentence) {
      EXPECT_EQ(torch::equal(after[sentence], before[sentence]),
                token / 3 != sentence)
          << "token " << token << ", sentence " << sentence;
    }
  }
}

// --- Updates -----------------------------------------------------------------

// The masked tokens of the whole update divide, and all of its hidden sentences
// are negatives, whatever micro-batch they are in.
class UpdateOfPretrainHeadTest
    : public testing::TestWithParam<const char* /*objective*/> {};

TEST_P(UpdateOfPretrainHeadTest, IsTheSameForAllMicroBatches) {
  const std::string objective = GetParam();
  const bool pairs = objective == "mlm_nsp";
  const EtcConfig config = pairs ? SmallBert() : SmallEtc();
  Examples examples = {PairToy(10, 1), PairToy(7, 0), PairToy(9, 0),
                       PairToy(10, 1)};
  if (!pairs) {
    auto nothing_hidden = PackedToy(config, 8);
    nothing_hidden->hidden_globals.clear();
    nothing_hidden->targets = nullptr;
    examples = {PackedToy(config), nothing_hidden, PackedToy(config, 4),
                PackedToy(config, 6)};
  }
  std::vector<NamedTensors> gradients;
  std::vector<double> losses;
  for (const size_t size : {size_t{4}, size_t{1}, size_t{3}}) {
    TaskModel model = MakeModel(config, OptionsOf(objective));
    auto optimizer =
        std::make_unique<Optimizer>(OptimizerConfig(), model.NamedParameters());
    TrainStep train_step(&model, std::move(optimizer),
                         {.schedule = {.learning_rate = 1e-3, .num_steps = 9}});
    TrainingBatch batch;
    for (size_t i = 0; i < examples.size(); ++i) {
      if (i % size == 0) {
        batch.micro_batches.emplace_back();
      }
      batch.micro_batches.back().push_back(examples[i]);
    }
    const auto result = train_step.Run(batch, 0, nullptr);
    ASSERT_TRUE(result.ok() && result->has_value()) << result.status();
    losses.push_back((*result)->loss);
    NamedTensors& all = gradients.emplace_back();
    for (const auto& [name, parameter] : model.NamedParameters()) {
      if (parameter.grad().defined()) {
        all.emplace(name, parameter.grad().clone());
      }
    }
  }
  EXPECT_GT(gradients[0].size(), 20u);
  // Nor is it another than that of one batch that nothing is shared with.
  TaskModel whole = MakeModel(config, OptionsOf(objective));
  const torch::Tensor loss = LossOf(whole, examples);
  loss.backward();
  NamedTensors& plain = gradients.emplace_back();
  for (const auto& [name, parameter] : whole.NamedParameters()) {
    if (parameter.grad().defined()) {
      plain.emplace(name, parameter.grad());
    }
  }
  losses.push_back(loss.item<double>());
  for (size_t i = 1; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], losses[0], 1e-5);
    for (const auto& [name, gradient] : gradients[0]) {
      EXPECT_TRUE(torch::allclose(gradients[i].at(name), gradient,
                                  /*rtol=*/1e-3, /*atol=*/1e-5))
          << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Objectives, UpdateOfPretrainHeadTest,
                         testing::Values("mlm_nsp", "mlm_cpc"));

// Examples that ask nothing take part without a gradient.
TEST(PretrainHeadTest, TakesExamplesThatAskNothing) {
  auto nothing = PairToy(8, -1);
  nothing->masked_positions.clear();
  nothing->masked_labels.clear();
  TaskModel model = MakeModel(SmallBert(), OptionsOf("mlm_nsp"));
  auto optimizer =
      std::make_unique<Optimizer>(OptimizerConfig(), model.NamedParameters());
  TrainStep train_step(&model, std::move(optimizer),
                       {.schedule = {.learning_rate = 1e-3, .num_steps = 9}});
  const auto result = train_step.Run(
      {.micro_batches = {{nothing}, {PairToy(9, 1)}}}, 0, nullptr);
  ASSERT_TRUE(result.ok() && result->has_value()) << result.status();
  TaskModel alone = MakeModel(SmallBert(), OptionsOf("mlm_nsp"));
  EXPECT_NEAR((*result)->loss, LossOf(alone, {PairToy(9, 1)}).item<double>(),
              1e-5);
}

// The targets, which the loss is differentiated by, need no gradient then.
TEST(PretrainHeadTest, TrainsTheHeadsOfAFrozenEncoder) {
  const EtcConfig config = SmallEtc();
  TaskModel model = MakeModel(config, OptionsOf("mlm_cpc"));
  ASSERT_TRUE(FreezeParameters({"encoder.*"}, model.NamedParameters()).ok());
  auto optimizer = std::make_unique<Optimizer>(
      OptimizerConfig(), TrainedParameters(model.NamedParameters()));
  TrainStep train_step(&model, std::move(optimizer),
                       {.schedule = {.learning_rate = 1e-3, .num_steps = 9}});
  const auto result = train_step.Run(
      {.micro_batches = {{PackedToy(config)}, {PackedToy(config, 4)}}}, 0,
      nullptr);
  ASSERT_TRUE(result.ok() && result->has_value()) << result.status();
  for (const auto& [name, parameter] : model.NamedParameters()) {
    EXPECT_EQ(parameter.grad().defined(), absl::StartsWith(name, "head."))
        << name;
  }
}

// A step of the whole loss along a direction, against the gradients of all
// parameters, the encoder's and the heads', in double.
TEST(PretrainHeadTest, HasTheGradientOfItsLoss) {
  for (const std::string objective : {"mlm_nsp", "mlm_cpc"}) {
    const bool pairs = objective == "mlm_nsp";
    const EtcConfig config = pairs ? SmallBert() : SmallEtc();
    TaskModel model = MakeModel(config, OptionsOf(objective));
    model.encoder()->to(torch::kFloat64);
    model.head()->to(torch::kFloat64);
    model.encoder()->set_attention_implementation(
        AttentionImplementation::kReference);
    const Examples examples =
        pairs ? Examples{PairToy(10, 1), PairToy(7, 0)}
              : Examples{PackedToy(config), PackedToy(config, 6)};
    LossOf(model, examples).backward();
    torch::manual_seed(9);
    double slope = 0;
    NamedTensors directions;
    for (const auto& [name, parameter] : model.NamedParameters()) {
      const torch::Tensor direction = torch::randn_like(parameter);
      directions.emplace(name, direction);
      if (parameter.grad().defined()) {
        slope += (parameter.grad() * direction).sum().item<double>();
      }
    }
    const torch::NoGradGuard no_grad;
    constexpr double kStep = 1e-6;
    const auto loss_at = [&](double step) {
      for (auto& [name, parameter] : model.NamedParameters()) {
        torch::Tensor(parameter).add_(directions.at(name), step);
      }
      const double loss = LossOf(model, examples).item<double>();
      for (auto& [name, parameter] : model.NamedParameters()) {
        torch::Tensor(parameter).add_(directions.at(name), -step);
      }
      return loss;
    };
    EXPECT_NEAR((loss_at(kStep) - loss_at(-kStep)) / (2 * kStep), slope,
                1e-6 * std::max(1.0, std::abs(slope)))
        << objective;
  }
}

// Cost of each masked token: the transform, forward and backward, and the
// logits of the encoder's 40 tokens, once more than that.
TEST(PretrainHeadCostTest, CountsLogitsAndTargets) {
  constexpr double kOfToken = 3 * 2 * 16 * 16 + 4 * 2 * 16 * kVocabulary;
  const StepShape packed = {
      .batch = 2, .long_length = 100, .global_length = 20};
  const HeadCost etc =
      PretrainHead(SmallEtc(), OptionsOf("mlm_cpc")).CostOf(packed);
  EXPECT_DOUBLE_EQ(etc.flops, 2 * 15 * kOfToken);
  EXPECT_EQ(etc.targets.batch, 2);
  EXPECT_EQ(etc.targets.long_length, 10);
  EXPECT_EQ(etc.targets.global_length, 2);

  const StepShape pairs = {.batch = 2, .long_length = 0, .global_length = 60};
  PretrainOptions options = OptionsOf("mlm_nsp");
  EXPECT_DOUBLE_EQ(PretrainHead(SmallBert(), options).CostOf(pairs).flops,
                   2 * 9 * kOfToken);
  options.max_predictions = 4;
  const HeadCost bert = PretrainHead(SmallBert(), options).CostOf(pairs);
  EXPECT_DOUBLE_EQ(bert.flops, 2 * 4 * kOfToken);
  EXPECT_EQ(bert.targets.batch, 0);
}

}  // namespace
}  // namespace etc
