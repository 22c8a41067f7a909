# The newest long-term line of Node; 20.19 is the oldest that is supported.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY dashboard/package.json dashboard/
COPY packages/sandbox/package.json packages/sandbox/
COPY scripts/left-out scripts/left-out
COPY scripts/prune-packages.mjs scripts/
RUN npm ci
COPY prisma.config.ts tsconfig.json codegen.ts ./
COPY prisma prisma
COPY schema schema
COPY scripts scripts
COPY test/operations test/operations
COPY dashboard dashboard
COPY packages packages
COPY docs docs
COPY src src
RUN npm run build
# With `--without-sandbox` the image has no sandbox models of images, videos, speech and music, and is 70 MB smaller.
RUN node scripts/keep-runtime-packages.mjs

FROM node:24-bookworm-slim
# The wall around code agents; without it, or where the container may open no user namespaces, Deno stands alone.
RUN apt-get update \
  && apt-get install -y --no-install-recommends bubblewrap ca-certificates \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/packages packages
COPY --from=build /app/scripts/left-out scripts/left-out
COPY --from=build /app/prisma/migrations prisma/migrations
COPY --from=build /app/schema schema
COPY --from=build /app/dist dist
RUN mkdir /data && chown node:node /data

USER node
ENV HOST=0.0.0.0 DATA_DIR=/data
VOLUME /data
EXPOSE 4000
# Not by npm, so that SIGTERM reaches the server, which then drains.
CMD ["node", "--max-semi-space-size=32", "dist/main.js"]
