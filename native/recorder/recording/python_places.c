/* Places in Python programs, by Python's own functions: its objects differ from version to version.
 *
 * mpi4py lets other Python threads run during its calls of the MPI, so here Python's lock has to be taken. Where there are other
 * threads one of them may have it, and may be waiting in the MPI for this one: then nothing is asked.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/recording/places.h"

enum { MAX_PLACES = 4096, NUM_BUCKETS = 2 * MAX_PLACES };

/* Of Python 3.11 and later, but for what is said to be missing before. */
static struct {
  int (*is_running)(void);                /* Py_IsInitialized */
  int (*is_locked)(void);                 /* PyGILState_Check */
  int (*lock)(void);                      /* PyGILState_Ensure */
  void (*unlock)(int);                    /* PyGILState_Release */
  void *(*own_state)(void);               /* PyGILState_GetThisThreadState */
  void *(*interpreter)(void *state);      /* PyThreadState_GetInterpreter */
  void *(*first_state)(void *interpreter); /* PyInterpreterState_ThreadHead */
  void *(*next_state)(void *state);       /* PyThreadState_Next */
  void *(*frame)(void *state);            /* PyThreadState_GetFrame: a new reference */
  void *(*code)(void *frame);             /* PyFrame_GetCode: a new reference */
  int (*line)(void *frame);               /* PyFrame_GetLineNumber */
  int (*instruction)(void *frame);        /* PyFrame_GetLasti; NULL before 3.11 */
  void *(*attribute)(void *object, const char *name);
  const char *(*text)(void *object);      /* PyUnicode_AsUTF8 */
  void *(*error)(void);                   /* PyErr_Occurred */
  void (*clear)(void);                    /* PyErr_Clear */
  void (*release)(void *object);          /* Py_DecRef */
} python;
static bool is_there;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static eb_python_place places[MAX_PLACES];
static int num_places, num_written;
static eb_python_place *buckets[NUM_BUCKETS]; /* open addressing; they are never removed */
/* Of new places: not every Python has a lock of its own. No function of Python is called with it. */
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static bool find_function(void *at, const char *name) {
  void *function = dlsym(RTLD_DEFAULT, name);
  memcpy(at, &function, sizeof function);
  return function != NULL;
}

static void find_functions(void) {
  (void)find_function(&python.instruction, "PyFrame_GetLasti");
  is_there = find_function(&python.is_running, "Py_IsInitialized") && find_function(&python.is_locked, "PyGILState_Check") &&
             find_function(&python.lock, "PyGILState_Ensure") && find_function(&python.unlock, "PyGILState_Release") &&
             find_function(&python.own_state, "PyGILState_GetThisThreadState") &&
             find_function(&python.interpreter, "PyThreadState_GetInterpreter") &&
             find_function(&python.first_state, "PyInterpreterState_ThreadHead") &&
             find_function(&python.next_state, "PyThreadState_Next") && find_function(&python.frame, "PyThreadState_GetFrame") &&
             find_function(&python.code, "PyFrame_GetCode") && find_function(&python.line, "PyFrame_GetLineNumber") &&
             find_function(&python.attribute, "PyObject_GetAttrString") && find_function(&python.text, "PyUnicode_AsUTF8") &&
             find_function(&python.error, "PyErr_Occurred") && find_function(&python.clear, "PyErr_Clear") &&
             find_function(&python.release, "Py_DecRef");
}

/* A copy, which is never freed. */
static const char *text_of(void *object, const char *name) {
  void *value = python.attribute(object, name);
  const char *text = value ? python.text(value) : NULL;
  const char *copy = text ? strdup(text) : NULL;
  if (!text) python.clear();
  if (value) python.release(value);
  return copy ? copy : "";
}

static eb_python_place *look_up(const void *code, int instruction, unsigned *bucket) {
  const uint64_t hash = ((uint64_t)(uintptr_t)code ^ (uint64_t)(unsigned)instruction << 32) * 0x9e3779b97f4a7c15u;
  unsigned at = (unsigned)(hash >> 51) % NUM_BUCKETS;
  eb_python_place *each;
  while ((each = __atomic_load_n(&buckets[at], __ATOMIC_ACQUIRE)) != NULL &&
         (each->code != code || each->instruction != instruction))
    at = (at + 1) % NUM_BUCKETS;
  *bucket = at;
  return each;
}

/* NULL: there are too many. */
static const eb_python_place *add(const eb_python_place *added) {
  unsigned bucket;
  pthread_mutex_lock(&adding);
  eb_python_place *place = look_up(added->code, added->instruction, &bucket);
  if (!place && num_places < MAX_PLACES) {
    place = &places[num_places];
    *place = *added;
    __atomic_store_n(&buckets[bucket], place, __ATOMIC_RELEASE);
    __atomic_store_n(&num_places, num_places + 1, __ATOMIC_RELEASE);
    added = NULL;
  }
  pthread_mutex_unlock(&adding);
  if (added) python.release((void *)added->code);
  return place;
}

/* Keeps the reference to the code where the place is new. */
static const eb_python_place *place_of(void *frame, void *code) {
  const int instruction = python.instruction ? python.instruction(frame) : python.line(frame);
  unsigned bucket;
  const eb_python_place *known = look_up(code, instruction, &bucket);
  if (known || __atomic_load_n(&num_places, __ATOMIC_ACQUIRE) == MAX_PLACES) {
    python.release(code);
    return known;
  }
  const eb_python_place added = {code,
                                 instruction,
                                 python.line(frame),
                                 text_of(code, "co_filename"),
                                 text_of(code, python.instruction ? "co_qualname" : "co_name"),
                                 false};
  return add(&added);
}

static const void *find_locked(void *state) {
  if (python.error()) return NULL; /* of the program: what is asked could discard it */
  void *frame = python.frame(state);
  void *code = frame ? python.code(frame) : NULL;
  const eb_python_place *place = code ? place_of(frame, code) : NULL;
  if (frame) python.release(frame);
  return place;
}

const void *eb_python_place_find(void) {
  (void)pthread_once(&once, find_functions);
  if (!is_there || !python.is_running()) return NULL;
  void *state = python.own_state();
  if (!state) return NULL;
  if (python.is_locked()) return find_locked(state);
  void *first = python.first_state(python.interpreter(state));
  if (first != state || python.next_state(first)) return NULL;
  const int held = python.lock();
  const void *place = find_locked(state);
  python.unlock(held);
  return place;
}

const eb_python_place *eb_python_place_at(const void *site) {
  const eb_python_place *place = site;
  return place >= places && place < places + MAX_PLACES ? place : NULL;
}

eb_python_place *eb_python_place_unwritten(void) {
  return num_written < __atomic_load_n(&num_places, __ATOMIC_ACQUIRE) ? &places[num_written++] : NULL;
}
