// LevelDB tables (doc/formats.md 2.2): the worked example of doc/formats.md 2.7
// to the byte, what is written is read, over several blocks and with Snappy,
// and a malformed file for each of the rules 2.5.1 to 2.5.6.

#include "etc/weights/formats/tensorflow/sorted_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::HasSubstr;

using Entries = std::map<std::string, std::string>;

absl::StatusOr<Entries> Read(const std::string& bytes,
                             const SortedTableLimits& limits = {}) {
  TemporaryDirectory directory;
  const auto file = RandomAccessFile::Open(directory.Write("t.index", bytes));
  Entries entries;
  const absl::Status status = ReadSortedTable(
      *file, limits, [&](absl::string_view key, absl::string_view value) {
        entries.emplace(key, value);
        return absl::OkStatus();
      });
  if (!status.ok()) {
    return status;
  }
  return entries;
}

// An entry of a block: bytes shared with the key before, the rest of the key.
std::string BlockEntry(uint64_t shared, const std::string& key,
                       const std::string& value) {
  std::string bytes;
  AppendVarint(shared, &bytes);
  AppendVarint(key.size(), &bytes);
  AppendVarint(value.size(), &bytes);
  return bytes + key + value;
}

// Contents of a block with one restart.
std::string Block(const std::string& entries) {
  return entries + std::string("\0\0\0\0\1\0\0\0", 8);
}

std::string Handle(uint64_t offset, uint64_t size) {
  std::string handle;
  AppendVarint(offset, &handle);
  AppendVarint(size, &handle);
  return handle;
}

// Appends a block with a true checksum and returns its handle.
std::string AppendBlock(const std::string& contents, char type,
                        std::string* file) {
  const std::string handle = Handle(file->size(), contents.size());
  const std::string checked = contents + type;
  absl::StrAppend(file, checked);
  AppendFixed(MaskCrc32c(ExtendCrc32c(0, checked)), file);
  return handle;
}

void AppendFooter(const std::string& handles, std::string* file) {
  std::string footer = handles;
  footer.resize(40, '\0');
  absl::StrAppend(file, footer, absl::HexStringToBytes("57fb808b247547db"));
}

// A table whose index block has an entry for each (key, block contents).
std::string Table(
    const std::vector<std::pair<std::string, std::string>>& blocks,
    char type = 0) {
  std::string file;
  std::string index;
  for (const auto& [key, contents] : blocks) {
    absl::StrAppend(&index,
                    BlockEntry(0, key, AppendBlock(contents, type, &file)));
  }
  const std::string metaindex = AppendBlock(Block(""), 0, &file);
  AppendFooter(metaindex + AppendBlock(Block(index), 0, &file), &file);
  return file;
}

const char kExample[] =
    "0000060801"
    "1a02080100010f6108011204120208022808"
    "35593ce53501010d6208091200200828083"
    "5bbd79f1100000000"
    "0100000000150658b00000000001000000"
    "00c0f2a1b00001026200350000000001"
    "000000001d0e1d6c3a08470e"
    "0000000000000000000000000000000000000000000000000000000000000000"
    "0000"
    "0000"
    "57fb808b247547db";

Entries ExampleEntries() {
  return {{"", absl::HexStringToBytes("08011a020801")},
          {"a", absl::HexStringToBytes("0801120412020802280835593ce535")},
          {"ab", absl::HexStringToBytes("0809120020082808"
                                        "35bbd79f11")}};
}

TEST(SortedTableTest, IsTheWorkedExampleOfTheSpec) {
  const std::string example = absl::HexStringToBytes(kExample);
  ASSERT_EQ(example.size(), 138);
  EXPECT_EQ(absl::BytesToHexString(BuildSortedTable(ExampleEntries())),
            absl::BytesToHexString(example));
  EXPECT_EQ(*Read(example), ExampleEntries());
}

TEST(SortedTableTest, ReadsWhatItWrites) {
  std::mt19937 random(1);
  for (const int count : {0, 1, 15, 16, 17, 100, 5000}) {
    Entries entries;
    for (int i = 0; i < count; ++i) {
      std::string key;
      for (uint32_t left = random() % 12; left > 0; --left) {
        key.push_back("\0\1ab\xfe\xff"[random() % 6]);
      }
      entries[key] = std::string(random() % 300, static_cast<char>(random()));
    }
    const std::string table = BuildSortedTable(entries);
    const auto read = Read(table);
    // A table without entries has an index block without any.
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, entries);
  }
}

TEST(SortedTableTest, SplitsBlocksAndSeparatesThemByShortKeys) {
  const Entries entries = {{"abc", std::string(262'144, 'x')},
                           {"axe", std::string(262'144, 'y')},
                           {"axel", "z"}};
  const std::string table = BuildSortedTable(entries);
  EXPECT_EQ(*Read(table), entries);
  // "ac" lies between "abc" and "axe"; between "axe" and "axel" nothing does.
  const std::string index = table.substr(2 * 262'144);
  EXPECT_THAT(index, HasSubstr(std::string("\0\2\4ac", 5)));
  EXPECT_THAT(index, HasSubstr(std::string("\0\3\6axe", 6)));
  EXPECT_THAT(index, HasSubstr(std::string("\0\1\4b", 4)));
}

TEST(SortedTableTest, ReadsSnappy) {
  // doc/formats.md 2.2: 0c 0c 61 62 63 64 11 04 is "abcdabcdabcd". Here the
  // same copy is within the value of an entry.
  std::string contents = Block(BlockEntry(0, "k", "abcdabcdabcd"));
  ASSERT_EQ(contents.size(), 24);
  const std::string compressed = std::string("\x18\x1c", 2) +
                                 contents.substr(0, 8) +
                                 absl::HexStringToBytes("1104") +
                                 std::string("\x1c", 1) + contents.substr(16);
  EXPECT_EQ(*Read(Table({{"k", compressed}}, 1)),
            (Entries{{"k", "abcdabcdabcd"}}));
}

TEST(SortedTableTest, RefusesBadSnappy) {
  const struct {
    const char* hex;
    const char* what;
  } cases[] = {
      {"", "an empty block"},
      {"0c", "input exhausted"},
      {"0c0c616263641100", "offset 0"},
      {"0c0c616263641105", "offset beyond what there is"},
      {"0b0c616263641104", "output beyond the length"},
      {"0d0c616263641104", "output below the length"},
      {"0c0c61626364110400", "leftover input"},
      {"0c0c6162636411", "a copy without its offset"},
      {"808080807f", "a length above 64 times the input"},
      {"8080808001", "a length above the limit"},
      {"ffffffffff01", "a length that is no varint32"},
  };
  for (const auto& each : cases) {
    const auto read = Read(Table({{"k", absl::HexStringToBytes(each.hex)}}, 1));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument)
        << each.what;
    EXPECT_THAT(read.status().message(), HasSubstr("(doc/formats.md 2.5.3)"))
        << each.what;
  }
}

TEST(SortedTableTest, RefusesWhatTheSpecRejects) {
  const std::string example = absl::HexStringToBytes(kExample);
  const auto changed = [&](size_t at, char value) {
    std::string bytes = example;
    bytes[at] = value;
    return bytes;
  };
  const auto footer = [&](const std::string& handles) {
    std::string bytes = example.substr(0, 0x5a);
    AppendFooter(handles, &bytes);
    return bytes;
  };
  const auto block = [](const std::string& contents) {
    return Table({{"z", contents}});
  };
  const std::string meta = Handle(58, 8);
  const std::string a = Block(BlockEntry(0, "a", "1"));
  const struct {
    std::string bytes;
    const char* rule;
  } cases[] = {
      {"", "2.5.1"},
      {example.substr(91), "2.5.1"},
      {changed(0x82, 'x'), "2.5.1"},
      {footer(std::string(40, '\xff')), "2.5.1"},
      {footer(meta + std::string(38, '\xff')), "2.5.1"},
      {footer(meta + Handle(91, 0)), "2.5.2"},
      {footer(meta + Handle(71, 15)), "2.5.2"},
      {footer(meta + Handle(71, ~uint64_t{0})), "2.5.2"},
      {footer(meta + Handle(~uint64_t{0}, 2)), "2.5.2"},
      {footer(Handle(1000, 8) + Handle(71, 14)), "2.5.2"},
      {changed(0x10, 'x'), "2.5.3"},
      {changed(0x35, 1), "2.5.3"},
      {changed(0x36, 'x'), "2.5.3"},
      {Table({{"z", a}}, 2), "2.5.3"},
      {block(""), "2.5.4"},
      {block("abc"), "2.5.4"},
      {block(std::string("\1\0\0\0", 4)), "2.5.4"},
      {block(std::string("\0\0\0\0\2\0\0\0", 8)), "2.5.4"},
      {block(std::string("\0\0\0\0\xff\xff\xff\xff", 8)), "2.5.4"},
      {block(Block("\x80")), "2.5.5"},
      {block(Block(std::string("\0\0", 2))), "2.5.5"},
      {block(Block("\xff\xff\xff\xff\x1f")), "2.5.5"},
      {block(Block(BlockEntry(1, "a", "1"))), "2.5.5"},
      {block(Block(BlockEntry(0, "a", "1") + BlockEntry(2, "b", "1"))),
       "2.5.5"},
      {block(Block(std::string("\0\1\1a", 4))), "2.5.5"},
      // 2^32 - 1 and 2: their 32-bit sum would be 1.
      {block(Block(absl::HexStringToBytes("00ffffffff0f026162"))), "2.5.5"},
      {block(Block(BlockEntry(0, "a", "1") + BlockEntry(1, "", "2"))), "2.5.6"},
      {block(Block(BlockEntry(0, "b", "1") + BlockEntry(0, "a", "2"))),
       "2.5.6"},
      {block(Block(BlockEntry(0, "\xff", "1") + BlockEntry(0, "a", "2"))),
       "2.5.6"},
      {Table({{"a", a}, {"b", a}}), "2.5.6"},
      {block(Block(BlockEntry(0, std::string(4097, 'a'), "1"))), "2.5.6"},
  };
  for (const auto& each : cases) {
    const auto read = Read(each.bytes);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(read.status().message(), HasSubstr("t.index: "));
    EXPECT_THAT(read.status().message(), HasSubstr(each.rule))
        << absl::BytesToHexString(each.bytes);
  }
}

TEST(SortedTableTest, DoesNotReadOneBlockForEver) {
  // Many index entries, all of them the same block, which has no entries.
  std::string file;
  const std::string handle = AppendBlock(std::string(100'000, '\0'), 0, &file);
  std::string index;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&index, BlockEntry(0, std::string(i + 1, 'k'), handle));
  }
  AppendFooter(
      AppendBlock(Block(""), 0, &file) + AppendBlock(Block(index), 0, &file),
      &file);
  EXPECT_THAT(Read(file).status().message(), HasSubstr("2.5.2"));
}

TEST(SortedTableTest, KeepsLimits) {
  const std::string example = absl::HexStringToBytes(kExample);
  EXPECT_THAT(Read(example, {.file_bytes = 137}).status().message(),
              HasSubstr("at most 137"));
  EXPECT_THAT(Read(example, {.block_bytes = 52}).status().message(),
              HasSubstr("at most 52"));
  EXPECT_TRUE(Read(example, {.file_bytes = 138, .block_bytes = 53}).ok());
}

TEST(SortedTableTest, TakesBlocksWithoutRestartsAndBytesAfterHandles) {
  EXPECT_EQ(*Read(Table({{"z", std::string(4, '\0')}})), Entries());
  std::string file;
  const std::string handle =
      AppendBlock(Block(BlockEntry(0, "a", "1")), 0, &file);
  const std::string index = Block(BlockEntry(0, "a", handle + "more"));
  AppendFooter(AppendBlock(Block(""), 0, &file) + AppendBlock(index, 0, &file),
               &file);
  EXPECT_EQ(*Read(file), (Entries{{"a", "1"}}));
}

}  // namespace
}  // namespace etc
