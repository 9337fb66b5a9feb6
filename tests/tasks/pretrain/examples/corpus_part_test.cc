// Selection of the documents of a store, and the error if none is left.

#include "tasks/pretrain/examples/corpus_part.h"

#include <algorithm>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/pretrain/random_documents.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CorpusPartTest : public testing::Test {
 protected:
  std::shared_ptr<const TokenStore> Store(
      const std::vector<ToyDocument>& documents) {
    return MakeToyStore(directory_.File("corpus.tokens"), documents);
  }

  TemporaryDirectory directory_;
};

std::string MessageOf(const TokenStore& store,
                      const CorpusPartOptions& options) {
  CorpusCounts counts;
  const auto documents = SelectDocuments(store, options, &counts);
  EXPECT_EQ(documents.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(documents.status().message());
}

TEST_F(CorpusPartTest, EachDocumentIsInOnePart) {
  const auto store = Store(RandomDocuments(
      {.num_documents = 2000, .max_sentences = 3, .max_tokens = 9}));
  CorpusCounts training_counts;
  CorpusCounts development_counts;
  const auto training =
      SelectDocuments(*store, {.development_one_in = 20}, &training_counts);
  const auto development =
      SelectDocuments(*store, {.development = true, .development_one_in = 20},
                      &development_counts);
  ASSERT_TRUE(training.ok() && development.ok());
  EXPECT_EQ(development->size() + training->size(), 2000);
  std::vector<SentenceRange> all = *training;
  all.insert(all.end(), development->begin(), development->end());
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  for (int64_t d = 0; d < 2000; ++d) {
    ASSERT_EQ(all.at(static_cast<size_t>(d)),
              (SentenceRange{.begin = store->first_sentence(d),
                             .end = store->first_sentence(d + 1)}));
  }
  // 100 expected, standard deviation 10.
  EXPECT_NEAR(static_cast<double>(development->size()), 100, 50);
  EXPECT_EQ(training_counts.documents + development_counts.documents, 2000);
  EXPECT_EQ(training_counts.sentences + development_counts.sentences,
            store->num_sentences());
  EXPECT_EQ(training_counts.tokens + development_counts.tokens,
            store->num_tokens());
}

// Held-out documents do not depend on their place in the corpus.
TEST_F(CorpusPartTest, HoldsOutTheSameTextsInAnyOrder) {
  std::vector<ToyDocument> documents = RandomDocuments({.num_documents = 200});
  const auto held_out = [this](const std::vector<ToyDocument>& in_store) {
    const auto store = Store(in_store);
    const std::vector<SentenceRange> ranges =
        DocumentsOf(*store, {.development = true, .development_one_in = 10});
    std::vector<ToyDocument> found;
    for (size_t d = 0; d < in_store.size(); ++d) {
      const int64_t begin = store->first_sentence(static_cast<int64_t>(d));
      if (std::any_of(ranges.begin(), ranges.end(), [begin](const auto& range) {
            return range.begin == begin;
          })) {
        found.push_back(in_store[d]);
      }
    }
    EXPECT_EQ(found.size(), ranges.size());
    std::sort(found.begin(), found.end());
    return found;
  };
  const std::vector<ToyDocument> before = held_out(documents);
  std::rotate(documents.begin(), documents.begin() + 77, documents.end());
  EXPECT_EQ(held_out(documents), before);
}

TEST_F(CorpusPartTest, LeavesOutShortDocuments) {
  const auto store = Store({{{10}, {11}}, {{12}}, {{13}, {14}, {15}}});
  const CorpusPartOptions options{.development_one_in = 0, .min_sentences = 2};
  CorpusCounts counts;
  EXPECT_THAT(*SelectDocuments(*store, options, &counts),
              ElementsAre(SentenceRange{.begin = 0, .end = 2},
                          SentenceRange{.begin = 3, .end = 6}));
  EXPECT_EQ(counts.short_documents, 1);
  EXPECT_EQ(counts.sentences, 5);
  EXPECT_EQ(DescribeCounts(counts, options),
            "training: 2 documents of 5 sentences and 5 tokens; left out 1 "
            "document of fewer than 2 sentences");
}

// Into equal documents, each in a part by itself.
TEST_F(CorpusPartTest, DividesLongDocuments) {
  const auto store =
      Store({{{10}, {11}, {12}}, ToyDocument(500, ToySentence{20, 21})});
  CorpusPartOptions options{.development_one_in = 0, .max_sentences = 3};
  const std::vector<SentenceRange> all = DocumentsOf(*store, options);
  ASSERT_EQ(all.size(), 1 + 167);
  EXPECT_EQ(all[0].size(), 3);
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i].begin, all[i - 1].end);
    EXPECT_GE(all[i].size(), 2);
    EXPECT_LE(all[i].size(), 3);
  }
  EXPECT_EQ(all.back().end, store->num_sentences());
  options.development_one_in = 8;
  const size_t num_training = DocumentsOf(*store, options).size();
  options.development = true;
  const size_t num_development = DocumentsOf(*store, options).size();
  EXPECT_EQ(num_training + num_development, all.size());
  // 21 expected, standard deviation 4.3.
  EXPECT_NEAR(static_cast<double>(num_development), 21, 20);
  // Documents are judged too short before they are divided.
  options = {.development_one_in = 0, .min_sentences = 7, .max_sentences = 3};
  EXPECT_EQ(DocumentsOf(*store, options).size(), 167);
}

TEST_F(CorpusPartTest, SaysWhyNoDocumentIsLeft) {
  const auto empty = Store({});
  EXPECT_THAT(MessageOf(*empty, {}), HasSubstr("corpus has no document"));
  const auto store = Store({{{10}, {11}}, {{12}}});
  EXPECT_THAT(MessageOf(*store, {.development_one_in = 0, .min_sentences = 7}),
              HasSubstr("none of 2 documents of the training part has at "
                        "least 7 sentences (min_sentences)"));
  EXPECT_THAT(MessageOf(*store, {.development_one_in = 1}),
              HasSubstr("larger development_one_in than 1"));
  EXPECT_THAT(MessageOf(*store, {.development = true, .development_one_in = 0}),
              HasSubstr("development_one_in is 0"));
  EXPECT_THAT(MessageOf(*store, {.development = true,
                                 .development_one_in = int64_t{1} << 62}),
              HasSubstr("smaller development_one_in than"));
}

// The number of documents of each store that are in the part.
std::vector<int64_t> NumDocuments(const TokenStores& stores,
                                  CorpusPartOptions part, bool development) {
  part.development = development;
  std::vector<int64_t> numbers;
  for (const auto& store : stores) {
    CorpusCounts counts;
    static_cast<void>(SelectDocuments(*store, part, &counts));
    numbers.push_back(counts.documents);
  }
  return numbers;
}

// A development_one_in of which no hash is a multiple.
constexpr int64_t kNoMultiple = int64_t{1} << 62;

// The third document is too short.
TEST_F(CorpusPartTest, HoldsOutTheSmallestHashesWhereNoneIsAMultiple) {
  const std::vector<ToyDocument> documents = {
      {{10}, {11}}, {{12}, {13}}, {{14}}, {{15}, {16}}};
  const CorpusPartOptions asked{.development_one_in = kNoMultiple,
                                .min_sentences = 2};
  const TokenStores stores = {
      Store(documents),
      MakeToyStore(directory_.File("other.tokens"), {{{17}, {18}}})};
  std::vector<uint64_t> hashes = {stores[1]->document_hash(0)};
  for (const int64_t document : {0, 1, 3}) {
    hashes.push_back(stores[0]->document_hash(document));
  }
  const CorpusPartOptions part = HoldOutSmallest(stores, asked, 1);
  EXPECT_EQ(part.held_out_up_to,
            *std::min_element(hashes.begin(), hashes.end()));
  const std::vector<int64_t> held_out = NumDocuments(stores, part, true);
  const std::vector<int64_t> others = NumDocuments(stores, part, false);
  EXPECT_EQ(held_out[0] + held_out[1], 1);
  EXPECT_EQ(others[0] + others[1], 3);
  // None would be left.
  EXPECT_EQ(HoldOutSmallest({stores[1]}, asked, 1).held_out_up_to, 0u);
  // Three documents are no two for either part.
  EXPECT_EQ(HoldOutSmallest(stores, asked, 2).held_out_up_to, 0u);
}

// Documents of stores by the rank of their hash: 0 2 4 6 and 1 3 5. Both of
// the smallest hashes of all would be one in each store, where no two make a
// pair.
TEST_F(CorpusPartTest, HoldsOutEnoughDocumentsOfOneStore) {
  std::vector<ToyDocument> documents;
  for (int32_t d = 0; d < 7; ++d) {
    documents.push_back({{10 + d}, {20 + d}});
  }
  std::sort(documents.begin(), documents.end(),
            [&](const ToyDocument& one, const ToyDocument& other) {
              const auto pair = Store({one, other});
              return pair->document_hash(0) < pair->document_hash(1);
            });
  const auto store = [&](const std::string& name,
                         const std::vector<size_t>& ranks) {
    std::vector<ToyDocument> of_ranks;
    for (const size_t rank : ranks) {
      of_ranks.push_back(documents[rank]);
    }
    return MakeToyStore(directory_.File(name), of_ranks);
  };
  const CorpusPartOptions asked{.development_one_in = kNoMultiple};
  TokenStores stores = {store("a", {0, 2, 4, 6}), store("b", {1, 3, 5})};
  CorpusPartOptions part = HoldOutSmallest(stores, asked, 2);
  EXPECT_THAT(NumDocuments(stores, part, true), ElementsAre(2, 1));
  EXPECT_THAT(NumDocuments(stores, part, false), ElementsAre(2, 2));
  // Equal documents make no pair, nor are they left for another.
  stores = {store("c", {0, 0, 0, 2, 4, 4}), store("d", {1, 3, 5, 6})};
  part = HoldOutSmallest(stores, asked, 2);
  EXPECT_EQ(part.held_out_up_to, stores[0]->document_hash(3));
  EXPECT_THAT(NumDocuments(stores, part, true), ElementsAre(4, 1));
  EXPECT_EQ(HoldOutSmallest({stores[0]}, asked, 2).held_out_up_to, 0u);
}

// A document whose hash is a multiple is held out in any case.
TEST_F(CorpusPartTest, HoldsOutAsManyMoreAsMultiplesLack) {
  const auto store = Store({{{10}}, {{11}}, {{12}}, {{13}}});
  std::vector<uint64_t> hashes;
  for (int64_t document = 0; document < 4; ++document) {
    hashes.push_back(store->document_hash(document));
  }
  std::sort(hashes.begin(), hashes.end());
  const auto one_in = static_cast<int64_t>(hashes[1]);
  ASSERT_GT(one_in, 0);
  const CorpusPartOptions part =
      HoldOutSmallest({store}, {.development_one_in = one_in}, 2);
  EXPECT_EQ(part.held_out_up_to, hashes[0]);
  EXPECT_THAT(NumDocuments({store}, part, true), ElementsAre(2));
  EXPECT_THAT(NumDocuments({store}, part, false), ElementsAre(2));
}

// Documents that were held out of a corpus stay so.
TEST_F(CorpusPartTest, HoldsOutMultiplesAloneWhereAStoreHasEnough) {
  const auto store = Store(RandomDocuments({.num_documents = 200}));
  const TokenStores stores = {
      MakeToyStore(directory_.File("few.tokens"), {{{10}}, {{11}}}), store};
  const CorpusPartOptions asked{.development_one_in = 10};
  EXPECT_EQ(HoldOutSmallest(stores, asked, 2).held_out_up_to, 0u);
  EXPECT_EQ(
      HoldOutSmallest(stores, {.development_one_in = 0}, 1).held_out_up_to, 0u);
  EXPECT_EQ(
      HoldOutSmallest(stores, {.development_one_in = 1}, 1).held_out_up_to, 0u);
}

TEST_F(CorpusPartTest, CountsDocumentsThatTwoCorporaShare) {
  const TokenStores one = {Store({{{10}, {11}}, {{12}}, {{13}, {14}}})};
  const TokenStores other = {
      MakeToyStore(directory_.File("other.tokens"),
                   {{{13}, {14}}, {{12}}, {{13}, {14}}, {{10}, {15}}})};
  EXPECT_EQ(CountShared(one, other, {}), 2);
  EXPECT_EQ(CountShared(one, other, {.min_sentences = 2}), 1);
  EXPECT_EQ(CountShared({}, other, {}), 0);
}

TEST_F(CorpusPartTest, ReadsTheSentencesOfItsDocuments) {
  const auto store = Store({{{10, 11}}, {{20, 21}, {23, 24, 26}}});
  const StoreDocuments documents(store.get(), {{.begin = 1, .end = 3}});
  EXPECT_EQ(documents.size(), 1);
  EXPECT_EQ(documents.num_sentences(0), 2);
  Pieces pieces;
  ASSERT_TRUE(documents.AppendSentence(0, 1, &pieces).ok());
  ASSERT_TRUE(documents.AppendSentence(0, 0, &pieces).ok());
  EXPECT_THAT(pieces.ids, ElementsAre(23, 24, 26, 20, 21));
  EXPECT_THAT(pieces.continues_word, ElementsAre(1, 0, 0, 0, 1));
  // Found by the index: its pages are gone with the file's bytes.
  std::filesystem::resize_file(store->path(), 0);
  EXPECT_EQ(documents.AppendSentence(0, 1, &pieces).code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace etc
