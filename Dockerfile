# syntax=docker/dockerfile:1
#
# Stockade as one static program, in an image with a shell and git, as an ordinary user.
#
#   docker build --tag stockade .
#   docker run --rm stockade                            what this machine can enforce, in a default container
#   docker run --rm -i -v "$PWD:/workspace" stockade mcp --preset workspace-write
#
# It needs no capability, no privilege and no seccomp profile of its own. See docs/containers.md.

FROM docker.io/library/rust:1.95-slim-trixie AS build
WORKDIR /source
COPY . .
# Static, so that the program runs in any image; a target is named, so that build scripts stay as they are.
RUN target="$(rustc --print host-tuple)" \
 && RUSTFLAGS="-C target-feature=+crt-static" cargo build --profile dist --locked --bin stockade --target "$target" \
 && install -D --mode=0755 "target/$target/dist/stockade" /out/stockade

FROM docker.io/library/debian:trixie-slim
# Whose files are mounted at /workspace: `--build-arg UID="$(id -u)" --build-arg GID="$(id -g)"` for your own.
ARG UID=10001
ARG GID=10001
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates git \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid "$GID" agent \
 && useradd --uid "$UID" --gid "$GID" --create-home --shell /bin/bash agent \
 && install --directory --owner=agent --group=agent /workspace
COPY --from=build /out/stockade /usr/local/bin/stockade
# By number, so that Kubernetes can see that it is not root.
USER ${UID}:${GID}
WORKDIR /workspace
ENTRYPOINT ["stockade"]
CMD ["doctor"]
