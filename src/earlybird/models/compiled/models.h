/* The loops of the exchange models: what Python calls through earlybird.models.compiled, and C may call too.
 *
 * Arrays are those of the caller, in C order; ranks, groups and classes count from 0. Functions that return int return 0, or
 * -1 if memory is short. Nothing is kept between calls, so threads may call at once. */
#ifndef EARLYBIRD_MODELS_H
#define EARLYBIRD_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Equations (7) and (12)-(17) of Thune et al. 2023: when each process of each group has received everything.
 *
 * The processes of group g are first[g] .. first[g + 1] - 1. volume_bytes[process][class], a positive sum for each process;
 * bandwidth_bytes_per_s[n - 1][class], for n up to the processes of the largest group; finished_s[process]. */
int eb_staircase(int64_t num_groups, const int64_t *first, int64_t num_classes, const int64_t *volume_bytes,
                 const double *bandwidth_bytes_per_s, double *finished_s);

/* Equation (9) of Thune et al. 2023 in closed form: the fraction of its receiver's time at which each message of least_bytes or
 * more is complete. receiver[message] < num_receivers; message[k] and fraction[k] of these, by receiver; 0 for a message of 0
 * bytes. Smaller ones need not be sorted, which takes most of the time: (9) needs their sum. */
int eb_completion_fractions(int64_t num_messages, const uint32_t *receiver, int64_t num_receivers, const int64_t *size_bytes,
                            int64_t least_bytes, uint32_t *message, double *fraction);

/* Copies the messages of the levels whose bits are set, in order, with their levels counted among these, from 0; returns how
 * many. chosen_level may be NULL. */
int64_t eb_messages_select(int64_t num, const uint8_t *level, unsigned levels, const int64_t *src, const int64_t *dst,
                           const int64_t *size_bytes, uint32_t *chosen_src, uint32_t *chosen_dst, int64_t *chosen_bytes,
                           uint8_t *chosen_level);
/* Sets sends[rank] and receives[rank] of the ranks of messages with bytes. */
void eb_messages_ends(int64_t num, const uint32_t *src, const uint32_t *dst, const int64_t *size_bytes, bool *sends,
                      bool *receives);
/* The class of each message: the last one of its level, level_first[level] to level_first[level + 1] - 1, with min_bytes up to
 * its size, else the first; level NULL: all are of level 0. Adds up num_received[rank][class] and volume_bytes[rank][class]. */
void eb_messages_classify(int64_t num, const uint8_t *level, const uint32_t *dst, const int64_t *size_bytes,
                          const int64_t *level_first, const int64_t *min_bytes, int64_t num_classes, uint16_t *message_class,
                          int64_t *num_received, int64_t *volume_bytes);
/* Raises send_s[rank] to when the last of its messages among message[k] of a class with waits[class] is delivered, fraction[k] of
 * receive_s[rank] of its receiver. */
void eb_messages_delivered(int64_t num, const uint32_t *message, const double *fraction, const uint32_t *src, const uint32_t *dst,
                           const uint16_t *message_class, const bool *waits, const double *receive_s, double *send_s);

/* Messages as flows through the sending end of one group and the receiving end of another. */
typedef struct eb_flows eb_flows;

/* Every message goes to another group; those of 0 bytes are left out. group[rank]; message_class[message] < num_classes. With
 * by_process every receiving process has the same weight, else every message. NULL if memory is short. */
eb_flows *eb_flows_create(int64_t num_messages, const uint32_t *src, const uint32_t *dst, const int64_t *size_bytes,
                          const uint16_t *message_class, int64_t num_classes, int64_t num_ranks, const int64_t *group,
                          bool by_process);
void eb_flows_destroy(eb_flows *flows);

/* How many messages have bytes. */
int64_t eb_flows_num_messages(const eb_flows *flows);

/* How many sets of messages there are whose rates are always the same: the work of a step of eb_flows_complete. */
int64_t eb_flows_num_bundles(const eb_flows *flows);

/* Where times of messages with bytes are written, NULL for what is not wanted: when each is complete; raised to the last of
 * each receiving rank, and of those of a class with waits[class] of each sending rank. Times of millions of messages, far
 * apart in memory, take as long to write as to compute. */
typedef struct {
  double *finished_s;          /* [message] */
  double *received_s, *sent_s; /* [rank] */
  const bool *waits;
} eb_flow_times;

/* When messages are complete by max-min fair sharing of both ends.
 *
 * sending and receiving are [n - 1][class], the capacity in bytes/s of an end with n unfinished processes, for n up to
 * num_counts, the most processes of an end. Completions within tolerance_of_elapsed * now, or tolerance_of_bound * the time
 * that the busiest end needs at least, are one step. A step costs time in proportion to the bundles; without tolerance there
 * is a step for each message. */
int eb_flows_complete(const eb_flows *flows, int64_t num_counts, const double *sending_bytes_per_s,
                      const double *receiving_bytes_per_s, double tolerance_of_elapsed, double tolerance_of_bound,
                      const eb_flow_times *times);

/* Messages through first-come-first-served queues, one at the sending end and one at the receiving end of every group. The
 * messages from one rank to another follow each other on a connection; acknowledgements return through the queues of the
 * opposite direction. */
typedef struct eb_connections eb_connections;

/* What an exchange through queues depends on: the bytes of a connection that are in flight at most, a chunk or more; what may
 * wait at a sending end, as the time that it takes there, of which each unfinished connection has an equal part and at least a
 * chunk; bandwidth_bytes_per_s[n - 1][class], the capacity of an end with n unfinished processes, for n up to the most processes
 * of an end; buffered_bytes[class], what of a connection may be unacknowledged when a send is complete: 0 if senders wait,
 * infinity if they never do. */
typedef struct {
  int64_t window_bytes, num_classes;
  double sending_queue_s;
  const double *bandwidth_bytes_per_s, *buffered_bytes;
} eb_queue_costs;

/* As for eb_flows_create; every rank posts its messages in the order given. chunk_bytes are carried at a time. The arrays of
 * messages are not copied, and must remain as they are. */
eb_connections *eb_connections_create(int64_t num_messages, const uint32_t *src, const uint32_t *dst, const int64_t *size_bytes,
                                      const uint16_t *message_class, int64_t num_ranks, const int64_t *group, int64_t chunk_bytes);
void eb_connections_destroy(eb_connections *connections);

enum { EB_STALLED = -2 }; /* not everything is complete, and nothing moves any more: a defect of the queues */

/* Where times are written, NULL for what is not wanted: when each message is received and each send complete, and the last of
 * these times of each rank that has any. */
typedef struct {
  double *received_s, *sent_s;           /* [message] */
  double *last_received_s, *last_sent_s; /* [rank] */
} eb_queue_times;

int eb_connections_complete(const eb_connections *connections, const eb_queue_costs *costs, const eb_queue_times *times);

/* An exchange whose times by the staircase model are kept while ranks move and messages change, for layouts and partitions that
 * are improved step by step. Messages on and off a socket complete as (9) says for each level by itself. */
typedef struct eb_exchange eb_exchange;

/* node[rank] < num_nodes, socket[rank] < num_sockets, the socket within the node; by_size: the messages in the order of their
 * sizes. Classes are the protocols of the levels same socket, across sockets and between nodes: level_first[4] is where those of
 * each level begin, and their number; min_bytes[class], latency_s[class] and waits[class], whether a sender waits. The tables are
 * [n - 1][class] of the classes inside a node, and of those between nodes, for n up to num_counts, the most ranks that a node
 * ever has. Arguments are copied. NULL if memory is short. */
eb_exchange *eb_exchange_create(int64_t num_ranks, const int64_t *node, const int64_t *socket, int64_t num_nodes,
                                int64_t num_sockets, int64_t num_messages, const int64_t *src, const int64_t *dst,
                                const int64_t *size_bytes, const int64_t *by_size, const int64_t *level_first,
                                const int64_t *min_bytes, const double *latency_s, const bool *waits, int64_t num_counts,
                                const double *inside_bytes_per_s, const double *outside_bytes_per_s);
void eb_exchange_destroy(eb_exchange *exchange);

/* Moves ranks, each once, at the same time: two that swap their places are two moves. */
void eb_exchange_move(eb_exchange *exchange, int64_t num, const int64_t *ranks, const int64_t *nodes, const int64_t *sockets);
/* Changes sizes of messages, by their places in the arrays given. */
void eb_exchange_resize(eb_exchange *exchange, int64_t num, const int64_t *messages, const int64_t *size_bytes);

/* How many messages there are in a level: 0 on the same socket, 1 across sockets, 2 between nodes. */
int64_t eb_exchange_num_messages(const eb_exchange *exchange, int level);

/* Seconds of the slowest rank, the first one if several are; and of each rank, the sum of both being its time. */
double eb_exchange_slowest_s(const eb_exchange *exchange, int64_t *slowest);
void eb_exchange_times(const eb_exchange *exchange, double *intra_node_s, double *inter_node_s);

/* A program: what the threads of ranks compute, send, receive and wait for, in order. */
enum { EB_COMPUTE, EB_SEND, EB_RECEIVE, EB_WAIT_ALL, EB_WAIT_ANY, EB_ENTER, EB_NUM_OPERATIONS };
/* Who waits for whom in a collective: all for all; all for the root; the root for all; each for those with smaller ranks. Threads of a
 * process wait for each other like that without the MPI: all threads for all; all threads for that with the number of the root. */
enum { EB_ALL_WAIT, EB_WAIT_FOR_ROOT, EB_ROOT_WAITS, EB_PREFIX, EB_THREADS_WAIT, EB_WAIT_FOR_THREAD, EB_NUM_SEMANTICS };

/* The operations of thread t are first[t] .. first[t + 1] - 1; the threads are in the order of their ranks. Each takes
 * operation_s[k] of its thread: a computation; what a post occupies the processor, before it takes effect; what a wait or a
 * collective costs after what it waits for. argument[k] is the message of a send or receive, the set of a wait, the collective
 * that is entered; of EB_COMPUTE it is ignored.
 *
 * A set is requests, set_requests[set_first[s]] .. set_requests[set_first[s + 1] - 1]: the operations of the same rank that
 * have posted them, each in one EB_WAIT_ALL at most; an EB_WAIT_ANY returns at the first that is complete. A collective that is
 * entered is a request, too. Each message is sent once and received once. A wait for no request is a call of the MPI that
 * waits for nothing. collective_root is a rank, or a thread with EB_WAIT_FOR_THREAD. A rank enters a collective once; with
 * EB_THREADS_WAIT and EB_WAIT_FOR_THREAD a thread does. */
typedef struct {
  int64_t num_ranks, num_threads, num_operations, num_sets, num_set_requests, num_messages, num_collectives;
  const int64_t *thread_rank, *first;
  const uint8_t *operation;
  const double *operation_s;
  const int64_t *argument;
  const int64_t *set_first, *set_requests;
  const int64_t *message_bytes, *message_class;
  const uint8_t *collective_semantics;
  const int64_t *collective_root;
} eb_program;

/* What messages cost. A class is a protocol of a level. Messages from one rank to another follow each other. Those of a
 * class with is_between share the ends of the nodes of their ranks as in eb_flows_complete, by pair of ranks; others share
 * with the receivers of their receiver's group what eb_staircase shares. bandwidth_bytes_per_s[n - 1][class], beyond
 * num_counts constant. A message arrives latency_s after its last byte has left; it occupies the receiver's processor for
 * receive_s when a wait completes it. With waits[class] or awaits_receive[class] it begins when it is sent and its receive
 * is posted, else at once. The send is complete when the last byte has left with waits[class], else when the message begins.
 * With starts_inside[class] it begins only when after that the receiver, and then the sender, is inside the MPI: in any
 * operation but EB_COMPUTE and those of collectives of threads, which are an EB_ENTER and the wait whose first request it is; or at its
 * end, unless that is such an operation. */
typedef struct {
  int64_t num_nodes, num_groups, num_classes, num_counts;
  const int64_t *node, *group; /* of each rank; the groups of different nodes are different ones */
  const double *bandwidth_bytes_per_s;
  const double *latency_s, *receive_s; /* of each class */
  const uint8_t *is_between, *waits, *starts_inside, *awaits_receive;
} eb_network;

/* When each operation ended; the request that a wait waited for last, by its operation, or -1 if all were complete; when each
 * message could begin, and when its last byte left. NaN for what did not happen. */
typedef struct {
  double *end_s;             /* [operation] */
  int64_t *last_request;     /* [operation] */
  double *begun_s, *left_s; /* [message] */
} eb_simulated;

enum { EB_BAD_PROGRAM = -3, EB_DEADLOCK = -4 };

/* Simulates the program from time 0, at which all threads begin inside the MPI. Arguments are checked: EB_BAD_PROGRAM with the
 * reason in `reason`, a text that remains, and in *place the index that it is about. EB_DEADLOCK if threads wait for what never
 * happens; *place is the operation of the first one. */
int eb_program_simulate(const eb_program *program, const eb_network *network, const eb_simulated *result, int64_t *place,
                        const char **reason);

#ifdef __cplusplus
}
#endif

#endif
