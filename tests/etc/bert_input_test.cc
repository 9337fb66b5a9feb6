// BERT and RealFormer's BERT as special cases of the encoder
// (doc/model.md 10.1): every token global, none long, absolute positions,
// everything shared. Against a plain implementation in double precision that is
// written down here from the specification, one dense matrix for each head, for
// residual attention off, sum and mean; with padding, two segments and both
// forms of gelu; and rows of several examples against each example alone.
// In both orders of LayerNorm, Post-LN and Pre-LN with a last one behind the
// layers (doc/model.md 4.1). Tolerance: 1e-10 in float64, 2e-5 in float32, for
// 5 layers. Outputs at padding mean nothing and are left out.
#include "etc/bert_input.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "etc/model.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

constexpr int64_t kLayers = 5;
constexpr int64_t kHeads = 3;
constexpr int64_t kHidden = 12;

EtcConfig BertLikeConfig() {
  EtcConfig config;
  config.vocab_size = 29;
  config.segment_vocab_size = 2;
  config.hidden_size = kHidden;
  config.num_hidden_layers = kLayers;
  config.num_attention_heads = kHeads;
  config.relative_pos_max_distance = 0;
  config.relative_vocab_size = std::nullopt;
  config.max_absolute_position_embeddings = 16;
  config.intermediate_size = 20;
  config.share_att_output_projection = true;
  config.layer_norm_epsilon = 1e-5;
  config.has_long_tokens = false;
  return config;
}

void SetSublayer(const std::string& sublayer, EtcConfig* config) {
  config->sublayer = sublayer;
  config->final_layer_norm = sublayer == "pre_norm";
}

// All parameters random, LayerNorms and biases too.
EtcModel SeededModel(const EtcConfig& config) {
  torch::manual_seed(1);
  EtcModel model(config);
  model->eval();
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->named_parameters()) {
    parameter.value().normal_(
        0, parameter.key().find("norm.weight") != std::string::npos ? 1 : 0.3);
  }
  return model;
}

// --- The plain implementation -----------------------------------------------

class PlainBert {
 public:
  explicit PlainBert(const EtcModel& model) : config_(model->config()) {
    for (const auto& parameter : model->named_parameters()) {
      weights_.insert(parameter.key(), parameter.value()
                                           .detach()
                                           .to(torch::kFloat64)
                                           .clone()
                                           .requires_grad_(true));
    }
  }

  const torch::OrderedDict<std::string, torch::Tensor>& weights() const {
    return weights_;
  }

  torch::Tensor Run(const torch::Tensor& ids, const torch::Tensor& types,
                    const torch::Tensor& mask) const {
    torch::Tensor x =
        At("embedding.token.weight").index_select(0, Flat(ids)) +
        At("embedding.segment.weight").index_select(0, Flat(types)) +
        At("embedding.global_position.weight")
            .narrow(0, 0, ids.size(1))
            .repeat({ids.size(0), 1});
    x = Norm(x, "embedding.global_norm").reshape({ids.size(0), -1, kHidden});
    torch::Tensor carried = torch::zeros(
        {ids.size(0), kHeads, ids.size(1), ids.size(1)}, torch::kFloat64);
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      x = Layer(x, mask, layer, &carried);
    }
    return config_.final_layer_norm ? Norm(x, "global_final_norm") : x;
  }

 private:
  torch::Tensor At(const std::string& name) const { return weights_[name]; }
  static torch::Tensor Flat(const torch::Tensor& ids) {
    return ids.reshape({-1});
  }
  torch::Tensor Dense(const torch::Tensor& x, const std::string& name) const {
    return x.matmul(At(name + ".weight").t()) + At(name + ".bias");
  }
  torch::Tensor Norm(const torch::Tensor& x, const std::string& name) const {
    const torch::Tensor centred = x - x.mean(-1, true);
    const torch::Tensor variance = centred.square().mean(-1, true);
    return centred / (variance + config_.layer_norm_epsilon).sqrt() *
               At(name + ".weight") +
           At(name + ".bias");
  }
  torch::Tensor Gelu(const torch::Tensor& x) const {
    if (config_.hidden_act == "gelu_erf") {
      return x * 0.5 * (1 + (x / std::sqrt(2.0)).erf());
    }
    return x * 0.5 *
           (1 + (std::sqrt(2.0 / M_PI) * (x + 0.044715 * x.pow(3))).tanh());
  }

  torch::Tensor Layer(const torch::Tensor& x, const torch::Tensor& mask,
                      int64_t layer, torch::Tensor* carried) const {
    const std::string p = "layers." + std::to_string(layer) + ".";
    const auto feed_forward = [&](const torch::Tensor& in) {
      return Dense(Gelu(Dense(in, p + "feed_forward.intermediate")),
                   p + "feed_forward.output");
    };
    const auto attention = [&](const torch::Tensor& in) {
      return Attention(in, mask, layer, carried);
    };
    return Block(Block(x, p + "global_attention_", attention),
                 p + "feed_forward.", feed_forward);
  }

  // A residual block around f (doc/model.md 4.1).
  torch::Tensor Block(
      const torch::Tensor& x, const std::string& prefix,
      const std::function<torch::Tensor(const torch::Tensor&)>& f) const {
    if (config_.sublayer == "rezero") {
      return x + At(prefix + "alpha") * f(x);
    }
    if (config_.sublayer == "pre_norm") {
      return x + f(Norm(x, prefix + "norm"));
    }
    return config_.sublayer == "admin"
               ? Norm(At(prefix + "omega") * x + f(x), prefix + "norm")
               : Norm(x + f(x), prefix + "norm");
  }

  // One head at a time: s, then S + s, then mask, then softmax.
  torch::Tensor Attention(const torch::Tensor& x, const torch::Tensor& mask,
                          int64_t layer, torch::Tensor* carried) const {
    const std::string p = "layers." + std::to_string(layer) + ".";
    const int64_t d = kHidden / kHeads;
    const torch::Tensor query = Dense(x, p + "attention.long_query");
    const torch::Tensor key = Dense(x, p + "attention.l2l_key");
    const torch::Tensor value = Dense(x, p + "attention.l2l_value");
    const bool carry = config_.residual_attention != "off";
    std::vector<torch::Tensor> contexts;
    for (int64_t head = 0; head < kHeads; ++head) {
      const auto part = [&](const torch::Tensor& t) {
        return t.narrow(-1, head * d, d);
      };
      torch::Tensor scores =
          part(query).matmul(part(key).transpose(1, 2)) / std::sqrt(double(d));
      if (carry) {
        scores = scores + carried->select(1, head);
        carried->select(1, head).copy_(scores);
      }
      if (config_.residual_attention == "mean") {
        scores = scores / static_cast<double>(layer + 1);
      }
      scores = scores - 10000.0 * (1 - mask.unsqueeze(1));
      contexts.push_back(scores.softmax(-1).matmul(part(value)));
    }
    return Dense(torch::cat(contexts, -1), p + "attention.long_output");
  }

  EtcConfig config_;
  torch::OrderedDict<std::string, torch::Tensor> weights_;
};

// ----------------------------------------------------------------------------

struct BertExample {
  torch::Tensor ids, types, mask;
};

BertExample RandomExample() {
  torch::manual_seed(2);
  BertExample example{.ids = torch::randint(29, {2, 11}, torch::kInt64),
                      .types = torch::randint(2, {2, 11}, torch::kInt64),
                      .mask = torch::ones({2, 11}, torch::kInt64)};
  example.mask.index_put_({1, torch::arange(7, 11)}, 0);
  return example;
}

// The rows of tokens, [tokens, H].
torch::Tensor OfTokens(const torch::Tensor& output, const torch::Tensor& mask) {
  return output.index({mask.to(torch::kBool)});
}

class BertInputTest : public testing::TestWithParam<
                          std::tuple<std::string, std::string, std::string>> {};

TEST_P(BertInputTest, IsBert) {
  EtcConfig config = BertLikeConfig();
  const auto& [residual, activation, sublayer] = GetParam();
  config.residual_attention = residual;
  config.hidden_act = activation;
  SetSublayer(sublayer, &config);
  EtcModel model = SeededModel(config);
  const BertExample example = RandomExample();
  const torch::Tensor expected =
      OfTokens(PlainBert(model).Run(example.ids, example.types, example.mask),
               example.mask);
  const torch::NoGradGuard no_grad;
  const EtcInput input = BertInput(example.ids, example.types, example.mask);
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kAuto, AttentionImplementation::kReference,
        AttentionImplementation::kBlocked, AttentionImplementation::kKernel}) {
    model->set_attention_implementation(implementation);
    model->to(torch::kFloat32);
    EtcOutput output = model->forward(input);
    EXPECT_TRUE(
        IsClose(OfTokens(output.global_output, example.mask), expected, 2e-5));
    EXPECT_TRUE(output.global_output.isfinite().all().item<bool>());
    EXPECT_EQ(output.long_output.sizes(), at::IntArrayRef({2, 0, kHidden}));
    if (implementation != AttentionImplementation::kKernel) {
      model->to(torch::kFloat64);
      output = model->forward(input);
      EXPECT_TRUE(IsClose(OfTokens(output.global_output, example.mask),
                          expected, 1e-10));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, BertInputTest,
                         testing::Combine(testing::Values("off", "sum", "mean"),
                                          testing::Values("gelu", "gelu_erf"),
                                          testing::Values("post_norm",
                                                          "pre_norm", "rezero",
                                                          "admin")));

// Gradients of all parameters, with and without recomputed layers, against
// those of the plain implementation, in float64 and by the kernels.
TEST_P(BertInputTest, HasTheGradientsOfBert) {
  EtcConfig config = BertLikeConfig();
  const auto& [residual, activation, sublayer] = GetParam();
  config.residual_attention = residual;
  config.hidden_act = activation;
  SetSublayer(sublayer, &config);
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  const BertExample example = RandomExample();
  torch::manual_seed(6);
  const torch::Tensor weights = torch::randn({2, 11, kHidden}, torch::kFloat64);
  const auto loss = [&](const torch::Tensor& output) {
    return (OfTokens(output, example.mask).to(torch::kFloat64) *
            OfTokens(weights, example.mask))
        .sum();
  };
  const PlainBert plain(SeededModel(config));
  loss(plain.Run(example.ids, example.types, example.mask)).backward();
  for (const int64_t period : {0, 2}) {
    config.grad_checkpointing_period = period;
    for (const bool exact : {true, false}) {
      EtcModel model = SeededModel(config);
      model->train();
      model->set_attention_implementation(
          exact ? AttentionImplementation::kReference
                : AttentionImplementation::kKernel);
      model->to(exact ? torch::kFloat64 : torch::kFloat32);
      loss(model->forward(BertInput(example.ids, example.types, example.mask))
               .global_output)
          .backward();
      for (const auto& parameter : model->named_parameters()) {
        SCOPED_TRACE(parameter.key());
        ASSERT_TRUE(parameter->grad().defined());
        const torch::Tensor expected = plain.weights()[parameter.key()].grad();
        ASSERT_TRUE(expected.defined());
        EXPECT_TRUE(IsClose(parameter->grad(), expected,
                            (exact ? 1e-10 : 5e-5) *
                                (1.0 + expected.abs().max().item<double>())));
      }
    }
  }
}

TEST(BertInputTest, NeedsNoMaskAndNoTypes) {
  for (const char* mode : {"off", "sum"}) {
    EtcConfig config = BertLikeConfig();
    config.residual_attention = mode;
    EtcModel model = SeededModel(config);
    model->set_attention_implementation(AttentionImplementation::kKernel);
    const BertExample example = RandomExample();
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(IsClose(
        model->forward(BertInput(example.ids)).global_output,
        PlainBert(model).Run(example.ids, torch::zeros_like(example.ids),
                             torch::ones_like(example.mask)),
        2e-5));
  }
}

TEST(BertInputTest, TakesAnEmptyBatch) {
  EtcConfig config = BertLikeConfig();
  config.residual_attention = "sum";
  EtcModel model = SeededModel(config);
  const torch::Tensor ids = torch::zeros({0, 6}, torch::kInt64);
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference, AttentionImplementation::kBlocked,
        AttentionImplementation::kKernel}) {
    model->set_attention_implementation(implementation);
    for (const EtcInput& input : {BertInput(ids), BertInput(ids, ids, ids),
                                  PackedBertInput(ids, {}, ids)}) {
      EXPECT_EQ(model->forward(input).global_output.sizes(),
                at::IntArrayRef({0, 6, kHidden}));
    }
  }
}

TEST(BertInputTest, APatternEndsWithTheLastToken) {
  const BertExample example = RandomExample();
  const EtcInput input = BertInput(example.ids, example.types, example.mask);
  ASSERT_NE(input.attention.patterns(), nullptr);
  EXPECT_EQ((*input.attention.patterns())[0].global_length(), 11);
  EXPECT_EQ((*input.attention.patterns())[1].global_length(), 7);
}

// A padding row, and padding before the last token, also as booleans.
TEST(BertInputTest, TakesAnyMask) {
  EtcModel model = SeededModel(BertLikeConfig());
  BertExample example = RandomExample();
  example.mask[0].slice(0, 2, 5).fill_(0);
  example.mask[1].fill_(0);
  const torch::NoGradGuard no_grad;
  const torch::Tensor expected =
      PlainBert(model).Run(example.ids, example.types, example.mask);
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference, AttentionImplementation::kBlocked,
        AttentionImplementation::kKernel}) {
    model->set_attention_implementation(implementation);
    const torch::Tensor output =
        model
            ->forward(BertInput(example.ids, example.types,
                                example.mask.to(torch::kBool)))
            .global_output;
    EXPECT_TRUE(IsClose(OfTokens(output, example.mask),
                        OfTokens(expected, example.mask), 2e-5));
    EXPECT_TRUE(output.isfinite().all().item<bool>());
  }
}

// Two rows of examples, the second with padding at the end and a token of the
// first example behind the second: an example need not be in one piece.
struct PackedRows {
  torch::Tensor ids, types, example_ids;
};

PackedRows RandomPackedRows() {
  torch::manual_seed(5);
  return {
      .ids = torch::randint(29, {2, 13}, torch::kInt64),
      .types = torch::randint(2, {2, 13}, torch::kInt64),
      .example_ids = torch::tensor({{7, 7, 7, 7, 1, 2, 2, 2, 2, 2, 2, 9, 9},
                                    {1, 1, 1, 5, 5, 5, 5, 1, 1, 0, 0, 0, 0}},
                                   torch::kInt64)};
}

// A loss in which each output element has a weight of its own.
torch::Tensor WeightedLoss(const torch::Tensor& outputs,
                           const torch::Tensor& weights) {
  return (outputs.to(torch::kFloat64) * weights).sum();
}

// Outputs and gradients of rows of examples are those of each example alone.
class PackedBertInputTest : public testing::TestWithParam<std::string> {};

TEST_P(PackedBertInputTest, IsEachExampleAlone) {
  EtcConfig config = BertLikeConfig();
  config.residual_attention = GetParam();
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  const PackedRows rows = RandomPackedRows();
  const torch::Tensor weights = torch::randn({2, 13, kHidden}, torch::kFloat64);

  EtcModel alone = SeededModel(config);
  alone->to(torch::kFloat64);
  alone->set_attention_implementation(AttentionImplementation::kReference);
  torch::Tensor expected = torch::zeros({2, 13, kHidden}, torch::kFloat64);
  for (const auto& [row, id] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 7}, {0, 1}, {0, 2}, {0, 9}, {1, 1}, {1, 5}}) {
    const torch::Tensor mine = rows.example_ids[row].eq(id);
    const auto only = [&, row = row](const torch::Tensor& values) {
      return values[row].index({mine}).unsqueeze(0);
    };
    const torch::Tensor output =
        alone->forward(BertInput(only(rows.ids), only(rows.types)))
            .global_output;
    WeightedLoss(output, only(weights)).backward();
    expected[row].index_put_({mine}, output[0].detach());
  }

  const torch::Tensor real = rows.example_ids.ne(0);
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference, AttentionImplementation::kBlocked,
        AttentionImplementation::kKernel}) {
    EtcModel packed = SeededModel(config);
    packed->set_attention_implementation(implementation);
    const torch::Tensor output =
        packed->forward(PackedBertInput(rows.ids, rows.types, rows.example_ids))
            .global_output;
    EXPECT_TRUE(
        IsClose(OfTokens(output, real), OfTokens(expected, real), 2e-5));
    WeightedLoss(OfTokens(output, real), OfTokens(weights, real)).backward();
    const auto exact = alone->named_parameters();
    for (const auto& parameter : packed->named_parameters()) {
      SCOPED_TRACE(parameter.key());
      const torch::Tensor gradient = exact[parameter.key()].grad();
      ASSERT_EQ(parameter->grad().defined(), gradient.defined());
      if (gradient.defined()) {
        EXPECT_TRUE(
            IsClose(parameter->grad(), gradient,
                    2e-5 * (1.0 + gradient.abs().max().item<double>())));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, PackedBertInputTest,
                         testing::Values("off", "sum", "mean"));

TEST(PackedBertInputTest, PositionsBeginAnewInEachExample) {
  const PackedRows rows = RandomPackedRows();
  const EtcInput input =
      PackedBertInput(rows.ids, rows.types, rows.example_ids);
  EXPECT_TRUE(input.global_position_ids[0].equal(
      torch::tensor({0, 1, 2, 3, 0, 0, 1, 2, 3, 4, 5, 0, 1}, torch::kInt64)));
  EXPECT_TRUE(input.global_position_ids[1].slice(0, 0, 9).equal(
      torch::tensor({0, 1, 2, 0, 1, 2, 3, 3, 4}, torch::kInt64)));
}

// Padding may be longer than the table of positions.
TEST(PackedBertInputTest, PaddingHasPositionZero) {
  EtcModel model = SeededModel(BertLikeConfig());
  const torch::Tensor ids = torch::ones({1, 40}, torch::kInt64);
  const torch::Tensor example_ids = torch::zeros({1, 40}, torch::kInt64);
  example_ids.slice(1, 0, 3).fill_(4);
  const EtcInput input = PackedBertInput(ids, {}, example_ids);
  EXPECT_EQ(input.global_position_ids[0][2].item<int64_t>(), 2);
  EXPECT_TRUE(
      input.global_position_ids[0].slice(0, 3).eq(0).all().item<bool>());
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(IsClose(
      model->forward(input).global_output.slice(1, 0, 3),
      model->forward(BertInput(ids.slice(1, 0, 3))).global_output, 2e-5));
}

// Parameters that only long tokens would read are not read, nor given gradients
// of zeros.
TEST(BertInputTest, LeavesTheLongStreamOut) {
  for (const char* sublayer : {"post_norm", "pre_norm", "rezero", "admin"}) {
    SCOPED_TRACE(sublayer);
    EtcConfig config = BertLikeConfig();
    config.has_long_tokens = true;
    SetSublayer(sublayer, &config);
    EtcModel model = SeededModel(config);
    model->forward(BertInput(RandomExample().ids))
        .global_output.square()
        .sum()
        .backward();
    for (const auto& parameter : model->named_parameters()) {
      const bool is_long =
          parameter.key().find("long_norm") != std::string::npos ||
          parameter.key().find("long_final_norm") != std::string::npos ||
          parameter.key().find("long_position") != std::string::npos ||
          parameter.key().find("long_attention_") != std::string::npos;
      EXPECT_EQ(parameter->grad().defined(), !is_long) << parameter.key();
    }
  }
}

TEST(BertInputTest, TrainsWithRecomputedLayers) {
  EtcConfig config = BertLikeConfig();
  config.residual_attention = "sum";
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  std::vector<torch::Tensor> gradients;
  for (const int64_t period : {0, 2}) {
    config.grad_checkpointing_period = period;
    EtcModel model = SeededModel(config);
    model->train();
    model->forward(BertInput(RandomExample().ids))
        .global_output.square()
        .sum()
        .backward();
    gradients.push_back(model->token_embedding_table().grad());
  }
  EXPECT_GT(gradients[0].abs().max().item<float>(), 1e-3);
  EXPECT_TRUE(IsClose(gradients[1], gradients[0], 1e-4));
}

TEST(BertInputTest, RefusesOtherShapes) {
  const torch::Tensor ids = torch::zeros({2, 3}, torch::kInt64);
  const torch::Tensor longer = torch::ones({2, 4}, torch::kInt64);
  EXPECT_THROW(BertInput(ids[0]), c10::Error);
  EXPECT_THROW(BertInput(ids, ids[0]), c10::Error);
  EXPECT_THROW(BertInput(ids, {}, longer), c10::Error);
  EXPECT_THROW(PackedBertInput(ids, {}, longer), c10::Error);
}

// A mask that is added to scores, 0 and -inf, as bool would say the reverse.
TEST(BertInputTest, RefusesOtherDtypes) {
  const torch::Tensor ids = torch::zeros({2, 3}, torch::kInt64);
  EXPECT_NO_THROW(BertInput(ids, ids, torch::ones_like(ids)));
  EXPECT_THROW(BertInput(ids.to(torch::kFloat32)), c10::Error);
  EXPECT_THROW(BertInput(ids, ids.to(torch::kFloat32)), c10::Error);
  EXPECT_THROW(PackedBertInput(ids, {}, torch::ones({2, 3})), c10::Error);
  const torch::Tensor added = torch::zeros({2, 3});
  added[0][2] = -std::numeric_limits<float>::infinity();
  for (const torch::Tensor& mask :
       {added, torch::ones({2, 3}), torch::ones_like(ids) * -10000}) {
    try {
      BertInput(ids, {}, mask);
      ADD_FAILURE() << "a mask of " << mask.scalar_type() << " is taken";
    } catch (const c10::Error& error) {
      EXPECT_THAT(error.what_without_backtrace(),
                  testing::HasSubstr("attention_mask should be bool"));
    }
  }
}

TEST(BertInputTest, AModelWithoutLongTokensRefusesThem) {
  EtcModel model(BertLikeConfig());
  EtcInput input = BertInput(torch::zeros({2, 3}, torch::kInt64));
  input.token_ids = torch::zeros({2, 1}, torch::kInt64);
  EXPECT_THROW(model->forward(input), c10::Error);
}

TEST(PackedBertInputTest, RefusesIdsOutOfRange) {
  const torch::Tensor ids = torch::zeros({1, 2}, torch::kInt64);
  for (const int64_t id : {int64_t{-1}, int64_t{1} << 31}) {
    EXPECT_THROW(PackedBertInput(ids, {}, torch::full_like(ids, id)),
                 c10::Error);
  }
}

}  // namespace
}  // namespace etc
