"""Spark as a process: session, Java, executors, progress, event logs, files of any file system."""
