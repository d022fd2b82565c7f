/* Finds the program's places behind bindings.
 *
 * A binding is called from many places of the program, so its own return address has to be read from the stack for every call.
 * How far its frame reaches is found out once by unwinding the stack, for a frame of fixed size; others are unwound every time.
 * Frames that grow with the number of requests may look fixed for a while: nothing outside of the thread's stack is read.
 */
#include "recorder/recording/places.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "interpose/objects/fortran_bindings.h"
#include "interpose/objects/identity.h"
#include "interpose/objects/symbols.h"

enum { NUM_BUCKETS = 4096, MAX_FRAMES = 2048, MAX_DEPTH = 8, NUM_CHECKS = 3, LARGEST_FIXED = 4096 };

typedef enum { PROGRAM, BINDING, PYTHON } frame_kind;

/* Of the code around a return address. */
typedef struct {
  const void *address;
  frame_kind kind;
  bool varies;        /* the size of the frame */
  int num_checks;     /* how often it was unwound */
  intptr_t size;      /* from the frame of the function called to its own */
} frame;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static frame *buckets[NUM_BUCKETS]; /* open addressing; they are never removed */
static int num_frames;

static bool is_in_mpi(const eb_objects *objects, const eb_object *object) {
  if (!object || object->is_program) return false;
  if (eb_object_defines(object, "PMPI_Init") || eb_bindings_are(object)) return true;
  const char *slash = strrchr(object->path, '/');
  return slash && strncmp(slash + 1, "libmpi", strlen("libmpi")) == 0 &&
         eb_identity_shares_folder(object->path, eb_identity_mpi_path(objects));
}

static frame_kind classify(const void *address) {
  eb_objects objects = eb_objects_list();
  const eb_object *object = eb_objects_at(&objects, address);
  const frame_kind kind = object && strstr(object->path, "/mpi4py/") ? PYTHON : is_in_mpi(&objects, object) ? BINDING : PROGRAM;
  eb_objects_free(&objects);
  return kind;
}

static frame *look_up(const void *address, unsigned *bucket) {
  unsigned at = (unsigned)((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> 52);
  frame *each;
  while ((each = __atomic_load_n(&buckets[at], __ATOMIC_ACQUIRE)) != NULL && each->address != address) at = (at + 1) % NUM_BUCKETS;
  *bucket = at;
  return each;
}

/* NULL: there are too many. */
static frame *frame_of(const void *address) {
  unsigned bucket;
  frame *known = look_up(address, &bucket);
  if (known || __atomic_load_n(&num_frames, __ATOMIC_RELAXED) >= MAX_FRAMES) return known;
  const frame_kind kind = classify(address);
  pthread_mutex_lock(&lock);
  known = look_up(address, &bucket);
  if (!known && num_frames < MAX_FRAMES && (known = calloc(1, sizeof *known)) != NULL) {
    known->address = address;
    known->kind = kind;
    __atomic_store_n(&num_frames, num_frames + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&buckets[bucket], known, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&lock);
  return known;
}

/* Frames from the caller of a wrapper on; the last one is of the program, or the deepest. */
typedef struct {
  eb_caller caller;
  int num;
  struct {
    frame *of;
    const char *called; /* the frame address of the function that it has called */
  } at[MAX_DEPTH];
} walk;

/* The library is looked up when it is needed. */
typedef _Unwind_Ptr get_ip(struct _Unwind_Context *);
typedef _Unwind_Word get_cfa(struct _Unwind_Context *);
typedef _Unwind_Reason_Code backtrace(_Unwind_Trace_Fn, void *);

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *with) {
  static get_ip *ip_of;
  static get_cfa *cfa_of;
  walk *in = with;
  if (!ip_of) ip_of = (get_ip *)dlsym(RTLD_DEFAULT, "_Unwind_GetIP");
  if (!cfa_of) cfa_of = (get_cfa *)dlsym(RTLD_DEFAULT, "_Unwind_GetCFA");
  if (!ip_of || !cfa_of) return _URC_END_OF_STACK;
  const void *address = (const void *)ip_of(context);
  if (in->num == 0 && address != in->caller.address) return _URC_NO_REASON;
  in->at[in->num].of = frame_of(address);
  in->at[in->num].called = (const char *)cfa_of(context);
  if (!in->at[in->num].of) return _URC_END_OF_STACK;
  const bool is_last = in->at[in->num++].of->kind != BINDING || in->num == MAX_DEPTH;
  return is_last ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* Loaded where it is not there yet: programs in C need no library for unwinding. */
static backtrace *unwinder(void) {
  static void *found;
  static bool is_searched;
  if (!__atomic_load_n(&is_searched, __ATOMIC_ACQUIRE)) {
    if (!dlsym(RTLD_DEFAULT, "_Unwind_Backtrace")) (void)dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    found = dlsym(RTLD_DEFAULT, "_Unwind_Backtrace");
    __atomic_store_n(&is_searched, true, __ATOMIC_RELEASE);
  }
  return (backtrace *)found;
}

/* Also compares the sizes of frames with what is known of them. */
static const frame *unwind(eb_caller caller) {
  walk found = {.caller = caller};
  backtrace *const trace = unwinder();
  if (!trace) return NULL;
  (void)trace(step, &found);
  for (int f = 0; f + 1 < found.num; f++) {
    frame *each = found.at[f].of;
    const intptr_t size = found.at[f + 1].called - found.at[f].called;
    if (each->num_checks > 0 && each->size != size) __atomic_store_n(&each->varies, true, __ATOMIC_RELAXED);
    each->size = size;
    __atomic_store_n(&each->num_checks, each->num_checks + 1, __ATOMIC_RELEASE);
  }
  return found.num > 0 ? found.at[found.num - 1].of : NULL;
}

/* Of this thread. The calls of coroutines are on stacks of their own, of which nothing is known. */
static void ask_stack(eb_sites *sites) {
  pthread_attr_t attributes;
  void *begin;
  size_t bytes;
  sites->is_stack_asked = true;
  sites->stack_begin = sites->stack_end = NULL;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  if (pthread_attr_getstack(&attributes, &begin, &bytes) == 0) {
    sites->stack_begin = begin;
    sites->stack_end = sites->stack_begin + bytes;
  }
  (void)pthread_attr_destroy(&attributes);
}

bool eb_site_is_on_stack(eb_sites *sites, const char *frame) {
  if (!sites->is_stack_asked) ask_stack(sites);
  return frame >= sites->stack_begin && frame < sites->stack_end;
}

#if defined(__x86_64__)
static bool is_size_known(const frame *of) {
  return __atomic_load_n(&of->num_checks, __ATOMIC_ACQUIRE) >= NUM_CHECKS && !__atomic_load_n(&of->varies, __ATOMIC_RELAXED) &&
         of->size >= (intptr_t)sizeof(void *) && of->size < LARGEST_FIXED;
}
#endif

/* The first frame behind the bindings. */
static const frame *behind(eb_sites *sites, eb_caller caller, const frame *called) {
#if defined(__x86_64__)
  if (!sites->is_stack_asked) ask_stack(sites);
  const char *at = caller.frame;
  for (int depth = 0; depth < MAX_DEPTH; depth++) {
    if (called->kind != BINDING) return called;
    if (!is_size_known(called) || at < sites->stack_begin || at >= sites->stack_end || sites->stack_end - at < called->size)
      return unwind(caller);
    at += called->size;
    const void *address;
    memcpy(&address, at - sizeof address, sizeof address); /* where the call has put it */
    unsigned bucket;
    called = look_up(address, &bucket);
    if (!called) return unwind(caller); /* new, or no return address at all */
  }
  return called;
#else
  (void)sites;
  return called->kind == BINDING ? unwind(caller) : called;
#endif
}

const void *eb_site_find(eb_sites *sites, eb_caller caller) {
  const frame *called = frame_of(caller.address);
  if (!called) { /* of too many: it counts as one of the program */
    sites->plain[eb_site_hash(caller.address)] = caller.address;
    return caller.address;
  }
  if (called->kind == BINDING) called = behind(sites, caller, called);
  if (!called) return caller.address;
  if (called->kind == PYTHON) {
    const void *place = eb_python_place_find();
    return place ? place : called->address;
  }
  if (called->address == caller.address) sites->plain[eb_site_hash(caller.address)] = caller.address;
  return called->address;
}
