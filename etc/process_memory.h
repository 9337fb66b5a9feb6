#ifndef ETC_ETC_PROCESS_MEMORY_H_
#define ETC_ETC_PROCESS_MEMORY_H_

namespace etc {

// Makes the process keep memory that it frees, for its next use, where malloc
// is glibc's; elsewhere it does nothing. To be called once, at the beginning of
// a program.
//
// A training step takes and frees the same gigabytes as the one before. By
// default glibc hands blocks of more than 32 MiB back to the system each time,
// and the system clears their pages before it gives them out again: a tenth of
// the time of a step of the base model (measured, in the commit that added
// this). The peak of the process stays what it was; it is held until the end.
void KeepFreedMemory();

}  // namespace etc

#endif  // ETC_ETC_PROCESS_MEMORY_H_
