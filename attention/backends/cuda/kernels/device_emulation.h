#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_DEVICE_EMULATION_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_DEVICE_EMULATION_H_

// The words of device.h on the CPU: the threads of a block are fibers of one
// thread, which go on to the next place where all of a warp or of the block
// have to meet. For tests: it shows that kernels index, mask and sum as they
// should and that no thread waits in vain, but neither races between two such
// places nor anything about speed; and products are summed without the
// rounding of a device.

#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define ETC_KERNEL
#define ETC_BLOCKS(n)
#define ETC_NO_UNROLL
#define ETC_UNROLL
#define ETC_HOST_DEVICE inline
#define ETC_DEVICE inline
#define ETC_DEVICE_CALL inline

namespace etc::kernels::cuda {

// A block of threads that runs.
class EmulatedBlock {
 public:
  static constexpr int kWarp = 32;

  // The one that runs on this thread of the CPU.
  static EmulatedBlock*& Current() {
    thread_local EmulatedBlock* current = nullptr;
    return current;
  }

  EmulatedBlock(int threads, size_t shared_memory)
      : fibers_(static_cast<size_t>(threads)),
        warps_(static_cast<size_t>(threads / kWarp)),
        shared_((shared_memory + 15) / 16 * 2) {
    for (Fiber& fiber : fibers_) {
      fiber.stack = std::make_unique<unsigned char[]>(kStackBytes);
    }
  }

  // Runs `body` on all threads of the block (x, y) of the grid.
  void Run(int x, int y, const std::function<void()>& body) {
    x_ = x;
    y_ = y;
    body_ = &body;
    // Threads begin with other numbers there than they may count on.
    std::memset(shared_.data(), 0x7f, shared_.size() * sizeof(shared_[0]));
    Current() = this;
    alive_ = static_cast<int>(fibers_.size());
    for (Fiber& fiber : fibers_) {
      fiber.begun = false;
      fiber.ended = false;
    }
    for (current_ = 0; alive_ > 0;) {
      if (_setjmp(scheduler_) == 0) {
        Continue();
      }
      current_ = (current_ + 1) % static_cast<int>(fibers_.size());
    }
    Current() = nullptr;
  }

  int x() const { return x_; }
  int y() const { return y_; }
  int thread() const { return current_; }
  unsigned char* shared() {
    return reinterpret_cast<unsigned char*>(shared_.data());
  }

  // Waits for all threads of the block; the last one calls `together`.
  template <typename Function>
  void MeetAll(const Function& together) {
    Meet(&all_, static_cast<int>(fibers_.size()), together);
  }
  // The same of a warp: together(values) with what each of its threads brings.
  template <typename Value, typename Function>
  void MeetWarp(Value* value, const Function& together) {
    Warp& warp = warps_[static_cast<size_t>(current_ / kWarp)];
    warp.values[current_ % kWarp] = value;
    Meet(&warp.place, kWarp, [&] {
      Value* values[kWarp];
      for (int lane = 0; lane < kWarp; ++lane) {
        values[lane] = static_cast<Value*>(warp.values[lane]);
      }
      together(values);
    });
  }

 private:
  static constexpr size_t kStackBytes = size_t{1} << 17;

  struct Fiber {
    std::unique_ptr<unsigned char[]> stack;
    ucontext_t begin;
    jmp_buf place;
    bool begun = false;
    bool ended = false;
  };
  struct MeetingPlace {
    int arrived = 0;
    int64_t meetings = 0;
  };
  struct Warp {
    MeetingPlace place;
    void* values[kWarp];
  };

  static void Begin() {
    EmulatedBlock* const block = Current();
    (*block->body_)();
    Fiber& fiber = block->fibers_[static_cast<size_t>(block->current_)];
    fiber.ended = true;
    --block->alive_;
    block->idle_ = 0;
    _longjmp(block->scheduler_, 1);
  }

  void Continue() {
    Fiber& fiber = fibers_[static_cast<size_t>(current_)];
    if (fiber.ended) {
      return;
    }
    if (fiber.begun) {
      _longjmp(fiber.place, 1);
    }
    fiber.begun = true;
    getcontext(&fiber.begin);
    fiber.begin.uc_stack.ss_sp = fiber.stack.get();
    fiber.begin.uc_stack.ss_size = kStackBytes;
    fiber.begin.uc_link = nullptr;
    makecontext(&fiber.begin, &EmulatedBlock::Begin, 0);
    setcontext(&fiber.begin);
  }

  template <typename Function>
  void Meet(MeetingPlace* place, int threads, const Function& together) {
    const int64_t meeting = place->meetings;
    if (++place->arrived == threads) {
      together();
      place->arrived = 0;
      ++place->meetings;
      idle_ = 0;
      return;
    }
    while (place->meetings == meeting) {
      if (++idle_ > 4 * static_cast<int64_t>(fibers_.size())) {
        std::fputs("the threads of a block wait for each other\n", stderr);
        std::abort();
      }
      if (_setjmp(fibers_[static_cast<size_t>(current_)].place) == 0) {
        _longjmp(scheduler_, 1);
      }
    }
  }

  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::vector<uint64_t> shared_;
  const std::function<void()>* body_ = nullptr;
  jmp_buf scheduler_;
  MeetingPlace all_;
  int x_ = 0;
  int y_ = 0;
  int current_ = 0;
  int alive_ = 0;
  int64_t idle_ = 0;
};

inline unsigned char* SharedMemory() {
  return EmulatedBlock::Current()->shared();
}
inline int Thread() { return EmulatedBlock::Current()->thread(); }
inline int BlockX() { return EmulatedBlock::Current()->x(); }
inline int BlockY() { return EmulatedBlock::Current()->y(); }

inline void SyncThreads() {
  EmulatedBlock::Current()->MeetAll([] {});
}
inline bool WarpAny(bool value) {
  EmulatedBlock::Current()->MeetWarp(&value, [](bool** values) {
    bool any = false;
    for (int lane = 0; lane < EmulatedBlock::kWarp; ++lane) {
      any = any || *values[lane];
    }
    for (int lane = 0; lane < EmulatedBlock::kWarp; ++lane) {
      *values[lane] = any;
    }
  });
  return value;
}
template <typename Value>
Value ShuffleXor(Value value, int mask) {
  EmulatedBlock::Current()->MeetWarp(&value, [&](Value** values) {
    Value all[EmulatedBlock::kWarp];
    for (int lane = 0; lane < EmulatedBlock::kWarp; ++lane) {
      all[lane] = *values[lane];
    }
    for (int lane = 0; lane < EmulatedBlock::kWarp; ++lane) {
      *values[lane] = all[lane ^ mask];
    }
  });
  return value;
}

// A fragment of four matrices, and the row that a thread points at.
struct EmulatedMatrices {
  uint32_t* out;
  const uint16_t* row;
};

template <bool kTransposed>
void LoadEmulatedMatrices(uint32_t (&out)[4], const uint16_t* row) {
  EmulatedMatrices mine = {out, row};
  EmulatedBlock::Current()->MeetWarp(&mine, [](EmulatedMatrices** all) {
    for (int lane = 0; lane < EmulatedBlock::kWarp; ++lane) {
      const int r = lane / 4;
      const int c = 2 * (lane % 4);
      for (int matrix = 0; matrix < 4; ++matrix) {
        const auto at = [&](int i, int j) -> uint32_t {
          return all[8 * matrix + i]->row[j];
        };
        all[lane]->out[matrix] = kTransposed ? at(c, r) | at(c + 1, r) << 16
                                             : at(r, c) | at(r, c + 1) << 16;
      }
    }
  });
}
inline void LoadMatrices(uint32_t (&out)[4], const uint16_t* row) {
  LoadEmulatedMatrices<false>(out, row);
}
inline void LoadMatricesTransposed(uint32_t (&out)[4], const uint16_t* row) {
  LoadEmulatedMatrices<true>(out, row);
}

inline float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline uint32_t RoundedToBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline uint32_t PackBfloat16(float low, float high) {
  return RoundedToBfloat16(low) | RoundedToBfloat16(high) << 16;
}
inline float Exp2(float x) { return std::exp2(x); }

struct EmulatedProduct {
  float* c;
  const uint32_t* a;
  const uint32_t* b;
};

inline void MultiplyAddTile(float (&c)[4], const uint32_t (&a)[4],
                            const uint32_t (&b)[2]) {
  EmulatedProduct mine = {c, a, b};
  EmulatedBlock::Current()->MeetWarp(&mine, [](EmulatedProduct** all) {
    const auto half = [](uint32_t word, int which) {
      return FloatOfBits(which == 0 ? word << 16 : word & 0xffff0000u);
    };
    float left[16][16];
    float right[8][16];
    for (int lane = 0; lane < EmulatedBlock::kWarp; ++lane) {
      const int g = lane / 4;
      const int t = 2 * (lane % 4);
      for (int which = 0; which < 2; ++which) {
        for (int part = 0; part < 4; ++part) {
          left[g + 8 * (part % 2)][t + which + 8 * (part / 2)] =
              half(all[lane]->a[part], which);
        }
        for (int part = 0; part < 2; ++part) {
          right[g][t + which + 8 * part] = half(all[lane]->b[part], which);
        }
      }
    }
    for (int lane = 0; lane < EmulatedBlock::kWarp; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const float* const row = left[lane / 4 + 8 * (i / 2)];
        const float* const column = right[2 * (lane % 4) + i % 2];
        double sum = all[lane]->c[i];
        for (int k = 0; k < 16; ++k) {
          sum += static_cast<double>(row[k]) * static_cast<double>(column[k]);
        }
        all[lane]->c[i] = static_cast<float>(sum);
      }
    }
  });
}

struct alignas(16) Words4 {
  uint32_t words[4];
};

// At once.
inline void CopyLater(void* shared, const void* from, bool is_there) {
  if (is_there) {
    std::memcpy(shared, from, 16);
  } else {
    std::memset(shared, 0, 16);
  }
}
inline void WaitForCopies() {}

template <typename Argument>
void Launch(void (*kernel)(Argument), const Argument& argument, int blocks_x,
            int blocks_y, int threads, size_t shared_memory, void* /*stream*/) {
  EmulatedBlock block(threads, shared_memory);
  for (int y = 0; y < blocks_y; ++y) {
    for (int x = 0; x < blocks_x; ++x) {
      block.Run(x, y, [&] { kernel(argument); });
    }
  }
}

inline const char* UnsupportedDevice() { return ""; }

// The limit of an H100.
inline size_t MostSharedMemory() { return 232448; }

}  // namespace etc::kernels::cuda

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_DEVICE_EMULATION_H_
