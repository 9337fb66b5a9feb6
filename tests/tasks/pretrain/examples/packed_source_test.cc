// ETC's examples from a token store: each window once, never more than an input
// takes, the store's tokens behind the masks, the same for the same key.

#include "tasks/pretrain/examples/packed_source.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/data/loader.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/pretrain/random_documents.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

PackedSourceOptions SmallOptions() {
  return {.corpus = {.development_one_in = 8, .min_sentences = 3},
          .packing = {.max_long = 96, .max_global = 14},
          .max_sentence_share = 0.1,
          .example = {.mlm = {.whole_words = true,
                              .mask_id = 3,
                              .vocab_size = kToyVocabSize},
                      .cpc_rate = 0.2}};
}

class PackedSourceTest : public testing::Test {
 protected:
  std::shared_ptr<const TokenStore> Store(
      const std::vector<ToyDocument>& documents) {
    return MakeToyStore(directory_.File("corpus.tokens"), documents);
  }

  static std::unique_ptr<PackedSource> Open(
      std::shared_ptr<const TokenStore> store,
      const PackedSourceOptions& options) {
    auto source = PackedSource::Open(std::move(store), options);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }

  TemporaryDirectory directory_;
};

const PretrainExample& OnlyExample(const Examples& examples) {
  EXPECT_EQ(examples.size(), 1);
  return dynamic_cast<const PretrainExample&>(*examples.at(0));
}

// The long tokens as they were before masking.
std::vector<int32_t> Originals(const PretrainExample& example) {
  std::vector<int32_t> tokens = example.long_token_ids;
  for (size_t m = 0; m < example.masked_positions.size(); ++m) {
    tokens[static_cast<size_t>(example.masked_positions[m])] =
        example.masked_labels[m];
  }
  if (example.targets == nullptr) {
    return tokens;
  }
  const std::set<int32_t> hidden(example.hidden_globals.begin(),
                                 example.hidden_globals.end());
  size_t next = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (hidden.contains(example.pattern.sentence[i])) {
      tokens[i] = example.targets->long_token_ids.at(next++);
    }
  }
  EXPECT_EQ(next, example.targets->long_token_ids.size());
  return tokens;
}

TEST_F(PackedSourceTest, HoldsEachWindowOnceAndNoneTwice) {
  const auto store = Store(RandomDocuments());
  const PackedSourceOptions options = SmallOptions();
  const auto source = Open(store, options);
  std::vector<int32_t> expected;  // tokens of the training documents
  for (const SentenceRange& d : DocumentsOf(*store, options.corpus)) {
    for (int64_t t = store->first_token(d.begin); t < store->first_token(d.end);
         ++t) {
      expected.push_back(store->token(t));
    }
  }
  std::map<int64_t, std::vector<int32_t>> tokens;  // by first token
  for (int64_t record = 0; record < source->size(); ++record) {
    const Examples examples =
        MakeExamples(*source, RequestInEpoch(1, 0, record));
    const PretrainExample& example = OnlyExample(examples);
    EXPECT_LE(example.long_length(), 96);
    EXPECT_LE(example.global_length(), 14);
    const std::vector<int32_t> originals = Originals(example);
    const auto [begin, end] = source->WindowsOf(record);
    auto at = originals.begin();
    for (int64_t w = begin; w < end; ++w) {
      const Window& window = source->windows()[static_cast<size_t>(w)];
      const auto [found, added] = tokens.emplace(
          window.first_token, std::vector<int32_t>(at, at + window.num_tokens));
      EXPECT_TRUE(added) << "window " << window.first_token << " comes twice";
      at += window.num_tokens;
    }
    EXPECT_EQ(at, originals.end());
  }
  std::vector<int32_t> all;
  for (const auto& [first, of_window] : tokens) {
    all.insert(all.end(), of_window.begin(), of_window.end());
  }
  EXPECT_EQ(all, expected);
  EXPECT_EQ(source->counts().tokens, static_cast<int64_t>(expected.size()));
  EXPECT_EQ(source->counts().windows, static_cast<int64_t>(tokens.size()));
  EXPECT_EQ(source->counts().sequences, source->size());
  EXPECT_LT(source->size(), source->counts().windows);
  EXPECT_GT(source->counts().short_documents, 0);
  EXPECT_GT(source->counts().cut_sentences, 0);
}

// Hard cases for the pattern: one token of each window, all that it can see.
TEST_F(PackedSourceTest, WindowsOfASequenceDoNotSeeEachOther) {
  const auto source = Open(Store(RandomDocuments()), SmallOptions());
  for (int64_t record = 0; record < source->size(); ++record) {
    const Examples examples =
        MakeExamples(*source, RequestForEvaluation(record));
    const AttentionPattern& pattern = OnlyExample(examples).pattern;
    const auto [begin, end] = source->WindowsOf(record);
    std::vector<int32_t> window_of_long;
    std::vector<int32_t> window_of_global;
    for (int64_t w = begin; w < end; ++w) {
      const Window& window = source->windows()[static_cast<size_t>(w)];
      window_of_long.resize(
          window_of_long.size() + static_cast<size_t>(window.num_tokens),
          static_cast<int32_t>(w - begin));
      window_of_global.resize(
          window_of_global.size() + static_cast<size_t>(window.num_sentences),
          static_cast<int32_t>(w - begin));
    }
    EXPECT_EQ(pattern.long_segment, window_of_long);
    EXPECT_EQ(pattern.long_example, window_of_long);
    EXPECT_EQ(pattern.global_example, window_of_global);
    for (size_t i = 0; i < pattern.sentence.size(); ++i) {
      EXPECT_EQ(window_of_global.at(static_cast<size_t>(pattern.sentence[i])),
                window_of_long[i]);
    }
  }
}

TEST_F(PackedSourceTest, MasksFollowFromTheKey) {
  const auto source = Open(Store(RandomDocuments()), SmallOptions());
  EXPECT_TRUE(source->depends_on_key());
  const Examples example = MakeExamples(*source, {.record = 2, .key = 5});
  const Examples same = MakeExamples(*source, {.record = 2, .key = 5});
  const Examples other = MakeExamples(*source, {.record = 2, .key = 6});
  EXPECT_EQ(OnlyExample(example).long_token_ids,
            OnlyExample(same).long_token_ids);
  EXPECT_EQ(OnlyExample(example).masked_positions,
            OnlyExample(same).masked_positions);
  EXPECT_NE(OnlyExample(example).masked_positions,
            OnlyExample(other).masked_positions);
  EXPECT_EQ(Originals(OnlyExample(example)), Originals(OnlyExample(other)));
}

// doc/pretraining.md 13, trap 13: what is masked in a window does not depend on
// the sequence that it is in, nor on its place there.
TEST_F(PackedSourceTest, MasksOfAWindowDoNotDependOnItsSequence) {
  const auto store = Store(RandomDocuments());
  const auto masks_by_window = [&store](uint64_t seed) {
    PackedSourceOptions options = SmallOptions();
    options.seed = seed;
    const auto source = Open(store, options);
    std::map<int64_t, std::vector<int32_t>> inputs;
    for (int64_t record = 0; record < source->size(); ++record) {
      const Examples examples =
          MakeExamples(*source, {.record = record, .key = 7});
      const std::vector<int32_t>& ids = OnlyExample(examples).long_token_ids;
      auto at = ids.begin();
      const auto [begin, end] = source->WindowsOf(record);
      for (int64_t w = begin; w < end; ++w) {
        const Window& window = source->windows()[static_cast<size_t>(w)];
        inputs[window.first_token].assign(at, at + window.num_tokens);
        at += window.num_tokens;
      }
    }
    return std::pair(inputs, source->windows().front().first_token);
  };
  const auto [inputs, first] = masks_by_window(1);
  const auto [others, other_first] = masks_by_window(2);
  EXPECT_EQ(inputs, others);
  EXPECT_NE(first, other_first);
}

TEST_F(PackedSourceTest, DevelopmentPartIsTheSameInAllRuns) {
  const auto store = Store(RandomDocuments());
  PackedSourceOptions options = SmallOptions();
  options.corpus.development = true;
  const auto source = Open(store, options);
  options.seed = 99;
  const auto other = Open(store, options);
  ASSERT_EQ(source->size(), other->size());
  for (int64_t record = 0; record < source->size(); ++record) {
    const Examples examples =
        MakeExamples(*source, RequestForEvaluation(record));
    const Examples others = MakeExamples(*other, RequestForEvaluation(record));
    EXPECT_EQ(OnlyExample(examples).long_token_ids,
              OnlyExample(others).long_token_ids);
  }
}

TEST_F(PackedSourceTest, WithoutCpcNothingIsHidden) {
  PackedSourceOptions options = SmallOptions();
  options.example.cpc_rate = 0;
  const auto source = Open(Store(RandomDocuments()), options);
  for (int64_t record = 0; record < source->size(); ++record) {
    const Examples examples =
        MakeExamples(*source, RequestForEvaluation(record));
    const PretrainExample& example = OnlyExample(examples);
    EXPECT_TRUE(example.hidden_globals.empty());
    EXPECT_EQ(example.targets, nullptr);
    EXPECT_FALSE(example.masked_positions.empty());
  }
}

// Batches of the training loader, which asks from several threads.
TEST_F(PackedSourceTest, GivesTheLoaderTheSameExamplesForAnyNumberOfWorkers) {
  const auto source = Open(Store(RandomDocuments()), SmallOptions());
  const auto take = [&source](int64_t workers) {
    TrainingLoader loader(
        source.get(),
        {.seed = 3, .batch_size = 4, .bucket_batches = 2, .workers = workers});
    std::vector<std::vector<int32_t>> inputs;
    for (int i = 0; i < 12; ++i) {
      const auto batch = loader.Next();
      EXPECT_TRUE(batch.ok()) << batch.status();
      for (const Examples& micro_batch : batch->micro_batches) {
        inputs.push_back(OnlyExample(micro_batch).long_token_ids);
      }
    }
    return inputs;
  };
  EXPECT_EQ(take(1), take(3));
}

TEST_F(PackedSourceTest, SaysWhyNoDocumentIsLeft) {
  PackedSourceOptions options = SmallOptions();
  options.corpus.development_one_in = 0;
  const auto source =
      PackedSource::Open(Store({{{10}, {11}}, {{12}}}), options);
  EXPECT_EQ(source.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(source.status().message(),
              HasSubstr("none of 2 documents of the training part has at "
                        "least 3 sentences"));
}

// Tokens of a store that is too large to be checked when it is opened are
// checked when they are read.
TEST_F(PackedSourceTest, NamesADamagedStore) {
  const std::string path = directory_.File("corpus.tokens");
  WriteToyStore(path, kToyVocabSize,
                {{{10}, {12}, {14}}, {{20}, {22}, {77, 78, 79}}});
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::string tokens({77, 0, 78, 0, 79, 0});
  const size_t at = bytes.find(tokens);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 2, "\xff\xff");
  std::ofstream(path, std::ios::binary) << bytes;
  auto store = TokenStore::Open(path, /*checked_at_once=*/0);
  ASSERT_TRUE(store.ok()) << store.status();
  PackedSourceOptions options = SmallOptions();
  options.corpus.development_one_in = 0;
  const auto source = Open(*std::move(store), options);
  ASSERT_EQ(source->size(), 1);
  EXPECT_EQ(source->Make(RequestForEvaluation(0)).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace etc
