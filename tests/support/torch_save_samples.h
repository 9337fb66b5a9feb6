#ifndef ETC_TESTS_SUPPORT_TORCH_SAVE_SAMPLES_H_
#define ETC_TESTS_SUPPORT_TORCH_SAVE_SAMPLES_H_

#include <zlib.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"

namespace etc {

// Output of Python's own pickler for a state dict with classes called as
// PyTorch's are: a parameter "w" [2, 3], its transpose "w.T", its second row
// "row" and a number "n", with _metadata; protocol 2.
inline std::string StateDictPickle() {
  return absl::HexStringToBytes(
      "800263636f6c6c656374696f6e730a4f726465726564446963740a7100295271"
      "0128580100000077710263746f7263682e5f7574696c730a5f72656275696c64"
      "5f706172616d657465720a710363746f7263682e5f7574696c730a5f72656275"
      "696c645f74656e736f725f76320a71042828580700000073746f726167657105"
      "63746f7263680a466c6f617453746f726167650a710658010000003071075803"
      "00000063707571084b06747109514b004b024b0386710a4b034b0186710b8968"
      "002952710c74710d52710e8868002952710f8771105271115803000000772e54"
      "71126804286809514b004b034b028671134b014b038671148968002952711574"
      "71165271175803000000726f7771186804286809514b034b038571194b018571"
      "1a8968002952711b74711c52711d58010000006e711e68042828680563746f72"
      "63680a4c6f6e6753746f726167650a711f580100000031712068084b01747121"
      "514b00292989680029527122747123527124757d712558090000005f6d657461"
      "646174617126680029527127580000000071287d712958070000007665727369"
      "6f6e712a4b01737373622e");
}

// The same with protocol 4.
inline std::string StateDictPickle4() {
  return absl::HexStringToBytes(
      "8004955e010000000000008c0b636f6c6c656374696f6e73948c0b4f72646572"
      "656444696374949394295294288c0177948c0c746f7263682e5f7574696c7394"
      "8c125f72656275696c645f706172616d6574657294939468058c125f72656275"
      "696c645f74656e736f725f763294939428288c0773746f72616765948c05746f"
      "726368948c0c466c6f617453746f726167659493948c0130948c03637075944b"
      "067494514b004b024b0386944b034b0186948968022952947494529488680229"
      "5294879452948c03772e54946809286810514b004b034b0286944b014b038694"
      "896802295294749452948c03726f77946809286810514b034b0385944b018594"
      "896802295294749452948c016e9468092828680a680b8c0b4c6f6e6753746f72"
      "6167659493948c013194680f4b017494514b0029298968022952947494529475"
      "7d948c095f6d657461646174619468022952948c00947d948c0776657273696f"
      "6e944b01737373622e");
}

// The same as a file of PyTorch before 1.6 with data (doc/formats.md 6.1,
// C).
inline std::string StateDictStream() {
  return absl::HexStringToBytes(
      "80028a0a6cfc9c46f9206aa850192e80024de9032e80027d7100285810000000"
      "70726f746f636f6c5f76657273696f6e71014de903580d0000006c6974746c65"
      "5f656e6469616e710288580a000000747970655f73697a657371037d71042858"
      "0500000073686f727471054b025803000000696e7471064b0458040000006c6f"
      "6e6771074b0475752e800263636f6c6c656374696f6e730a4f72646572656444"
      "6963740a71002952710128580100000077710263746f7263682e5f7574696c73"
      "0a5f72656275696c645f706172616d657465720a710363746f7263682e5f7574"
      "696c730a5f72656275696c645f74656e736f725f76320a710428285807000000"
      "73746f72616765710563746f7263680a466c6f617453746f726167650a710658"
      "01000000307107580300000063707571084b064e747109514b004b024b038671"
      "0a4b034b0186710b8968002952710c74710d52710e8868002952710f87711052"
      "71115803000000772e5471126804286809514b004b034b028671134b014b0386"
      "7114896800295271157471165271175803000000726f7771186804286809514b"
      "034b038571194b0185711a8968002952711b74711c52711d58010000006e711e"
      "68042828680563746f7263680a4c6f6e6753746f726167650a711f5801000000"
      "31712068084b014e747121514b00292989680029527122747123527124757d71"
      "2558090000005f6d657461646174617126680029527127580000000071287d71"
      "29580700000076657273696f6e712a4b01737373622e80025d71002858010000"
      "003071015801000000317102652e0600000000000000000000000000803f0000"
      "004000004040000080400000a04001000000000000000700000000000000");
}

// The same of other protocols: `magic` precedes the number in the first pickle,
// `other` all but the one of the object, which is `object`.
inline std::string StateDictStreamOf(const std::string& magic,
                                     const std::string& other,
                                     const std::string& object) {
  const std::string stream = StateDictStream();
  const std::string begin = absl::HexStringToBytes("8002");
  const size_t version = stream.find(begin, 2);
  const size_t system = stream.find(begin, version + 2);
  const size_t state = stream.find(begin, system + 2);
  const size_t keys = stream.find(begin, state + 2);
  return absl::StrCat(magic, stream.substr(2, version - 2), other,
                      stream.substr(version + 2, system - version - 2), other,
                      stream.substr(system + 2, state - system - 2), object,
                      other, stream.substr(keys + 2));
}

// The floats 0 to 5 and the int64 7.
inline std::string StorageBytes(const std::string& key) {
  return absl::HexStringToBytes(
      key == "0" ? "000000000000803f0000004000004040000080400000a040"
                 : "0700000000000000");
}

// A file of a zip archive, and its entry in the directory.
struct ZipSample {
  std::string name;
  std::string data;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc_error = 0;       // XORed to the true one
  uint32_t size_error = 0;      // added to the true one
  std::string local_name = {};  // empty: the same
};

// Appends the fields of a zip record.
template <typename... Numbers>
void AppendNumbers(std::string* bytes, Numbers... numbers) {
  (AppendFixed(numbers, bytes), ...);
}

inline uint32_t SampleCrc32(const std::string& data) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

inline std::string ZipBytes(const std::vector<ZipSample>& files) {
  std::string bytes;
  std::string directory;
  for (const ZipSample& file : files) {
    const auto size = static_cast<uint32_t>(file.data.size()) + file.size_error;
    const uint32_t crc = SampleCrc32(file.data) ^ file.crc_error;
    const std::string& local =
        file.local_name.empty() ? file.name : file.local_name;
    const auto offset = static_cast<uint32_t>(bytes.size());
    absl::StrAppend(&bytes, "PK\3\4");
    AppendNumbers(&bytes, uint16_t{0}, file.flags, file.method, uint32_t{0},
                  uint32_t{0}, uint32_t{0}, uint32_t{0},
                  static_cast<uint16_t>(local.size()), uint16_t{0});
    absl::StrAppend(&bytes, local, file.data);
    absl::StrAppend(&directory, "PK\1\2");
    AppendNumbers(&directory, uint16_t{0}, uint16_t{0}, file.flags, file.method,
                  uint32_t{0}, crc, size, size,
                  static_cast<uint16_t>(file.name.size()), uint16_t{0},
                  uint16_t{0}, uint16_t{0}, uint16_t{0}, uint32_t{0}, offset);
    absl::StrAppend(&directory, file.name);
  }
  const auto directory_offset = static_cast<uint32_t>(bytes.size());
  absl::StrAppend(&bytes, directory, "PK\5\6");
  const auto count = static_cast<uint16_t>(files.size());
  AppendNumbers(&bytes, uint32_t{0}, count, count,
                static_cast<uint32_t>(directory.size()), directory_offset,
                uint16_t{0});
  return bytes;
}

// The files of PyTorch's archive (doc/formats.md 6.1, B) around this pickle.
inline std::vector<ZipSample> StateDictFiles(
    const std::string& pickle = StateDictPickle()) {
  return {{.name = "m/data.pkl", .data = pickle},
          {.name = "m/byteorder", .data = "little"},
          {.name = "m/data/0", .data = StorageBytes("0")},
          {.name = "m/data/1", .data = StorageBytes("1")},
          {.name = "m/version", .data = "3\n"}};
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_TORCH_SAVE_SAMPLES_H_
