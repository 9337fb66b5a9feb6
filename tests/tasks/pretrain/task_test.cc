// Pre-training as a task: the options of a configuration, each by what it makes
// of the documents of a toy store: the sequences and pairs, their masked tokens
// and hidden sentences, the documents that are trained on and held out. What
// the examples are made of has tests of its own: examples/*_test.

#include "tasks/pretrain/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/data/record_source.h"
#include "tasks/pretrain/corpus/corpus_tokenizer.h"
#include "tasks/pretrain/pretrain_example.h"
#include "tasks/pretrain/pretrain_options.h"
#include "tasks/task/task.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/pretrain/random_documents.h"
#include "tests/tasks/pretrain/toy_store.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

constexpr int32_t kMaskId = 12;
// Token of documents where it does not matter which; even: it begins a word.
constexpr int32_t kWordId = 20;

// A vocabulary of kToyVocabSize pieces: [CLS] is 10, [SEP] 11, [MASK] 12.
std::shared_ptr<const Tokenizer> ToyPieces() {
  std::vector<std::string> pieces = {"[CLS]", "[SEP]", "[MASK]"};
  while (pieces.size() < kToyVocabSize - 10) {
    pieces.push_back(absl::StrCat("w", pieces.size()));
  }
  return std::make_shared<WordTokenizer>(pieces);
}

// Objective mlm of ETC, or of BERT, with no document held out, or as `options`
// say.
RunConfig ConfigWith(const Json& options, bool is_bert) {
  RunConfig config;
  config.source = "test.json";
  config.task = "pretrain";
  config.model.vocab_size = kToyVocabSize;
  config.train.steps = 1;
  config.task_options = {{"objective", "mlm"}, {"development_one_in", 0}};
  if (is_bert) {
    config.model.has_long_tokens = false;
    config.model.relative_pos_max_distance = 0;
    config.task_options["mixed_documents"] = 1;
  }
  config.task_options.update(options);
  config.json["pretrain"] = config.task_options;
  return config;
}

RunConfig EtcWith(const Json& options = Json::object()) {
  return ConfigWith(options, /*is_bert=*/false);
}

// With sequences of at most 64 tokens.
RunConfig ShortEtcWith(const Json& options) {
  RunConfig config = EtcWith(options);
  config.data.max_long_length = 64;
  return config;
}

RunConfig BertWith(const Json& options = Json::object()) {
  return ConfigWith(options, /*is_bert=*/true);
}

ToyDocument SentencesOf(size_t sentences, size_t tokens, int32_t id = kWordId) {
  return ToyDocument(sentences, ToySentence(tokens, id));
}

const PretrainExample& AsPretrain(const std::shared_ptr<const Example>& any) {
  return dynamic_cast<const PretrainExample&>(*any);
}

// All examples of an epoch.
Examples ReadAll(const ExampleSource& source, int64_t epoch = 0) {
  Examples all;
  for (int64_t record = 0; record < source.size(); ++record) {
    const Examples examples =
        MakeExamples(source, RequestInEpoch(/*seed=*/1, epoch, record));
    all.insert(all.end(), examples.begin(), examples.end());
  }
  return all;
}

class PretrainTaskTest : public testing::Test {
 protected:
  // Writes a store of the vocabulary's and returns its path.
  std::string Write(const std::vector<ToyDocument>& documents,
                    const std::string& name = "corpus.tokens") {
    TokenStoreSettings settings =
        MakeCorpusTokenizer(TokenizerConfig(), pieces_).value().settings;
    settings.sentences = "lines";
    WriteToyStore(directory_.File(name), settings, documents);
    return directory_.File(name);
  }

  std::unique_ptr<ExampleSource> Open(const RunConfig& config,
                                      const std::vector<std::string>& paths,
                                      RecordUse use = RecordUse::kTraining) {
    auto task = PretrainTask::Make(config, pieces_);
    EXPECT_TRUE(task.ok()) << task.status();
    tasks_.push_back(std::move(task).value());
    auto source = tasks_.back()->Open({.patterns = paths, .use = use});
    EXPECT_TRUE(source.ok()) << source.status();
    return std::move(source).value();
  }

  const std::shared_ptr<const Tokenizer> pieces_ = ToyPieces();
  TemporaryDirectory directory_;
  std::vector<std::unique_ptr<Task>> tasks_;  // outlive their sources
};

// --- Documents ---------------------------------------------------------------

// Tokens of ETC's examples, as they were before masking.
std::set<int32_t> OriginalTokens(const ExampleSource& source) {
  std::set<int32_t> tokens;
  for (const auto& any : ReadAll(source)) {
    const PretrainExample& example = AsPretrain(any);
    std::vector<int32_t> ids = example.long_token_ids;
    for (size_t m = 0; m < example.masked_positions.size(); ++m) {
      ids[static_cast<size_t>(example.masked_positions[m])] =
          example.masked_labels[m];
    }
    tokens.insert(ids.begin(), ids.end());
  }
  return tokens;
}

// Each document has a token of its own.
TEST_F(PretrainTaskTest, HoldsDocumentsOutWhereThereIsNoDevelopmentSet) {
  std::vector<ToyDocument> documents;
  for (int32_t d = 0; d < 40; ++d) {
    documents.push_back(SentencesOf(2, 3, 100 + 2 * d));
  }
  const std::string train = Write(documents, "train.tokens");
  const std::string dev =
      Write({SentencesOf(2, 3, 900), SentencesOf(2, 3, 902)}, "dev.tokens");
  const auto store = TokenStore::Open(train);
  ASSERT_TRUE(store.ok()) << store.status();
  std::set<int32_t> all;
  std::set<int32_t> held_out;
  std::set<int32_t> others;
  for (int32_t d = 0; d < 40; ++d) {
    const bool is_held_out = (*store)->document_hash(d) % 4 == 0;
    (is_held_out ? held_out : others).insert(100 + 2 * d);
    all.insert(100 + 2 * d);
  }
  ASSERT_FALSE(held_out.empty());
  ASSERT_FALSE(others.empty());

  RunConfig config = EtcWith({{"development_one_in", 4}});
  config.data.train = {train};
  EXPECT_EQ(OriginalTokens(*Open(config, {train})), others);
  EXPECT_EQ(OriginalTokens(*Open(config, {}, RecordUse::kEvaluation)),
            held_out);

  config.data.dev = {dev};
  EXPECT_EQ(OriginalTokens(*Open(config, {train})), all);
  EXPECT_THAT(OriginalTokens(*Open(config, {dev}, RecordUse::kEvaluation)),
              ElementsAre(900, 902));
}

// No hash of a document is a multiple of the number.
TEST_F(PretrainTaskTest, HoldsOutDocumentsOfCorporaOfFew) {
  const std::string path = Write(
      {SentencesOf(3, 3, 100), SentencesOf(3, 3, 102), SentencesOf(3, 3, 104),
       SentencesOf(1, 3, 106), SentencesOf(3, 3, 108)});
  Json few = {{"development_one_in", 1'000'000'000'000}, {"min_sentences", 2}};
  RunConfig config = EtcWith(few);
  config.data.train = {path};
  const auto train = Open(config, {path});
  const auto dev = Open(config, {}, RecordUse::kEvaluation);
  std::set<int32_t> tokens = OriginalTokens(*dev);
  EXPECT_THAT(tokens, SizeIs(1));
  EXPECT_THAT(OriginalTokens(*train), SizeIs(3));
  tokens.merge(OriginalTokens(*train));
  EXPECT_THAT(tokens, ElementsAre(100, 102, 104, 108));
  const auto lines = tasks_.back()->DescribeData(*train, *dev);
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(lines->messages,
              Contains(HasSubstr("by the smallest hash: up to 1 document")));

  // A random next sentence is of another document.
  few["objective"] = "mlm_nsp";
  config = BertWith(few);
  config.data.train = {path};
  EXPECT_EQ(Open(config, {}, RecordUse::kEvaluation)->size(), 2);
  EXPECT_EQ(Open(config, {path})->size(), 2);
}

TEST_F(PretrainTaskTest, WarnsOfDocumentsThatAreTrainedOnAndEvaluated) {
  const std::string train =
      Write({SentencesOf(2, 3, 100), SentencesOf(2, 3, 102)}, "train.tokens");
  const auto describe = [&](const std::vector<ToyDocument>& documents) {
    RunConfig config = EtcWith();
    config.data.train = {train};
    config.data.dev = {Write(documents, "dev.tokens")};
    const auto training = Open(config, {train});
    const auto dev = Open(config, config.data.dev, RecordUse::kEvaluation);
    return tasks_.back()->DescribeData(*training, *dev).value().warnings;
  };
  const std::string warning = "data.dev and data.train share 1 docu";
  EXPECT_THAT(describe({SentencesOf(2, 3, 102), SentencesOf(2, 3, 104)}),
              ElementsAre(HasSubstr(warning)));
  EXPECT_THAT(describe({SentencesOf(2, 3, 104)}), IsEmpty());
}

TEST_F(PretrainTaskTest, RefusesAStoreThatIsNamedTwice) {
  const std::string path = Write({SentencesOf(4, 3), SentencesOf(4, 3)});
  const auto task = PretrainTask::Make(EtcWith(), pieces_);
  ASSERT_TRUE(task.ok()) << task.status();
  const auto refused = (*task)->Open({.patterns = {path, path}});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr(absl::StrCat(path, " is named twice")));
}

TEST_F(PretrainTaskTest, DividesDocumentsOfMoreSentencesThanConfigured) {
  const std::string path = Write({SentencesOf(12, 3)});
  EXPECT_EQ(Open(BertWith(), {path})->size(), 1);
  EXPECT_EQ(Open(BertWith({{"max_sentences", 4}}), {path})->size(), 3);

  // Parts of one sequence, which do not see each other.
  const auto parts = [&](const Json& options) {
    const Examples examples = ReadAll(*Open(EtcWith(options), {path}));
    EXPECT_THAT(examples, SizeIs(1));
    return examples.at(0)->pattern.global_example;
  };
  EXPECT_THAT(parts(Json::object()), AllOf(SizeIs(12), Each(0)));
  EXPECT_THAT(parts({{"max_sentences", 4}}),
              ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2));
}

TEST_F(PretrainTaskTest, LeavesOutDocumentsOfFewerSentencesThanConfigured) {
  const std::string path =
      Write({SentencesOf(4, 3, 30), SentencesOf(5, 3, 32)});
  EXPECT_THAT(OriginalTokens(*Open(EtcWith(), {path})), ElementsAre(30, 32));
  EXPECT_THAT(OriginalTokens(*Open(EtcWith({{"min_sentences", 5}}), {path})),
              ElementsAre(32));
}

// --- Masked tokens and hidden sentences --------------------------------------

// One window of 80 tokens.
TEST_F(PretrainTaskTest, MasksAsManyTokensAsConfigured) {
  const std::string path = Write({SentencesOf(10, 8)});
  const auto masked = [&](const Json& options) {
    const Examples examples = ReadAll(*Open(EtcWith(options), {path}));
    EXPECT_THAT(examples, SizeIs(1));
    return AsPretrain(examples.at(0)).masked_positions.size();
  };
  EXPECT_EQ(masked(Json::object()), 12u);
  EXPECT_EQ(masked({{"mask_rate", 0.25}}), 20u);
  EXPECT_EQ(masked({{"max_predictions", 7}}), 7u);
  EXPECT_EQ(masked({{"max_predictions", 13}}), 12u);
}

// All of 200 tokens are masked, of which about 20 become random ones.
TEST_F(PretrainTaskTest, DrawsRandomTokensFromTheConfiguredOneOn) {
  const std::string path = Write({SentencesOf(10, 20)});
  const auto lowest = [&](int32_t random_min_id) {
    const auto source = Open(
        EtcWith({{"mask_rate", 1}, {"random_min_id", random_min_id}}), {path});
    int32_t found = kToyVocabSize;
    for (int64_t epoch = 0; epoch < 5; ++epoch) {
      for (const auto& example : ReadAll(*source, epoch)) {
        for (const int32_t id : example->long_token_ids) {
          if (id != kMaskId && id != kWordId) {
            found = std::min(found, id);
          }
        }
      }
    }
    EXPECT_LT(found, kToyVocabSize) << "no token is a random one";
    return found;
  };
  EXPECT_LT(lowest(0), 900);
  EXPECT_GE(lowest(900), 900);
}

TEST_F(PretrainTaskTest, HidesSentencesForMlmCpcAlone) {
  const std::string path = Write({SentencesOf(10, 4)});
  const Examples words = ReadAll(*Open(EtcWith(), {path}));
  ASSERT_THAT(words, SizeIs(1));
  EXPECT_THAT(AsPretrain(words[0]).hidden_globals, IsEmpty());
  EXPECT_EQ(AsPretrain(words[0]).targets, nullptr);
  EXPECT_THAT(words[0]->global_token_ids, AllOf(SizeIs(10), Each(1)));

  const Examples sentences = ReadAll(
      *Open(EtcWith({{"objective", "mlm_cpc"}, {"cpc_rate", 0.5}}), {path}));
  ASSERT_THAT(sentences, SizeIs(1));
  EXPECT_THAT(AsPretrain(sentences[0]).hidden_globals, SizeIs(5));
  for (const int32_t global : AsPretrain(sentences[0]).hidden_globals) {
    EXPECT_EQ(sentences[0]->global_token_ids.at(static_cast<size_t>(global)),
              2);
  }
}

TEST_F(PretrainTaskTest, RefusesObjectivesThatTheDataHaveNothingOf) {
  const std::string path =
      Write({SentencesOf(4, 3), SentencesOf(4, 3), SentencesOf(1, 3)});
  const std::string lone =
      Write({SentencesOf(1, 3), SentencesOf(1, 3)}, "lone.tokens");
  const auto status = [&](const RunConfig& config,
                          const std::vector<std::string>& paths) {
    const auto source = Open(config, paths);
    const auto none = tasks_.back()->Open({.patterns = {}});
    EXPECT_TRUE(none.ok()) << none.status();
    return tasks_.back()->DescribeData(*source, **none).status();
  };
  const Json cpc = {
      {"objective", "mlm_cpc"}, {"min_sentences", 1}, {"whole_words", false}};
  RunConfig hides = EtcWith(cpc);
  EXPECT_TRUE(status(hides, {lone, path}).ok());
  Json divided = cpc;
  divided["max_sentences"] = 1;
  RunConfig one_global = EtcWith(cpc);
  one_global.data.max_global_length = 1;
  for (const absl::Status& refused :
       {status(hides, {lone}), status(EtcWith(divided), {path}),
        status(one_global, {path})}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("test.json: pretrain.objective mlm_cpc should "
                                "have windows of two sentences or more"),
                      HasSubstr("data.max_global_length")));
  }
  const RunConfig follows = BertWith({{"objective", "mlm_nsp"}});
  EXPECT_TRUE(status(follows, {path}).ok());
  const RunConfig singles =
      BertWith({{"objective", "mlm_nsp"}, {"max_sentences", 1}});
  for (const absl::Status& refused :
       {status(follows, {lone}), status(singles, {path})}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("pretrain.objective mlm_nsp should have documents of "
                          "two sentences or more"));
  }
  EXPECT_TRUE(status(EtcWith(), {lone}).ok());
  EXPECT_TRUE(status(BertWith(), {lone}).ok());
}

// --- ETC's sequences ---------------------------------------------------------

// 16 windows of 16 tokens, in sequences of at most 64.
TEST_F(PretrainTaskTest, FillsSequencesAsFarAsConfigured) {
  const std::string path =
      Write(std::vector<ToyDocument>(16, SentencesOf(2, 8)));
  const auto sequences = [&](const Json& options) {
    return Open(ShortEtcWith(options), {path})->size();
  };
  EXPECT_EQ(sequences(Json::object()), 4);
  EXPECT_EQ(sequences({{"packing_full", 0.5}}), 8);
  EXPECT_EQ(sequences({{"packing_full", 0.25}}), 16);
}

// 16 windows of 40 tokens and 8 sentences, and 16 of 24 tokens and 12
// sentences: in a sequence of 64 tokens and 20 sentences there is room for one
// of each and for no other two, so that 16 sequences are enough, if only all
// that wait for the other kind stay open.
TEST_F(PretrainTaskTest, KeepsAsManySequencesOpenAsConfigured) {
  std::vector<ToyDocument> documents(16, SentencesOf(8, 5));
  documents.insert(documents.end(), 16, SentencesOf(12, 2));
  const std::string path = Write(documents);
  const auto sequences = [&](const Json& options) {
    RunConfig config = ShortEtcWith(options);
    config.data.max_global_length = 20;
    return Open(config, {path})->size();
  };
  EXPECT_EQ(sequences(Json::object()), 16);
  EXPECT_EQ(sequences({{"packing_open", 16}}), 16);
  EXPECT_GT(sequences({{"packing_open", 1}}), 16);
}

// 16 documents of 100 sentences of 3 tokens. 10 global tokens end sequences
// after 30 long ones of 400; with 200 they hold a document, of 300. Without
// enough text for two sequences a short one means nothing.
TEST_F(PretrainTaskTest, WarnsOfSequencesThatGlobalTokensEnd) {
  const auto warnings = [&](size_t documents, int64_t max_global) {
    const std::string path =
        Write(std::vector<ToyDocument>(documents, SentencesOf(100, 3)),
              absl::StrCat(documents, ".tokens"));
    RunConfig config = EtcWith();
    config.data.max_long_length = 400;
    config.data.max_global_length = max_global;
    const auto training = Open(config, {path});
    const auto evaluation = Open(config, {}, RecordUse::kEvaluation);
    const auto described = tasks_.back()->DescribeData(*training, *evaluation);
    EXPECT_TRUE(described.ok()) << described.status();
    return described->warnings;
  };
  EXPECT_THAT(warnings(16, 10),
              ElementsAre(HasSubstr("16.tokens: sequences have 30 tokens on "
                                    "average of data.max_long_length 400: "
                                    "data.max_global_length 10, ")));
  EXPECT_THAT(warnings(16, 200), IsEmpty());
  EXPECT_THAT(warnings(1, 200), IsEmpty());
}

// A sentence of 40 tokens, where sequences have at most 64: each piece of a cut
// sentence has a global token.
TEST_F(PretrainTaskTest, CutsSentencesBeyondTheConfiguredShare) {
  const std::string path = Write({SentencesOf(1, 40)});
  const auto globals = [&](const Json& options) {
    const Examples examples = ReadAll(*Open(ShortEtcWith(options), {path}));
    EXPECT_THAT(examples, SizeIs(1));
    return examples.at(0)->global_length();
  };
  EXPECT_EQ(globals(Json::object()), 3);
  EXPECT_EQ(globals({{"max_sentence_share", 0.5}}), 2);
  EXPECT_EQ(globals({{"max_sentence_share", 1}}), 1);
}

// --- BERT's pairs ------------------------------------------------------------

// Pairs of at most 20 tokens and three special ones, of documents of 20. The
// first pair of a document has all the tokens that it aims at, if its second
// text follows the first.
TEST_F(PretrainTaskTest, MakesShortPairsOfTheConfiguredShare) {
  const std::string path =
      Write(std::vector<ToyDocument>(40, SentencesOf(20, 1)));
  const auto lengths = [&](double short_sequence_rate) {
    RunConfig config = BertWith({{"objective", "mlm_nsp"},
                                 {"short_sequence_rate", short_sequence_rate}});
    config.data.max_global_length = 23;
    const auto source = Open(config, {path});
    std::vector<int64_t> of_first_pairs;
    for (int64_t record = 0; record < source->size(); ++record) {
      const Examples pairs =
          MakeExamples(*source, RequestInEpoch(/*seed=*/1, 0, record));
      const PretrainExample& first = AsPretrain(pairs.at(0));
      if (first.next_sentence == 0) {
        of_first_pairs.push_back(first.global_length());
      }
    }
    return of_first_pairs;
  };
  EXPECT_THAT(lengths(0), AllOf(SizeIs(Gt(5u)), Each(23)));
  // One in 19 aims at the full length.
  const std::vector<int64_t> aimed = lengths(1);
  EXPECT_THAT(aimed, SizeIs(Gt(5u)));
  EXPECT_LT(2 * std::count(aimed.begin(), aimed.end(), 23),
            static_cast<int64_t>(aimed.size()));
}

TEST_F(PretrainTaskTest, MakesTheConfiguredVersionsOfPairsOnce) {
  const std::string path = Write(RandomDocuments({.num_documents = 20}));
  const auto tokens = [](const ExampleSource& source, int64_t epoch) {
    std::vector<std::vector<int32_t>> all;
    for (const auto& example : ReadAll(source, epoch)) {
      all.push_back(example->global_token_ids);
    }
    return all;
  };
  const auto drawn = Open(BertWith(), {path});
  EXPECT_EQ(drawn->size(), 20);
  EXPECT_TRUE(drawn->depends_on_key());
  EXPECT_NE(tokens(*drawn, 0), tokens(*drawn, 1));

  const auto made_once = Open(BertWith({{"static_versions", 3}}), {path});
  EXPECT_EQ(made_once->size(), 60);
  EXPECT_FALSE(made_once->depends_on_key());
  EXPECT_EQ(tokens(*made_once, 0), tokens(*made_once, 1));

  EXPECT_EQ(Open(BertWith({{"mixed_documents", 8}}), {path})->size(), 3);
}

// --- The vocabulary ----------------------------------------------------------

TEST_F(PretrainTaskTest, DrawsRandomTokensOfTheVocabulary) {
  EXPECT_TRUE(PretrainTask::Make(
                  EtcWith({{"random_min_id", kToyVocabSize - 1}}), pieces_)
                  .ok());
  const auto refused =
      PretrainTask::Make(EtcWith({{"random_min_id", kToyVocabSize}}), pieces_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("test.json: pretrain.random_min_id should be below the "
                        "1000 pieces of the vocabulary, but is 1000"));
}

// No piece of `pieces_` continues a word.
TEST_F(PretrainTaskTest, MasksWholeWordsOnlyWhereTheVocabularyMarksThem) {
  const std::string path = Write({SentencesOf(10, 3)});
  const auto describe = [&](const Json& options) {
    const auto source = Open(EtcWith(options), {path});
    const auto none = tasks_.back()->Open({.patterns = {}});
    EXPECT_TRUE(none.ok()) << none.status();
    return tasks_.back()->DescribeData(*source, **none);
  };
  const auto refused = describe({{"whole_words", true}});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("test.json: pretrain.whole_words should be "
                              "false"),
                    HasSubstr("has no piece that is marked as continuing")));
  // The default of an objective is no wish: a run says that it has no effect.
  const auto lines = describe({{"objective", "mlm_cpc"}});
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(lines->warnings, ElementsAre(HasSubstr("whole words: ")));
}

// [CLS] A [SEP] B [SEP].
TEST_F(PretrainTaskTest, RefusesInputsThatHaveNoRoomForAPair) {
  RunConfig config = BertWith();
  config.data.max_global_length = 4;
  const auto refused = PretrainTask::Make(config, pieces_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("test.json: data.max_global_length should be at least "
                        "5, for [CLS], [SEP] and text, but is 4"));
}

// RoBERTa has one type of tokens; the two texts of a pair have two.
TEST_F(PretrainTaskTest, NeedsASecondTypeForPairsAlone) {
  RunConfig config = BertWith();
  config.model.segment_vocab_size = 1;
  const std::string path = Write({SentencesOf(4, 3), SentencesOf(4, 3)});
  for (const auto& example : ReadAll(*Open(config, {path}))) {
    EXPECT_THAT(example->global_type_ids, Each(0));
  }
  config = BertWith({{"objective", "mlm_nsp"}});
  config.model.segment_vocab_size = 1;
  const auto refused = PretrainTask::Make(config, pieces_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("model.segment_vocab_size should be at least 2"));
}

// --- Bounds and defaults -----------------------------------------------------

TEST(PretrainOptionsTest, RefusesValuesOutOfBounds) {
  const auto expect = [](const std::string& field, const Json& value,
                         const std::string& objective, bool is_bert) {
    const auto read = ReadPretrainOptions(
        ConfigWith({{"objective", objective}, {field, value}}, is_bert));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument)
        << field;
    EXPECT_THAT(std::string(read.status().message()),
                HasSubstr(absl::StrCat("pretrain.", field, " should be")));
  };
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, Json>>{{"mask_rate", 0},
                                                 {"mask_rate", 1.5},
                                                 {"max_predictions", -1},
                                                 {"random_min_id", -1},
                                                 {"min_sentences", 0},
                                                 {"packing_full", 0},
                                                 {"packing_open", 0},
                                                 {"max_sentence_share", 2}}) {
    expect(field, value, "mlm", /*is_bert=*/false);
  }
  expect("cpc_rate", 1.5, "mlm_cpc", /*is_bert=*/false);
  expect("mixed_documents", 0, "mlm", /*is_bert=*/true);
  expect("static_versions", -1, "mlm", /*is_bert=*/true);
  expect("short_sequence_rate", 2, "mlm", /*is_bert=*/true);
}

TEST(PretrainOptionsTest, DefaultsDependOnTheObjective) {
  const auto read = [](const Json& options, bool is_bert) {
    const auto result = ReadPretrainOptions(ConfigWith(options, is_bert));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value();
  };
  const PretrainOptions cpc =
      read({{"objective", "mlm_cpc"}}, /*is_bert=*/false);
  EXPECT_EQ(cpc.mlm_weight, 0.8);
  EXPECT_EQ(cpc.cpc_weight, 0.2);
  EXPECT_TRUE(cpc.whole_words);
  EXPECT_EQ(cpc.min_sentences, 7);

  const PretrainOptions nsp =
      read({{"objective", "mlm_nsp"}}, /*is_bert=*/true);
  EXPECT_EQ(nsp.mlm_weight, 1);
  EXPECT_EQ(nsp.nsp_weight, 1);
  EXPECT_FALSE(nsp.whole_words);
  EXPECT_EQ(nsp.min_sentences, 1);

  const PretrainOptions given = read({{"objective", "mlm_cpc"},
                                      {"mlm_weight", 0.5},
                                      {"whole_words", false},
                                      {"min_sentences", 2}},
                                     /*is_bert=*/false);
  EXPECT_EQ(given.mlm_weight, 0.5);
  EXPECT_FALSE(given.whole_words);
  EXPECT_EQ(given.min_sentences, 2);
}

}  // namespace
}  // namespace etc
