// BERT's examples from a token store: those of CreateInstances, drawn anew in
// each epoch or static, from the documents of one part only.

#include "tasks/pretrain/examples/pair_source.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/pretrain/pretrain_example.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/pretrain/random_documents.h"

namespace etc {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

PairSourceOptions SmallOptions() {
  return {.corpus = {.development_one_in = 6},
          .pairs = {.max_length = 32,
                    .cls_id = 1,
                    .separator_id = 2,
                    .mlm = {.mask_id = 3, .vocab_size = kToyVocabSize}}};
}

class PairSourceTest : public testing::Test {
 protected:
  std::shared_ptr<const TokenStore> Store(
      const std::vector<ToyDocument>& documents) {
    return MakeToyStore(directory_.File("corpus.tokens"), documents);
  }

  static std::unique_ptr<PairSource> Open(
      std::shared_ptr<const TokenStore> store,
      const PairSourceOptions& options) {
    auto source = PairSource::Open(std::move(store), options);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }

  TemporaryDirectory directory_;
};

const PretrainExample& AsPretrain(const std::shared_ptr<const Example>& any) {
  return dynamic_cast<const PretrainExample&>(*any);
}

// All fields of the examples of one request that masks and pairs decide.
std::vector<std::vector<int32_t>> FieldsOf(const PairSource& source,
                                           RecordRequest request) {
  std::vector<std::vector<int32_t>> fields;
  for (const auto& any : MakeExamples(source, request)) {
    const PretrainExample& example = AsPretrain(any);
    fields.push_back(example.global_token_ids);
    fields.push_back(example.masked_positions);
    fields.push_back({example.next_sentence});
  }
  return fields;
}

TEST_F(PairSourceTest, GivesTheInstancesOfEachDocument) {
  const auto store = Store(RandomDocuments());
  const PairSourceOptions options = SmallOptions();
  const auto source = Open(store, options);
  const std::vector<SentenceRange> in_store =
      DocumentsOf(*store, options.corpus);
  const StoreDocuments documents(store.get(), in_store);
  ASSERT_EQ(source->size(), documents.size());
  for (int64_t record = 0; record < source->size(); ++record) {
    const RecordRequest request = RequestInEpoch(1, 2, record);
    const Examples examples = MakeExamples(*source, request);
    KeyedDraws draws({request.key, static_cast<uint64_t>(record),
                      static_cast<uint64_t>(DrawPurpose::kInstances)});
    const auto pairs = CreateInstances(documents, record, options.pairs, draws);
    ASSERT_EQ(examples.size(), pairs->size());
    for (size_t p = 0; p < pairs->size(); ++p) {
      const PretrainExample& example = AsPretrain(examples[p]);
      EXPECT_EQ(example.record_id,
                absl::StrCat("document at sentence ",
                             in_store[static_cast<size_t>(record)].begin,
                             ", pair ", p));
      EXPECT_EQ(example.global_token_ids, (*pairs)[p].tokens);
      EXPECT_EQ(example.global_type_ids, (*pairs)[p].types);
      EXPECT_EQ(example.masked_positions, (*pairs)[p].masked.positions);
      EXPECT_EQ(example.masked_labels, (*pairs)[p].masked.labels);
      EXPECT_EQ(example.next_sentence, (*pairs)[p].random_next ? 1 : 0);
      EXPECT_TRUE(example.long_token_ids.empty());
      EXPECT_EQ(example.pattern.long_length(), 0);
      EXPECT_EQ(example.pattern.global_length(), example.global_length());
      EXPECT_EQ(example.targets, nullptr);
    }
  }
}

TEST_F(PairSourceTest, DrawsOtherExamplesForOtherKeys) {
  const auto source = Open(Store(RandomDocuments()), SmallOptions());
  EXPECT_TRUE(source->depends_on_key());
  const auto fields = FieldsOf(*source, {.record = 3, .key = 1});
  EXPECT_EQ(FieldsOf(*source, {.record = 3, .key = 1}), fields);
  EXPECT_NE(FieldsOf(*source, {.record = 3, .key = 2}), fields);
}

TEST_F(PairSourceTest, StaticRecordsAreTheSameInEveryEpoch) {
  const auto store = Store(RandomDocuments());
  PairSourceOptions options = SmallOptions();
  const int64_t num_documents = Open(store, options)->size();
  options.static_versions = 3;
  const auto source = Open(store, options);
  EXPECT_FALSE(source->depends_on_key());
  EXPECT_EQ(source->size(), 3 * num_documents);
  const auto fields = FieldsOf(*source, {.record = 3, .key = 1});
  EXPECT_EQ(FieldsOf(*source, {.record = 3, .key = 2}), fields);
  // Another version of the same document.
  EXPECT_NE(FieldsOf(*source, {.record = 3 + num_documents, .key = 1}), fields);
  options.seed = 2;
  EXPECT_NE(FieldsOf(*Open(store, options), {.record = 3, .key = 1}), fields);
}

// The same pairs as without, each once, several documents a record, in an order
// that the request decides.
TEST_F(PairSourceTest, MixesThePairsOfDocuments) {
  const auto store = Store(RandomDocuments({.num_documents = 40, .seed = 11}));
  for (const int64_t versions : {0, 3}) {
    PairSourceOptions options = SmallOptions();
    options.static_versions = versions;
    const auto plain = Open(store, options);
    options.mixed_documents = 8;
    const auto mixed = Open(store, options);
    ASSERT_TRUE(plain != nullptr && mixed != nullptr);
    EXPECT_EQ(mixed->size(), (plain->size() + 7) / 8);
    EXPECT_EQ(mixed->expected_examples(), plain->expected_examples());

    const auto pairs = [](const PairSource& source, int64_t record,
                          uint64_t key) {
      std::vector<std::vector<int32_t>> all;
      std::vector<std::string> documents;
      for (const auto& example : MakeExamples(source, {record, key})) {
        all.push_back(example->global_token_ids);
        documents.push_back(
            example->record_id.substr(0, example->record_id.find(',')));
      }
      return std::pair(all, documents);
    };
    std::multiset<std::vector<int32_t>> expected;
    for (int64_t record = 0; record < plain->size(); ++record) {
      for (const auto& pair : pairs(*plain, record, 5).first) {
        expected.insert(pair);
      }
    }
    std::multiset<std::vector<int32_t>> found;
    int64_t changes = 0;
    for (int64_t record = 0; record < mixed->size(); ++record) {
      const auto [all, documents] = pairs(*mixed, record, 5);
      found.insert(all.begin(), all.end());
      for (size_t i = 1; i < documents.size(); ++i) {
        changes += documents[i] != documents[i - 1] ? 1 : 0;
      }
      EXPECT_EQ(pairs(*mixed, record, 5).first, all);
      EXPECT_EQ(pairs(*mixed, record, 6).first == all, versions > 0);
    }
    EXPECT_EQ(found, expected);
    // Seven of eight neighbours are of other documents, but for chance.
    EXPECT_GT(changes, static_cast<int64_t>(found.size()) * 3 / 4);
  }
  // The development part is as it is.
  PairSourceOptions options = SmallOptions();
  options.corpus.development = true;
  const auto one = Open(store, options);
  options.mixed_documents = 8;
  const auto eight = Open(store, options);
  ASSERT_TRUE(one != nullptr && eight != nullptr);
  EXPECT_EQ(eight->size(), one->size());
  EXPECT_EQ(FieldsOf(*eight, {0, 5}), FieldsOf(*one, {0, 5}));
}

TEST_F(PairSourceTest, ExpectsAboutAsManyPairsAsThereAre) {
  const auto store = Store(RandomDocuments({.num_documents = 200, .seed = 12}));
  for (const int64_t length : {32, 64}) {
    PairSourceOptions options = SmallOptions();
    options.pairs.max_length = length;
    const auto source = Open(store, options);
    ASSERT_NE(source, nullptr);
    int64_t pairs = 0;
    for (int64_t record = 0; record < source->size(); ++record) {
      pairs += static_cast<int64_t>(MakeExamples(*source, {record, 1}).size());
    }
    EXPECT_NEAR(static_cast<double>(source->expected_examples()) /
                    static_cast<double>(pairs),
                1, 0.25)
        << length;
  }
}

TEST_F(PairSourceTest, DevelopmentPartIsTheSameInAllRuns) {
  const auto store = Store(RandomDocuments());
  for (const int64_t static_versions : {0, 5}) {
    PairSourceOptions options = SmallOptions();
    options.corpus.development = true;
    options.static_versions = static_versions;
    const auto source = Open(store, options);
    EXPECT_EQ(source->size(), source->counts().documents);
    options.seed = 7;
    const auto other = Open(store, options);
    for (int64_t record = 0; record < source->size(); ++record) {
      EXPECT_EQ(FieldsOf(*source, RequestForEvaluation(record)),
                FieldsOf(*other, RequestForEvaluation(record)));
    }
  }
}

// The tokens of an epoch are those of the corpus, but for the ends of sentences
// that are longer than an input; no example has text of two documents, nor a
// second type of tokens.
TEST_F(PairSourceTest, WithoutNextSentenceReadsTheTextOnce) {
  std::vector<ToyDocument> documents(5);
  std::vector<int32_t> expected;
  for (size_t d = 0; d < documents.size(); ++d) {
    const auto id = static_cast<int32_t>(10 + d);
    for (const size_t tokens : {9u, 14u, 1u, 30u, 12u, 5u}) {
      documents[d].push_back(ToySentence(tokens, id));
    }
    documents[d].push_back(ToySentence(40, id));
    expected.insert(expected.end(), 71 + 30, id);
  }
  PairSourceOptions options = SmallOptions();
  options.corpus.development_one_in = 0;
  options.pairs.next_sentence = false;
  options.pairs.short_sequence_rate = 0;
  options.pairs.mlm.max_predictions = 0;
  const auto source = Open(Store(documents), options);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->counts().cut_sentences, 5);
  std::vector<int32_t> found;
  for (int64_t record = 0; record < source->size(); ++record) {
    for (const auto& any : MakeExamples(*source, {record, /*key=*/1})) {
      const PretrainExample& example = AsPretrain(any);
      const std::vector<int32_t>& ids = example.global_token_ids;
      EXPECT_LE(ids.size(), 32);
      EXPECT_EQ(ids.front(), 1);
      EXPECT_EQ(ids.back(), 2);
      const std::vector<int32_t> text(ids.begin() + 1, ids.end() - 1);
      EXPECT_THAT(text, Each(text.at(0)));
      EXPECT_THAT(example.global_type_ids, Each(0));
      found.insert(found.end(), text.begin(), text.end());
    }
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

// Each document has ids of its own; those held out never come as a random next
// text of training, and the other way round.
TEST_F(PairSourceTest, DrawsRandomTextsFromItsOwnPart) {
  std::vector<ToyDocument> documents(40);
  for (size_t d = 0; d < documents.size(); ++d) {
    for (int32_t s = 0; s < 6; ++s) {
      documents[d].push_back({static_cast<int32_t>(10 + 20 * d + s)});
    }
  }
  const auto store = Store(documents);
  for (const bool development : {false, true}) {
    PairSourceOptions options = SmallOptions();
    options.corpus.development = development;
    options.pairs.max_length = 8;
    options.pairs.mlm.max_predictions = 0;
    std::set<int64_t> expected;
    for (const SentenceRange& range : DocumentsOf(*store, options.corpus)) {
      expected.insert(range.begin / 6);
    }
    const auto source = Open(store, options);
    std::set<int64_t> found;
    for (uint64_t key = 0; key < 5; ++key) {
      for (int64_t record = 0; record < source->size(); ++record) {
        for (const auto& example :
             MakeExamples(*source, {.record = record, .key = key})) {
          for (const int32_t id : example->global_token_ids) {
            if (id >= 10) {
              found.insert((id - 10) / 20);
            }
          }
        }
      }
    }
    EXPECT_EQ(found, expected);
  }
}

TEST_F(PairSourceTest, WithoutNextSentenceOneDocumentIsEnough) {
  const auto store = Store({{{10, 11}, {12, 13}, {14, 15}}});
  PairSourceOptions options = SmallOptions();
  options.corpus.development_one_in = 0;
  const auto refused = PairSource::Open(store, options);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(),
              HasSubstr("the training part has one document, but "
                        "next-sentence prediction (mlm_nsp) needs two, to draw "
                        "a random next text from the other; max_sentences "
                        "divides longer documents"));
  options.pairs.next_sentence = false;
  const auto source = Open(store, options);
  const Examples examples = MakeExamples(*source, RequestForEvaluation(0));
  EXPECT_EQ(AsPretrain(examples.at(0)).next_sentence, -1);
}

TEST_F(PairSourceTest, CutsAndCountsSentencesLongerThanAnInput) {
  ToySentence endless(100, 50);
  const auto store = Store({{{10}, endless}, {endless, {20}}, {{30}, {40}}});
  PairSourceOptions options = SmallOptions();
  options.corpus.development_one_in = 0;
  const auto source = Open(store, options);
  EXPECT_EQ(source->counts().cut_sentences, 2);
  for (int64_t record = 0; record < 3; ++record) {
    for (const auto& example :
         MakeExamples(*source, RequestForEvaluation(record))) {
      EXPECT_LE(example->global_length(), 32);
    }
  }
}

}  // namespace
}  // namespace etc
