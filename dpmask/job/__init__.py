"""The job file and the stages it goes through: read, mask, measure, decide, publish, verify."""
