/* Places of the program that are in the trace alone, because they are no calls of the MPI. */
#ifndef EB_THREAD_SITES_H
#define EB_THREAD_SITES_H

/* By any thread. */
void eb_thread_site_add(const void *site);

/* Those that no one has written yet, one after another; NULL: no more. Only under the lock of whoever writes. */
const void *eb_thread_site_unwritten(void);

#endif
