// GzipFile gives the same bytes at every offset as the contents that were
// packed, with places in every block and in none, over one member and many, by
// one thread and several; and damaged files, and the members that gzip and
// pigz write, are taken for what they are. zlib packs, in settings that make
// blocks of every kind: stored, of fixed codes, of small and of large codes.

#include "base/gzip_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/gzip_member.h"
#include "tests/support/mutation.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Text that packs about as well as a page does, and refers far back.
std::string Text(size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::string> words;
  for (int i = 0; i < 2000; ++i) {
    std::string word;
    for (uint64_t letters = 2 + random() % 9; letters > 0; --letters) {
      word.push_back(static_cast<char>('a' + random() % 26));
    }
    words.push_back(word + " ");
  }
  std::string text;
  while (text.size() < bytes) {
    text += words[random() % words.size()];
  }
  text.resize(bytes);
  return text;
}

class GzipFileTest : public testing::Test {
 protected:
  // Opens `packed` and leaves the contents that went by in `contents_`.
  absl::StatusOr<GzipFile> Open(const std::string& packed,
                                uint64_t span_bytes = 1) {
    // A file that is cut down to nothing and written again goes to the disk at
    // once, which takes its time; a new one does not.
    std::filesystem::remove(directory_.File("a.gz"));
    const std::string path = directory_.Write("a.gz", packed);
    auto file = RandomAccessFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    contents_.clear();
    return GzipFile::Open(*std::move(file),
                          [&](absl::string_view piece, uint64_t file_bytes) {
                            absl::StrAppend(&contents_, piece);
                            EXPECT_LE(file_bytes, packed.size());
                            return absl::OkStatus();
                          },
                          {.span_bytes = span_bytes});
  }

  // Expects pieces at random offsets, and all in order, to be as in `contents`.
  void ExpectSame(const GzipFile& file, const std::string& contents,
                  uint64_t seed) {
    ASSERT_EQ(contents_, contents);
    ASSERT_EQ(file.size(), contents.size());
    std::mt19937_64 random(seed);
    for (int i = 0; i < 60; ++i) {
      const uint64_t offset = random() % (contents.size() + 1);
      const uint64_t length =
          std::min(random() % 5000, contents.size() - offset);
      const auto read = file.Read(offset, length);
      ASSERT_TRUE(read.ok()) << read.status();
      ASSERT_EQ(*read, contents.substr(offset, length)) << offset;
    }
    constexpr uint64_t kStep = 999;
    for (uint64_t offset = 0; offset < contents.size(); offset += kStep) {
      const auto read =
          file.Read(offset, std::min(kStep, contents.size() - offset));
      ASSERT_TRUE(read.ok()) << read.status();
      ASSERT_EQ(*read, contents.substr(offset, kStep)) << offset;
    }
    EXPECT_EQ(*file.Read(0, contents.size()), contents);
  }

  TemporaryDirectory directory_;
  std::string contents_;
};

TEST_F(GzipFileTest, ReadsEveryKindOfBlockAtEveryOffset) {
  const std::string text = Text(200000, 1);
  for (const Packing& packing :
       {Packing{}, Packing{.level = 0}, Packing{.level = 1},
        Packing{.level = 9, .memory_level = 1},
        Packing{.strategy = Z_FIXED, .memory_level = 1},
        Packing{.strategy = Z_HUFFMAN_ONLY, .memory_level = 2},
        Packing{.strategy = Z_RLE}}) {
    for (const uint64_t span_bytes : {0, 1, 3000, 70000, 1 << 30}) {
      SCOPED_TRACE(absl::StrCat("level ", packing.level, ", strategy ",
                                packing.strategy, ", span ", span_bytes));
      const auto file = Open(GzipMember(text, packing), span_bytes);
      ASSERT_TRUE(file.ok()) << file.status();
      ExpectSame(*file, text, span_bytes);
    }
  }
}

TEST_F(GzipFileTest, ReadsBytesOfAnyKind) {
  std::mt19937_64 random(5);
  std::string noise(100000, '\0');
  for (char& byte : noise) {
    byte = static_cast<char>(random());
  }
  const std::string zeros(300000, '\0');
  for (const std::string& contents :
       {noise, zeros, noise + zeros + noise, std::string("x")}) {
    const auto file = Open(GzipMember(contents, {.memory_level = 1}), 5000);
    ASSERT_TRUE(file.ok()) << file.status();
    ExpectSame(*file, contents, 3);
  }
}

TEST_F(GzipFileTest, ReadsMembersAsOneFile) {
  std::string packed;
  std::string contents;
  for (uint64_t i = 0; i < 200; ++i) {
    // Some empty, some without a border near, some followed by zeros.
    const std::string piece = Text(i % 7 == 0 ? 0 : i * i % 3000, i);
    packed += GzipMember(piece, {.memory_level = 1 + static_cast<int>(i % 9)});
    packed += std::string(i % 11 == 0 ? 513 : 0, '\0');
    contents += piece;
  }
  for (const uint64_t span_bytes : {1, 1000, 100000}) {
    const auto file = Open(packed, span_bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    ExpectSame(*file, contents, span_bytes);
  }
}

// Each byte alone: reads end before, at and behind the end of every block.
TEST_F(GzipFileTest, ReadsByteByByte) {
  const std::string text = Text(30000, 6);
  for (const Packing& packing :
       {Packing{.level = 0, .memory_level = 1}, Packing{.memory_level = 1},
        Packing{.strategy = Z_FIXED, .memory_level = 1}}) {
    const auto file = Open(GzipMember(text, packing) + GzipMember(text), 7000);
    ASSERT_TRUE(file.ok()) << file.status();
    for (uint64_t offset = 0; offset < 2 * text.size(); ++offset) {
      const auto byte = file->Read(offset, 1);
      ASSERT_TRUE(byte.ok()) << byte.status();
      ASSERT_EQ((*byte)[0], text[offset % text.size()]) << offset;
    }
  }
}

// The length at the end of the first member has no byte that is zero and could
// be taken for one that only fills up.
TEST_F(GzipFileTest, SkipsTheWholeEndOfAMember) {
  const std::string long_member((1 << 24) + 0x010101, 'x');
  const auto file =
      Open(GzipMember(long_member) + GzipMember("second"), 1 << 20);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto read = file->Read(long_member.size() - 1, 7);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, "xsecond");
}

TEST_F(GzipFileTest, ReadsAnEmptyMember) {
  const auto file = Open(GzipMember(""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), 0u);
  EXPECT_EQ(*file->Read(0, 0), "");
  EXPECT_EQ(file->Read(0, 1).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(GzipFileTest, ReadsHeadersWithNamesAndComments) {
  // FLG: name, comment, extra field; RFC 1952, 2.3.
  const std::string header("\x1f\x8b\x08\x1c\0\0\0\0\0\x03\x03\0abcname\0why\0",
                           24);
  const std::string packed = header + GzipMember("contents").substr(10);
  const auto file = Open(packed);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file->Read(3, 5), "tents");
}

TEST_F(GzipFileTest, TellsGzipByItsFirstBytes) {
  const auto is_gzip = [&](const std::string& bytes) {
    return *GzipFile::IsGzip(
        *RandomAccessFile::Open(directory_.Write("b", bytes)));
  };
  EXPECT_TRUE(is_gzip(GzipMember("")));
  EXPECT_FALSE(is_gzip(""));
  EXPECT_FALSE(is_gzip("\x1f"));
  EXPECT_FALSE(is_gzip("{}"));
}

TEST_F(GzipFileTest, CanBeReadBySeveralThreads) {
  const std::string text = Text(500000, 9);
  const auto file = Open(GzipMember(text), 50000);
  ASSERT_TRUE(file.ok()) << file.status();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      for (int i = 0; i < 300; ++i) {
        // Half of them one after the other, the others anywhere.
        const uint64_t offset = i % 2 == 0
                                    ? static_cast<uint64_t>(i) * 1500 + thread
                                    : random() % (text.size() - 1000);
        const auto read = file->Read(offset, 1000);
        wrong += read.ok() && *read == text.substr(offset, 1000) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(GzipFileTest, CanBeMoved) {
  auto file = Open(GzipMember("contents"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file->Read(0, 3), "con");
  GzipFile moved = *std::move(file);
  EXPECT_EQ(*moved.Read(3, 5), "tents");
  EXPECT_THAT(moved.path(), testing::EndsWith("a.gz"));
}

TEST_F(GzipFileTest, NamesWhatIsWrongWithAFile) {
  const std::string packed = GzipMember(Text(5000, 2));
  const auto message = [&](const std::string& bytes) {
    const absl::Status status = Open(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()),
                StartsWith(directory_.File("a.gz") + ": "));
    return std::string(status.message());
  };
  for (const size_t length : {size_t{2}, size_t{9}, size_t{100},
                              packed.size() - 8, packed.size() - 1}) {
    EXPECT_THAT(message(packed.substr(0, length)),
                HasSubstr(absl::StrCat("ends in the middle of its gzip data, "
                                       "after ",
                                       length, " bytes")))
        << length;
  }
  std::string damaged = packed;
  damaged[packed.size() - 5] ^= 1;
  EXPECT_THAT(message(damaged), HasSubstr("incorrect data check"));
  damaged = packed;
  damaged[packed.size() - 1] ^= 1;
  EXPECT_THAT(message(damaged), HasSubstr("incorrect length check"));
  EXPECT_THAT(message(packed + "{}"), HasSubstr("incorrect header check"));
}

TEST_F(GzipFileTest, PassesOnTheErrorOfWhoTakesTheContents) {
  auto file =
      RandomAccessFile::Open(directory_.Write("a.gz", GzipMember("text")));
  const absl::Status status =
      GzipFile::Open(*std::move(file),
                     [](absl::string_view, uint64_t) {
                       return absl::InvalidArgumentError("no records");
                     },
                     {})
          .status();
  EXPECT_EQ(status, absl::InvalidArgumentError("no records"));
}

TEST_F(GzipFileTest, SaysThatAFileHasChanged) {
  const std::string text = Text(100000, 2);
  const auto file = Open(GzipMember(text), 1000);
  ASSERT_TRUE(file.ok()) << file.status();
  directory_.Write("a.gz", GzipMember("short"));
  const auto read = file->Read(90000, 10);
  EXPECT_FALSE(read.ok());
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("a.gz"));
}

TEST_F(GzipFileTest, ReadsWholeFilesOfBothKindsUpToALimit) {
  const std::string text = Text(5000, 2);
  const std::string plain = directory_.Write("plain", text);
  const std::string packed =
      directory_.Write("packed", GzipMember(text) + GzipMember("end"));
  EXPECT_EQ(*ReadUnpackedFile(plain, 5000), text);
  EXPECT_EQ(*ReadUnpackedFile(packed, 5003), text + "end");
  const absl::Status longer = ReadUnpackedFile(packed, 5002).status();
  EXPECT_EQ(longer.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(longer.message()),
              HasSubstr("packed should have at most 5002 bytes when it is "
                        "unpacked, but has more"));
  EXPECT_EQ(ReadUnpackedFile(plain, 4999).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadUnpackedFile(directory_.File("none")).status().code(),
            absl::StatusCode::kNotFound);
}

// Files of some members and zeros, of which half are damaged. A file that opens
// must be readable, with the contents that went by.
TEST_F(GzipFileTest, SurvivesDamagedFiles) {
  const std::vector<std::string> pieces = {
      GzipMember(Text(900, 4), {.memory_level = 1}),
      GzipMember(Text(300, 5), {.strategy = Z_FIXED}),
      GzipMember(std::string(2000, 'x'), {.level = 0}), GzipMember(""),
      std::string(5, '\0')};
  Mutator mutator(20240602);
  int opened = 0;
  constexpr int kRounds = RoundsOfDamage(5000);
  for (int round = 0; round < kRounds; ++round) {
    std::string packed = pieces[mutator.Below(4)];
    for (uint64_t more = mutator.Below(4); more > 0; --more) {
      packed += pieces[mutator.Below(pieces.size())];
    }
    if (round % 2 == 0) {
      packed = mutator.Mutate(packed, {pieces[3], "\x1f\x8b", "\x08"});
    }
    const auto file = Open(packed, 1 + mutator.Below(1000));
    if (!file.ok()) {
      EXPECT_EQ(file.status().code(), absl::StatusCode::kDataLoss)
          << file.status();
      EXPECT_THAT(std::string(file.status().message()), HasSubstr("a.gz"));
      continue;
    }
    ++opened;
    ASSERT_EQ(file->size(), contents_.size());
    const uint64_t offset = mutator.Below(contents_.size());
    const auto read = file->Read(offset, contents_.size() - offset);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(*read, contents_.substr(offset));
  }
  EXPECT_GE(opened, kRounds / 2);
  EXPECT_LT(opened, kRounds * 3 / 4);
}

// The same to a file that was opened while it was whole.
TEST_F(GzipFileTest, SurvivesFilesThatAreDamagedLater) {
  const std::string text = Text(3000, 4);
  const std::string packed =
      GzipMember(text, {.memory_level = 1}) + GzipMember(text);
  Mutator mutator(20240603);
  for (int round = 0; round < RoundsOfDamage(1000); ++round) {
    const auto file = Open(packed, 500);
    ASSERT_TRUE(file.ok()) << file.status();
    const std::string damaged = mutator.Mutate(packed);
    std::filesystem::resize_file(directory_.File("a.gz"), damaged.size());
    std::fstream(directory_.File("a.gz"),
                 std::ios::in | std::ios::out | std::ios::binary)
        << damaged;
    for (int i = 0; i < 3; ++i) {
      const uint64_t offset = mutator.Below(2 * text.size());
      const auto read = file->Read(offset, 2 * text.size() - offset);
      if (!read.ok()) {
        EXPECT_THAT(std::string(read.status().message()), HasSubstr("a.gz"));
      }
    }
  }
}

}  // namespace
}  // namespace etc
