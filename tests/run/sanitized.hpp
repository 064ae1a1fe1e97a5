// Whether this is built with a sanitizer that replaces the allocator or slows everything down.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MMR_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MMR_TEST_SANITIZED 1
#endif
#endif
#ifndef MMR_TEST_SANITIZED
#define MMR_TEST_SANITIZED 0
#endif
