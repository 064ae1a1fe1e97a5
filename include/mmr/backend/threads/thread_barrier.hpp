// The barrier of a group of threads: sleeping, not spinning (four ranks may share two cores), and able to end early.
#pragma once

#include <atomic>
#include <cstdint>

namespace mmr::detail {

/// One word holds the phase and why no further phase may begin, so that "the phase is complete" and "the run is over"
/// exclude each other: either all ranks pass a begin() or none does. Peers' buffers may be read between a begin() that
/// all have passed and the finish() after it, because no rank leaves (and unwinds its buffers) in between.
class thread_barrier {
 public:
  enum class outcome : std::uint8_t { passed, aborted, departed };

  explicit thread_barrier(int size) : size_(static_cast<std::uint32_t>(size)) {}

  /// Waits for all ranks, or until stop().
  outcome begin() { return wait(stop_bits); }

  /// Waits for all ranks, come what may; only for ranks that have all passed the same begin().
  void finish() { wait(0); }

  /// Ends every present and future begin() that is not complete.
  void stop(outcome why) {
    word_.fetch_or(why == outcome::aborted ? aborted_bit : departed_bit, std::memory_order_acq_rel);
    word_.notify_all();
  }

  /// Why the barrier was stopped, or `passed` if it was not; an abort counts more than a departure.
  outcome state() const { return reason(word_.load(std::memory_order_acquire)); }

 private:
  static constexpr std::uint32_t aborted_bit = 1, departed_bit = 2, stop_bits = 3, one_phase = 4;

  static outcome reason(std::uint32_t word) {
    if (word & aborted_bit) return outcome::aborted;
    return word & departed_bit ? outcome::departed : outcome::passed;
  }

  outcome wait(std::uint32_t heeded) {
    std::uint32_t word = word_.load(std::memory_order_acquire);
    if (word & heeded) return reason(word);
    const std::uint32_t phase = word / one_phase;
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      arrived_.store(0, std::memory_order_relaxed);
      do {
        if (word & heeded) return reason(word);
      } while (!word_.compare_exchange_weak(word, word + one_phase, std::memory_order_acq_rel));
      word_.notify_all();
      return outcome::passed;
    }
    for (;;) {
      word = word_.load(std::memory_order_acquire);
      if (word / one_phase != phase) return outcome::passed;
      if (word & heeded) return reason(word);
      word_.wait(word, std::memory_order_acquire);
    }
  }

  const std::uint32_t size_;
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace mmr::detail
