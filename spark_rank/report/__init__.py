"""The HTML report: plots and page, from small tables; no Spark."""
