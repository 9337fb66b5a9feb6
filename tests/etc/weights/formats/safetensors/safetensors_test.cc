// safetensors files (doc/formats.md 1): the worked example to the byte, one
// malformed file and more for each rule of doc/formats.md 1.4, and every
// one-byte change and every truncation of the example. Allocations are counted:
// never much more than the size of the file.

#include "etc/weights/formats/safetensors/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file_operations.h"
#include "etc/weights/formats/tensor_writer.h"
#include "tests/support/full_disk.h"
#include "tests/support/temporary_directory.h"

namespace {

// Bytes asked of operator new since the program began.
uint64_t allocated_bytes = 0;

}  // namespace

void* operator new(size_t size) {
  allocated_bytes += size;
  if (void* memory = std::malloc(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace etc {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// doc/formats.md 1.5.
std::string WorkedExample() {
  return absl::HexStringToBytes(
      "90000000000000007b225f5f6d657461"
      "646174615f5f223a7b22666f726d6174"
      "223a227074227d2c2262223a7b226474"
      "797065223a22463332222c2273686170"
      "65223a5b325d2c22646174615f6f6666"
      "73657473223a5b302c385d7d2c226122"
      "3a7b226474797065223a22463136222c"
      "227368617065223a5b312c335d2c2264"
      "6174615f6f666673657473223a5b382c"
      "31345d7d7d2020200000803f00000040"
      "003c00c00038");
}

const char kNoTensors[] = "08000000000000007b7d202020202020";

// A file with this header and so many bytes of data.
std::string FileBytes(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + header + std::string(data_bytes, '\x11');
}

std::string Entry(const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return absl::StrCat(R"({"dtype":")", dtype, R"(","shape":)", shape,
                      R"(,"data_offsets":)", offsets, "}");
}

absl::StatusOr<SafetensorsFile> OpenBytes(
    const std::string& bytes, const SafetensorsLimits& limits = {}) {
  static TemporaryDirectory directory;
  return SafetensorsFile::Open(directory.Write("f.safetensors", bytes), limits);
}

std::string ReadAll(const SafetensorsFile& file, const std::string& name) {
  const TensorInfo& info = **file.Find(name);
  std::string bytes(*SafetensorsDataBytes(info.dtype, info.shape), '\0');
  const absl::Status status = file.Read(name, bytes.data(), bytes.size());
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

TensorToWrite Tensor(const std::string& name, const std::string& dtype,
                     const std::vector<int64_t>& shape,
                     const std::string& data) {
  return {name, dtype, shape,
          [data](const WriteFunction& write) { return write(data); }};
}

TEST(SafetensorsFileTest, ReadsTheWorkedExample) {
  const auto file = OpenBytes(WorkedExample());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->metadata(), ElementsAre(Pair("format", "pt")));
  EXPECT_THAT(file->names(), ElementsAre("a", "b"));
  EXPECT_EQ(Describe(**file->Find("a")), "F16 [1, 3]");
  EXPECT_EQ(Describe(**file->Find("b")), "F32 [2]");
  EXPECT_EQ(absl::BytesToHexString(ReadAll(*file, "a")), "003c00c00038");
  EXPECT_EQ(absl::BytesToHexString(ReadAll(*file, "b")), "0000803f00000040");
}

TEST(SafetensorsFileTest, RefusesToReadWhatIsNotThereOrOfOtherSize) {
  const auto file = OpenBytes(WorkedExample());
  ASSERT_TRUE(file.ok()) << file.status();
  char bytes[16] = {};
  const absl::Status absent = file->Read("c", bytes, 8);
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(absent.message(),
              HasSubstr("no tensor \"c\" (doc/formats.md 1.4.14)"));
  for (const uint64_t size : {0, 7, 9}) {
    EXPECT_EQ(file->Read("b", bytes, size).code(),
              absl::StatusCode::kInvalidArgument)
        << size;
  }
}

TEST(SafetensorsFileTest, AcceptsWhatTheFormatAllows) {
  struct Allowed {
    const char* what;
    std::string bytes;
    size_t tensors;
  };
  const std::string u8 = Entry("U8", "[2]", "[0,2]");
  const std::vector<Allowed> cases = {
      {"two bytes of header", FileBytes("{}", 0), 0},
      {"padding of any white space", FileBytes("{} \n\t\r ", 0), 0},
      {"null metadata", FileBytes(R"({"__metadata__":null})", 0), 0},
      {"empty metadata", FileBytes(R"({"__metadata__":{}})", 0), 0},
      {"metadata last",
       FileBytes(R"({"a":)" + u8 + R"(,"__metadata__":{}})", 2), 1},
      {"scalar", FileBytes(R"({"a":)" + Entry("F64", "[]", "[0,8]") + "}", 8),
       1},
      {"empty tensors at borders",
       FileBytes(R"({"z":)" + Entry("F32", "[0]", "[2,2]") + R"(,"a":)" + u8 +
                     R"(,"y":)" + Entry("I64", "[3,0]", "[0,0]") + R"(,"x":)" +
                     Entry("I64", "[0,3]", "[0,0]") + "}",
                 2),
       4},
      {"any order, no alignment",
       FileBytes(R"({"a":)" + Entry("F32", "[1]", "[3,7]") + R"(,"b":)" +
                     Entry("U8", "[3]", "[0,3]") + "}",
                 7),
       2},
      {"fields in any order, unknown ones with anything in them",
       FileBytes(R"({"a":{"data_offsets":[0,2],"x":[1,{"y":[],"y":null}],)"
                 R"("shape":[2],"z":"s","w":-1e5,"dtype":"U8","v":{}}})",
                 2),
       1},
      {"escaped names", FileBytes(R"({"\u0061\n\"":)" + u8 + "}", 2), 1},
      {"names beyond ASCII", FileBytes(R"({"ü€😀":)" + u8 + "}", 2), 1},
      {"sub-byte types that fill bytes",
       FileBytes(R"({"a":)" + Entry("F4", "[6]", "[0,3]") + R"(,"b":)" +
                     Entry("F6_E2M3", "[4]", "[3,6]") + "}",
                 6),
       2},
  };
  for (const Allowed& allowed : cases) {
    const auto file = OpenBytes(allowed.bytes);
    ASSERT_TRUE(file.ok()) << allowed.what << ": " << file.status();
    EXPECT_EQ(file->names().size(), allowed.tensors) << allowed.what;
  }
  EXPECT_EQ(OpenBytes(cases[9].bytes)->names().front(), "a\n\"");
}

TEST(SafetensorsFileTest, KnowsTheSizeOfEveryDtype) {
  // doc/formats.md 1.2: bits of each.
  const std::map<std::string, uint64_t> bits = {
      {"BOOL", 8},    {"U8", 8},      {"I8", 8},          {"F8_E5M2", 8},
      {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
      {"I16", 16},    {"U16", 16},    {"F16", 16},        {"BF16", 16},
      {"I32", 32},    {"U32", 32},    {"F32", 32},        {"C64", 64},
      {"F64", 64},    {"I64", 64},    {"U64", 64},        {"F4", 4},
      {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  for (const auto& [dtype, width] : bits) {
    EXPECT_EQ(*SafetensorsDataBytes(dtype, {3, 8}), 3 * width) << dtype;
  }
  EXPECT_FALSE(SafetensorsDataBytes("F33", {1}).ok());
  EXPECT_FALSE(SafetensorsDataBytes("f32", {1}).ok());
  EXPECT_FALSE(SafetensorsDataBytes("", {1}).ok());
}

struct Refusal {
  std::string rule;
  std::string what;
  std::string bytes;
};

std::vector<Refusal> Refusals() {
  const auto file = [](const std::string& header, size_t data_bytes = 0) {
    return FileBytes(header, data_bytes);
  };
  const auto one = [&](const std::string& entry, size_t data_bytes = 2) {
    return file(absl::StrCat(R"({"a":)", entry, "}"), data_bytes);
  };
  const auto two = [&](const std::string& a, const std::string& b,
                       size_t data_bytes) {
    return file(absl::StrCat(R"({"a":)", a, R"(,"b":)", b, "}"), data_bytes);
  };
  const auto length = [](uint64_t value, const std::string& rest) {
    std::string bytes(sizeof(value), '\0');
    std::memcpy(bytes.data(), &value, sizeof(value));
    return bytes + rest;
  };
  const std::string u8 = Entry("U8", "[2]", "[0,2]");
  const std::string nested(63, '[');
  std::string ones;
  for (int i = 0; i < 32; ++i) {
    ones += ",1";
  }
  return {
      {"1.4.1", "empty file", ""},
      {"1.4.1", "seven bytes", std::string(7, '\0')},
      {"1.4.2", "length above the limit", length(100'000'001, "{}")},
      {"1.4.2", "largest length", length(~uint64_t{0}, "{}")},
      {"1.4.3", "length one beyond the file", length(3, "{}")},
      {"1.4.3", "length at the limit", length(100'000'000, "{}")},
      {"1.4.4", "bytes that are no UTF-8", file("{\"a\xff\":{}}")},
      {"1.4.4", "overlong form", file("{\"\xc0\xaf\":" + u8 + "}", 2)},
      {"1.4.4", "surrogate", file("{\"\xed\xa0\x80\":" + u8 + "}", 2)},
      {"1.4.5", "space first", file(" {}")},
      {"1.4.5", "array", file("[]")},
      {"1.4.5", "byte order mark", file("\xef\xbb\xbf{}")},
      {"1.4.6", "no header", file("")},
      {"1.4.6", "unclosed", file("{")},
      {"1.4.6", "trailing comma", file("{\"a\":" + u8 + ",}", 2)},
      {"1.4.6", "something behind", file("{}{}")},
      {"1.4.6", "NUL behind", file(std::string("{}\0", 3))},
      {"1.4.6", "NUL and more behind", file(std::string("{}\0{}", 5))},
      {"1.4.6", "too deep",
       one(R"({"x":)" + nested + std::string(63, ']') + "}")},
      {"1.4.7", "entry is a number", file(R"({"a":1})")},
      {"1.4.7", "entry is null", file(R"({"a":null})")},
      {"1.4.7", "entry is an array", file(R"({"a":[]})")},
      {"1.4.7", "no dtype", one(R"({"shape":[2],"data_offsets":[0,2]})")},
      {"1.4.7", "no shape", one(R"({"dtype":"U8","data_offsets":[0,2]})")},
      {"1.4.7", "no offsets", one(R"({"dtype":"U8","shape":[2]})")},
      {"1.4.7", "dtype is a number",
       one(R"({"dtype":8,"shape":[2],"data_offsets":[0,2]})")},
      {"1.4.7", "dtype is an array",
       one(R"({"dtype":["U8"],"shape":[2],"data_offsets":[0,2]})")},
      {"1.4.7", "shape is a number", one(Entry("U8", "2", "[0,2]"))},
      {"1.4.7", "shape is an object", one(Entry("U8", "{}", "[0,2]"))},
      {"1.4.7", "shape holds an array", one(Entry("U8", "[[2]]", "[0,2]"))},
      {"1.4.7", "shape holds a string", one(Entry("U8", "[\"2\"]", "[0,2]"))},
      {"1.4.7", "shape holds null", one(Entry("U8", "[null]", "[0,2]"))},
      {"1.4.7", "shape is negative", one(Entry("U8", "[-2]", "[0,2]"))},
      {"1.4.7", "minus zero", one(Entry("U8", "[-0]", "[0,0]"), 0)},
      {"1.4.7", "shape is fractional", one(Entry("U8", "[2.0]", "[0,2]"))},
      {"1.4.7", "shape has an exponent", one(Entry("U8", "[2e0]", "[0,2]"))},
      {"1.4.7", "offset is fractional", one(Entry("U8", "[2]", "[0,2.0]"))},
      {"1.4.7", "offset is true", one(Entry("U8", "[2]", "[0,true]"))},
      {"1.4.7", "offset 2^64",
       one(Entry("U8", "[2]", "[0,18446744073709551616]"))},
      {"1.4.7", "offset beyond any double",
       one(Entry("U8", "[2]", "[0,1" + std::string(400, '0') + "]"))},
      {"1.4.7", "no offset", one(Entry("U8", "[2]", "[]"))},
      {"1.4.7", "one offset", one(Entry("U8", "[2]", "[2]"))},
      {"1.4.7", "three offsets", one(Entry("U8", "[2]", "[0,2,2]"))},
      {"1.4.8", "unknown dtype", one(Entry("U9", "[2]", "[0,2]"))},
      {"1.4.8", "dtype in lower case", one(Entry("u8", "[2]", "[0,2]"))},
      {"1.4.9", "metadata are a string", file(R"({"__metadata__":"x"})")},
      {"1.4.9", "metadata are an array", file(R"({"__metadata__":[]})")},
      {"1.4.9", "metadata hold a number", file(R"({"__metadata__":{"k":1}})")},
      {"1.4.9", "metadata hold null", file(R"({"__metadata__":{"k":null}})")},
      {"1.4.9", "metadata hold an object",
       file(R"({"__metadata__":{"k":{}}})")},
      {"1.4.9", "metadata are a tensor",
       file(R"({"__metadata__":)" + u8 + "}", 2)},
      {"1.4.10", "not from 0", one(Entry("U8", "[2]", "[1,3]"), 3)},
      {"1.4.10", "hole", two(u8, Entry("U8", "[2]", "[3,5]"), 5)},
      {"1.4.10", "overlap", two(u8, Entry("U8", "[2]", "[1,3]"), 3)},
      {"1.4.10", "shared", two(u8, u8, 2)},
      {"1.4.10", "end before begin", two(u8, Entry("U8", "[2]", "[2,0]"), 2)},
      {"1.4.11", "elements overflow",
       one(Entry("U8", "[4294967296,4294967296]", "[0,2]"))},
      {"1.4.11", "elements overflow before a zero",
       one(Entry("U8", "[4294967296,4294967296,0]", "[0,0]"), 0)},
      {"1.4.11", "bytes overflow",
       one(Entry("F64", "[2305843009213693952]", "[0,2]"))},
      {"1.4.11", "dimension 2^63",
       one(Entry("U8", "[9223372036854775808]", "[0,2]"))},
      {"1.4.12", "too few bytes", one(Entry("U8", "[3]", "[0,2]"))},
      {"1.4.12", "too many bytes", one(Entry("U8", "[1]", "[0,2]"))},
      {"1.4.12", "bytes of a scalar", one(Entry("F32", "[]", "[0,2]"))},
      {"1.4.12", "bytes of an empty tensor", one(Entry("U8", "[0]", "[0,2]"))},
      {"1.4.12", "half a byte", one(Entry("F4", "[3]", "[0,2]"))},
      {"1.4.13", "data missing", one(u8, 1)},
      {"1.4.13", "data left", one(u8, 3)},
      {"1.4.13", "data of no tensor", file("{}", 1)},
      {"1.4.15", "tensor twice",
       file(absl::StrCat(R"({"a":)", u8, R"(,"a":)", u8, "}"), 2)},
      {"1.4.15", "metadata twice",
       file(R"({"__metadata__":{},"__metadata__":{}})")},
      {"1.4.15", "metadata twice, once null",
       file(R"({"__metadata__":null,"__metadata__":{}})")},
      {"1.4.15", "metadata's key twice",
       file(R"({"__metadata__":{"k":"a","k":"b"}})")},
      {"1.4.15", "dtype twice",
       one(R"({"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]})")},
      {"1.4.15", "shape twice, once escaped",
       one(R"({"dtype":"U8","shape":[2],"sh\u0061pe":[2],)"
           R"("data_offsets":[0,2]})")},
      {"1.4.15", "unknown field twice",
       one(R"({"dtype":"U8","shape":[2],"x":1,"x":2,"data_offsets":[0,2]})")},
      {"1.4.16", "33 dimensions",
       one(Entry("U8", absl::StrCat("[2", ones, "]"), "[0,2]"))},
      {"1.4.16", "name of 4097 bytes",
       file("{\"" + std::string(4097, 'x') + "\":" + u8 + "}", 2)},
      {"1.4.16", "2^40 + 1 elements",
       one(Entry("U8", "[1099511627777]", "[0,1099511627777]"))},
  };
}

TEST(SafetensorsFileTest, RefusesWhatTheFormatForbidsByItsRule) {
  for (const Refusal& refusal : Refusals()) {
    const uint64_t before = allocated_bytes;
    const auto file = OpenBytes(refusal.bytes);
    const uint64_t allocated = allocated_bytes - before;
    ASSERT_FALSE(file.ok()) << refusal.rule << ", " << refusal.what;
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(file.status().message()),
        testing::AllOf(HasSubstr("f.safetensors"),
                       EndsWith("(doc/formats.md " + refusal.rule + ")")))
        << refusal.what;
    EXPECT_LT(allocated, 100'000u) << refusal.what;
    EXPECT_LT(file.status().message().size(), 1000u) << refusal.what;
  }
}

TEST(SafetensorsFileTest, HasATestForEveryRule) {
  std::set<std::string> rules = {"1.4.14"};  // concerns Read()
  for (const Refusal& refusal : Refusals()) {
    rules.insert(refusal.rule);
  }
  EXPECT_EQ(rules.size(), 16u);
}

TEST(SafetensorsFileTest, KeepsToTheLimitsItIsGiven) {
  const std::string bytes = WorkedExample();
  EXPECT_TRUE(OpenBytes(bytes, {.header_bytes = 144}).ok());
  EXPECT_THAT(
      std::string(OpenBytes(bytes, {.header_bytes = 143}).status().message()),
      EndsWith("(doc/formats.md 1.4.2)"));
  EXPECT_TRUE(OpenBytes(bytes, {.tensors = 2}).ok());
  EXPECT_TRUE(OpenBytes(bytes, {.rank = 2, .elements = 3}).ok());
  for (const SafetensorsLimits& limits :
       {SafetensorsLimits{.tensors = 1}, SafetensorsLimits{.tensors = 0},
        SafetensorsLimits{.name_bytes = 0}, SafetensorsLimits{.rank = 1},
        SafetensorsLimits{.elements = 2}}) {
    EXPECT_THAT(std::string(OpenBytes(bytes, limits).status().message()),
                EndsWith("(doc/formats.md 1.4.16)"));
  }
}

// A file that opens all the same must hold what it says it holds.
void ExpectConsistent(const SafetensorsFile& file, uint64_t file_bytes) {
  uint64_t bytes = 0;
  for (const std::string& name : file.names()) {
    const TensorInfo& info = **file.Find(name);
    const auto expected = SafetensorsDataBytes(info.dtype, info.shape);
    ASSERT_TRUE(expected.ok());
    ASSERT_EQ(ReadAll(file, name).size(), *expected);
    bytes += *expected;
  }
  EXPECT_LE(bytes, file_bytes);
}

TEST(SafetensorsFileTest, SurvivesEveryChangeOfOneByte) {
  const std::string example = WorkedExample();
  int opened = 0;
  for (size_t i = 0; i < example.size(); ++i) {
    for (const int mask :
         {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
      std::string bytes = example;
      bytes[i] = static_cast<char>(bytes[i] ^ mask);
      const uint64_t before = allocated_bytes;
      const auto file = OpenBytes(bytes);
      EXPECT_LT(allocated_bytes - before, 100'000u) << i << " " << mask;
      if (file.ok()) {
        ++opened;
        ExpectConsistent(*file, bytes.size());
      }
    }
  }
  // At least every change of the data, which nothing checks.
  EXPECT_GE(opened, 14 * 9);
}

TEST(SafetensorsFileTest, RefusesEveryTruncation) {
  const std::string example = WorkedExample();
  for (size_t size = 0; size < example.size(); ++size) {
    EXPECT_FALSE(OpenBytes(example.substr(0, size)).ok()) << size;
  }
}

TEST(SafetensorsFileTest, KeepsNothingOfWhatItIgnores) {
  std::string ignored = "[0";
  for (int i = 0; i < 200'000; ++i) {
    ignored += ",{}";
  }
  const std::string bytes =
      FileBytes(R"({"a":{"x":)" + ignored + R"(],"dtype":"U8","shape":[0],)" +
                    R"("data_offsets":[0,0]}})",
                0);
  const uint64_t before = allocated_bytes;
  const auto file = OpenBytes(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  // The text once, and what nlohmann's lexer takes to grow its copy of it. The
  // 200 000 empty objects would be twenty times the text.
  EXPECT_LT(allocated_bytes - before, 6 * bytes.size());
}

TEST(WriteSafetensorsTest, WritesTheWorkedExampleToTheByte) {
  TemporaryDirectory directory;
  const std::string path = directory.File("f");
  const std::string bytes = WorkedExample();
  const absl::Status status =
      WriteSafetensors(path,
                       {Tensor("a", "F16", {1, 3}, bytes.substr(160)),
                        Tensor("b", "F32", {2}, bytes.substr(152, 8))},
                       {{"format", "pt"}});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(absl::BytesToHexString(*ReadFile(path)),
            absl::BytesToHexString(bytes));
}

TEST(WriteSafetensorsTest, WritesAFileWithoutTensors) {
  TemporaryDirectory directory;
  const std::string path = directory.File("f");
  ASSERT_TRUE(WriteSafetensors(path, {}, {}).ok());
  EXPECT_EQ(absl::BytesToHexString(*ReadFile(path)), kNoTensors);
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->names(), IsEmpty());
}

TEST(WriteSafetensorsTest, OrdersByDtypeThenNameAndReadsBack) {
  TemporaryDirectory directory;
  const std::string path = directory.File("f");
  const std::string name = "q\"\\\n\x01ü/€";
  ASSERT_TRUE(
      WriteSafetensors(
          path,
          {Tensor("z", "BOOL", {3}, std::string("\1\0\1", 3)),
           Tensor("b", "F32", {}, "ffff"), Tensor("a", "BF16", {1, 1}, "hh"),
           Tensor("c", "I64", {0, 4}, ""), Tensor("B", "F32", {1}, "gggg"),
           Tensor(name, "I64", {1}, "iiiiiiii")},
          {{"step", "7"}, {"ü\n", "\"v\""}})
          .ok());
  const auto bytes = ReadFile(path);
  ASSERT_TRUE(bytes.ok());
  EXPECT_THAT(*bytes, EndsWith(std::string("iiiiiiiiggggffffhh\1\0\1", 21)));
  EXPECT_EQ((bytes->size() - 21) % 8, 0u);
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->metadata(),
              ElementsAre(Pair("step", "7"), Pair("ü\n", "\"v\"")));
  EXPECT_EQ(file->names().size(), 6u);
  EXPECT_EQ(ReadAll(*file, name), "iiiiiiii");
  EXPECT_THAT((*file->Find("c"))->shape, ElementsAre(0, 4));
}

TEST(WriteSafetensorsTest, RefusesWhatNoReaderWouldTakeAndLeavesTheOldFile) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("f", "old");
  using Tensors = std::vector<TensorToWrite>;
  using Metadata = std::map<std::string, std::string>;
  struct Case {
    const char* message;
    Tensors tensors;
    Metadata metadata;
  };
  const Case cases[] = {
      {"two tensors are called \"a\"",
       {Tensor("a", "U8", {1}, "x"), Tensor("a", "F16", {1}, "xx")},
       {}},
      {"no tensor can be called", {Tensor("__metadata__", "U8", {0}, "")}, {}},
      {"no tensor can be called", {Tensor("\xff", "U8", {0}, "")}, {}},
      {"no tensor can be called",
       {Tensor(std::string(4097, 'x'), "U8", {0}, "")},
       {}},
      {"1.4.8", {Tensor("a", "X8", {1}, "x")}, {}},
      {"1.4.11", {Tensor("a", "U8", {-1}, "x")}, {}},
      {"1.4.12", {Tensor("a", "F4", {3}, "xx")}, {}},
      {"dimensions", {Tensor("a", "U8", std::vector<int64_t>(33, 1), "x")}, {}},
      {"should have 4 bytes, but 3", {Tensor("a", "F32", {1}, "xxx")}, {}},
      {"should have 4 bytes, but 5", {Tensor("a", "F32", {1}, "xxxxx")}, {}},
      {"metadata", {}, {{"k", "\xc0"}}},
      {"header", {}, {{"k", std::string(100'000'000, 'x')}}},
  };
  for (const Case& refused : cases) {
    const absl::Status status =
        WriteSafetensors(path, refused.tensors, refused.metadata);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                testing::AllOf(HasSubstr(refused.message), HasSubstr(path)));
    EXPECT_EQ(*ReadFile(path), "old") << refused.message;
  }
}

TEST(WriteSafetensorsTest, PassesOnTheErrorOfASource) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("f", "old");
  const absl::Status status =
      WriteSafetensors(path,
                       {{"a",
                         "U8",
                         {1},
                         [](const WriteFunction&) {
                           return absl::UnavailableError("device lost");
                         }}},
                       {});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("device lost"));
  EXPECT_EQ(*ReadFile(path), "old");
}

TEST(WriteSafetensorsTest, NamesTheFileOnceWhenTheDiskIsFull) {
  TemporaryDirectory directory;
  const std::string path = directory.File("f");
  FullDisk disk;
  const ScopedFileOperations scope(&disk);
  EXPECT_EQ(WriteSafetensors(path, {Tensor("a", "U8", {1}, "x")}, {}).message(),
            absl::StrCat("cannot write ", path, ": No space left on device"));
}

}  // namespace
}  // namespace etc
