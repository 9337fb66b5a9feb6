// The token store on disk: what is written is read again, over both widths of
// ids and over borders of groups of sentences; and a file that is not what was
// written is refused with a message that says what and where: when it is
// opened, or, of a large store, by CheckTokens when a block is first used.
// Nothing that a file holds may make the reader leave it, which the address
// sanitizer watches.
//
// Sizes: some hundred sentences, as groups have 64; files of a few KB, so that
// every byte can be changed in turn.

#include "tasks/pretrain/corpus/token_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/random.h"
#include "tests/support/mutation.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/pretrain/toy_store.h"

namespace etc {
namespace {

using testing::HasSubstr;

constexpr int64_t kNarrow = 65'536;
constexpr int64_t kWide = 65'537;

// Documents of 1 to 90 sentences of 1 to 12 tokens.
std::vector<ToyDocument> RandomDocuments(int64_t count, int64_t vocab_size) {
  std::vector<ToyDocument> documents;
  uint64_t drawn = 0;
  const auto below = [&drawn](int64_t bound) {
    return static_cast<int64_t>(CombineSeeds({5, drawn++}) %
                                static_cast<uint64_t>(bound));
  };
  for (int64_t d = 0; d < count; ++d) {
    ToyDocument document;
    for (int64_t s = 1 + below(d % 7 == 0 ? 90 : 9); s > 0; --s) {
      ToySentence ids;
      for (int64_t t = 1 + below(12); t > 0; --t) {
        ids.push_back(static_cast<int32_t>(below(vocab_size)));
      }
      document.push_back(ids);
    }
    documents.push_back(document);
  }
  documents.back().back().back() = static_cast<int32_t>(vocab_size - 1);
  return documents;
}

class TokenStoreTest : public testing::Test {
 protected:
  std::string Path() const { return directory_.File("corpus.tokens"); }

  // The bytes of a store of `documents`.
  std::string Bytes(int64_t vocab_size,
                    const std::vector<ToyDocument>& documents) {
    WriteToyStore(Path(), vocab_size, documents);
    return *ReadFile(Path());
  }

  absl::StatusOr<std::unique_ptr<const TokenStore>> OpenBytes(
      const std::string& bytes) {
    return TokenStore::Open(directory_.Write("changed.tokens", bytes));
  }

  // The status of opening what `change` makes of a store's header, with a
  // checksum that fits.
  absl::Status OpenWithHeader(
      const std::function<void(TokenStoreHeader*)>& change) {
    std::string bytes = Bytes(100, RandomDocuments(3, 100));
    TokenStoreHeader header = *DecodeTokenStoreHeader(bytes, "store");
    change(&header);
    bytes.replace(0, kTokenStoreHeaderBytes, EncodeTokenStoreHeader(header));
    return OpenBytes(bytes).status();
  }

  TemporaryDirectory directory_;
};

TEST_F(TokenStoreTest, GivesBackWhatWasWritten) {
  for (const int64_t vocab_size : {int64_t{100}, kNarrow, kWide}) {
    const std::vector<ToyDocument> documents = RandomDocuments(60, vocab_size);
    WriteToyStore(Path(), vocab_size, documents);
    const auto store = TokenStore::Open(Path());
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ(ReadToyStore(**store), documents);
    EXPECT_EQ((*store)->settings(), ToySettings(vocab_size));
    EXPECT_GT((*store)->num_sentences(), 3 * 64);
    for (int64_t t = 0; t < (*store)->num_tokens(); ++t) {
      ASSERT_EQ((*store)->is_continuation(t), (*store)->token(t) % 2 == 1) << t;
    }
  }
}

TEST_F(TokenStoreTest, LeavesOutEmptySentencesAndDocuments) {
  WriteToyStore(Path(), 9, {{}, {{}, {4, 5}, {}}, {{}}, {{6}, {7}}, {}});
  const auto store = TokenStore::Open(Path());
  ASSERT_TRUE(store.ok()) << store.status();
  const std::vector<ToyDocument> expected = {{{4, 5}}, {{6}, {7}}};
  EXPECT_EQ(ReadToyStore(**store), expected);
  // Empty sentences are in the hash of their own document, and of no other.
  const uint64_t none = ToyTextHash({});
  EXPECT_EQ((*store)->document_hash(0),
            CombineSeeds(
                {CombineSeeds({CombineSeeds({0, none}), ToyTextHash({4, 5})}),
                 none}));
  EXPECT_EQ(
      (*store)->document_hash(1),
      CombineSeeds({CombineSeeds({0, ToyTextHash({6})}), ToyTextHash({7})}));
}

TEST_F(TokenStoreTest, MayBeEmpty) {
  WriteToyStore(Path(), 9, {});
  const auto store = TokenStore::Open(Path());
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->num_documents(), 0);
  EXPECT_EQ((*store)->first_token(0), 0);
  EXPECT_TRUE((*store)->CheckTokens(0, 0).ok());
}

TEST_F(TokenStoreTest, HashesDocumentsByTheirTextAlone) {
  WriteToyStore(Path(), 100, {{{4, 5}, {6}}, {{4}, {5, 6}}, {{4, 5}, {6}}});
  const auto store = *TokenStore::Open(Path());
  WriteToyStore(directory_.File("wide"), kWide, {{{9}}, {{4, 5}, {6}}});
  const auto wide = *TokenStore::Open(directory_.File("wide"));
  EXPECT_EQ(store->document_hash(0), store->document_hash(2));
  EXPECT_NE(store->document_hash(0), store->document_hash(1));
  EXPECT_EQ(store->document_hash(0), wide->document_hash(1));
  EXPECT_EQ(
      store->document_hash(0),
      CombineSeeds({CombineSeeds({0, ToyTextHash({4, 5})}), ToyTextHash({6})}));
}

// Stores outlive programs: numbers of an independent implementation (Python).
TEST_F(TokenStoreTest, HashOfTextNeverChanges) {
  EXPECT_EQ(HashText(""), 0xe220a8397b1dcdafu);
  EXPECT_EQ(HashText("abc"), 0x347774c605d70c76u);
  EXPECT_EQ(HashText("abcdefghi"), 0xcbe0b0512e86ab3bu);
  EXPECT_EQ(AddToDocumentHash(AddToDocumentHash(0, HashText("abc")),
                              HashText("abcdefghi")),
            0xbf19cb143430ac0au);
}

// --- Writing ----------------------------------------------------------------

TEST_F(TokenStoreTest, IsNotThereBeforeItIsFinished) {
  auto writer = TokenStoreWriter::Create(Path(), ToySettings(100));
  ASSERT_TRUE(writer.ok()) << writer.status();
  AddToyDocuments(RandomDocuments(30, 100), writer->get());
  EXPECT_FALSE(std::filesystem::exists(Path()));
  // Not finished: all is removed.
  writer->reset();
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(TokenStoreTest, ReplacesAStoreWithoutDisturbingItsReaders) {
  const std::vector<ToyDocument> first = RandomDocuments(5, 100);
  WriteToyStore(Path(), 100, first);
  const auto reader = *TokenStore::Open(Path());
  WriteToyStore(Path(), 100, {{{4}}});
  EXPECT_EQ(ReadToyStore(*reader), first);
  EXPECT_TRUE(reader->CheckTokens(0, reader->num_tokens()).ok());
  EXPECT_EQ((*TokenStore::Open(Path()))->num_tokens(), 1);
}

// Reading the mapping would be SIGBUS.
TEST_F(TokenStoreTest, FindsThatItIsWrittenOverInItsPlace) {
  WriteToyStore(Path(), 100, RandomDocuments(5, 100));
  const auto store = *TokenStore::Open(Path());
  EXPECT_TRUE(store->CheckUnchanged().ok());
  std::filesystem::resize_file(Path(), 0);
  const absl::Status status = store->CheckUnchanged();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr(Path()));
}

TEST_F(TokenStoreTest, RefusesIdsBeyondTheVocabulary) {
  auto writer = *TokenStoreWriter::Create(Path(), ToySettings(100));
  const std::vector<uint8_t> flags = {0};
  for (const int32_t id : {100, -1}) {
    const ToySentence ids = {id};
    EXPECT_THROW(static_cast<void>(
                     writer->AddSentence({.ids = ids, .continuations = flags})),
                 std::out_of_range);
  }
}

TEST_F(TokenStoreTest, ReportsWhereItCannotWrite) {
  const absl::Status status =
      TokenStoreWriter::Create("/nowhere/corpus.tokens", ToySettings(9))
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/corpus.tokens"));
}

// --- Files that are not what was written ------------------------------------

TEST_F(TokenStoreTest, RefusesEveryTruncation) {
  const std::string bytes = Bytes(100, RandomDocuments(3, 100));
  const std::string path = directory_.Write("cut.tokens", bytes);
  for (size_t size = bytes.size(); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    const absl::Status status = TokenStore::Open(path).status();
    ASSERT_FALSE(status.ok()) << size;
    ASSERT_THAT(status.message(), HasSubstr(path));
    if (size >= kTokenStoreHeaderBytes) {
      ASSERT_EQ(
          status.message(),
          absl::StrCat(path, ": the token store should have ", bytes.size(),
                       " bytes, but is cut off at byte ", size));
    } else if (size >= kTokenStoreMagic.size()) {
      ASSERT_THAT(status.message(),
                  HasSubstr(absl::StrCat("ends at byte ", size)));
    }
  }
}

// In one file, whose bytes are put back again.
TEST_F(TokenStoreTest, FindsEveryFlippedBit) {
  const std::string bytes = Bytes(100, RandomDocuments(3, 100));
  std::fstream file(Path(), std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&file](size_t at, char byte) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
    file.flush();
  };
  for (size_t at = 0; at < bytes.size(); ++at) {
    put(at, static_cast<char>(bytes[at] ^ 1 << at % 8));
    const absl::Status status = TokenStore::Open(Path()).status();
    ASSERT_FALSE(status.ok()) << at;
    ASSERT_THAT(status.message(), HasSubstr(Path()));
    put(at, bytes[at]);
  }
}

// 120,000 tokens: four blocks of tokens and one of flags.
TEST_F(TokenStoreTest, ChecksTheBlocksOfALargeStoreWhenTheyAreFirstUsed) {
  const std::vector<ToyDocument> documents(
      12, ToyDocument(100, ToySentence(100, 6)));
  const std::string bytes = Bytes(100, documents);
  const TokenStoreHeader header = *DecodeTokenStoreHeader(bytes, "store");
  ASSERT_EQ(NumBlocks(ExtentOf(header, TokenStoreSection::kTokens)), 4u);
  constexpr int64_t kPerBlock = kTokenStoreBlockBytes / sizeof(uint16_t);
  const auto open = [&](uint64_t at) {
    std::string changed = bytes;
    changed[at] ^= 1;
    return TokenStore::Open(directory_.Write("changed.tokens", changed),
                            /*checked_at_once=*/0);
  };
  const uint64_t tokens = ExtentOf(header, TokenStoreSection::kTokens).begin;
  const auto store = open(tokens + 2 * kTokenStoreBlockBytes + 7);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->CheckTokens(0, 2 * kPerBlock).ok());
  EXPECT_TRUE((*store)->CheckTokens(3 * kPerBlock, 120'000).ok());
  for (const int64_t begin : {2 * kPerBlock - 1, 3 * kPerBlock - 1}) {
    const absl::Status status = (*store)->CheckTokens(begin, begin + 2);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(),
                HasSubstr("changed.tokens: block 2 of the tokens of the token "
                          "store (bytes 135168 to 200704) is damaged"));
  }
  const auto flags =
      open(ExtentOf(header, TokenStoreSection::kFlags).begin + 9);
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT((*flags)->CheckTokens(0, 1).message(),
              HasSubstr("block 0 of the continuation flags"));
}

TEST_F(TokenStoreTest, SurvivesAnyDamage) {
  const std::vector<ToyDocument> documents = RandomDocuments(9, kWide);
  const std::string bytes = Bytes(kWide, documents);
  Mutator mutator(1);
  for (int i = 0; i < RoundsOfDamage(500); ++i) {
    const std::string changed = mutator.Mutate(bytes);
    const auto store = OpenBytes(changed);
    if (!store.ok()) {
      continue;
    }
    ReadToyStore(**store);
  }
}

// A store of one block of tokens with the checksums that fit them now.
std::string Resealed(std::string bytes) {
  constexpr auto kTokens = TokenStoreSection::kTokens;
  TokenStoreHeader header = *DecodeTokenStoreHeader(bytes, "store");
  const TokenStoreExtent tokens = ExtentOf(header, kTokens);
  const uint32_t checksum =
      ExtendCrc32c(0, bytes.substr(tokens.begin, tokens.bytes));
  const std::string block(reinterpret_cast<const char*>(&checksum),
                          sizeof(checksum));
  bytes.replace(ExtentOfBlockChecksums(header, kTokens).begin, block.size(),
                block);
  header.checksums[static_cast<size_t>(kTokens)] = ExtendCrc32c(0, block);
  bytes.replace(0, kTokenStoreHeaderBytes, EncodeTokenStoreHeader(header));
  return bytes;
}

// Written by another program, with checksums that fit.
TEST_F(TokenStoreTest, NamesATokenBeyondTheVocabulary) {
  std::string bytes = Bytes(100, {{{4, 5, 6}, {7, 8}}});
  bytes[kTokenStoreHeaderBytes + 2 * 3] = 100;
  const std::string path = directory_.Write("changed.tokens", Resealed(bytes));
  const auto store = TokenStore::Open(path, /*checked_at_once=*/0);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->CheckTokens(0, 3).ok());
  EXPECT_TRUE((*store)->CheckTokens(4, 5).ok());
  for (const absl::Status& status :
       {(*store)->CheckTokens(0, 5), TokenStore::Open(path).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(),
                HasSubstr("damaged at byte 4102: token 3 is 100, but the "
                          "vocabulary has 100 pieces"));
  }
}

// An index that was made to lead out of the file, with a checksum that fits.
TEST_F(TokenStoreTest, RefusesAnIndexThatLeadsElsewhere) {
  struct Case {
    TokenStoreSection section;
    uint64_t offset;
    uint64_t value;
    std::string message_part;
  };
  const std::string bytes =
      Bytes(100, {{{4, 5, 6}, {7, 8}}, {{9}, {10, 11, 12}}});
  const TokenStoreHeader intact = *DecodeTokenStoreHeader(bytes, "store");
  constexpr auto kSentences = TokenStoreSection::kSentences;
  constexpr auto kDocuments = TokenStoreSection::kDocuments;
  for (const Case& c : std::vector<Case>{
           {kSentences, 0, 1, "entry 0 begins at 1, but should at 0"},
           {kSentences, 0, uint64_t{1} << 63, "entry 0 begins at 9223"},
           // The numbers of two sentences.
           {kSentences, 12, 9 | uint64_t{3} << 32, "entry 1 begins at 9"},
           {kSentences, 12, 5 | uint64_t{5} << 32, "entry 2 begins at 5"},
           {kDocuments, 0, 2, "entry 0 begins at 2, but should at 0"},
           {kDocuments, 16, 4, "entry 1 begins at 4"},
           {kDocuments, 16, 0, "entry 1 begins at 0"},
       }) {
    std::string changed = bytes;
    TokenStoreHeader header = intact;
    const TokenStoreExtent extent = ExtentOf(header, c.section);
    std::memcpy(changed.data() + extent.begin + c.offset, &c.value,
                sizeof(c.value));
    header.checksums[static_cast<size_t>(c.section)] =
        ExtendCrc32c(0, changed.substr(extent.begin, extent.bytes));
    changed.replace(0, kTokenStoreHeaderBytes, EncodeTokenStoreHeader(header));
    const absl::Status status = OpenBytes(changed).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr(c.message_part));
  }
}

TEST_F(TokenStoreTest, RefusesCountsThatCannotBe) {
  for (const uint64_t huge : {~uint64_t{0}, uint64_t{1} << 60}) {
    EXPECT_EQ(OpenWithHeader([huge](TokenStoreHeader* header) {
                header->num_tokens = huge;
              }).code(),
              absl::StatusCode::kDataLoss);
    EXPECT_EQ(OpenWithHeader([huge](TokenStoreHeader* header) {
                header->num_documents = huge;
              }).code(),
              absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(OpenWithHeader([](TokenStoreHeader* header) {
              header->num_sentences = 0;
            }).code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(TokenStoreTest, SaysWhatItCannotRead) {
  std::string bytes = Bytes(100, {{{4}}});
  absl::Status status;
  for (const int version : {1, 3}) {
    bytes[12] = static_cast<char>(version);
    status = OpenBytes(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(),
                HasSubstr(absl::StrCat("is of version ", version,
                                       ", but this program knows version 2")));
  }

  bytes = Bytes(100, {{{4}}});
  bytes.replace(8, 4, {1, 2, 3, 4});
  status = OpenBytes(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("of the other byte order"));

  status = OpenBytes("once upon a time").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("does not begin with RETCTOKS"));
  EXPECT_FALSE(OpenBytes("").ok());

  EXPECT_THAT(OpenBytes(Bytes(100, {{{4}}}) + "more").status().message(),
              HasSubstr("but goes on to byte "));
}

TEST_F(TokenStoreTest, TellsAnotherTokenizer) {
  const TokenStoreSettings ours = ToySettings(100);
  TokenStoreSettings same = ours;
  same.sentences = "icu";
  EXPECT_TRUE(CheckSameTokenizer(ours, same, "store", "v.txt").ok());

  TokenStoreSettings cased = ours;
  cased.lower_case = false;
  absl::Status status = CheckSameTokenizer(ours, cased, "a.tokens", "v.txt");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              HasSubstr("a.tokens: the store was made with another tokenizer "
                        "than the run's: its lower_case is true, the run's "
                        "false; run realetc tokenize --vocabulary v.txt, with "
                        "the settings of the run"));

  TokenStoreSettings other = ours;
  other.vocabulary_sha256 = std::string(64, 'b');
  EXPECT_THAT(CheckSameTokenizer(ours, other, "a.tokens", "v.txt").message(),
              HasSubstr("its vocabulary_sha256 is \"aaaa"));
}

// Each of the settings makes other pieces of a text, or other ids of them.
TEST_F(TokenStoreTest, TellsEachSettingOfAnotherTokenizer) {
  using Settings = TokenStoreSettings;
  struct Case {
    std::string field;
    std::function<void(Settings&)> change;
  };
  for (const Case& c : std::vector<Case>{
           {"tokenizer",
            [](Settings& s) {
              s.tokenizer_kind = TokenizerKind::kSentencePiece;
            }},
           {"lower_case", [](Settings& s) { s.lower_case = false; }},
           {"split_punctuation",
            [](Settings& s) { s.split_punctuation = true; }},
           {"wordpiece_options",
            [](Settings& s) {
              s.wordpiece_options = R"({"strip_accents":false})";
            }},
           {"vocab_size", [](Settings& s) { s.vocab_size = 101; }},
           {"unknown_id", [](Settings& s) { s.unknown_id = 9; }},
           {"cls_id", [](Settings& s) { s.cls_id = 9; }},
           {"sep_id", [](Settings& s) { s.sep_id = 9; }},
           {"mask_id", [](Settings& s) { s.mask_id = 9; }},
       }) {
    const Settings store = ToySettings(100);
    Settings run = store;
    c.change(run);
    const absl::Status status =
        CheckSameTokenizer(store, run, "a.tokens", "v.txt");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << c.field;
    EXPECT_THAT(status.message(),
                HasSubstr(absl::StrCat("its ", c.field, " is ")));
  }
}

}  // namespace
}  // namespace etc
