// Running out of memory becomes one sentence, whoever throws, and another limit
// that is reached an error as well; reading JSON that is too large for the
// memory ends with it, not with an abort.

#include "base/out_of_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "nlohmann/json.hpp"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

template <typename Action>
absl::Status StatusOf(const Action& action) {
  return NamingOutOfMemory([] { return "counting to three"; },
                           [&]() -> absl::StatusOr<int> { return action(); })
      .status();
}

TEST(NamingOutOfMemoryTest, SaysWhatWasBeingDone) {
  const absl::Status expected =
      absl::ResourceExhaustedError("out of memory while counting to three");
  EXPECT_EQ(StatusOf([]() -> int { throw std::bad_alloc(); }), expected);
  EXPECT_EQ(StatusOf([]() -> int {
              std::vector<char> all;
              all.reserve(all.max_size() + 1);
              return 0;
            }),
            expected);
}

// Messages of LibTorch 1.13 and 2, for the CPU and for CUDA.
TEST(NamingOutOfMemoryTest, SaysHowMuchWasAskedForWhereItIsKnown) {
  const auto message = [](const std::string& thrown) {
    const absl::Status status =
        StatusOf([&]() -> int { throw std::runtime_error(thrown); });
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    return std::string(status.message());
  };
  const std::string begin = "out of memory while counting to three";
  EXPECT_EQ(message("[enforce fail at alloc_cpu.cpp:83] err == 0. "
                    "DefaultCPUAllocator: can't allocate memory: you tried to "
                    "allocate 4000000000000 bytes. Error code 12 (Cannot "
                    "allocate memory)"),
            begin + ", which asked for 4000.0 GB");
  const auto on_cpu = [&](int64_t bytes) {
    return message(absl::StrCat(
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate ",
        bytes, " bytes. Error code 12 (Cannot allocate memory)"));
  };
  EXPECT_EQ(on_cpu(100'000'000), begin + ", which asked for 0.1 GB");
  EXPECT_EQ(on_cpu(37'500'000), begin + ", which asked for 37.5 MB");
  EXPECT_EQ(on_cpu(4096), begin);
  EXPECT_EQ(message("CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; "
                    "79.15 GiB total capacity; 77.10 GiB already allocated)"),
            begin + ", which asked for 2.50 GiB");
  EXPECT_EQ(message("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 "
                    "has a total capacity of 79.15 GiB"),
            begin + ", which asked for 20.00 MiB");
  for (const char* unknown :
       {"CUDA error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
        "`cublasCreate(handle)`",
        "CUDA out of memory. Tried to allocate "}) {
    EXPECT_EQ(message(unknown), begin) << unknown;
  }
}

// A full disk has the same code.
TEST(NamingOutOfMemoryTest, IsToldFromWhatElseIsExhausted) {
  EXPECT_TRUE(IsOutOfMemory(StatusOf([]() -> int { throw std::bad_alloc(); })));
  EXPECT_FALSE(IsOutOfMemory(absl::ResourceExhaustedError("the disk is full")));
  EXPECT_FALSE(IsOutOfMemory(absl::OkStatus()));
}

TEST(NamingOutOfMemoryTest, SaysWhichOtherLimitIsReached) {
  EXPECT_EQ(
      StatusOf([]() -> int { throw LimitReached("too many steps"); }),
      absl::ResourceExhaustedError("too many steps, while counting to three"));
}

TEST(NamingOutOfMemoryTest, PassesEverythingElse) {
  EXPECT_TRUE(StatusOf([] { return 3; }).ok());
  EXPECT_EQ(StatusOf([]() -> absl::StatusOr<int> {
              return absl::NotFoundError("no three");
            }),
            absl::NotFoundError("no three"));
  EXPECT_THROW(StatusOf([]() -> int {
                 throw std::runtime_error("three");
               }).IgnoreError(),
               std::runtime_error);
}

// Arrays of arrays take thirty times the memory of their text, and the
// library's destructor needs more to take them down.
TEST(NamingOutOfMemoryDeathTest, ReadsNoJsonThatIsTooLargeForTheMemory) {
  if (kSanitized) {
    GTEST_SKIP() << "a sanitizer reserves more addresses than can be allowed";
  }
  TemporaryDirectory directory;
  std::string text = "[";
  for (int i = 0; i < 4000000; ++i) {
    text += "[[]],";
  }
  text += "[]]";
  const std::string path = directory.Write("large.json", text);
  const auto read = [&path] {
    const struct rlimit limit = {size_t{400} << 20, size_t{400} << 20};
    setrlimit(RLIMIT_AS, &limit);
    std::cerr << ReadJsonFile(path).status() << std::endl;
    _exit(0);
  };
  EXPECT_EXIT(read(), testing::ExitedWithCode(0),
              "out of memory while reading .*large.json");
}

}  // namespace
}  // namespace etc
