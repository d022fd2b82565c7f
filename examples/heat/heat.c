/* Heat conduction in a plate whose rows are divided among the ranks: `heat STEPS [even]`. Without `even` the last rank
 * has about three times as many rows as each of the others. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 65536L
#define ROWS 16 /* of each rank, on average */

static double *plate, *next;

/* The rows above and below those of this rank are its neighbours'. */
static void exchange_rows(int rows, int above, int below) {
  MPI_Request requests[4];
  MPI_Irecv(plate, COLUMNS, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(plate + (rows + 1) * COLUMNS, COLUMNS, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(plate + COLUMNS, COLUMNS, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(plate + rows * COLUMNS, COLUMNS, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

/* The largest change of a point. */
static double conduct(int rows) {
  double most = 0;
  for (long row = 1; row <= rows; row++)
    for (long column = 1; column < COLUMNS - 1; column++) {
      const double *point = plate + row * COLUMNS + column;
      const double value = 0.25 * (point[-COLUMNS] + point[COLUMNS] + point[-1] + point[1]);
      next[row * COLUMNS + column] = value;
      most = fmax(most, fabs(value - *point));
    }
  return most;
}

static double largest_change(double change) {
  double largest;
  MPI_Allreduce(&change, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return largest;
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int steps = argc > 1 ? atoi(argv[1]) : 100, is_even = argc > 2 && strcmp(argv[2], "even") == 0;
  const int each = is_even ? ROWS : ROWS * size / (size + 2), rows = rank < size - 1 ? each : ROWS * size - each * (size - 1);
  plate = calloc((rows + 2) * COLUMNS, sizeof *plate);
  next = calloc((rows + 2) * COLUMNS, sizeof *next);
  for (long column = 0; rank == 0 && column < COLUMNS; column++) plate[column] = next[column] = 100;

  const double begin = MPI_Wtime();
  double change = 0;
  for (int step = 0; step < steps; step++) {
    exchange_rows(rows, rank > 0 ? rank - 1 : MPI_PROC_NULL, rank < size - 1 ? rank + 1 : MPI_PROC_NULL);
    change = largest_change(conduct(rows));
    double *other = plate;
    plate = next;
    next = other;
  }
  if (rank == 0) printf("%d steps in %.2f s, last change %.3g\n", steps, MPI_Wtime() - begin, change);
  MPI_Finalize();
  return 0;
}
