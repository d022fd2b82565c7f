"""What a recording says: who sends to whom, the time in calls, waiting, and what is missing."""
