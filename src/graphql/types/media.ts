/**
 * Files of the media host: POST {media_url}/upload (docs/spec/media.md#content-addressed-files), reading, listing and deletion, and
 * uploads directly to the blob store (docs/spec/media.md#direct-uploads).
 */

import { parsePermitted, requireAccount } from "../../services/access/permissions.js";
import { MEDIA_OBJECT_BYTES_MAX, MEDIA_TAGS_MAX, MEDIA_UPLOAD_BYTES_MAX } from "../../services/files/limits.js";
import { isMediaFileId, type StoredMedia } from "../../services/files/media-links.js";
import { kindOf, type MediaKind, type MediaOrder, mediaCursors, mediaPosition } from "../../services/files/media-lists.js";
import type { CreatedUpload, SelectedMediaObject } from "../../services/files/media-objects.js";
import { createUploadInput } from "../../services/files/media-objects-input.js";
import type { MediaQuota as Quota } from "../../services/files/media-quotas.js";
import { builder, describedValues } from "../builder.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, OrderDirection, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";

const MEDIA_TYPES = ["MediaFile", "MediaObject"] as const;

const MediaKindEnum = builder.enumType("MediaKind", {
  description: "The kind of a file, by its media type.",
  values: describedValues<MediaKind>({
    image: "An image.",
    video: "A video.",
    audio: "Audio.",
    text: "Text.",
    other: "Any other type, such as PDF and JSON.",
  }),
});

/** Descriptions of fields that both types of files have. */
const SAID = {
  url: "The public URL of the file.",
  contentType:
    "The media type, as declared when the file's content agrees with it. Pages and scripts are served as application/octet-stream.",
  kind: "The kind of the file, by its media type.",
  size: "The size in bytes.",
  name: "The file name for downloads. Null when there is none.",
  createdAt: "When the file was stored.",
  expiresAt: "When the file is deleted. Null when it is kept until an owner deletes it.",
};

const Media = builder.interfaceRef<{ readonly id: string }>("Media").implement({
  description: "A stored file. Its URL is public.",
  interfaces: [Node],
  fields: (t) => ({
    url: t.string({ description: SAID.url }),
    contentType: t.string({ description: SAID.contentType }),
    kind: t.field({ type: MediaKindEnum, description: SAID.kind }),
    size: t.int({ description: SAID.size }),
    name: t.string({ nullable: true, description: SAID.name }),
    createdAt: t.field({ type: "DateTime", description: SAID.createdAt }),
    expiresAt: t.field({ type: "DateTime", nullable: true, description: SAID.expiresAt }),
  }),
  resolveType: ({ id }) => (isMediaFileId(id) ? "MediaFile" : "MediaObject"),
});

const MediaFile = builder.objectRef<StoredMedia>("MediaFile").implement({
  description: "A file that is addressed by its content. The REST ID is the first 16 hexadecimal digits of its SHA-256.",
  interfaces: [Node, Media],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.mediaLinks.getMany(ids))),
  fields: (t) => ({
    url: t.string({ description: SAID.url, resolve: ({ id }, _args, ctx) => ctx.services.media.urlOf(id) }),
    contentType: t.exposeString("contentType", { description: SAID.contentType }),
    kind: t.field({ type: MediaKindEnum, description: SAID.kind, resolve: ({ contentType }) => kindOf(contentType) }),
    size: t.exposeInt("sizeBytes", { description: SAID.size }),
    name: t.exposeString("name", { nullable: true, description: SAID.name }),
    sha256: t.exposeString("sha256", { description: "The SHA-256 of the content, in hexadecimal." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When this content was first uploaded." }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "When the file is deleted, unless it is uploaded again." }),
  }),
});

const MediaObject = builder.prismaObject("MediaObject", {
  description: "A file uploaded directly to the blob store. Without tags it is kept for 14 days.",
  interfaces: [Node, Media],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.mediaObjects.getMany(ids, selectionOf(ctx, info, [], "MediaObject"))),
  ),
  fields: (t) => ({
    url: t.string({ description: SAID.url, resolve: ({ id }, _args, ctx) => ctx.services.media.urlOf(id) }),
    contentType: t.exposeString("contentType", { description: SAID.contentType }),
    kind: t.field({
      type: MediaKindEnum,
      description: SAID.kind,
      select: { contentType: true },
      resolve: ({ contentType }) => kindOf(contentType),
    }),
    size: t.exposeInt("sizeBytes", { description: SAID.size }),
    name: t.exposeString("name", { nullable: true, description: SAID.name }),
    tags: t.exposeStringList("tags", { description: "The tags under which the public gallery lists the file." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the upload was completed." }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", nullable: true, description: SAID.expiresAt }),
  }),
});

builder.queryField("media", (t) =>
  t.field({
    type: Media,
    nullable: true,
    description: "A stored file. Needs no credentials.",
    args: { id: t.arg.id({ required: true, description: "The ID of the file." }) },
    resolve: (_root, { id }, ctx, info) =>
      ctx.services.media.getSelected(readId(id, MEDIA_TYPES, "id"), selectionOf(ctx, info, [], "MediaObject")),
  }),
);

const MediaFilter = builder.inputType("MediaFilter", {
  description: "Filters for files. A file must match all of them. Omitted filters match every file.",
  fields: (t) => ({
    kinds: t.field({ type: [MediaKindEnum], description: "Files of one of these kinds." }),
    contentTypes: t.stringList({ description: "Files of one of these media types, such as `image/png`; at most 20." }),
    tags: t.stringList({ description: `Files with all of these tags; at most ${MEDIA_TAGS_MAX}.` }),
  }),
});

const MediaOrderField = builder.enumType("MediaOrderField", {
  description: "The field to sort files by.",
  values: describedValues<MediaOrder["field"]>({
    created_at: "The time of completion.",
    size: "The size in bytes.",
    name: "The file name. Files without a name sort after all others.",
  }),
});

const MediaOrderInput = builder.inputType("MediaOrder", {
  description: "The sort order of files.",
  fields: (t) => ({
    field: t.field({ type: MediaOrderField, required: true, defaultValue: "created_at", description: "The field to sort by." }),
    direction: t.field({ type: OrderDirection, required: true, defaultValue: "desc", description: "The direction." }),
  }),
});

const MediaObjectConnection = builder.connectionObject(
  { type: MediaObject, name: "MediaObjectConnection", description: "A page of stored files." },
  { name: "MediaObjectEdge", description: "A stored file and its cursor." },
);

builder.prismaObjectField(Account, "media", (t) =>
  t.field({
    type: MediaObjectConnection,
    nullable: true,
    description: "The account's tagged files. Works with any key.",
    args: {
      ...pageArgs,
      filter: t.arg({ type: MediaFilter, description: "Filters. Defaults to all files." }),
      orderBy: t.arg({
        type: MediaOrderInput,
        required: true,
        defaultValue: { field: "created_at", direction: "desc" },
        description: "The sort order.",
      }),
    },
    complexity: pageCost,
    resolve: async ({ id }, { filter, orderBy, ...args }, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, id);
      const [list, cursors] = [`media.${orderBy.field}.${orderBy.direction}`, mediaCursors(orderBy)];
      const query = { filter: filter ?? {}, orderBy, page: toPageRequest(args, list, cursors) };
      const page = await ctx.services.mediaObjects.listSelected(ctx, query, connectionSelectionOf(ctx, info));
      return toConnection(page, list, (row) => mediaPosition(row, orderBy), cursors);
    },
  }),
);

builder.queryField("publicMedia", (t) =>
  t.field({
    type: MediaObjectConnection,
    nullable: true,
    description: "Files of all accounts with a tag, newest first. Needs no credentials.",
    args: { ...pageArgs, tag: t.arg.string({ required: true, description: "The tag, case-insensitive." }) },
    complexity: pageCost,
    resolve: async (_root, { tag, ...args }, ctx, info) => {
      const page = await ctx.services.mediaObjects.listTaggedSelected(tag, toPageRequest(args, "media"), connectionSelectionOf(ctx, info));
      return toConnection(page, "media", createdPosition);
    },
  }),
);

const UploadMediaInput = builder.inputType("UploadMediaInput", {
  description: "Parameters of `uploadMedia`.",
  fields: (t) => ({
    file: t.field({
      type: "File",
      required: true,
      description: `The file, at most ${MEDIA_UPLOAD_BYTES_MAX / 1024 / 1024} MiB. Kept for 14 days after its last upload.`,
    }),
    isStripped: t.boolean({
      defaultValue: false,
      description: "Whether to remove metadata, such as the location, from a JPEG, PNG, WebP or GIF image.",
      extensions: { wireName: "strip" },
    }),
  }),
});

interface UploadedMediaFile {
  readonly mediaFile: StoredMedia;
  readonly isDuplicate: boolean;
}

const UploadMediaPayload = builder.objectRef<UploadedMediaFile>("UploadMediaPayload").implement({
  description: "The result of `uploadMedia`.",
  fields: (t) => ({
    mediaFile: t.field({ type: MediaFile, description: "The stored file.", resolve: ({ mediaFile }) => mediaFile }),
    isDuplicate: t.exposeBoolean("isDuplicate", { description: "Whether the same content was already stored." }),
  }),
});

builder.mutationField("uploadMedia", (t) =>
  t.field({
    type: UploadMediaPayload,
    nullable: true,
    description: "Stores a file under the hash of its content. Uploading it again restarts its retention period.",
    args: { input: t.arg({ type: UploadMediaInput, required: true, description: "The file to store." }) },
    resolve: async (_root, { input: { file, isStripped } }, ctx) => {
      const { bytes, contentType, name } = file;
      const about = { field: "file", contentType: contentType || null, name: name || null, strip: isStripped ?? false };
      const { id, duplicate } = await ctx.services.mediaLinks.uploadBytes(ctx, bytes, about);
      return { mediaFile: await ctx.services.mediaLinks.get(id), isDuplicate: duplicate };
    },
  }),
);

const CreateUploadInput = builder.inputType("CreateUploadInput", {
  description: "Parameters of `createUpload`.",
  fields: (t) => ({
    contentType: t.string({
      required: true,
      description:
        "The media type, which the content must match. Files other than images, audio, video, PDF and text are stored as application/octet-stream; pages and scripts are served as that type.",
    }),
    size: t.int({ required: true, description: `The size in bytes, 1 to ${MEDIA_OBJECT_BYTES_MAX}.` }),
    name: t.string({ description: "The file name for downloads." }),
    tags: t.stringList({ description: `At most ${MEDIA_TAGS_MAX} tags. A file with a tag is listed in the public gallery.` }),
  }),
});

const UploadHeader = builder.objectRef<readonly [string, string]>("UploadHeader").implement({
  description: "A header to send with the upload.",
  fields: (t) => ({
    name: t.string({ description: "The name of the header.", resolve: ([name]) => name }),
    value: t.string({ description: "The value of the header, to send unchanged.", resolve: ([, value]) => value }),
  }),
});

const Upload = builder.objectRef<CreatedUpload>("Upload").implement({
  description: "The upload of one file. The file can be read after `completeUpload` has checked it.",
  fields: (t) => ({
    mediaObjectId: t.exposeID("id", { description: "The REST ID of the future file, for `completeUpload`." }),
    url: t.exposeString("uploadUrl", { description: "The URL to send the file to. It accepts this one file, without a key." }),
    method: t.exposeString("method", { description: "The HTTP method: `PUT`." }),
    headers: t.field({
      type: [UploadHeader],
      description: "The headers to send, all of them, unchanged.",
      resolve: ({ headers }) => Object.entries(headers),
    }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "The latest time to start the upload." }),
  }),
});

const CreateUploadPayload = builder.objectRef<{ readonly upload: CreatedUpload }>("CreateUploadPayload").implement({
  description: "The result of `createUpload`.",
  fields: (t) => ({ upload: t.field({ type: Upload, description: "The upload.", resolve: ({ upload }) => upload }) }),
});

builder.mutationField("createUpload", (t) =>
  t.field({
    type: CreateUploadPayload,
    nullable: true,
    description: "Creates a URL to upload a file to. The file counts towards the quota at once. Works with any key.",
    args: { input: t.arg({ type: CreateUploadInput, required: true, description: "The file to upload." }) },
    resolve: async (_root, { input }, ctx) => ({
      upload: await ctx.services.mediaObjects.createUpload(ctx, parsePermitted(ctx, requireAccount, createUploadInput, input)),
    }),
  }),
);

const CompleteUploadInput = builder.inputType("CompleteUploadInput", {
  description: "Parameters of `completeUpload`.",
  fields: (t) => ({ id: t.id({ required: true, description: "The ID from `createUpload`." }) }),
});

const CompleteUploadPayload = builder.objectRef<{ readonly mediaObject: SelectedMediaObject }>("CompleteUploadPayload").implement({
  description: "The result of `completeUpload`.",
  fields: (t) => ({ mediaObject: t.field({ type: MediaObject, description: "The file.", resolve: ({ mediaObject }) => mediaObject }) }),
});

builder.mutationField("completeUpload", (t) =>
  t.field({
    type: CompleteUploadPayload,
    nullable: true,
    description: "Completes an upload, so that the file can be read. Repeating it has no effect.",
    args: { input: t.arg({ type: CompleteUploadInput, required: true, description: "The upload to complete." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { mediaObjects } = ctx.services;
      const { id } = await mediaObjects.complete(ctx, readId(input.id, "MediaObject", "id"));
      return { mediaObject: await mediaObjects.getSelected(id, selectionOf(ctx, info, ["mediaObject"])) };
    },
  }),
);

const DeleteMediaInput = builder.inputType("DeleteMediaInput", {
  description: "Parameters of `deleteMedia`.",
  fields: (t) => ({ id: t.id({ required: true, description: "The ID of the file." }) }),
});

const DeleteMediaPayload = builder.objectRef<{ readonly id: string }>("DeleteMediaPayload").implement({
  description: "The result of `deleteMedia`.",
  fields: (t) => ({ deletedId: t.exposeID("id", { description: "The REST ID of the deleted file." }) }),
});

builder.mutationField("deleteMedia", (t) =>
  t.field({
    type: DeleteMediaPayload,
    nullable: true,
    description: "Deletes a tagged file of the account. Needs a secret key.",
    args: { input: t.arg({ type: DeleteMediaInput, required: true, description: "The file to delete." }) },
    resolve: (_root, { input }, ctx) => ctx.services.mediaObjects.delete(ctx, readId(input.id, MEDIA_TYPES, "id")),
  }),
);

const MediaQuota = builder.objectRef<Quota>("MediaQuota").implement({
  description: "Storage of the account on the media host, unfinished uploads included.",
  fields: (t) => ({
    usedBytes: t.exposeFloat("usedBytes", { description: "The bytes in use, as a whole number." }),
    limitBytes: t.exposeFloat("limitBytes", { description: "The limit in bytes, as a whole number." }),
    files: t.exposeInt("files", { description: "The number of files." }),
    limitFiles: t.exposeInt("limitFiles", { description: "The limit of files." }),
  }),
});

builder.prismaObjectField(Account, "mediaQuota", (t) =>
  t.field({
    type: MediaQuota,
    nullable: true,
    description: "Storage and limits of the account on the media host. Works with any key.",
    resolve: ({ id }, _args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.mediaQuotas.get(ctx);
    },
  }),
);
