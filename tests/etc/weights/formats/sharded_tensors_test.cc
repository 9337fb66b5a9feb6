// Models in one safetensors file or in shards with an index (formats spec 1.6):
// what is found where, and an index for each thing that is refused.

#include "etc/weights/formats/sharded_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "etc/weights/formats/safetensors/safetensors.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kIndex[] = "model.safetensors.index.json";

void WriteShard(const std::string& path, const std::vector<std::string>& names,
                const std::map<std::string, std::string>& metadata = {}) {
  std::vector<SafetensorsTensor> tensors;
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

std::string ReadTwoBytes(const ShardedTensors& tensors,
                         const std::string& name) {
  std::string bytes(2, '?');
  const absl::Status status = tensors.Read(name, bytes.data(), bytes.size());
  return status.ok() ? bytes : status.ToString();
}

TEST(ShardedTensorsTest, ReadsAFileByItsOwnNameOrItsFolders) {
  TemporaryDirectory directory;
  WriteShard(directory.File("model.safetensors"), {"a", "b"}, {{"k", "v"}});
  for (const std::string& path :
       {directory.path(), directory.File("model.safetensors")}) {
    const auto tensors = ShardedTensors::Open(path);
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    EXPECT_EQ(tensors->path(), path);
    EXPECT_THAT(tensors->names(), ElementsAre("a", "b"));
    EXPECT_EQ(tensors->metadata().at("k"), "v");
    EXPECT_EQ(ReadTwoBytes(*tensors, "b"), "bs");
    EXPECT_THAT(tensors->warnings(), IsEmpty());
  }
}

TEST(ShardedTensorsTest, ReadsShards) {
  TemporaryDirectory directory;
  WriteShard(directory.File("x1"), {"a", "c"}, {{"k", "first"}});
  WriteShard(directory.File("x2"), {"b"}, {{"k", "second"}, {"l", "w"}});
  directory.Write(kIndex, R"({"metadata": {"total_size": 6, "more": [1]},
      "weight_map": {"c": "x1", "a": "x1", "b": "x2"}})");
  for (const std::string& path : {directory.path(), directory.File(kIndex)}) {
    auto opened = ShardedTensors::Open(path);
    ASSERT_TRUE(opened.ok()) << opened.status();
    const ShardedTensors tensors = *std::move(opened);
    EXPECT_THAT(tensors.names(), ElementsAre("a", "b", "c"));
    EXPECT_EQ(ReadTwoBytes(tensors, "a"), "a1");
    EXPECT_EQ(ReadTwoBytes(tensors, "b"), "b2");
    EXPECT_EQ(ReadTwoBytes(tensors, "c"), "c1");
    EXPECT_EQ(tensors.metadata().at("k"), "first");
    EXPECT_EQ(tensors.metadata().at("l"), "w");
    EXPECT_THAT(tensors.warnings(), IsEmpty());
    EXPECT_EQ((*tensors.Find("b"))->dtype, "U8");
    EXPECT_THAT(ReadTwoBytes(tensors, "d"), HasSubstr("ST14"));
  }
}

TEST(ShardedTensorsTest, PrefersTheSingleFile) {
  TemporaryDirectory directory;
  WriteShard(directory.File("model.safetensors"), {"one"});
  directory.Write(kIndex, "{}");
  EXPECT_THAT(ShardedTensors::Open(directory.path())->names(),
              ElementsAre("one"));
}

// Formats spec 1.3: once, and without chains.
TEST(ShardedTensorsTest, FindsTiedTensorsThroughTheMetadata) {
  TemporaryDirectory directory;
  const std::string path = directory.File("f");
  WriteShard(path, {"kept"},
             {{"dropped", "kept"},
              {"chained", "dropped"},
              {"dangling", "nowhere"},
              {"kept", "dropped"}});
  const auto tensors = ShardedTensors::Open(path);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ(ReadTwoBytes(*tensors, "dropped"), "kf");
  EXPECT_EQ(ReadTwoBytes(*tensors, "kept"), "kf");
  EXPECT_FALSE(tensors->Find("chained").ok());
  EXPECT_FALSE(tensors->Find("dangling").ok());
  EXPECT_THAT(tensors->names(), ElementsAre("kept"));
}

TEST(ShardedTensorsTest, WarnsOfWhatIsOdd) {
  TemporaryDirectory directory;
  WriteShard(directory.File("x1"), {"a", "extra"});
  directory.Write(kIndex, R"({"metadata": {"total_size": 4},
      "weight_map": {"a": "x1"}})");
  auto tensors = ShardedTensors::Open(directory.path());
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT(tensors->names(), ElementsAre("a"));
  EXPECT_FALSE(tensors->Find("extra").ok());
  EXPECT_THAT(tensors->warnings(),
              ElementsAre(HasSubstr("tensor \"extra\" is not in the index"),
                          HasSubstr("total_size should be 2")));

  for (const char* metadata : {"", R"("metadata": {},)", R"("metadata": 1,)"}) {
    directory.Write(
        kIndex, std::string("{") + metadata + R"("weight_map": {"a": "x1"}})");
    tensors = ShardedTensors::Open(directory.path());
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    EXPECT_THAT(tensors->warnings().back(),
                HasSubstr("no metadata.total_size"));
  }
}

TEST(ShardedTensorsTest, RefusesABadIndex) {
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
    const absl::Status status = ShardedTensors::Open(directory.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.index;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(bad.message), HasSubstr(directory.path())))
        << bad.index;
  }
}

TEST(ShardedTensorsTest, SaysWhatIsNotThere) {
  TemporaryDirectory directory;
  absl::Status status = ShardedTensors::Open(directory.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(kIndex));

  status = ShardedTensors::Open(directory.File("missing")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);

  directory.Write(kIndex, R"({"weight_map": {"a": "x9"}})");
  status = ShardedTensors::Open(directory.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(directory.File("x9")));
}

}  // namespace
}  // namespace etc
