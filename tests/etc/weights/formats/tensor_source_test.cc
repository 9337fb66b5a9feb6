// Whatever the format of weights, they are found and give the same tensors.

#include "etc/weights/formats/tensor_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "etc/weights/formats/safetensors/safetensors.h"
#include "etc/weights/formats/tensorflow/tensorflow_checkpoint.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/torch_save_samples.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
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
  // By what is in it, whatever it is called, and as the shard of an index.
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
  EXPECT_THAT(status.message(), HasSubstr("nor a TensorFlow checkpoint"));
  status = OpenTensorSource(directory.File("missing")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(directory.File("missing")));

  // What is there but broken is not passed over.
  ASSERT_TRUE(WriteTf(directory.File("model.ckpt"), "tf!").ok());
  directory.Write("model.safetensors", "broken");
  EXPECT_THAT(Describe(directory.path()), HasSubstr("ST1"));
}

}  // namespace
}  // namespace etc
