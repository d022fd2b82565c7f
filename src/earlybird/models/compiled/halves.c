/* A second thread for half of the work; it sleeps between, for other predictions may run at the same time. */
#include "halves.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

struct eb_halves {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  eb_half_of_work *work; /* NULL: the second half is done */
  void *of;
  bool is_over;
};

static bool has_second_processor(void) {
#ifdef __linux__
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 1;
#else
  return true;
#endif
}

static void *serve(void *given) {
  eb_halves *halves = given;
  pthread_mutex_lock(&halves->lock);
  for (;;) {
    while (!halves->work && !halves->is_over) pthread_cond_wait(&halves->changed, &halves->lock);
    if (halves->is_over) break;
    pthread_mutex_unlock(&halves->lock);
    halves->work(halves->of, 1);
    pthread_mutex_lock(&halves->lock);
    halves->work = NULL;
    pthread_cond_broadcast(&halves->changed);
  }
  pthread_mutex_unlock(&halves->lock);
  return NULL;
}

eb_halves *eb_halves_create(void) {
  if (!has_second_processor()) return NULL;
  eb_halves *halves = calloc(1, sizeof *halves);
  if (!halves) return NULL;
  pthread_mutex_init(&halves->lock, NULL);
  pthread_cond_init(&halves->changed, NULL);
  if (pthread_create(&halves->thread, NULL, serve, halves) == 0) return halves;
  pthread_cond_destroy(&halves->changed);
  pthread_mutex_destroy(&halves->lock);
  free(halves);
  return NULL;
}

void eb_halves_do(eb_halves *halves, eb_half_of_work *work, void *of) {
  if (!halves) {
    work(of, 0);
    work(of, 1);
    return;
  }
  pthread_mutex_lock(&halves->lock);
  halves->work = work;
  halves->of = of;
  pthread_cond_broadcast(&halves->changed);
  pthread_mutex_unlock(&halves->lock);
  work(of, 0);
  pthread_mutex_lock(&halves->lock);
  while (halves->work) pthread_cond_wait(&halves->changed, &halves->lock);
  pthread_mutex_unlock(&halves->lock);
}

void eb_halves_destroy(eb_halves *halves) {
  if (!halves) return;
  pthread_mutex_lock(&halves->lock);
  halves->is_over = true;
  pthread_cond_broadcast(&halves->changed);
  pthread_mutex_unlock(&halves->lock);
  pthread_join(halves->thread, NULL);
  pthread_cond_destroy(&halves->changed);
  pthread_mutex_destroy(&halves->lock);
  free(halves);
}
