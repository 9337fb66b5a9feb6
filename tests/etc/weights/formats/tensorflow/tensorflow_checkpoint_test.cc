// TensorFlow V2 checkpoints (doc/formats.md 2): the worked example of
// doc/formats.md 2.7 written to the byte and read, bit-exact round trips, the
// ways to name a checkpoint, and a malformed one for each of the rules 2.5.7 to
// 2.5.13. 2.5.1 to 2.5.6 are sorted_table_test.cc's.

#include "etc/weights/formats/tensorflow/tensorflow_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file_operations.h"
#include "etc/weights/formats/tensor_writer.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"
#include "tests/support/full_disk.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kHeaderHex[] = "08011a020801";

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

TensorToWrite Tensor(const std::string& name, const std::string& dtype,
                     std::vector<int64_t> shape, const std::string& data) {
  return {name, dtype, std::move(shape),
          [data](const WriteFunction& write) { return write(data); }};
}

std::vector<TensorToWrite> ExampleTensors() {
  return {Tensor("ab", "I64", {}, Bytes<int64_t>({7})),
          Tensor("a", "F32", {2}, Bytes<float>({1, 2}))};
}

// The record of an entry, field by field; what stands for nothing is left out.
struct Record {
  uint64_t dtype = 1;
  std::vector<uint64_t> shape = {2};
  uint64_t shard = 0;
  uint64_t offset = 0;
  uint64_t size = 8;
  uint32_t crc = 0x35e53c59;

  std::string Serialize() const {
    std::string dims;
    for (const uint64_t dimension : shape) {
      std::string dim;
      AppendVarintField(1, dimension, &dim);
      AppendBytesField(2, dim, &dims);
    }
    std::string record;
    AppendVarintField(1, dtype, &record);
    AppendBytesField(2, dims, &record);
    AppendVarintField(3, shard, &record);
    AppendVarintField(4, offset, &record);
    AppendVarintField(5, size, &record);
    AppendFixed32Field(6, crc, &record);
    return record;
  }
};

// A checkpoint with these records beside its header, and this data file.
class TensorFlowCheckpointTest : public testing::Test {
 protected:
  absl::StatusOr<TensorFlowCheckpoint> OpenRecords(
      std::map<std::string, std::string> records,
      const std::string& data = Bytes<float>({1, 2, 3, 4, 5, 6, 7, 8}),
      const TensorFlowLimits& limits = {}) {
    records.try_emplace("", absl::HexStringToBytes(kHeaderHex));
    directory_.Write("m.index", BuildSortedTable(records));
    directory_.Write("m.data-00000-of-00001", data);
    return TensorFlowCheckpoint::Open(directory_.File("m"), limits);
  }

  static std::string ReadTensor(const TensorFlowCheckpoint& checkpoint,
                                const std::string& name, size_t size) {
    std::string data(size, '\x55');
    const absl::Status status = checkpoint.Read(name, data.data(), size);
    EXPECT_TRUE(status.ok()) << status;
    return data;
  }

  TemporaryDirectory directory_;
};

TEST_F(TensorFlowCheckpointTest, WritesTheWorkedExampleOfTheSpec) {
  ASSERT_TRUE(
      WriteTensorFlowCheckpoint(directory_.File("m"), ExampleTensors()).ok());
  EXPECT_EQ(absl::BytesToHexString(*ReadFile(directory_.File("m.index"))),
            absl::StrCat("000006080"
                         "11a020801"
                         "00010f6108011204120208022808"
                         "35593ce535"
                         "01010d62080912002008280835bbd79f11"
                         "00000000010000000015"
                         "0658b000000000010000000"
                         "0c0f2a1b000010262003500000000010000"
                         "00001d0e1d6c3a08470e",
                         std::string(72, '0'), "57fb808b247547db"));
  EXPECT_EQ(absl::BytesToHexString(
                *ReadFile(directory_.File("m.data-00000-of-00001"))),
            "0000803f000000400700000000000000");
}

TEST_F(TensorFlowCheckpointTest, ReadsItAgain) {
  ASSERT_TRUE(
      WriteTensorFlowCheckpoint(directory_.File("m"), ExampleTensors()).ok());
  auto opened = TensorFlowCheckpoint::Open(directory_.File("m"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  const TensorFlowCheckpoint checkpoint = *std::move(opened);
  EXPECT_THAT(checkpoint.names(), ElementsAre("a", "ab"));
  EXPECT_THAT(checkpoint.warnings(), IsEmpty());
  EXPECT_EQ((*checkpoint.Find("a"))->dtype, "F32");
  EXPECT_THAT((*checkpoint.Find("a"))->shape, ElementsAre(2));
  EXPECT_EQ((*checkpoint.Find("ab"))->dtype, "I64");
  EXPECT_THAT((*checkpoint.Find("ab"))->shape, IsEmpty());
  EXPECT_EQ((*checkpoint.FindEntry("ab"))->offset, 8);
  EXPECT_EQ(ReadTensor(checkpoint, "a", 8), Bytes<float>({1, 2}));
  EXPECT_EQ(ReadTensor(checkpoint, "ab", 8), Bytes<int64_t>({7}));
}

TEST_F(TensorFlowCheckpointTest, KeepsEveryBitOfEveryDtype) {
  const std::string numbers = absl::HexStringToBytes(
      "000102030405060708090a0b0c0d0e0f7f80fffe0000c07f0000807f010000ff");
  std::vector<TensorToWrite> tensors;
  const std::pair<const char*, int64_t> dtypes[] = {
      {"F32", 4}, {"F64", 8}, {"I32", 4},  {"U8", 1},   {"I16", 2},
      {"I8", 1},  {"I64", 8}, {"BOOL", 1}, {"BF16", 2}, {"U16", 2},
      {"F16", 2}, {"U32", 4}, {"U64", 8}};
  for (const auto& [dtype, bytes] : dtypes) {
    tensors.push_back(
        Tensor(absl::StrCat("scope/", dtype), dtype, {2, 16 / bytes}, numbers));
  }
  tensors.push_back(Tensor("empty", "F32", {3, 0}, ""));
  // More than one piece of the reader, and of the writer.
  std::string large(1'000'004, '\0');
  for (size_t i = 0; i < large.size(); ++i) {
    large[i] = static_cast<char>(i * i >> 3);
  }
  tensors.push_back(
      {"large", "F32", {250'001}, [&](const WriteFunction& write) {
         return write(absl::string_view(large).substr(0, 7)).ok()
                    ? write(absl::string_view(large).substr(7))
                    : absl::InternalError("");
       }});
  ASSERT_TRUE(WriteTensorFlowCheckpoint(directory_.File("m"), tensors).ok());
  const auto checkpoint = TensorFlowCheckpoint::Open(directory_.File("m"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  for (const auto& [dtype, bytes] : dtypes) {
    const std::string name = absl::StrCat("scope/", dtype);
    EXPECT_EQ((*checkpoint->Find(name))->dtype, dtype);
    EXPECT_EQ(ReadTensor(*checkpoint, name, 32), numbers);
  }
  EXPECT_THAT((*checkpoint->Find("empty"))->shape, ElementsAre(3, 0));
  EXPECT_EQ(ReadTensor(*checkpoint, "empty", 0), "");
  EXPECT_EQ(ReadTensor(*checkpoint, "large", large.size()), large);
}

TEST_F(TensorFlowCheckpointTest, RefusesToWriteWhatCannotBe) {
  const std::string data = Bytes<float>({1, 2});
  const std::pair<TensorToWrite, const char*> cases[] = {
      {Tensor("", "F32", {2}, data), "no tensor can be called"},
      {Tensor(std::string("\0x", 2), "F32", {2}, data), "no tensor can be"},
      {Tensor("x", "F8_E4M3", {2}, data), "dtype \"F8_E4M3\""},
      {Tensor("x", "DT_STRING", {2}, data), "dtype"},
      {Tensor("x", "F32", {3}, data), "should have 12 bytes, but has 8"},
      {Tensor("x", "F32", {-2}, data), "negative"},
      {Tensor("ab", "F32", {2}, data), "two tensors are called \"ab\""},
  };
  for (const auto& [tensor, message] : cases) {
    std::vector<TensorToWrite> tensors = ExampleTensors();
    tensors.push_back(tensor);
    const absl::Status status =
        WriteTensorFlowCheckpoint(directory_.File("bad"), tensors);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
  EXPECT_FALSE(std::filesystem::exists(directory_.File("bad.index")));
  EXPECT_FALSE(
      std::filesystem::exists(directory_.File("bad.data-00000-of-00001")));
}

TEST_F(TensorFlowCheckpointTest, NamesTheFileOnceWhenTheDiskIsFull) {
  FullDisk disk;
  const ScopedFileOperations scope(&disk);
  EXPECT_EQ(
      WriteTensorFlowCheckpoint(directory_.File("m"), ExampleTensors())
          .message(),
      absl::StrCat("cannot write ", directory_.File("m.data-00000-of-00001"),
                   ": No space left on device"));
}

TEST_F(TensorFlowCheckpointTest, TakesAnyOfItsFilesForItsName) {
  const auto write = [&](const std::string& name) {
    return WriteTensorFlowCheckpoint(directory_.File(name), ExampleTensors());
  };
  ASSERT_TRUE(write("model.ckpt-12").ok());
  const std::string prefix = directory_.File("model.ckpt-12");
  for (const std::string& path :
       {prefix, prefix + ".index", prefix + ".data-00000-of-00001",
        directory_.path(), directory_.path() + "/"}) {
    const auto checkpoint = TensorFlowCheckpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << path << ": " << checkpoint.status();
    EXPECT_EQ(checkpoint->path(), path);
    EXPECT_TRUE(std::filesystem::equivalent(
        *TensorFlowCheckpointPrefix(path) + ".index", prefix + ".index"));
  }

  ASSERT_TRUE(write("model.ckpt-9").ok());
  const absl::Status several =
      TensorFlowCheckpoint::Open(directory_.path()).status();
  EXPECT_EQ(several.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(several.message(),
              HasSubstr("model.ckpt-12.index, model.ckpt-9.index"));

  directory_.Write("checkpoint",
                   "model_checkpoint_path: \"model.ckpt-\\071\"\n"
                   "all_model_checkpoint_paths: \"model.ckpt-12\"\n");
  EXPECT_EQ(*TensorFlowCheckpointPrefix(directory_.path()),
            directory_.File("model.ckpt-9"));
}

TEST_F(TensorFlowCheckpointTest, SaysWhatIsNotACheckpoint) {
  EXPECT_EQ(TensorFlowCheckpointPrefix(directory_.path()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(TensorFlowCheckpointPrefix(directory_.File("no")).status().code(),
            absl::StatusCode::kNotFound);
  // The same table as an index is a V1 checkpoint; another file is none.
  const std::string path =
      directory_.Write("model.ckpt", BuildSortedTable({{"", "slices"}}));
  EXPECT_THAT(TensorFlowCheckpointPrefix(path).status().message(),
              HasSubstr("V1 checkpoints are not supported"));
  directory_.Write("model.ckpt", "A note on weights.");
  const absl::Status note = TensorFlowCheckpointPrefix(path).status();
  EXPECT_EQ(note.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(note.message(), "there is no " + path + ".index");
  for (const char* state :
       {"", "model_checkpoint_path: model", "model_checkpoint_path: \"/x/m\"",
        "model_checkpoint_path: \"../m\"", "model_checkpoint_path: \"\\x\"",
        "model_checkpoint_path: \"\""}) {
    directory_.Write("checkpoint", state);
    const absl::Status status =
        TensorFlowCheckpointPrefix(directory_.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << state;
    EXPECT_THAT(status.message(), HasSubstr("model_checkpoint_path")) << state;
  }
}

// Rows [0, 15261) of `emb`, all columns, as doc/formats.md 2.4 has their key.
TEST_F(TensorFlowCheckpointTest, RefusesPartitionedVariables) {
  const absl::Status status =
      OpenRecords({{absl::HexStringToBytes("00656d620001010280e03b9d807f"),
                    Record().Serialize()},
                   {"emb", Record{.size = 0, .crc = 0}.Serialize()}})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            absl::StrCat(directory_.File("m.index"),
                         ": tensor \"emb\" is a partitioned variable, which is "
                         "not supported; save the checkpoint without a "
                         "partitioner (doc/formats.md 2.5.12)"));
}

TEST_F(TensorFlowCheckpointTest, ListsWhatItCannotRead) {
  const auto checkpoint =
      OpenRecords({{"_CHECKPOINTABLE_OBJECT_GRAPH",
                    Record{.dtype = 7, .shape = {}, .size = 5}.Serialize()},
                   {"c", Record{.dtype = 8, .shape = {1}}.Serialize()},
                   {"r", Record{.dtype = 101}.Serialize()}});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(checkpoint->warnings(), ElementsAre(HasSubstr("need a map")));
  EXPECT_EQ((*checkpoint->Find("r"))->dtype, "DT_101");
  char data[8];
  for (const std::string& name : checkpoint->names()) {
    EXPECT_THAT(checkpoint->Read(name, data, 8).message(),
                HasSubstr("which cannot be read"));
  }
}

TEST_F(TensorFlowCheckpointTest, RefusesBadHeaders) {
  for (const char* hex :
       {"", "08", "0800", "08ffffffffffffffffff01", "08a18d06", "0a00",
        "0801120100", "08011001", "08011002", "08011a021002", "08011a021801",
        "08011a031a0101", "08011a0b08ffffffffffffffffff01", "0f", "0801000100",
        "08010d01", "08012201"}) {
    const auto checkpoint = OpenRecords({{"", absl::HexStringToBytes(hex)}});
    EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(checkpoint.status().message(), HasSubstr("2.5.7")) << hex;
  }
  // Unknown fields; bad consumers other than this version; the last one wins.
  for (const char* hex :
       {"0801", "080008011a020801", "08013a0100", "08011a041a020203"}) {
    EXPECT_TRUE(OpenRecords({{"", absl::HexStringToBytes(hex)}}).ok()) << hex;
  }
  directory_.Write("m.index", BuildSortedTable({{"a", Record().Serialize()}}));
  EXPECT_THAT(
      TensorFlowCheckpoint::Open(directory_.File("m")).status().message(),
      HasSubstr("the first key should be empty"));
  directory_.Write("m.index", BuildSortedTable({}));
  EXPECT_THAT(
      TensorFlowCheckpoint::Open(directory_.File("m")).status().message(),
      HasSubstr("2.5.7"));
}

TEST_F(TensorFlowCheckpointTest, RefusesBadEntries) {
  const uint64_t minus_one = ~uint64_t{0};
  std::vector<uint64_t> deep(33, 1);
  const std::pair<std::string, const char*> cases[] = {
      {"\x08", "2.5.8"},
      {"\x0d"
       "1234",
       "2.5.8"},
      {"\x30\x01", "2.5.8"},
      {std::string("\x12\x02\x18\x01", 4), "2.5.8"},
      {Record{.shape = {minus_one}}.Serialize(), "2.5.8"},
      {Record{.shape = {uint64_t{1} << 32, uint64_t{1} << 32}}.Serialize(),
       "2.5.8"},
      {Record{.shape = {(uint64_t{1} << 40) + 1}}.Serialize(), "2.5.8"},
      {Record{.shape = deep}.Serialize(), "2.5.8"},
      {Record{.shard = 1}.Serialize(), "2.5.9"},
      {Record{.shard = minus_one}.Serialize(), "2.5.9"},
      {Record{.offset = 25}.Serialize(), "2.5.9"},
      {Record{.offset = minus_one}.Serialize(), "2.5.9"},
      {Record{.offset = uint64_t{1} << 62}.Serialize(), "2.5.9"},
      {Record{.size = minus_one}.Serialize(), "2.5.9"},
      {Record{.shape = {9}, .size = 36}.Serialize(), "2.5.9"},
      {Record{.dtype = 7, .size = 33}.Serialize(), "2.5.9"},
      {Record{.size = 4}.Serialize(), "2.5.10"},
      {Record{.shape = {}}.Serialize(), "2.5.10"},
      {Record{.dtype = 9}.Serialize(), "2.5.10"},
  };
  for (const auto& [record, rule] : cases) {
    const auto checkpoint = OpenRecords({{"x", record}});
    EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(checkpoint.status().message(), HasSubstr(rule))
        << absl::BytesToHexString(record);
    EXPECT_THAT(checkpoint.status().message(),
                HasSubstr("m.index: tensor \"x\""));
  }
}

TEST_F(TensorFlowCheckpointTest, NeedsItsDataFiles) {
  ASSERT_TRUE(OpenRecords({{"x", Record().Serialize()}}).ok());
  std::filesystem::remove(directory_.File("m.data-00000-of-00001"));
  const auto checkpoint = TensorFlowCheckpoint::Open(directory_.File("m"));
  EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(checkpoint.status().message(),
              HasSubstr("m.data-00000-of-00001"));
}

TEST_F(TensorFlowCheckpointTest, ChecksTheDataWhenItReadsThem) {
  auto checkpoint = OpenRecords({{"x", Record().Serialize()}});
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_EQ(ReadTensor(*checkpoint, "x", 8), Bytes<float>({1, 2}));
  char data[8];
  EXPECT_EQ(checkpoint->Read("x", data, 4).code(),
            absl::StatusCode::kInvalidArgument);
  for (size_t byte = 0; byte < 8; ++byte) {
    std::string changed = Bytes<float>({1, 2});
    changed[byte] ^= 1;
    directory_.Write("m.data-00000-of-00001", changed);
    const absl::Status status = checkpoint->Read("x", data, 8);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("2.5.11"));
  }
  directory_.Write("m.data-00000-of-00001", "short");
  EXPECT_EQ(checkpoint->Read("x", data, 8).code(),
            absl::StatusCode::kOutOfRange);
}

TEST_F(TensorFlowCheckpointTest, NamesWhatIsLikeAnAbsentTensor) {
  const auto checkpoint = OpenRecords({{"a/kernel", Record().Serialize()},
                                       {"b/kernel", Record().Serialize()},
                                       {"b/bias", Record().Serialize()}});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const absl::Status status = checkpoint->Find("c/kernel").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              HasSubstr("no tensor \"c/kernel\", but a/kernel, b/kernel "
                        "(doc/formats.md 2.5.13)"));
}

TEST_F(TensorFlowCheckpointTest, KeepsLimits) {
  const std::map<std::string, std::string> records = {
      {"a", Record().Serialize()}, {"b", Record().Serialize()}};
  const std::string data = Bytes<float>({1, 2});
  EXPECT_TRUE(OpenRecords(records, data, {.tensors = 2}).ok());
  EXPECT_FALSE(OpenRecords(records, data, {.tensors = 1}).ok());
  EXPECT_TRUE(OpenRecords(records, data, {.all_names_bytes = 2}).ok());
  EXPECT_FALSE(OpenRecords(records, data, {.all_names_bytes = 1}).ok());
}

}  // namespace
}  // namespace etc
