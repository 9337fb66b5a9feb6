// `realetc attention` on a small run: its files, equal for equal seeds, and one
// message for each mistake, with nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/analysis/analysis_run.h"
#include "tests/support/realetc_program.h"
#include "tests/tasks/translation/toy_language.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class AttentionCommandTest : public RealetcTest {
 protected:
  void SetUp() override {
    const Result run = Run("train " + WriteConfig(Config()));
    ASSERT_EQ(run.code, 0) << run.err;
    data_ = directory_.File("data.json");
    checkpoint_ = directory_.File("run");
  }
  Result Attention(const std::string& arguments) const {
    return Run(absl::StrCat("attention ", arguments));
  }
  std::string Output(const std::string& name) const {
    return directory_.File(name);
  }
  void ExpectRefusal(const std::string& arguments,
                     const std::string& message) const {
    const Result result = Attention(arguments);
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(message));
  }

  std::string data_;
  std::string checkpoint_;
};

TEST_F(AttentionCommandTest, WritesFilesAboutRecords) {
  const auto arguments = [&](const char* name) {
    return absl::StrCat(checkpoint_, " --data ", data_, " --output ",
                        Output(name), " --max-examples 4 --seed 7");
  };
  const Result first = Attention(arguments("a"));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("attention.html: 4 examples, "));
  EXPECT_THAT(first.err,
              AllOf(HasSubstr(absl::StrCat("checkpoint: ", checkpoint_,
                                           "/seed-1/checkpoints/best, ")),
                    HasSubstr("device: cpu (--device is \"auto\"")));
  ASSERT_EQ(Attention(arguments("b")).code, 0);
  for (const char* name :
       {"attention.json", "attention_entropy.csv", "attention_jsd.csv",
        "attention_masses.csv", "attention_positions.csv",
        "attention_similarity.csv", "attention_correlation.csv"}) {
    EXPECT_EQ(Contents(absl::StrCat(Output("a"), "/", name)),
              Contents(absl::StrCat(Output("b"), "/", name)));
  }
  const nlohmann::json json =
      nlohmann::json::parse(Contents(Output("a") + "/attention.json"));
  EXPECT_EQ(json.at("format"), "attention-analysis");
  EXPECT_EQ(json.at("model").at("kind"), "etc");
  EXPECT_EQ(json.at("model").at("residual"), "sum");
  EXPECT_EQ(json.at("data").at("examples"), 4);
  ASSERT_EQ(json.at("populations").size(), 2u);
  const nlohmann::json& longs = json.at("populations").at(0);
  EXPECT_EQ(longs.at("name"), "long");
  EXPECT_EQ(longs.at("entropy").at(1).at(1).at("n"), longs.at("rows"));
  EXPECT_EQ(longs.at("jsd").size(), 1u);
  EXPECT_EQ(longs.at("blocks").at(0).at(0).at("mass_by_offset").size(), 9u);
  // The kinds of wikihop's global tokens; its inputs have no [CLS].
  const nlohmann::json& masses = longs.at("blocks").at(0).at(0).at("masses");
  EXPECT_THAT(longs.at("kinds").dump(),
              "[\"candidate\",\"question\",\"document\",\"sentence\","
              "\"[CLS]\",\"[SEP]\"]");
  EXPECT_GT(masses.at("candidate").at("mass"), 0.0);
  EXPECT_EQ(masses.at("[CLS]").at("share"), 0.0);
  double of_globals = 0;
  for (const char* kind : {"candidate", "question", "document", "sentence"}) {
    of_globals += masses.at(kind).at("mass").get<double>();
  }
  EXPECT_NEAR(of_globals, masses.at("l2g").at("mass").get<double>(), 1e-5);
  EXPECT_EQ(longs.at("rows_linked"), longs.at("rows"));
  // Layer 1 is given scores, layer 0 is not.
  const nlohmann::json& lowest = json.at("scores").at(0).at("l2l");
  const nlohmann::json& upper = json.at("scores").at(1).at("l2l");
  EXPECT_TRUE(lowest.at("std_carried").is_null());
  EXPECT_TRUE(lowest.at("logit_ratio").is_null());
  EXPECT_GT(upper.at("std_carried"), 0.0);
  EXPECT_GT(upper.at("logit_ratio"), 0.0);
  EXPECT_FALSE(lowest.contains("correlation"));
  const nlohmann::json& correlation = upper.at("correlation");
  ASSERT_EQ(correlation.size(), 2u);
  EXPECT_LE(std::abs(correlation.at(1).get<double>()), 1);
  EXPECT_NE(correlation.at(1), 0.0);
  // Two heads of four blocks of the upper layer.
  const std::string lines =
      Contents(Output("a") + "/attention_correlation.csv");
  EXPECT_THAT(lines, AllOf(StartsWith("block,layer,head,correlation\nl2l,1,0,"),
                           HasSubstr("\ng2l,1,1,")));
  EXPECT_EQ(Lines(lines), 9);
  EXPECT_THAT(Contents(Output("a") + "/attention_entropy.csv"),
              StartsWith("population,layer,head,rank,n,median,mean,std,"));
  EXPECT_EQ(Lines(Contents(Output("a") + "/attention_entropy.csv")), 9);
  EXPECT_EQ(Lines(Contents(Output("a") + "/attention_jsd.csv")), 5);
  EXPECT_THAT(Contents(Output("a") + "/attention.html"),
              AllOf(HasSubstr("L-1&amp;0"), HasSubstr("Head-1"),
                    HasSubstr("Carried and new scores"),
                    HasSubstr("title=\"head 0: ")));
  // Files of their own, which need no style from elsewhere.
  for (const char* name : {"entropy_long.svg", "jsd_long.svg",
                           "entropy_global.svg", "jsd_global.svg"}) {
    EXPECT_THAT(Contents(absl::StrCat(Output("a"), "/", name)),
                AllOf(StartsWith("<svg xmlns="), HasSubstr("class=\"cell"),
                      Not(HasSubstr("var(--")), HasSubstr("</svg>\n")));
  }
}

TEST_F(AttentionCommandTest, ReadsPlainText) {
  const std::string text = directory_.Write(
      "text.txt", "mira lives in oslo .\n\nmira lives\nin rome .\n");
  const auto examples = [&](const std::string& options) {
    const Result result =
        Attention(absl::StrCat(checkpoint_, " --text ", text, " --output ",
                               Output("text"), " --overwrite ", options));
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(Contents(Output("text") + "/attention.json"))
        .at("data")
        .at("examples");
  };
  EXPECT_EQ(examples(""), 3);
  directory_.Write("text/entropy_all.svg", "of an earlier analysis");
  EXPECT_EQ(examples("--paragraphs"), 2);
  EXPECT_FALSE(std::filesystem::exists(Output("text") + "/entropy_all.svg"));
  EXPECT_EQ(examples("--max-examples 1 --max-rows 2"), 1);
}

// [CLS] and [SEP] take 2 of the 4,096 long tokens, the token of the text 1 of
// the 512 global ones.
TEST_F(AttentionCommandTest, SaysWhatItCutsOfTexts) {
  std::string words;
  for (int i = 0; i < 5000; ++i) {
    words += "mira ";
  }
  std::string sentences;
  for (int i = 0; i < 600; ++i) {
    sentences += "mira! ";
  }
  const auto analyse = [&](const std::string& text) {
    return Attention(absl::StrCat(checkpoint_, " --text ",
                                  directory_.Write("text.txt", text),
                                  " --overwrite --output ", Output("cut")));
  };
  const auto data = [&] {
    return nlohmann::json::parse(Contents(Output("cut") + "/attention.json"))
        .at("data");
  };
  const Result cut =
      analyse(absl::StrCat(words, "\n", sentences, "\nmira lives\n"));
  ASSERT_EQ(cut.code, 0) << cut.err;
  EXPECT_THAT(cut.err,
              HasSubstr("warning: 906 pieces beyond the model's 4096 tokens "
                        "were cut: the end of 1 text is not analysed; 89 "
                        "sentences beyond the model's 512 global tokens have "
                        "none\n"));
  EXPECT_EQ(data().at("truncated").dump(), "{\"pieces\":906,\"sentences\":89}");
  EXPECT_THAT(Contents(Output("cut") + "/attention.html"),
              AllOf(HasSubstr("Left out"), HasSubstr("906 pieces beyond")));
  const Result whole = analyse("mira lives\n");
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_THAT(whole.err, Not(HasSubstr("beyond the model")));
  EXPECT_FALSE(data().contains("truncated"));
  EXPECT_THAT(Contents(Output("cut") + "/attention.html"),
              Not(HasSubstr("Left out")));
}

TEST_F(AttentionCommandTest, SaysWhichRecordsWereCut) {
  nlohmann::json records = nlohmann::json::parse(Contents(data_));
  std::string support;
  for (int i = 0; i < 1000; ++i) {  // 5000 pieces
    support += "mira lives in oslo . ";
  }
  records[2]["supports"] = {support};
  const std::string data =
      " --data " + directory_.Write("cut.json", records.dump());
  const std::string message =
      "warning: 1 record was cut: see data.max_long_length, ";
  const Result all =
      Attention(absl::StrCat(checkpoint_, data, " --output ", Output("cut")));
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.err, HasSubstr(message));
  EXPECT_EQ(nlohmann::json::parse(Contents(Output("cut") + "/attention.json"))
                .at("data")
                .at("truncated")
                .dump(),
            "{\"records\":1}");
  EXPECT_THAT(Contents(Output("cut") + "/attention.html"),
              HasSubstr("1 record was cut"));
  for (const int record : {1, 2}) {
    const std::string page = Output(absl::StrCat("page-", record, ".html"));
    const Result document =
        Run(absl::StrCat("document ", checkpoint_, data, " --record ", record,
                         " --output ", page));
    ASSERT_EQ(document.code, 0) << document.err;
    EXPECT_EQ(document.err.find(message) != std::string::npos, record == 2);
    EXPECT_EQ(Contents(page).find("; the record was cut") != std::string::npos,
              record == 2);
  }
}

TEST_F(AttentionCommandTest, LooksAtEncodersOnly) {
  const ToyLanguage language(&directory_);
  nlohmann::json config = language.Config();
  config["train"]["epochs"] = 1;
  const std::string run = directory_.File("translation");
  config["output"] = run;
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const std::string arguments = absl::StrCat(
      run, " --data ", language.Files("dev").front(), " --output ");
  ExpectRefusal(arguments + Output("none"),
                "is of translation: attention looks at encoders only");
  ExpectRefusal(
      absl::StrCat("--compare ", checkpoint_, " ", arguments, Output("none")),
      "is of translation: attention looks at encoders only");
  EXPECT_THAT(
      Run(absl::StrCat("document ", arguments, Output("page.html"))).err,
      HasSubstr("is of translation: document looks at encoders only"));
}

// Bad records are left out as `evaluate` leaves them out.
TEST_F(AttentionCommandTest, SkipsBadRecordsIfAskedTo) {
  nlohmann::json records = nlohmann::json::parse(Contents(data_));
  records[1].erase("query");
  const std::string arguments = absl::StrCat(
      " --data ", directory_.Write("bad.json", records.dump()), " --output ");
  ExpectRefusal(checkpoint_ + arguments + Output("none"), "bad.json: record 1");
  EXPECT_FALSE(std::filesystem::exists(Output("none")));

  nlohmann::json config = Config();
  config["data"]["on_bad_record"] = "skip";
  config["output"] = directory_.File("skipping");
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const Result skipped = Attention(absl::StrCat(
      config["output"].get<std::string>(), arguments, Output("skipped")));
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_THAT(skipped.out, HasSubstr("attention.html: 5 examples, "));
  EXPECT_THAT(skipped.err, AllOf(HasSubstr("skipped 1 bad record: "),
                                 HasSubstr("bad.json: record 1")));

  // Nothing is written of a model if a later one fails.
  ExpectRefusal(absl::StrCat("--compare ", config["output"].get<std::string>(),
                             " ", checkpoint_, arguments, Output("both")),
                "bad.json: record 1");
  EXPECT_FALSE(std::filesystem::exists(Output("both")));
}

TEST_F(AttentionCommandTest, ChecksAllRecordsFirst) {
  nlohmann::json records = nlohmann::json::parse(Contents(data_));
  records.back().erase("query");
  int64_t analysed = 0;
  const AttentionAnalysisOptions options = {
      .checkpoint = checkpoint_,
      .data = directory_.Write("bad.json", records.dump()),
      .output = Output("none"),
      .progress = [&](int64_t, int64_t) { ++analysed; }};
  EXPECT_THAT(AnalyseAttention(options).status().message(),
              HasSubstr("bad.json: record 5"));
  EXPECT_EQ(analysed, 0);
}

// Texts of which the tokenizer leaves nothing: a space without a break, one
// without width.
TEST_F(AttentionCommandTest, ChecksAllTextsFirst) {
  for (const char* const nothing : {"\xc2\xa0", "\xe2\x80\x8b"}) {
    const std::string text = directory_.Write(
        "text.txt", absl::StrCat("mira lives in oslo .\n\n", nothing, "\n"));
    ExpectRefusal(absl::StrCat(checkpoint_, " --text ", text, " --output ",
                               Output("none")),
                  "text.txt:3 should have at least one piece");
  }
  EXPECT_FALSE(std::filesystem::exists(Output("none")));
}

// One of six texts, which differ in their numbers of tokens.
TEST_F(AttentionCommandTest, DrawsExamplesByTheSeed) {
  std::string texts;
  std::string text;
  for (int i = 0; i < 6; ++i) {
    text += "mira ";
    texts += text + "\n";
  }
  const std::string path = directory_.Write("texts.txt", texts);
  const auto rows = [&](int seed) {
    const Result result = Attention(absl::StrCat(
        checkpoint_, " --text ", path, " --output ", Output("drawn"),
        " --overwrite --max-examples 1 --seed ", seed));
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(Contents(Output("drawn") + "/attention.json"))
        .at("populations")
        .at(0)
        .at("rows")
        .get<int64_t>();
  };
  std::set<int64_t> drawn;
  for (int seed = 1; seed <= 8; ++seed) {
    drawn.insert(rows(seed));
  }
  EXPECT_GT(drawn.size(), 1u);
}

TEST_F(AttentionCommandTest, PutsModelsSideBySide) {
  nlohmann::json config = Config();
  config["residual_attention"] = "off";
  config["output"] = directory_.File("off");
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const std::string models =
      absl::StrCat("--compare ", directory_.File("off"), " ", checkpoint_);
  const Result both = Attention(
      absl::StrCat(models, " --data ", data_, " --output ", Output("both")));
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("both/comparison.html: 2 models side by "));
  const nlohmann::json json =
      nlohmann::json::parse(Contents(Output("both") + "/comparison.json"));
  EXPECT_EQ(json.at("models").at(0).at("name"), "off");
  EXPECT_EQ(Contents(Output("both") + "/1/attention_correlation.csv"),
            "block,layer,head,correlation\n");
  EXPECT_EQ(json.at("models").at(1).at("name"), "sum");
  EXPECT_EQ(json.at("populations").size(), 2u);
  // From the files of both, without the models.
  const Result again = Attention(
      absl::StrCat("--compare ", Output("both"), "/1 ", Output("both"),
                   "/2/attention.json --output ", Output("again")));
  ASSERT_EQ(again.code, 0) << again.err;
  for (const char* name : {"comparison.json", "comparison.csv"}) {
    EXPECT_EQ(Contents(absl::StrCat(Output("again"), "/", name)),
              Contents(absl::StrCat(Output("both"), "/", name)));
  }

  ExpectRefusal(absl::StrCat(checkpoint_, " ", checkpoint_, " --data ", data_,
                             " --output ", Output("none")),
                "there are 2; --compare puts several side by side");
  ExpectRefusal(absl::StrCat("--compare ", checkpoint_, " --data ", data_,
                             " --output ", Output("none")),
                "--compare should have two inputs or more, but has 1");
  ExpectRefusal(absl::StrCat("--compare ", checkpoint_, " ", Output("gone"),
                             " --data ", data_, " --output ", Output("none")),
                "gone");
  ExpectRefusal(absl::StrCat("--compare ", checkpoint_, " ", Output("again"),
                             " --output ", Output("none")),
                "run/attention.json should be an analysis");
  for (const char* option :
       {"--max-examples 1", "--max-rows 1", "--seed 1", "--jsd-distance",
        "--colour-scale absolute", "--device cpu", "--residual off"}) {
    ExpectMistake(absl::StrCat("attention --compare ", Output("both"), "/1 ",
                               Output("both"), "/2 --output ", Output("none"),
                               " ", option),
                  "requires --data or --text", /*code=*/2);
  }
  ExpectRefusal(
      absl::StrCat(models, " --data ", data_, " --output ", Output("both")),
      "comparison.html is there already; --overwrite replaces it");
  std::filesystem::remove(Output("both") + "/comparison.html");
  std::filesystem::remove(Output("both") + "/comparison.json");
  std::filesystem::remove(Output("both") + "/comparison.csv");
  ExpectRefusal(
      absl::StrCat(models, " --data ", data_, " --output ", Output("both")),
      "both/1/entropy_long.svg is there already");
  config["model"]["num_hidden_layers"] = 3;
  config["output"] = directory_.File("deep");
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  ExpectRefusal(absl::StrCat(models, " ", directory_.File("deep"), " --data ",
                             data_, " --output ", Output("none")),
                "deep has 3 layers, but ");
  EXPECT_FALSE(std::filesystem::exists(Output("none")));
}

TEST_F(AttentionCommandTest, RefusesMistakes) {
  const std::string output = " --output " + Output("none");
  const std::string data = " --data " + data_;
  ExpectRefusal(checkpoint_ + output, "but neither is");
  ExpectRefusal(checkpoint_ + output + data + " --text " + data_,
                "but both are");
  ExpectRefusal(Output("missing") + output + data,
                "other weights read plain text, by --text");
  ExpectRefusal(checkpoint_ + output + " --data " + Output("gone.json"),
                "gone.json");
  ExpectRefusal(absl::StrCat(checkpoint_, output, " --data ",
                             directory_.Write("empty.json", "[]")),
                "should have records, but has none");
  ExpectRefusal(absl::StrCat(checkpoint_, output, " --text ",
                             directory_.Write("empty.txt", " \n\n")),
                "should have text, but has none");
  ExpectRefusal(checkpoint_ + output + data + " --max-examples -1",
                "--max-examples should be at least 0, but is -1");
  ExpectMistake("attention " + checkpoint_ + output + data + " --paragraphs",
                "--text", /*code=*/2);
  EXPECT_FALSE(std::filesystem::exists(Output("none")));
  std::filesystem::create_directory(Output("there"));
  directory_.Write("there/attention_jsd.csv", "x");
  ExpectRefusal(checkpoint_ + data + " --output " + Output("there"),
                "attention_jsd.csv is there already; --overwrite replaces it");
  EXPECT_EQ(Contents(Output("there") + "/attention_jsd.csv"), "x");
}

TEST_F(AttentionCommandTest, ReplacesNothingThatItReads) {
  const std::string folder = Output("folder");
  const std::string copy = folder + "/attention.json";
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(data_, copy);
  const std::string message = "--output should not replace what is read";
  ExpectRefusal(absl::StrCat(checkpoint_, " --data '", folder,
                             "/att*.json' --overwrite --output ", folder),
                message);
  EXPECT_EQ(Contents(copy), Contents(data_));
  // The one that is taken of the run.
  ExpectRefusal(absl::StrCat(checkpoint_, " --data ", data_, " --output ",
                             checkpoint_, "/seed-1/checkpoints/best"),
                message);
}

// For all commands.
TEST_F(AttentionCommandTest, RefusesNumbersThatAnOptionHasNoRoomFor) {
  const std::string attention =
      absl::StrCat("attention ", checkpoint_, " --data ", data_, " --output ",
                   Output("none"));
  for (const char* seed : {"0x10", "1.5", "x"}) {
    ExpectMistake(
        absl::StrCat(attention, " --seed ", seed),
        absl::StrCat("--seed: should be a whole number, but is ", seed),
        /*code=*/2);
  }
  for (const char* seed :
       {"-1", "010", "18446744073709551616", "99999999999999999999"}) {
    ExpectMistake(absl::StrCat(attention, " --seed ", seed),
                  absl::StrCat("--seed: should be a whole number from 0 to "
                               "18446744073709551615, but is ",
                               seed),
                  /*code=*/2);
  }
  ExpectMistake(attention + " --max-rows 9223372036854775808",
                "--max-rows: should be a whole number from "
                "-9223372036854775808 to 9223372036854775807, but is "
                "9223372036854775808",
                /*code=*/2);
  const std::string document =
      absl::StrCat("document ", checkpoint_, " --data ", data_, " --output ",
                   Output("none"));
  ExpectMistake(document + " --record 99999999999999999999", "--record: should",
                /*code=*/2);
  ExpectMistake(document + " --layers 0,99999999999999999999",
                "--layers: should", /*code=*/2);
  const Result largest = Run(attention + " --seed 18446744073709551615");
  EXPECT_EQ(largest.code, 0) << largest.err;
}

}  // namespace
}  // namespace etc
