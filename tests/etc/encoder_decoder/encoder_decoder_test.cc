// The encoder-decoder beyond its golden numbers: gradients of the whole tiny
// model against central differences in float64, every sublayer and every mode
// of carried scores; incremental decoding against teacher forcing, every row of
// every step, 1e-6 in float32 and 1e-12 in float64; storages of scores,
// implementations, padding, dropout, copies, threads; a memory that an ETC
// encoder made; omegas and their file; the configuration; errors.

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bfloat16.h"
#include "base/json_reader.h"
#include "etc/encoder_decoder/admin_omegas.h"
#include "etc/encoder_decoder/config_fields.h"
#include "etc/encoder_decoder/model.h"
#include "etc/encoder_decoder/translate.h"
#include "etc/encoder_layer.h"
#include "etc/model.h"
#include "nlohmann/json.hpp"
#include "tests/support/error_message.h"
#include "tests/support/field_bounds.h"
#include "tests/support/gradient_check.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/thread_counts.h"
#include "tests/support/toy_model.h"
#include "tests/support/toy_translation.h"

namespace etc {
namespace {

using testing::HasSubstr;

constexpr const char* kResidualNames[] = {"off", "sum", "mean", "gate",
                                          "decay"};
constexpr const char* kSublayerNames[] = {"post_norm", "pre_norm", "rezero",
                                          "admin"};

// Random weights, those of norms and residual connections too.
EncoderDecoder RandomModelOf(const EncoderDecoderConfig& config) {
  torch::manual_seed(3);
  EncoderDecoder model(config);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->named_parameters()) {
    const bool is_scale =
        parameter.key().find("norm.weight") != std::string::npos ||
        parameter.key().find("omega") != std::string::npos;
    parameter.value().normal_(is_scale ? 1.0 : 0.0, 0.4);
  }
  return model;
}

torch::Tensor LossOf(EncoderDecoder model) {
  const ToyTranslationBatch batch;
  return model
      ->Loss(batch.source_ids, batch.decoder_ids, batch.targets,
             /*smoothing=*/0.1)
      .loss;
}

void ExpectGradientsOfDifferences(const std::string& sublayer,
                                  const std::string& mode) {
  SCOPED_TRACE(sublayer + ", " + mode);
  EncoderDecoderConfig config = ToyTranslationConfig(mode, sublayer);
  config.num_decoder_layers = 2;
  config.hidden_act = "gelu_erf";  // smooth
  config.share_embeddings = sublayer == "rezero"  ? "none"
                            : sublayer == "admin" ? "decoder"
                                                  : "all";
  EncoderDecoder model = RandomModelOf(config);
  model->to(torch::kFloat64);
  std::vector<std::pair<std::string, torch::Tensor>> variables;
  for (const auto& parameter : model->named_parameters()) {
    variables.emplace_back(parameter.key(), parameter.value());
  }
  EXPECT_TRUE(GradientsMatchDifferences([&] { return LossOf(model); },
                                        variables, /*atol=*/2e-7,
                                        /*max_elements=*/kSanitized ? 1 : 2));
}

// Sublayers know nothing of scores.
TEST(EncoderDecoderTest, GradientsMatchDifferences) {
  for (const char* const sublayer : kSublayerNames) {
    ExpectGradientsOfDifferences(sublayer, "mean");
  }
  for (const char* const mode : {"off", "sum", "gate", "decay"}) {
    ExpectGradientsOfDifferences("post_norm", mode);
  }
}

TEST(EncoderDecoderTest, PaddingGetsNoGradientAsInput) {
  EncoderDecoderConfig config = ToyTranslationConfig();
  config.share_embeddings = "none";
  EncoderDecoder model = RandomModelOf(config);
  LossOf(model).backward();
  const auto parameters = model->named_parameters();
  for (const char* const table :
       {"embedding.weight", "decoder.embedding.weight"}) {
    const torch::Tensor gradient = parameters[table].grad();
    EXPECT_TRUE(gradient[kPaddingId].eq(0).all().item<bool>()) << table;
    EXPECT_GT(gradient[5].abs().max().item<double>(), 0.0) << table;
  }
  EXPECT_GT(parameters["decoder.output"]
                .grad()[kPaddingId]
                .abs()
                .max()
                .item<double>(),
            0.0);
}

TEST(EncoderDecoderTest, InitialWeightsAreXavierUniform) {
  torch::manual_seed(1);
  EncoderDecoderConfig config;
  config.vocab_size = 400;
  config.hidden_size = 64;
  config.intermediate_size = 96;
  config.num_encoder_layers = 1;
  config.num_decoder_layers = 1;
  const EncoderDecoder model(config);
  for (const auto& parameter : model->named_parameters()) {
    const std::string& name = parameter.key();
    const torch::Tensor& value = parameter.value();
    SCOPED_TRACE(name);
    if (name == "embedding.weight") {
      EXPECT_NEAR(value.std().item<double>(), 1.0 / 8, 0.003);
      EXPECT_TRUE(value[kPaddingId].eq(0).all().item<bool>());
    } else if (name.ends_with("norm.weight")) {
      EXPECT_TRUE(value.eq(1).all().item<bool>());
    } else if (value.dim() == 1) {
      EXPECT_TRUE(value.eq(0).all().item<bool>());
    } else {
      const bool is_in_projection = name.find("query") != std::string::npos ||
                                    name.find("key") != std::string::npos ||
                                    name.find("value") != std::string::npos;
      const double bound = std::sqrt(
          6.0 / static_cast<double>(
                    is_in_projection ? 4 * 64 : value.size(0) + value.size(1)));
      const double largest = value.abs().max().item<double>();
      EXPECT_LE(largest, bound);
      EXPECT_GT(largest, 0.99 * bound);
      EXPECT_NEAR(value.std().item<double>(), bound / std::sqrt(3.0),
                  0.03 * bound);
    }
  }
}

TEST(EncoderDecoderTest, CountsItsParameters) {
  for (const char* const sublayer : kSublayerNames) {
    for (const char* const sharing : {"all", "decoder", "none"}) {
      for (const char* const mode : {"off", "gate"}) {
        EncoderDecoderConfig config = ToyTranslationConfig(mode, sublayer);
        config.share_embeddings = sharing;
        int64_t count = 0;
        for (const torch::Tensor& parameter :
             EncoderDecoder(config)->parameters()) {
          count += parameter.numel();
        }
        EXPECT_EQ(CountParameters(config), count)
            << sublayer << ", " << sharing << ", " << mode;
      }
    }
  }
}

// Decodes all rows of `ids` [rows, T] token by token, `rows` / B hypotheses for
// each sentence: [rows, T, d].
torch::Tensor Incremental(EncoderDecoder model, const DecoderMemory& memory,
                          const torch::Tensor& ids) {
  DecoderCache cache = model->decoder()->Begin(memory);
  std::vector<int64_t> parents;
  const int64_t width = ids.size(0) / memory.states.size(0);
  for (int64_t row = 0; row < ids.size(0); ++row) {
    parents.push_back(row / width);
  }
  cache.Select(torch::tensor(parents, torch::kInt64), {});
  std::vector<torch::Tensor> states;
  for (int64_t t = 0; t < ids.size(1); ++t) {
    states.push_back(model->decoder()->Step(ids.select(1, t), &cache));
  }
  return torch::stack(states, 1);
}

TEST(EncoderDecoderTest, IncrementalDecodingEqualsTeacherForcing) {
  const torch::Tensor sources = ToyIds("4567832 1178432 1111152");
  const torch::Tensor ids =
      ToyIds("25678456 28765443 24444444 23843567 25555555 27070707");
  for (const char* const sublayer : kSublayerNames) {
    for (const char* const mode : kResidualNames) {
      for (const torch::ScalarType type : {torch::kFloat32, torch::kFloat64}) {
        SCOPED_TRACE(std::string(sublayer) + ", " + mode);
        EncoderDecoder model =
            RandomModelOf(ToyTranslationConfig(mode, sublayer));
        model->to(type);
        model->eval();
        const torch::NoGradGuard no_grad;
        const DecoderMemory memory = model->encoder()->forward(sources);
        const torch::Tensor steps = Incremental(model, memory, ids);
        // Two hypotheses for each sentence.
        const torch::Tensor twice = torch::tensor({0, 0, 1, 1, 2, 2});
        const torch::Tensor forced = model->decoder()->forward(
            {.states = memory.states.index_select(0, twice),
             .mask = memory.mask.index_select(0, twice)},
            ids);
        const double largest = forced.abs().max().item<double>();
        EXPECT_TRUE(IsClose(
            steps, forced,
            (type == torch::kFloat32 ? 1e-6 : 1e-12) * std::max(largest, 1.0)));
      }
    }
  }
}

TEST(EncoderDecoderTest, CachesFollowHypothesesAndSentences) {
  EncoderDecoder model = RandomModelOf(ToyTranslationConfig("mean"));
  model->to(torch::kFloat64);
  model->eval();
  const torch::NoGradGuard no_grad;
  const DecoderMemory memory =
      model->encoder()->forward(ToyIds("45672 11842 88452"));
  TransformerDecoder decoder = model->decoder();
  DecoderCache cache = decoder->Begin(memory);
  decoder->Step(ToyIds("222").flatten(), &cache);
  // Two hypotheses of each, then of the last two sentences three.
  cache.Select(torch::tensor({0, 0, 1, 1, 2, 2}), {});
  decoder->Step(ToyIds("456784").flatten(), &cache);
  cache.Select(torch::tensor({3, 2, 3, 5, 5, 4}), torch::tensor({1, 2}));
  EXPECT_EQ(cache.rows, 6);
  EXPECT_EQ(cache.sentences, 2);
  const torch::Tensor states =
      decoder->Step(ToyIds("345673").flatten(), &cache);
  const torch::Tensor whole = ToyIds("273 264 275 246 247 283");
  const torch::Tensor sentences = torch::tensor({1, 1, 1, 2, 2, 2});
  const torch::Tensor forced =
      decoder->forward({.states = memory.states.index_select(0, sentences),
                        .mask = memory.mask.index_select(0, sentences)},
                       whole);
  EXPECT_TRUE(IsClose(states, forced.select(1, 2), 1e-12));
  EXPECT_THAT(MessageOf([&] {
                cache.Select(torch::tensor({0, 1, 2}), {});
              }),
              HasSubstr("multiple of the sentences"));
  EXPECT_THAT(MessageOf([&] {
                cache.Select(torch::tensor({0, 6}), {});
              }),
              HasSubstr("parents should be in [0, 6)"));
  // Before the first token, too.
  DecoderCache fresh = decoder->Begin(memory);
  EXPECT_THAT(MessageOf([&] {
                fresh.Select(torch::tensor({0, 1, 7}), {});
              }),
              HasSubstr("parents should be in [0, 3)"));
  EXPECT_THAT(MessageOf([&] {
                fresh.Select(torch::tensor({0, 1}), torch::tensor({0, 3}));
              }),
              HasSubstr("kept should be in [0, 3)"));
  EXPECT_EQ(fresh.rows, 3);
}

TEST(EncoderDecoderTest, StoragesAndImplementationsAgree) {
  for (const char* const mode : {"sum", "mean", "gate", "decay"}) {
    SCOPED_TRACE(mode);
    EncoderDecoder exact = RandomModelOf(ToyTranslationConfig(mode));
    exact->to(torch::kFloat64);
    exact->set_score_storage(ScoreStorage::kStore);
    exact->set_attention_implementation(AttentionImplementation::kReference);
    LossOf(exact).backward();
    for (const ScoreStorage storage :
         {ScoreStorage::kStore, ScoreStorage::kReverse,
          ScoreStorage::kRecompute}) {
      EncoderDecoder model = RandomModelOf(ToyTranslationConfig(mode));
      model->set_score_storage(storage);
      model->set_attention_implementation(AttentionImplementation::kKernel);
      const torch::Tensor loss = LossOf(model);
      EXPECT_NEAR(loss.item<double>(), LossOf(exact).item<double>(), 1e-4);
      loss.backward();
      for (const auto& parameter : model->named_parameters()) {
        EXPECT_TRUE(IsClose(parameter.value().grad(),
                            exact->named_parameters()[parameter.key()].grad(),
                            5e-5))
            << parameter.key();
      }
    }
  }
}

TEST(EncoderDecoderTest, RoundsProductsOnlyInBfloat16) {
  if (kernels::Bfloat16ProductsOfThisCpu() ==
      kernels::Bfloat16Products::kNone) {
    GTEST_SKIP() << "this CPU has no products of bfloat16";
  }
  EncoderDecoder exact = RandomModelOf(ToyTranslationConfig("mean"));
  EncoderDecoder model = RandomModelOf(ToyTranslationConfig("mean"));
  model->set_linear_precision(LinearPrecision::kBfloat16);
  const torch::Tensor loss = LossOf(model);
  const torch::Tensor expected = LossOf(exact);
  EXPECT_NE(loss.item<double>(), expected.item<double>());
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 0.2);
  loss.backward();
  expected.backward();
  for (const auto& parameter : model->named_parameters()) {
    const torch::Tensor wanted =
        exact->named_parameters()[parameter.key()].grad();
    EXPECT_EQ(parameter.value().grad().scalar_type(), torch::kFloat32);
    EXPECT_TRUE(IsClose(parameter.value().grad(), wanted,
                        0.1 * wanted.abs().max().item<double>() + 0.02))
        << parameter.key();
  }
}

TEST(EncoderDecoderTest, PaddingOfSourcesChangesNothing) {
  EncoderDecoder model = RandomModelOf(ToyTranslationConfig("sum"));
  model->to(torch::kFloat64);
  const torch::Tensor ids = ToyIds("2785");
  const torch::Tensor alone = model->forward(ToyIds("842"), ids);
  for (const char* const padded : {"11842", "84211", "18142"}) {
    EXPECT_TRUE(IsClose(model->forward(ToyIds(padded), ids), alone, 1e-12))
        << padded;
  }
  // A decoder's tokens do not see later ones.
  EXPECT_TRUE(
      IsClose(model->forward(ToyIds("842"), ToyIds("278544")).narrow(1, 0, 4),
              alone, 1e-12));
}

TEST(EncoderDecoderTest, DropoutFollowsTheGenerator) {
  for (int which = 0; which < 3; ++which) {
    EncoderDecoderConfig config = ToyTranslationConfig("mean");
    (which == 0   ? config.hidden_dropout_prob
     : which == 1 ? config.attention_probs_dropout_prob
                  : config.activation_dropout_prob) = 0.4;
    EncoderDecoder model = RandomModelOf(config);
    const auto loss_with_seed = [&](uint64_t seed) {
      torch::manual_seed(seed);
      return LossOf(model).item<double>();
    };
    EXPECT_EQ(loss_with_seed(1), loss_with_seed(1)) << which;
    EXPECT_NE(loss_with_seed(1), loss_with_seed(2)) << which;
    model->eval();
    EXPECT_EQ(loss_with_seed(1), loss_with_seed(2)) << which;
  }
}

// Elements of `dropped` are 0 with that probability, and else those of `whole`
// divided by the probability of staying.
void ExpectDroppedElements(const torch::Tensor& dropped,
                           const torch::Tensor& whole, double dropout) {
  const torch::Tensor stays = dropped.ne(0);
  EXPECT_NEAR(stays.to(torch::kFloat64).mean().item<double>(), 1 - dropout,
              0.05);
  EXPECT_TRUE(IsClose(dropped, whole.mul(stays).div(1 - dropout), 1e-5));
}

// New layers of sublayer rezero pass on the embeddings as they are.
TEST(EncoderDecoderTest, DropsEmbeddingsOfBothStacks) {
  EncoderDecoderConfig config = ToyTranslationConfig("off", "rezero");
  config.hidden_dropout_prob = 0.4;
  torch::manual_seed(5);
  EncoderDecoder model(config);
  const torch::NoGradGuard no_grad;
  const torch::Tensor ids =
      torch::randint(kUnknownId, config.vocab_size, {100, 5}, torch::kInt64);
  model->eval();
  const DecoderMemory memory = model->encoder()->forward(ids);
  const torch::Tensor target = model->decoder()->forward(memory, ids);
  model->train();
  ExpectDroppedElements(model->encoder()->forward(ids).states, memory.states,
                        0.4);
  ExpectDroppedElements(model->decoder()->forward(memory, ids), target, 0.4);
}

// A block of sublayer pre_norm adds what it drops elements of to its input, 0.
TEST(EncoderDecoderTest, DropsOutputsOfFeedForwardBlocks) {
  EncoderDecoderConfig config = ToyTranslationConfig("off", "pre_norm");
  config.hidden_dropout_prob = 0.4;
  EncoderDecoder model = RandomModelOf(config);
  const torch::NoGradGuard no_grad;
  const torch::Tensor input = torch::zeros({1, 500, config.hidden_size});
  for (const char* const name :
       {"encoder.layers.1.feed_forward", "decoder.layers.2.feed_forward"}) {
    SCOPED_TRACE(name);
    const auto block = std::dynamic_pointer_cast<FeedForwardBlockImpl>(
        model->named_modules()[name]);
    ASSERT_NE(block, nullptr);
    block->eval();
    const torch::Tensor whole = block->forward(input);
    block->train();
    torch::manual_seed(5);
    ExpectDroppedElements(block->forward(input), whole, 0.4);
  }
}

TEST(EncoderDecoderTest, IsTheSameOnAnyNumberOfThreads) {
  EncoderDecoderConfig config = ToyTranslationConfig("mean", "admin");
  config.hidden_dropout_prob = 0.1;
  EncoderDecoder model = RandomModelOf(config);
  ExpectSameOnAnyNumberOfThreads([&] {
    torch::manual_seed(1);
    const torch::Tensor loss = LossOf(model);
    std::vector<torch::Tensor> results =
        torch::autograd::grad({loss}, model->parameters());
    results.push_back(loss.detach());
    return results;
  });
}

TEST(EncoderDecoderTest, ClonesHaveParametersOfTheirOwn) {
  for (const char* const sharing : {"all", "decoder", "none"}) {
    EncoderDecoderConfig config = ToyTranslationConfig("gate", "admin");
    config.share_embeddings = sharing;
    EncoderDecoder model = RandomModelOf(config);
    model->eval();
    const auto clone =
        std::dynamic_pointer_cast<EncoderDecoderImpl>(model->clone());
    ASSERT_NE(clone, nullptr);
    EXPECT_FALSE(clone->is_training());
    const ToyTranslationBatch batch;
    const torch::Tensor expected =
        model->forward(batch.source_ids, batch.decoder_ids);
    EXPECT_TRUE(
        clone->forward(batch.source_ids, batch.decoder_ids).equal(expected));
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : clone->named_parameters()) {
      EXPECT_TRUE(
          parameter.value().equal(model->named_parameters()[parameter.key()]));
      torch::Tensor(parameter.value()).add_(0.5);
    }
    EXPECT_TRUE(
        model->forward(batch.source_ids, batch.decoder_ids).equal(expected));
  }
}

TEST(EncoderDecoderTest, ClonesRoundProductsToo) {
  if (kernels::Bfloat16ProductsOfThisCpu() ==
      kernels::Bfloat16Products::kNone) {
    GTEST_SKIP() << "this CPU has no products of bfloat16";
  }
  EncoderDecoder model = RandomModelOf(ToyTranslationConfig("mean"));
  const double exact = LossOf(model).item<double>();
  model->set_linear_precision(LinearPrecision::kBfloat16);
  const double rounded = LossOf(model).item<double>();
  ASSERT_NE(rounded, exact);
  const EncoderDecoder clone(
      std::dynamic_pointer_cast<EncoderDecoderImpl>(model->clone()));
  EXPECT_EQ(LossOf(clone).item<double>(), rounded);
}

TEST(EncoderDecoderTest, ADecoderIsClonedUnlessItsEmbeddingIsShared) {
  for (const char* const sharing : {"all", "none"}) {
    EncoderDecoderConfig config = ToyTranslationConfig("gate");
    config.share_embeddings = sharing;
    torch::manual_seed(4);
    TransformerDecoder decoder(config);
    decoder->to(torch::kFloat64);
    decoder->set_attention_implementation(AttentionImplementation::kReference);
    decoder->eval();
    const auto clone =
        std::dynamic_pointer_cast<TransformerDecoderImpl>(decoder->clone());
    ASSERT_NE(clone, nullptr);
    EXPECT_FALSE(clone->is_training());
    const torch::NoGradGuard no_grad;
    const DecoderMemory memory = {.states =
                                      torch::randn({1, 3, 4}, torch::kFloat64)};
    const torch::Tensor ids = ToyIds("2785");
    const torch::Tensor expected =
        decoder->Logits(decoder->forward(memory, ids));
    EXPECT_TRUE(clone->Logits(clone->forward(memory, ids)).equal(expected));
    for (torch::Tensor& parameter : clone->parameters()) {
      parameter.add_(0.5);
    }
    EXPECT_TRUE(decoder->Logits(decoder->forward(memory, ids)).equal(expected));
  }
  EncoderDecoder whole(ToyTranslationConfig());
  EXPECT_THAT(MessageOf([&] { whole->decoder()->clone(); }),
              HasSubstr("with the owner of the embedding"));
}

TEST(EncoderDecoderTest, DecodesTheOutputOfAnEtcEncoder) {
  EtcConfig etc_config = ToyConfig();
  etc_config.residual_attention = "sum";
  torch::manual_seed(2);
  EtcModel etc_model(etc_config);
  EncoderDecoderConfig config = ToyTranslationConfig("mean");
  config.vocab_size = 11;
  TransformerDecoder decoder(config);
  const EtcInput input = ToyInput();
  const torch::Tensor ids = ToyIds("2785");
  const auto loss = [&] {
    const DecoderMemory memory =
        MemoryOfEtc(etc_model->forward(input), input.global_token_ids.ne(0),
                    input.token_ids.ne(0));
    return decoder->Loss(decoder->forward(memory, ids), ToyIds("7852"), 0.1)
        .loss;
  };
  const torch::Tensor value = loss();
  value.backward();
  for (const auto& parameter : etc_model->named_parameters()) {
    if (parameter.key().find("query") != std::string::npos) {
      EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
    }
  }
  // Padding is not seen: other tokens there change nothing.
  etc_model->eval();
  decoder->eval();
  const torch::NoGradGuard no_grad;
  const EtcOutput encoded = etc_model->forward(input);
  EtcOutput changed = encoded;
  changed.long_output = encoded.long_output.clone();
  changed.long_output.narrow(1, 5, 2).fill_(7.0);
  const auto states = [&](const EtcOutput& output) {
    return decoder->forward(MemoryOfEtc(output, input.global_token_ids.ne(0),
                                        input.token_ids.ne(0)),
                            ids);
  };
  EXPECT_TRUE(states(changed).equal(states(encoded)));
  const auto found = Translate(
      decoder,
      MemoryOfEtc(encoded, input.global_token_ids.ne(0), input.token_ids.ne(0)),
      {.beam = {.beam_size = 3, .max_length = 5, .num_best = 2}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].size(), 2u);
  EXPECT_EQ(found[0][0].tokens.back(), kEndId);
}

TEST(EncoderDecoderTest, OmegasBeginByTheClosedForm) {
  EXPECT_NEAR(InitialAdminOmega(12), 2.0170, 5e-5);
  EXPECT_NEAR(InitialAdminOmega(18), 2.3351, 5e-5);
  EncoderDecoderConfig config = ToyTranslationConfig("off", "admin");
  EncoderDecoder model(config);
  for (const torch::Tensor& omega : model->encoder()->Omegas()) {
    EXPECT_TRUE(
        omega.sub(InitialAdminOmega(4)).abs().lt(1e-6).all().item<bool>());
  }
  EXPECT_EQ(model->encoder()->Omegas().size(), 4u);
  EXPECT_EQ(model->decoder()->Omegas().size(), 9u);
  EXPECT_NEAR(model->decoder()->Omegas()[8][3].item<double>(),
              InitialAdminOmega(9), 1e-6);
  EXPECT_TRUE(
      EncoderDecoder(ToyTranslationConfig())->encoder()->Omegas().empty());
  // Ones are plain Post-LN.
  SetAdminOmegas(model, {.encoder = std::vector<double>(4, 1.0),
                         .decoder = std::vector<double>(9, 1.0)});
  EncoderDecoder plain(ToyTranslationConfig());
  ToyTranslationFiller(model).Fill();
  ToyTranslationFiller(plain).Fill();
  EXPECT_TRUE(IsClose(LossOf(model), LossOf(plain), 1e-5));
}

TEST(EncoderDecoderTest, ProfilesRealTokensUnlessTold) {
  const ToyTranslationBatch batch;
  const auto profile = [&](const torch::Tensor& source_ids,
                           ProfiledPositions positions) {
    EncoderDecoder model =
        ToyTranslationModel(ToyTranslationConfig("mean", "admin"));
    return ProfileAdmin(model, source_ids, batch.decoder_ids, positions);
  };
  const torch::Tensor more_padding = torch::cat(
      {torch::full({2, 3}, kPaddingId, torch::kInt64), batch.source_ids}, 1);
  const AdminOmegas tokens =
      profile(batch.source_ids, ProfiledPositions::kTokens);
  const AdminOmegas padded = profile(more_padding, ProfiledPositions::kTokens);
  const AdminOmegas all = profile(more_padding, ProfiledPositions::kAll);
  ASSERT_EQ(tokens.encoder.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(padded.encoder[i], tokens.encoder[i], 1e-12);
  }
  EXPECT_LT(all.encoder[1], tokens.encoder[1]);
  EXPECT_THAT(MessageOf([&] {
                ProfileAdmin(ToyTranslationModel(ToyTranslationConfig()),
                             batch.source_ids, batch.decoder_ids);
              }),
              HasSubstr("omegas are those of sublayer admin"));
}

TEST(EncoderDecoderTest, ReadsOmegas) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/profile.ratio.init";
  std::ofstream(path) << "1 1\n2 0.3333333333333333\n3 1.25\n4 2\n1 1\n2 2\n3 "
                         "3.5\n4 1\n5 1\n6 0.001\n";
  const auto omegas = ReadAdminOmegas(path, {.encoder = 4, .decoder = 6});
  ASSERT_TRUE(omegas.ok()) << omegas.status();
  EXPECT_EQ(omegas->encoder, std::vector<double>({1, 1.0 / 3, 1.25, 2}));
  EXPECT_EQ(omegas->decoder, std::vector<double>({1, 2, 3.5, 1, 1, 1e-3}));
  const auto message = [&](const std::string& contents) {
    std::ofstream(path) << contents;
    return std::string(
        ReadAdminOmegas(path, {.encoder = 1, .decoder = 2}).status().message());
  };
  EXPECT_EQ(message("1 1\n1 1\n2 1.5\n\n"), "");
  EXPECT_THAT(message("1 1\n1 1\n"), HasSubstr("1 + 2 lines"));
  EXPECT_THAT(message("1 1\n2 1\n2 1\n"),
              HasSubstr(":2: should be that of block 1, but is that of 2"));
  EXPECT_THAT(message("1 1\n1 x\n2 1\n"),
              HasSubstr(":2: should be an index and a value, but is \"1 x\""));
  EXPECT_THAT(message("1 1\n1 1\n2 nan\n"),
              HasSubstr(":3: should be a value above 0, but is nan"));
  EXPECT_THAT(message("1 1\n1 1\n2 -1\n"), HasSubstr("above 0"));
}

TEST(EncoderDecoderTest, FoldsOmegasIntoPlainPostNorm) {
  const ToyTranslationBatch batch;
  for (const char* const which : {"both", "encoder", "decoder"}) {
    SCOPED_TRACE(which);
    EncoderDecoderConfig config = ToyTranslationConfig("sum", "admin");
    if (which == std::string("encoder")) {
      config.decoder_sublayer = "pre_norm";
    } else if (which == std::string("decoder")) {
      config.encoder_sublayer = "rezero";
    }
    EncoderDecoder model = RandomModelOf(config);
    model->to(torch::kFloat64);
    model->eval();
    const torch::NoGradGuard no_grad;
    for (const char* const stack : {"encoder", "decoder"}) {
      if (torch::Tensor* const first = model->named_parameters().find(
              stack + std::string(".layers.0.self_attention_omega"))) {
        first->fill_(1.0);
      }
    }
    const auto folded = FoldAdminOmegas(model);
    ASSERT_TRUE(folded.ok()) << folded.status();
    EXPECT_NE((*folded)->config().encoder_sublayer, "admin");
    EXPECT_NE((*folded)->config().decoder_sublayer, "admin");
    EXPECT_TRUE(IsClose(
        EncoderDecoder(*folded)->forward(batch.source_ids, batch.decoder_ids),
        model->forward(batch.source_ids, batch.decoder_ids), 1e-10));
  }
  EXPECT_THAT(std::string(FoldAdminOmegas(EncoderDecoder(ToyTranslationConfig(
                                              "off", "admin")))
                              .status()
                              .message()),
              HasSubstr("encoder.layers.0.self_attention_omega should be 1"));
  EXPECT_THAT(
      std::string(FoldAdminOmegas(EncoderDecoder(ToyTranslationConfig()))
                      .status()
                      .message()),
      HasSubstr("omegas are those of sublayer admin"));
}

TEST(EncoderDecoderTest, ReadsAndWritesItsConfiguration) {
  EncoderDecoderConfig config = ToyTranslationConfig("mean", "admin");
  config.residual_decay = 0.8;
  const auto json = ParseJson(EncoderDecoderConfigToJson(config), "written");
  ASSERT_TRUE(json.ok()) << json.status();
  const auto again = EncoderDecoderConfigFromJson(*json, "written");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(EncoderDecoderConfigToJson(*again),
            EncoderDecoderConfigToJson(config));
  const auto message = [](const std::string& text) {
    const auto parsed = ParseJson(text, "m.json");
    return std::string(
        EncoderDecoderConfigFromJson(*parsed, "m.json").status().message());
  };
  EXPECT_EQ(message("{}"), "");
  EXPECT_THAT(message(R"({"vocab_size": 4})"),
              HasSubstr("m.json: vocab_size should be more than 4, but is 4"));
  EXPECT_THAT(message(R"({"hidden_size": 2})"), HasSubstr("hidden_size"));
  EXPECT_THAT(message(R"({"hidden_size": 36})"),
              HasSubstr("a multiple of num_attention_heads (8)"));
  EXPECT_THAT(
      message(R"({"cross_residual_attention": "some"})"),
      HasSubstr("cross_residual_attention should be \"off\" or \"sum\""));
  EXPECT_THAT(message(R"({"encoder_sublayer": "norm"})"),
              HasSubstr("encoder_sublayer"));
  EXPECT_THAT(message(R"({"share_embeddings": "most"})"),
              HasSubstr("share_embeddings should be \"all\" or \"decoder\""));
  EXPECT_THAT(message(R"({"encoder_layers": 3})"),
              HasSubstr("no field \"encoder_layers\""));
  EXPECT_THAT(message(R"({"num_atention_heads": 4, "hidden_size": 36})"),
              HasSubstr("did you mean \"num_attention_heads\"?"));
  EXPECT_THAT(message(R"({"decoder_residual_attention": "decay",
                          "residual_decay": 0.1})"),
              HasSubstr("residual_decay"));
  EXPECT_THAT(message(R"({"activation_dropout_prob": 1})"),
              HasSubstr("activation_dropout_prob"));
  EXPECT_EQ(message(R"({"vocab_size": null})"), "");
  ExpectHoldsFieldsToBounds<EncoderDecoderConfig>(
      "m.json",
      [&](const nlohmann::json& fields) { return message(fields.dump()); });
}

TEST(EncoderDecoderTest, RefusesBadInput) {
  EncoderDecoderConfig config = ToyTranslationConfig();
  config.max_source_positions = 6;
  config.max_target_positions = 8;
  EncoderDecoder model(config);
  const auto message = [&](const torch::Tensor& source,
                           const torch::Tensor& target) {
    return MessageOf([&] { model->forward(source, target); });
  };
  const torch::Tensor good = ToyIds("452"), start = ToyIds("26");
  EXPECT_EQ(message(good, start), "nothing was thrown");
  EXPECT_THAT(message(ToyIds("492"), start),
              HasSubstr("ids should be in [0, 9), but range from 2 to 9"));
  EXPECT_THAT(message(good.neg(), start), HasSubstr("ids should be in [0, 9)"));
  EXPECT_THAT(message(ToyIds("452 111"), start.expand({2, 2})),
              HasSubstr("row 1 of the ids is padding alone"));
  EXPECT_THAT(message(ToyIds("4567452"), start),
              HasSubstr("sources should have at most 6 tokens"));
  EXPECT_THAT(message(good, ToyIds("245678456")),
              HasSubstr("should have at most 8 tokens"));
  EXPECT_THAT(message(good, ToyIds("26 27")),
              HasSubstr("of 1 sentences, as the memory, but are of 2"));
  EXPECT_THAT(message(good.to(torch::kFloat32), start), HasSubstr("ids"));
  EXPECT_THAT(message(good.flatten(), start),
              HasSubstr("ids should be [batch, length]"));
  EXPECT_THAT(
      MessageOf([&] { model->Loss(good, start, ToyIds("62").fill_(9), 0.1); }),
      HasSubstr("targets should be in [0, 9)"));
  EXPECT_THAT(
      MessageOf([&] {
        model->decoder()->forward({.states = torch::zeros({1, 3, 5})}, start);
      }),
      HasSubstr("memory should be [batch, length, 4]"));
  EXPECT_THAT(MessageOf([&] {
                model->decoder()->Begin({.states = torch::zeros({1, 3, 4})});
              }),
              HasSubstr("evaluation mode"));
  EXPECT_THAT(MessageOf([] { EncoderDecoder empty(EncoderDecoderConfig{}); }),
              HasSubstr("vocab_size should be given"));
  config.encoder_sublayer = "none";
  EXPECT_THAT(MessageOf([&] {
                TransformerEncoder alone(
                    config,
                    TokenEmbedding(config.vocab_size, config.hidden_size,
                                   config.max_source_positions));
              }),
              HasSubstr("EncoderDecoderConfig: encoder_sublayer should be "
                        "\"post_norm\" or"));
}

}  // namespace
}  // namespace etc
