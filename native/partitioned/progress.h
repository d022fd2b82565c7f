/* An opt-in thread that calls the MPI while the program computes (EARLYBIRD_PROGRESS_THREAD=1). */
#ifndef EB_PROGRESS_H
#define EB_PROGRESS_H

/* Starts it, or says in one sentence why it cannot (the MPI gives no MPI_THREAD_MULTIPLE). */
void eb_progress_thread_begin(void);
void eb_progress_thread_end(void);

#endif
