// Checkpoints: what is written is read back to the bit, conversions of exact
// values are exact, and a load that fails, or a writer that is killed, changes
// nothing.

#include "etc/weights/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <thread>

#include "base/file.h"
#include "etc/weights/formats/tensor_writer.h"
#include "etc/weights/weights.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Parameters, buffers of several dtypes and a module within.
struct SmallModuleImpl : torch::nn::Module {
  SmallModuleImpl() {
    linear = register_module("linear", torch::nn::Linear(3, 2));
    norm = register_module("norm", torch::nn::BatchNorm1d(2));
  }
  torch::nn::Linear linear = nullptr;
  torch::nn::BatchNorm1d norm = nullptr;
};
TORCH_MODULE(SmallModule);

NamedTensors Copies(const NamedTensors& tensors) {
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) {
    copies[name] = tensor.detach().clone();
  }
  return copies;
}

void ExpectEqual(const NamedTensors& actual, const NamedTensors& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(actual.contains(name)) << name;
    EXPECT_EQ(actual.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(actual.at(name).equal(tensor)) << name;
  }
}

TensorReader Written(const std::string& path, const NamedTensors& tensors,
                     const std::map<std::string, std::string>& metadata = {}) {
  const absl::Status status = WriteTensors(path, tensors, metadata);
  EXPECT_TRUE(status.ok()) << status;
  auto reader = TensorReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return *reader;
}

// One tensor "t" of that dtype and shape, with these bytes.
TensorReader WrittenBytes(const std::string& path, const std::string& dtype,
                          const std::vector<int64_t>& shape,
                          const std::string& data) {
  const absl::Status status = WriteSafetensors(
      path,
      {{"t", dtype, shape,
        [&](const WriteFunction& write) { return write(data); }}},
      {});
  EXPECT_TRUE(status.ok()) << status;
  return *TensorReader::Open(path);
}

TEST(ModuleTensorsTest, NamesParametersAndBuffersAndSharesThem) {
  SmallModule module;
  const NamedTensors tensors = ModuleTensors(*module, "encoder.");
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
  }
  EXPECT_THAT(
      names,
      ElementsAre("encoder.linear.bias", "encoder.linear.weight",
                  "encoder.norm.bias", "encoder.norm.num_batches_tracked",
                  "encoder.norm.running_mean", "encoder.norm.running_var",
                  "encoder.norm.weight"));
  EXPECT_EQ(tensors.at("encoder.linear.weight").data_ptr(),
            module->linear->weight.data_ptr());
}

TEST(WriteTensorsTest, KeepsEveryDtypeToTheBit) {
  torch::manual_seed(1);
  const TemporaryDirectory directory;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  NamedTensors tensors;
  for (const auto type :
       {torch::kFloat32, torch::kFloat16, torch::kBFloat16, torch::kFloat64,
        torch::kInt64, torch::kInt32, torch::kInt16, torch::kInt8,
        torch::kUInt8, torch::kBool}) {
    tensors[torch::toString(type)] =
        (torch::rand({3, 5, 2}) * 100 - 50).to(type);
  }
  tensors["scalar"] = torch::tensor(2.5);
  tensors["empty"] = torch::zeros({4, 0, 3}, torch::kInt64);
  tensors["extreme"] = torch::tensor(
      {std::numeric_limits<double>::infinity(), -0.0, 5e-324}, torch::kFloat64);
  const TensorReader reader =
      Written(directory.File("f"), tensors, {{"step", "7"}});
  EXPECT_EQ(reader.metadata().at("step"), "7");
  NamedTensors read;
  for (const std::string& name : reader.Names()) {
    read[name] = *reader.Read(name);
    EXPECT_EQ(*reader.Shape(name), tensors.at(name).sizes().vec());
  }
  ExpectEqual(read, tensors);

  const TensorReader nans =
      Written(directory.File("g"), {{"t", torch::full({2}, nan)}});
  EXPECT_TRUE(nans.Read("t")->isnan().all().item<bool>());
}

TEST(WriteTensorsTest, WritesStridedTensorsInRowMajorOrder) {
  const TemporaryDirectory directory;
  const torch::Tensor matrix = torch::arange(12.0).reshape({3, 4});
  const NamedTensors tensors = {
      {"column", matrix.select(1, 2)},
      {"expanded", matrix.slice(0, 0, 1).expand({5, 4})},
      {"grad", matrix.clone().requires_grad_()},
      {"transposed", matrix.t()}};
  const TensorReader reader = Written(directory.File("f"), tensors);
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(reader.Read(name)->equal(tensor)) << name;
  }
}

// doc/formats.md 1.5.
TEST(WriteTensorsTest, WritesTheBytesOfTheSpecification) {
  const TemporaryDirectory directory;
  const NamedTensors tensors = {
      {"b", torch::tensor({1.0f, 2.0f})},
      {"a", torch::tensor({{1.0f, -2.0f, 0.5f}}).to(torch::kFloat16)}};
  Written(directory.File("f"), tensors, {{"format", "pt"}});
  const std::string bytes = *ReadFile(directory.File("f"));
  ASSERT_EQ(bytes.size(), 166u);
  EXPECT_EQ(bytes.substr(152),
            std::string("\0\0\x80\x3f\0\0\0\x40\0\x3c\0\xc0\0\x38", 14));
}

TEST(WriteTensorsTest, RefusesWhatNoCheckpointHolds) {
  const TemporaryDirectory directory;
  const absl::Status status =
      WriteTensors(directory.File("f"),
                   {{"t", torch::zeros({2}, torch::kComplexFloat)}}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("\"t\" is of dtype ComplexFloat"));
  EXPECT_THROW((void)WriteTensors(directory.File("f"), {{"t", {}}}, {}),
               c10::Error);
  EXPECT_FALSE(std::filesystem::exists(directory.File("f")));
}

TEST(TensorReaderTest, SaysWhatItCannotRead) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("f");
  struct Case {
    std::string dtype;
    std::vector<int64_t> shape;
    std::string data;
    std::string message;
  };
  const int64_t large = int64_t{1} << 62;
  for (const Case& refused :
       std::vector<Case>{{"F8_E4M3", {1}, "x", "is of dtype F8_E4M3"},
                         {"C64", {0}, "", "is of dtype C64"},
                         {"BOOL", {2}, "\1\2", "element 1 is neither 0 nor 1"},
                         {"F32", {0, large, 4}, "", "too large a shape"}}) {
    const TensorReader reader =
        WrittenBytes(path, refused.dtype, refused.shape, refused.data);
    const absl::Status status = reader.Read("t").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr(path + ": tensor \"t\""), HasSubstr(refused.message)));
    EXPECT_EQ(*reader.Shape("t"), refused.shape);
  }
  const TensorReader reader = WrittenBytes(path, "U8", {1}, "x");
  EXPECT_EQ(reader.Read("u").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(reader.Shape("u").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(TensorReader::Open(directory.File("none")).status().code(),
            absl::StatusCode::kNotFound);
}

// torch::save writes code beside the tensors, and compresses it.
TEST(TensorReaderTest, SaysHowToReadAFileOfTorchSaveInCpp) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("module.pt");
  torch::save(SmallModule(), path);
  const absl::Status status = TensorReader::Open(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(path + ": is a TorchScript archive"),
                    HasSubstr("torch::load"), HasSubstr("WriteTensors")));
}

TEST(LoadTensorsTest, RestoresAModule) {
  torch::manual_seed(2);
  const TemporaryDirectory directory;
  SmallModule source;
  SmallModule destination;
  source->norm->running_mean.fill_(3);
  source->norm->num_batches_tracked.fill_(11);
  const TensorReader reader =
      Written(directory.File("model.safetensors"), ModuleTensors(*source));
  const torch::Tensor weight = destination->linear->weight;
  const auto report = LoadTensors(*TensorReader::Open(directory.path()),
                                  ModuleTensors(*destination));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->loaded, reader.Names());
  EXPECT_THAT(report->missing, IsEmpty());
  EXPECT_THAT(report->unexpected, IsEmpty());
  EXPECT_THAT(report->converted, IsEmpty());
  ExpectEqual(ModuleTensors(*destination), ModuleTensors(*source));
  // In place: whoever holds the parameters, an optimizer say, sees the change.
  EXPECT_TRUE(weight.equal(source->linear->weight));
  EXPECT_TRUE(weight.requires_grad() && weight.is_leaf());
}

TEST(LoadTensorsTest, ConvertsBetweenFloatingDtypesAndSaysSo) {
  const TemporaryDirectory directory;
  // Each is exact in every dtype.
  const torch::Tensor values = torch::tensor({0.0, -1.5, 240.0, 0.0625});
  const NamedTensors stored = {{"a", values.to(torch::kFloat16)},
                               {"b", values.to(torch::kBFloat16)},
                               {"c", values.to(torch::kFloat64)},
                               {"d", values.to(torch::kFloat32)}};
  NamedTensors destination;
  for (const auto& [name, tensor] : stored) {
    destination[name] = torch::ones({4});
  }
  const auto report =
      LoadTensors(Written(directory.File("f"), stored), destination);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->converted, ElementsAre("a", "b", "c"));
  for (const auto& [name, tensor] : destination) {
    EXPECT_TRUE(tensor.equal(values.to(torch::kFloat32))) << name;
  }
}

TEST(LoadTensorsTest, ReportsWhatOnlyOneSideHas) {
  const TemporaryDirectory directory;
  const TensorReader reader =
      Written(directory.File("f"),
              {{"both", torch::ones({2})}, {"file", torch::ones({1})}});
  const NamedTensors destination = {{"both", torch::zeros({2})},
                                    {"here", torch::zeros({3})}};
  const auto report = LoadTensors(reader, destination);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->loaded, ElementsAre("both"));
  EXPECT_THAT(report->missing, ElementsAre("here"));
  EXPECT_THAT(report->unexpected, ElementsAre("file"));
  EXPECT_TRUE(destination.at("both").equal(torch::ones({2})));
  EXPECT_TRUE(destination.at("here").equal(torch::zeros({3})));
}

TEST(LoadTensorsTest, FindsTiedTensors) {
  const TemporaryDirectory directory;
  const TensorReader reader = Written(
      directory.File("f"), {{"kept", torch::ones({2})}}, {{"tied", "kept"}});
  const NamedTensors destination = {{"tied", torch::zeros({2})}};
  const auto report = LoadTensors(reader, destination);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->loaded, ElementsAre("tied"));
  EXPECT_THAT(report->unexpected, IsEmpty());
  EXPECT_TRUE(destination.at("tied").equal(torch::ones({2})));
}

TEST(LoadTensorsTest, LeavesEverythingAsItWasWhenOneTensorDoesNotFit) {
  const TemporaryDirectory directory;
  const NamedTensors destination = {{"a", torch::zeros({2, 3})},
                                    {"b", torch::zeros({2, 3})},
                                    {"n", torch::zeros({2}, torch::kInt64)}};
  const torch::Tensor ones = torch::ones({2, 3});
  struct Case {
    NamedTensors stored;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{{"a", ones}, {"b", ones.t()}},
       "tensor \"b\" should be [2, 3], but is [3, 2]"},
      {{{"a", ones}, {"b", ones.flatten()}},
       "\"b\" should be [2, 3], but is [6]"},
      {{{"a", ones}, {"b", ones.to(torch::kInt64)}},
       "\"b\" should be F32, but is I64"},
      {{{"a", ones}, {"b", ones.to(torch::kBool)}},
       "\"b\" should be F32, but is BOOL"},
      {{{"a", ones}, {"n", torch::ones({2})}},
       "\"n\" should be I64, but is F32"},
      {{{"a", ones}, {"n", torch::ones({2}, torch::kInt32)}},
       "\"n\" should be I64, but is I32"},
      {{{"a", ones.t()}, {"n", torch::ones({2})}},
       "\"a\" should be [2, 3], but is [3, 2]; \"n\" should be I64"}};
  for (const Case& bad : cases) {
    const NamedTensors before = Copies(destination);
    const TensorReader reader = Written(directory.File("f"), bad.stored);
    const absl::Status status = LoadTensors(reader, destination).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(reader.path()), HasSubstr(bad.message)));
    ExpectEqual(destination, before);
  }
}

TEST(LoadTensorsTest, LeavesEverythingAsItWasWhenTheFileCannotBeRead) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("f");
  const NamedTensors destination = {{"a", torch::zeros({100})},
                                    {"b", torch::zeros({100})}};
  const NamedTensors before = Copies(destination);
  const TensorReader reader =
      Written(path, {{"a", torch::ones({100})}, {"b", torch::ones({100})}});
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 4);
  EXPECT_EQ(LoadTensors(reader, destination).status().code(),
            absl::StatusCode::kDataLoss);
  ExpectEqual(destination, before);
}

TEST(LoadTensorsTest, LeavesEverythingAsItWasWhenNamesAreMissing) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("f");
  const TensorReader reader =
      Written(path, {{"a", torch::ones({2})}, {"x", torch::ones({2})}});
  const torch::Tensor zeros = torch::zeros({2});
  const struct {
    NamedTensors destination;
    NameMatch match;
    std::string message;
  } cases[] = {
      {{{"a", zeros}, {"b", zeros}}, NameMatch::kDestination, " lacks b"},
      {{{"a", zeros}, {"b", zeros}}, NameMatch::kBoth, " lacks b"},
      {{{"a", zeros}},
       NameMatch::kBoth,
       " has tensors that the model does not: x"}};
  for (const auto& [destination, match, message] : cases) {
    const absl::Status status =
        LoadTensors(reader, destination, match).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), path + message);
    EXPECT_TRUE(zeros.equal(torch::zeros({2})));
  }
  ASSERT_TRUE(
      LoadTensors(reader, {{"a", zeros}}, NameMatch::kDestination).ok());
  EXPECT_TRUE(zeros.equal(torch::ones({2})));
}

TEST(LoadTensorsTest, NamesTheFirstFewOfManyMissing) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("f");
  const TensorReader reader = Written(path, {});
  NamedTensors destination;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) {
    destination[name] = torch::zeros({1});
  }
  EXPECT_EQ(
      LoadTensors(reader, destination, NameMatch::kBoth).status().message(),
      path + " lacks a, b, c, d, e and 2 more");
}

// --- Copies from one name to another ----------------------------------------

TEST(CopyTensorsTest, TransposesAndPicksRows) {
  const TemporaryDirectory directory;
  const torch::Tensor matrix = torch::arange(6.0).reshape({3, 2});
  const TensorReader reader = Written(
      directory.File("f"), {{"m", matrix}, {"v", torch::tensor({7.0, 8.0})}});
  const NamedTensors destination = {{"same", torch::zeros({3, 2})},
                                    {"turned", torch::zeros({2, 3})},
                                    {"rows", torch::full({4, 2}, -1.0)},
                                    {"vector", torch::zeros({2})},
                                    {"other", torch::zeros({5})}};
  const absl::Status status =
      CopyTensors(reader,
                  {{.source = "m", .target = "same"},
                   {.source = "m", .target = "turned", .transpose = true},
                   {.source = "m", .target = "rows", .rows = {2, -1, 0, 2}},
                   {.source = "v", .target = "vector"}},
                  destination);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(destination.at("same").equal(matrix.to(torch::kFloat32)));
  EXPECT_TRUE(destination.at("turned").equal(matrix.t()));
  EXPECT_TRUE(destination.at("rows").equal(
      torch::tensor({{4.0, 5.0}, {-1.0, -1.0}, {0.0, 1.0}, {4.0, 5.0}})));
  EXPECT_TRUE(destination.at("vector").equal(torch::tensor({7.0, 8.0})));
  EXPECT_TRUE(destination.at("other").equal(torch::zeros({5})));
}

TEST(CopyTensorsTest, LeavesEverythingAsItWasWhenOneCopyDoesNotFit) {
  const TemporaryDirectory directory;
  const TensorReader reader =
      Written(directory.File("f"), {{"fits", torch::ones({2})},
                                    {"m", torch::ones({3, 2})},
                                    {"scalar", torch::tensor(1.0)},
                                    {"n", torch::ones({3, 2}, torch::kInt64)}});
  const NamedTensors destination = {{"fits", torch::zeros({2})},
                                    {"t", torch::zeros({3, 2})},
                                    {"square", torch::zeros({3, 3})}};
  const struct {
    TensorCopy copy;
    std::string message;
  } cases[] = {
      {{.source = "m", .target = "t", .transpose = true},
       "\"m\" should be [2, 3], but is [3, 2]"},
      {{.source = "m", .target = "square"},
       "\"m\" should be [3, 3], but is [3, 2]"},
      {{.source = "m", .target = "t", .rows = {0, 1, 3}},
       "\"m\" should have a row 3, but has 3 rows"},
      {{.source = "m", .target = "square", .rows = {0, 1, 2}},
       "\"m\" should be [3, 3], but is [3, 2]"},
      {{.source = "scalar", .target = "t", .rows = {0, 0, 0}},
       "\"scalar\" should be [3, 2], but is []"},
      {{.source = "n", .target = "t"}, "\"n\" should be F32, but is I64"},
      {{.source = "absent", .target = "t"}, "no tensor \"absent\""}};
  for (const auto& [copy, message] : cases) {
    const absl::Status status = CopyTensors(
        reader, {{.source = "fits", .target = "fits"}, copy}, destination);
    EXPECT_EQ(status.code(), copy.source == "absent"
                                 ? absl::StatusCode::kNotFound
                                 : absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(reader.path()), HasSubstr(message)));
    for (const auto& [name, tensor] : destination) {
      EXPECT_FALSE(tensor.any().item<bool>()) << name << ", " << message;
    }
  }
  // Errors that only a wrong caller can cause.
  EXPECT_THROW((void)CopyTensors(reader, {{.source = "m", .target = "none"}},
                                 destination),
               c10::Error);
  EXPECT_THROW(
      (void)CopyTensors(reader, {{.source = "m", .target = "t", .rows = {0}}},
                        destination),
      c10::Error);
}

TEST(CopyTensorsTest, ReadsATensorThatIsCopiedTwiceOnce) {
  // Counts the reads.
  class OneTensor : public TensorSource {
   public:
    OneTensor() : TensorSource("memory") { AddName("t"); }
    absl::StatusOr<const TensorInfo*> Find(
        const std::string& /*name*/) const override {
      return &info_;
    }
    absl::Status Read(const std::string& /*name*/, char* destination,
                      uint64_t size) const override {
      ++reads;
      std::fill_n(destination, size, '\1');
      return absl::OkStatus();
    }
    mutable int reads = 0;

   private:
    TensorInfo info_ = {"U8", {3}};
  };
  const auto source = std::make_shared<OneTensor>();
  const NamedTensors destination = {{"a", torch::zeros({3}, torch::kUInt8)},
                                    {"b", torch::zeros({3}, torch::kUInt8)}};
  ASSERT_TRUE(CopyTensors(TensorReader(source),
                          {{.source = "t", .target = "a"},
                           {.source = "t", .target = "b"}},
                          destination)
                  .ok());
  EXPECT_EQ(source->reads, 1);
  EXPECT_TRUE(destination.at("a").equal(torch::ones({3}, torch::kUInt8)));
  EXPECT_TRUE(destination.at("b").equal(torch::ones({3}, torch::kUInt8)));
}

// A child writes two models over each other without end and is killed at random
// moments. The file left behind must be one of the two, whole.
TEST(WriteTensorsTest, AKilledWriterLeavesAWholeCheckpoint) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("model.safetensors");
  std::vector<NamedTensors> models(2);
  for (const int i : {0, 1}) {
    for (const char* name : {"a", "b", "c"}) {
      models[i][name] = torch::full({1 << 18}, i);
    }
  }
  Written(path, models[0], {{"model", "0"}});
  std::mt19937 random(21);
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 1;; i = 1 - i) {
        if (!WriteTensors(path, models[i], {{"model", std::to_string(i)}})
                 .ok()) {
          _exit(1);
        }
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(
        std::uniform_int_distribution<int>(1000, 60000)(random)));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int exit_status = 0;
    ASSERT_EQ(waitpid(child, &exit_status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(exit_status));

    const auto reader = TensorReader::Open(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const NamedTensors& expected =
        models[reader->metadata().at("model") == "1" ? 1 : 0];
    for (const std::string& name : reader->Names()) {
      EXPECT_TRUE(reader->Read(name)->equal(expected.at(name))) << name;
    }
    EXPECT_EQ(reader->Names().size(), 3u);
  }
}

TEST(CheckFiniteTest, KnowsEveryFloatingType) {
  for (const torch::ScalarType type :
       {torch::kFloat16, torch::kBFloat16, torch::kFloat32, torch::kFloat64}) {
    torch::Tensor tensor = torch::ones({3}, type);
    EXPECT_TRUE(CheckFinite("f", {{"t", tensor}}).ok()) << type;
    for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      tensor[1] = bad;
      EXPECT_THAT(CheckFinite("f", {{"t", tensor}}).ToString(),
                  testing::HasSubstr("f: tensor \"t\" should have finite "
                                     "elements, but 1 of its 3"))
          << type;
    }
  }
  EXPECT_TRUE(CheckFinite("f", {{"t", torch::ones({2}, torch::kInt64)}}).ok());
}

}  // namespace
}  // namespace etc
