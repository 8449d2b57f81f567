# spark-rank in an image: docker build --tag spark-rank . (or `make image`)
#   docker run --rm --volume "$PWD:/data" spark-rank pipeline --set input.path=ratings.csv
FROM python:3.11-slim AS build
WORKDIR /build
RUN python -m venv /opt/spark_rank
COPY conf/requirements-build.lock conf/requirements-run.lock conf/requirements-jre.lock conf/
# by setuptools of the lock: pyspark comes as a source distribution
RUN /opt/spark_rank/bin/python -m pip install --no-cache-dir --require-hashes \
        -r conf/requirements-build.lock \
    && /opt/spark_rank/bin/python -m pip install --no-cache-dir --require-hashes \
        --no-build-isolation -r conf/requirements-run.lock -r conf/requirements-jre.lock
COPY pyproject.toml README.md LICENSE ./
COPY spark_rank spark_rank
RUN /opt/spark_rank/bin/python -m pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim
COPY --from=build /opt/spark_rank /opt/spark_rank
COPY conf /opt/conf
COPY jobs /opt/jobs
# nobody needs root to learn models; compiled functions go to the home of this user
RUN useradd --create-home --uid 1000 rank && mkdir /data && chown rank /data
ENV PATH=/opt/spark_rank/bin:$PATH
USER rank
WORKDIR /data
RUN spark-rank --version && spark-rank java --check
ENTRYPOINT ["spark-rank"]
CMD ["--help"]
