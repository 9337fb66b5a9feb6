#ifndef ETC_BASE_PROCESS_MEMORY_H_
#define ETC_BASE_PROCESS_MEMORY_H_

#include <cstdint>

namespace etc {

// Pages that the system has given to this process since its start, each of
// which it cleared first. A steady training step should cause few
// (KeepFreedMemory).
int64_t PageFaults();

// Bytes of this process that were in memory at the first call: its resident
// set, libraries included. 0 where the system does not say (it has no /proc).
// KeepFreedMemory makes that call, so that in a program this is the memory of
// its libraries before there are tensors: 120 MB with one LibTorch, several
// hundred with another.
int64_t ResidentBytesAtStart();

// Makes the process keep memory that it frees, for its next use, where malloc
// is glibc's; elsewhere, and under sanitizers, it does nothing. To be called
// once, at the beginning of a program, before there are tensors.
//
// A training step takes and frees the same gigabytes as the one before. By
// default glibc hands blocks of more than 32 MiB back to the system each time,
// and the system clears their pages before it gives them out again: a tenth of
// the time of a step of the base model (measured, in the commit that added
// this). Memory that is kept is held until the process ends.
//
// Tensors on the CPU are then taken in blocks that fit where others of the same
// size have been. With LibTorch's own allocator over glibc 2.36 they do not,
// and the base model takes 3.9 GB instead of 3.3 to train on 256 tokens
// (measured, likewise).
void KeepFreedMemory();

// Makes blocks of more than 32 MiB go back to the system when they are freed,
// and gives back what is free, or keeps them again, after KeepFreedMemory; at
// first they are kept. For passes whose blocks have many sizes and would not
// leave room for each other: those of slices of the longest examples
// (etc/sliced_layer.h) take a fifth less memory (measured, in the commit that
// added this). Elsewhere it does nothing.
void ReturnFreedMemory(bool returns);

}  // namespace etc

#endif  // ETC_BASE_PROCESS_MEMORY_H_
