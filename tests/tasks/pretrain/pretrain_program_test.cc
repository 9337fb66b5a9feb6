// Pre-training as people start it, on the bundled corpus: from text to a store
// to a checkpoint, which is evaluated, inspected, exported and fine-tuned from;
// killed by SIGKILL in the middle of file operations and resumed to the weights
// of a run that was left alone; and mistakes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kVocabulary[] = "tasks/wikihop/sample/vocab.txt";
constexpr char kDemo[] = "tasks/pretrain/configs/demo.json";
// Four updates of the tiny model.
constexpr char kShort[] =
    " --set train.steps=4 --set train.checkpoint_every=1 --set "
    "train.evaluate_every=2 --set train.batch_size=4 --set "
    "train.micro_batch_size=2";

class PretrainProgramTest : public RealetcTest {
 protected:
  PretrainProgramTest() { std::filesystem::current_path(ETC_SOURCE_DIR); }

  // The store of the bundled corpus.
  std::string Store() {
    const std::string store = directory_.File("corpus.tokens");
    const Result result = Run(absl::StrCat(
        "tokenize tasks/pretrain/sample/corpus.txt.gz --format bert "
        "--vocabulary ",
        kVocabulary, " --output ", store));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("4 000"));
    return store;
  }

  // The arguments of a run of `config` on `store`, into `name`.
  std::string Pretrain(const std::string& config, const std::string& store,
                       const std::string& name) const {
    return absl::StrCat("train ", config, " --set data.train='[\"", store,
                        "\"]'", kShort, " --output ", directory_.File(name));
  }

  // A BERT that reads what the demo reads.
  std::string BertConfig() {
    nlohmann::json config = nlohmann::json::parse(Contents(kDemo));
    config["model"] = {{"preset", "bert_small"},
                       {"vocab_size", 75},
                       {"hidden_size", 32},
                       {"num_hidden_layers", 2},
                       {"num_attention_heads", 2},
                       {"intermediate_size", 48},
                       {"max_absolute_position_embeddings", 64}};
    config["data"] = {{"max_global_length", 64}};
    config["pretrain"] = {{"objective", "mlm_nsp"},
                          {"development_one_in", 200}};
    return directory_.Write("bert.json", config.dump());
  }

  // The vocabulary with two pieces swapped.
  std::string OtherVocabulary() {
    std::string pieces = Contents(kVocabulary);
    const size_t at = pieces.find("mira\nodo\n");
    EXPECT_NE(at, std::string::npos);
    pieces.replace(at, 9, "odo\nmira\n");
    return directory_.Write("other.txt", pieces);
  }

  // A store of one document of two sentences.
  std::string LoneStore() {
    const std::string lone = directory_.File("lone.tokens");
    const std::string text = directory_.Write(
        "lone.txt", "Mira Dolan lives in North Haven.\nIt is small.\n");
    const Result result =
        Run(absl::StrCat("tokenize ", text, " --format bert --vocabulary ",
                         kVocabulary, " --output ", lone));
    EXPECT_EQ(result.code, 0) << result.err;
    return lone;
  }

  std::string Weights(const std::string& name) const {
    return Contents(
        directory_.File(name + "/seed-1/checkpoints/last/model.safetensors"));
  }
};

TEST_F(PretrainProgramTest, GoesFromTextToATask) {
  const std::string store = Store();
  const Result trained = Run(Pretrain(kDemo, store, "run"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err,
              AllOf(HasSubstr("training: " + store), HasSubstr("evaluation: "),
                    HasSubstr("always answering \".\" gives"),
                    HasSubstr("encoder and head: random weights")));
  for (const char* metric :
       {"masked_lm_accuracy", "masked_lm_loss", "cpc_accuracy", "cpc_loss",
        "cpc_chance", "loss"}) {
    EXPECT_THAT(trained.out, HasSubstr(absl::StrCat("\n", metric, " ")));
  }
  const std::string checkpoint = directory_.File("run/seed-1/checkpoints/last");
  EXPECT_FALSE(std::filesystem::exists(checkpoint + "/predictions.json"));

  // The same numbers as at the end of training, and others in another mode.
  const Result same = Run("evaluate --json " + checkpoint);
  ASSERT_EQ(same.code, 0) << same.err;
  const Result off = Run("evaluate --json --residual off " + checkpoint);
  ASSERT_EQ(off.code, 0) << off.err;
  EXPECT_NE(same.out, off.out);
  const auto summary =
      nlohmann::json::parse(Contents(directory_.File("run/summary.json")));
  EXPECT_EQ(nlohmann::json::parse(same.out)["masked_lm_loss"],
            summary["runs"][0]["last"]["masked_lm_loss"]);
  EXPECT_EQ(summary["main_metric"], "masked_lm_loss");
  EXPECT_EQ(summary["main_metric_direction"], "min");

  // The documents that it held out of the store, which has another place now.
  const std::string moved = directory_.File("moved.tokens");
  std::filesystem::copy_file(store, moved);
  const std::string evaluate =
      absl::StrCat("evaluate --json ", checkpoint, " --data ");
  const Result of_store = Run(evaluate + moved);
  EXPECT_EQ(of_store.out, same.out);
  const std::string held_out =
      "only the documents that it held out of them "
      "(pretrain.development_one_in) are evaluated";
  EXPECT_THAT(of_store.err, HasSubstr(held_out));
  EXPECT_THAT(Run(evaluate + LoneStore()).err,
              AllOf(HasSubstr("min_sentences"), Not(HasSubstr(held_out))));

  const Result example =
      Run(absl::StrCat("inspect --config ", kDemo, " --data ", store));
  EXPECT_EQ(example.code, 0) << example.err;
  EXPECT_THAT(example.out,
              AllOf(HasSubstr("{[MASK] <- "), HasSubstr("hidden")));

  const std::string exported = directory_.File("exported");
  EXPECT_EQ(Run("export " + checkpoint + " " + exported).code, 0);
  const Result imported =
      Run("import " + exported + " " + directory_.File("imported"));
  EXPECT_EQ(imported.code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("MLM head"));

  const Result tuned = Run(absl::StrCat(
      "train tasks/wikihop/configs/demo.json --set init=", checkpoint, kShort,
      " --output ", directory_.File("tuned")));
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_THAT(tuned.err, AllOf(HasSubstr("heads not used: CPC kernel, MLM "
                                         "head"),
                               Not(HasSubstr("of other pieces"))));
  const std::string other = OtherVocabulary();
  const Result swapped = Run(absl::StrCat(
      "train tasks/wikihop/configs/demo.json --set init=", checkpoint, kShort,
      " --set tokenizer.vocabulary=", other, " --dry-run"));
  EXPECT_EQ(swapped.code, 0) << swapped.err;
  EXPECT_THAT(swapped.err,
              HasSubstr(absl::StrCat("warning: 2 of 75 ids of ", other,
                                     " are of other pieces than in ")));

  // A second pre-training, from the first one's encoder and heads.
  const Result further =
      Run(Pretrain(kDemo, store, "further") + " --set init=" + checkpoint);
  EXPECT_EQ(further.code, 0) << further.err;
  EXPECT_THAT(further.err, AllOf(HasSubstr("MLM head: found"),
                                 HasSubstr("CPC kernel: found"),
                                 Not(HasSubstr("not used"))));
}

TEST_F(PretrainProgramTest, TrainsBert) {
  const std::string store = Store();
  const std::string config = BertConfig();
  const Result trained = Run(Pretrain(config, store, "bert"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, AllOf(HasSubstr("next_sentence_accuracy"),
                                 Not(HasSubstr("cpc_"))));
  // Several documents a record, several pairs a document.
  EXPECT_THAT(trained.err, HasSubstr("249 training records, about "));
  // Exports to HuggingFace and imports from there, heads and all.
  const std::string exported = directory_.File("exported");
  const Result out =
      Run("export " + directory_.File("bert/seed-1/checkpoints/last") + " " +
          exported + " --format safetensors");
  ASSERT_EQ(out.code, 0) << out.err;
  const Result further =
      Run(Pretrain(config, store, "further") + " --set init=" + exported);
  EXPECT_EQ(further.code, 0) << further.err;
  EXPECT_THAT(further.err, AllOf(HasSubstr("MLM head: found"),
                                 HasSubstr("NSP head: found")));
}

TEST_F(PretrainProgramTest, GoesFromAVocabularyOfOnesOwnToATask) {
  const std::string corpus = "tasks/pretrain/sample/corpus.txt.gz";
  const std::string model = directory_.File("books.model");
  const std::string store = directory_.File("books.tokens");
  for (const std::string& command :
       {absl::StrCat("vocabulary ", corpus, " --mask --size 100 --output ",
                     model),
        absl::StrCat("tokenize ", corpus, " --format bert --vocabulary ", model,
                     " --output ", store),
        absl::StrCat(Pretrain(kDemo, store, "run"),
                     " --set model.vocab_size=null --set tokenizer.type=null "
                     "--set tokenizer.vocabulary=",
                     model),
        absl::StrCat("train tasks/classify/configs/demo.json --set init=",
                     directory_.File("run"), " --set 'model={}' --set ",
                     "'tokenizer={}'", kShort, " --output ",
                     directory_.File("tuned"))}) {
    const Result result = Run(command);
    ASSERT_EQ(result.code, 0) << command << "\n" << result.err;
  }
  const auto noted = nlohmann::json::parse(
      Contents(directory_.File("run/seed-1/checkpoints/last/run_config.json")));
  EXPECT_EQ(noted["tokenizer"]["type"], "sentencepiece");
  const auto sizes = nlohmann::json::parse(
      Contents(directory_.File("tuned/seed-1/checkpoints/last/"
                               "etc_config.json")));
  EXPECT_EQ(sizes["vocab_size"], 100);
}

TEST_F(PretrainProgramTest, GoesOnBitForBitAfterSigkill) {
  if (ETC_SANITIZED) {
    GTEST_SKIP() << "a sanitizer's runtime must be loaded before all else";
  }
  const std::string store = Store();
  const std::map<std::string, std::string> configs = {{"etc", kDemo},
                                                      {"bert", BertConfig()}};
  for (const auto& [model, config] : configs) {
    const std::string straight = model + "-straight";
    const std::string killed = model + "-killed";
    ASSERT_EQ(Run(Pretrain(config, store, straight)).code, 0);
    const int status = std::system(
        absl::StrCat("exec env ETC_SHIM_DIRECTORY=", directory_.File(killed),
                     " ETC_SHIM_KILL_AT=61 LD_PRELOAD=", ETC_SHIM, " ",
                     ETC_PROGRAM, " ", Pretrain(config, store, killed),
                     " >/dev/null 2>&1")
            .c_str());
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
    const Result end = Run(Pretrain(config, store, killed) + " --resume");
    ASSERT_EQ(end.code, 0) << end.err;
    EXPECT_TRUE(Weights(killed) == Weights(straight)) << model;
  }
}

// The documents that are held out of one more store are other evaluation data.
TEST_F(PretrainProgramTest, GoesOnWithTheSameStoresAlone) {
  const std::string store = Store();
  const std::string more = directory_.File("more.tokens");
  std::filesystem::copy_file(store, more);
  ASSERT_EQ(Run(Pretrain(kDemo, store, "run")).code, 0);
  const Result refused =
      Run(Pretrain(kDemo, absl::StrCat(store, "\", \"", more), "run") +
          " --resume --set train.steps=6 --allow-changes train.steps "
          "data.train");
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("another data.train"),
                    HasSubstr("begin a new run with --set init=")));
}

// A store of few documents, of which none is held out, or is long enough.
TEST_F(PretrainProgramTest, LeavesOutStoresWithoutDocuments) {
  const std::string lone = LoneStore();
  const std::string stores = absl::StrCat(lone, "\", \"", Store());
  const std::map<std::string, std::string> configs = {{"etc", kDemo},
                                                      {"bert", BertConfig()}};
  for (const auto& [model, config] : configs) {
    const Result trained = Run(Pretrain(config, stores, model));
    EXPECT_EQ(trained.code, 0) << trained.err;
    EXPECT_THAT(trained.err, AllOf(HasSubstr("training: left out " + lone),
                                   HasSubstr("evaluation: left out " + lone),
                                   HasSubstr("always answering \".\" gives")));
  }
}

// Words of 96 pieces, of which 26 of a window may be masked.
TEST_F(PretrainProgramTest, SaysThatNoWholeWordIsMasked) {
  std::string text;
  for (int document = 0; document < 16; ++document) {
    for (int line = 0; line < 8; ++line) {
      std::string word(96, 'a');
      word[static_cast<size_t>(document)] = 'b';
      absl::StrAppend(&text, word, "\n");
    }
    text += "\n";
  }
  const std::string vocabulary = directory_.Write(
      "letters.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\nb\n##b\n");
  const std::string store = directory_.File("letters.tokens");
  ASSERT_EQ(Run(absl::StrCat("tokenize ", directory_.Write("letters", text),
                             " --format bert --vocabulary ", vocabulary,
                             " --output ", store))
                .code,
            0);
  const std::string run = absl::StrCat(
      Pretrain(kDemo, store, "masked"),
      " --set pretrain.development_one_in=0 --set tokenizer.vocabulary=",
      vocabulary);
  const Result refused = Run(run);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("realetc: pretrain.whole_words should be "
                                     "false for these data"));
  const Result trained = Run(run + " --set pretrain.whole_words=false");
  EXPECT_EQ(trained.code, 0) << trained.err;
}

TEST_F(PretrainProgramTest, SaysWhatIsWrong) {
  const std::string store = Store();
  const auto expect = [&](const std::string& arguments,
                          const std::string& part) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_EQ(Lines(result.err.substr(result.err.rfind("realetc: "))), 1)
        << result.err;
    EXPECT_THAT(result.err, HasSubstr(part)) << arguments;
  };
  const std::string run = Pretrain(kDemo, store, "run");
  expect(run + " --set pretrain.objective=mlm_nsp",
         "model.has_long_tokens should be false");
  expect(run + " --set pretrain.objective=mlm --set pretrain.cpc_rate=0.2",
         "cpc_rate decides nothing with objective mlm");
  expect(run + " --set pretrain.objective=cpc", "should be \"mlm_nsp\"");
  expect(run + " --set pretrain.mask_rat=0.2", "mask_rate");
  expect(run + " --set pretrain.min_sentences=1000000", "min_sentences");
  expect(run + " --set pretrain.max_sentences=3",
         "max_sentences should be at least min_sentences, 7, or 0, but is 3");
  expect(run + " --set tokenizer.split_punctuation=true",
         "tokenizer.split_punctuation should be false with tokenizer.type "
         "\"wordpiece\"");
  expect(run + " --set data.on_bad_record=skip",
         "data.on_bad_record should be \"error\" for pre-training");
  expect(
      Pretrain(BertConfig(), store, "run") + " --set data.max_long_length=128",
      "data.max_long_length decides nothing where model.has_long_tokens is "
      "false");
  expect(run + " --set data.dev='[\"missing.tokens\"]'", "missing.tokens");
  expect("score pretrain a b", "has no prediction files");

  // Another vocabulary, and one of another type.
  expect(run + " --set tokenizer.vocabulary=" + OtherVocabulary(),
         "vocabulary");
  expect(run + " --set tokenizer.vocabulary=" +
             directory_.Write("books.model", "x"),
         "books.model is a SentencePiece model: tokenizer.type should be "
         "\"sentencepiece\", but is \"wordpiece\"");
  // One without [MASK].
  std::string pieces = Contents(kVocabulary);
  pieces.replace(pieces.find("[MASK]"), 6, "[mask]");
  expect(run + " --set tokenizer.vocabulary=" +
             directory_.Write("maskless.txt", pieces),
         "[MASK]");
  // Cut off, and no store at all.
  const std::string contents = Contents(store);
  const std::string cut =
      directory_.Write("cut.tokens", contents.substr(0, contents.size() - 100));
  expect(Pretrain(kDemo, cut, "run"), absl::StrCat(contents.size() - 100));
  expect(Pretrain(kDemo, kVocabulary, "run"), "should be a token store");
  EXPECT_FALSE(std::filesystem::exists(directory_.File("run")));

  // Without held-out documents there is nothing to evaluate.
  EXPECT_EQ(Run(run + " --set pretrain.development_one_in=0").code, 0);
  expect("evaluate " + directory_.File("run"), "names no dev files");

  // One document: no random next sentence.
  expect(Pretrain(BertConfig(), LoneStore(), "other") +
             " --set pretrain.development_one_in=0",
         "document");
}

}  // namespace
}  // namespace etc
