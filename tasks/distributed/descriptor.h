#ifndef ETC_TASKS_DISTRIBUTED_DESCRIPTOR_H_
#define ETC_TASKS_DISTRIBUTED_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace etc {

// Owns a file descriptor and closes it. -1: none.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept
      : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { Close(); }

  int get() const { return value_; }
  bool is_open() const { return value_ >= 0; }
  void Close() {
    if (value_ >= 0) {
      close(std::exchange(value_, -1));
    }
  }

 private:
  int value_;
};

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_DESCRIPTOR_H_
