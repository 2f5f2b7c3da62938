#ifndef FW_COPIES
#define FW_COPIES

/* Begins to copy bytes from global to shared memory: 4, 8, or a multiple of 16. */
template <int bytes>
FW_FN void fw_begin_copy(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    const uint64_t source = __cvta_generic_to_global(from);
    if (bytes < 16) asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(source), "n"(bytes));
#pragma unroll
    for (int n = 0; n < bytes / 16; n++)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place + 16 * n), "l"(source + 16 * n));
#else
#pragma unroll
    for (int n = 0; n < bytes / 4; n++) ((int32_t *)to)[n] = ((const int32_t *)from)[n];
#endif
}

/* Ends a list of copies, of those that this thread has begun since the last list. */
FW_FN void fw_end_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for the copies of this thread, except those of the last `lists` lists. */
template <int lists>
FW_FN void fw_wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(lists) : "memory");
#endif
}
#endif
