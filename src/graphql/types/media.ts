/**
 * Files of the media host: what POST {media_url}/upload does (docs/spec/media.md#content-addressed-files), how they are read, listed and
 * deleted, and uploads straight to the blob store (docs/spec/media.md#direct-uploads).
 */

import { parsePermitted, requireAccount } from "../../services/access/permissions.js";
import { MEDIA_OBJECT_BYTES_MAX, MEDIA_TAGS_MAX, MEDIA_UPLOAD_BYTES_MAX } from "../../services/files/limits.js";
import type { MediaMetadata } from "../../services/files/media.js";
import type { UploadedMedia } from "../../services/files/media-links.js";
import type { CreatedUpload, MediaObject as MediaObjectRow } from "../../services/files/media-objects.js";
import { createUploadInput } from "../../services/files/media-objects-input.js";
import type { MediaQuota as Quota } from "../../services/files/media-quotas.js";
import { builder } from "../builder.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { Account } from "./accounts.js";

const UploadMediaInput = builder.inputType("UploadMediaInput", {
  fields: (t) => ({
    file: t.field({
      type: "File",
      required: true,
      description: `At most ${MEDIA_UPLOAD_BYTES_MAX / 1024 / 1024} MiB; kept for 14 days after its last upload.`,
    }),
    strip: t.boolean({
      required: false,
      defaultValue: false,
      description: "Without the metadata of a JPEG, PNG, WebP or GIF picture, such as where it was taken.",
    }),
  }),
});

const UploadMediaPayload = builder.objectRef<UploadedMedia>("UploadMediaPayload").implement({
  description: "A stored file. Anybody who knows its address may read it.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "The first 16 hexadecimal digits of the SHA-256." }),
    url: t.exposeString("url"),
    contentType: t.exposeString("contentType", {
      description: "As it was declared, as far as the bytes agree. Pages and scripts are served as application/octet-stream.",
    }),
    size: t.exposeInt("size", { description: "Bytes." }),
    duplicate: t.exposeBoolean("duplicate", { description: "The same bytes were there already." }),
  }),
});

builder.mutationField("uploadMedia", (t) =>
  t.field({
    type: UploadMediaPayload,
    nullable: true,
    description: "Stores a file under its content; uploading it again begins its time anew.",
    args: { input: t.arg({ type: UploadMediaInput, required: true }) },
    resolve: (_root, { input: { file, strip } }, ctx) => {
      const { bytes, contentType, name } = file;
      const about = { field: "file", contentType: contentType || null, name: name || null, strip: strip ?? false };
      return ctx.services.mediaLinks.uploadBytes(ctx, bytes, about);
    },
  }),
);

const Media = builder.interfaceRef<Omit<MediaMetadata, "kind">>("Media").implement({
  description: "A stored file. Anybody who knows its address may read it.",
  fields: (t) => ({
    id: t.exposeID("id"),
    url: t.exposeString("url"),
    contentType: t.exposeString("contentType"),
    size: t.exposeInt("size", { description: "Bytes." }),
    name: t.exposeString("name", { nullable: true }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", nullable: true, description: "Null: it is kept until it is deleted." }),
  }),
  resolveType: (media) => ("kind" in media && media.kind === "file" ? "MediaFile" : "MediaObject"),
});

builder.objectRef<Omit<MediaMetadata, "kind">>("MediaFile").implement({
  description: "A file that is known by its content: its id is the first 16 hexadecimal digits of the SHA-256.",
  interfaces: [Media],
});

const MediaObject = builder.objectRef<MediaObjectRow>("MediaObject").implement({
  description: "A file that its owner sent straight to the blob store. It is kept for 14 days when it has no tag.",
  interfaces: [Media],
  fields: (t) => ({
    tags: t.field({
      type: ["String"],
      description: "It is listed in the gallery under each of them.",
      resolve: ({ tags }) => [...tags],
    }),
  }),
});

builder.queryField("media", (t) =>
  t.field({
    type: Media,
    nullable: true,
    description: "A stored file. Open to all.",
    args: { id: t.arg.id({ required: true }) },
    resolve: (_root, { id }, ctx) => ctx.services.media.describe(id),
  }),
);

const MediaObjectConnection = builder.connectionObject({ type: MediaObject, name: "MediaObjectConnection" }, { name: "MediaObjectEdge" });

builder.queryField("myMedia", (t) =>
  t.field({
    type: MediaObjectConnection,
    nullable: true,
    description: "The account's tagged files, newest first. Any key may ask.",
    args: pageArgs,
    complexity: pageCost,
    resolve: async (_root, args, ctx) =>
      toConnection(await ctx.services.mediaObjects.listOwn(ctx, toPageRequest(args, "media")), "media", createdPosition),
  }),
);

builder.queryField("publicMedia", (t) =>
  t.field({
    type: MediaObjectConnection,
    nullable: true,
    description: "Everybody's files with a tag, newest first. Open to all.",
    args: { ...pageArgs, tag: t.arg.string({ required: true }) },
    complexity: pageCost,
    resolve: async (_root, { tag, ...args }, ctx) =>
      toConnection(await ctx.services.mediaObjects.listTagged(tag, toPageRequest(args, "media")), "media", createdPosition),
  }),
);

const CreateUploadInput = builder.inputType("CreateUploadInput", {
  fields: (t) => ({
    contentType: t.string({
      required: true,
      description:
        "What it is, as its bytes will say. What is no picture, sound, video, PDF or text is stored as application/octet-stream, and pages and scripts are served as that.",
    }),
    size: t.int({ required: true, description: `Its length in bytes: 1 to ${MEDIA_OBJECT_BYTES_MAX}.` }),
    name: t.string({ description: "What it is saved as." }),
    tags: t.stringList({ description: `At most ${MEDIA_TAGS_MAX}. A file with a tag is in the public gallery.` }),
  }),
});

const UploadHeader = builder.objectRef<readonly [string, string]>("UploadHeader").implement({
  fields: (t) => ({
    name: t.string({ resolve: ([name]) => name }),
    value: t.string({ resolve: ([, value]) => value }),
  }),
});

const CreateUploadPayload = builder.objectRef<CreatedUpload>("CreateUploadPayload").implement({
  description: "Where the file is to be sent. It can be read once `completeUpload` has found it to be what was announced.",
  fields: (t) => ({
    id: t.exposeID("id"),
    uploadUrl: t.exposeString("uploadUrl", { description: "Takes this one file, without a key." }),
    method: t.exposeString("method", { description: "`PUT`." }),
    headers: t.field({
      type: [UploadHeader],
      description: "Must be sent with the file, as they are.",
      resolve: ({ headers }) => Object.entries(headers),
    }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "Until when sending may begin." }),
  }),
});

builder.mutationField("createUpload", (t) =>
  t.field({
    type: CreateUploadPayload,
    nullable: true,
    description: "Asks for an address to send a file to. It counts towards the quota from now on. Any key may ask.",
    args: { input: t.arg({ type: CreateUploadInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.mediaObjects.createUpload(ctx, parsePermitted(ctx, requireAccount, createUploadInput, input)),
  }),
);

const CompleteUploadInput = builder.inputType("CompleteUploadInput", {
  fields: (t) => ({ id: t.id({ required: true }) }),
});

builder.mutationField("completeUpload", (t) =>
  t.field({
    type: MediaObject,
    nullable: true,
    description: "Makes a file that has been sent one that can be read. Repeating it changes nothing.",
    args: { input: t.arg({ type: CompleteUploadInput, required: true }) },
    resolve: (_root, { input }, ctx) => ctx.services.mediaObjects.complete(ctx, input.id),
  }),
);

const DeleteMediaInput = builder.inputType("DeleteMediaInput", {
  fields: (t) => ({ id: t.id({ required: true }) }),
});

const DeleteMediaPayload = builder.objectRef<{ readonly id: string }>("DeleteMediaPayload").implement({
  fields: (t) => ({ id: t.exposeID("id") }),
});

builder.mutationField("deleteMedia", (t) =>
  t.field({
    type: DeleteMediaPayload,
    nullable: true,
    description: "Deletes a tagged file of the account. Needs a secret key.",
    args: { input: t.arg({ type: DeleteMediaInput, required: true }) },
    resolve: (_root, { input }, ctx) => ctx.services.mediaObjects.delete(ctx, input.id),
  }),
);

const MediaQuota = builder.objectRef<Quota>("MediaQuota").implement({
  description: "What the account keeps on the media host, uploads that are under way included.",
  fields: (t) => ({
    usedBytes: t.exposeFloat("usedBytes"),
    limitBytes: t.exposeFloat("limitBytes"),
    files: t.exposeInt("files"),
    limitFiles: t.exposeInt("limitFiles"),
  }),
});

builder.objectField(Account, "mediaQuota", (t) =>
  t.field({
    type: MediaQuota,
    nullable: true,
    description: "Any key may ask.",
    resolve: (_row, _args, ctx) => ctx.services.mediaQuotas.get(ctx),
  }),
);
