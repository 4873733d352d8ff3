# The course on PyTorch's build for the CPU: for Docker, Binder, the servers of a JupyterHub, and development containers.
#   docker build --tag course . && docker run --rm --publish 8888:8888 course
# For a hub: --build-arg HUB="jupyterhub==5.* nbgitpuller", with the hub's own version.
FROM python:3.11-slim-bookworm

ARG NB_USER=jovyan
ARG NB_UID=1000
ARG HUB=""
ENV HOME=/home/${NB_USER} PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore

RUN apt-get update \
    && apt-get install --yes --no-install-recommends fonts-dejavu-core git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid ${NB_UID} ${NB_USER}

# The package lies in /opt, read-only to students; the notebooks are copied into the home. What changes rarely comes first.
COPY constraints.txt /opt/course/
RUN pip install --constraint /opt/course/constraints.txt torch --index-url https://download.pytorch.org/whl/cpu
COPY . /opt/course
RUN pip install --constraint /opt/course/constraints.txt --editable /opt/course ${HUB} \
    && cp --recursive /opt/course ${HOME}/course && chown --recursive ${NB_UID} ${HOME}

USER ${NB_USER}
WORKDIR ${HOME}/course
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser"]
