// Weights are found under every name and give the same tensors in every format;
// models in shards with an index (doc/formats.md 1.6): what is found where, and
// an index for each thing that is refused; the table of dtypes.

#include "etc/weights/formats/tensor_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "etc/weights/formats/tensor_writer.h"
#include "etc/weights/formats/tensorflow/sorted_table.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/torch_save_samples.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The dtype, the shape and the data of tensor "t" there.
std::string Describe(const std::string& path) {
  const auto source = OpenTensorSource(path);
  if (!source.ok()) {
    return source.status().ToString();
  }
  EXPECT_THAT((*source)->names(), ElementsAre("t"));
  EXPECT_EQ((*source)->path(), path);
  const TensorInfo& info = **(*source)->Find("t");
  EXPECT_THAT(info.shape, ElementsAre(1, 3));
  std::string data(3, '?');
  EXPECT_TRUE((*source)->Read("t", data.data(), 3).ok());
  return info.dtype + " " + data;
}

absl::Status WriteSt(const std::string& path, const std::string& data) {
  return WriteSafetensors(
      path,
      {{"t", "U8", {1, 3}, [&](const WriteFunction& w) { return w(data); }}},
      {});
}

absl::Status WriteTf(const std::string& prefix, const std::string& data) {
  return WriteTensorFlowCheckpoint(
      prefix,
      {{"t", "U8", {1, 3}, [&](const WriteFunction& w) { return w(data); }}});
}

TEST(TensorSourceTest, OpensEveryFormatByEveryName) {
  TemporaryDirectory directory;
  ASSERT_TRUE(WriteTf(directory.File("model.ckpt"), "tf!").ok());
  for (const std::string& path :
       {directory.path(), directory.File("model.ckpt"),
        directory.File("model.ckpt.index"),
        directory.File("model.ckpt.data-00000-of-00001")}) {
    EXPECT_EQ(Describe(path), "U8 tf!") << path;
  }
  ASSERT_TRUE(WriteSt(directory.File("model.safetensors"), "st!").ok());
  EXPECT_EQ(Describe(directory.path()), "U8 st!");
  EXPECT_EQ(Describe(directory.File("model.safetensors")), "U8 st!");
  EXPECT_EQ(Describe(directory.File("model.ckpt")), "U8 tf!");
}

TEST(TensorSourceTest, OpensWhatTorchSaved) {
  TemporaryDirectory directory;
  const std::string zip = ZipBytes(StateDictFiles());
  const std::string path = directory.Write("pytorch_model.bin", zip);
  EXPECT_EQ((*OpenTensorSource(directory.path()))->names().size(), 4);
  EXPECT_EQ((*OpenTensorSource(path))->names().size(), 4);
  // Recognised by its contents, whatever its name, and as the shard of an
  // index.
  directory.Write("x1", StateDictStream());
  EXPECT_EQ((*OpenTensorSource(directory.File("x1")))->names().size(), 4);
  std::filesystem::remove(path);
  directory.Write("pytorch_model.bin.index.json",
                  R"({"metadata": {"total_size": 24},
                      "weight_map": {"w": "x1"}})");
  const auto sharded = OpenTensorSource(directory.path());
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  EXPECT_THAT((*sharded)->names(), ElementsAre("w"));
  EXPECT_THAT((*(*sharded)->Find("w"))->shape, ElementsAre(2, 3));

  directory.Write("pytorch_model.bin", "version https://git-lfs.github.com");
  EXPECT_THAT(OpenTensorSource(directory.path()).status().message(),
              HasSubstr("a pointer of Git LFS"));
}

// fairseq's models are published by this name.
TEST(TensorSourceTest, OpensADirectoryWithModelPt) {
  TemporaryDirectory directory;
  directory.Write("model.pt", ZipBytes(StateDictFiles()));
  const auto source = OpenTensorSource(directory.path());
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->names().size(), 4);
  ASSERT_TRUE(WriteSt(directory.File("model.safetensors"), "st!").ok());
  EXPECT_EQ(Describe(directory.path()), "U8 st!");
}

// Not of what their first bytes would be as the length of a header.
TEST(TensorSourceTest, SaysOfATextThatItIsNoWeights) {
  TemporaryDirectory directory;
  const std::string note = directory.Write("weights.txt", "A note on weights.");
  EXPECT_THAT(OpenTensorSource(note).status().message(),
              AllOf(HasSubstr(note), HasSubstr("is not a weights file"),
                    HasSubstr("begins with \"A note on weights.\""),
                    Not(HasSubstr("header"))));
  directory.Write("model.safetensors",
                  "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(OpenTensorSource(directory.path()).status().message(),
              AllOf(HasSubstr("is not a weights file"),
                    HasSubstr("a pointer of Git LFS")));
}

TEST(TensorSourceTest, SaysWhatIsNotThere) {
  TemporaryDirectory directory;
  absl::Status status = OpenTensorSource(directory.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("has none of model.safetensors"));
  EXPECT_THAT(status.message(), HasSubstr("has no TensorFlow checkpoint"));
  status = OpenTensorSource(directory.File("missing")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(directory.File("missing")));

  // A broken file is not passed over.
  ASSERT_TRUE(WriteTf(directory.File("model.ckpt"), "tf!").ok());
  directory.Write("model.safetensors", "broken");
  EXPECT_THAT(Describe(directory.path()), HasSubstr("1.4.1"));
}

TEST(TensorSourceTest, NamesTheMissingIndexOfATensorFlowCheckpoint) {
  TemporaryDirectory directory;
  const std::string prefix = directory.File("m");
  ASSERT_TRUE(WriteTf(prefix, "tf!").ok());
  directory.Write("checkpoint", "model_checkpoint_path: \"m\"\n");
  std::filesystem::remove(prefix + ".index");
  for (const std::string& path :
       {prefix, prefix + ".data-00000-of-00001", directory.path()}) {
    const absl::Status status = OpenTensorSource(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << path;
    EXPECT_THAT(status.message(),
                HasSubstr("there is no " + prefix + ".index"));
  }
}

// The same table as an index, under the name of the checkpoint itself.
TEST(TensorSourceTest, SaysThatV1CheckpointsAreNotSupported) {
  TemporaryDirectory directory;
  const std::string path =
      directory.Write("m", BuildSortedTable({{"", "slices"}}));
  directory.Write("checkpoint", "model_checkpoint_path: \"m\"\n");
  for (const std::string& named : {path, directory.path()}) {
    const absl::Status status = OpenTensorSource(named).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << named;
    EXPECT_THAT(status.message(), HasSubstr("V1 checkpoints are not"));
  }
}

// A snapshot of HuggingFace's cache is one, copied without what its links lead
// to.
TEST(TensorSourceTest, CannotOpenALinkThatLeadsNowhere) {
  for (const char* name :
       {"model.safetensors", "model.safetensors.index.json",
        "pytorch_model.bin", "checkpoint", "model.ckpt.index"}) {
    TemporaryDirectory directory;
    const std::string link = directory.File(name);
    std::filesystem::create_symlink("nowhere", link);
    const absl::Status status = OpenTensorSource(directory.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << name;
    EXPECT_THAT(status.message(), HasSubstr("cannot open " + link));
  }
}

// --- Shards -----------------------------------------------------------------

constexpr char kIndex[] = "model.safetensors.index.json";

void WriteShard(const std::string& path, const std::vector<std::string>& names,
                const std::map<std::string, std::string>& metadata = {}) {
  std::vector<TensorToWrite> tensors;
  for (const std::string& name : names) {
    // Two bytes: the first of the tensor's name, the last of the file's.
    const std::string data = {name.front(), path.back()};
    tensors.push_back({name, "U8", {2}, [data](const WriteFunction& write) {
                         return write(data);
                       }});
  }
  const absl::Status status = WriteSafetensors(path, tensors, metadata);
  ASSERT_TRUE(status.ok()) << status;
}

std::string ReadTwoBytes(const TensorSource& tensors, const std::string& name) {
  std::string bytes(2, '?');
  const absl::Status status = tensors.Read(name, bytes.data(), bytes.size());
  return status.ok() ? bytes : status.ToString();
}

TEST(ShardsTest, ReadsAFileByItsOwnNameOrItsFolders) {
  TemporaryDirectory directory;
  WriteShard(directory.File("model.safetensors"), {"a", "b"}, {{"k", "v"}});
  for (const std::string& path :
       {directory.path(), directory.File("model.safetensors")}) {
    const auto tensors = OpenTensorSource(path);
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    EXPECT_EQ((*tensors)->path(), path);
    EXPECT_THAT((*tensors)->names(), ElementsAre("a", "b"));
    EXPECT_EQ((*tensors)->metadata().at("k"), "v");
    EXPECT_EQ(ReadTwoBytes(**tensors, "b"), "bs");
    EXPECT_THAT((*tensors)->warnings(), IsEmpty());
  }
}

TEST(ShardsTest, ReadsShards) {
  TemporaryDirectory directory;
  WriteShard(directory.File("x1"), {"a", "c"}, {{"k", "first"}});
  WriteShard(directory.File("x2"), {"b"}, {{"k", "second"}, {"l", "w"}});
  directory.Write(kIndex, R"({"metadata": {"total_size": 6, "more": [1]},
      "weight_map": {"c": "x1", "a": "x1", "b": "x2"}})");
  for (const std::string& path : {directory.path(), directory.File(kIndex)}) {
    const auto opened = OpenTensorSource(path);
    ASSERT_TRUE(opened.ok()) << opened.status();
    const TensorSource& tensors = **opened;
    EXPECT_THAT(tensors.names(), ElementsAre("a", "b", "c"));
    EXPECT_EQ(ReadTwoBytes(tensors, "a"), "a1");
    EXPECT_EQ(ReadTwoBytes(tensors, "b"), "b2");
    EXPECT_EQ(ReadTwoBytes(tensors, "c"), "c1");
    EXPECT_EQ(tensors.metadata().at("k"), "first");
    EXPECT_EQ(tensors.metadata().at("l"), "w");
    EXPECT_THAT(tensors.warnings(), IsEmpty());
    EXPECT_EQ((*tensors.Find("b"))->dtype, "U8");
    EXPECT_THAT(ReadTwoBytes(tensors, "d"), HasSubstr("1.4.14"));
  }
}

TEST(ShardsTest, PrefersTheSingleFile) {
  TemporaryDirectory directory;
  WriteShard(directory.File("model.safetensors"), {"one"});
  directory.Write(kIndex, "{}");
  EXPECT_THAT((*OpenTensorSource(directory.path()))->names(),
              ElementsAre("one"));
}

// doc/formats.md 1.3: once, and without chains.
TEST(ShardsTest, FindsTiedTensorsThroughTheMetadata) {
  TemporaryDirectory directory;
  const std::string path = directory.File("f");
  WriteShard(path, {"kept"},
             {{"dropped", "kept"},
              {"chained", "dropped"},
              {"dangling", "nowhere"},
              {"kept", "dropped"}});
  const auto tensors = OpenTensorSource(path);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ(ReadTwoBytes(**tensors, "dropped"), "kf");
  EXPECT_EQ(ReadTwoBytes(**tensors, "kept"), "kf");
  EXPECT_FALSE((*tensors)->Find("chained").ok());
  EXPECT_FALSE((*tensors)->Find("dangling").ok());
  EXPECT_THAT((*tensors)->names(), ElementsAre("kept"));
}

TEST(ShardsTest, WarnsOfWhatIsUnusual) {
  TemporaryDirectory directory;
  WriteShard(directory.File("x1"), {"a", "extra"});
  directory.Write(kIndex, R"({"metadata": {"total_size": 4},
      "weight_map": {"a": "x1"}})");
  auto tensors = OpenTensorSource(directory.path());
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT((*tensors)->names(), ElementsAre("a"));
  EXPECT_FALSE((*tensors)->Find("extra").ok());
  EXPECT_THAT((*tensors)->warnings(),
              ElementsAre(HasSubstr("tensor \"extra\" is not in the index"),
                          HasSubstr("total_size should be 2")));

  for (const char* metadata : {"", R"("metadata": {},)", R"("metadata": 1,)"}) {
    directory.Write(
        kIndex, std::string("{") + metadata + R"("weight_map": {"a": "x1"}})");
    tensors = OpenTensorSource(directory.path());
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    EXPECT_THAT((*tensors)->warnings().back(),
                HasSubstr("no metadata.total_size"));
  }
}

// A type that is listed, but not read, has a size too.
TEST(ShardsTest, CountsTheBytesOfTypesThatSafetensorsLacks) {
  TemporaryDirectory directory;
  // {"x": a tensor of one complex number of 16 bytes}
  const std::string pickle =
      "}\x8c\1xctorch._utils\n_rebuild_tensor_v2\n((\x8c\7storage"
      "ctorch\nComplexDoubleStorage\n\x8c\1"
      "0\x8c\3cpuK\1tQK" +
      std::string(1, '\0') + "K\1\x85K\1\x85\x89NtRs.";
  directory.Write(
      "x1", ZipBytes({{.name = "m/data.pkl", .data = pickle},
                      {.name = "m/data/0", .data = std::string(16, '\0')}}));
  for (const bool is_right : {true, false}) {
    directory.Write("pytorch_model.bin.index.json",
                    std::string(R"({"metadata": {"total_size": )") +
                        (is_right ? "16" : "8") +
                        R"(}, "weight_map": {"x": "x1"}})");
    const auto tensors = OpenTensorSource(directory.path());
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    EXPECT_EQ((*(*tensors)->Find("x"))->dtype, "DT_COMPLEX128");
    EXPECT_EQ((*tensors)->warnings().empty(), is_right);
  }
}

TEST(ShardsTest, RefusesABadIndex) {
  TemporaryDirectory directory;
  WriteShard(directory.File("x1"), {"a", "both"});
  WriteShard(directory.File("x2"), {"b", "both"});
  WriteShard(directory.File("x3"), {"c"});
  std::filesystem::create_directory(directory.File("sub"));
  struct Case {
    const char* index;
    const char* message;
  };
  const Case cases[] = {
      {"[]", "should be an object"},
      {"{", "syntax error"},
      {"{}", "weight_map is missing"},
      {R"({"weight_map": ["x1"]})", "weight_map should be an object"},
      {R"({"weight_map": {"a": 1}})", "\"a\" should be the name of a file"},
      {R"({"weight_map": {"a": null}})", "\"a\" should be the name of a file"},
      {R"({"weight_map": {"a": ""}})", "should be the name of a file"},
      {R"({"weight_map": {"a": "."}})", "should be the name of a file"},
      {R"({"weight_map": {"a": ".."}})", "should be the name of a file"},
      {R"({"weight_map": {"a": "sub/../x1"}})", "should be the name of a file"},
      {R"({"weight_map": {"a": "/x1"}})", "should be the name of a file"},
      {R"({"weight_map": {"a": "sub\\x1"}})", "should be the name of a file"},
      {R"({"weight_map": {"a": "x1\u0000"}})", "should be the name of a file"},
      {R"({"weight_map": {"a": "sub"}})", "is a directory"},
      {R"({"weight_map": {"a": "x1", "a": "x1"}})", "there twice"},
      {R"({"weight_map": {"a": "x3"}})",
       "tensor \"a\" should be in x3, but is not"},
      {R"({"weight_map": {"a": "x1", "b": "x1", "c": "x3"}})",
       "tensor \"b\" should be in x1, but is not"},
      {R"({"weight_map": {"a": "x1", "b": "x2"}})",
       "tensor \"both\" is in two shards, x1 and x2"},
  };
  for (const Case& bad : cases) {
    directory.Write(kIndex, bad.index);
    const absl::Status status = OpenTensorSource(directory.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.index;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(bad.message), HasSubstr(directory.path())))
        << bad.index;
  }
}

TEST(ShardsTest, SaysWhatIsNotThere) {
  TemporaryDirectory directory;
  absl::Status status = OpenTensorSource(directory.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(kIndex));

  status = OpenTensorSource(directory.File("missing")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);

  directory.Write(kIndex, R"({"weight_map": {"a": "x9"}})");
  status = OpenTensorSource(directory.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(directory.File("x9")));
}

// --- Dtypes -----------------------------------------------------------------

TEST(DtypeTest, HasEveryNameAndNumberOnce) {
  std::set<absl::string_view> names;
  std::set<absl::string_view> pytorch;
  std::set<int64_t> numbers;
  bool after_listed_only = false;
  for (const Dtype& dtype : kDtypes) {
    EXPECT_TRUE(names.insert(dtype.name).second) << dtype.name;
    EXPECT_EQ(FindDtype(dtype.name), &dtype);
    if (!dtype.pytorch.empty()) {
      EXPECT_TRUE(pytorch.insert(dtype.pytorch).second) << dtype.name;
      EXPECT_TRUE(dtype.IsReadable()) << dtype.name;
    }
    if (dtype.tensorflow != 0) {
      EXPECT_TRUE(numbers.insert(dtype.tensorflow).second) << dtype.name;
    }
    // Types that only TensorFlow has come last, for they have no rank in
    // safetensors.
    after_listed_only |= !dtype.IsReadable();
    EXPECT_EQ(after_listed_only, !dtype.IsReadable()) << dtype.name;
  }
  EXPECT_EQ(pytorch.size(), 10);
  // TensorFlow's enum DataType from 1 to 23, without gaps.
  EXPECT_EQ(numbers.size(), 23);
  EXPECT_EQ(*numbers.begin(), 1);
  EXPECT_EQ(*numbers.rbegin(), 23);
  EXPECT_EQ(FindDtype("f32"), nullptr);
  EXPECT_EQ(FindDtype(""), nullptr);
}

}  // namespace
}  // namespace etc
