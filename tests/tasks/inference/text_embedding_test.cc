// Vectors of texts against a plain computation: the outputs of EncodeTexts'
// tokens, one sentence after the other, and of BERT each chunk as a text of its
// own; the command's files, read back by hand; and its mistakes. Models are
// small and random. Bits are the same where the same batch runs; means are
// compared with the tolerance of a sum of 20 float32.
#include "tasks/inference/text_embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/cpu_limit.h"
#include "base/file.h"
#include "base/stop_guard.h"
#include "etc/weights/convert.h"
#include "etc/weights/export_transformers.h"
#include "nlohmann/json.hpp"
#include "tests/etc/weights/random_model.h"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr char kWords[] =
    "[PAD]\n[unused0]\n[unused1]\n[UNK]\n[CLS]\n[SEP]\n"
    "good\nday\n##s\nto\nyou\n.\nmira\n!\n";
constexpr double kMeanTolerance = 1e-5;

class TextEmbeddingTest : public RealetcTest {
 protected:
  // A checkpoint directory of a random model, BERT with 16 positions or ETC.
  std::string WriteModel(bool is_bert) {
    EtcConfig config = is_bert ? BertOf("sum") : LiftedConfig(BertOf("sum"));
    config.vocab_size = 14;
    config.local_radius = 3;
    const std::string directory = directory_.File(is_bert ? "bert" : "etc");
    WriteCheckpoint(directory, RandomModel(config));
    directory_.Write(absl::StrCat(is_bert ? "bert" : "etc", "/vocab.txt"),
                     kWords);
    return directory;
  }

  static LoadedEncoder LoadOrFail(const std::string& path) {
    auto loaded = LoadEncoder(path);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *std::move(loaded);
  }

  static EmbeddedText Embed(const LoadedEncoder& loaded,
                            const std::vector<std::string>& texts,
                            bool mean = false) {
    auto vectors = EmbedText(
        loaded, texts, {.pooling = mean ? Pooling::kMean : Pooling::kFirst});
    EXPECT_TRUE(vectors.ok()) << vectors.status();
    return *std::move(vectors);
  }

  // The outputs of one text alone.
  static EtcOutput OutputOf(const LoadedEncoder& loaded,
                            const std::string& text) {
    const torch::NoGradGuard no_gradients;
    EtcModel encoder = loaded.encoder;
    return encoder(EncodeTexts(loaded, {text})->input);
  }

  static std::vector<std::string> IdsOf(const std::string& path) {
    const std::vector<std::string> lines =
        absl::StrSplit(Contents(path), '\n', absl::SkipEmpty());
    std::vector<std::string> ids;
    for (const std::string& line : lines) {
      ids.push_back(nlohmann::json::parse(line)["id"].get<std::string>());
    }
    return ids;
  }

  static bool Near(const torch::Tensor& a, const torch::Tensor& b) {
    return torch::allclose(a, b, /*rtol=*/kMeanTolerance,
                           /*atol=*/kMeanTolerance);
  }
};

TEST_F(TextEmbeddingTest, AreTheGlobalOutputsOfEtc) {
  const LoadedEncoder loaded = LoadOrFail(WriteModel(/*is_bert=*/false));
  const std::string text = "Good days to you. \n Mira! Good day.";
  const EtcOutput output = OutputOf(loaded, text);
  const EmbeddedText vectors = Embed(loaded, {text});
  EXPECT_THAT(vectors.ranges, ElementsAre(ByteRange{0, 17}, ByteRange{20, 25},
                                          ByteRange{26, 35}));
  EXPECT_TRUE(torch::equal(vectors.document, output.global_output[0][0]));
  EXPECT_TRUE(
      torch::equal(vectors.parts, output.global_output[0].slice(0, 1, 4)));
  EXPECT_FALSE(vectors.document.requires_grad());

  // [CLS] good day ##s to you . | mira ! | good day . [SEP]
  const EmbeddedText means = Embed(loaded, {text}, /*mean=*/true);
  const torch::Tensor longs = output.long_output[0];
  EXPECT_EQ(longs.size(0), 13);
  EXPECT_TRUE(Near(means.document, longs.mean(0)));
  EXPECT_TRUE(Near(means.parts[0], longs.slice(0, 1, 7).mean(0)));
  EXPECT_TRUE(Near(means.parts[1], longs.slice(0, 7, 9).mean(0)));
  EXPECT_TRUE(Near(means.parts[2], longs.slice(0, 9, 12).mean(0)));
  EXPECT_FALSE(Near(means.document, vectors.document));
}

TEST_F(TextEmbeddingTest, BeginASentenceAtEachText) {
  const LoadedEncoder loaded = LoadOrFail(WriteModel(/*is_bert=*/false));
  // A title does not end as a sentence does.
  const EmbeddedText titled = Embed(loaded, {"Good day", "To you. Mira!"});
  EXPECT_THAT(titled.ranges, ElementsAre(ByteRange{0, 8}, ByteRange{9, 16},
                                         ByteRange{17, 22}));
  EXPECT_EQ(Embed(loaded, {"Good day\nTo you. Mira!"}).ranges.size(), 2);
  // Where its end is that of a sentence, the places are those in one text.
  const EmbeddedText both = Embed(loaded, {"Good day.", "", "Mira!"});
  const EmbeddedText one = Embed(loaded, {"Good day.\n\nMira!"});
  EXPECT_EQ(both.ranges, one.ranges);
  EXPECT_TRUE(torch::equal(both.document, one.document));
  EXPECT_TRUE(torch::equal(both.parts, one.parts));
}

TEST_F(TextEmbeddingTest, NamesADocumentWithAMistakeAsItIsTold) {
  for (const bool is_bert : {false, true}) {
    const auto vectors = EmbedText(LoadOrFail(WriteModel(is_bert)), {" "},
                                   {.name = "stdin: line 3"});
    EXPECT_THAT(vectors.status().ToString(),
                HasSubstr("stdin: line 3 should have at least one piece"));
  }
}

TEST_F(TextEmbeddingTest, SaysWhatEtcDidNotRead) {
  LoadedEncoder loaded = LoadOrFail(WriteModel(/*is_bert=*/false));
  loaded.max_long_length = 9;  // 7 pieces
  loaded.max_global_length = 2;
  const EmbeddedText vectors =
      Embed(loaded, {"Good day. Mira! Good day to you."});
  EXPECT_EQ(vectors.cut_pieces, 3);
  EXPECT_EQ(vectors.dropped_sentences, 2);
  EXPECT_THAT(vectors.ranges, ElementsAre(ByteRange{0, 9}));
  EXPECT_EQ(vectors.parts.size(0), 1);
}

TEST_F(TextEmbeddingTest, AreThoseOfTheChunksOfBert) {
  const LoadedEncoder loaded = LoadOrFail(WriteModel(/*is_bert=*/true));
  // 14 pieces a chunk: nine full ones and one of 4.
  std::string text;
  for (int i = 0; i < 130; ++i) {
    absl::StrAppend(&text, i > 0 ? " " : "", i % 3 == 0 ? "good" : "day");
  }
  const EmbeddedText first = Embed(loaded, {text});
  const EmbeddedText mean = Embed(loaded, {text}, /*mean=*/true);
  ASSERT_EQ(first.ranges.size(), 10);
  torch::Tensor sum = torch::zeros({12});
  for (size_t i = 0; i < 10; ++i) {
    const auto [begin, end] = first.ranges[i];
    const torch::Tensor tokens =
        OutputOf(loaded, text.substr(static_cast<size_t>(begin),
                                     static_cast<size_t>(end - begin)))
            .global_output[0];
    ASSERT_EQ(tokens.size(0), i == 9 ? 6 : 16);
    const auto row = static_cast<int64_t>(i);
    EXPECT_TRUE(Near(first.parts[row], tokens[0])) << i;
    EXPECT_TRUE(Near(mean.parts[row], tokens.mean(0))) << i;
    sum += tokens.sum(0);
  }
  EXPECT_EQ(first.ranges.back().end, static_cast<int64_t>(text.size()));
  EXPECT_TRUE(Near(first.document, first.parts.mean(0)));
  EXPECT_TRUE(Near(mean.document, sum / (9 * 16 + 6)));

  EXPECT_EQ(EmbeddingPasses(loaded, 8 * 14), 1);
  EXPECT_EQ(EmbeddingPasses(loaded, 130), 2);
  int64_t layers = 0;
  const StopGuard guard(nullptr, [&] { ++layers; });
  Embed(loaded, {text});
  EXPECT_EQ(layers, 2 * loaded.config.num_hidden_layers);
}

// In both forms of sentence-transformers' file, also of what is imported and
// exported.
TEST_F(TextEmbeddingTest, ArePooledAsSentenceTransformersSays) {
  const std::string model = WriteModel(/*is_bert=*/true);
  const std::string folder = directory_.File("bert/1_Pooling");
  ASSERT_TRUE(CreateDirectories(folder).ok());
  const auto ask = [&](const std::string& json) {
    directory_.Write("bert/1_Pooling/config.json", json);
  };
  const auto stated = [&](const std::string& path) {
    const auto vectors = EmbedText(LoadOrFail(path), {"Good day."});
    return vectors.ok() ? vectors->document : torch::Tensor();
  };
  ask(R"({"word_embedding_dimension": 12, "pooling_mode_cls_token": true,
          "pooling_mode_mean_tokens": false})");
  const LoadedEncoder loaded = LoadOrFail(model);
  const torch::Tensor first = Embed(loaded, {"Good day."}).document;
  const torch::Tensor mean =
      Embed(loaded, {"Good day."}, /*mean=*/true).document;
  EXPECT_FALSE(Near(first, mean));
  EXPECT_TRUE(Near(stated(model), first));
  ask(R"({"pooling_mode": "mean", "include_prompt": true})");
  EXPECT_TRUE(Near(stated(model), mean));
  ask(R"({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true,
          "pooling_mode_max_tokens": false})");
  EXPECT_TRUE(Near(stated(model), mean));
  const std::string imported = directory_.File("imported");
  const std::string exported = directory_.File("exported");
  const std::string with_code = directory_.File("with_code");
  ASSERT_TRUE(ImportWeights({.source = model}, imported).ok());
  ASSERT_TRUE(
      ExportWeights(imported, ExportFormat::kSafetensors, exported).ok());
  ASSERT_TRUE(
      ExportForTransformers(
          imported, {.max_long_length = 0, .max_global_length = 16}, with_code)
          .ok());
  for (const std::string& path : {imported, exported, with_code}) {
    EXPECT_TRUE(Near(stated(path), mean)) << path;
  }

  const std::string command = absl::StrCat(
      "embed ", imported, " --data ",
      directory_.Write("data.jsonl", "{\"text\": \"Good day.\"}\n"),
      " --output ", directory_.File("vectors.jsonl"), " --device cpu");
  const Result result = Run(command);
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("pooling: mean (1_Pooling/config.json)\n"));
  const Result chosen = Run(command + " --pooling first");
  EXPECT_EQ(chosen.code, 0);
  EXPECT_THAT(chosen.err, Not(HasSubstr("pooling:")));
  ask(R"({"pooling_mode_max_tokens": true, "pooling_mode_mean_tokens": true})");
  const auto refused = EmbedText(LoadOrFail(model), {"Good day."});
  EXPECT_THAT(refused.status().ToString(),
              HasSubstr("bert/1_Pooling/config.json should ask for the pooling "
                        "\"cls\" or \"mean\", but asks for \"max+mean\""));
  EXPECT_TRUE(Near(Embed(LoadOrFail(model), {"Good day."}).document, first));
}

TEST_F(TextEmbeddingTest, CommandWritesJsonLines) {
  const std::string model = WriteModel(/*is_bert=*/false);
  const std::string data = directory_.Write(
      "data.jsonl",
      "{\"id\": \"a\", \"title\": \"Mira\", \"text\": [\"Go\u00f6d day.\"]}\n"
      "{\"id\": 7.0, \"title\": null, \"text\": \"Day.\"}\n");
  const std::string output = directory_.File("vectors.jsonl");
  const Result result =
      Run(absl::StrCat("embed ", model, " --data ", data, " --output ", output,
                       " --text title text --device cpu --threads 1"));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("vectors.jsonl: 2 documents, 3 sentences, 12 numbers "
                        "each\n"));
  const std::vector<std::string> lines =
      absl::StrSplit(Contents(output), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2);
  const nlohmann::json first = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(first["id"], "a");
  ASSERT_EQ(first["sentences"].size(), 2);
  EXPECT_EQ(first["sentences"][0]["start"], 0);
  EXPECT_EQ(first["sentences"][0]["end"], 4);
  EXPECT_EQ(first["sentences"][1]["start"], 5);
  EXPECT_EQ(first["sentences"][1]["end"], 14);  // characters, not bytes
  // pandas writes whole numbers so beside missing ones; predict has these ids.
  const nlohmann::json second = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(second["id"], "7.0");
  EXPECT_EQ(second["sentences"][0]["start"], 1);  // behind an empty title
  const EmbeddedText expected =
      Embed(LoadOrFail(model), {"Mira", "Go\u00f6d day."});
  const auto numbers = first["vector"].get<std::vector<float>>();
  EXPECT_TRUE(torch::equal(torch::tensor(numbers), expected.document));
  EXPECT_TRUE(torch::equal(
      torch::tensor(first["sentences"][0]["vector"].get<std::vector<float>>()),
      expected.parts[0]));
}

TEST_F(TextEmbeddingTest, CommandWritesRowsForNumPy) {
  const std::string model = WriteModel(/*is_bert=*/false);
  const std::string book = directory_.Write("book.txt", "Good day.\r\nMira!\n");
  const std::string output = directory_.File("vectors.npy");
  const std::string arguments =
      absl::StrCat("embed ", model, " --data ", book, " --output ", output,
                   " --device cpu --threads 1 --pooling mean");
  ASSERT_EQ(Run(arguments).code, 0);
  const std::string file = Contents(output);
  ASSERT_EQ(file.size(), 128 + 3 * 12 * sizeof(float));
  EXPECT_EQ(file.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_THAT(file.substr(10, 118),
              HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': "
                        "(3, 12), }"));
  EXPECT_EQ(file[127], '\n');
  torch::Tensor rows = torch::empty({3, 12});
  std::memcpy(rows.data_ptr<float>(), file.data() + 128, file.size() - 128);
  const EmbeddedText expected =
      Embed(LoadOrFail(model), {"Good day.\r\nMira!\n"}, /*mean=*/true);
  EXPECT_TRUE(Near(rows[0], expected.document));
  EXPECT_TRUE(Near(rows.slice(0, 1), expected.parts));
  const std::string id = nlohmann::json(book).dump();
  EXPECT_EQ(Contents(directory_.File("vectors.rows.jsonl")),
            absl::StrCat("{\"id\":", id, "}\n{\"id\":", id,
                         ",\"start\":0,\"end\":9}\n{\"id\":", id,
                         ",\"start\":11,\"end\":16}\n"));
  ASSERT_EQ(Run(arguments + " --documents-only").code, 0);
  EXPECT_EQ(Contents(output).size(), 128 + 12 * sizeof(float));
}

TEST_F(TextEmbeddingTest, CommandStopsAtASignalAndLeavesNothing) {
  const std::string model = WriteModel(/*is_bert=*/false);
  std::string lines;
  for (int i = 0; i < 50'000; ++i) {
    lines += "{\"text\": \"Good day.\"}\n";
  }
  const std::string data = directory_.Write("many.jsonl", lines);
  const std::string folder = directory_.File("vectors");
  std::filesystem::create_directory(folder);
  const std::string output = folder + "/vectors.npy";
  const std::string err = directory_.File("err");
  const pid_t child = fork();
  if (child == 0) {
    std::freopen(err.c_str(), "w", stderr);
    execl(ETC_PROGRAM, "realetc", "embed", model.c_str(), "--data",
          data.c_str(), "--output", output.c_str(), nullptr);
    _exit(127);
  }
  for (int i = 0; i < 30'000 && std::filesystem::is_empty(folder); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGTERM);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(Contents(err),
              HasSubstr(absl::StrCat("realetc: stopped; ", output,
                                     " was not written\n")));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(TextEmbeddingTest, CommandReadsRecordsFromStandardInput) {
  const std::string model = WriteModel(/*is_bert=*/false);
  const std::string data = directory_.Write(
      "data.jsonl", "{\"text\": \"Good day.\"}\n\n{\"text\": \"Mira!\"}");
  const std::string output = directory_.File("vectors.jsonl");
  const auto embed = [&](const std::string& from) {
    return Run(absl::StrCat("embed ", model, " --output ", output,
                            " --device cpu --threads 1 --data ", from));
  };
  ASSERT_EQ(embed(data).code, 0);
  const std::string expected = Contents(output);
  const Result result = embed("- < " + data);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("vectors.jsonl: 2 documents, "));
  EXPECT_EQ(Contents(output), expected);
  EXPECT_THAT(result.err, Not(HasSubstr("more threads than cores")));
  EXPECT_THAT(Run(absl::StrCat("embed ", model, " --data ", data, " --output ",
                               output, " --threads ", CpusOfProcess() + 1))
                  .err,
              HasSubstr("warning: --threads is "));
  const Result mistake =
      embed("- < " + directory_.Write("bad.jsonl", "\n{\"txt\": 1}\n"));
  EXPECT_EQ(mistake.code, 1);
  EXPECT_THAT(mistake.err, HasSubstr("stdin: line 2.text is missing"));
}

TEST_F(TextEmbeddingTest, CommandAnswersLinesOnAPipe) {
  const std::string model = WriteModel(/*is_bert=*/false);
  const std::string data = directory_.Write(
      "data.jsonl", "{\"text\": \"Good day.\"}\n{\"text\": \"Mira!\"}\n");
  const std::string output = directory_.File("vectors.jsonl");
  const std::string embed =
      absl::StrCat("embed ", model, " --device cpu --threads 1 --data ");
  ASSERT_EQ(Run(absl::StrCat(embed, data, " --output ", output)).code, 0);
  const Result result = Run(absl::StrCat(embed, "- --output - < ", data));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, Contents(output));
  EXPECT_THAT(result.err, HasSubstr("2 records\n"));
  const Result refused = Run(absl::StrCat(embed, data, " --output -"));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err,
              HasSubstr("--output - should be given with --data - alone"));
  // Said once, and not of each line.
  const Result too_long =
      Run(absl::StrCat("embed ", WriteModel(/*is_bert=*/true),
                       " --device cpu --threads 1 --data - --output - "
                       "--max-global-length 17 < ",
                       data));
  EXPECT_EQ(too_long.code, 1);
  EXPECT_THAT(too_long.out, IsEmpty());
  EXPECT_THAT(too_long.err, HasSubstr("max_global_length should be at least"));

  const Result mistakes =
      Run(absl::StrCat(embed, "- --documents-only --output - < ",
                       directory_.Write("mistakes.jsonl",
                                        "{\"id\": 1, \"text\": \"Mira\"}\n\n"
                                        "{\"text\": \" \"}\n{\"text\n"
                                        "{\"id\": 1, \"text\": \"Mira\"}\n")));
  EXPECT_EQ(mistakes.code, 1);
  const std::vector<std::string> lines =
      absl::StrSplit(mistakes.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4);
  EXPECT_THAT(lines[0], StartsWith("{\"id\":\"1\",\"vector\":["));
  EXPECT_THAT(lines[1],
              StartsWith("{\"error\":\"stdin: line 3 should have at least "
                         "one piece"));
  EXPECT_THAT(lines[1], EndsWith("\"line\":3}"));
  EXPECT_THAT(lines[2], StartsWith("{\"error\":\"stdin: line 4"));
  EXPECT_EQ(lines[3], lines[0]);
  EXPECT_THAT(mistakes.err,
              HasSubstr("2 records have errors, the first: stdin: line 3"));
}

TEST_F(TextEmbeddingTest, CommandReadsTheFieldsOfTheTraining) {
  nlohmann::json config = Config();
  const std::string data = directory_.Write(
      "train.jsonl",
      R"({"Nr": 1, "head": "oslo", "body": "mira", "label": "x"}
{"Nr": 2, "head": "rome", "body": "town", "label": "y"}
{"Nr": 3, "head": "lima", "body": "lives", "label": "x"}
)");
  config["task"] = "classify";
  config["classify"] = {{"text", {"head", "body"}}, {"id", "Nr"}};
  config["data"] = {{"train", {data}}, {"dev", {data}}};
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const std::string output = directory_.File("vectors.jsonl");
  const std::string embed =
      absl::StrCat("embed ", directory_.File("run"), " --data ", data,
                   " --device cpu --threads 1 --output ", output);
  const Result by_run = Run(embed);
  ASSERT_EQ(by_run.code, 0) << by_run.err;
  EXPECT_THAT(by_run.err,
              HasSubstr("text: head, body (classify.text of the training); id: "
                        "Nr (classify.id of the training)\n"));
  const std::string vectors = Contents(output);
  // The ids are those of predict.
  const std::string predictions = directory_.File("predictions.jsonl");
  ASSERT_EQ(Run(absl::StrCat("predict ", directory_.File("run"), " --data ",
                             data, " --output ", predictions))
                .code,
            0);
  EXPECT_THAT(IdsOf(predictions), ElementsAre("1", "2", "3"));
  EXPECT_EQ(IdsOf(output), IdsOf(predictions));
  // A file of one text has no fields.
  const Result plain = Run(absl::StrCat(
      "embed ", directory_.File("run"), " --data ",
      directory_.Write("plain.txt", "mira lives"),
      " --device cpu --threads 1 --output ", directory_.File("plain.jsonl")));
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(plain.err, Not(HasSubstr("classify.text")));
  ASSERT_EQ(Run(embed + " --text head body").code, 0);
  EXPECT_EQ(Contents(output), vectors);
  ASSERT_EQ(Run(embed + " --text body").code, 0);
  EXPECT_NE(Contents(output), vectors);
  EXPECT_EQ(IdsOf(output), IdsOf(predictions));
  // Records of another form are asked for no id where --text says that they
  // are.
  directory_.Write("train.jsonl", R"({"id": 7, "head": "oslo", "body": "x"})");
  const Result missing = Run(embed);
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("record 0.Nr is missing"));
  ASSERT_EQ(Run(embed + " --text body").code, 0);
  EXPECT_THAT(IdsOf(output), ElementsAre("7"));
}

TEST_F(TextEmbeddingTest, CommandTakesTheMostGlobalTokens) {
  const std::string data = directory_.Write(
      "data.jsonl", "{\"text\": \"Good day. Mira! Good day to you.\"}\n");
  const std::string output = directory_.File("vectors.jsonl");
  const auto embed = [&](const std::string& model, int64_t most) {
    const Result result = Run(absl::StrCat(
        "embed ", model, " --data ", data, " --output ", output,
        " --device cpu --threads 1", " --max-global-length ", most));
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(Contents(output));
  };
  const std::string etc = WriteModel(/*is_bert=*/false);
  EXPECT_EQ(embed(etc, 4)["sentences"].size(), 3);
  const nlohmann::json cut = embed(etc, 2);
  EXPECT_EQ(cut["sentences"].size(), 1);
  EXPECT_EQ(cut["truncated"]["sentences"], 2);
  // Ten pieces, two marks a chunk.
  EXPECT_EQ(embed(WriteModel(/*is_bert=*/true), 6)["chunks"].size(), 3);
}

TEST_F(TextEmbeddingTest, CommandRefusesMistakes) {
  const std::string model = WriteModel(/*is_bert=*/false);
  const std::string bert = WriteModel(/*is_bert=*/true);
  const std::string good =
      directory_.Write("good.jsonl", "{\"text\": \"Mira\"}\n");
  const std::string output = directory_.File("vectors.jsonl");
  const auto fails = [&](const std::string& weights, const std::string& data,
                         const std::string& options,
                         const std::string& message) {
    const Result result = Run(absl::StrCat("embed ", weights, " --data ", data,
                                           " --device cpu ", options));
    EXPECT_EQ(result.code, 1) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_THAT(Contents(output), IsEmpty());
  };
  const std::string into = "--output " + output;
  fails(model, good, "--output v.txt",
        "--output should end in .npy or .jsonl, but is \"v.txt\"");
  fails(model, good, "--output " + good, "good.jsonl");
  fails(model, directory_.File("none.jsonl"), into, "none.jsonl");
  fails(model, directory_.Write("book.txt", "PK\x03\x04\x14"), into,
        "book.txt should be text, but is packed by zip");
  fails(directory_.File("none"), good, into, "none");
  fails(model,
        directory_.Write("bad.jsonl", "{\"text\": \"Mira\"}\n{\"txt\": 1}\n"),
        into, "bad.jsonl: record 1.text is missing");
  fails(model, directory_.Write("empty.jsonl", "{\"text\": \" \"}\n"), into,
        "empty.jsonl: record 0 should have at least one piece, but is white "
        "space");
  // The tokenizer drops it.
  fails(model,
        directory_.Write("dropped.jsonl",
                         "{\"text\": \"Mira\"}\n{\"text\": \"\\u200b\"}\n"),
        into, "dropped.jsonl: record 1 should have at least one piece");
  fails(model, good + " " + directory_.Write("plain.txt", "Mira"),
        into + " --text text",
        "plain.txt, which is no .jsonl or .json, is one text");
  for (const char* name : {"a.csv", "a.tsv.gz", "a.conll"}) {
    fails(model, directory_.Write(name, "text\na\n"), into,
          absl::StrCat(name, " is a table"));
  }
  fails(model, directory_.Write("nul.bin", std::string("a\0", 2)), into,
        "nul.bin should be text, but has a NUL byte");
  fails(model,
        directory_.Write("syntax.jsonl", "{\"text\": \"a\"}\n{\"text\": 01}\n"),
        into, "syntax.jsonl:2:11: syntax error");
  fails(model, directory_.Write("odd.txt", "a\xff"), into,
        "odd.txt should be UTF-8, but is not");
  fails(model,
        directory_.Write("twice.jsonl",
                         "{\"id\": 1, \"text\": \"a\"}\n"
                         "{\"id\": \"1\", \"text\": \"b\"}\n"),
        into, "twice.jsonl: record 1: the id \"1\" should occur once");
  fails(bert, good, into + " --max-long-length 8",
        "--max-long-length is for ETC");
  fails(bert, good, into + " --max-global-length 17",
        "max_global_length should be at least 3 and at most 16, its positions, "
        "but is 17");
  fails(model, good, into + " --threads 5000000000",
        "--threads should be at most 1024, but is 5000000000");
}

}  // namespace
}  // namespace etc
