// The restricted pickle machine (doc/formats.md 6.4) with the globals of
// torch.save: the result of each allowed opcode, every other opcode and
// callable refused, and limits kept.

#include "etc/weights/formats/pytorch/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "etc/weights/formats/pytorch/pytorch_state.h"
#include "tests/support/torch_save_samples.h"

namespace etc {
namespace {

using testing::HasSubstr;
using Kind = PickleValue::Kind;

// A text that shows a value.
std::string Show(const PickleValue& value) {
  std::vector<std::string> items;
  for (const PickleValue* item : value.items) {
    items.push_back(Show(*item));
  }
  std::string all;
  for (const std::string& item : items) {
    absl::StrAppend(&all, all.empty() ? "" : " ", item);
  }
  switch (value.kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.integer != 0 ? "True" : "False";
    case Kind::kInteger:
      return absl::StrCat(value.integer);
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return absl::StrCat("'", value.text, "'");
    case Kind::kTuple:
      return absl::StrCat("(", all, ")");
    case Kind::kList:
      return absl::StrCat("[", all, "]");
    case Kind::kDict:
      return absl::StrCat("{", all, "}");
    case Kind::kOrderedDict:
      return absl::StrCat("od{", all, "}");
    case Kind::kGlobal:
      return value.text;
    case Kind::kStorage:
      return absl::StrCat("storage(", all, ")");
    case Kind::kTensor:
      return absl::StrCat("tensor(", all, ")");
    case Kind::kOpaque:
      return absl::StrCat("<", value.text, ">");
  }
  return "?";
}

std::string Unpickled(const std::string& bytes,
                      const PickleLimits& limits = {}) {
  const auto pickle = ReadPytorchPickle(bytes, limits);
  return pickle.ok() ? Show(*pickle->root) : pickle.status().ToString();
}

std::string UnpickledHex(const std::string& hex) {
  return Unpickled(absl::HexStringToBytes(hex));
}

TEST(PickleTest, RunsEveryAllowedOpcode) {
  EXPECT_EQ(UnpickledHex("8005"
                         "95ffffffffffffffff"
                         "4e2e"),
            "None");
  EXPECT_EQ(UnpickledHex("284bff4d01024affffffff"
                         "88894e742e"),
            "(255 513 -1 True False None)");
  EXPECT_EQ(UnpickledHex("288a008a01ff8a0201008a080000000000000080742e"),
            "(0 -1 1 -9223372036854775808)");
  EXPECT_EQ(UnpickledHex("473ff00000000000002e"), "float");
  EXPECT_EQ(UnpickledHex("28580200000063c3"
                         "2e")
                .find("INVALID"),
            0);
  EXPECT_EQ(UnpickledHex("285801000000618c01628d010000000000000063742e"),
            "('a' 'b' 'c')");
  EXPECT_EQ(UnpickledHex("29"
                         "85"
                         "2e"),
            "(())");
  EXPECT_EQ(UnpickledHex("4b014b02862e"), "(1 2)");
  EXPECT_EQ(UnpickledHex("4b014b024b03872e"), "(1 2 3)");
  EXPECT_EQ(UnpickledHex("5d4b0161284b024b03652e"), "[1 2 3]");
  EXPECT_EQ(UnpickledHex("7d4b014b0273284b034b04752e"), "{1 2 3 4}");
  EXPECT_EQ(
      UnpickledHex("4b0571004b0672010000008868006a01000000872e").find("INV"), 0)
      << "more than one object is left";
  EXPECT_EQ(UnpickledHex("284b0571004b06720100000088946800"
                         "6a010000006802742e"),
            "(5 6 True 5 6 True)");
}

TEST(PickleTest, KnowsWhatTorchSaveWrites) {
  const std::string shown = Unpickled(StateDictPickle());
  EXPECT_EQ(shown.substr(0, shown.find(" 'w.T'")),
            "od{'w' tensor(storage('storage' torch.FloatStorage '0' 'cpu' 6) 0 "
            "(2 3) (3 1) False od{})");
  EXPECT_EQ(Unpickled(StateDictPickle4()), shown);
  EXPECT_EQ(ReadPytorchPickle(StateDictPickle() + "more")->bytes,
            StateDictPickle().size());
  // An OrderedDict made of a list of pairs, as Python 2 did.
  EXPECT_EQ(Unpickled(absl::StrCat("ccollections\nOrderedDict\n]K\1K\2\x86",
                                   "a\x85R.")),
            "od{1 2}");
}

TEST(PickleTest, RefusesEveryOtherOpcode) {
  std::set<uint8_t> allowed;
  for (const char c :
       absl::HexStringToBytes("80952e287d5d29748586876165737571729468"
                              "6a588c8d4b4d4a8a474e888963935152622e"
                              "8b555443428e968f90918192303132")) {
    allowed.insert(static_cast<uint8_t>(c));
  }
  EXPECT_EQ(allowed.size(), 51);
  for (int opcode = 0; opcode < 256; ++opcode) {
    const std::string result = Unpickled(
        std::string(1, static_cast<char>(opcode)) + std::string(20, '\0'));
    EXPECT_EQ(result.find("at byte 0: the opcode is not allowed") ==
                  std::string::npos,
              allowed.contains(static_cast<uint8_t>(opcode)))
        << opcode << ": " << result;
  }
}

// Callables are never called, so the result of an unknown one is known by its
// name only, and everything done to it is dropped.
TEST(PickleTest, KeepsOnlyTheNamesOfOtherObjects) {
  for (const auto& [bytes, shown] :
       {std::pair("cos\nsystem\n(\x8c\3rm tR.", "<os.system>"),
        std::pair("\x8c\2os\x8c\6system\x93)R.", "<os.system>"),
        std::pair("cbuiltins\neval\n.", "builtins.eval"),
        std::pair("cbuiltins\nset\n]K\1a\x85R.", "<builtins.set>"),
        std::pair("cargparse\nNamespace\n)\x81}b.", "<argparse.Namespace>"),
        std::pair("ca\nB\n)}\x92K\1K\2sK\1a(K\1e(K\1K\2u.", "<a.B>"),
        std::pair("ca\nf\n)R)R.", "<a.f>"),
        std::pair("\x8f(K\1K\2\x90.", "<set>"),
        std::pair("(K\1K\2\x91.", "<frozenset>"),
        std::pair("C\2ab.", "<bytes>"), std::pair("U\2ab.", "'ab'"),
        std::pair("U\1\xff.", "<bytes>"),
        std::pair("\x8a\x09\1\1\1\1\1\1\1\1\1.", "<int>"),
        std::pair("K\1K\2"
                  "0.",
                  "1"),
        std::pair("(K\1"
                  "2t.",
                  "(1 1)"),
        std::pair("N(K\1"
                  "1.",
                  "None"),
        // A sparse or quantized tensor as a parameter.
        std::pair("ctorch._utils\n_rebuild_parameter\nca\nf\n)RNN\x87R.",
                  "<a.f>")}) {
    EXPECT_EQ(Unpickled(bytes), shown) << bytes;
  }
}

TEST(PickleTest, ReadsTensorsWithAttributes) {
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n(K\1K\2tR";
  EXPECT_EQ(
      Unpickled(absl::StrCat("ctorch._utils\n_rebuild_parameter_with_state\n(",
                             tensor, "\x88N}tR.")),
      "tensor(1 2)");
  for (const char* module : {"torch._tensor\n_rebuild_from_type_v2",
                             "torch._tensor\n_rebuild_from_type"}) {
    EXPECT_EQ(Unpickled(absl::StrCat(
                  "c", module,
                  "\n(ctorch._utils\n_rebuild_tensor_v2\nctorch\nTensor\n"
                  "(K\1K\2t}tR.")),
              "tensor(1 2)");
    EXPECT_EQ(Unpickled(absl::StrCat(
                  "c", module, "\n(cos\nsystem\nctorch\nTensor\n(K\1t}tR.")),
              "<os.system>");
  }
}

TEST(PickleTest, RefusesCallsThatMakeNoSense) {
  for (const char* bytes :
       {"ctorch\nFloatStorage\n)R.", "K\1)R.", "ccollections\nOrderedDict\nNR.",
        "ccollections\nOrderedDict\nK\1\x85R.",
        "ccollections\nOrderedDict\n]K\1a\x85R.",
        "ctorch._utils\n_rebuild_parameter\n)R.",
        "ctorch._utils\n_rebuild_parameter\nNNN\x87R.", "}}b.", "NQ.",
        "K\1)\x81.", "cos\nsystem\nNR.", "K\1(K\1\x90."}) {
    EXPECT_EQ(Unpickled(bytes).find("INVALID_ARGUMENT"), 0) << bytes;
  }
}

TEST(PickleTest, RefusesNonsense) {
  for (const char* hex :
       {"80062e", "2e", "4b014b022e", "282e", "4b01282e", "742e", "852e",
        "28852e", "4b01852861282e", "4b014b02612e", "4b014b024b03732e",
        "7d284b01752e", "5d4b014b02732e", "68002e", "71002e", "6a000000002e",
        "8c01ff2e",
        "4b014b0193"
        "2e"}) {
    EXPECT_EQ(UnpickledHex(hex).find("INVALID_ARGUMENT"), 0)
        << hex << ": " << UnpickledHex(hex);
  }
  const std::string pickle = StateDictPickle();
  for (size_t bytes = 0; bytes < pickle.size(); ++bytes) {
    EXPECT_EQ(ReadPytorchPickle(pickle.substr(0, bytes)).status().code(),
              absl::StatusCode::kOutOfRange)
        << bytes;
  }
}

TEST(PickleTest, KeepsLimits) {
  EXPECT_THAT(Unpickled("(NNN\x85.", {.stack = 2}), HasSubstr("(limit)"));
  EXPECT_THAT(Unpickled("((((.", {.stack = 2}), HasSubstr("marks (limit)"));
  EXPECT_THAT(Unpickled(std::string("Nq\0q\1q\2.", 8), {.memo = 2}),
              HasSubstr("(limit)"));
  // A large tuple, named once, is copied again and again.
  std::string bytes = "(";
  for (int i = 0; i < 1000; ++i) {
    bytes += "N";
  }
  absl::StrAppend(&bytes, "t\x94]");
  for (int i = 0; i < 1000; ++i) {
    bytes += std::string("h\0Qa", 4);
  }
  EXPECT_THAT(Unpickled(bytes + ".", {.pushes = 100'000}),
              HasSubstr("(limit)"));
  // A long name, likewise: as that of a class, and of what it makes.
  const std::string name =
      absl::StrCat(std::string("\x58\0\0\1\0", 5), std::string(65536, 'a'));
  // And as what a parameter is made of.
  for (const char* copy : {"h\1h\1\x93"
                           "0",
                           "h\2)R0", "h\4h\3NN\x87R0"}) {
    std::string copies = absl::StrCat(
        name, "q\1h\1\x93q\2)Rq\3", "0ctorch._utils\n_rebuild_parameter\nq\4");
    for (int i = 0; i < 1000; ++i) {
      absl::StrAppend(&copies, copy);
    }
    EXPECT_THAT(Unpickled(copies + ".", {.pushes = 100'000}),
                HasSubstr("(limit)"));
  }
  // A large dictionary, as the attributes of many objects.
  std::string objects = "}q\1(";
  for (int i = 0; i < 1000; ++i) {
    objects += "NN";
  }
  objects += "uca\nB\nq\2]";
  for (int i = 0; i < 1000; ++i) {
    objects += "h\2)\x81h\1ba";
  }
  EXPECT_THAT(Unpickled(objects + ".", {.pushes = 100'000}),
              HasSubstr("(limit)"));
  // A list within itself is no danger to anyone.
  const auto circle = ReadPytorchPickle(std::string("]q\0h\0a.", 7));
  ASSERT_TRUE(circle.ok()) << circle.status();
  EXPECT_EQ(circle->root->items[0], circle->root);
}

// One long text that is named a thousand times, as values and as keys.
TEST(PytorchStateTest, OptionsHaveLittleText) {
  const std::string text =
      absl::StrCat(std::string("\x58\0\0\1\0", 5), std::string(65536, 'a'));
  for (const char* item : {"h\1", "}h\1Ns"}) {
    std::string bytes =
        absl::StrCat("}(\x8c\5model}\x8c\4args](\x8c\5first", text, "q\1");
    for (int i = 0; i < 1000; ++i) {
      bytes += item;
    }
    const auto pickle = ReadPytorchPickle(bytes + "eu.");
    ASSERT_TRUE(pickle.ok()) << pickle.status();
    const auto state = ReadPytorchState(*pickle);
    ASSERT_TRUE(state.ok()) << state.status();
    const std::string& options = state->options.at("args");
    EXPECT_EQ(options.find("[\"first\""), 0u);
    EXPECT_GT(options.size(), 500'000u);
    EXPECT_LT(options.size(), 2'000'000u);
  }
}

// A list that holds itself a hundred times, and one with a dictionary of a
// thousand unnamed entries in a thousand places.
TEST(PytorchStateTest, OptionsHaveFewValues) {
  std::string circle = "}(\x8c\5model}\x8c\4args]q\1(";
  for (int i = 0; i < 100; ++i) {
    circle += "h\1";
  }
  std::string unnamed = "}(\x8c\5model}\x8c\4args](}q\1(";
  for (int i = 0; i < 1000; ++i) {
    unnamed += "NN";
  }
  unnamed += "u";
  for (int i = 1; i < 1000; ++i) {
    unnamed += "h\1";
  }
  const std::pair<std::string, size_t> most_bytes[] = {{circle, 1'000'000},
                                                       {unnamed, 1000}};
  for (const auto& [bytes, most] : most_bytes) {
    const auto pickle = ReadPytorchPickle(bytes + "eu.");
    ASSERT_TRUE(pickle.ok()) << pickle.status();
    const auto state = ReadPytorchState(*pickle);
    ASSERT_TRUE(state.ok()) << state.status();
    const std::string& options = state->options.at("args");
    EXPECT_GT(options.size(), 100u);
    EXPECT_LT(options.size(), most);
  }
}

}  // namespace
}  // namespace etc
