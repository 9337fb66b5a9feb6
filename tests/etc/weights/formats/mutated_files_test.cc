// Damaged files of every format of weights: 20,000 and more for each reader (a
// fifth of them without a sanitizer), each a small valid file with a few random
// changes, some with corrected checksums so that the damage gets past them. The
// answer must be a status or tensors that can be read; the sanitizers see that
// nothing is read out of bounds, and memory stays bounded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "etc/weights/formats/pytorch/pytorch_file.h"
#include "etc/weights/formats/safetensors/safetensors.h"
#include "etc/weights/formats/tensor_writer.h"
#include "etc/weights/formats/tensorflow/tensorflow_checkpoint.h"
#include "tests/support/mutation.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/torch_save_samples.h"

namespace etc {
namespace {

constexpr int kFiles = RoundsOfDamage(20'000);
// The readers' own limits allow hundreds of megabytes, but only to files that
// are large themselves; these have a kilobyte.
constexpr uint64_t kMostMemory = uint64_t{64} << 20;

// A file in memory, for speed, that is rewritten for each case.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("mutated", 0)) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }

  std::string path() const {
    return absl::StrCat("/proc/self/fd/", descriptor_);
  }
  void Write(const std::string& bytes) {
    ASSERT_EQ(ftruncate(descriptor_, 0), 0);
    ASSERT_EQ(pwrite(descriptor_, bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  int descriptor_;
};

// Counts of files opened and refused, and of tensors read.
struct Outcome {
  int opened = 0;
  int refused = 0;
  int read = 0;
};

// Reads every tensor of up to a megabyte. Its status is any; what must hold is
// that a shape is there and that reading stays within it.
void ReadAll(const TensorSource& source, Outcome* outcome) {
  ++outcome->opened;
  for (const std::string& name : source.names()) {
    const auto info = source.Find(name);
    ASSERT_TRUE(info.ok()) << info.status();
    const auto bytes = SafetensorsDataBytes((*info)->dtype, (*info)->shape);
    if (!bytes.ok() || *bytes > (1 << 20)) {
      continue;
    }
    std::string data(*bytes, '\0');
    outcome->read += source.Read(name, data.data(), *bytes).ok();
  }
}

template <typename File>
void OpenAndRead(const std::string& path, Outcome* outcome) {
  const auto file = File::Open(path);
  if (file.ok()) {
    ReadAll(*file, outcome);
    return;
  }
  ++outcome->refused;
  // No message without the name of the file.
  EXPECT_NE(file.status().message().find(path), absl::string_view::npos)
      << file.status();
}

// Both must happen often, or the damage is of the wrong kind.
void CheckOutcome(const Outcome& outcome, uint64_t memory_before) {
  EXPECT_GE(outcome.opened + outcome.refused, kFiles);
  EXPECT_GT(outcome.opened, kFiles / 200);
  EXPECT_GT(outcome.refused, kFiles / 10);
  EXPECT_GT(outcome.read, kFiles / 200);
  EXPECT_LT(PeakMemoryBytes(), memory_before + kMostMemory);
}

// Writes true checksums over the blocks of a table that a footer finds.
void FixChecksums(std::string* table) {
  if (table->size() < 48) {
    return;
  }
  ByteReader footer(absl::string_view(*table).substr(table->size() - 48));
  for (int i = 0; i < 2; ++i) {
    const auto offset = footer.TakeVarint64();
    const auto size = footer.TakeVarint64();
    if (!offset || !size || *offset > table->size() ||
        *size > table->size() - *offset ||
        table->size() - *offset - *size < 5) {
      return;
    }
    const auto fix = [&](uint64_t begin, uint64_t bytes) {
      const uint32_t crc = MaskCrc32c(
          ExtendCrc32c(0, absl::string_view(*table).substr(begin, bytes + 1)));
      std::memcpy(table->data() + begin + bytes + 1, &crc, sizeof(crc));
    };
    fix(*offset, *size);
    // Before the metaindex block there is the only data block.
    if (i == 0 && *offset >= 5) {
      fix(0, *offset - 5);
    }
  }
}

TEST(MutatedFilesTest, TensorFlow) {
  TemporaryDirectory directory;
  const std::string prefix = directory.File("m");
  const auto tensor = [](const std::string& name, std::vector<int64_t> shape,
                         size_t bytes) {
    return TensorToWrite{name, "F32", std::move(shape),
                         [bytes](const WriteFunction& write) {
                           return write(std::string(bytes, '\x3f'));
                         }};
  };
  ASSERT_TRUE(
      WriteTensorFlowCheckpoint(
          prefix, {tensor("layer_0/kernel", {2, 3}, 24),
                   tensor("layer_0/bias", {3}, 12), tensor("step", {}, 4)})
          .ok());
  const std::string index = *ReadFile(prefix + ".index");
  const std::string data = *ReadFile(prefix + ".data-00000-of-00001");
  Mutator mutator(1);
  MemoryFile index_file;
  MemoryFile data_file;
  const std::string damaged = directory.File("damaged");
  std::filesystem::create_symlink(index_file.path(), damaged + ".index");
  std::filesystem::create_symlink(data_file.path(),
                                  damaged + ".data-00000-of-00001");
  Outcome outcome;
  const uint64_t memory = PeakMemoryBytes();
  for (int i = 0; i < kFiles; ++i) {
    std::string changed = i % 16 == 0 ? index : mutator.Mutate(index);
    if (i % 4 != 1) {
      FixChecksums(&changed);
    }
    index_file.Write(changed);
    data_file.Write(i % 16 == 0 ? mutator.Mutate(data) : data);
    OpenAndRead<TensorFlowCheckpoint>(damaged, &outcome);
  }
  CheckOutcome(outcome, memory);
}

TEST(MutatedFilesTest, Safetensors) {
  TemporaryDirectory directory;
  const std::string path = directory.File("m");
  const auto tensor = [](const std::string& name, const std::string& dtype,
                         std::vector<int64_t> shape, size_t bytes) {
    return TensorToWrite{name, dtype, std::move(shape),
                         [bytes](const WriteFunction& write) {
                           return write(std::string(bytes, '\x3f'));
                         }};
  };
  ASSERT_TRUE(WriteSafetensors(
                  path,
                  {tensor("kernel", "F32", {2, 3}, 24),
                   tensor("bias", "F16", {3}, 6), tensor("step", "I64", {}, 8)},
                  {{"format", "pt"}})
                  .ok());
  const std::string valid = *ReadFile(path);
  Mutator mutator(2);
  MemoryFile file;
  Outcome outcome;
  const uint64_t memory = PeakMemoryBytes();
  for (int i = 0; i < kFiles; ++i) {
    file.Write(mutator.Mutate(
        valid, {"{", "}", "[", "]", "\"", ",", ":", "-1", "1e9", "null", "\\u",
                "18446744073709551615", "9223372036854775807", "[[[[[[[["}));
    OpenAndRead<SafetensorsFile>(file.path(), &outcome);
  }
  CheckOutcome(outcome, memory);
}

const std::vector<std::string>& PickleDictionary() {
  static const auto* const words =
      new std::vector<std::string>({"(",
                                    ")",
                                    ".",
                                    "N",
                                    "R",
                                    "Q",
                                    "b",
                                    "a",
                                    "e",
                                    "s",
                                    "u",
                                    "t",
                                    "]",
                                    "}",
                                    "\x85",
                                    "\x86",
                                    "\x87",
                                    "\x94",
                                    "K\1",
                                    "q\1",
                                    "h\1",
                                    "h\2",
                                    "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
                                    "J\xff\xff\xff\xff",
                                    "X\xff\xff\xff\xff",
                                    "cos\nsystem\n"});
  return *words;
}

TEST(MutatedFilesTest, PytorchArchive) {
  Mutator mutator(3);
  MemoryFile file;
  Outcome outcome;
  const uint64_t memory = PeakMemoryBytes();
  const std::string pickles[] = {StateDictPickle(), StateDictPickle4()};
  const std::string zip = ZipBytes(StateDictFiles());
  for (int i = 0; i < kFiles; ++i) {
    // The pickle within a sound archive, or the archive itself.
    file.Write(i % 2 == 0
                   ? ZipBytes(StateDictFiles(mutator.Mutate(
                         pickles[i / 2 % 2], PickleDictionary())))
                   : mutator.Mutate(zip, {"PK\1\2", "PK\3\4", "PK\5\6"}));
    OpenAndRead<PytorchFile>(file.path(), &outcome);
  }
  CheckOutcome(outcome, memory);
}

TEST(MutatedFilesTest, PytorchStream) {
  Mutator mutator(4);
  MemoryFile file;
  Outcome outcome;
  const uint64_t memory = PeakMemoryBytes();
  const std::string stream = StateDictStream();
  for (int i = 0; i < kFiles; ++i) {
    file.Write(mutator.Mutate(stream, PickleDictionary()));
    OpenAndRead<PytorchFile>(file.path(), &outcome);
  }
  CheckOutcome(outcome, memory);
}

}  // namespace
}  // namespace etc
