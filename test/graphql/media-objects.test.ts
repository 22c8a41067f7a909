/** Files of the media host over GraphQL: the same service as REST, seen through its types. */
import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { MEDIA_OBJECT_BYTES_MAX } from "../../src/services/files/limits.js";
import {
  CompleteUploadDocument,
  CreateUploadDocument,
  type CreateUploadInput,
  type CreateUploadMutation,
  DeleteMediaDocument,
  ListOwnMediaDocument,
  type ListOwnMediaQueryVariables,
  MediaByIdDocument,
  MediaNodesDocument,
  MyMediaQuotaDocument,
  PublicMediaDocument,
  type PublicMediaQuery,
} from "../operations/generated/graphql.js";
import { createKey } from "../rest/client.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { picture } from "../support/pictures.js";
import { codes, execute, ok, type Target } from "./client.js";

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

type Upload = NonNullable<CreateUploadMutation["createUpload"]>["upload"];

function announce(input: Partial<CreateUploadInput> = {}, target: Target = app) {
  return execute(target, CreateUploadDocument, { input: { contentType: "image/png", size: png.length, ...input } });
}

async function begin(input: Partial<CreateUploadInput> = {}, target: Target = app): Promise<Upload> {
  return ok(await announce(input, target)).createUpload.upload;
}

async function send({ url, method, headers }: Upload, bytes: Uint8Array = png): Promise<void> {
  const sent = { method, headers: headers.map(({ name, value }): [string, string] => [name, value]), body: new Uint8Array(bytes) };
  expect((await fetch(url.replace("//localhost", "//127.0.0.1"), sent)).status).toBeLessThan(300);
}

async function complete(id: string, target: Target = app) {
  return ok(await execute(target, CompleteUploadDocument, { id })).completeUpload.mediaObject;
}

async function addFile(input: Partial<CreateUploadInput> = {}, target: Target = app, bytes: Uint8Array = png): Promise<string> {
  const upload = await begin({ size: bytes.length, ...input }, target);
  await send(upload, bytes);
  return (await complete(upload.mediaObjectId, target)).restId;
}

describe("an upload", () => {
  it("is announced, sent, completed, read, listed and deleted, and seen in the quota", async () => {
    const tag = `t-${randomUUID()}`;
    const quota = async () => ok(await execute(app, MyMediaQuotaDocument)).me.mediaQuota;
    const usedBytes = (await quota())?.usedBytes ?? Number.NaN;

    const upload = await begin({ name: "mill.png", tags: [tag.toUpperCase()] });
    expect(await quota()).toEqual({ usedBytes: usedBytes + png.length, limitBytes: 5 * 2 ** 30, files: 1, limitFiles: 10_000 });
    const id = upload.mediaObjectId;
    expect(codes(await execute(app, MediaByIdDocument, { id }))).toEqual(["NOT_FOUND"]);
    expect(codes(await execute(app, CompleteUploadDocument, { id }))).toEqual(["CONFLICT"]);
    await send(upload);
    const completed = await complete(id);

    expect(completed).toEqual({
      __typename: "MediaObject",
      id: toGlobalId("MediaObject", id),
      restId: id,
      url: expect.stringMatching(`/media/${id}$`),
      contentType: "image/png",
      kind: "IMAGE",
      size: png.length,
      name: "mill.png",
      tags: [tag],
      createdAt: expect.stringMatching(/Z$/),
      expiresAt: null,
    });
    expect(await complete(completed.id)).toEqual(completed);
    expect(ok(await execute(nobody(), MediaByIdDocument, { id: completed.id })).media).toEqual(completed);
    expect(ok(await execute(nobody(), PublicMediaDocument, { tag })).publicMedia).toMatchObject({
      totalCount: 1,
      nodes: [{ restId: id, tags: [tag] }],
    });
    expect(ok(await execute(publishable, ListOwnMediaDocument)).me.media).toMatchObject({ totalCount: 1, nodes: [{ restId: id }] });
    const rest = await fetch(`${app.baseUrl}/media/${id}/metadata`);
    expect(await rest.json()).toMatchObject({ id, tags: [tag], createdAt: completed.createdAt });

    expect(ok(await execute(app, DeleteMediaDocument, { id: completed.id })).deleteMedia).toEqual({ deletedId: id });
    expect(codes(await execute(app, MediaByIdDocument, { id }))).toEqual(["NOT_FOUND"]);
    expect(ok(await execute(app, PublicMediaDocument, { tag })).publicMedia).toMatchObject({ totalCount: 0, nodes: [] });
  });

  it("is refused as on REST", async () => {
    const param = async (input: Partial<CreateUploadInput>) => {
      const [error] = (await announce(input)).errors ?? [];
      return [error?.extensions.code, error?.extensions.param];
    };

    expect(await param({ size: MEDIA_OBJECT_BYTES_MAX + 1 })).toEqual(["PAYLOAD_TOO_LARGE", "size"]);
    expect(codes(await announce({ size: MEDIA_OBJECT_BYTES_MAX }))).toEqual([]);
    expect(await param({ size: 0 })).toEqual(["BAD_REQUEST", "size"]);
    expect(await param({ tags: ["a b"] })).toEqual(["BAD_REQUEST", "tags.0"]);
    expect(await param({ contentType: "png" })).toEqual(["BAD_REQUEST", "contentType"]);
    expect(codes(await announce({}, nobody()))).toEqual(["UNAUTHORIZED"]);
    expect(codes(await execute(nobody(), CompleteUploadDocument, { id: randomUUID() }))).toEqual(["UNAUTHORIZED"]);
    expect(codes(await execute(app, CompleteUploadDocument, { id: randomUUID() }))).toEqual(["NOT_FOUND"]);
    const upload = await begin();
    await send(upload);
    expect(codes(await execute(stranger, CompleteUploadDocument, { id: upload.mediaObjectId }))).toEqual(["NOT_FOUND"]);
  });
});

describe("media", () => {
  it("is a file that is known by its content, too", async () => {
    const body = new Uint8Array(await picture(17, 19));
    const stored = await fetch(`${app.baseUrl}/media/upload`, { method: "POST", body, headers: { Authorization: `Bearer ${app.key}` } });
    const { id, url } = (await stored.json()) as { id: string; url: string };

    const file = ok(await execute(nobody(), MediaByIdDocument, { id })).media;

    expect(file).toEqual({
      __typename: "MediaFile",
      id: toGlobalId("MediaFile", id),
      restId: id,
      url,
      contentType: "image/png",
      kind: "IMAGE",
      size: body.length,
      name: null,
      sha256: createHash("sha256").update(body).digest("hex"),
      createdAt: expect.stringMatching(/Z$/),
      expiresAt: expect.stringMatching(/Z$/),
    });
    expect(ok(await execute(nobody(), MediaByIdDocument, { id: file.id })).media).toEqual(file);
  });

  it("is found again by its id, with others, and not by that of another thing", async () => {
    const objectId = await addFile();
    const body = new Uint8Array(await picture(13, 7));
    const stored = await fetch(`${app.baseUrl}/media/upload`, { method: "POST", body, headers: { Authorization: `Bearer ${app.key}` } });
    const { id: fileId } = (await stored.json()) as { id: string };
    const pending = (await begin()).mediaObjectId;
    const ids = [
      toGlobalId("MediaFile", fileId),
      toGlobalId("MediaObject", objectId),
      toGlobalId("MediaObject", pending),
      toGlobalId("MediaFile", objectId),
    ];

    const { nodes } = ok(await execute(nobody(), MediaNodesDocument, { ids }));
    const refused = await execute(app, MediaByIdDocument, { id: toGlobalId("Account", objectId) });

    expect(nodes).toEqual([
      { __typename: "MediaFile", id: ids[0], size: body.length },
      { __typename: "MediaObject", id: ids[1], size: png.length },
      null,
      null,
    ]);
    expect(refused.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "id" });
  });

  it.each(["../secrets.json", "0123456789abcdef", "00000000-0000-4000-8000-000000000000", ""])("is NOT_FOUND for %j", async (id) => {
    expect(codes(await execute(nobody(), MediaByIdDocument, { id }))).toEqual(["NOT_FOUND"]);
  });
});

describe("lists", () => {
  it("are paged, the account's own and the public one", async () => {
    const tag = `t-${randomUUID()}`;
    const mine: string[] = [];
    for (let index = 0; index < 3; index += 1) mine.unshift(await addFile({ tags: [tag] }));
    const theirs = await addFile({ tags: [tag] }, stranger);

    const all: string[] = [];
    for (let after: string | null | undefined = null; after !== undefined; ) {
      const page: PublicMediaQuery["publicMedia"] = ok(await execute(nobody(), PublicMediaDocument, { tag, first: 3, after })).publicMedia;
      all.push(...(page?.nodes.map(({ restId }) => restId) ?? []));
      after = page?.pageInfo.hasNextPage ? page.pageInfo.endCursor : undefined;
    }
    const own = ok(await execute(app, ListOwnMediaDocument, { first: 2 })).me.media;

    expect(all).toEqual([theirs, ...mine]);
    expect(own).toMatchObject({
      nodes: [{ restId: mine[0] }, { restId: mine[1] }],
      pageInfo: { hasNextPage: true },
    });
    expect(codes(await execute(nobody(), ListOwnMediaDocument))).toEqual(["UNAUTHORIZED"]);
    for (const variables of [{ first: 0 }, { first: 101 }, { after: "made-up" }, { tag: "a b" }]) {
      expect(codes(await execute(app, PublicMediaDocument, { tag, ...variables }))).toEqual(["BAD_REQUEST"]);
    }
  });

  describe("D of an account's own", () => {
    const tag = `t-${randomUUID()}`;
    const list = async (variables: ListOwnMediaQueryVariables) => {
      const { media } = ok(await execute(app, ListOwnMediaDocument, { ...variables, filter: { tags: [tag], ...variables.filter } })).me;
      if (!media) throw new Error("There is no list.");
      return { ...media, ids: media.nodes.map(({ restId }) => restId) };
    };
    let files: { readonly small: string; readonly unnamed: string; readonly text: string; readonly pdf: string };

    beforeAll(async () => {
      const write = (text: string, input: Partial<CreateUploadInput>) => addFile({ tags: [tag], ...input }, app, Buffer.from(text));
      files = {
        small: await addFile({ tags: [tag, `${tag}.b`], name: "b.png" }),
        unnamed: await addFile({ tags: [tag] }, app, await picture(90, 90)),
        text: await write("A mill stands by the river.".repeat(200), { contentType: "text/plain", name: "a.txt" }),
        pdf: await write(`%PDF-1.4\n${"%".repeat(2_000)}`, { contentType: "application/pdf", name: "c.pdf" }),
      };
      await addFile({ tags: [tag] }, stranger);
      await addFile();
    });

    it("are filtered by kind and type, and by tags", async () => {
      const { small, unnamed, text, pdf } = files;

      expect((await list({})).ids).toEqual([pdf, text, unnamed, small]);
      expect((await list({ filter: { kinds: ["IMAGE"] } })).ids).toEqual([unnamed, small]);
      expect((await list({ filter: { kinds: ["TEXT", "OTHER"] } })).ids).toEqual([pdf, text]);
      expect((await list({ filter: { contentTypes: ["text/plain", "IMAGE/PNG"] } })).ids).toEqual([text, unnamed, small]);
      expect(await list({ filter: { tags: [tag, `${tag}.B`] } })).toMatchObject({ ids: [small], totalCount: 1 });
      expect(await list({ filter: { kinds: ["VIDEO"] } })).toMatchObject({ ids: [], totalCount: 0 });
    });

    it.each(["CREATED_AT", "SIZE", "NAME"] as const)("are sorted by %s, and paged in that order from both ends", async (field) => {
      const { small, unnamed, text, pdf } = files;
      const wanted = { CREATED_AT: [small, unnamed, text, pdf], SIZE: [small, unnamed, pdf, text], NAME: [text, small, pdf, unnamed] }[
        field
      ];

      for (const [direction, ids] of [
        ["ASC", wanted],
        ["DESC", [...wanted].reverse()],
      ] as const) {
        const orderBy = { field, direction };
        const forward: string[] = [];
        for (let after: string | null | undefined = null; after !== undefined; ) {
          const page = await list({ first: 1, after, orderBy });
          forward.push(...page.ids);
          expect(page).toMatchObject({ totalCount: 4, pageInfo: { hasPreviousPage: after !== null } });
          after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : undefined;
        }
        const end = await list({ last: 1, orderBy });
        const before = await list({ last: 2, before: end.pageInfo.startCursor, orderBy });

        expect([forward, end.ids, before.ids]).toEqual([ids, ids.slice(3), ids.slice(1, 3)]);
      }
    });

    it("refuse an unknown filter and a foreign cursor", async () => {
      const cursor = (await list({ first: 1, orderBy: { field: "SIZE", direction: "ASC" } })).pageInfo.endCursor;
      const made = (list: string, rank: string, id: string = randomUUID()) =>
        Buffer.from(JSON.stringify([list, rank, id])).toString("base64url");
      const refusals: [ListOwnMediaQueryVariables, string][] = [
        [{ after: cursor }, "after"],
        [{ before: made("media.created_at.desc", "many") }, "before"],
        [{ after: made("media.created_at.desc", "1", "1") }, "after"],
        [{ after: made("media.name.asc", "\0"), orderBy: { field: "NAME", direction: "ASC" } }, "after"],
        [{ first: 1, last: 1 }, "last"],
        [{ filter: { kinds: [] } }, "kinds"],
        [{ filter: { tags: ["a b"] } }, "tags.0"],
        [{ filter: { contentTypes: Array(21).fill("image/png") } }, "contentTypes"],
      ];

      for (const [variables, param] of refusals) {
        const { errors } = await execute(app, ListOwnMediaDocument, variables);
        expect(errors?.map(({ extensions }) => [extensions.code, extensions.param])).toEqual([["BAD_REQUEST", param]]);
      }
      expect(codes(await execute(nobody(), ListOwnMediaDocument))).toEqual(["UNAUTHORIZED"]);
    });
  });
});

describe("deleteMedia", () => {
  it("is for secret keys of the owner, and for tagged files", async () => {
    const id = await addFile({ tags: ["mine"] });
    const untagged = await addFile();

    expect(codes(await execute(nobody(), DeleteMediaDocument, { id }))).toEqual(["UNAUTHORIZED"]);
    expect(codes(await execute(publishable, DeleteMediaDocument, { id }))).toEqual(["FORBIDDEN"]);
    expect(codes(await execute(stranger, DeleteMediaDocument, { id }))).toEqual(["FORBIDDEN"]);
    expect(codes(await execute(app, DeleteMediaDocument, { id: untagged }))).toEqual(["NOT_FOUND"]);
    expect(codes(await execute(app, DeleteMediaDocument, { id: randomUUID() }))).toEqual(["NOT_FOUND"]);
    expect(codes(await execute(app, DeleteMediaDocument, { id: toGlobalId("MediaObject", id) }))).toEqual([]);
  });
});
