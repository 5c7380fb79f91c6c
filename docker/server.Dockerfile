# The server of every environment that needs nothing but Python. Build from the repository's root:
#   docker build -f docker/server.Dockerfile -t agentgyms/server:0.1.0 .
# Which environment it serves is the command's first argument. With Chromium, for WebShopBrowser:
#   docker build -f docker/server.Dockerfile --build-arg BROWSER=yes -t agentgyms/server-browser:0.1.0 .
# With the AppWorld engine, whose apps stay packed: its licence asks that images that are passed on
# hold them encrypted only. `python -m env_servers.appworld_engine` unpacks them when it starts.
# For x86-64 alone: one of its requirements has no wheel for other machines.
#   docker build -f docker/server.Dockerfile --build-arg APPWORLD=yes -t agentgyms/server-appworld:0.1.0 .
# What pip installs is locked by version and hash: see lock. The base image is pinned to Python's
# minor version and Debian's release, whose security updates it takes; a digest pins it to the bit:
#   --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:...

ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG BROWSER=no
ARG APPWORLD=no

FROM ${PYTHON_IMAGE} AS build
ARG BROWSER
WORKDIR /build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
# The requirements come first: they change seldom, so their layer is seldom built again.
COPY docker/requirements-server.txt docker/requirements-browser.txt docker/requirements-build.txt docker/
RUN python -m venv --without-pip /opt/agentgyms \
    && if [ "$BROWSER" = yes ]; then wanted=browser; else wanted=server; fi \
    && python -m pip --python /opt/agentgyms/bin/python install --no-deps --only-binary :all: \
        --require-hashes -r "docker/requirements-$wanted.txt" \
    && find /opt/agentgyms/lib -type d -name tests -prune -exec rm -r {} + \
    && python -m venv --without-pip /opt/tools \
    && python -m pip --python /opt/tools/bin/python install --no-deps --only-binary :all: \
        --require-hashes -r docker/requirements-build.txt
COPY pyproject.toml README.md LICENSE agentgyms_tasks.py ./
COPY agentgyms agentgyms
COPY env_servers env_servers
# The command `harness` goes, for the package of this name stays outside of the image.
RUN /opt/tools/bin/hatchling build -t wheel -d /wheels \
    && python -m pip --python /opt/agentgyms/bin/python install --no-deps /wheels/*.whl \
    && python -m pip --python /opt/agentgyms/bin/python check \
    && rm /opt/agentgyms/bin/harness \
    && mkdir /data

FROM ${PYTHON_IMAGE} AS appworld-no
RUN mkdir /opt/appworld

FROM ${PYTHON_IMAGE} AS appworld-yes
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements-appworld.txt ./
RUN python -m venv --without-pip /opt/appworld \
    && python -m pip --python /opt/appworld/bin/python install --no-deps --only-binary :all: \
        --require-hashes -r requirements-appworld.txt \
    && python -m pip --python /opt/appworld/bin/python check

FROM appworld-${APPWORLD} AS appworld

FROM ${PYTHON_IMAGE} AS browser-no

FROM ${PYTHON_IMAGE} AS browser-yes
RUN apt-get update \
    && apt-get install -y --no-install-recommends chromium chromium-driver fonts-dejavu-core \
    && rm -rf /var/lib/apt/lists/* \
    # Chromium's own sandbox needs rights that a confined container does not have.
    && echo 'export CHROMIUM_FLAGS="$CHROMIUM_FLAGS --no-sandbox"' > /etc/chromium.d/container

FROM browser-${BROWSER}
# What seldom changes comes first. HOME lies in /tmp because that alone is writable in a read-only
# container.
ENV PATH=/opt/agentgyms/bin:$PATH \
    HOME=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    AGENTGYMS_DATA=/data \
    AGENTGYMS_LOG_FORMAT=json
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
# No token is in here: without AGENTGYMS_TOKEN the server refuses to listen beyond the container.
ENTRYPOINT ["python", "-m", "env_servers"]
CMD ["agentgyms/ALFWorld-v0", "--host", "0.0.0.0", "--port", "8000"]
# An empty volume takes over owner and rights, so that the service `data` may write to it.
COPY --from=build --chown=10001:10001 /data /data
WORKDIR /data
COPY --from=appworld /opt/appworld /opt/appworld
COPY --from=build /opt/agentgyms /opt/agentgyms
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="agentgyms server" \
      org.opencontainers.image.description="An environment of agentgyms over HTTP" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
