/* What is asked of every message of an exchange, in one pass over all of them. */
#include <string.h>

#include "models.h"

int64_t eb_messages_select(int64_t num, const uint8_t *level, unsigned levels, const int64_t *src, const int64_t *dst,
                           const int64_t *size_bytes, uint32_t *chosen_src, uint32_t *chosen_dst, int64_t *chosen_bytes,
                           uint8_t *chosen_level) {
  uint8_t number[8 * sizeof levels] = {0};
  for (unsigned k = 0, found = 0; k < 8 * sizeof levels; k++) number[k] = (uint8_t)(levels >> k & 1 ? found++ : 0);
  int64_t chosen = 0;
  for (int64_t i = 0; i < num; i++) {
    if (!(levels >> level[i] & 1)) continue;
    chosen_src[chosen] = (uint32_t)src[i];
    chosen_dst[chosen] = (uint32_t)dst[i];
    chosen_bytes[chosen] = size_bytes[i];
    if (chosen_level) chosen_level[chosen] = number[level[i]];
    chosen++;
  }
  return chosen;
}

void eb_messages_ends(int64_t num, const uint32_t *src, const uint32_t *dst, const int64_t *size_bytes, bool *sends,
                      bool *receives) {
  for (int64_t i = 0; i < num; i++) {
    if (size_bytes[i] <= 0) continue;
    sends[src[i]] = true;
    receives[dst[i]] = true;
  }
}

void eb_messages_classify(int64_t num, const uint8_t *level, const uint32_t *dst, const int64_t *size_bytes,
                          const int64_t *level_first, const int64_t *min_bytes, int64_t num_classes, uint16_t *message_class,
                          int64_t *num_received, int64_t *volume_bytes) {
  for (int64_t i = 0; i < num; i++) {
    const int64_t *first = level_first + (level ? level[i] : 0), bytes = size_bytes[i];
    int64_t c = first[0];
    while (c + 1 < first[1] && min_bytes[c + 1] <= bytes) c++;
    message_class[i] = (uint16_t)c;
    num_received[dst[i] * num_classes + c]++;
    volume_bytes[dst[i] * num_classes + c] += bytes;
  }
}

void eb_messages_delivered(int64_t num, const uint32_t *message, const double *fraction, const uint32_t *src, const uint32_t *dst,
                           const uint16_t *message_class, const bool *waits, const double *receive_s, double *send_s) {
  for (int64_t k = 0; k < num; k++) {
    const uint32_t i = message[k];
    if (!waits[message_class[i]]) continue;
    const double until_s = fraction[k] * receive_s[dst[i]];
    if (until_s > send_s[src[i]]) send_s[src[i]] = until_s;
  }
}
