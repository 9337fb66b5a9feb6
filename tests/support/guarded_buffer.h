#ifndef ETC_TESTS_SUPPORT_GUARDED_BUFFER_H_
#define ETC_TESTS_SUPPORT_GUARDED_BUFFER_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <utility>

namespace etc {

// Floats that end at a page which may not be touched, or begin behind one: a
// read or write beyond ends the test with SIGSEGV.
class GuardedBuffer {
 public:
  enum class Guard { kBefore, kBehind };

  GuardedBuffer(size_t floats, Guard guard) : floats_(floats) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = floats * sizeof(float);
    const size_t inner = (bytes + page - 1) / page * page;
    size_ = inner + 2 * page;
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* const begin = static_cast<char*>(memory_);
    if (memory_ == MAP_FAILED || mprotect(begin, page, PROT_NONE) != 0 ||
        mprotect(begin + page + inner, page, PROT_NONE) != 0) {
      std::abort();
    }
    char* const first =
        begin + page + (guard == Guard::kBehind ? inner - bytes : 0);
    data_ = static_cast<float*>(static_cast<void*>(first));
  }
  ~GuardedBuffer() {
    if (memory_ != nullptr) {
      munmap(memory_, size_);
    }
  }
  GuardedBuffer(GuardedBuffer&& other) noexcept
      : floats_(other.floats_),
        size_(other.size_),
        memory_(std::exchange(other.memory_, nullptr)),
        data_(other.data_) {}
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  float* data() { return data_; }
  size_t size() const { return floats_; }
  float& operator[](size_t i) { return data_[i]; }

 private:
  size_t floats_;
  size_t size_ = 0;
  void* memory_ = nullptr;
  float* data_ = nullptr;
};

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_GUARDED_BUFFER_H_
