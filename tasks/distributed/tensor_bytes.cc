#include "tasks/distributed/tensor_bytes.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace etc {
namespace {

void AddNumber(int64_t number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Takes bytes off the front.
class BytesReader {
 public:
  explicit BytesReader(const std::string& bytes) : bytes_(bytes) {}

  void Read(void* to, size_t size) {
    TORCH_CHECK(size <= bytes_.size() - at_, "bytes of tensors end too soon");
    if (size > 0) {
      std::memcpy(to, bytes_.data() + at_, size);
    }
    at_ += size;
  }
  int64_t Number() {
    int64_t number = 0;
    Read(&number, sizeof(number));
    return number;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

}  // namespace

std::string TensorsToBytes(const std::vector<torch::Tensor>& tensors) {
  std::string bytes;
  for (const torch::Tensor& tensor : tensors) {
    const torch::Tensor whole = tensor.contiguous();
    AddNumber(static_cast<int64_t>(whole.scalar_type()), &bytes);
    AddNumber(whole.dim(), &bytes);
    for (const int64_t size : whole.sizes()) {
      AddNumber(size, &bytes);
    }
    bytes.append(static_cast<const char*>(whole.data_ptr()), whole.nbytes());
  }
  return bytes;
}

std::vector<torch::Tensor> TensorsFromBytes(const std::string& bytes) {
  std::vector<torch::Tensor> tensors;
  BytesReader reader(bytes);
  while (!reader.at_end()) {
    const int64_t type = reader.Number();
    TORCH_CHECK(
        type >= 0 && type < static_cast<int64_t>(torch::ScalarType::NumOptions),
        "bytes of tensors have the unknown dtype ", type);
    std::vector<int64_t> shape;
    for (int64_t left = reader.Number(); left > 0; --left) {
      shape.push_back(reader.Number());
    }
    const torch::Tensor tensor =
        torch::empty(shape, static_cast<torch::ScalarType>(type));
    reader.Read(tensor.data_ptr(), tensor.nbytes());
    tensors.push_back(tensor);
  }
  return tensors;
}

std::vector<std::vector<torch::Tensor>> BucketsOf(
    const std::vector<torch::Tensor>& tensors, size_t bucket_bytes) {
  std::vector<std::vector<torch::Tensor>> buckets;
  size_t bytes = bucket_bytes;
  for (const torch::Tensor& tensor : tensors) {
    if (bytes >= bucket_bytes) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(tensor);
    bytes += tensor.nbytes();
  }
  return buckets;
}

}  // namespace etc
