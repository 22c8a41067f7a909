# The newest long-term line of Node; 20.19 is the oldest that is supported.
FROM node:24-bookworm-slim

# The wall around code agents; without it, or where the container may open no user namespaces, Deno stands alone.
RUN apt-get update \
  && apt-get install -y --no-install-recommends bubblewrap ca-certificates \
  && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY scripts/left-out scripts/left-out
RUN npm ci --omit=dev && npm cache clean --force
COPY prisma.config.ts tsconfig.json ./
COPY prisma prisma
COPY schema schema
COPY scripts scripts
COPY codegen.ts ./
COPY test/operations test/operations
COPY dashboard dashboard
COPY src src
RUN npm run build && mkdir /data && chown node:node /data

USER node
ENV HOST=0.0.0.0 DATA_DIR=/data
VOLUME /data
EXPOSE 4000
# Not by npm, so that SIGTERM reaches the server, which then drains.
CMD ["node", "--max-semi-space-size=32", "scripts/start.mjs"]
