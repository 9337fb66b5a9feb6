// Tensors in files without names: the elements come back, nothing is left in
// the directory, and an error names it.

#include "base/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/file_operations.h"
#include "tests/support/error_message.h"
#include "tests/support/full_disk.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(TensorFileTest, GivesTheElementsBack) {
  const TemporaryDirectory directory;
  for (const torch::ScalarType type :
       {torch::kFloat32, torch::kBFloat16, torch::kInt64}) {
    // By columns in memory.
    const torch::Tensor tensor =
        torch::arange(30).reshape({2, 3, 5}).to(type).transpose(0, 2);
    const TensorFile file(directory.path(), tensor);
    for (int time = 0; time < 2; ++time) {
      const torch::Tensor read = file.Read();
      EXPECT_EQ(read.scalar_type(), type);
      EXPECT_TRUE(torch::equal(read, tensor));
    }
  }
  EXPECT_EQ(TensorFile(directory.path(), torch::empty({0, 4})).Read().sizes(),
            (at::IntArrayRef{0, 4}));
}

TEST(TensorFileTest, LeavesNoName) {
  const TemporaryDirectory directory;
  const TensorFile file(directory.path(), torch::ones({100}));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(TensorFileTest, NamesTheDirectoryThatIsMissing) {
  EXPECT_THAT(
      WhatOf<TensorFileError>(
          [] { TensorFile("/nowhere/at/all", torch::ones({1})); }),
      AllOf(HasSubstr("cannot create a temporary file in /nowhere/at/all: "),
            HasSubstr("No such file")));
}

// Counts what is closed.
class CountingDisk : public FullDisk {
 public:
  using FullDisk::FullDisk;
  int Close(int descriptor) override {
    ++closed;
    return FullDisk::Close(descriptor);
  }

  int closed = 0;
};

TEST(TensorFileTest, NamesTheDirectoryWhoseDiskIsFull) {
  const TemporaryDirectory directory;
  CountingDisk disk(/*bytes=*/10);
  const ScopedFileOperations scope(&disk);
  EXPECT_THAT(
      WhatOf<TensorFileError>(
          [&] { TensorFile(directory.path(), torch::ones({100})); }),
      AllOf(HasSubstr("cannot write a temporary file in " + directory.path()),
            HasSubstr("No space left")));
  EXPECT_EQ(disk.closed, 1);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

// Remembers the file, which has no name.
class LastOpened : public FileOperations {
 public:
  int Open(const std::string& path, int flags, mode_t mode) override {
    descriptor = FileOperations::Open(path, flags, mode);
    return descriptor;
  }

  int descriptor = -1;
};

TEST(TensorFileTest, RefusesAFileThatLostItsEnd) {
  const TemporaryDirectory directory;
  LastOpened operations;
  const ScopedFileOperations scope(&operations);
  const TensorFile file(directory.path(), torch::ones({100}));
  ASSERT_EQ(ftruncate(operations.descriptor, 399), 0);
  EXPECT_THAT(WhatOf<TensorFileError>([&] { file.Read(); }),
              HasSubstr("cannot read a temporary file in " + directory.path()));
}

}  // namespace
}  // namespace etc
