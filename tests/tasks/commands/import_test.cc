// `realetc import`: its output, and the vocabulary that it finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A safetensors file with one more tensor, of one integer.
std::string WithTensor(const std::string& bytes, const std::string& name) {
  constexpr size_t kBegin = sizeof(uint64_t);
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), kBegin);
  json header = json::parse(bytes.substr(kBegin, size));
  const std::string data = bytes.substr(kBegin + size);
  header[name] = {{"dtype", "I32"},
                  {"shape", {1}},
                  {"data_offsets", {data.size(), data.size() + 4}}};
  const std::string text = header.dump();
  size = text.size();
  std::string begin(kBegin, '\0');
  std::memcpy(begin.data(), &size, kBegin);
  return absl::StrCat(begin, text, data, std::string(4, '\0'));
}

class ImportCommandTest : public RealetcTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
    const Result result =
        Run(absl::StrCat("export ", directory_.File("run/seed-1"),
                         "/checkpoints/best ", source_));
    ASSERT_EQ(result.code, 0) << result.err;
  }

  // Leaves tokenizer.json, with a model of this type, as the only vocabulary of
  // the source. Returns the contents of the vocab.txt that was there.
  std::string LeaveTokenizerJson(const std::string& type) {
    const std::string lines = Contents(source_ + "/vocab.txt");
    json vocabulary;
    std::istringstream stream(lines);
    int64_t id = 0;
    for (std::string piece; std::getline(stream, piece); ++id) {
      vocabulary[piece] = id;
    }
    directory_.Write("source/tokenizer.json",
                     json({{"normalizer",
                            {{"type", "BertNormalizer"}, {"lowercase", false}}},
                           {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                           {"model", {{"type", type}, {"vocab", vocabulary}}}})
                         .dump());
    std::filesystem::remove(source_ + "/vocab.txt");
    std::filesystem::remove(source_ + "/tokenizer_config.json");
    return lines;
  }

  const std::string source_ = directory_.File("source");
  const std::string target_ = directory_.File("target");
};

TEST_F(ImportCommandTest, PrintsASummaryUnlessVerbose) {
  const Result brief = Run("import " + source_ + " --dry-run");
  EXPECT_EQ(brief.code, 0) << brief.err;
  EXPECT_LE(Lines(brief.out), 7) << brief.out;
  EXPECT_THAT(brief.out,
              AllOf(HasSubstr("official ETC"),
                    HasSubstr("0 freshly initialised; 0 tensors dropped"),
                    HasSubstr("vocab.txt, 19 pieces, lower case"),
                    HasSubstr("heads of pre-training: none in the source"),
                    HasSubstr("residual attention: sum"),
                    HasSubstr("activation: gelu (its tanh form)"),
                    Not(HasSubstr("transposed"))));
  const Result verbose = Run("import " + source_ + " --dry-run --verbose");
  EXPECT_GT(Lines(verbose.out), 20);
  EXPECT_THAT(verbose.out,
              AllOf(HasSubstr("embedding.token.weight"),
                    HasSubstr("transposed"), HasSubstr(brief.out)));
}

TEST_F(ImportCommandTest, CountsTensorsThatAreNoWeights) {
  ASSERT_EQ(Run("import " + source_ + " " + target_).code, 0);
  std::string bytes = Contents(target_ + "/model.safetensors");
  EXPECT_THAT(Run("import " + target_ + " --dry-run").out,
              HasSubstr("; 0 tensors dropped\n"));
  for (const auto& [name, text] :
       {std::pair("embeddings.position_ids", ", 1 that is no weight ignored\n"),
        std::pair("global_step", ", 2 that are no weights ignored\n")}) {
    bytes = WithTensor(bytes, name);
    directory_.Write("target/model.safetensors", bytes);
    const Result result = Run("import " + target_ + " --dry-run");
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out,
                HasSubstr("; 0 tensors dropped" + std::string(text)));
  }
}

TEST_F(ImportCommandTest, SaysWhereGatesBegin) {
  const Result gates =
      Run("import " + source_ + " " + target_ + " --residual gate=0.5");
  ASSERT_EQ(gates.code, 0) << gates.err;
  EXPECT_THAT(gates.out,
              AllOf(HasSubstr("0 freshly initialised, 4 gates at 0.5; 0 "),
                    HasSubstr("residual attention: gate\n"),
                    HasSubstr("note: the weights have no gates: all begin with "
                              "0.5 (residual_gate_init)\n")));
  const Result left = Run("import " + target_ + " --dry-run --residual sum");
  EXPECT_THAT(left.out, AllOf(HasSubstr("4 tensors dropped"),
                              HasSubstr("note: the gates of the weights are "
                                        "left out")));
  EXPECT_THAT(Run("import " + source_ + " --dry-run --residual decay=0.75").out,
              HasSubstr("residual attention: decay=0.75"));
}

TEST_F(ImportCommandTest, TakesTheVocabularyOutOfTokenizerJson) {
  const std::string lines = LeaveTokenizerJson("WordPiece");
  const Result result = Run("import " + source_ + " " + target_);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("tokenizer.json, 19 pieces, cased"));
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(Contents(target_ + "/vocab.txt"), lines);
  EXPECT_THAT(Contents(target_ + "/tokenizer_config.json"),
              HasSubstr("\"do_lower_case\": false"));
  // A run can start from the source, and its checkpoint has the vocabulary.
  json config = Config();
  config["init"] = source_;
  config.erase("model");
  config["tokenizer"] = json::object();
  // Mentions by pieces need a lower-case vocabulary.
  config["wikihop"] = {{"mention_alignment", "characters"}};
  config["output"] = directory_.File("second");
  const Result trained = Run("train " + WriteConfig(config));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(
      Contents(directory_.File("second/seed-1/checkpoints/best/vocab.txt")),
      lines);
}

TEST_F(ImportCommandTest, CarriesOnATokenizerJsonOfAnyKind) {
  LeaveTokenizerJson("WordLevel");
  json file = json::parse(Contents(source_ + "/tokenizer.json"));
  file["normalizer"] = {{"type", "Lowercase"}};
  file["pre_tokenizer"] = {{"type", "Whitespace"}};
  file["model"]["unk_token"] = "[UNK]";
  const std::string contents = file.dump();
  directory_.Write("source/tokenizer.json", contents);
  const Result result = Run("import " + source_ + " " + target_);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("tokenizer.json, 19 pieces\n"));
  const std::string exported = directory_.File("exported");
  ASSERT_EQ(Run("export " + target_ + " " + exported).code, 0);
  json config = Config();
  config["init"] = exported;
  config.erase("model");
  config["tokenizer"] = json::object();
  config["output"] = directory_.File("second");
  const Result trained = Run("train " + WriteConfig(config));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string best = directory_.File("second/seed-1/checkpoints/best");
  for (const std::string& directory : {target_, exported, best}) {
    EXPECT_EQ(Contents(directory + "/tokenizer.json"), contents);
    EXPECT_FALSE(std::filesystem::exists(directory + "/vocab.txt"));
  }
  EXPECT_EQ(
      json::parse(Contents(best + "/run_config.json"))["tokenizer"]["type"],
      "huggingface");
  const Result again = Run("evaluate " + directory_.File("second"));
  EXPECT_EQ(again.code, 0) << again.err;
  // A part that is not supported is named before anything is written.
  file["pre_tokenizer"] = {{"type", "UnicodeScripts"}};
  directory_.Write("source/tokenizer.json", file.dump());
  const Result refused =
      Run("import " + source_ + " " + directory_.File("third"));
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(Lines(refused.err), 1) << refused.err;
  EXPECT_THAT(refused.err,
              HasSubstr("pre_tokenizer.type is \"UnicodeScripts\""));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("third")));
}

TEST_F(ImportCommandTest, CarriesOnHowTheVocabularyIsUsed) {
  json options = {{"do_lower_case", true},
                  {"strip_accents", false},
                  {"tokenize_chinese_chars", false},
                  {"max_input_chars_per_word", 100},
                  {"added_tokens_decoder",
                   {{"1", {{"content", "[unused0]"}, {"special", true}}}}}};
  directory_.Write("source/tokenizer_config.json", options.dump());
  const Result result = Run("import " + source_ + " " + target_);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("19 pieces, lower case, accents kept, "
                                    "ideographs not split, 1 added token"));
  const std::string exported = directory_.File("exported");
  ASSERT_EQ(Run("export " + target_ + " " + exported).code, 0);
  json config = Config();
  config["init"] = exported;
  config.erase("model");
  config["tokenizer"] = json::object();
  config["output"] = directory_.File("second");
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  for (const std::string& directory :
       {target_, exported, directory_.File("second/seed-1/checkpoints/best")}) {
    const json written =
        json::parse(Contents(directory + "/tokenizer_config.json"));
    for (const char* field :
         {"do_lower_case", "strip_accents", "tokenize_chinese_chars",
          "max_input_chars_per_word"}) {
      EXPECT_EQ(written.value(field, json()), options[field])
          << directory << " " << field;
    }
    EXPECT_EQ(written["added_tokens_decoder"]["1"]["content"], "[unused0]");
  }
  const Result contradicted = Run("import " + target_ + " --dry-run --cased");
  EXPECT_EQ(contradicted.code, 1);
  EXPECT_THAT(contradicted.err, HasSubstr("do_lower_case is true"));
  options["do_basic_tokenize"] = false;
  directory_.Write("source/tokenizer_config.json", options.dump());
  EXPECT_THAT(Run("import " + source_ + " --dry-run").err,
              HasSubstr("do_basic_tokenize is false"));
}

TEST_F(ImportCommandTest, RefusesAVocabularyThatItCannotUse) {
  LeaveTokenizerJson("Other");
  const Result result = Run("import " + source_ + " " + target_);
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(Lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("tokenizer.json"), HasSubstr("\"Other\""),
                    HasSubstr("--vocabulary")));
  EXPECT_FALSE(std::filesystem::exists(target_));
  json config = Config();
  config["init"] = source_;
  config.erase("model");
  config["tokenizer"] = json::object();
  config["output"] = directory_.File("second");
  EXPECT_THAT(Run("train " + WriteConfig(config)).err,
              AllOf(HasSubstr("tokenizer.vocabulary should name a file"),
                    HasSubstr("\"Other\"")));
  const Result other =
      Run(absl::StrCat("import ", source_, " ", target_, " --vocabulary ",
                       directory_.File("vocab.txt")));
  EXPECT_EQ(other.code, 0) << other.err;
}

// Rows are taken as they are.
TEST_F(ImportCommandTest, WarnsOfAVocabularyWithOtherPieces) {
  const std::string lines = Contents(source_ + "/vocab.txt");
  const std::string same = directory_.Write("same.txt", lines);
  const std::string import =
      absl::StrCat("import ", source_, " --dry-run --vocabulary ");
  const Result quiet = Run(import + same);
  EXPECT_EQ(quiet.code, 0) << quiet.err;
  EXPECT_EQ(quiet.err, "");
  std::vector<std::string> pieces =
      absl::StrSplit(lines, '\n', absl::SkipEmpty());
  std::swap(pieces[pieces.size() - 1], pieces[pieces.size() - 2]);
  const std::string other =
      directory_.Write("other.txt", absl::StrJoin(pieces, "\n"));
  const Result warned = Run(import + other);
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_THAT(warned.err,
              HasSubstr(absl::StrCat("warning: 2 of 19 ids of ", other,
                                     " are of other pieces than in ", source_,
                                     "/vocab.txt")));
}

TEST_F(ImportCommandTest, RefusesADirectoryWithFilesOfAModel) {
  std::filesystem::create_directory(target_);
  directory_.Write("target/tokenizer.json", "mine");
  for (const std::string& command :
       {absl::StrCat("import ", source_, " ", target_),
        absl::StrCat("import ", source_, " ", target_, " --dry-run"),
        absl::StrCat("export ", source_, " ", target_)}) {
    ExpectMistake(command, target_ +
                               "/tokenizer.json is there already: name a "
                               "new directory, or remove");
  }
  EXPECT_EQ(Contents(target_ + "/tokenizer.json"), "mine");
}

TEST_F(ImportCommandTest, RefusesOptionsThatDecideNothing) {
  const std::string import = "import " + source_ + " --dry-run ";
  const Result split = Run(import + "--split-punctuation");
  EXPECT_EQ(split.code, 1);
  EXPECT_THAT(split.err, HasSubstr("--split-punctuation is for a vocabulary of "
                                   "sentencepiece, but "));
  ExpectMistake(import + "--segments rows", "--segments requires --lift",
                /*code=*/2);
  LeaveTokenizerJson("Other");
  EXPECT_THAT(Run(import + "--cased").err,
              HasSubstr("--cased is for a vocabulary of wordpiece, but there "
                        "is none"));
}

TEST_F(ImportCommandTest, TakesTheDirectoryOfARun) {
  const std::string run = directory_.File("run");
  const std::string best = run + "/seed-1/checkpoints/best";
  const Result inspected = Run("inspect " + run);
  EXPECT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_EQ(inspected.out, Run("inspect " + best).out);
  EXPECT_THAT(inspected.err, HasSubstr("checkpoint: " + best));
  const Result compared =
      Run(absl::StrCat("inspect ", run, "/seed-1 --compare ", run));
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("0 tensors differ"));
  EXPECT_EQ(Run("import " + run + " " + target_).code, 0);
  const Result exported =
      Run("export " + run + " " + directory_.File("exported"));
  EXPECT_EQ(exported.code, 0) << exported.err;
  // The official code would compute something else.
  EXPECT_THAT(exported.err,
              HasSubstr("this model has residual attention \"sum\""));
  const Result missing = Run("inspect " + directory_.File("nothing"));
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(Lines(missing.err), 1) << missing.err;
}

TEST_F(ImportCommandTest, RefusesACheckpointThatIsNotAsItWasWritten) {
  const std::string run = directory_.File("run");
  const std::string file =
      std::filesystem::canonical(run + "/seed-1/checkpoints/best") /
      "model.safetensors";
  std::string bytes = Contents(file);
  bytes[bytes.size() - 3] ^= 1;  // the last bits of a number
  std::ofstream(file, std::ios::binary) << bytes;
  for (const std::string& command :
       {"inspect " + run, "import " + run + " " + target_,
        "export " + run + " " + directory_.File("exported")}) {
    const Result result = Run(command);
    EXPECT_EQ(result.code, 1) << command;
    EXPECT_THAT(result.err, HasSubstr("model.safetensors is damaged"))
        << command;
    EXPECT_EQ(Lines(result.err), 1) << result.err;
  }
}

// Names of tensors and metadata are whatever a file says.
TEST_F(ImportCommandTest, PrintsNoControlCharacterOfAFile) {
  const std::string header =
      R"({"__metadata__":{"k":"v\u001b[2J"},"a\u001b[31m\u000ab":)"
      R"({"dtype":"F16","shape":[2],"data_offsets":[0,4]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  const std::string file = directory_.Write(
      "a.safetensors", absl::StrCat(bytes, header, std::string(4, '\0')));
  const Result inspected = Run("inspect " + file);
  EXPECT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_THAT(inspected.out,
              AllOf(HasSubstr("a\\x1b[31m\\x0ab "), HasSubstr("v\\x1b[2J"),
                    Not(HasSubstr("\x1b"))));
  const Result imported = Run("import " + file + " --dry-run");
  EXPECT_EQ(imported.code, 1);
  EXPECT_THAT(imported.err, Not(HasSubstr("\x1b")));
  const Result named = Run("inspect 'no\x1b[31m'");  // a name of a file
  EXPECT_EQ(named.code, 1);
  EXPECT_THAT(named.err,
              AllOf(HasSubstr("no\\x1b[31m"), Not(HasSubstr("\x1b"))));
}

TEST_F(ImportCommandTest, RefusesWhatIsNotANumberEverywhere) {
  ASSERT_EQ(Run("import " + source_ + " " + target_).code, 0);
  const std::string weights = target_ + "/model.safetensors";
  std::string bytes = Contents(weights);
  // The last number of the last tensor.
  bytes.replace(bytes.size() - 4, 4, std::string("\0\0\xc0\x7f", 4));
  directory_.Write("target/model.safetensors", bytes);
  const std::string other = directory_.File("other");
  json config = Config();
  config["init"] = target_;
  config["output"] = other;
  for (const std::string& command :
       {absl::StrCat("import ", target_, " ", other),
        absl::StrCat("import ", target_, " --dry-run"),
        absl::StrCat("export ", target_, " ", other),
        absl::StrCat("train ", WriteConfig(config))}) {
    const Result result = Run(command);
    EXPECT_EQ(result.code, 1) << command;
    EXPECT_THAT(result.err,
                AllOf(HasSubstr(target_), HasSubstr("tensor \"encoder."),
                      HasSubstr("should have finite elements")))
        << command;
    EXPECT_FALSE(std::filesystem::exists(other + "/model.safetensors"));
  }
  const Result inspected = Run("inspect " + target_);
  EXPECT_EQ(inspected.code, 0);
  EXPECT_THAT(inspected.err, HasSubstr("should have finite elements"));
}

TEST_F(ImportCommandTest, SaysOfATextThatItIsNoWeights) {
  const std::string note =
      directory_.Write("note.txt", "These are no weights.");
  const Result result = Run("inspect " + note);
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(Lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("note.txt is not a weights file"));
}

}  // namespace
}  // namespace etc
