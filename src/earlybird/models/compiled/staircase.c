/* The staircase model: processes of a group share a bandwidth, and one that finishes frees its share. */
#include <math.h>
#include <stdlib.h>

#include "models.h"
#include "order.h"
#include "staircase.h"

/* A process with the fraction theta_c of its volume in class c receives sum_c theta_c * BW_c(n) / n while n processes are
 * unfinished: sum_c theta_c * served_c until now, where served_c, one number per class for the whole group, grows by
 * BW_c(n) / n per second. Arrays of the unfinished processes, theta[class][place], close up as processes finish. */
static void mixed(int64_t num, int64_t num_classes, const int64_t *volume_bytes, const double *bandwidth, double *work,
                  int64_t *process, double *finished_s) {
  double *volume = work, *theta = volume + num, *served_bytes = theta + num * num_classes;
  double *rate = served_bytes + num, *served = rate + num;
  for (int64_t i = 0; i < num; i++) {
    double sum_bytes = 0;
    for (int64_t c = 0; c < num_classes; c++) sum_bytes += (double)volume_bytes[i * num_classes + c];
    for (int64_t c = 0; c < num_classes; c++) theta[c * num + i] = (double)volume_bytes[i * num_classes + c] / sum_bytes;
    volume[i] = sum_bytes;
    process[i] = i;
  }
  for (int64_t c = 0; c < num_classes; c++) served[c] = 0;
  double now_s = 0;
  for (int64_t n = num; n > 0; n--) {
    for (int64_t i = 0; i < n; i++) served_bytes[i] = rate[i] = 0;
    for (int64_t c = 0; c < num_classes; c++) {
      const double growth = bandwidth[(n - 1) * num_classes + c] / (double)n, *share = theta + c * num;
      for (int64_t i = 0; i < n; i++) {
        served_bytes[i] += share[i] * served[c];
        rate[i] += share[i] * growth;
      }
    }
    int64_t next = 0;
    double soonest_s = INFINITY;
    for (int64_t i = 0; i < n; i++) {
      const double left_s = (volume[i] - served_bytes[i]) / rate[i];
      if (left_s < soonest_s) {
        soonest_s = left_s;
        next = i;
      }
    }
    /* Rounding can leave a process that ends together with the last one a hair below zero. */
    if (soonest_s < 0) soonest_s = 0;
    now_s += soonest_s;
    for (int64_t c = 0; c < num_classes; c++) served[c] += soonest_s * bandwidth[(n - 1) * num_classes + c] / (double)n;
    finished_s[process[next]] = now_s;
    process[next] = process[n - 1];
    volume[next] = volume[n - 1];
    for (int64_t c = 0; c < num_classes; c++) theta[c * num + next] = theta[c * num + n - 1];
  }
}

/* Where all bytes are of one class: t_i = t_(i-1) + (N - i) * (V_i - V_(i-1)) / BW(N - i), V ascending, (7). */
static void one_class(int64_t num, int64_t num_classes, int64_t class, const int64_t *volume_bytes, const double *bandwidth,
                      uint64_t *volume, uint32_t *order, uint32_t *scratch, double *finished_s) {
  for (int64_t i = 0; i < num; i++) {
    volume[i] = (uint64_t)volume_bytes[i * num_classes + class];
    order[i] = (uint32_t)i;
  }
  eb_order_by(volume, num, order, scratch);
  uint64_t before = 0;
  double now_s = 0;
  for (int64_t i = 0; i < num; i++) {
    const uint64_t bytes = volume[order[i]];
    now_s += (double)(num - i) * (double)(bytes - before) / bandwidth[(num - i - 1) * num_classes + class];
    finished_s[order[i]] = now_s;
    before = bytes;
  }
}

/* The only class with bytes, or -1. */
static int64_t only_class(int64_t num, int64_t num_classes, const int64_t *volume_bytes) {
  int64_t only = -1;
  for (int64_t c = 0; c < num_classes; c++) {
    bool is_used = false;
    for (int64_t i = 0; i < num && !is_used; i++) is_used = volume_bytes[i * num_classes + c] != 0;
    if (is_used && only >= 0) return -1;
    if (is_used) only = c;
  }
  return only;
}

size_t eb_group_work_bytes(int64_t num, int64_t num_classes) {
  return (size_t)(num * (num_classes + 3) + num_classes) * sizeof(double) +
         (size_t)num * (2 * sizeof(int64_t) + 2 * sizeof(uint32_t));
}

void eb_group_times(int64_t num, int64_t num_classes, const int64_t *volume_bytes, const double *bandwidth_bytes_per_s, void *work,
                    double *finished_s) {
  double *reals = work;
  int64_t *process = (int64_t *)(reals + num * (num_classes + 3) + num_classes);
  uint64_t *volume = (uint64_t *)(process + num);
  uint32_t *order = (uint32_t *)(volume + num), *scratch = order + num;
  const int64_t only = only_class(num, num_classes, volume_bytes);
  if (only >= 0) one_class(num, num_classes, only, volume_bytes, bandwidth_bytes_per_s, volume, order, scratch, finished_s);
  else mixed(num, num_classes, volume_bytes, bandwidth_bytes_per_s, reals, process, finished_s);
}

int eb_staircase(int64_t num_groups, const int64_t *first, int64_t num_classes, const int64_t *volume_bytes,
                 const double *bandwidth_bytes_per_s, double *finished_s) {
  int64_t most = 1;
  for (int64_t g = 0; g < num_groups; g++)
    if (first[g + 1] - first[g] > most) most = first[g + 1] - first[g];
  void *work = malloc(eb_group_work_bytes(most, num_classes));
  for (int64_t g = 0; work && g < num_groups; g++)
    eb_group_times(first[g + 1] - first[g], num_classes, volume_bytes + first[g] * num_classes, bandwidth_bytes_per_s, work,
                   finished_s + first[g]);
  free(work);
  return work ? 0 : -1;
}

/* The fractions of the largest messages of one receiver, which need not be in order; the others have smaller_bytes in all. key,
 * order and scratch have room for them. */
static void fractions_of(int64_t num, const uint32_t *message, const int64_t *size_bytes, int64_t smaller_bytes, uint64_t *key,
                         uint32_t *order, uint32_t *scratch, double *fraction) {
  int64_t volume_bytes = smaller_bytes, until_bytes = smaller_bytes;
  for (int64_t i = 0; i < num; i++) {
    key[i] = (uint64_t)size_bytes[message[i]];
    order[i] = (uint32_t)i;
    volume_bytes += size_bytes[message[i]];
  }
  eb_order_by(key, num, order, scratch);
  for (int64_t i = 0; i < num; i++) {
    const int64_t bytes = (int64_t)key[order[i]];
    until_bytes += bytes;
    fraction[order[i]] = (double)(until_bytes + (num - 1 - i) * bytes) / (double)(volume_bytes ? volume_bytes : 1);
  }
}

int eb_completion_fractions(int64_t num_messages, const uint32_t *receiver, int64_t num_receivers, const int64_t *size_bytes,
                            int64_t least_bytes, uint32_t *message, double *fraction) {
  int64_t *place = calloc(2 * (size_t)num_receivers + 1, sizeof *place), most = 0;
  if (!place) return -1;
  int64_t *smaller_bytes = place + num_receivers + 1;
  for (int64_t i = 0; i < num_messages; i++) {
    if (size_bytes[i] < least_bytes) smaller_bytes[receiver[i]] += size_bytes[i];
    else place[receiver[i] + 1]++;
  }
  for (int64_t r = 0; r < num_receivers; r++) {
    if (place[r + 1] > most) most = place[r + 1];
    place[r + 1] += place[r];
  }
  for (int64_t i = 0; i < num_messages; i++)
    if (size_bytes[i] >= least_bytes) message[place[receiver[i]]++] = (uint32_t)i;
  uint64_t *key = malloc((size_t)most * (sizeof *key + 2 * sizeof(uint32_t)) + 1);
  for (int64_t r = 0, begin = 0; key && r < num_receivers; r++) {
    const int64_t end = place[r]; /* now the end of each receiver's messages */
    uint32_t *order = (uint32_t *)(key + most);
    fractions_of(end - begin, message + begin, size_bytes, smaller_bytes[r], key, order, order + most, fraction + begin);
    begin = end;
  }
  const bool failed = !key;
  free(key);
  free(place);
  return failed ? -1 : 0;
}
