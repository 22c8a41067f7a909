/** Files of the media host over GraphQL: the same service as REST, seen through its types. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MEDIA_OBJECT_BYTES_MAX } from "../../src/services/files/limits.js";
import { createKey } from "../rest/client.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { picture } from "../support/pictures.js";
import { codes, execute, field, type Loose, type Target } from "./client.js";

const CREATE = `mutation ($input: CreateUploadInput!) {
  createUpload(input: $input) { id uploadUrl method headers { name value } expiresAt }
}`;
const OBJECT = "id url contentType size name tags createdAt expiresAt";
const COMPLETE = `mutation ($id: ID!) { completeUpload(input: { id: $id }) { ${OBJECT} } }`;
const DELETE = "mutation ($id: ID!) { deleteMedia(input: { id: $id }) { id } }";
const MEDIA = `query ($id: ID!) {
  media(id: $id) { __typename id url contentType size name createdAt expiresAt ... on MediaObject { tags } }
}`;
const MY_MEDIA =
  "query ($first: Int, $after: String) { myMedia(first: $first, after: $after) { edges { cursor node { id } } pageInfo { hasNextPage endCursor } } }";
const PUBLIC_MEDIA = `query ($tag: String!, $first: Int, $after: String) {
  publicMedia(tag: $tag, first: $first, after: $after) { edges { node { id tags } } pageInfo { hasNextPage endCursor } }
}`;
const QUOTA = "{ me { mediaQuota { usedBytes limitBytes files limitFiles } } }";

let app: TestApp;
let png: Buffer;
let stranger: Target;
let publishable: Target;
const nobody = (): Target => ({ ...app, key: null });

beforeAll(async () => {
  app = await createTestApp();
  png = await picture();
  stranger = { ...app, key: (await createStranger(app)).key };
  publishable = { ...app, key: (await createKey(app, { type: "publishable" })).key };
});
afterAll(() => app.close());

function announce(input: object = {}, target: Target = app) {
  return execute(target, CREATE, { input: { contentType: "image/png", size: png.length, ...input } });
}

async function send(upload: Loose): Promise<void> {
  const headers = Object.fromEntries(
    (upload.headers as unknown as { name: string; value: string }[]).map(({ name, value }) => [name, value]),
  );
  const url = String(upload.uploadUrl).replace("//localhost", "//127.0.0.1");
  expect((await fetch(url, { method: String(upload.method), headers, body: new Uint8Array(png) })).status).toBeLessThan(300);
}

async function addFile(input: object = {}, target: Target = app): Promise<string> {
  const upload = field(await announce(input, target), "createUpload");
  await send(upload);
  return String(field(await execute(target, COMPLETE, { id: upload.id }), "completeUpload").id);
}

describe("an upload", () => {
  it("is announced, sent, completed, read, listed and deleted, and seen in the quota", async () => {
    const tag = `t-${randomUUID()}`;
    const { usedBytes } = field(await execute(app, QUOTA), "me").mediaQuota as unknown as { usedBytes: number };

    const upload = field(await announce({ name: "mill.png", tags: [tag.toUpperCase()] }), "createUpload");
    expect(field(await execute(app, QUOTA), "me").mediaQuota).toEqual({
      usedBytes: usedBytes + png.length,
      limitBytes: 5 * 2 ** 30,
      files: 1,
      limitFiles: 10_000,
    });
    const { id } = upload;
    expect(codes(await execute(app, MEDIA, { id }))).toEqual(["NOT_FOUND"]);
    expect(codes(await execute(app, COMPLETE, { id }))).toEqual(["CONFLICT"]);
    await send(upload);
    const completed = field(await execute(app, COMPLETE, { id }), "completeUpload");

    expect(completed).toEqual({
      id,
      url: expect.stringMatching(`/media/${id}$`),
      contentType: "image/png",
      size: png.length,
      name: "mill.png",
      tags: [tag],
      createdAt: expect.stringMatching(/Z$/),
      expiresAt: null,
    });
    expect(field(await execute(app, COMPLETE, { id }), "completeUpload")).toEqual(completed);
    expect(field(await execute(nobody(), MEDIA, { id }), "media")).toEqual({ __typename: "MediaObject", ...completed });
    expect(field(await execute(nobody(), PUBLIC_MEDIA, { tag }), "publicMedia").edges).toEqual([{ node: { id, tags: [tag] } }]);
    expect(field(await execute(publishable, MY_MEDIA), "myMedia").edges).toMatchObject([{ node: { id } }]);
    const rest = await fetch(`${app.baseUrl}/media/${id}/metadata`);
    expect(await rest.json()).toMatchObject({ id, tags: [tag], createdAt: completed.createdAt });

    expect(field(await execute(app, DELETE, { id }), "deleteMedia")).toEqual({ id });
    expect(codes(await execute(app, MEDIA, { id }))).toEqual(["NOT_FOUND"]);
    expect(field(await execute(app, PUBLIC_MEDIA, { tag }), "publicMedia").edges).toEqual([]);
  });

  it("is refused as on REST", async () => {
    const param = async (input: object) => {
      const [error] = (await announce(input)).errors ?? [];
      return [error?.extensions.code, error?.extensions.param];
    };

    expect(await param({ size: MEDIA_OBJECT_BYTES_MAX + 1 })).toEqual(["PAYLOAD_TOO_LARGE", "size"]);
    expect(codes(await announce({ size: MEDIA_OBJECT_BYTES_MAX }))).toEqual([]);
    expect(await param({ size: 0 })).toEqual(["BAD_REQUEST", "size"]);
    expect(await param({ tags: ["a b"] })).toEqual(["BAD_REQUEST", "tags.0"]);
    expect(await param({ contentType: "png" })).toEqual(["BAD_REQUEST", "contentType"]);
    expect(codes(await announce({}, nobody()))).toEqual(["UNAUTHORIZED"]);
    expect(codes(await execute(nobody(), COMPLETE, { id: randomUUID() }))).toEqual(["UNAUTHORIZED"]);
    expect(codes(await execute(app, COMPLETE, { id: randomUUID() }))).toEqual(["NOT_FOUND"]);
    const upload = field(await announce(), "createUpload");
    await send(upload);
    expect(codes(await execute(stranger, COMPLETE, { id: upload.id }))).toEqual(["NOT_FOUND"]);
  });
});

describe("media", () => {
  it("is a file that is known by its content, too", async () => {
    const body = new Uint8Array(await picture(17, 19));
    const stored = await fetch(`${app.baseUrl}/media/upload`, { method: "POST", body, headers: { Authorization: `Bearer ${app.key}` } });
    const { id, url } = (await stored.json()) as { id: string; url: string };

    expect(field(await execute(nobody(), MEDIA, { id }), "media")).toEqual({
      __typename: "MediaFile",
      id,
      url,
      contentType: "image/png",
      size: body.length,
      name: null,
      createdAt: expect.stringMatching(/Z$/),
      expiresAt: expect.stringMatching(/Z$/),
    });
  });

  it.each(["../secrets.json", "0123456789abcdef", "00000000-0000-4000-8000-000000000000", ""])("is NOT_FOUND for %j", async (id) => {
    expect(codes(await execute(nobody(), MEDIA, { id }))).toEqual(["NOT_FOUND"]);
  });
});

describe("lists", () => {
  it("are paged, the account's own and everybody's", async () => {
    const tag = `t-${randomUUID()}`;
    const mine: string[] = [];
    for (let index = 0; index < 3; index += 1) mine.unshift(await addFile({ tags: [tag] }));
    const theirs = await addFile({ tags: [tag] }, stranger);

    const all: unknown[] = [];
    for (let after: unknown = null; after !== undefined; ) {
      const { edges, pageInfo } = field(await execute(nobody(), PUBLIC_MEDIA, { tag, first: 3, after }), "publicMedia");
      all.push(...(edges as unknown as { node: { id: string } }[]).map(({ node }) => node.id));
      after = pageInfo?.hasNextPage ? pageInfo.endCursor : undefined;
    }
    const own = field(await execute(app, MY_MEDIA, { first: 2 }), "myMedia");

    expect(all).toEqual([theirs, ...mine]);
    expect(own).toMatchObject({ edges: [{ node: { id: mine[0] } }, { node: { id: mine[1] } }], pageInfo: { hasNextPage: true } });
    expect(codes(await execute(nobody(), MY_MEDIA))).toEqual(["UNAUTHORIZED"]);
    for (const variables of [{ first: 0 }, { first: 101 }, { after: "made-up" }, { tag: "a b" }]) {
      expect(codes(await execute(app, PUBLIC_MEDIA, { tag, ...variables }))).toEqual(["BAD_REQUEST"]);
    }
  });
});

describe("deleteMedia", () => {
  it("is for secret keys of the owner, and for what has a tag", async () => {
    const id = await addFile({ tags: ["mine"] });
    const untagged = await addFile();

    expect(codes(await execute(nobody(), DELETE, { id }))).toEqual(["UNAUTHORIZED"]);
    expect(codes(await execute(publishable, DELETE, { id }))).toEqual(["FORBIDDEN"]);
    expect(codes(await execute(stranger, DELETE, { id }))).toEqual(["FORBIDDEN"]);
    expect(codes(await execute(app, DELETE, { id: untagged }))).toEqual(["NOT_FOUND"]);
    expect(codes(await execute(app, DELETE, { id: randomUUID() }))).toEqual(["NOT_FOUND"]);
    expect(codes(await execute(app, DELETE, { id }))).toEqual([]);
  });
});
