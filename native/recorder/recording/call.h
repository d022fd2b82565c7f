/* The calls that are recorded: the name of each, its number, and the function behind the recorder's own. */
#ifndef EB_CALL_H
#define EB_CALL_H

#include <stddef.h>
#include <stdint.h>

typedef void eb_function(void);

/* How a call divides the program's communication into epochs: see epoch.h. */
typedef enum {
  EB_CALL_ALONE, /* an epoch by itself, unless requests are open */
  EB_CALL_OPEN,  /* starts a request: begins an epoch after blocking sends and receives, else part of one */
  EB_CALL_PART,  /* part of an epoch: sends and receives, and what belongs to them */
  EB_CALL_POLL,  /* the same; programs repeat it until something has happened */
} eb_call_kind;

typedef struct {
  const char *name;
  eb_function *next; /* NULL: not looked up yet */
  eb_call_kind kind;
  uint32_t number; /* eb_call_number, which takes a division: set by eb_calls_begin_numbers */
} eb_call;

/* The linker puts all descriptors into one array, so that a call is added by its wrapper alone and numbers have no gaps.
 * Numbers differ from build to build: files hold the names. */
extern eb_call eb_calls_begin[] __asm__("__start_eb_calls"), eb_calls_end[] __asm__("__stop_eb_calls");

#define EB_CALL_OF(kind, name) \
  static eb_call name##_call __attribute__((section("eb_calls"), used, aligned(8))) = {#name, NULL, kind, 0}
#define EB_CALL(name) EB_CALL_OF(EB_CALL_ALONE, name)

_Static_assert(sizeof(eb_call) % 8 == 0, "descriptors follow each other without gaps");
static inline unsigned eb_call_number(const eb_call *call) { return (unsigned)(call - eb_calls_begin); }
static inline unsigned eb_call_num(void) { return (unsigned)(eb_calls_end - eb_calls_begin); }

/* Before recording begins. */
void eb_calls_begin_numbers(void);

/* Looks the next function up: that of a tool behind the recorder, such as libearlybird, else the MPI's own. Ends the process
 * where there is none: the program could not have been linked. */
eb_function *eb_call_find(eb_call *call);

static inline eb_function *eb_call_next(eb_call *call) {
  eb_function *next = __atomic_load_n(&call->next, __ATOMIC_RELAXED);
  return __builtin_expect(next != NULL, 1) ? next : eb_call_find(call);
}

/* The next function of this name, with its type. */
#define EB_NEXT(name) ((__typeof__(&name))eb_call_next(&name##_call))

#endif
