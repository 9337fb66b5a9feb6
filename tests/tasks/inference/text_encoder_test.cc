// Weights of each origin with their tokenizer, and texts as the encoder's
// input. Models with random parameters are written by the project's own writers
// of each format, and read back: parameters and outputs are, bit for bit, those
// of the path that was there before, an import read into a model by hand, with
// ids and masks by hand. Which files a format has is tested in
// tests/etc/weights.
#include "tasks/inference/text_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "etc/bert_input.h"
#include "etc/weights/convert.h"
#include "etc/weights/export_transformers.h"
#include "etc/weights/hugging_face_fields.h"
#include "etc/weights/wordpiece_options.h"
#include "tasks/run_task.h"
#include "tests/etc/weights/random_model.h"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// 14 pieces: [CLS] 4, [SEP] 5, the words from 6 on.
constexpr char kVocabulary[] =
    "[PAD]\n[unused0]\n[unused1]\n[UNK]\n[CLS]\n[SEP]\n"
    "good\nday\n##s\nto\nyou\n.\nmira\n!\n";
constexpr int64_t kPieces = 14;

EtcConfig SmallBert(const char* residual = "sum") {
  EtcConfig config = BertOf(residual);
  config.vocab_size = kPieces;
  return config;
}

EtcConfig SmallEtc() {
  EtcConfig config = BertOf("sum");
  config = LiftedConfig(config);
  config.vocab_size = kPieces;
  config.local_radius = 3;
  return config;
}

const std::vector<std::string> kTexts = {"Good days to you.", "Good day. Mira!",
                                         "Mira"};

class TextEncoderTest : public RealetcTest {
 protected:
  // Our checkpoint directory of the model, with the vocabulary.
  std::string Write(const EtcModel& model, const std::string& name,
                    const std::string& vocabulary = kVocabulary) {
    const std::string directory = directory_.File(name);
    WriteCheckpoint(directory, model);
    directory_.Write(name + "/vocab.txt", vocabulary);
    return directory;
  }

  // Directories of the model in every format.
  std::vector<std::string> WriteAll(const EtcModel& model) {
    std::vector<std::string> all = {Write(model, "ours")};
    for (const auto& [format, name] :
         {std::pair(ExportFormat::kTensorFlow, "tensorflow"),
          std::pair(ExportFormat::kSafetensors, "safetensors")}) {
      all.push_back(directory_.File(name));
      const auto written = ExportWeights(all.front(), format, all.back());
      EXPECT_TRUE(written.ok()) << written.status();
    }
    return all;
  }

  // The encoder in a checkpoint directory of ours, by hand.
  static EtcModel ByHand(const std::string& directory) {
    std::vector<std::string> unknown;
    const auto config = ReadEtcConfig(directory + "/etc_config.json", &unknown);
    EXPECT_TRUE(config.ok()) << config.status();
    EtcModel model(*config);
    const auto report = LoadEncoderWeights(directory, model);
    EXPECT_TRUE(report.ok()) << report.status();
    model->eval();
    return model;
  }

  static LoadedEncoder Load(const std::string& path,
                            const LoadEncoderOptions& options = {}) {
    auto loaded = LoadEncoder(path, options);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : LoadedEncoder();
  }

  static EncodedTexts Encode(const LoadedEncoder& loaded,
                             const std::vector<std::string>& texts) {
    auto encoded = EncodeTexts(loaded, texts);
    EXPECT_TRUE(encoded.ok()) << encoded.status();
    return encoded.ok() ? *std::move(encoded) : EncodedTexts();
  }

  static std::string Message(const absl::Status& status,
                             absl::StatusCode code) {
    EXPECT_EQ(status.code(), code) << status;
    return status.ToString();
  }
};

std::vector<int64_t> Row(const torch::Tensor& ids, int64_t row) {
  const torch::Tensor values = ids[row].contiguous();
  const auto* begin = values.data_ptr<int64_t>();
  return {begin, begin + values.numel()};
}

// --- Loading -----------------------------------------------------------------

TEST_F(TextEncoderTest, BertOfEveryOriginComputesWhatItsImportDoes) {
  // "Good days to you.", "Good day. Mira!" and "Mira" in pieces.
  const torch::Tensor ids = torch::tensor({{4, 6, 7, 8, 9, 10, 11, 5},
                                           {4, 6, 7, 11, 12, 13, 5, 0},
                                           {4, 12, 5, 0, 0, 0, 0, 0}},
                                          torch::kInt64);
  const c10::InferenceMode no_gradients;
  for (const std::string& source : WriteAll(RandomModel(SmallBert()))) {
    LoadedEncoder loaded = Load(source);
    EXPECT_EQ(loaded.path, source);
    EXPECT_THAT(loaded.report.missing, IsEmpty());
    EXPECT_THAT(loaded.warnings, IsEmpty());
    EXPECT_EQ(loaded.config.residual_attention, "sum");
    EXPECT_FALSE(loaded.encoder->is_training());
    EXPECT_EQ(loaded.max_global_length, 16);
    EXPECT_EQ(loaded.max_long_length, 0);

    const std::string imported = source + "-imported";
    ASSERT_TRUE(ImportWeights({.source = source}, imported).ok());
    EtcModel model = ByHand(imported);
    EXPECT_EQ(EtcConfigToJson(loaded.config), EtcConfigToJson(model->config()));
    EXPECT_TRUE(
        SameTensors(ModuleTensors(*model), ModuleTensors(*loaded.encoder)));
    const torch::Tensor expected =
        model(BertInput(ids, {}, ids > 0)).global_output;
    const torch::Tensor found =
        loaded.encoder(Encode(loaded, kTexts).input).global_output;
    EXPECT_TRUE(torch::equal(found, expected)) << source;
  }
}

TEST_F(TextEncoderTest, RobertaComputesWhatItsImportDoes) {
  EtcConfig config = SmallBert("off");
  config.hidden_act = "gelu_erf";
  config.layer_norm_epsilon = 1e-5;
  EtcModel model = RandomModel(config);
  const std::string ours = Write(model, "ours");
  ASSERT_TRUE(WriteTensors(ours + "/model.safetensors",
                           ModuleTensors(*model, "encoder."),
                           MetadataOf({.model_type = "roberta"}))
                  .ok());
  const std::string source = directory_.File("roberta");
  const auto written = ExportWeights(ours, ExportFormat::kSafetensors, source);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_THAT(Contents(source + "/config.json"), HasSubstr("roberta"));
  LoadedEncoder loaded = Load(source);
  EXPECT_EQ(loaded.max_global_length, 16);
  const c10::InferenceMode no_gradients;
  const EncodedTexts texts = Encode(loaded, kTexts);
  EXPECT_TRUE(torch::equal(loaded.encoder(texts.input).global_output,
                           model(texts.input).global_output));
}

TEST_F(TextEncoderTest, EtcOfEveryOriginComputesWhatItsImportDoes) {
  const c10::InferenceMode no_gradients;
  for (const std::string& source : WriteAll(RandomModel(SmallEtc()))) {
    LoadedEncoder loaded = Load(source);
    EXPECT_THAT(loaded.report.missing, IsEmpty());
    EXPECT_EQ(loaded.max_long_length, 4096);
    EXPECT_EQ(loaded.max_global_length, 512);
    const std::string imported = source + "-imported";
    ASSERT_TRUE(ImportWeights({.source = source}, imported).ok());
    EtcModel model = ByHand(imported);
    EXPECT_TRUE(
        SameTensors(ModuleTensors(*model), ModuleTensors(*loaded.encoder)));
    const EncodedTexts texts = Encode(loaded, kTexts);
    const EtcOutput found = loaded.encoder(texts.input);
    const EtcOutput expected = model(texts.input);
    EXPECT_TRUE(torch::equal(found.long_output, expected.long_output));
    EXPECT_TRUE(torch::equal(found.global_output, expected.global_output));
  }
}

TEST_F(TextEncoderTest, LiftsAsAnImportDoes) {
  for (const std::string& source : WriteAll(RandomModel(SmallBert()))) {
    const std::string imported = source + "-lifted";
    ASSERT_TRUE(
        ImportWeights({.source = source, .lift = true, .seed = 3}, imported)
            .ok());
    torch::manual_seed(3);
    const LoadedEncoder loaded = Load(source, {.lift = true});
    EXPECT_TRUE(SameTensors(ModuleTensors(*ByHand(imported)),
                            ModuleTensors(*loaded.encoder)));
    EXPECT_THAT(loaded.report.missing, Not(IsEmpty()));
    EXPECT_THAT(loaded.report.missing, Each(HasSubstr("relative")));
    EXPECT_TRUE(loaded.config.has_long_tokens);
    Encode(loaded, kTexts);
  }
}

TEST_F(TextEncoderTest, TakesTheBestCheckpointOfARun) {
  const std::string run = directory_.File("run");
  nlohmann::json config = Config();
  config["data"]["max_long_length"] = 20;
  config["data"]["max_global_length"] = 9;
  const auto tuned = TrainTask({.config = WriteConfig(config)});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  const std::string best = run + "/seed-1/checkpoints/best";
  const auto reader = TensorReader::Open(best);
  ASSERT_TRUE(reader.ok()) << reader.status();
  NamedTensors expected;
  for (const std::string& name : reader->Names()) {
    if (absl::StartsWith(name, "encoder.")) {
      expected[name] = *reader->Read(name);
    }
  }
  for (const std::string& path : {run, run + "/seed-1", best}) {
    const LoadedEncoder loaded = Load(path);
    EXPECT_TRUE(std::filesystem::equivalent(loaded.path, best)) << loaded.path;
    EXPECT_TRUE(
        SameTensors(expected, ModuleTensors(*loaded.encoder, "encoder.")));
    EXPECT_EQ(loaded.max_long_length, 20);
    EXPECT_EQ(loaded.max_global_length, 9);
    EXPECT_EQ(loaded.special_ids.cls, 7);
    Encode(loaded, {"Mira lives in Oslo ."});
  }
}

// text_options.json is the Python package's (write_text_options).
TEST_F(TextEncoderTest, TakesLengthsAndSentencesFromTheFilesBesideTheWeights) {
  const std::string saved = Write(RandomModel(SmallEtc()), "saved");
  const std::string options = directory_.Write(
      "saved/text_options.json",
      R"({"max_long_length": 12, "max_global_length": 3, "sentences": "icu"})");
  LoadedEncoder loaded = Load(saved);
  EXPECT_EQ(loaded.max_long_length, 12);
  EXPECT_EQ(loaded.max_global_length, 3);
  EXPECT_EQ(Load(saved + "/model.safetensors").max_global_length, 3);
  EXPECT_THAT(loaded.warnings, Not(Contains(HasSubstr("Punkt"))));

  const std::string exported = directory_.File("exported");
  ASSERT_TRUE(
      ExportForTransformers(
          saved,
          {.max_long_length = 11, .max_global_length = 2, .sentences = "punkt"},
          exported)
          .ok());
  loaded = Load(exported);
  EXPECT_EQ(loaded.max_long_length, 11);
  EXPECT_EQ(loaded.max_global_length, 2);
  EXPECT_THAT(loaded.warnings,
              Contains(AllOf(HasSubstr(exported), HasSubstr("\"punkt\""))));
  Encode(loaded, kTexts);

  directory_.Write("saved/text_options.json", R"({"max_long_length": "12"})");
  EXPECT_THAT(LoadEncoder(saved).status().ToString(),
              HasSubstr(options + ": max_long_length should be"));
}

TEST_F(TextEncoderTest, OptionsTakeAnotherVocabularyAndResidualAttention) {
  const std::string source = Write(RandomModel(SmallBert()), "ours");
  const std::string vocabulary = directory_.File("words.txt");
  std::filesystem::rename(source + "/vocab.txt", vocabulary);
  const LoadedEncoder loaded =
      Load(source, {.residual_attention = "off", .vocabulary = vocabulary});
  EXPECT_EQ(loaded.tokenizer->vocab_size(), kPieces);
  EXPECT_EQ(loaded.encoder->residual_attention(), ResidualAttention::kOff);
}

// It is completed by the files of the weights, whose rows are of other pieces.
TEST_F(TextEncoderTest, AnotherVocabularyIsUsedAsThatOfTheWeights) {
  const std::string source = Write(RandomModel(SmallBert()), "ours");
  directory_.Write("ours/tokenizer_config.json",
                   R"({"do_lower_case": true, "strip_accents": false})");
  std::string pieces = kVocabulary;
  pieces.replace(pieces.find("mira"), 4, "olga");
  const LoadedEncoder loaded =
      Load(source, {.vocabulary = directory_.Write("words.txt", pieces)});
  EXPECT_EQ(loaded.tokenizer->wordpiece_options()->strip_accents, false);
  EXPECT_THAT(loaded.warnings,
              Contains(HasSubstr("words.txt are of other pieces than in ")));
}

TEST_F(TextEncoderTest, IsCheckedWithoutItsWeights) {
  const std::string source = Write(RandomModel(SmallBert()), "ours");
  const auto config = CheckEncoder(source, {.residual_attention = "off"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->residual_attention, "off");
  EXPECT_EQ(config->num_hidden_layers, SmallBert().num_hidden_layers);
  std::filesystem::remove(source + "/vocab.txt");
  EXPECT_EQ(CheckEncoder(source).status(), LoadEncoder(source).status());
  EXPECT_THAT(Message(CheckEncoder(source).status(),
                      absl::StatusCode::kInvalidArgument),
              HasSubstr("should have a vocabulary"));
}

// --- Texts -------------------------------------------------------------------

TEST_F(TextEncoderTest, BertReadsTextsBetweenItsMarks) {
  const LoadedEncoder loaded = Load(Write(RandomModel(SmallBert()), "ours"));
  const EncodedTexts encoded = Encode(loaded, {"Good days", "\tMira "});
  EXPECT_EQ(encoded.input.token_ids.size(1), 0);
  EXPECT_THAT(Row(encoded.input.global_token_ids, 0),
              ElementsAre(4, 6, 7, 8, 5));
  EXPECT_THAT(Row(encoded.input.global_token_ids, 1),
              ElementsAre(4, 12, 5, 0, 0));
  EXPECT_THAT(Row(encoded.input.global_segment_ids, 0),
              ElementsAre(0, 0, 0, 0, 0));
  EXPECT_EQ((*encoded.input.attention.patterns())[1].global_length(), 3);
  ASSERT_EQ(encoded.texts.size(), 2u);
  ASSERT_EQ(encoded.texts[0].pieces.size(), 3u);
  EXPECT_EQ(encoded.texts[0].pieces[2].begin, 8);
  EXPECT_EQ(encoded.texts[0].pieces[2].end, 9);
  EXPECT_EQ(encoded.texts[1].pieces[0].begin, 1);
  EXPECT_EQ(encoded.texts[0].cut_pieces, 0);
  EXPECT_THAT(encoded.texts[0].sentences, IsEmpty());
}

TEST_F(TextEncoderTest, EtcReadsSentencesWithGlobalTokens) {
  LoadedEncoder loaded = Load(Write(RandomModel(SmallEtc()), "ours"));
  const std::vector<std::string> texts = {"Mira", "Good day. Mira! To you."};
  const EncodedTexts encoded = Encode(loaded, texts);
  EXPECT_THAT(Row(encoded.input.token_ids, 0),
              ElementsAre(4, 12, 5, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Row(encoded.input.token_ids, 1),
              ElementsAre(4, 6, 7, 11, 12, 13, 9, 10, 11, 5));
  EXPECT_THAT(Row(encoded.input.segment_ids, 1),
              ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(Row(encoded.input.global_token_ids, 0), ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(Row(encoded.input.global_token_ids, 1), ElementsAre(1, 2, 2, 2));
  const auto& patterns = *encoded.input.attention.patterns();
  EXPECT_EQ(patterns[0].long_length(), 3);
  EXPECT_EQ(patterns[0].global_length(), 2);
  EXPECT_EQ(patterns[0].local_radius, 3);
  EXPECT_THAT(patterns[1].sentence, ElementsAre(0, 1, 1, 1, 2, 2, 3, 3, 3, 0));
  EXPECT_THAT(encoded.texts[1].sentences, ElementsAre(0, 0, 0, 1, 1, 2, 2, 2));
  const std::vector<Token>& pieces = encoded.texts[1].pieces;
  EXPECT_EQ(texts[1].substr(static_cast<size_t>(pieces[3].begin), 4), "Mira");

  // A text has the same outputs alone and beside a longer one.
  const c10::InferenceMode no_gradients;
  const EtcOutput both = loaded.encoder(encoded.input);
  const EtcOutput alone = loaded.encoder(Encode(loaded, {texts[0]}).input);
  EXPECT_TRUE(torch::allclose(both.long_output.narrow(1, 0, 3)[0],
                              alone.long_output[0], /*rtol=*/0,
                              /*atol=*/1e-5));
  EXPECT_TRUE(torch::allclose(both.global_output.narrow(1, 0, 2)[0],
                              alone.global_output[0], /*rtol=*/0,
                              /*atol=*/1e-5));
}

TEST_F(TextEncoderTest, SaysWhatIsCut) {
  LoadedEncoder bert = Load(Write(RandomModel(SmallBert()), "bert"));
  const std::string text =
      "Good day to you . Good day to you . Mira Mira Mira "
      "Mira Mira Mira Mira !";
  const EncodedTexts whole = Encode(bert, {text, "Mira"});
  EXPECT_EQ(whole.texts[0].cut_pieces, 4);
  EXPECT_EQ(whole.texts[0].pieces.size(), 14u);
  EXPECT_EQ(whole.texts[1].cut_pieces, 0);
  EXPECT_EQ(whole.input.global_token_ids.size(1), 16);
  EXPECT_EQ(Row(whole.input.global_token_ids, 0).back(), 5);

  LoadedEncoder etc = Load(Write(RandomModel(SmallEtc()), "etc"));
  etc.max_long_length = 9;
  etc.max_global_length = 2;
  const EncodedTexts cut = Encode(etc, {"Good day. Mira! To you."});
  EXPECT_EQ(cut.texts[0].cut_pieces, 1);
  EXPECT_EQ(cut.texts[0].dropped_sentences, 2);
  EXPECT_THAT(cut.texts[0].sentences, ElementsAre(0, 0, 0));
  EXPECT_THAT(Row(cut.input.global_token_ids, 0), ElementsAre(1, 2));
  EXPECT_THAT(Row(cut.input.token_ids, 0),
              ElementsAre(4, 6, 7, 11, 12, 13, 9, 10, 5));
}

// --- Mistakes ----------------------------------------------------------------

TEST_F(TextEncoderTest, RefusesDirectoriesThatItCannotUse) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const std::string empty = directory_.File("empty");
  std::filesystem::create_directory(empty);
  EXPECT_THAT(Message(LoadEncoder(empty).status(), absl::StatusCode::kNotFound),
              HasSubstr(empty));
  EXPECT_THAT(Message(LoadEncoder(directory_.File("none")).status(),
                      absl::StatusCode::kNotFound),
              HasSubstr(directory_.File("none")));

  const std::string bare = Write(RandomModel(SmallBert()), "bare");
  std::filesystem::remove(bare + "/vocab.txt");
  EXPECT_THAT(Message(LoadEncoder(bare).status(), invalid),
              AllOf(HasSubstr(bare), HasSubstr("should have a vocabulary"),
                    HasSubstr("has none"), HasSubstr("::vocabulary")));
  directory_.Write("bare/tokenizer.json", R"({"model": {"type": "Other"}})");
  EXPECT_THAT(Message(LoadEncoder(bare).status(), invalid),
              AllOf(HasSubstr(bare + "/tokenizer.json"), HasSubstr("Other")));

  const std::string large = Write(RandomModel(SmallBert()), "large",
                                  absl::StrCat(kVocabulary, "one\nmore\n"));
  EXPECT_THAT(Message(LoadEncoder(large).status(), invalid),
              AllOf(HasSubstr(large + "/vocab.txt has 16 pieces"),
                    HasSubstr("model.vocab_size is 14")));

  const std::string etc = Write(RandomModel(SmallEtc()), "etc");
  EXPECT_THAT(Message(LoadEncoder(etc, {.lift = true}).status(), invalid),
              AllOf(HasSubstr(etc), HasSubstr("ETC already")));
  EXPECT_THAT(Message(LoadEncoder(etc, {.residual_attention = "some"}).status(),
                      invalid),
              AllOf(HasSubstr("residual attention"), HasSubstr("some")));

  std::filesystem::resize_file(etc + "/model.safetensors", 100);
  EXPECT_THAT(Message(LoadEncoder(etc).status(), invalid),
              HasSubstr(etc + "/model.safetensors"));
}

TEST_F(TextEncoderTest, RefusesTextsThatItCannotRead) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  LoadedEncoder loaded = Load(Write(RandomModel(SmallEtc()), "etc"));
  const auto mistake = [&](const std::vector<std::string>& texts) {
    return Message(EncodeTexts(loaded, texts).status(), invalid);
  };
  EXPECT_THAT(mistake({}), HasSubstr("at least one text"));
  EXPECT_THAT(mistake({"Mira", ""}), HasSubstr("text 1 should have at least "
                                               "one piece, but is empty"));
  EXPECT_THAT(mistake({" \n"}), HasSubstr("white space"));
  const auto pieces = CheckEncodable(loaded, {"Mira"}, "book.txt");
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  EXPECT_EQ(pieces->back().end, 4);
  EXPECT_THAT(
      Message(CheckEncodable(loaded, {"\u200b"}, "book.txt").status(), invalid),
      HasSubstr("book.txt should have at least one piece, but is "
                "white space, or characters that the tokenizer"));
  EXPECT_THAT(mistake({"Mira", "Mira", "Mira \xC3("}),
              HasSubstr("text 2 should be UTF-8, but is not at byte 5"));
  EXPECT_THAT(
      Message(EncodeDocument(loaded, {"Mira", "\xC3("}).status(), invalid),
      HasSubstr("text 0 should be UTF-8, but is not at byte 5"));
  EXPECT_THAT(Message(EncodeDocument(loaded, {"", ""}).status(), invalid),
              HasSubstr("text 0 should have at least one piece, but is empty"));
  loaded.max_long_length = 2;
  EXPECT_THAT(mistake({"Mira"}),
              HasSubstr("max_long_length should be at least 3, but is 2"));
  EXPECT_THAT(
      Message(CheckEncodable(loaded, {"Mira"}, "book.txt").status(), invalid),
      HasSubstr("max_long_length should be at least 3, but is 2"));
  LoadedEncoder bert = Load(Write(RandomModel(SmallBert()), "bert"));
  bert.max_global_length = 17;
  EXPECT_THAT(
      Message(EncodeTexts(bert, {"Mira"}).status(), invalid),
      HasSubstr("max_global_length should be at least 3 and at most 16, its "
                "positions, but is 17"));
  EXPECT_THAT(Message(CheckLengths(bert), invalid),
              HasSubstr("max_global_length should be at least 3"));
  bert.max_global_length = 16;
  EXPECT_TRUE(CheckLengths(bert).ok());

  // Two types of tokens: those of ETC's texts are 1 and 2.
  EtcConfig few = SmallEtc();
  few.segment_vocab_size = 2;
  const LoadedEncoder untyped = Load(Write(RandomModel(few), "few"));
  EXPECT_THAT(Message(EncodeTexts(untyped, {"Mira"}).status(), invalid),
              AllOf(HasSubstr(untyped.path), HasSubstr("segment_vocab_size")));
}

// Gates that the weights lack, at the value that is asked for.
TEST_F(TextEncoderTest, TakesAResidualModeWithItsNumber) {
  const std::string path = Write(RandomModel(SmallBert("sum")), "ours");
  const LoadedEncoder sum = Load(path);
  const LoadedEncoder gate = Load(path, {.residual_attention = "gate=1"});
  EXPECT_EQ(gate.config.residual_attention, "gate");
  EXPECT_EQ(gate.config.residual_gate_init, 1);
  EXPECT_THAT(gate.report.missing, IsEmpty());
  EXPECT_THAT(gate.report.notices, ElementsAre(HasSubstr("have no gates")));
  const EtcInput input = Encode(sum, kTexts).input;
  EtcModel with_sum = sum.encoder;
  EtcModel with_gates = gate.encoder;
  EXPECT_TRUE(torch::equal(with_sum->forward(input).global_output,
                           with_gates->forward(input).global_output));
  EXPECT_EQ(
      Load(path, {.residual_attention = "decay=0.75"}).config.residual_decay,
      0.75);
  EXPECT_THAT(
      LoadEncoder(path, LoadEncoderOptions{.residual_attention = "decay=2"})
          .status()
          .ToString(),
      HasSubstr("but is \"decay=2\""));
}

}  // namespace
}  // namespace etc
