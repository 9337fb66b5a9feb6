#include "tests/support/stand_in_cuda.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <torch/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace etc {
namespace {

std::atomic<int64_t> waits = 0;
std::atomic<int64_t> pinned = 0;
std::atomic<int64_t> memory_in_use = 0;
std::atomic<int64_t> memory_limit = std::numeric_limits<int64_t>::max();

// --- Devices and their streams -----------------------------------------------

class StandInGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    uncheckedSetDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {type(), current_}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() < kStandInDevices, "there is no ", device);
    uncheckedSetDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current_ = device.has_index() ? device.index() : c10::DeviceIndex{0};
  }
  c10::Stream getStream(c10::Device device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return getStream(device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return stream;
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return kStandInDevices;
  }
  void record(void**, const c10::Stream&, c10::DeviceIndex,
              c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }

 private:
  thread_local static c10::DeviceIndex current_;
};
thread_local c10::DeviceIndex StandInGuard::current_ = 0;

C10_REGISTER_GUARD_IMPL(CUDA, StandInGuard);

at::Generator& GeneratorOf(c10::DeviceIndex index) {
  static std::vector<at::Generator> generators = [] {
    std::vector<at::Generator> all;
    for (int i = 0; i < kStandInDevices; ++i) {
      all.push_back(at::detail::createCPUGenerator());
    }
    return all;
  }();
  return generators[index < 0 ? 0 : static_cast<size_t>(index)];
}

// --- Memory ------------------------------------------------------------------

size_t WholePages(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  return (bytes + page - 1) / page * page;
}

// A file in memory, mapped twice: at addresses that cannot be read, which
// tensors of devices have, and at those by which the CPU computes. A process
// that was forked cannot use that of its parent, as with CUDA.
class DeviceMemory {
 public:
  static DeviceMemory& Get() {
    static auto* const memory = new DeviceMemory();
    return *memory;
  }

  // Whole pages, with whatever they had.
  void* Take(size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto place =
        std::find_if(free_.begin(), free_.end(),
                     [&](const auto& part) { return part.second >= bytes; });
    TORCH_CHECK(place != free_.end(), "the stand-in for CUDA has no memory");
    const size_t offset = place->first;
    const size_t size = place->second;
    free_.erase(place);
    if (size > bytes) {
      free_[offset + bytes] = size - bytes;
    }
    used_[offset] = bytes;
    memory_in_use += static_cast<int64_t>(bytes);
    return device_ + offset;
  }

  void Return(void* data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto block = used_.find(OffsetOf(data));
    size_t offset = block->first;
    size_t size = block->second;
    used_.erase(block);
    memory_in_use -= static_cast<int64_t>(size);
    const auto behind = free_.lower_bound(offset);
    if (behind != free_.begin()) {
      const auto before = std::prev(behind);
      if (before->first + before->second == offset) {
        offset = before->first;
        size += before->second;
        free_.erase(before);
      }
    }
    if (behind != free_.end() && offset + size == behind->first) {
      size += behind->second;
      free_.erase(behind);
    }
    free_[offset] = size;
  }

  // The address of a block's bytes for the CPU.
  void* OnCpu(void* data) const {
    TORCH_CHECK(getpid() == process_,
                "a process that used devices was forked, and its memory is not "
                "for two");
    return data == nullptr ? nullptr : cpu_ + OffsetOf(data);
  }

  // Sets what can be done at the addresses of devices.
  void Protect(int protection) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!used_.empty()) {
      const auto& [offset, size] = *used_.rbegin();
      mprotect(device_, offset + size, protection);
    }
  }

 private:
  static constexpr size_t kSize = size_t{1} << 36;

  DeviceMemory() {
    const int file = memfd_create("stand_in_cuda", MFD_CLOEXEC);
    TORCH_CHECK(file >= 0 && ftruncate(file, kSize) == 0,
                "the stand-in for CUDA found no memory");
    device_ = Map(file, PROT_NONE);
    cpu_ = Map(file, PROT_READ | PROT_WRITE);
    close(file);
  }

  static char* Map(int file, int protection) {
    void* const data =
        mmap(nullptr, kSize, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    TORCH_CHECK(data != MAP_FAILED, "the stand-in for CUDA found no memory");
    return static_cast<char*>(data);
  }

  size_t OffsetOf(void* data) const {
    return static_cast<size_t>(static_cast<char*>(data) - device_);
  }

  const pid_t process_ = getpid();
  char* device_ = nullptr;
  char* cpu_ = nullptr;
  std::mutex mutex_;
  // Lengths by offset.
  std::map<size_t, size_t> free_ = {{0, kSize}};
  std::map<size_t, size_t> used_;
};

void Free(void* data) { DeviceMemory::Get().Return(data); }

c10::DataPtr Allocate(size_t bytes, c10::Device device) {
  if (bytes == 0) {
    return {nullptr, device};
  }
  const size_t size = WholePages(bytes);
  TORCH_CHECK_WITH(OutOfMemoryError,
                   memory_in_use + static_cast<int64_t>(size) <= memory_limit,
                   "CUDA out of memory. Tried to allocate ", size >> 10,
                   ".00 KiB (GPU 0; the stand-in for a device)");
  void* const data = DeviceMemory::Get().Take(size);
  return {data, data, &Free, device};
}

class StandInAllocator final : public c10::Allocator {
 public:
  explicit StandInAllocator(c10::Device device) : device_(device) {}
  c10::DataPtr allocate(size_t bytes) const override {
    return Allocate(bytes, device_);
  }

 private:
  const c10::Device device_;
};

c10::Allocator* AllocatorOf(c10::DeviceIndex index) {
  static std::vector<StandInAllocator*> allocators = [] {
    std::vector<StandInAllocator*> all;
    for (int i = 0; i < kStandInDevices; ++i) {
      all.push_back(new StandInAllocator(
          {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(i)}));
    }
    return all;
  }();
  return allocators[index < 0 ? 0 : static_cast<size_t>(index)];
}

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);

at::Tensor NewTensor(at::IntArrayRef sizes, at::IntArrayRef strides,
                     at::ScalarType type, c10::DeviceIndex index) {
  return at::Tensor(at::detail::empty_strided_generic(
      sizes, strides, AllocatorOf(index), kKeys, type));
}

void* CpuDataOf(const at::Tensor& tensor) {
  return DeviceMemory::Get().OnCpu(tensor.storage().data());
}

// A tensor over `storage`, with the shape of `like`.
at::Tensor Over(c10::Storage storage, c10::DispatchKeySet keys,
                const at::Tensor& like) {
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), keys, like.dtype());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(
      like.sizes(), like.strides(), like.storage_offset());
  return result;
}

// --- Operations --------------------------------------------------------------

// The tensors of one operation: those of a device, and what stands for them on
// the CPU.
class Borrowed {
 public:
  explicit Borrowed(std::string name) : name_(std::move(name)) {}

  // Throws c10::Error for a tensor of another device.
  at::Tensor OnCpu(const at::Tensor& tensor) {
    if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) {
      return tensor;
    }
    TORCH_CHECK(
        tensor.is_cuda() && (originals_.empty() || tensor.device() == device()),
        name_, " of a tensor on ", device(), " got one of shape ",
        tensor.sizes(), " on ", tensor.device());
    originals_.push_back(tensor);
    // One without elements may be resized.
    aliases_.push_back(
        tensor.numel() == 0
            ? at::empty(tensor.sizes(), tensor.options().device(c10::kCPU))
            : Over(c10::Storage(c10::Storage::use_byte_size_t(),
                                tensor.storage().nbytes(),
                                {CpuDataOf(tensor), c10::kCPU}),
                   c10::DispatchKeySet(c10::DispatchKey::CPU), tensor));
    return aliases_.back();
  }

  // A result on the CPU, on the device: the tensor that it stands for, a view
  // of one, or a new one.
  at::Tensor OnDevice(const at::Tensor& result) {
    if (!result.defined()) {
      return result;
    }
    for (size_t i = 0; i < aliases_.size(); ++i) {
      if (result.is_same(aliases_[i])) {
        return originals_[i];
      }
    }
    for (const at::Tensor& original : originals_) {
      if (result.storage().data() != nullptr &&
          result.storage().data() == CpuDataOf(original)) {
        return Over(original.storage(), kKeys, result);
      }
    }
    return Copied(result);
  }

  // Gives the originals the shapes that their aliases were resized to.
  void TakeOverSizes() {
    for (size_t i = 0; i < aliases_.size(); ++i) {
      if (aliases_[i].sizes() != originals_[i].sizes()) {
        const at::Tensor copy = Copied(aliases_[i]);
        c10::TensorImpl* const impl = originals_[i].unsafeGetTensorImpl();
        impl->set_storage_keep_dtype(copy.storage());
        impl->set_sizes_and_strides(copy.sizes(), copy.strides(), 0);
      }
    }
  }

  c10::Device device() const {
    return originals_.empty() ? c10::Device(c10::DeviceType::CUDA, 0)
                              : originals_[0].device();
  }

 private:
  at::Tensor Copied(const at::Tensor& result) {
    at::Tensor copy = NewTensor(result.sizes(), result.strides(),
                                result.scalar_type(), device().index());
    if (result.numel() > 0) {
      std::memcpy(CpuDataOf(copy), result.data_ptr(),
                  at::detail::computeStorageNbytes(
                      result.sizes(), result.strides(), result.itemsize()));
    }
    return copy;
  }

  const std::string name_;
  std::vector<at::Tensor> originals_;
  std::vector<at::Tensor> aliases_;
};

bool WaitsForDevice(const std::string& name) {
  return name == "aten::_local_scalar_dense" || name == "aten::equal" ||
         name == "aten::nonzero" || name == "aten::masked_select";
}

// Any operation, by the kernel of the CPU.
void RunOnCpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::FunctionSchema& schema = op.schema();
  if (WaitsForDevice(schema.name())) {
    ++waits;
  }
  Borrowed borrowed(schema.name());
  const auto convert = [](c10::IValue* value, const auto& tensor_to_tensor) {
    if (value->isTensor()) {
      *value = tensor_to_tensor(value->toTensor());
    } else if (value->isTensorList()) {
      std::vector<at::Tensor> tensors;
      for (const at::Tensor& tensor : value->toTensorVector()) {
        tensors.push_back(tensor_to_tensor(tensor));
      }
      *value = tensors;
    }
  };
  const size_t arguments = schema.arguments().size();
  for (size_t i = 0; i < arguments; ++i) {
    c10::IValue& value = (*stack)[stack->size() - arguments + i];
    convert(&value,
            [&](const at::Tensor& tensor) { return borrowed.OnCpu(tensor); });
    if (value.isNone() && schema.arguments()[i].name() == "generator") {
      value = GeneratorOf(borrowed.device().index());
    }
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  const size_t results = schema.returns().size();
  for (size_t i = 0; i < results; ++i) {
    convert(
        &(*stack)[stack->size() - results + i],
        [&](const at::Tensor& tensor) { return borrowed.OnDevice(tensor); });
  }
  borrowed.TakeOverSizes();
}

at::Tensor Empty(at::IntArrayRef sizes, c10::optional<at::ScalarType> type,
                 c10::optional<at::Layout>, c10::optional<at::Device> device,
                 c10::optional<bool>, c10::optional<at::MemoryFormat> format) {
  return at::Tensor(at::detail::empty_generic(
      sizes, AllocatorOf(device.has_value() ? device->index() : 0), kKeys,
      type.value_or(at::kFloat), format));
}

at::Tensor EmptyStrided(at::IntArrayRef sizes, at::IntArrayRef strides,
                        c10::optional<at::ScalarType> type,
                        c10::optional<at::Layout>,
                        c10::optional<at::Device> device, c10::optional<bool>) {
  return NewTensor(sizes, strides, type.value_or(at::kFloat),
                   device.has_value() ? device->index() : 0);
}

at::Tensor& Copy(at::Tensor& self, const at::Tensor& source, bool) {
  if (self.is_cpu()) {
    ++waits;
  }
  // Each alone: they are on two devices.
  Borrowed to("copy_");
  Borrowed from("copy_");
  const auto on_cpu = [](Borrowed* borrowed, const at::Tensor& tensor) {
    return tensor.is_cpu() ? tensor : borrowed->OnCpu(tensor);
  };
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  on_cpu(&to, self).copy_(on_cpu(&from, source));
  return self;
}

at::Tensor PinMemory(const at::Tensor& self, c10::optional<at::Device>) {
  ++pinned;
  return self.clone();
}

// The CPU's draws from the CPU's generator.
std::tuple<at::Tensor, at::Tensor> NativeDropout(const at::Tensor& input,
                                                 double probability,
                                                 c10::optional<bool>) {
  const at::Tensor mask =
      at::empty_like(input).bernoulli_(1 - probability).to(at::kBool);
  return {input * mask / (1 - probability), mask};
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&RunOnCpu>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", TORCH_FN(Empty));
  library.impl("empty_strided", TORCH_FN(EmptyStrided));
  library.impl("copy_", TORCH_FN(Copy));
  library.impl("_pin_memory", TORCH_FN(PinMemory));
  library.impl("native_dropout", TORCH_FN(NativeDropout));
}

}  // namespace

int64_t StandInWaits() { return waits; }
int64_t StandInPinned() { return pinned; }
extern "C" {

// The part of the CUDA runtime's C interface that is called.
int cudaMemGetInfo(size_t* free, size_t* total) {
  const int64_t limit = memory_limit;
  *total = static_cast<size_t>(limit);
  *free = static_cast<size_t>(limit - memory_in_use);
  return 0;
}
int cudaDeviceGetAttribute(int* value, int attribute, int /*device*/) {
  constexpr int kComputeCapabilityMajor = 75;
  *value = 8;
  return attribute == kComputeCapabilityMajor ? 0 : 1;
}
}

int64_t StandInMemoryInUse() { return memory_in_use; }

StandInMemoryLimit::StandInMemoryLimit(int64_t bytes) { memory_limit = bytes; }
StandInMemoryLimit::~StandInMemoryLimit() {
  memory_limit = std::numeric_limits<int64_t>::max();
}

StandInAccess::StandInAccess() {
  DeviceMemory::Get().Protect(PROT_READ | PROT_WRITE);
}
StandInAccess::~StandInAccess() { DeviceMemory::Get().Protect(PROT_NONE); }

}  // namespace etc

namespace at {
namespace {

// LibTorch looks for a class of this name.
struct CUDAHooks : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs /*arguments*/) {}

  void initCUDA() const override {}
  const Generator& getDefaultCUDAGenerator(DeviceIndex index) const override {
    return etc::GeneratorOf(index);
  }
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  bool hasPrimaryContext(int64_t /*index*/) const override { return true; }
  int64_t current_device() const override { return 0; }
  int getNumGPUs() const override { return etc::kStandInDevices; }
  void deviceSynchronize(int64_t /*index*/) const override { ++etc::waits; }
};

REGISTER_CUDA_HOOKS(CUDAHooks);

}  // namespace
}  // namespace at
