// Files of torch.save (doc/formats.md 6): those that Python's own pickler made
// are read in both containers, views are copied out densely, and one file for
// each thing that must be refused.

#include "etc/weights/formats/pytorch/pytorch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "etc/weights/formats/pytorch/zip_archive.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/torch_save_samples.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PytorchFileTest : public testing::Test {
 protected:
  absl::StatusOr<PytorchFile> Open(const std::string& bytes) {
    return PytorchFile::Open(directory_.Write("model.bin", bytes));
  }
  // Opens an archive with this pickle.
  absl::StatusOr<PytorchFile> OpenPickle(const std::string& pickle) {
    return Open(ZipBytes(StateDictFiles(pickle)));
  }
  static std::vector<float> Floats(const PytorchFile& file,
                                   const std::string& name, size_t count) {
    std::vector<float> values(count);
    const absl::Status status = file.Read(
        name, reinterpret_cast<char*>(values.data()), count * sizeof(float));
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }

  TemporaryDirectory directory_;
};

TEST_F(PytorchFileTest, ReadsBothContainers) {
  for (const std::string& bytes :
       {ZipBytes(StateDictFiles()),
        ZipBytes(StateDictFiles(StateDictPickle4())), StateDictStream(),
        // pickle_protocol=3, and 4, which puts a frame around each pickle.
        StateDictStreamOf("\x80\3", "\x80\3", StateDictPickle()),
        StateDictStreamOf(absl::StrCat("\x80\4\x95\x0d", std::string(7, '\0')),
                          "\x80\4", StateDictPickle4())}) {
    const auto file = Open(bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    // Recognised by its first bytes, as its name does not say what it is.
    const auto recognized = OpenTensorSource(file->path());
    ASSERT_TRUE(recognized.ok()) << recognized.status();
    EXPECT_EQ((*recognized)->names(), file->names());
    EXPECT_THAT(file->names(), ElementsAre("n", "row", "w", "w.T"));
    EXPECT_THAT(file->warnings(), IsEmpty());
    EXPECT_EQ((*file->Find("w"))->dtype, "F32");
    EXPECT_THAT((*file->Find("w"))->shape, ElementsAre(2, 3));
    EXPECT_EQ((*file->Find("n"))->dtype, "I64");
    EXPECT_THAT((*file->Find("n"))->shape, IsEmpty());
    EXPECT_THAT(Floats(*file, "w", 6), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(Floats(*file, "w.T", 6), ElementsAre(0, 3, 1, 4, 2, 5));
    EXPECT_THAT(Floats(*file, "row", 3), ElementsAre(3, 4, 5));
    int64_t number = 0;
    EXPECT_TRUE(file->Read("n", reinterpret_cast<char*>(&number), 8).ok());
    EXPECT_EQ(number, 7);
    EXPECT_EQ(file->Find("x").status().code(), absl::StatusCode::kNotFound);
    char byte = 0;
    EXPECT_EQ(file->Read("n", &byte, 1).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// Every tensor of the file, if it can be read.
absl::Status ReadAll(const PytorchFile& file) {
  for (const std::string& name : file.names()) {
    const TensorInfo& info = **file.Find(name);
    uint64_t bytes = info.dtype == "I64" ? 8 : 4;
    for (const int64_t dimension : info.shape) {
      bytes *= static_cast<uint64_t>(dimension);
    }
    std::string data(bytes, '\0');
    const absl::Status status = file.Read(name, data.data(), bytes);
    if (!status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

TEST_F(PytorchFileTest, ChecksTheChecksumsOfAnArchive) {
  for (const int index : {2, 3}) {
    auto files = StateDictFiles();
    files[index].crc_error = 1;
    const auto file = Open(ZipBytes(files));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(ReadAll(*file).code(), absl::StatusCode::kDataLoss);
  }
  auto files = StateDictFiles();
  files[0].crc_error = 1;
  EXPECT_THAT(Open(ZipBytes(files)).status().message(),
              HasSubstr("data.pkl should have checksum"));
}

// As torch.save writes after set_crc32_options(False).
TEST_F(PytorchFileTest, ReadsAnArchiveWithoutChecksums) {
  auto files = StateDictFiles();
  files.push_back({.name = "m/empty"});
  for (ZipSample& file : files) {
    file.crc_error = SampleCrc32(file.data);  // makes it 0
  }
  const auto file = Open(ZipBytes(files));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->warnings(), ElementsAre(HasSubstr("has no checksums")));
  EXPECT_THAT(Floats(*file, "w", 6), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(Floats(*file, "row", 3), ElementsAre(3, 4, 5));
  // A single one says that there are some.
  files[4].crc_error = 0;
  EXPECT_EQ(Open(ZipBytes(files)).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PytorchFileTest, RefusesBadArchives) {
  const struct {
    const char* message;
    std::function<void(std::vector<ZipSample>*)> change;
  } cases[] = {
      {"encrypted", [](auto* files) { (*files)[2].flags = 1; }},
      {"method 8", [](auto* files) { (*files)[2].method = 8; }},
      {"in its own header", [](auto* files) { (*files)[2].local_name = "x"; }},
      {"two entries", [](auto* files) { files->push_back(files->front()); }},
      {"should lie within", [](auto* files) { (*files)[4].size_error = 9999; }},
      {"overlaps", [](auto* files) { (*files)[2].size_error = 1; }},
      {"storage 0 should have 24 bytes, but has 23",
       [](auto* files) { (*files)[2].data.pop_back(); }},
      {"storage 1 should have 8 bytes, but is absent",
       [](auto* files) { files->erase(files->begin() + 3); }},
      {"byteorder should be little",
       [](auto* files) { (*files)[1].data = "big"; }},
      {"one entry .../data.pkl, but has 0",
       [](auto* files) { files->erase(files->begin()); }},
      {"but has 2",
       [](auto* files) { files->push_back({.name = "x/data.pkl"}); }},
      {"TorchScript",  // whose code is compressed
       [](auto* files) {
         files->push_back({.name = "m/code/__torch__.py", .method = 8});
         files->push_back({.name = "m/constants.pkl"});
       }},
      {"goes on behind its end", [](auto* files) { (*files)[0].data += "."; }},
      {"data.pkl: pickle, opcode",
       [](auto* files) { (*files)[0].data = "I1\n."; }},
      {"\"os.system\"",
       [](auto* files) { (*files)[0].data = "cos\nsystem\n."; }},
      {"UTF-8", [](auto* files) { files->push_back({.name = "\xff"}); }},
  };
  for (const auto& each : cases) {
    std::vector<ZipSample> files = StateDictFiles();
    each.change(&files);
    const auto file = Open(ZipBytes(files));
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(file.status().message(), HasSubstr(each.message));
    EXPECT_THAT(file.status().message(), HasSubstr("model.bin: "));
  }
}

// `bytes` with a part replaced that must be there.
std::string With(const std::string& bytes, const std::string& part,
                 const std::string& replacement) {
  const size_t at = bytes.find(part);
  EXPECT_NE(at, std::string::npos) << absl::BytesToHexString(part);
  return bytes.substr(0, at) + replacement + bytes.substr(at + part.size());
}

TEST_F(PytorchFileTest, RefusesTensorsThatAreNotWithinTheirStorage) {
  // The sizes and strides of "w": (2, 3) and (3, 1), of 6 elements.
  const std::string sizes("K\2K\3\x86q\nK\3K\1\x86", 12);
  const auto with_sizes = [&](const std::string& other) {
    return With(StateDictPickle(), sizes, other);
  };
  for (const std::string& bad :
       {std::string("K\3K\3\x86q\nK\3K\1\x86", 12),      // too many elements
        std::string("K\2K\3\x86q\nK\4K\1\x86", 12),      // beyond the end
        std::string("K\3K\3\x86q\nK\1K\1\x86", 12),      // each one twice
        std::string("K\xffK\xff\x86q\nK\0K\0\x86", 12),  // stride 0
        std::string("K\2K\3\x86q\nK\1\x85", 10),         // too few strides
        std::string("K\2K\3\x86q\nNK\1\x86", 11),        // no number
        absl::StrCat("J", std::string(4, '\xff'), "K\3\x86q\nK\3K\1\x86"),
        absl::StrCat("\x8a\x08", std::string(7, '\xff'), "\x7f", "K\3\x86q\n",
                     "\x8a\x08", std::string(7, '\xff'), "\x7f", "K\1\x86")}) {
    const auto file = OpenPickle(with_sizes(bad));
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(file.status().message(), HasSubstr("tensor \"w\""))
        << absl::BytesToHexString(bad);
  }
  // An empty tensor may have any strides.
  EXPECT_TRUE(
      OpenPickle(with_sizes(std::string("K\0K\3\x86q\nK\xffK\1\x86", 12)))
          .ok());
}

// A dimension of size 1 has a stride that nothing is ever moved by. The largest
// there is, in front of and within a view that has to be copied out: added to a
// place it would overflow, which the sanitizers would see.
TEST_F(PytorchFileTest, TakesAnyStrideOfADimensionOfSizeOne) {
  const std::string largest =
      absl::StrCat("\x8a\x08", std::string(7, '\xff'), "\x7f");
  // The sizes and strides of "w.T": (3, 2) and (1, 3).
  const std::string sizes("K\3K\2\x86q\x13K\1K\3\x86", 12);
  for (const std::string& with_one :
       {absl::StrCat("K\3K\1K\2\x87q\x13K\1", largest, "K\3\x87"),
        absl::StrCat("K\1K\3K\2\x87q\x13", largest, "K\1K\3\x87"),
        absl::StrCat("K\3K\2K\1\x87q\x13K\1K\3", largest, "\x87")}) {
    const auto file = OpenPickle(With(StateDictPickle(), sizes, with_one));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file->Find("w.T"))->shape.size(), 3u);
    EXPECT_THAT(Floats(*file, "w.T", 6), ElementsAre(0, 3, 1, 4, 2, 5));
  }
}

TEST_F(PytorchFileTest, RefusesStoragesThatAreNot) {
  const std::string pickle = StateDictPickle();
  const std::pair<std::string, std::string> changes[] = {
      {"storage", "Storage"},
      {"cpuq\x08K\6", "cpuq\x08K\7"},
      {"cpuq\x08K\6", "cpuq\x08N"},
      {"0q\aX", "/q\aX"},
      {"torch\nFloatStorage", "torch._utils\n_rebuild_tensor_v2"}};
  for (const auto& [part, replacement] : changes) {
    EXPECT_EQ(OpenPickle(With(pickle, part, replacement)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << replacement;
  }
}

TEST_F(PytorchFileTest, RefusesBadStreams) {
  const std::string stream = StateDictStream();
  const size_t data = stream.size() - 8 - 8 - 24 - 8;
  const std::pair<std::string, const char*> cases[] = {
      {With(stream, "\x4d\xe9\x03.", std::string("\x4d\xea\x03.", 4)),
       "protocol 1001"},
      {With(stream, "\x88X", "\x89X"), "little-endian"},
      {With(stream, "little_endian", "small_endian!"), "little-endian"},
      {stream + "x", "ends at byte 639"},
      {stream.substr(0, data) + "\7" + stream.substr(data + 1),
       "should have 6 elements, but has 7"},
      {With(stream,
            std::string("\1\0\0\0"
                        "0q\1X",
                        8),
            std::string("\1\0\0\0"
                        "1q\1X",
                        8)),
       "storage 1 should have 1 elements, but has 6"},
      {stream.substr(0, stream.size() - 1), "bytes left"},
  };
  for (const auto& [bytes, message] : cases) {
    const auto file = Open(bytes);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(file.status().message(), HasSubstr(message));
  }
  for (size_t bytes = 0; bytes < stream.size(); ++bytes) {
    EXPECT_FALSE(Open(stream.substr(0, bytes)).ok()) << bytes;
  }
}

TEST_F(PytorchFileTest, SaysWhatAFileIsInstead) {
  const std::pair<const char*, const char*> cases[] = {
      {"version https://git-lfs.github.com/spec/v1", "a pointer of Git LFS"},
      {"<!DOCTYPE html>", "a web page"},
      {"", "begins with \"\""},
      {"12345678901", "begins with \"12345678\""},
      {"PK\3\4", "no end record"}};
  for (const auto& [bytes, message] : cases) {
    EXPECT_THAT(Open(bytes).status().message(), HasSubstr(message));
  }
}

TEST_F(PytorchFileTest, TakesOneWrappingDictionaryAndSkipsTheRest) {
  // {"epoch": 3, "model": <the state dict>}, built around the pickle's memo.
  const std::string state = StateDictPickle();
  const std::string wrapped =
      absl::StrCat(std::string("\x80\2}(\x8c\5epochK\3\x8c\5model", 20),
                   state.substr(2, state.size() - 3), "u.");
  const auto file = OpenPickle(wrapped);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->names(), ElementsAre("n", "row", "w", "w.T"));

  const auto skipped =
      Open(ZipBytes({{.name = "a/data.pkl", .data = "}\x8c\5epochK\3s."}}));
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_THAT(skipped->names(), IsEmpty());
  EXPECT_THAT(skipped->warnings(),
              ElementsAre(HasSubstr("\"epoch\" is no tensor")));
  EXPECT_THAT(
      Open(ZipBytes({{.name = "a/data.pkl", .data = "]."}})).status().message(),
      HasSubstr("should be a dictionary"));
}

// The pickle of the state dict with one more entry, "x".
std::string WithEntry(const std::string& odd) {
  const std::string state = StateDictPickle();
  return absl::StrCat(state.substr(0, state.size() - 1), "\x8c\1x", odd, "s.");
}

TEST_F(PytorchFileTest, SkipsEntriesOfOtherTypesWithALine) {
  const std::string storage = "(\x8c\7storagectorch\n";
  const auto tensor = [&](const std::string& type, char count) {
    return absl::StrCat("ctorch._utils\n_rebuild_tensor_v2\n(", storage, type,
                        "\n\x8c\1"
                        "2\x8c\3cpuK",
                        std::string(1, count), "tQK", std::string(1, '\0'),
                        "K\1\x85K\1\x85\x89NtR");
  };
  const std::pair<std::string, const char*> cases[] = {
      {"cbuiltins\nset\n]K\1a\x85R", "made by \"builtins.set\""},
      {"\x8f(K\1\x90", "made by \"set\""},
      {"ctorch._utils\n_rebuild_sparse_tensor\n)R",
       "made by \"torch._utils._rebuild_sparse_tensor\""},
      {"ctorch._utils\n_rebuild_tensor_v3\n)R",
       "made by \"torch._utils._rebuild_tensor_v3\""},
      {"cos\nsystem\n(\x8c\2idtR", "made by \"os.system\""},
      {"cargparse\nNamespace\n)\x81}\x8c\1aK\1sb", "argparse.Namespace"},
      {tensor("FooStorage", '\2'), "a tensor of torch.FooStorage"}};
  for (const auto& [odd, message] : cases) {
    const auto file = OpenPickle(WithEntry(odd));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_THAT(file->names(), ElementsAre("n", "row", "w", "w.T"));
    EXPECT_THAT(file->warnings(),
                ElementsAre(testing::AllOf(HasSubstr("\"x\" is skipped"),
                                           HasSubstr(message))));
    EXPECT_THAT(Floats(*file, "w", 6), ElementsAre(0, 1, 2, 3, 4, 5));
  }
  // The first 20 of 100 skipped entries are named.
  std::string many = "}";
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&many, "\x8c\2", i < 10 ? "0" : "", i, "Ns");
  }
  const auto crowd =
      Open(ZipBytes({{.name = "a/data.pkl", .data = many + "."}}));
  ASSERT_TRUE(crowd.ok()) << crowd.status();
  EXPECT_EQ(crowd->warnings().size(), 21u);
  EXPECT_THAT(crowd->warnings().back(), HasSubstr("80 more entries"));
  // Complex elements have a size, so that the tensor is listed.
  std::vector<ZipSample> files =
      StateDictFiles(WithEntry(tensor("ComplexFloatStorage", '\1')));
  files.push_back(
      {.name = files[0].name.substr(0, files[0].name.find('/')) + "/data/2",
       .data = std::string(8, '\0')});
  const auto file = Open(ZipBytes(files));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file->Find("x"))->dtype, "C64");
  // A call of os.system is not run, and is an error as the whole object.
  EXPECT_THAT(
      OpenPickle("cos\nsystem\n(\x8c\2idtR.").status().message(),
      testing::AllOf(HasSubstr("os.system"), HasSubstr("is not allowed")));
}

TEST_F(PytorchFileTest, FindsZip64Directories) {
  // The archive's own end record, all ones, behind a ZIP64 one that is right.
  const std::string zip = ZipBytes(StateDictFiles());
  const std::string end = zip.substr(zip.size() - 22);
  uint32_t size = 0;
  uint32_t offset = 0;
  std::memcpy(&size, end.data() + 12, 4);
  std::memcpy(&offset, end.data() + 16, 4);
  std::string bytes = zip.substr(0, zip.size() - 22);
  const uint64_t end64 = bytes.size();
  absl::StrAppend(&bytes, "PK\6\6");
  AppendNumbers(&bytes, uint64_t{44}, uint32_t{0}, uint32_t{0}, uint32_t{0},
                uint64_t{5}, uint64_t{5}, uint64_t{size}, uint64_t{offset});
  absl::StrAppend(&bytes, "PK\6\7");
  AppendNumbers(&bytes, uint32_t{0}, end64, uint32_t{1});
  absl::StrAppend(&bytes, "PK\5\6", std::string(16, '\xff'),
                  std::string(2, '\0'));
  const auto file = Open(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(ReadAll(*file).ok());
}

}  // namespace
}  // namespace etc
